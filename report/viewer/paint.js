// Drawing lanes: pure functions of (context, layout, view, theme). Nothing here listens or
// remembers. The context is a canvas's, or SvgContext, which answers to the same calls.

const FADED = 0.18;
const NARROW = 3;  // pixels; what is narrower is drawn as pixels, not as boxes

class Painter {
  constructor(context, theme) {
    this.context = context;
    this.theme = theme;
    this.scratches = [];  // canvases of a few lines, one for each strip of a frame
    this.scratchesUsed = 0;
  }

  // Everything in `height` pixels from view.scroll down. `marks`: {layer, filter, selected,
  // hovered, arrows}, each or none: layer fades what it does not keep, filter hides it.
  frame(layout, view, height, marks) {
    const { context, theme } = this;
    this.marks = marks;
    this.scratchesUsed = 0;
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
      for (const row of visible) this.row(row, view);
      for (const row of visible) this.outlines(row, view);
      if (marks.arrows) paintArrows(this, layout, view, marks.arrows);
    });
    this.names(visible);
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

  // ---- Around the lanes ----

  heading({ run, y }, view) {
    const { context, theme } = this;
    context.fillStyle = theme.ink;
    context.font = `600 13px ${theme.font}`;
    context.textAlign = "left";
    context.fillText(run.name, 18, y + 22);
    const after = 18 + context.measureText(run.name).width + 14;
    context.fillStyle = theme.quiet;
    context.font = `12px ${theme.font}`;
    const { makespan_ns: makespan, bubble_fraction: bubble } = run.report;
    context.fillText(`${readableTime(makespan)}, bubble ${readableShare(bubble)}`, after, y + 22);
    context.fillStyle = theme.rule;
    context.fillRect(18, y + 3, view.width - 36, 1);
  }

  ground(row, view) {
    const { context, theme } = this;
    const x = Math.max(view.x(0), GUTTER);
    const right = Math.min(view.x(row.run.report.makespan_ns), view.width);
    context.fillStyle = theme.idle;
    if (right > x) context.fillRect(x, row.y, right - x, row.laneHeight);
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
      const half = context.measureText(label).width / 2;
      if (x > GUTTER - 1 && x < view.width - EDGE + 6) {
        context.fillText(label, Math.min(x, view.width - half - 4), 16);
      }
      if (x > GUTTER - 1) context.fillRect(Math.round(x), AXIS - 5, 1, 4);
    }
    context.fillStyle = theme.rule;
    context.fillRect(0, AXIS - 1, view.width, 1);
  }

  // Rank names; where rows are thinner than text, only as many as fit.
  names(rows) {
    const pitch = rows.length > 1 ? rows[1].y - rows[0].y : Infinity;
    const every = [1, 2, 4, 8, 16, 32, 64, 128].find((n) => n * pitch >= 13) ?? 256;
    for (const row of rows) if (row.lane.rank % every === 0) this.name(row);
  }

  name(row) {
    const { context, theme } = this;
    const size = Math.max(9.5, Math.min(12, row.laneHeight - 2));
    const two = row.laneHeight >= 28;
    const middle = row.y + row.laneHeight / 2 + size * 0.36 - (two ? 7 : 0);
    const isMarked = [this.marks.selected, this.marks.hovered].some((mark) => mark?.row === row);
    context.textAlign = "right";
    context.font = `${isMarked ? 700 : 500} ${size}px ${theme.font}`;
    context.fillStyle = theme.ink;
    context.fillText(`rank ${row.lane.rank}`, GUTTER - 10, middle);
    context.font = `10.5px ${theme.font}`;
    context.fillStyle = theme.quiet;
    if (two) {
      const busy = row.lane.figures.busy_ns / Math.max(row.run.report.makespan_ns, 1);
      context.fillText(`${(100 * busy).toFixed(1)} % busy`, GUTTER - 10, middle + 14);
    }
    if (row.memory < 13) return;
    const peak = readableBytes(row.lane.memory.peakBytes);
    context.fillText(`peak ${peak}`, GUTTER - 10, row.memoryY + row.memory / 2 + 4);
  }

  // ---- Lanes ----

  row(row, view) {
    const { layer, filter } = this.marks;
    for (const strip of row.strips) {
      const boxes = filter ? filter.of(strip.boxes) : strip.boxes;
      this.isFading = Boolean(layer);
      this.strip(strip, boxes, view, layer ? FADED : 1);
      this.isFading = false;
      if (layer) this.strip(strip, layer.of(boxes), view, 1, 1.5);
    }
    if (row.memory > 1) paintMemory(this, row, view);
  }

  // `thinnest`: the least width of what is drawn, so that a few ops among a million are seen.
  strip(strip, boxes, view, alpha, thinnest = 0) {
    const { context } = this;
    context.globalAlpha = alpha * strip.alpha;
    // Fused pairs are two lines of pixels.
    const lines = new PixelLines(view.width, boxes.lane.hasPairs ? 2 : 1);
    const { scale } = view;
    sweep(boxes, view, strip.part === "wire" ? 1 : NARROW, {
      box: (i, x, width) => this.box(strip, boxes, i, x, width),
      dash: (i, x, width) => {
        for (let half = 0; half < lines.count; ++half) {
          lines.fill(half, x, x + width, boxes.colour(i, half));
        }
      },
      block: (pixel, i, j) => {
        for (let half = 0; half < lines.count; ++half) {
          const rgb = boxes.mean(i, j, half);
          const share = thinnest > 0 ? 1 : Math.min(Math.max(boxes.covered * scale, 0.3), 1);
          lines.set(half, pixel, rgb, share);
          if (thinnest > 1) lines.set(half, pixel + 1, rgb, share);
        }
      },
    });
    lines.draw(this, strip.y, strip.height);
    context.globalAlpha = 1;
  }

  box(strip, boxes, i, x, width) {
    const { lane } = boxes, instruction = boxes.index[i];
    const left = Math.max(x, GUTTER - 20), right = Math.min(x + width, this.width + 20);
    const drawn = right - left - (width > NARROW && strip.part === "compute" ? 1 : 0);
    const first = lane.opStart[instruction], ops = lane.opStart[instruction + 1] - first;
    if (strip.part === "wire" || ops < 2) {
      this.fill(lane.colour(instruction, 0), left, strip.y, drawn, strip.height,
        width > 8 && strip.part === "compute" ? 2.5 : 0);
      if (strip.part === "compute") this.label(lane, first, left, drawn, strip.y, strip.height);
      return;
    }
    const half = strip.height / 2;
    const names = [0, 1].map((k) => labelsOf(lane, first + k));
    const size = Math.min(12, half - 2);
    const fits = (text, k) => labelWidth(lane, first + k, text) * size <= drawn - 3;
    const level = names[0].findIndex((_, i) => names.every((each, k) => fits(each[i], k)));
    for (const k of [0, 1]) {
      const y = strip.y + k * half;
      const rgb = lane.colours.ofTemplate[lane.template[first + k]];
      this.fill(rgb, left, y, drawn, half - (k === 0 && half > 4 ? 0.5 : 0), 0);
      if (level >= 0) this.label(lane, first + k, left, drawn, y, half, names[k].slice(level));
    }
  }

  fill(rgb, x, y, width, height, radius) {
    const { context } = this;
    context.fillStyle = css(rgb);
    if (radius === 0 || height < 8) {
      context.fillRect(x, y, width, height);
      return;
    }
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    context.fill();
  }

  // The op as far as there is room: all of it, kind and microbatch, one over the other, the letter.
  label(lane, k, x, width, y, height, names = labelsOf(lane, k)) {
    if (width < 9 || height < 9 || this.isFading) return;
    const left = Math.max(x, GUTTER), right = Math.min(x + width, this.width - EDGE + 6);
    const room = right - left - 2, middle = (left + right) / 2 - 0.5;
    const rgb = lane.colours.ofTemplate[lane.template[k]];
    this.context.fillStyle = isLight(rgb) ? this.theme.onLight : this.theme.onDark;
    this.context.textAlign = "center";
    const size = Math.min(12, height - 2), letter = names[names.length - 1];
    const text = names.find((each) => labelWidth(lane, k, each) * size <= room) ?? letter;
    const number = String(lane.microbatch[k]);
    const small = Math.min(11, Math.floor(room / textWidth(number)));
    const fitting = Math.min(size, Math.floor((room + 1) / textWidth(text)));
    if (text === letter && height >= 26 && small >= 8) {
      this.text(letter, Math.min(fitting, 11), middle, y + height / 2 - 2);
      this.text(number, small, middle, y + height / 2 + 10);
    } else if (fitting >= 7) {
      this.text(text, fitting, middle, y + height / 2 + fitting * 0.36);
    }
  }
  text(text, size, x, y) {
    this.context.font = `500 ${size}px ${this.theme.font}`;
    this.context.fillText(text, x, y);
  }

  // A canvas's context not yet used in this frame: one that is drawn from and then changed would
  // have to be copied.
  scratch(width, height) {
    const at = this.scratchesUsed++;
    this.scratches[at] ??= document.createElement("canvas").getContext("2d");
    const { canvas } = this.scratches[at];
    const fits = canvas.width === width && canvas.height === height;
    if (!fits) Object.assign(canvas, { width, height });
    return this.scratches[at];
  }

  get width() {
    return this.context.paintWidth ?? this.context.canvas.clientWidth;
  }

  outlines(row, view) {
    for (const [mark, weight] of [[this.marks.hovered, 1.25], [this.marks.selected, 2]]) {
      if (mark?.row !== row) continue;
      const { context, theme } = this;
      const { begin, end } = row.lane, strip = mark.strip;
      const x = Math.max(view.x(begin[mark.instruction]), -10);
      const right = Math.min(view.x(end[mark.instruction]), view.width + 10);
      context.strokeStyle = theme.ink;
      context.lineWidth = weight;
      context.strokeRect(x - 0.75, strip.y - 0.75, Math.max(right - x, 1) + 0.5,
        strip.height + 1.5);
    }
  }
}

