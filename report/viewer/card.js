// What lies under a point, in words: facts first, the card made of them.

// The facts about the op, the idle time, the transfer or the memory at `time` in a row; `part` says
// which strip of the row is meant: "compute", "wire" or "memory".
function factsAt(row, time, part, boxes = row.lane.compute) {
  const { lane, run } = row;
  if (part === "memory") {
    return { what: "memory", rank: lane.rank, time_ns: time + run.origin,
      held_bytes: lane.heldAt(time), peak_bytes: lane.peakBytes, limit_bytes: lane.limit };
  }
  const index = boxes.at(time);
  if (index >= 0) return boxFacts(row, boxes, index);
  return part === "compute" ? idleFacts(row, time) : null;
}

function boxFacts({ lane, run }, boxes, index) {
  const row = boxes.rows[index];
  const ops = opsOf(row);
  return {
    what: row[KIND] === RUN ? "op" : "transfer",
    rank: lane.rank, index, ops, op: row[TEXT], stream: lane.streams[row[STREAM]].label,
    stage: ops[0]?.stage ?? null, microbatch: ops[0]?.microbatch ?? null,
    chunk: ops.length === 1 && lane.colours.hasChunks ? lane.colours.chunk(ops[0]) : null,
    start_ns: row[BEGIN], duration_ns: row[END] - row[BEGIN], bytes: row[BYTES],
    since_ns: boxes.begin[index], origin_ns: run.origin,
  };
}

function idleFacts({ lane, run }, time) {
  const boxes = lane.compute;
  if (time < 0 || time > run.report.makespan_ns) return null;
  const next = boxes.from(time);
  const begin = next > 0 ? boxes.reach[next - 1] : 0;
  const end = next < boxes.count ? boxes.begin[next] : run.report.makespan_ns;
  return { what: "idle", rank: lane.rank, start_ns: begin + run.origin, since_ns: begin,
    duration_ns: end - begin, next: next < boxes.count ? boxes.rows[next][TEXT] : null };
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ENTITIES[c]);

const table = (pairs) =>
  `<table>${pairs.filter(([, value]) => value !== null && value !== "").map(
    ([name, value]) => `<tr><td>${name}</td><td>${escaped(value)}</td></tr>`).join("")}</table>`;

function cardHtml(facts, colourOf) {
  if (facts.what === "memory") {
    return `<h3>memory, rank ${facts.rank}</h3>` + table([
      ["held", readableBytes(facts.held_bytes)], ["peak", readableBytes(facts.peak_bytes)],
      ["limit", facts.limit_bytes === null ? null : readableBytes(facts.limit_bytes)]]);
  }
  if (facts.what === "idle") {
    return `<h3>idle, rank ${facts.rank}</h3>` + table([
      ["for", readableTime(facts.duration_ns)], ["from", readableTime(facts.since_ns)],
      ["until", facts.next ?? "the end of the step"]]);
  }
  const titles = facts.ops.slice(0, 6).map((op) =>
    `<h3><span class="swatch" style="background:${css(colourOf(op))}"></span>` +
    `${escaped(op.text)} <span style="font-weight:400">${KINDS[op.token]}</span></h3>`);
  if (facts.ops.length === 0) titles.push("<h3>collective</h3>");
  const of = (key) =>
    [...new Set(facts.ops.map((op) => op[key]).filter((value) => value !== null))].join(", ");
  return titles.join("") + table([
    ["rank", facts.rank],
    ["stage", of("stage") + (facts.chunk === null ? "" : `, chunk ${facts.chunk}`)],
    ["direction", facts.ops.some((op) => op.replica === 1) ? of("replica") : null],
    ["microbatch", of("microbatch")], ["start", readableTime(facts.since_ns)],
    ["duration", readableTime(facts.duration_ns)], ["stream", facts.stream],
    ["size", facts.bytes > 0 ? readableBytes(facts.bytes) : null]]);
}
