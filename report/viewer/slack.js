// How much later each instruction could end without a longer step, everything else as it is.

// Nanoseconds by node. A pass from the ends backwards; instructions that never ran have 0.
// O(nodes + waits).
function slackOf({ graph, report }) {
  const { size, begin, end, previous, following, waitStart, waitOn, isMessage } = graph;
  const latest = new Float64Array(size).fill(Infinity);
  const open = new Int32Array(size);  // successors not yet settled
  const stack = new Int32Array(size);
  let top = 0;
  const { start } = graph.waiters;
  for (let node = 0; node < size; ++node) {
    open[node] = start[node + 1] - start[node] + (following[node] >= 0 ? 1 : 0);
    if (open[node] === 0) stack[top++] = node;
  }
  const settle = (cause, bound) => {
    latest[cause] = Math.min(latest[cause], bound);
    if (--open[cause] === 0) stack[top++] = cause;
  };
  while (top > 0) {
    const node = stack[--top];
    if (latest[node] === Infinity) latest[node] = Math.max(report.makespan_ns, end[node]);
    // A receive may stand posted for long before its message is sent: that is not its own time.
    let own = end[node] - begin[node];
    for (let k = waitStart[node]; k < waitStart[node + 1]; ++k) {
      if (isMessage[k]) own = Math.min(own, end[node] - begin[waitOn[k]]);
    }
    for (let k = waitStart[node]; k < waitStart[node + 1]; ++k) {
      // A message that leaves later arrives later by as much.
      const lag = isMessage[k] ? end[node] - end[waitOn[k]] : own;
      settle(waitOn[k], latest[node] - lag);
    }
    if (previous[node] >= 0) settle(previous[node], latest[node] - own);
  }
  return latest.map((time, node) => (end[node] > -Infinity ? Math.max(time - end[node], 0) : 0));
}
