// Why a rank stands still.

const REASONS = {
  start: "before the first op",
  op: "waiting for an op",
  transfer: "waiting for a transfer",
  other: "for no reason the program names",
  end: "after the last op",
};

// The idle stretch of a lane at `time`, or null: {from, to, next}, next being the place in
// lane.compute of the op that ends it, -1 after the last. Only the makespan counts.
function idleAt(lane, time) {
  const boxes = lane.compute, { makespan_ns: makespan } = lane.run.report;
  if (time < 0 || time >= makespan || boxes.at(time) >= 0) return null;
  const next = lowerBound(boxes.begin, time);
  const from = next > 0 ? Math.max(boxes.reach[next - 1], 0) : 0;
  const to = next < boxes.count ? Math.min(boxes.begin[next], makespan) : makespan;
  return to > from ? { from, to, next: next < boxes.count ? next : -1 } : null;
}

// What ends an idle stretch before `op` (a node): {need, sent, arrived}, need being the dependency
// that was met last; null if that is no message.
function awaited(graph, op) {
  let found = null;
  for (const need of graph.needs(op)) {
    const arrived = graph.end[need.receive < 0 ? need.op : need.receive];
    const made = need.op < 0 ? graph.begin[need.send] : graph.end[need.op];
    const sent = need.send < 0 ? arrived : Math.min(made, arrived);
    if (found === null || arrived > found.arrived) found = { need, sent, arrived };
  }
  return found;
}

// Nanoseconds of an idle stretch by reason: while the op it waits for was still running, while the
// message was on its way, and the rest; all before a rank's first op is `start`.
function split(graph, lane, { from, to, next }) {
  const times = { start: 0, op: 0, transfer: 0, other: 0, end: 0 };
  if (next < 0) times.end = to - from;
  else if (next === 0) times.start = to - from;
  else {
    const cause = graph.isKnown ? awaited(graph, graph.node(lane, lane.compute.index[next])) : null;
    const clamp = (time) => Math.min(Math.max(time, from), to);
    const sent = cause ? clamp(cause.sent) : from, arrived = cause ? clamp(cause.arrived) : from;
    times.op = sent - from;
    times.transfer = arrived - sent;
    times.other = to - arrived;
  }
  return times;
}

// The idle time of all ranks by reason, in nanoseconds, and the same of each rank:
// {total, ranks}. Adds up to idle_ns of the report.
function idleByReason({ graph, lanes, report }) {
  const total = { start: 0, op: 0, transfer: 0, other: 0, end: 0 };
  const ranks = lanes.map((lane) => {
    const sum = { start: 0, op: 0, transfer: 0, other: 0, end: 0 };
    const { compute } = lane;
    const add = (stretch) => {
      if (stretch.to <= stretch.from) return;
      const times = split(graph, lane, stretch);
      for (const reason of Object.keys(times)) sum[reason] += times[reason];
    };
    let reached = 0;
    for (let i = 0; i < compute.count && reached < report.makespan_ns; ++i) {
      add({ from: reached, to: Math.min(compute.begin[i], report.makespan_ns), next: i });
      reached = Math.max(reached, compute.reach[i]);
    }
    add({ from: reached, to: report.makespan_ns, next: -1 });
    for (const reason of Object.keys(sum)) total[reason] += sum[reason];
    return sum;
  });
  return { total, ranks };
}

// An idle stretch in words: what it waits for, where that ran, how long the message took.
function reasonText(lane, stretch) {
  const { graph } = lane.run;
  if (stretch.next < 0) return "its work is done; the step ends elsewhere";
  if (!graph.isKnown) return "the file does not say what it waits for";
  const op = graph.node(lane, lane.compute.index[stretch.next]);
  const cause = awaited(graph, op);
  if (!cause) return stretch.next === 0 ? "before the first op" : "for no reason the program names";
  const { need, sent, arrived } = cause;
  const producer = need.op < 0 ? "a message" : graph.text(need.op);
  if (need.send < 0) return `waits for ${producer} of this rank, until ${readableTime(arrived)}`;
  const rank = graph.rank(need.send);
  const way = arrived - sent;
  return `waits for ${producer} of rank ${rank}, which ends at ` +
    `${readableTime(need.op < 0 ? sent : graph.end[need.op])}` +
    (way > 0 ? `, and ${readableTime(way)} for ${graph.text(need.send)}` : "") +
    (arrived > stretch.to + 0.5 || arrived < stretch.from - 0.5 ? ", long there" : "");
}
