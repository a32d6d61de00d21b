// All lanes of all runs over their whole time in a strip at the foot, with a window that says what
// part is shown above.

class Minimap {
  constructor(app) {
    this.app = app;
    this.canvas = element("overview");
    this.frame = element("window");
    this.footer = this.canvas.parentElement;
    this.listen();
  }

  // Paints the lanes; needed when the page's size, layout, filter or colours change.
  paint(theme) {
    const { app } = this;
    this.height = this.footer.clientHeight - 10;
    this.whole = new View(app.begin, app.end, app.view.width);
    const context = sizedContext(this.canvas, app.view.width, this.height);
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, app.view.width, this.height);
    const painter = new Painter(context, theme);
    const { rows } = app.layout;
    const each = this.height / rows.length;
    rows.forEach((row, i) => {
      const strip = { y: i * each, height: each > 3 ? each - 1 : each, part: "map", alpha: 1 };
      painter.ground({ ...row, y: strip.y, laneHeight: strip.height }, this.whole);
      const boxes = app.filter ? app.filter.of(row.lane.compute) : row.lane.compute;
      painter.strip(strip, boxes, this.whole, 1);
    });
  }

  // Moves the window.
  place() {
    const { view, layout, height } = this.app;
    const left = this.whole.x(view.from), right = this.whole.x(view.to);
    const inner = Math.max(layout.height + AXIS - 2, 1);
    const top = Math.min(view.scroll / inner, 1), share = Math.min(height / inner, 1);
    const all = this.whole.x(this.app.end) - this.whole.x(this.app.begin);
    this.frame.hidden = right - left >= all * 0.999 && share > 0.999;
    this.frame.style.left = `${left}px`;
    this.frame.style.width = `${Math.max(right - left, 4)}px`;
    this.frame.style.top = `${2 + top * (this.height + 4)}px`;
    this.frame.style.height = `${Math.max(share * (this.height + 4), 6)}px`;
  }

  // A press or drag moves the window there; the wheel zooms around the middle of what is shown.
  listen() {
    const jump = (event) => {
      const { view, scroller, layout } = this.app;
      const half = (view.to - view.from) / 2;
      const middle = this.whole.time(event.clientX);
      this.app.show(middle - half, middle + half);
      const y = (event.clientY - this.footer.getBoundingClientRect().top - 5) / this.height;
      scroller.scrollTop = y * (layout.height + AXIS) - this.app.height / 2;
    };
    this.footer.addEventListener("pointerdown", (event) => {
      this.footer.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.footer.addEventListener("pointermove", (event) => event.buttons > 0 && jump(event));
    this.footer.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.app.zoom(Math.exp(event.deltaY * 0.0015), GUTTER + (this.app.view.width - GUTTER) / 2);
    }, { passive: false });
  }
}

// A canvas's context for a size in CSS pixels, sharp on any screen.
function sizedContext(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
