// Figures as people read them, and text made safe for markup.

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

// "+1.2 ms", "-3 ns", "0" for a difference.
function signed(value, show) {
  return value === 0 ? "0" : (value > 0 ? "+" : "\u2212") + show(Math.abs(value));
}

const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ENTITIES[c]);

// The first of a sorted array that is not below `value`, at or after `low`.
function lowerBound(sorted, value, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The same from `low` on, for a place that is likely near.
function lowerBoundNear(sorted, value, low) {
  let step = 1;
  while (low + step < sorted.length && sorted[low + step] < value) step *= 2;
  return lowerBound(sorted, value, low, Math.min(low + step + 1, sorted.length));
}
