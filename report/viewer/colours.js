// Colours of ops: the hue says the kind, the shade the chunk, or the direction where a rank holds
// two replicas; the same as in timeline.svg.

function mixed(a, b, share) {
  const channel = (shift) => {
    const from = (a >> shift) & 255, to = (b >> shift) & 255;
    return Math.round(from + share * (to - from)) << shift;
  };
  return channel(16) | channel(8) | channel(0);
}
const css = (rgb) => `#${rgb.toString(16).padStart(6, "0")}`;
const rgbOf = (hex) => parseInt(hex.slice(1), 16);
const isLight = (rgb) =>
  0.299 * (rgb >> 16) + 0.587 * ((rgb >> 8) & 255) + 0.114 * (rgb & 255) > 140;

// What the shades of a lane mean, and the colour of each of its op templates.
class LaneColours {
  // `computed`: which templates are of compute.
  constructor(templates, computed, palette) {
    const own = templates.filter((_, i) => computed[i]);
    this.stages = [...new Set(own.map(({ stage }) => stage))].sort((a, b) => a - b);
    this.hasDirections = own.some(({ replica }) => replica !== own[0].replica);
    this.ofTemplate = Int32Array.from(templates, (each) => this.shade(each, palette));
  }
  get hasChunks() {
    return !this.hasDirections && this.stages.length > 1;
  }
  chunk(stage) {
    return this.stages.indexOf(stage);
  }
  shade({ token, stage, replica }, palette) {
    const last = this.stages.length - 1;
    const share = this.hasDirections ? directionOf(replica) : last > 0 ? this.chunk(stage) / last : 0;
    return mixed(rgbOf(palette[token] ?? palette[""]), 0xffffff, 0.5 * Math.max(0, share));
  }
}
