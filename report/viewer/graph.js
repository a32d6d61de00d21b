// What waits for what in a run. A node is an instruction: `base` of its lane plus its index there.
// Each waits for the one before it on its stream and for events of its rank, a receive for its
// send.

class Graph {
  constructor(run) {
    this.lanes = run.lanes;
    this.base = new Uint32Array(run.lanes.length + 1);
    run.lanes.forEach(({ count }, rank) => (this.base[rank + 1] = this.base[rank] + count));
    this.size = this.base[run.lanes.length];
    this.begin = new Float64Array(this.size);
    this.end = new Float64Array(this.size);
    this.previous = new Int32Array(this.size).fill(-1);
    this.following = new Int32Array(this.size).fill(-1);
    for (const lane of run.lanes) this.addLane(lane, this.base[lane.rank]);
    this.addWaits();
    // Without its program, a run of several ranks tells no dependencies.
    this.isKnown = run.lanes.length === 1 || this.waitOn.length > 0;
    this.last = this.lastOp();
  }

  addLane(lane, base) {
    this.begin.set(lane.begin, base);
    this.end.set(lane.end, base);
    const before = new Int32Array(256).fill(-1);
    for (let i = 0; i < lane.count; ++i) {
      if (!lane.hasRun(i)) continue;
      const stream = lane.stream[i];
      this.previous[base + i] = before[stream];
      if (before[stream] >= 0) this.following[before[stream]] = base + i;
      before[stream] = base + i;
    }
  }

  addWaits() {
    const total = this.lanes.reduce((sum, { waitOf }) => sum + waitOf.length, 0);
    this.waitStart = new Uint32Array(this.size + 1);
    this.waitOn = new Uint32Array(total);
    this.isMessage = new Uint8Array(total);  // is the wait one of a receive for its send?
    let next = 0;
    for (const { rank, kind, waitOf, waitRank, waitOn } of this.lanes) {
      for (let k = 0; k < waitOf.length; ++k) {
        ++this.waitStart[this.base[rank] + waitOf[k] + 1];
        this.isMessage[next] = waitRank[k] !== rank && kind[waitOf[k]] === TRANSFER ? 1 : 0;
        this.waitOn[next++] = this.base[waitRank[k]] + waitOn[k];
      }
    }
    for (let node = 0; node < this.size; ++node) this.waitStart[node + 1] += this.waitStart[node];
  }

  // Who waits for each node: [start, nodes], built when first asked for.
  get waiters() {
    if (this.builtWaiters) return this.builtWaiters;
    const start = new Uint32Array(this.size + 2), nodes = new Uint32Array(this.waitOn.length);
    for (let k = 0; k < this.waitOn.length; ++k) ++start[this.waitOn[k] + 2];
    for (let node = 0; node <= this.size; ++node) start[node + 1] += start[node];
    for (let node = 0; node < this.size; ++node) {
      for (let k = this.waitStart[node]; k < this.waitStart[node + 1]; ++k) {
        nodes[start[this.waitOn[k] + 1]++] = node;
      }
    }
    this.builtWaiters = { start, nodes };
    return this.builtWaiters;
  }

  // ---- One node ----

  rank(node) {
    let rank = lowerBound(this.base, node + 1) - 1;
    while (this.base[rank + 1] <= node) ++rank;
    return rank;
  }
  lane(node) {
    return this.lanes[this.rank(node)];
  }
  node(lane, instruction) {
    return this.base[lane.rank] + instruction;
  }
  // The instruction within its lane.
  index(node) {
    return node - this.base[this.rank(node)];
  }
  text(node) {
    return this.lane(node).text(this.index(node));
  }
  isCompute(node) {
    return this.lane(node).isCompute(this.index(node));
  }
  // Events and sends it waits for.
  waits(node) {
    return this.waitOn.subarray(this.waitStart[node], this.waitStart[node + 1]);
  }
  waitedFor(node) {
    const { start, nodes } = this.waiters;
    return nodes.subarray(start[node], start[node + 1]);
  }
  // The sends a receive waits for; none of another node.
  sendsOf(node) {
    const sends = [];
    for (let k = this.waitStart[node]; k < this.waitStart[node + 1]; ++k) {
      if (this.isMessage[k]) sends.push(this.waitOn[k]);
    }
    return sends;
  }
  // Everything it waits for, the node before it on its stream last.
  causes(node) {
    const before = this.previous[node];
    return before < 0 ? Array.from(this.waits(node)) : [...this.waits(node), before];
  }
  // The cause that ended last, and so decided when the node began; -1 if nothing did.
  decisive(node) {
    let best = -1;
    for (const cause of this.causes(node)) {
      if (best < 0 || this.end[cause] > this.end[best]) best = cause;
    }
    return best;
  }

  // ---- Compute ops alone ----

  // The ops whose results an op needs from elsewhere: [{op, send, receive}]; send and receive are
  // -1 for an event of its own rank. Receives issued on the op's own stream count as well.
  needs(node) {
    const found = [];
    const before = this.previous[node];
    const waits = Array.from(this.waits(node));
    if (before >= 0 && this.sendsOf(before).length > 0) waits.push(before);
    for (const wait of waits) {
      const sends = this.sendsOf(wait);
      for (const send of sends) {
        found.push({ op: this.producer(send), send, receive: wait });
      }
      if (sends.length === 0 && this.isCompute(wait)) {
        found.push({ op: wait, send: -1, receive: -1 });
      }
    }
    return found;
  }
  // The op whose result a send carries, or -1.
  producer(send) {
    const made = this.causes(send).filter((cause) => this.isCompute(cause));
    return made.length > 0 ? made[0] : -1;
  }
  // The ops that need this one's results, the other way round.
  feeds(node) {
    const found = [];
    for (const waiter of this.waitedFor(node)) {
      if (this.isCompute(waiter)) found.push({ op: waiter, send: -1, receive: -1 });
      for (const receive of this.waitedFor(waiter)) {
        if (!this.sendsOf(receive).includes(waiter)) continue;
        const users = Array.from(this.waitedFor(receive));
        if (this.following[receive] >= 0) users.push(this.following[receive]);
        for (const op of new Set(users)) {
          if (this.isCompute(op)) found.push({ op, send: waiter, receive });
        }
      }
    }
    return found;
  }

  // The last F, B, I or W to end, or -1.
  lastOp() {
    let last = -1;
    for (const lane of this.lanes) {
      const { compute } = lane;
      for (let i = 0; i < compute.count; ++i) {
        const node = this.node(lane, compute.index[i]);
        if ((last < 0 || this.end[node] > this.end[last]) && isStepWork(lane, compute.index[i])) {
          last = node;
        }
      }
    }
    return last;
  }
}

const isStepWork = (lane, i) =>
  STEP_WORK.has(lane.templates[lane.template[lane.opStart[i]]].token);
