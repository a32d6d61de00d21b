// The memory of a rank under its lane: what it holds, its peak, its limit.

function paintMemory(painter, row, view) {
  const { context, theme } = painter;
  const { lane, run } = row;
  const bottom = row.memoryY + row.memory;
  const y = (bytes) => bottom - (bytes / run.memoryScale) * (row.memory - 1);
  const begin = Math.max(view.from, run.begin), end = Math.min(view.to, run.end);
  if (end <= begin) return;
  context.globalAlpha = painter.marks.layer ? 0.5 : 1;
  const levels = [];
  lane.memory.trace(begin, end, 1 / view.scale, (from, to, bytes) =>
    levels.push(view.x(from), view.x(to), y(bytes)));
  context.beginPath();
  context.moveTo(levels[0], bottom);
  for (let i = 0; i < levels.length; i += 3) {
    context.lineTo(levels[i], levels[i + 2]);
    context.lineTo(levels[i + 1], levels[i + 2]);
  }
  context.lineTo(levels[levels.length - 2], bottom);
  context.fillStyle = theme.memory;
  context.fill();
  if (row.memory > 4) {
    context.fillStyle = theme.memoryEdge;
    for (let i = 0; i < levels.length; i += 3) {
      context.fillRect(levels[i], levels[i + 2] - 0.5, levels[i + 1] - levels[i], 1);
    }
  }
  const hasLimit = lane.limit !== null && lane.limit <= run.memoryScale;
  if (hasLimit && row.memory > 4) paintLimit(painter, view, y(lane.limit), run);
  context.globalAlpha = 1;
  if (!lane.memory.isKnown || row.memory < 8) return;
  context.fillStyle = theme.memoryEdge;
  context.beginPath();
  context.arc(view.x(lane.memory.peakTime), y(lane.memory.peakBytes), 2.2, 0, 2 * Math.PI);
  context.fill();
}

function paintLimit({ context, theme }, view, y, run) {
  context.setLineDash([4, 3]);
  context.lineWidth = 1;
  context.strokeStyle = theme.limit;
  context.beginPath();
  context.moveTo(Math.max(view.x(run.begin), GUTTER), y);
  context.lineTo(Math.min(view.x(run.end), view.width), y);
  context.stroke();
  context.setLineDash([]);
}
