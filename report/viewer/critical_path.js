// The chain of instructions that made the step as long as it is.

// [{node, from, to}] in order of time, without holes from the first op to the end of the makespan;
// a node of -1 is time nothing in the program accounts for: latency of a launch, a queue, jitter.
// Empty where dependencies are not known. O(length of the path).
function criticalPath({ graph }) {
  if (!graph.isKnown || graph.last < 0) return [];
  const path = [];
  let node = graph.last, to = graph.end[node];
  while (node >= 0) {
    const send = lastToEnd(graph, graph.sendsOf(node));
    // A receive may stand posted for long: its own part begins when the message has left.
    const own = send >= 0 ? Math.max(graph.begin[node], Math.min(graph.end[send], to))
      : Math.min(graph.begin[node], to);
    if (own < to) path.push({ node, from: own, to });
    to = own;
    node = send >= 0 && graph.end[send] >= graph.begin[node] ? send : graph.decisive(node);
    if (node < 0) break;
    if (graph.end[node] < to) path.push({ node: -1, from: graph.end[node], to });
    to = Math.min(to, graph.end[node]);
  }
  if (to > 0) path.push({ node: -1, from: 0, to });
  return path.reverse();
}

function lastToEnd(graph, nodes) {
  return nodes.reduce(
    (best, node) => (best < 0 || graph.end[node] > graph.end[best] ? node : best), -1);
}

// Nanoseconds of a critical path by what they went into: {compute, transfer, other}.
function pathTimes(graph, path) {
  const times = { compute: 0, transfer: 0, other: 0 };
  for (const { node, from, to } of path) {
    const part = node < 0 ? "other" : graph.isCompute(node) ? "compute" : "transfer";
    times[part] += to - from;
  }
  return times;
}
