// Arrows from what the selected op waited for, and to what waits for it.

// `arrows`: {run, into: [[from, to]], out: likewise}, nodes of the run's graph.
function paintArrows(painter, layout, view, { run, into, out }) {
  const { theme } = painter;
  const { graph } = run;
  const rows = new Map(
    layout.rows.filter((row) => row.run === run).map((row) => [row.lane.rank, row]));
  const arrow = ([from, to], colour) => {
    const source = rows.get(graph.rank(from)), target = rows.get(graph.rank(to));
    if (!source || !target) return;
    const down = target.y > source.y;
    const same = source === target;
    const y = (row, isSource) => (same ? row.y : down === isSource
      ? row.y + row.laneHeight : row.y);
    curve(painter.context, colour, view.x(graph.end[from]), y(source, true),
      view.x(graph.begin[to]), y(target, false), same ? -1 : down ? 1 : -1, same);
  };
  for (const pair of into) arrow(pair, theme.arrowIn);
  for (const pair of out) arrow(pair, theme.arrowOut);
}

function curve(context, colour, x0, y0, x1, y1, side, same) {
  const bend = same ? 12 : Math.max(8, Math.abs(y1 - y0) * 0.4);
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 1.75;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, y0 + side * bend, x1, y1 - (same ? 1 : side) * bend, x1, y1);
  context.stroke();
  const tip = same ? 1 : side;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 3.5, y1 - tip * 7);
  context.lineTo(x1 + 3.5, y1 - tip * 7);
  context.fill();
}
