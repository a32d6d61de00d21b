// Where everything lies: rows of lanes, and the time axis over them.

const GUTTER = 104;  // rank names, left
const AXIS = 26;     // time, top
const EDGE = 14;     // right of the last instant

// The rows of all runs under one another, as tall as the window allows; `shown` says whether memory
// and transfers are wanted, and whether all ranks must fit (compact). A row is {run, lane, y,
// bottom, laneHeight, strips, memoryY, memory}, a strip {boxes, y, height, part, alpha}.
function layOut(runs, height, shown) {
  const lanes = runs.reduce((sum, run) => sum + run.lanes.length, 0);
  const heading = runs.length > 1 ? 34 : 0;
  const free = (height - AXIS - 16 - heading * runs.length) / Math.max(lanes, 1);
  // Below this, lanes alone can be told apart.
  const isThin = shown.compact && free < 12;
  const hasWires = shown.transfers && !isThin && runs.some((run) => run.hasTransfers);
  const hasMemory = shown.memory && !isThin && runs.some((run) => run.hasMemory);
  const parts = (isThin ? 1 : 1.17) + (hasWires ? 0.32 : 0) + (hasMemory ? 0.6 : 0);
  const fitting = Math.min(54, free / parts);
  const laneHeight = shown.compact ? fitting : Math.max(14, Math.floor(fitting));
  const rows = [], headings = [];
  let y = 6;
  for (const run of runs) {
    if (heading > 0) headings.push({ run, y });
    y += heading;
    const part = (wanted, share, low, high) =>
      wanted ? Math.max(shown.compact ? 0 : low, Math.min(high, laneHeight * share)) : 0;
    const whole = (size) => (shown.compact ? size : Math.round(size));
    const wire = whole(part(hasWires && run.hasTransfers, 0.11, 2, 4));
    const memory = whole(part(hasMemory && run.hasMemory, 0.55, 8, 26));
    for (const lane of run.lanes) {
      const row = { run, lane, y, laneHeight, memory };
      row.strips = stripsOf(lane, y, laneHeight, wire);
      const under = y + laneHeight + (wire > 0 ? Math.min(1, wire / 2) + 2 * wire : 0);
      row.memoryY = under + (memory > 0 ? Math.min(2, memory / 4) : 0);
      row.bottom = memory > 0 ? row.memoryY + memory + Math.min(1, memory / 8) : under;
      rows.push(row);
      const gap = isThin ? 0 : laneHeight / 7;
      y = row.bottom + (shown.compact ? gap : Math.max(2, Math.round(gap)));
    }
  }
  return { rows, headings, height: y + 8 };
}

function stripsOf(lane, y, laneHeight, wire) {
  const each = laneHeight / Math.max(lane.tracks.length, 1);
  const strips = lane.tracks.map(
    (boxes, i) => ({ boxes, y: y + i * each, height: each, part: "compute", alpha: 1 }));
  if (wire > 0) {
    const top = y + laneHeight + Math.min(1, wire / 2);
    strips.push({ boxes: lane.leaving, y: top, height: wire, part: "wire", alpha: 1 });
    strips.push({ boxes: lane.arriving, y: top + wire, height: wire, part: "wire", alpha: 0.5 });
  }
  return strips;
}

// The part of time that is shown, and how far down.
class View {
  constructor(from, to, width) {
    Object.assign(this, { from, to, width, scroll: 0 });
  }
  get scale() {
    return (this.width - GUTTER - EDGE) / (this.to - this.from);
  }
  x(time) {
    return GUTTER + (time - this.from) * this.scale;
  }
  time(x) {
    return this.from + (x - GUTTER) / this.scale;
  }
}

// Round instants for the axis, about one every `spacing` pixels.
function ticksOf(view, spacing = 110) {
  const least = Math.max(spacing / view.scale, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= least * 0.999) ?? 10);
  const extent = Math.max(Math.abs(view.from), Math.abs(view.to));
  const [name, unit] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]].find(
    ([, size]) => extent >= size) ?? ["ns", 1];
  const decimals = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  const ticks = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    ticks.push({ at, label: `${(at / unit).toFixed(decimals)} ${name}` });
  }
  return ticks;
}
