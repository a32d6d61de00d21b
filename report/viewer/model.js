// The runs of the page: lanes of typed columns, as columns.js unpacks them, with times counted from
// the first op of the run.

const KINDS = {
  F: "forward", B: "backward", I: "input gradient", W: "weight gradient", RECOMPUTE: "recompute",
  OFFLOAD: "offload", RELOAD: "reload", SEND_F: "send activation", RECV_F: "receive activation",
  SEND_B: "send gradient", RECV_B: "receive gradient", UNSHARD: "unshard", RESHARD: "reshard",
  REDUCE_GRAD: "reduce gradients",
};
const [RUN, TRANSFER, , STEP_END] = [0, 1, 2, 3];
// What the makespan counts.
const STEP_WORK = new Set(["F", "B", "I", "W"]);

// Ops as schedule files write them.
const opText = ({ token, stage, replica, microbatch }) =>
  `${replica === 1 ? "~" : ""}${stage}${token}${microbatch ?? ""}`;

class Lane {
  constructor(columns, { streams, memory_limit_bytes }, rank, run) {
    Object.assign(this, columns);
    this.rank = rank;
    this.run = run;
    this.streams = streams;
    this.limit = memory_limit_bytes ?? null;
    this.figures = run.report.per_rank[rank];
  }

  // ---- One instruction ----

  hasRun(i) {
    return this.end[i] >= this.begin[i] && this.begin[i] > -Infinity;
  }
  onCompute(i) {
    return this.streams[this.stream[i]].role.endsWith("compute");
  }
  isCompute(i) {
    return this.kind[i] === RUN && this.opStart[i + 1] > this.opStart[i] && this.onCompute(i);
  }
  // {token, stage, replica, microbatch, text, colour} of each op of an instruction.
  ops(i) {
    const list = [];
    for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) {
      const { token, stage, replica } = this.templates[this.template[k]];
      const microbatch = /SHARD|REDUCE/.test(token) ? null : this.microbatch[k];
      const op = { token, stage, replica, microbatch };
      list.push({ ...op, text: opText(op), colour: this.colours.ofTemplate[this.template[k]] });
    }
    return list;
  }
  text(i) {
    return this.ops(i).map((op) => op.text).join(";");
  }
  // Of a fused pair, the mean of both.
  colour(i) {
    const k = this.opStart[i], ops = this.opStart[i + 1] - k;
    if (ops === 0) return this.neutral;
    const first = this.colours.ofTemplate[this.template[k]];
    if (ops !== 2 || this.kind[i] !== RUN) return first;
    return this.colours.mean(this.template[k], this.template[k + 1]);
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
    const computed = new Uint8Array(this.templates.length);
    const tracks = new Map(), leaving = [], arriving = [];
    this.sends = this.templates.map(({ token }) => token.startsWith("SEND"));
    for (let i = 0; i < this.count; ++i) {
      if (!this.hasRun(i) || this.kind[i] === STEP_END) continue;
      if (this.isCompute(i)) {
        for (let k = this.opStart[i]; k < this.opStart[i + 1]; ++k) computed[this.template[k]] = 1;
        if (!tracks.has(this.stream[i])) tracks.set(this.stream[i], []);
        tracks.get(this.stream[i]).push(i);
      } else {
        (this.isArrival(i) ? arriving : leaving).push(i);
      }
    }
    this.neutral = rgbOf(palette[""]);
    this.colours = new LaneColours(this.templates, computed, palette);
    this.tracks = [...tracks.keys()].sort().map(
      (stream) => new Boxes(this, Int32Array.from(tracks.get(stream))));
    this.compute = this.tracks.length === 1
      ? this.tracks[0] : new Boxes(this, Int32Array.from([...tracks.values()].flat()));
    this.leaving = new Boxes(this, Int32Array.from(leaving));
    this.arriving = new Boxes(this, Int32Array.from(arriving));
    this.memory = new Curve(this.memoryAt, this.held);
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
    this.mostMemory = this.lanes.reduce(
      (most, { memory, limit }) => Math.max(most, memory.peakBytes, limit ?? 0), 1);
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
