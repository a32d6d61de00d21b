// The runs of the page: lanes of typed columns, as columns.js unpacks them, with times counted from
// the first op of the run.

const KINDS = {
  F: "forward", B: "backward", I: "input gradient", W: "weight gradient", RECOMPUTE: "recompute",
  OFFLOAD: "offload", RELOAD: "reload", SEND_F: "send activation", RECV_F: "receive activation",
  SEND_B: "send gradient", RECV_B: "receive gradient", UNSHARD: "unshard", RESHARD: "reshard",
  REDUCE_GRAD: "reduce gradients",
  NORM: "norm of gradients",
  STEP: "optimizer step",
  VALIDATE: "validation of step",
};
const [RUN, TRANSFER, , STEP_END] = [0, 1, 2, 3];
// What the makespan counts.
const STEP_WORK = new Set(["F", "B", "I", "W"]);

// Ops as schedule files write them.
const opText = ({ token, stage, replica, microbatch }) =>
  `${replica > 1 ? replica : ""}${replica > 0 ? "~" : ""}${stage}${token}${microbatch ?? ""}`;
// Is it of a whole stage, and no microbatch?
const isOfStage = (token) => /SHARD|REDUCE|NORM|STEP|VALIDATE/.test(token);
// Of a bidirectional placement an even replica flows down the ranks, the next one up.
const directionOf = (replica) => replica % 2;

class Lane {
  constructor(columns, { streams, memory_limit_bytes }, rank, run) {
    Object.assign(this, columns);
    this.rank = rank;
    this.run = run;
    this.streams = streams;
    this.isComputeStream = streams.map(({ role }) => role.endsWith("compute"));
    this.hasPairs = false;  // two ops in one instruction
    this.limit = memory_limit_bytes ?? null;
    this.figures = run.report.per_rank[rank];
  }

  // ---- One instruction ----

  hasRun(i) {
    return this.end[i] >= this.begin[i] && this.begin[i] > -Infinity;
  }
  isCompute(i) {
    return this.kind[i] === RUN && this.opStart[i + 1] > this.opStart[i] &&
      this.isComputeStream[this.stream[i]];
  }
  // {token, stage, replica, microbatch, text, colour} of each op of an instruction.
  ops(i) {
    const list = [];
    for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) {
      const { token, stage, replica } = this.templates[this.template[k]];
      const microbatch = isOfStage(token) ? null : this.microbatch[k];
      const op = { token, stage, replica, microbatch };
      list.push({ ...op, text: opText(op), colour: this.colours.ofTemplate[this.template[k]] });
    }
    return list;
  }
  text(i) {
    return this.ops(i).map((op) => op.text).join(";");
  }
  // Of a fused pair, the colour of its forward (half 0) or its backward (half 1).
  colour(i, half) {
    const first = this.opStart[i], ops = this.opStart[i + 1] - first;
    if (ops === 0) return this.neutral;
    return this.colours.ofTemplate[this.template[first + (ops === 2 ? half : 0)]];
  }
  // Is some op of the instruction of this microbatch?
  concerns(i, microbatch) {
    for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) {
      if (this.microbatch[k] === microbatch) return true;
    }
    return false;
  }

  // ---- Preparation ----

  shiftTimes(origin) {
    for (let i = 0; i < this.count; ++i) {
      const ran = this.begin[i] >= 0;
      this.begin[i] = ran ? this.begin[i] - origin : -Infinity;
      this.end[i] = ran ? this.end[i] - origin : -Infinity;
    }
    for (let i = 0; i < this.memoryAt.length; ++i) this.memoryAt[i] -= origin;
  }

  // Sorts the instructions into strips: compute by stream, what leaves, what arrives.
  arrange(palette) {
    const [COMPUTE, LEAVING, ARRIVING] = [1, 2, 3];
    const sort = new Uint8Array(this.count), sizes = new Int32Array(4 * 256);
    const computed = new Uint8Array(this.templates.length);
    this.sends = this.templates.map(({ token }) => token.startsWith("SEND"));
    for (let i = 0; i < this.count; ++i) {
      if (!this.hasRun(i) || this.kind[i] === STEP_END) continue;
      sort[i] = this.isCompute(i) ? COMPUTE : this.isArrival(i) ? ARRIVING : LEAVING;
      ++sizes[256 * sort[i] + this.stream[i]];
      if (sort[i] !== COMPUTE) continue;
      for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) computed[this.template[k]] = 1;
      this.hasPairs ||= this.opStart[i + 1] - this.opStart[i] === 2;
    }
    const lists = this.streamLists(sort, sizes);
    const boxesOf = (kind) => new Boxes(this, mergedByBegin(lists[kind], this.begin));
    this.neutral = rgbOf(palette[""]);
    this.colours = new LaneColours(this.templates, computed, palette);
    this.computed = computed;
    this.compute = boxesOf(COMPUTE);
    this.tracks = lists[COMPUTE].length === 1
      ? [this.compute] : lists[COMPUTE].map((list) => new Boxes(this, list));
    this.leaving = boxesOf(LEAVING);
    this.arriving = boxesOf(ARRIVING);
    this.memory = new Curve(this.memoryAt, this.held);
  }
  // [sort]: for each stream that has some, its instructions of that sort by begin.
  streamLists(sort, sizes) {
    const lists = Array.from(sizes, (size) => new Int32Array(size)), filled = new Int32Array(1024);
    for (let i = 0; i < this.count; ++i) {
      const key = 256 * sort[i] + this.stream[i];
      if (sort[i] > 0) lists[key][filled[key]++] = i;
    }
    const { begin } = this;
    for (const list of lists) {
      let isSorted = true;
      for (let k = 1; k < list.length; ++k) isSorted &&= begin[list[k - 1]] <= begin[list[k]];
      if (!isSorted) list.sort((a, b) => begin[a] - begin[b] || a - b);
    }
    return [0, 1, 2, 3].map((kind) =>
      lists.slice(256 * kind, 256 * kind + 256).filter((list) => list.length > 0));
  }
  isArrival(i) {
    if (this.kind[i] !== TRANSFER) return false;
    for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) {
      if (this.sends[this.template[k]]) return false;
    }
    return true;
  }
  // Transfers that take no time have nothing to show.
  get hasTransfers() {
    return [this.leaving, this.arriving].some(
      ({ begin, end }) => begin.some((at, i) => end[i] > at));
  }
}

