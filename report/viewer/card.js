// The card at the pointer: facts in words.

const table = (pairs) =>
  `<table>${pairs.filter(([, value]) => value !== null && value !== "").map(
    ([name, value]) => `<tr><td>${name}</td><td>${value}</td></tr>`).join("")}</table>`;

// `lane` and `others` (runs beside its own) are of the row the facts are about.
function cardHtml(facts, lane, others) {
  if (facts.what === "memory") {
    return `<h3>memory, rank ${facts.rank}</h3>` + table([
      ["at", readableTime(facts.time_ns - lane.run.origin)],
      ["held", readableBytes(facts.held_bytes)], ["peak", readableBytes(facts.peak_bytes)],
      ["limit", facts.limit_bytes === null ? null : readableBytes(facts.limit_bytes)]]);
  }
  return facts.what === "idle" ? idleCard(facts) : boxCard(facts, lane, others);
}

function idleCard(facts) {
  const { times_ns: times } = facts;
  const parts = ["op", "transfer"].filter((part) => times[part] > 0).map(
    (part) => [REASONS[part], readableTime(times[part])]);
  return `<h3>idle, rank ${facts.rank}</h3>` + table([
    ["for", readableTime(facts.duration_ns)], ["from", readableTime(facts.since_ns)],
    ["until", escaped(facts.next ?? "the end of the step")],
    ...(parts.length > 1 ? parts : [])]) + `<p>${escaped(facts.reason)}</p>`;
}

function boxCard(facts, lane, others) {
  const titles = facts.ops.slice(0, 6).map((op) =>
    `<h3><span class="swatch" style="background:${css(op.colour)}"></span>` +
    `${escaped(op.text)} <span class="kind">${KINDS[op.token] ?? ""}</span></h3>`);
  if (facts.ops.length > 6) titles.push(`<h3>and ${facts.ops.length - 6} more</h3>`);
  if (facts.ops.length === 0) titles.push("<h3>collective</h3>");
  const of = (key) =>
    [...new Set(facts.ops.map((op) => op[key]).filter((value) => value !== null))].join(", ");
  return titles.join("") + table([
    ["rank", facts.rank],
    ["stage", of("stage") + (facts.chunk === null ? "" : `, chunk ${facts.chunk}`)],
    ["microbatch", of("microbatch")], ["direction", directionText(facts.direction)],
    ["start", readableTime(facts.since_ns)], ["duration", readableTime(facts.duration_ns)],
    ["stream", escaped(facts.stream)],
    ["size", facts.bytes > 0 ? readableBytes(facts.bytes) : null],
    ["slack", slackText(facts)],
    ...waitRows(facts, lane.run.origin), ...otherRows(facts, lane, others)]);
}

const DIRECTIONS = ["\u2193 first, down the ranks", "\u2191 second, up the ranks"];
const directionText = (replicas) =>
  replicas === null ? null : replicas.map((replica) => DIRECTIONS[directionOf(replica)]).join("; ");

function slackText({ slack_ns: slack, has_slack: hasSlack, is_critical: isCritical }) {
  if (isCritical) return "none: on the critical path";
  if (slack === null) return hasSlack ? "counted once an op is selected" : null;
  return slack === 0 ? "none" : readableTime(slack);
}

function waitRows({ waits_for: waits }, origin) {
  return (waits ?? []).slice(0, 4).map((wait, i) => {
    const where = wait.is_order ? "before it here" : `rank ${wait.rank}`;
    const by = wait.by ? `, by ${escaped(wait.by)}` : "";
    const when = readableTime(wait.arrived_ns - origin);
    return [i === 0 ? "waits for" : "&nbsp;",
      `${escaped(wait.op)} <span class="quiet">${where}${by}, ${when}</span>`];
  });
}

// How the same op went in the other runs of the page.
function otherRows(facts, lane, others) {
  if (facts.what !== "op") return [];
  return others.slice(0, 3).map((run) => {
    const same = sameOp(run, lane, facts.instruction);
    const name = `in ${escaped(run.name)}`;
    if (!same) return [name, "not there"];
    const later = signed(same.begin - facts.since_ns, readableTime);
    const longer = signed(same.end - same.begin - facts.duration_ns, readableTime);
    return [name, `starts ${later}, lasts ${longer}`];
  });
}
