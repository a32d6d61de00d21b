// Memory over time as steps, with the maximum of every 16 samples kept: a frame costs pixels.

const PART = 16;

class Curve {
  // From instant at[i] on, held[i] bytes are held.
  constructor(at, held) {
    this.at = at;
    this.held = held;
    this.peak = 0;
    for (let i = 1; i < held.length; ++i) if (held[i] > held[this.peak]) this.peak = i;
    this.most = new Float64Array(Math.ceil(held.length / PART));
    for (let i = 0; i < held.length; ++i) {
      const part = Math.floor(i / PART);
      this.most[part] = i % PART === 0 ? held[i] : Math.max(this.most[part], held[i]);
    }
  }
  get isKnown() {
    return this.held.length > 0 && this.held[this.peak] > 0;
  }
  get peakBytes() {
    return this.held.length > 0 ? this.held[this.peak] : 0;
  }
  get peakTime() {
    return this.at[this.peak];
  }
  // Bytes held at `time`.
  heldAt(time) {
    const after = lowerBound(this.at, time);
    if (this.at[after] === time) return this.held[after];
    return after === 0 ? 0 : this.held[after - 1];
  }
  // Most bytes of samples i..j-1.
  mostOf(i, j) {
    let most = 0;
    while (i < j) {
      const whole = i % PART === 0 && i + PART <= j;
      most = Math.max(most, whole ? this.most[i / PART] : this.held[i]);
      i += whole ? PART : 1;
    }
    return most;
  }
  // The curve from `begin` to `end` as calls of level(from, to, bytes), each at least `step` long
  // but for the ends: of what changes within a step, the maximum.
  trace(begin, end, step, level) {
    let from = begin, bytes = this.heldAt(begin);
    let i = lowerBound(this.at, begin);
    while (i < this.at.length && this.at[i] < end) {
      const time = this.at[i];
      const next = Math.max(lowerBoundNear(this.at, time + step, i), i + 1);
      const most = this.mostOf(i, next), last = this.held[next - 1];
      if (most !== bytes) {
        if (time > from) level(from, time, bytes);
        from = time;
        bytes = most;
      }
      const until = time + step;
      if (last !== most && (next >= this.at.length || this.at[next] > until)) {
        level(from, until, most);
        from = until;
        bytes = last;
      }
      i = next;
    }
    if (end > from) level(from, end, bytes);
  }
}