const DIGIT = 0.58;  // wide, in the size of the text

// About how wide a text is, in its size.
function textWidth(text) {
  return text.length * DIGIT + (text.includes("W") ? 0.38 : 0);
}

// About how wide a name of an op is with as many digits as any of its lane, in its size: so that
// boxes of one width are labelled alike.
function labelWidth(lane, k, name) {
  if (!/\d/.test(name)) return textWidth(name);
  const { stage } = lane.templates[lane.template[k]];
  lane.labelDigits ??= digitsOf(lane);
  return textWidth(name) + DIGIT * (lane.labelDigits - `${stage}${lane.microbatch[k]}`.length);
}
// Of the longest stage and the longest microbatch.
function digitsOf(lane) {
  let microbatch = 0;
  for (const each of lane.microbatch) microbatch = Math.max(microbatch, each);
  return `${microbatch}`.length + Math.max(...lane.colours.stages.map((stage) => `${stage}`.length));
}

// Names of an op for its box, the longest first. The arrow is the way its microbatch flows, where a
// rank holds both directions.
function labelsOf(lane, k) {
  const { token, stage, replica } = lane.templates[lane.template[k]];
  if (isOfStage(token)) return [opText({ token, stage, replica }), token, token.slice(0, 1)];
  const letter = token.length === 1 ? token : token.slice(0, 1) + token.slice(1, 3).toLowerCase();
  const microbatch = lane.microbatch[k];
  const way = lane.colours.hasDirections ? (directionOf(replica) === 1 ? "\u2191" : "\u2193") : "";
  const short = `${letter}${microbatch}`;
  return way === "" ? [opText({ token, stage, replica, microbatch }), short, letter]
    : [`${opText({ token, stage, replica, microbatch })} ${way}`, `${short}${way}`, short, letter];
}

