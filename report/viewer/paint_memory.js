// The memory of a rank under its lane: what it holds, its peak, its limit.

function paintMemory(painter, row, view) {
  const { context, theme } = painter;
  const { lane, run } = row;
  const bottom = row.memoryY + row.memory;
  const y = (bytes) => bottom - (bytes / run.mostMemory) * (row.memory - 1);
  const begin = Math.max(view.from, run.begin), end = Math.min(view.to, run.end);
  if (end <= begin) return;
  const points = [];
  lane.memory.trace(begin, end, 1 / view.scale, (time, bytes) =>
    points.push(view.x(time), y(bytes)));
  const trace = () => {
    context.beginPath();
    context.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
  };
  context.globalAlpha = painter.marks.layer ? 0.5 : 1;
  trace();
  context.lineTo(view.x(end), bottom);
  context.lineTo(view.x(begin), bottom);
  context.fillStyle = theme.memory;
  context.fill();
  if (row.memory > 4) {
    trace();
    context.strokeStyle = theme.memoryEdge;
    context.lineWidth = 1;
    context.stroke();
  }
  if (lane.limit !== null && row.memory > 4) paintLimit(painter, view, y(lane.limit), run);
  context.globalAlpha = 1;
  if (!lane.memory.isKnown || row.memory < 8) return;
  context.fillStyle = theme.memoryEdge;
  context.beginPath();
  context.arc(view.x(lane.memory.peakTime), y(lane.memory.peakBytes), 2.2, 0, 2 * Math.PI);
  context.fill();
}

function paintLimit({ context, theme }, view, y, run) {
  context.setLineDash([4, 3]);
  context.strokeStyle = theme.limit;
  context.beginPath();
  context.moveTo(Math.max(view.x(run.begin), GUTTER), y);
  context.lineTo(Math.min(view.x(run.end), view.width), y);
  context.stroke();
  context.setLineDash([]);
}
