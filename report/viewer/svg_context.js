// A drawing context whose result is SVG: the calls Painter makes on a canvas, written as elements.

class SvgContext {
  constructor(width, height, font) {
    this.size = [width, height];
    this.paintWidth = width;
    this.parts = [];
    this.path = "";
    this.clips = 0;
    this.open = [0];  // groups to close at each restore
    this.state = { fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1,
      textAlign: "left", font, dash: [] };
    this.saved = [];
    this.ruler = document.createElement("canvas").getContext("2d");
    for (const key of Object.keys(this.state)) {
      if (key === "dash") continue;
      Object.defineProperty(this, key, {
        get: () => this.state[key], set: (value) => (this.state[key] = value) });
    }
  }

  // ---- State ----
  save() {
    this.saved.push({ ...this.state });
    this.open.push(0);
  }
  restore() {
    this.state = this.saved.pop();
    this.parts.push("</g>".repeat(this.open.pop()));
  }
  group(attributes) {
    this.parts.push(`<g ${attributes}>`);
    ++this.open[this.open.length - 1];
  }
  translate(x, y) {
    this.group(`transform="translate(${short(x)} ${short(y)})"`);
  }
  clip() {
    const id = `clip${this.clips++}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }
  setLineDash(dash) {
    this.state.dash = dash;
  }

  // ---- Paths ----
  beginPath() {
    this.path = "";
  }
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }
  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }
  bezierCurveTo(...points) {
    this.path += `C${points.map(short).join(" ")}`;
  }
  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }
  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2), w = width - 2 * r, h = height - 2 * r;
    const corner = (dx, dy) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    this.path += `M${short(x + r)} ${short(y)}h${short(w)}${corner(r, r)}v${short(h)}` +
      `${corner(-r, r)}h${short(-w)}${corner(-r, -r)}v${short(-h)}${corner(r, -r)}z`;
  }
  arc(x, y, r) {
    const half = (dx) => `a${r} ${r} 0 1 0 ${dx} 0`;
    this.path += `M${short(x - r)} ${short(y)}${half(2 * r)}${half(-2 * r)}z`;
  }
  fill() {
    this.parts.push(`<path d="${this.path}" ${this.paint("fill")}/>`);
  }
  stroke() {
    this.parts.push(`<path d="${this.path}" fill="none" ${this.paint("stroke")} ${this.line()}/>`);
  }

  // ---- Shapes ----
  fillRect(x, y, width, height) {
    if (width <= 0 || height <= 0) return;
    this.parts.push(`<rect ${box(x, y, width, height)} ${this.paint("fill")}/>`);
  }
  strokeRect(x, y, width, height) {
    this.parts.push(`<rect ${box(x, y, width, height)} fill="none" ${this.paint("stroke")} ` +
      `${this.line()}/>`);
  }
  measureText(text) {
    this.ruler.font = this.state.font;
    return this.ruler.measureText(text);
  }
  fillText(text, x, y) {
    const { font, textAlign } = this.state;
    const [, weight, size] = /^(?:(\d+) )?([\d.]+)px/.exec(font);
    const anchor = { center: "middle", right: "end" }[textAlign];
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" font-size="${size}"` +
      (weight ? ` font-weight="${weight}"` : "") + (anchor ? ` text-anchor="${anchor}"` : "") +
      ` ${this.paint("fill")}>${escaped(text)}</text>`);
  }
  // A line of pixels (alpha, blue, green, red from the top), `height` high.
  drawPixels(pixels, y, height) {
    for (let i = 0, end; i < pixels.length; i = end) {
      for (end = i + 1; end < pixels.length && pixels[end] === pixels[i];) ++end;
      const abgr = pixels[i], alpha = (abgr >>> 24) / 255;
      if (alpha === 0) continue;
      const rgb = ((abgr & 255) << 16) | (abgr & 0xff00) | ((abgr >> 16) & 255);
      this.state.fillStyle = css(rgb);
      const before = this.state.globalAlpha;
      this.state.globalAlpha *= alpha;
      this.fillRect(i, y, end - i, height);
      this.state.globalAlpha = before;
    }
  }

  paint(how) {
    const { globalAlpha: alpha, [`${how}Style`]: colour } = this.state;
    return `${how}="${colour}"` + (alpha < 1 ? ` ${how}-opacity="${short(alpha)}"` : "");
  }
  line() {
    const { lineWidth, dash } = this.state;
    return `stroke-width="${lineWidth}"` +
      (dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "");
  }
  // The whole document.
  text() {
    const [width, height] = this.size.map(Math.round);
    const family = escaped(this.state.font.replace(/^.*?px /, ""));
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" font-family="${family}">${this.parts.join("")}</svg>`;
  }
}

const short = (value) => String(Math.round(value * 100) / 100);
const box = (x, y, width, height) =>
  `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
