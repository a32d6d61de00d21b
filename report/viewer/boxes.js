// Instructions of one strip in order of their begin, found by binary search, and their mean colour
// over any stretch from sums kept for every 32nd: a frame costs pixels, not instructions.

const BLOCK = 32;

class Boxes {
  // `index`: instructions of the lane, in any order.
  constructor(lane, index) {
    this.lane = lane;
    this.index = index;
    const isSorted = index.every((at, i) => i === 0 || lane.begin[index[i - 1]] <= lane.begin[at]);
    if (!isSorted) {
      this.index = Int32Array.from(
        Array.from(index).sort((a, b) => lane.begin[a] - lane.begin[b] || a - b));
    }
    this.count = index.length;
    this.begin = Float64Array.from(this.index, (i) => lane.begin[i]);
    this.end = Float64Array.from(this.index, (i) => lane.end[i]);
    this.reach = this.latestEnds();
  }
  // The latest end so far lets a search by begin find a long box that began earlier.
  latestEnds() {
    if (this.end.every((end, i) => i === 0 || end >= this.end[i - 1])) return this.end;
    let latest = -Infinity;
    return this.end.map((end) => (latest = Math.max(latest, end)));
  }
  // The first box that may still be running at `time`.
  from(time) {
    return lowerBound(this.reach, time);
  }
  // The box running at `time`, or -1.
  at(time) {
    for (let i = this.from(time); i < this.count && this.begin[i] <= time; ++i) {
      if (time < this.end[i]) return i;
    }
    return -1;
  }
  // The first box after `low` that begins at or after `time`, near ones first.
  beginning(time, low) {
    let step = 1;
    while (low + step < this.count && this.begin[low + step] < time) step *= 2;
    return lowerBound(this.begin, time, low, Math.min(low + step + 1, this.count));
  }
  // The place of an instruction among these boxes, or -1.
  place(instruction) {
    const begin = this.lane.begin[instruction];
    for (let i = lowerBound(this.begin, begin); this.begin[i] === begin; ++i) {
      if (this.index[i] === instruction) return i;
    }
    return -1;
  }
  colour(i) {
    return this.lane.colour(this.index[i]);
  }
  // Those whose instruction `keeps` says yes to.
  subset(keeps) {
    return new Boxes(this.lane, this.index.filter((instruction) => keeps(instruction)));
  }

  // Time covered by boxes i..j-1, and their mean colour weighted by it.
  mean(i, j) {
    this.sums ??= this.blockSums();
    const sum = [0, 0, 0, 0];
    const first = Math.ceil(i / BLOCK), last = Math.floor(j / BLOCK);
    if (first >= last) {
      for (let k = i; k < j; ++k) this.add(sum, k);
    } else {
      for (let k = i; k < first * BLOCK; ++k) this.add(sum, k);
      for (let part = 0; part < 4; ++part) {
        sum[part] += this.sums[4 * last + part] - this.sums[4 * first + part];
      }
      for (let k = last * BLOCK; k < j; ++k) this.add(sum, k);
    }
    const [time, red, green, blue] = sum;
    if (time <= 0) return { time: 0, rgb: this.colour(i) };
    const channel = (value) => Math.round(Math.min(Math.max(value / time, 0), 255));
    return { time, rgb: (channel(red) << 16) | (channel(green) << 8) | channel(blue) };
  }
  add(sum, i) {
    const time = this.end[i] - this.begin[i], rgb = this.colour(i);
    sum[0] += time;
    sum[1] += time * (rgb >> 16);
    sum[2] += time * ((rgb >> 8) & 255);
    sum[3] += time * (rgb & 255);
  }
  blockSums() {
    const blocks = Math.floor(this.count / BLOCK) + 1;
    const sums = new Float64Array(4 * blocks), sum = [0, 0, 0, 0];
    for (let i = 0; i < this.count; ++i) {
      if (i % BLOCK === 0) sums.set(sum, (4 * i) / BLOCK);
      this.add(sum, i);
    }
    if (this.count % BLOCK === 0) sums.set(sum, 4 * (blocks - 1));
    return sums;
  }
}

// Calls box(i, x, width) for every box at least `least` pixels wide, dash(i, x, width) for what is
// narrower but fills a pixel, and block(x, {time, rgb}) for all that share a pixel. O(pixels log n).
function sweep(boxes, view, least, { box, dash, block }) {
  const { begin, end, count } = boxes;
  const { scale } = view;
  let i = boxes.from(view.from);
  while (i < count && begin[i] <= view.to) {
    const x = view.x(begin[i]), width = (end[i] - begin[i]) * scale;
    if (width >= 1) {
      (width >= least ? box : dash)(i, x, width);
      ++i;
      continue;
    }
    const pixel = Math.floor(x);
    let next = Math.max(boxes.beginning(view.time(pixel + 1), i), i + 1);
    if (next > i + 1 && (end[next - 1] - begin[next - 1]) * scale >= 1) --next;
    block(pixel, boxes.mean(i, next));
    i = next;
  }
}
