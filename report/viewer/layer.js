// A choice of instructions, drawn over the rest: a microbatch's path, what a search finds, the
// critical path; or what is left when some kinds are hidden.

class Layer {
  // `keeps(lane, instruction)` decides.
  constructor(keeps) {
    this.keeps = keeps;
    this.subsets = new Map();
  }
  // The chosen ones of some boxes; each set of boxes is gone through once.
  of(boxes) {
    let subset = this.subsets.get(boxes);
    if (!subset) {
      subset = boxes.subset((instruction) => this.keeps(boxes.lane, instruction));
      this.subsets.set(boxes, subset);
    }
    return subset;
  }
}

// The path of microbatches through one run.
const microbatchLayer = (run, microbatches) => new Layer((lane, i) =>
  lane.run === run && microbatches.some((microbatch) => lane.concerns(i, microbatch)));

// Instructions of some kinds only. A fused pair or group stays while one of its ops does.
const kindLayer = (hidden) => new Layer((lane, i) => {
  if (lane.opStart[i] === lane.opStart[i + 1]) return true;
  for (let k = lane.opStart[i]; k < lane.opStart[i + 1]; ++k) {
    if (!hidden.has(lane.templates[lane.template[k]].token)) return true;
  }
  return false;
});

// The critical paths of all runs.
function pathLayer(runs) {
  const nodes = new Map(runs.map(
    (run) => [run, new Set(run.criticalPath.map(({ node }) => node))]));
  return new Layer((lane, i) => nodes.get(lane.run).has(lane.run.graph.node(lane, i)));
}
