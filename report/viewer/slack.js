// How much later each instruction could end without a longer step, everything else as it is.

// Nanoseconds by node. A pass from the ends backwards; instructions that never ran have 0.
// O(nodes + waits).
function slackOf({ graph, report }) {
  const { size, begin, end, following } = graph;
  const latest = new Float64Array(size).fill(Infinity);
  const open = new Int32Array(size);  // successors not yet settled
  const { start, nodes } = graph.waiters;
  const stack = [];
  for (let node = 0; node < size; ++node) {
    open[node] = start[node + 1] - start[node] + (following[node] >= 0 ? 1 : 0);
    if (open[node] === 0) stack.push(node);
  }
  const settle = (cause, bound) => {
    latest[cause] = Math.min(latest[cause], bound);
    if (--open[cause] === 0) stack.push(cause);
  };
  while (stack.length > 0) {
    const node = stack.pop();
    if (latest[node] === Infinity) latest[node] = Math.max(report.makespan_ns, end[node]);
    const sends = new Set(graph.sendsOf(node));
    let own = end[node] - begin[node];
    for (const send of sends) own = Math.min(own, end[node] - begin[send]);
    for (const cause of graph.waits(node)) {
      // A message that leaves later arrives later by as much.
      const lag = sends.has(cause) ? end[node] - end[cause] : own;
      settle(cause, latest[node] - lag);
    }
    if (graph.previous[node] >= 0) settle(graph.previous[node], latest[node] - own);
  }
  return latest.map((time, node) => (end[node] > -Infinity ? Math.max(time - end[node], 0) : 0));
}
