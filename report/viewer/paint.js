// Drawing: pure functions of (canvas, layout, view, theme). Nothing here listens or remembers.

const GUTTER = 92;   // rank names, left
const AXIS = 26;     // time, top
const EDGE = 12;     // right of the last instant

// Where every lane lies: the rows of all runs under one another, as tall as the window allows.
// `shown` says whether memory and transfers are wanted.
function layOut(runs, height, shown) {
  const lanes = runs.reduce((sum, run) => sum + run.lanes.length, 0);
  const heading = runs.length > 1 ? 34 : 0;
  const free = (height - AXIS - 14 - heading * runs.length) / Math.max(lanes, 1);
  const hasWires = shown.transfers && runs.some((run) => run.hasTransfers);
  const hasMemory = shown.memory && runs.some((run) => run.hasMemory);
  const parts = 1.17 + (hasWires ? 0.32 : 0) + (hasMemory ? 0.6 : 0);
  const laneHeight = Math.max(13, Math.min(54, Math.floor(free / parts)));
  const rows = [], headings = [];
  let y = 6;
  for (const run of runs) {
    if (heading > 0) headings.push({ run, y });
    y += heading;
    const part = (shown, share, least, most) =>
      shown ? Math.max(least, Math.min(most, Math.round(laneHeight * share))) : 0;
    const wire = part(hasWires && run.hasTransfers, 0.11, 2, 4);
    const memory = part(hasMemory && run.hasMemory, 0.55, 8, 26);
    for (const lane of run.lanes) {
      const row = { run, lane, y, laneHeight, wire };
      row.wireY = y + laneHeight + 1;
      row.memoryY = row.wireY + (wire > 0 ? 2 * wire + 2 : 0);
      row.memory = memory;
      row.bottom = row.memoryY + (memory > 0 ? memory + 1 : 0);
      rows.push(row);
      y = row.bottom + Math.max(2, Math.round(laneHeight / 7));
    }
  }
  return { rows, headings, height: y + 8 };
}

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

// Calls box(i, x, width) for what is wide enough to see, block(x, width, colour) for what is not:
// neighbours within a pixel in one colour, weighted by their widths.
function sweep(boxes, view, least, box, block) {
  let x0 = 0, x1 = -Infinity, weight = 0, colour = 0;
  const flush = () => {
    if (x1 > -Infinity) block(x0, Math.max(x1 - x0, 0.4), colour);
    x1 = -Infinity;
    weight = 0;
  };
  for (let i = boxes.from(view.from); i < boxes.count && boxes.begin[i] <= view.to; ++i) {
    const x = view.x(boxes.begin[i]), width = (boxes.end[i] - boxes.begin[i]) * view.scale;
    if (width >= least) {
      flush();
      box(i, x, width);
      continue;
    }
    if (x1 > -Infinity && (x - x1 > least || x1 - x0 > least)) flush();
    if (x1 === -Infinity) x0 = x;
    const own = boxes.second[i] < 0 ? boxes.first[i] : mixed(boxes.first[i], boxes.second[i], 0.5);
    weight += width;
    colour = weight > width ? mixed(colour, own, width / weight) : own;
    x1 = Math.max(x1, x + width);
  }
  flush();
}

class Painter {
  constructor(context, theme) {
    this.context = context;
    this.theme = theme;
  }