// One or two lines of pixels, drawn as high as a strip together: what is too narrow for boxes.
class PixelLines {
  constructor(width, count) {
    this.width = Math.ceil(width);
    this.count = count;
    this.data = null;
  }
  set(line, pixel, rgb, alpha) {
    if (pixel < 0 || pixel >= this.width) return;
    this.data ??= new Uint32Array(this.width * this.count);
    this.data[line * this.width + pixel] =
      ((alpha * 255) << 24) | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16);
  }
  fill(line, from, to, rgb) {
    const first = Math.max(Math.round(from), 0);
    const end = Math.min(Math.max(Math.round(to), first + 1), this.width);
    for (let pixel = first; pixel < end; ++pixel) this.set(line, pixel, rgb, 1);
  }
  draw(painter, y, height) {
    if (!this.data) return;
    const { context } = painter, { width, count } = this;
    if (context.drawPixels) {
      for (let line = 0; line < count; ++line) {
        context.drawPixels(this.data.subarray(line * width, (line + 1) * width),
          y + (line * height) / count, height / count);
      }
      return;
    }
    const scratch = painter.scratch(width, count);
    const bytes = new Uint8ClampedArray(this.data.buffer);
    scratch.putImageData(new ImageData(bytes, width, count), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(scratch.canvas, 0, 0, width, count, 0, y, width, height);
  }
}
