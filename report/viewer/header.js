// The head of the page: title, figures and legend.

// [label, how it reads, what to rank runs by (less is better)]
const FIGURES = [
  ["makespan", (r) => readableTime(r.makespan_ns), (r) => r.makespan_ns],
  ["bubble fraction", (r) => readableShare(r.bubble_fraction), (r) => r.bubble_fraction],
  ["span bubble fraction", (r) => readableShare(r.span_bubble_fraction),
    (r) => r.span_bubble_fraction],
  ["lower bound", (r) => (r.lower_bound_ns > 0 ? readableTime(r.lower_bound_ns) : "-"), null],
  ["gap", (r) => (r.lower_bound_ns > 0 ? readableShare(r.gap) : "-"), (r) => r.gap],
  ["peak activations", (r) => String(peakOf(r, "peak_activations")),
    (r) => peakOf(r, "peak_activations")],
  ["peak memory", (r) => readableBytes(peakOf(r, "peak_memory_bytes")),
    (r) => peakOf(r, "peak_memory_bytes")],
];
const peakOf = (report, key) => Math.max(0, ...report.per_rank.map((rank) => rank[key]));

function shownFigures(runs) {
  return FIGURES.filter(([label]) => {
    if (label === "peak memory") return runs.some((run) => run.hasMemory);
    if (label !== "lower bound" && label !== "gap") return true;
    return runs.some((run) => run.report.lower_bound_ns > 0);
  });
}

function fillHeader(runs) {
  const element = (id) => document.getElementById(id);
  const { report } = runs[0];
  const shape =
    `${report.ranks} ranks, ${report.stages} stages, ${report.microbatches} microbatches`;
  const single = runs.length === 1;
  element("title").textContent = single ? report.schedule : `${runs.length} runs`;
  element("subtitle").textContent = single
    ? [shape, report.execution].filter((part) => part !== "").join(", ")
    : "one time axis, every run from its first op";
  element("warnings").textContent = runs.flatMap((run) => run.report.warnings).join("; ");
  element("figures").innerHTML = single ? figureCards(runs) : figureTable(runs);
}

const figureCards = (runs) => shownFigures(runs).map(([label, show]) =>
  `<div class="figure"><div class="value">${show(runs[0].report)}</div>` +
  `<div class="label">${label}</div></div>`).join("");

function figureTable(runs) {
  const figures = shownFigures(runs);
  const cell = ([, show, rankBy], run) => {
    const best =
      rankBy !== null && runs.every((other) => rankBy(run.report) <= rankBy(other.report));
    return `<td${best ? ' class="best"' : ""}>${show(run.report)}</td>`;
  };
  return `<table><tr><th></th>${figures.map(([label]) => `<th>${label}</th>`).join("")}</tr>` +
    runs.map((run) => `<tr><td>${escaped(run.name)}</td>${
      figures.map((figure) => cell(figure, run)).join("")}</tr>`).join("") + "</table>";
}

function fillLegend(runs, palette) {
  const tokens = new Set();
  let pairs = false;
  for (const { compute } of runs.flatMap((run) => run.lanes)) {
    for (const row of compute.rows) for (const op of opsOf(row)) tokens.add(op.token);
    pairs ||= compute.second.some((colour) => colour >= 0);
  }
  const key = (style, label, kind = "") =>
    `<span class="key"><span class="swatch ${kind}" style="${style}"></span>${label}</span>`;
  const keys = Object.keys(KINDS).filter((token) => tokens.has(token)).map(
    (token) => key(`background:${palette[token] ?? palette[""]}`, KINDS[token]));
  if (pairs) keys.push(key(`--above:${palette.F};--below:${palette.B}`, "fused pair", "pair"));
  keys.push(key("background:var(--idle)", "idle"));
  const lanes = runs.flatMap((run) => run.lanes);
  if (lanes.some((lane) => lane.colours.twoReplicas)) {
    keys.push("<span>lighter: second direction</span>");
  } else if (lanes.some((lane) => lane.colours.hasChunks)) {
    keys.push("<span>lighter: later chunk</span>");
  }
  if (runs.some((run) => run.hasMemory)) keys.push(key("background:var(--memory-edge)", "memory"));
  if (lanes.some((lane) => lane.limit !== null)) keys.push(key("", "memory limit", "dashed"));
  document.getElementById("legend").innerHTML = keys.join("");
}
