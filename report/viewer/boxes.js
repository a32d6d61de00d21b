// Instructions of one strip in order of their begin, found by binary search, and their mean colour
// over any stretch from sums kept for every 8th: a frame costs pixels, not instructions.

const BLOCK = 8;

class Boxes {
  // `index`: instructions of the lane, by begin.
  constructor(lane, index) {
    this.lane = lane;
    this.index = index;
    this.count = index.length;
    this.begin = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    let isMonotonic = true;
    for (let i = 0; i < this.count; ++i) {
      this.begin[i] = lane.begin[index[i]];
      this.end[i] = lane.end[index[i]];
      isMonotonic &&= i === 0 || this.end[i] >= this.end[i - 1];
    }
    this.reach = isMonotonic ? this.end : this.latestEnds();
  }
  // The latest end so far lets a search by begin find a long box that began earlier.
  latestEnds() {
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
  // The place of an instruction among these boxes, or -1.
  place(instruction) {
    const begin = this.lane.begin[instruction];
    for (let i = lowerBound(this.begin, begin); this.begin[i] === begin; ++i) {
      if (this.index[i] === instruction) return i;
    }
    return -1;
  }
  // The colour of a box: of a fused pair, its forward in the upper half (0), its backward in the
  // lower (1).
  colour(i, half = 0) {
    return this.lane.colour(this.index[i], half);
  }
  // Those whose instruction `keeps` says yes to.
  subset(keeps) {
    return new Boxes(this.lane, this.index.filter((instruction) => keeps(instruction)));
  }

  // The mean colour of boxes i..j-1, weighted by their time, which is left in this.covered.
  mean(i, j, half) {
    this.tints ??= [];
    const { sums, colours } = (this.tints[half] ??= this.tint(half));
    const sum = this.sum ??= new Float64Array(4);
    sum.fill(0);
    const first = Math.ceil(i / BLOCK), last = Math.floor(j / BLOCK);
    if (first >= last) {
      this.add(sum, colours, i, j);
    } else {
      this.add(sum, colours, i, first * BLOCK);
      for (let part = 0; part < 4; ++part) {
        sum[part] += sums[4 * last + part] - sums[4 * first + part];
      }
      this.add(sum, colours, last * BLOCK, j);
    }
    const time = this.covered = sum[0];
    if (time <= 0) return colours[i];
    return (Math.round(sum[1] / time) << 16) | (Math.round(sum[2] / time) << 8) |
      Math.round(sum[3] / time);
  }
  add(sum, colours, from, to) {
    const { begin, end } = this;
    for (let i = from; i < to; ++i) {
      const time = end[i] - begin[i], rgb = colours[i];
      sum[0] += time;
      sum[1] += time * (rgb >> 16);
      sum[2] += time * ((rgb >> 8) & 255);
      sum[3] += time * (rgb & 255);
    }
  }
  // Of a half: the colour of every box, and time and colours summed over all before each block
  // [4 * block].
  tint(half) {
    const colours = new Int32Array(this.count);
    for (let i = 0; i < this.count; ++i) colours[i] = this.colour(i, half);
    const blocks = Math.floor(this.count / BLOCK) + 1;
    const sums = new Float64Array(4 * blocks), sum = new Float64Array(4);
    for (let block = 0; block < blocks; ++block) {
      sums.set(sum, 4 * block);
      this.add(sum, colours, block * BLOCK, Math.min((block + 1) * BLOCK, this.count));
    }
    return { colours, sums };
  }
}

// The instructions of several lists, each in the order of `begin`, in that order together.
function mergedByBegin(lists, begin) {
  if (lists.length === 0) return new Int32Array(0);
  if (lists.length === 1) return lists[0];
  const middle = lists.length >> 1;
  const a = mergedByBegin(lists.slice(0, middle), begin);
  const b = mergedByBegin(lists.slice(middle), begin);
  const merged = new Int32Array(a.length + b.length);
  for (let i = 0, j = 0, k = 0; k < merged.length; ++k) {
    const takesA = j === b.length || (i < a.length && begin[a[i]] <= begin[b[j]]);
    merged[k] = takesA ? a[i++] : b[j++];
  }
  return merged;
}

// Calls box(i, x, width) for every box at least `least` pixels wide, dash(i, x, width) for what is
// narrower but fills a pixel, and block(x, i, j) for boxes i..j-1 that share a pixel.
// O(pixels log n).
function sweep(boxes, view, least, { box, dash, block }) {
  const { begin, end, count } = boxes;
  const { scale, from, to } = view;
  let i = boxes.from(from);
  while (i < count && begin[i] <= to) {
    const x = GUTTER + (begin[i] - from) * scale, width = (end[i] - begin[i]) * scale;
    if (width >= 1) {
      (width >= least ? box : dash)(i, x, width);
      ++i;
      continue;
    }
    const pixel = Math.floor(x);
    const edge = from + (pixel + 1 - GUTTER) / scale;
    let next = Math.max(lowerBoundNear(begin, edge, i), i + 1);
    if (next > i + 1 && (end[next - 1] - begin[next - 1]) * scale >= 1) --next;
    block(pixel, i, next);
    i = next;
  }
}