class Run {
  constructor({ name, report, ranks }, reader, { kinds, palette }) {
    this.name = name;
    this.report = report;
    this.lanes = ranks.map((data, rank) => new Lane(readColumns(reader, kinds), data, rank, this));
    this.origin = this.firstOp();
    for (const lane of this.lanes) {
      lane.shiftTimes(this.origin);
      lane.arrange(palette);
    }
    [this.begin, this.end] = this.extent();
    this.hasMemory = this.lanes.some(({ memory }) => memory.isKnown);
    this.hasTransfers = this.lanes.some((lane) => lane.hasTransfers);
    this.memoryScale = this.scaleMemory();
  }
  // The full height of every memory strip, so that ranks compare. A limit far above all curves
  // would flatten them, so it is left out.
  scaleMemory() {
    const peak = this.lanes.reduce((most, { memory }) => Math.max(most, memory.peakBytes), 1);
    const limits = this.lanes.map(({ limit }) => limit ?? 0);
    const limit = limits.reduce((most, each) => Math.max(most, each), 0);
    this.showsLimit = limit > 0 && limit <= 2 * peak;
    return this.showsLimit ? Math.max(peak, limit) : peak * 1.08;
  }
  // When the first op begins: time 0 of the axis.
  firstOp() {
    let first = Infinity;
    for (const { count, kind, begin } of this.lanes) {
      for (let i = 0; i < count; ++i) {
        if (kind[i] === RUN && begin[i] >= 0 && begin[i] < first) first = begin[i];
      }
    }
    return Number.isFinite(first) ? first : 0;
  }
  extent() {
    let begin = 0, end = this.report.makespan_ns;
    for (const lane of this.lanes) {
      for (let i = 0; i < lane.count; ++i) {
        if (!lane.hasRun(i)) continue;
        begin = Math.min(begin, lane.begin[i]);
        end = Math.max(end, lane.end[i]);
      }
    }
    return [begin, Math.max(end, begin + 1)];
  }
  get graph() {
    this.builtGraph ??= new Graph(this);
    return this.builtGraph;
  }
  // Why each rank idles, added up by reason.
  get idleReasons() {
    this.countedReasons ??= idleByReason(this);
    return this.countedReasons;
  }
  get criticalPath() {
    this.foundPath ??= criticalPath(this);
    return this.foundPath;
  }
}

// The data of the page: {runs, palette}.
async function readData(head, columns) {
  const reader = new ColumnReader(await unpack(columns));
  const palette = Object.fromEntries(head.kinds);
  const shared = { kinds: head.kinds, palette };
  return { runs: head.runs.map((data) => new Run(data, reader, shared)), palette };
}
