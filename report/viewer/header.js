// The head of the page: title, figures and legend; and the table of all figures.

const element = (id) => document.getElementById(id);

function fillHeader(runs) {
  const { report } = runs[0];
  const shape =
    `${count(report.ranks, "rank")}, ${count(report.stages, "stage")}, ` +
    count(report.microbatches, "microbatch").replace(/hs?$/, (end) => (end === "hs" ? "hes" : end));
  const single = runs.length === 1;
  element("title").textContent = single ? report.schedule : `${runs.length} runs`;
  element("subtitle").textContent = single
    ? [shape, report.execution].filter((part) => part !== "").join(", ")
    : "one time axis, every run from its first op; differences are to the first run";
  element("notes").textContent = runs.flatMap((run) => run.report.notes ?? []).join("; ");
  element("notes").title = element("notes").textContent;
  element("warnings").textContent = runs.flatMap((run) => run.report.warnings).join("; ");
  element("warnings").title = element("warnings").textContent;
  element("figures").innerHTML = single ? figureCards(runs[0]) : figureTable(runs);
}

const figureCards = (run) => figuresOf([run]).filter(({ isDetail }) => !isDetail).map((figure) =>
  `<div class="figure"><div class="value">${figure.show(figureOf(figure, run))}</div>` +
  `<div class="label">${figure.label}</div></div>`).join("");

const isBest = ({ isCost }, value, values) =>
  isCost && value !== null && values.every((other) => other === null || value <= other) &&
  values.some((other) => other !== null && other !== value);

// One line a run, with the difference to the first.
function figureTable(runs) {
  const figures = figuresOf(runs).filter(({ isDetail }) => !isDetail);
  const values = figures.map((figure) => runs.map((run) =>
    (hasFigure(figure, run) ? figureOf(figure, run) : null)));
  const cell = (figure, column, r) => {
    const value = values[column][r];
    const best = isBest(figure, value, values[column]) ? ' class="best"' : "";
    const delta = r === 0 ? "" : `<span class="delta">${
      deltaText(value, values[column][0], figure.show)}</span>`;
    return `<td${best} data-figure="${figure.key}" data-value="${value}">${
      value === null ? "-" : figure.show(value)}${delta}</td>`;
  };
  return `<table><tr><th></th>${figures.map(({ label }) => `<th>${label}</th>`).join("")}</tr>` +
    runs.map((run, r) => `<tr><td>${escaped(run.name)}</td>${
      figures.map((figure, column) => cell(figure, column, r)).join("")}</tr>`).join("") +
    "</table>";
}

// Why ranks idle, in one line under the title.
function idleLine(run) {
  if (!run.graph.isKnown) return "";
  const { total } = run.idleReasons;
  const all = Object.values(total).reduce((sum, time) => sum + time, 0);
  const parts = Object.entries(REASONS).filter(([reason]) => total[reason] > 0.0005 * all).map(
    ([reason, label]) => `${((100 * total[reason]) / all).toFixed(0)} % ${label}`);
  return all > 0 ? `idle: ${parts.join(", ")}` : "no idle time";
}

// In its place where counting takes a moment.
function laterLine(run, ops) {
  if (!run.graph.isKnown) return "";
  return `idle: reasons of ${ops.toLocaleString("en")} ops are counted when “figures” opens`;
}

// All figures, run beside run.
function fillDetails(runs) {
  const rows = comparedFigures(runs);
  const names = runs.length > 1 ? runs.map(({ name }) => name) : ["this run"];
  let group = "";
  const lines = rows.map((row) => {
    const head = row.group === group ? ""
      : `<tr class="group"><th colspan="${2 * runs.length}">${row.group}</th></tr>`;
    ({ group } = row);
    return head + detailLine(row);
  });
  element("details-table").innerHTML = `<table><tr><th></th>${names.map((name, r) =>
    `<th>${escaped(name)}</th>${r > 0 ? "<th>difference</th>" : ""}`).join("")}</tr>` +
    lines.join("") + "</table>" + (runs.length === 1 ? rankTable(runs[0]) : "");
}

function detailLine({ key, label, values, show, isCost }) {
  return `<tr data-figure="${key}"><td>${label}</td>` + values.map((value, r) => {
    const best = isBest({ isCost }, value, values) ? ' class="best"' : "";
    const cell = `<td${best} data-value="${value}">${value === null ? "-" : show(value)}</td>`;
    const delta = value === null || values[0] === null ? null : value - values[0];
    return r === 0 ? cell
      : `${cell}<td class="delta" data-delta="${delta}">${deltaText(value, values[0], show)}</td>`;
  }).join("") + "</tr>";
}

function rankTable(run) {
  const { report } = run;
  const cells = (rank, i) => [i, readableTime(rank.busy_ns), readableTime(rank.idle_ns),
    readableShare(rank.idle_ns / Math.max(report.makespan_ns, 1)), rank.peak_activations,
    run.hasMemory ? readableBytes(rank.peak_memory_bytes) : "-",
    readableTime(rank.comm_exposed_ns)];
  const head = ["rank", "busy", "idle", "bubble", "activations", "memory", "exposed transfers"];
  return `<table class="ranks"><tr>${head.map((each) => `<th>${each}</th>`).join("")}</tr>` +
    report.per_rank.map((rank, i) =>
      `<tr>${cells(rank, i).map((each) => `<td>${each}</td>`).join("")}</tr>`).join("") +
    "</table>";
}

// ---- Legend -------------------------------------------------------------------------------------

// Kinds of compute are buttons: pressed, they are shown.
function fillLegend(runs, palette, hidden) {
  const lanes = runs.flatMap((run) => run.lanes);
  const tokens = new Set(lanes.flatMap(({ templates, computed }) =>
    templates.filter((_, i) => computed[i])).map(({ token }) => token));
  const letter = (token) => (token.length === 1 ? `<b>${token}</b> ` : "");
  const keys = Object.keys(KINDS).filter((token) => tokens.has(token)).map(
    (token) => `<button class="key" data-kind="${token}" aria-pressed="${!hidden.has(token)}" ` +
      `title="Show or hide ${KINDS[token]}"><span class="swatch" style="background:${
        palette[token] ?? palette[""]}"></span><span>${letter(token)}${KINDS[token]}</span>` +
      "</button>");
  const key = (style, label, kind = "") =>
    `<span class="key"><span class="swatch ${kind}" style="${style}"></span>${label}</span>`;
  if (lanes.some((lane) => lane.hasPairs)) {
    keys.push(key(`--above:${palette.F};--below:${palette.B}`, "fused pair", "pair"));
  }
  keys.push(key("background:var(--idle)", "idle"));
  if (lanes.some((lane) => lane.colours.hasDirections)) {
    const both = "\u2193 first direction, \u2191 second direction (lighter)";
    keys.push(`<span class="key">${both}</span>`);
  } else if (lanes.some((lane) => lane.colours.hasChunks)) {
    keys.push('<span class="key">lighter: later chunk</span>');
  }
  if (runs.some((run) => run.hasMemory)) keys.push(key("background:var(--memory-edge)", "memory"));
  const limits = runs.filter(
    (run) => run.hasMemory && run.lanes.some(({ limit }) => limit !== null));
  if (limits.some((run) => run.showsLimit)) keys.push(key("", "memory limit", "dashed"));
  else if (limits.length > 0) keys.push('<span class="key">memory limit far above</span>');
  element("legend").innerHTML = keys.join("");
}
