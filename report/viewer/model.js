// The runs of the page as typed columns: what is drawn and searched stays in flat arrays, what a
// hover shows is read from the rows of the timeline when it is asked for.

const OP = /^(~?)(\d+)([A-Z_]+?)(\d*)$/;
const KINDS = {
  F: "forward", B: "backward", I: "input gradient", W: "weight gradient", RECOMPUTE: "recompute",
  OFFLOAD: "offload", RELOAD: "reload", SEND_F: "send activation", RECV_F: "receive activation",
  SEND_B: "send gradient", RECV_B: "receive gradient", UNSHARD: "unshard", RESHARD: "reshard",
  REDUCE_GRAD: "reduce gradients",
};
const [STREAM, KIND, TEXT, BEGIN, END, BYTES] = [0, 1, 2, 3, 4, 5];  // columns of a row
const [RUN, TRANSFER] = [0, 1];                                     // kinds of a row

function parseOp(text) {
  const [, tilde, stage, token, microbatch] = OP.exec(text) ?? [];
  if (token === undefined) return null;
  return {
    text, token, stage: Number(stage), replica: tilde ? 1 : 0,
    microbatch: microbatch === "" ? null : Number(microbatch),
  };
}

const opsOf = (row) => (row[TEXT] === "" ? [] : row[TEXT].split(";").map(parseOp));

function mixed(a, b, share) {
  const channel = (shift) => {
    const from = (a >> shift) & 255, to = (b >> shift) & 255;
    return Math.round(from + share * (to - from)) << shift;
  };
  return channel(16) | channel(8) | channel(0);
}
const css = (rgb) => `#${rgb.toString(16).padStart(6, "0")}`;
const isLight = (rgb) =>
  0.299 * (rgb >> 16) + 0.587 * ((rgb >> 8) & 255) + 0.114 * (rgb & 255) > 140;

// The colours of one rank: hue by kind, shade by chunk, or by direction where it holds replicas.
class LaneColours {
  constructor(palette, ops) {
    this.palette = palette;
    this.stages = [...new Set(ops.map((op) => op.stage))].sort((a, b) => a - b);
    this.twoReplicas = ops.some((op) => op.replica === 1);
  }
  get hasChunks() {
    return !this.twoReplicas && this.stages.length > 1;
  }
  chunk(op) {
    return this.stages.indexOf(op.stage);
  }
  of(op) {
    const base = parseInt((this.palette[op.token] ?? this.palette[""]).slice(1), 16);
    const last = this.stages.length - 1;
    const shade = this.twoReplicas ? op.replica : last > 0 ? this.chunk(op) / last : 0;
    return mixed(base, 0xffffff, 0.5 * Math.max(0, shade));
  }
}

// Boxes sorted by begin. `second` is -1 where a box is no fused pair.
class Boxes {
  constructor(rows, colourOf, origin) {
    const ordered = [...rows].sort((a, b) => a[BEGIN] - b[BEGIN]);
    this.count = ordered.length;
    this.rows = ordered;
    this.begin = Float64Array.from(ordered, (row) => row[BEGIN] - origin);
    this.end = Float64Array.from(ordered, (row) => row[END] - origin);
    this.first = new Int32Array(this.count);
    this.second = new Int32Array(this.count).fill(-1);
    this.microbatch = new Int32Array(this.count).fill(-1);
    this.secondMicrobatch = new Int32Array(this.count).fill(-1);
    ordered.forEach((row, i) => {
      const [op, paired] = opsOf(row);
      if (!op) return;
      this.first[i] = colourOf(op);
      this.microbatch[i] = op.microbatch ?? -1;
      if (!paired || row[KIND] !== RUN) return;
      this.second[i] = colourOf(paired);
      this.secondMicrobatch[i] = paired.microbatch ?? -1;
    });
    // The latest end so far: lets a search by begin find a long box that began earlier.
    this.reach = new Float64Array(this.count);
    let reach = -Infinity;
    for (let i = 0; i < this.count; ++i) this.reach[i] = reach = Math.max(reach, this.end[i]);
  }
  // The first box that may still be running at `time`.
  from(time) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // The box running at `time`, or -1.
  at(time) {
    for (let i = this.from(time); i < this.count && this.begin[i] <= time; ++i) {
      if (time < this.end[i]) return i;
    }
    return -1;
  }
}

