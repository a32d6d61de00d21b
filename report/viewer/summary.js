// The page in words, for those who do not see it: a summary, and what is selected as it changes.

function summaryText(run) {
  const { report } = run;
  const worst = report.per_rank.reduce(
    (most, rank, i) => (rank.idle_ns > report.per_rank[most].idle_ns ? i : most), 0);
  const parts = [
    `Timeline of ${run.name}: ${report.ranks} ranks, ${report.stages} stages, ` +
      `${report.microbatches} microbatches.`,
    `Makespan ${readableTime(report.makespan_ns)}, bubble fraction ` +
      `${readableShare(report.bubble_fraction)}.`,
  ];
  if (report.ranks > 1) {
    parts.push(`Rank ${worst} idles most, ${readableTime(report.per_rank[worst].idle_ns)}.`);
  }
  if (run.hasMemory) {
    const peaks = report.per_rank.map((rank) => rank.peak_memory_bytes);
    const most = peaks.indexOf(Math.max(...peaks));
    parts.push(`Most memory: ${readableBytes(peaks[most])}, on rank ${most}.`);
  }
  return parts.join(" ");
}

function fillSummary(runs) {
  const text = runs.map(summaryText).join(" ");
  element("lanes").setAttribute("aria-label", text);
  element("summary").textContent = `${text} With the lanes in focus, Enter selects an op; ` +
    "shift and arrow keys go from op to op.";
}

// Says what is selected.
function announce(facts) {
  if (!facts) {
    element("live").textContent = "";
    return;
  }
  const names = facts.ops.map((op) => `${KINDS[op.token] ?? op.token} of stage ${op.stage}` +
    (op.microbatch === null ? "" : `, microbatch ${op.microbatch}`)).join(" with ");
  element("live").textContent = `${names}, rank ${facts.rank}, starts at ` +
    `${readableTime(facts.since_ns)}, lasts ${readableTime(facts.duration_ns)}`;
}