  frame(layout, view, height, focus) {
    const { context, theme } = this;
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, view.width, height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, view.width, height - AXIS);
    context.clip();
    context.translate(0, AXIS - view.scroll);
    for (const heading of layout.headings) this.heading(heading, view);
    const visible = layout.rows.filter(
      (row) => row.bottom >= view.scroll && row.y <= view.scroll + height - AXIS);
    this.insideTime(view, view.scroll, height, () => {
      for (const row of visible) this.ground(row, view);
      this.grid(view, view.scroll, Math.min(view.scroll + height, layout.height - 8));
      for (const row of visible) this.row(row, view, focus);
    });
    for (const row of visible) this.name(row, focus);
    context.restore();
    this.axis(view);
  }

  insideTime(view, top, height, draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, view.width - GUTTER - EDGE + 6, height);
    context.clip();
    draw();
    context.restore();
  }

  heading({ run, y }, view) {
    const { context, theme } = this;
    context.fillStyle = theme.ink;
    context.font = `600 13px ${theme.font}`;
    context.textAlign = "left";
    context.fillText(run.name, 14, y + 21);
    const after = 14 + context.measureText(run.name).width + 14;
    context.fillStyle = theme.quiet;
    context.font = `12px ${theme.font}`;
    const { makespan_ns: makespan, bubble_fraction: bubble } = run.report;
    context.fillText(`${readableTime(makespan)}, bubble ${readableShare(bubble)}`, after, y + 21);
    context.fillStyle = theme.rule;
    context.fillRect(14, y + 4, view.width - 28, 1);
  }

  ground(row, view) {
    const { context, theme } = this;
    const x = view.x(0), width = view.x(row.run.report.makespan_ns) - x;
    context.fillStyle = theme.idle;
    context.fillRect(x, row.y, width, row.laneHeight);
  }

  grid(view, top, bottom) {
    const { context, theme } = this;
    context.fillStyle = theme.grid;
    for (const { at } of ticksOf(view)) {
      context.fillRect(Math.round(view.x(at)), top, 1, bottom - top);
    }
  }

  axis(view) {
    const { context, theme } = this;
    context.fillStyle = theme.quiet;
    context.font = `11px ${theme.font}`;
    context.textAlign = "center";
    for (const { at, label } of ticksOf(view)) {
      const x = view.x(at);
      if (x > GUTTER - 1 && x < view.width - EDGE) context.fillText(label, x, 16);
      context.fillRect(Math.round(x), AXIS - 5, 1, 4);
    }
    context.fillStyle = theme.rule;
    context.fillRect(0, AXIS - 1, view.width, 1);
  }

  name(row, focus) {
    const { context, theme } = this;
    const size = Math.min(12, row.laneHeight - 1);
    const two = row.laneHeight >= 28;
    const middle = row.y + row.laneHeight / 2 + size * 0.36 - (two ? 6 : 0);
    context.textAlign = "right";
    context.font = `${focus?.row === row ? 700 : 500} ${size}px ${theme.font}`;
    context.fillStyle = theme.ink;
    context.fillText(`rank ${row.lane.rank}`, GUTTER - 10, middle);
    context.font = `10px ${theme.font}`;
    context.fillStyle = theme.quiet;
    if (two) {
      const busy = row.lane.figures.busy_ns / Math.max(row.run.report.makespan_ns, 1);
      context.fillText(`${(100 * busy).toFixed(1)} % busy`, GUTTER - 10, middle + 14);
    }
    if (row.memory < 13) return;
    const y = row.memoryY + row.memory / 2 + 4;
    context.fillText(readableBytes(row.lane.peakBytes), GUTTER - 10, y);
  }

  row(row, view, focus) {
    this.compute(row, view, focus);
    if (row.wire > 0) {
      this.wire(row.lane.leaving, row.wireY, row.wire, 1, view);
      this.wire(row.lane.arriving, row.wireY + row.wire, row.wire, 0.5, view);
    }
    if (row.memory > 0) this.memory(row, view);
  }

  compute(row, view, focus) {
    const { context } = this;
    const boxes = row.lane.compute;
    const faded = (i) => focus && focus.run === row.run && !isFocused(boxes, i, focus);
    sweep(boxes, view, 1, (i, x, width) => {
      context.globalAlpha = faded(i) ? 0.22 : 1;
      this.box(row, boxes, i, x, width);
    }, (x, width, colour) => {
      context.globalAlpha = focus && focus.run === row.run ? 0.22 : 1;
      context.fillStyle = css(colour);
      context.fillRect(x, row.y, width, row.laneHeight);
    });
    context.globalAlpha = 1;
    if (focus?.row === row && focus.index >= 0) this.outline(row, boxes, focus.index, view);
  }

  box(row, boxes, i, x, width) {
    const { context } = this;
    const drawn = width > 3 ? width - 1 : width;
    if (boxes.second[i] < 0) {
      context.fillStyle = css(boxes.first[i]);
      context.beginPath();
      context.roundRect(x, row.y, drawn, row.laneHeight, width > 8 ? 2.5 : 0);
      context.fill();
      this.label(boxes, i, boxes.first[i], boxes.microbatch[i], x, drawn, row.y, row.laneHeight);
      return;
    }
    const half = row.laneHeight / 2;
    context.fillStyle = css(boxes.first[i]);
    context.fillRect(x, row.y, drawn, half - 0.5);
    context.fillStyle = css(boxes.second[i]);
    context.fillRect(x, row.y + half, drawn, half);
    this.label(boxes, -1, boxes.first[i], boxes.microbatch[i], x, drawn, row.y, half);
    this.label(boxes, -1, boxes.second[i], boxes.secondMicrobatch[i], x, drawn, row.y + half, half);
  }

  // The microbatch; where there is room the whole op.
  label(boxes, i, colour, microbatch, x, width, y, height) {
    const { context, theme } = this;
    if (width < 8 || height < 10 || microbatch < 0) return;
    const left = Math.max(x, GUTTER), right = Math.min(x + width, context.canvas.clientWidth);
    const text = i >= 0 && width > 64 ? boxes.rows[i][TEXT] : String(microbatch);
    const size = Math.min(12, height - 2, (right - left - 2) / (text.length * 0.57));
    if (size < 7.5) return;
    context.fillStyle = isLight(colour) ? theme.onLight : theme.onDark;
    context.font = `500 ${size.toFixed(1)}px ${theme.font}`;
    context.textAlign = "center";
    context.fillText(text, (left + right) / 2, y + height / 2 + size * 0.36);
  }

  outline(row, boxes, i, view) {
    const { context, theme } = this;
    const x = view.x(boxes.begin[i]), width = view.x(boxes.end[i]) - x;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.5;
    context.strokeRect(x - 0.75, row.y - 0.75, Math.max(width, 1) + 0.5, row.laneHeight + 1.5);
  }

  wire(boxes, y, height, alpha, view) {
    const { context } = this;
    context.globalAlpha = alpha;
    const bar = (x, width, colour) => {
      context.fillStyle = css(colour);
      context.fillRect(x, y, Math.max(width, 0.5), height);
    };
    sweep(boxes, view, 1, (i, x, width) => bar(x, width, boxes.first[i]), bar);
    context.globalAlpha = 1;
  }

  memory(row, view) {
    const { context, theme } = this;
    const { lane, run } = row;
    const bottom = row.memoryY + row.memory;
    const y = (bytes) => bottom - (bytes / run.mostMemory) * (row.memory - 1);
    const [edge, area] = this.memoryPaths(lane, run, view, y, bottom);
    context.fillStyle = theme.memory;
    context.fill(area);
    context.strokeStyle = theme.memoryEdge;
    context.lineWidth = 1;
    context.stroke(edge);
    if (lane.limit !== null) {
      context.setLineDash([4, 3]);
      context.globalAlpha = row.memory < 12 ? 0.6 : 1;
      context.strokeStyle = theme.limit;
      context.beginPath();
      context.moveTo(view.x(run.begin), y(lane.limit));
      context.lineTo(view.x(run.end), y(lane.limit));
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
    if (lane.peakBytes === 0) return;
    context.fillStyle = theme.memoryEdge;
    context.beginPath();
    context.arc(view.x(lane.memoryAt[lane.peak]), y(lane.peakBytes), 2.2, 0, 2 * Math.PI);
    context.fill();
  }

  // The curve and the area under it; what changes within a pixel is a spike to its maximum.
  memoryPaths(lane, run, view, y, bottom) {
    const edge = new Path2D();
    const begin = Math.max(view.from, run.begin), end = Math.min(view.to, run.end);
    let column = view.x(begin), held = lane.heldAt(begin), most = held;
    edge.moveTo(column, y(held));
    const flush = (x) => {
      edge.lineTo(column, y(most));
      if (held < most) edge.lineTo(column, y(held));
      edge.lineTo(x, y(held));
    };
    for (let i = lowerBound(lane.memoryAt, begin); i < lane.held.length; ++i) {
      if (lane.memoryAt[i] > end) break;
      const x = view.x(lane.memoryAt[i]);
      if (x - column >= 1) {
        flush(x);
        column = x;
        most = 0;
      }
      held = lane.held[i];
      most = Math.max(most, held);
    }
    flush(view.x(end));
    const area = new Path2D(edge);
    area.lineTo(view.x(end), bottom);
    area.lineTo(view.x(begin), bottom);
    return [edge, area];
  }

  // All lanes of all runs in a few pixels each, over their whole time.
  overview(rows, view, height) {
    const { context, theme } = this;
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, view.width, height);
    const each = height / rows.length;
    rows.forEach((row, i) => {
      const paint = (x, width, colour) => {
        context.fillStyle = css(colour);
        context.fillRect(x, i * each, width, each > 3 ? each - 1 : each);
      };
      const boxes = row.lane.compute;
      paint(view.x(0), view.x(row.run.report.makespan_ns) - view.x(0), theme.idleColour);
      sweep(boxes, view, 1, (b, x, width) => paint(x, width, boxes.first[b]), paint);
    });
  }
}

function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Does box i belong to the microbatch in focus?
function isFocused(boxes, i, focus) {
  return focus.microbatches.includes(boxes.microbatch[i]) ||
    (boxes.secondMicrobatch[i] >= 0 && focus.microbatches.includes(boxes.secondMicrobatch[i]));
}