class Lane {
  constructor(data, palette, origin, rank, figures) {
    this.rank = rank;
    this.figures = figures;
    this.streams = data.streams;
    this.limit = data.memory_limit_bytes ?? null;
    const compute = (row) => this.streams[row[STREAM]].role.endsWith("compute");
    const ran = data.instructions.filter((row) => row[BEGIN] >= 0);
    const runs = ran.filter((row) => row[KIND] === RUN && row[TEXT] !== "" && compute(row));
    this.colours = new LaneColours(palette, runs.flatMap(opsOf));
    const colourOf = (op) => this.colours.of(op);
    const neutral = parseInt(palette[""].slice(1), 16);
    this.compute = new Boxes(runs, colourOf, origin);
    const sends = (row) => row[KIND] !== TRANSFER || row[TEXT].includes("SEND");
    const others = ran.filter((row) => row[KIND] !== RUN || !compute(row));
    this.leaving = new Boxes(others.filter(sends), (op) => (op ? colourOf(op) : neutral), origin);
    this.arriving = new Boxes(others.filter((row) => !sends(row)), colourOf, origin);
    this.memoryAt = Float64Array.from(data.memory, (sample) => sample[0] - origin);
    this.held = Float64Array.from(data.memory, (sample) => sample[1]);
    this.peak = this.held.reduce((best, value, i) => (value > this.held[best] ? i : best), 0);
  }
  // Transfers that take no time have nothing to show.
  get hasTransfers() {
    const lasts = ({ begin, end }) => begin.some((at, i) => end[i] > at);
    return lasts(this.leaving) || lasts(this.arriving);
  }
  get peakBytes() {
    return this.held.length > 0 ? this.held[this.peak] : 0;
  }
  // Bytes held at `time`.
  heldAt(time) {
    let low = 0, high = this.memoryAt.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.memoryAt[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : this.held[low - 1];
  }
}

class Run {
  constructor({ name, timeline }, palette) {
    this.name = name;
    this.report = timeline.report;
    let begin = Infinity, end = -Infinity, origin = Infinity;
    for (const { instructions } of timeline.ranks) {
      for (const row of instructions) {
        if (row[BEGIN] < 0) continue;
        begin = Math.min(begin, row[BEGIN]);
        end = Math.max(end, row[END]);
        if (row[KIND] === RUN) origin = Math.min(origin, row[BEGIN]);
      }
    }
    this.origin = Number.isFinite(origin) ? origin : 0;
    this.begin = Number.isFinite(begin) ? begin - this.origin : 0;
    this.end = Number.isFinite(end) ? end - this.origin : 1;
    this.lanes = timeline.ranks.map(
      (lane, r) => new Lane(lane, palette, this.origin, r, this.report.per_rank[r]));
    this.hasTransfers = this.lanes.some((lane) => lane.hasTransfers);
    this.hasMemory = this.lanes.some((lane) => lane.peakBytes > 0);
    this.mostMemory = Math.max(
      1, ...this.lanes.map((lane) => Math.max(lane.peakBytes, lane.limit ?? 0)));
  }
}

// ---- Figures as people read them ----------------------------------------------------------------

function digits(value) {
  const size = Math.abs(value);
  const decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
  return String(Number(value.toFixed(decimals)));
}
function scaled(value, step, units) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= step) {
    value /= step;
    ++unit;
  }
  return `${digits(value)} ${units[unit]}`;
}
const readableTime = (ns) => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
const readableBytes = (bytes) => scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const readableShare = (share) => `${(100 * share).toFixed(2)} %`;
