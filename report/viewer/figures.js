// The figures of a run, each with how it reads: for the head of the page and the table of all.

const mostOf = (report, key) =>
  report.per_rank.reduce((most, rank) => Math.max(most, rank[key]), 0);
const meanOf = (report, key) => report.per_rank.reduce((sum, rank) => sum + rank[key], 0) /
  Math.max(report.per_rank.length, 1);

// {key, label, of(report), show, isCost (less is better), isIn(run)}; the first are of the head.
const FIGURES = [
  { key: "makespan_ns", label: "makespan", show: readableTime, isCost: true },
  { key: "bubble_fraction", label: "bubble fraction", show: readableShare, isCost: true },
  { key: "span_bubble_fraction", label: "span bubble fraction", show: readableShare, isCost: true },
  { key: "lower_bound_ns", label: "lower bound", show: readableTime, isIn: isBounded },
  { key: "gap", label: "gap", show: readableShare, isCost: true, isIn: isBounded },
  { key: "peak_activations", label: "peak activations", of: (r) => mostOf(r, "peak_activations"),
    show: String, isCost: true },
  { key: "peak_memory_bytes", label: "peak memory", of: (r) => mostOf(r, "peak_memory_bytes"),
    show: readableBytes, isCost: true, isIn: (run) => run.hasMemory },
  { key: "idle_ns", label: "idle, mean of ranks", of: (r) => meanOf(r, "idle_ns"),
    show: readableTime, isCost: true, isDetail: true },
  { key: "comm_exposed_ns", label: "exposed transfers, most",
    of: (r) => mostOf(r, "comm_exposed_ns"), show: readableTime, isCost: true, isDetail: true },
  { key: "span_ns", label: "span", show: readableTime, isCost: true, isDetail: true },
];
function isBounded(run) {
  return run.report.lower_bound_ns > 0;
}

const figureOf = ({ key, of }, { report }) => (of ? of(report) : report[key]);
const hasFigure = ({ isIn }, run) => !isIn || isIn(run);
const figuresOf = (runs) => FIGURES.filter((figure) => runs.some((run) => hasFigure(figure, run)));

// Mean duration of the ops of each kind: [[token, nanoseconds]], of compute that stands alone.
function meanDurations(run) {
  const sums = new Map();
  for (const lane of run.lanes) {
    for (const i of lane.compute.index) {
      if (lane.opStart[i + 1] - lane.opStart[i] !== 1) continue;
      const { token } = lane.templates[lane.template[lane.opStart[i]]];
      const sum = sums.get(token) ?? [0, 0];
      sum[0] += lane.end[i] - lane.begin[i];
      ++sum[1];
      sums.set(token, sum);
    }
  }
  return new Map([...sums].map(([token, [time, ops]]) => [token, time / ops]));
}

// [{label, group, values: [per run, or null], show, isCost}]: all that two runs are compared by.
function comparedFigures(runs) {
  const rows = figuresOf(runs).map((figure) => ({
    ...figure, group: "Run",
    values: runs.map((run) => (hasFigure(figure, run) ? figureOf(figure, run) : null)),
  }));
  const add = (group, label, key, values) => values.some((value) => value > 0) &&
    rows.push({ group, label, key, values, show: readableTime, isCost: true });
  if (runs.every(({ graph }) => graph.isKnown)) {
    for (const [reason, label] of Object.entries(REASONS)) {
      add("Idle time of all ranks, by reason", label, `idle.${reason}`,
        runs.map((run) => run.idleReasons.total[reason]));
    }
    const paths = runs.map((run) => pathTimes(run.graph, run.criticalPath));
    for (const [part, label] of [["compute", "compute"], ["transfer", "transfers"],
      ["other", "queues and launches"]]) {
      add("Critical path", label, `path.${part}`, paths.map((times) => times[part]));
    }
  }
  const means = runs.map(meanDurations);
  for (const [token, label] of Object.entries(KINDS)) {
    add("Mean duration", label, `mean.${token}`, means.map((mean) => mean.get(token) ?? null));
  }
  return rows;
}

// A difference to the first run: "+3 ms, +2.1 %"; of shares in points.
function deltaText(value, first, show) {
  if (value === null || first === null) return "";
  if (value === first) return "same";
  if (show === readableShare) return `${signed(100 * (value - first), (d) => d.toFixed(2))} pt`;
  const share = first === 0 ? "" : `, ${signed((100 * (value - first)) / first,
    (d) => `${d.toFixed(d < 10 ? 2 : 1)} %`)}`;
  return signed(value - first, show) + share;
}
