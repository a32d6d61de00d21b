// What lies under a point: facts first, as scripts and tests read them.

// The facts about the op, the idle time, the transfer or the memory at `time` in a row; `part` says
// which is meant: "compute", "wire" or "memory"; `boxes` where in a strip. Null where nothing is.
function factsAt(row, time, part, boxes = row.lane.compute) {
  const { lane, run } = row;
  if (part === "memory") {
    return { what: "memory", rank: lane.rank, time_ns: time + run.origin,
      held_bytes: lane.memory.heldAt(time), peak_bytes: lane.memory.peakBytes,
      limit_bytes: lane.limit };
  }
  const at = boxes.at(time);
  if (at >= 0) return boxFacts(lane, boxes.index[at]);
  return part === "compute" ? idleFacts(lane, time) : null;
}

// The facts about one instruction.
function boxFacts(lane, instruction) {
  const { run } = lane, { graph } = run;
  const node = graph.node(lane, instruction);
  const ops = lane.ops(instruction);
  const isOp = lane.isCompute(instruction);
  return {
    what: isOp ? "op" : "transfer",
    rank: lane.rank, instruction, node, ops, op: ops.map((op) => op.text).join(";"),
    stream: lane.streams[lane.stream[instruction]].label,
    stage: ops[0]?.stage ?? null, microbatch: ops[0]?.microbatch ?? null,
    chunk: ops.length === 1 && lane.colours.hasChunks ? lane.colours.chunk(ops[0].stage) : null,
    direction: lane.colours.hasDirections ? [...new Set(ops.map((op) => op.replica))] : null,
    start_ns: lane.begin[instruction] + run.origin,
    duration_ns: lane.end[instruction] - lane.begin[instruction],
    bytes: lane.bytes[instruction], since_ns: lane.begin[instruction], origin_ns: run.origin,
    waits_for: graph.isKnown ? waitFacts(run, node, isOp) : null,
    slack_ns: run.slack ? run.slack[node] : null,
    has_slack: graph.isKnown,  // even if it is not counted yet
    is_critical: run.foundPath?.some((part) => part.node === node) ?? null,
  };
}

// What an instruction waits for: [{op, rank, by, arrived_ns}], `by` naming the message if one is
// needed; the last to arrive first, and the op before it on its stream at the end.
function waitFacts(run, node, isOp) {
  const { graph } = run;
  const fact = (on, by, arrived) =>
    ({ op: graph.text(on), rank: graph.rank(on), by, arrived_ns: arrived + run.origin });
  let list;
  if (isOp) {
    list = graph.needs(node).map(({ op, send, receive }) =>
      fact(op < 0 ? send : op, send < 0 ? null : graph.text(send),
        graph.end[receive < 0 ? op : receive]));
  } else {
    list = Array.from(graph.waits(node), (on) => fact(on, null, graph.end[on]));
  }
  list.sort((a, b) => b.arrived_ns - a.arrived_ns);
  const before = graph.previous[node];
  if (before >= 0 && graph.isCompute(before) === isOp) {
    list.push({ ...fact(before, null, graph.end[before]), is_order: true });
  }
  return list;
}

function idleFacts(lane, time) {
  const { run } = lane;
  const stretch = idleAt(lane, time);
  if (!stretch) return null;
  const next = stretch.next < 0 ? null : lane.text(lane.compute.index[stretch.next]);
  return { what: "idle", rank: lane.rank, start_ns: stretch.from + run.origin,
    since_ns: stretch.from, duration_ns: stretch.to - stretch.from, next,
    reason: reasonText(lane, stretch), times_ns: split(run.graph, lane, stretch) };
}

// The same op in another run, or null: {begin, end}, both from that run's first op. Of a fused
// pair, its forward is looked for.
function sameOp(run, lane, instruction) {
  run.opPlaces ??= placesOfOps(run);
  const place = run.opPlaces.get(lane.ops(instruction)[0]?.text);
  return place ? { begin: place[0].begin[place[1]], end: place[0].end[place[1]] } : null;
}

function placesOfOps(run) {
  const places = new Map();
  for (const lane of run.lanes) {
    for (const i of lane.compute.index) {
      for (const op of lane.ops(i)) places.set(op.text, [lane, i]);
    }
  }
  return places;
}
