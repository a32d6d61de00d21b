// The page itself: state, input and what a test may ask (window.counterflow).

const element = (id) => document.getElementById(id);

class Timeline {
  constructor({ palette, runs }) {
    this.palette = palette;
    this.runs = runs.map((run) => new Run(run, palette));
    this.begin = Math.min(...this.runs.map((run) => run.begin));
    this.end = Math.max(...this.runs.map((run) => run.end));
    this.scroller = element("scroller");
    this.lanes = element("lanes");
    this.view = new View(this.begin, this.end, 1);
    this.hovered = null;  // {row, run, index, microbatches}
    this.pinned = null;   // likewise, kept by a click
    this.cursor = null;   // x of the pointer over the lanes
    // Side by side the lanes matter most.
    this.shown = { memory: this.runs.length === 1, transfers: this.runs.length === 1 };
    fillHeader(this.runs);
    fillLegend(this.runs, palette);
    this.resize();
    this.listen();
  }

  // ---- Drawing ----------------------------------------------------------------------------------

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      paper: value("paper"), ink: value("ink"), quiet: value("quiet"), rule: value("rule"),
      grid: value("grid"), idle: value("idle"), idleColour: parseInt(value("idle").slice(1), 16),
      memory: value("memory"), memoryEdge: value("memory-edge"), limit: value("limit"),
      onLight: "#20262f", onDark: "#ffffff", font: value("font"),
    };
  }

  sized(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  resize() {
    const { scroller } = this;
    this.height = scroller.clientHeight;
    this.layout = layOut(this.runs, this.height, this.shown);
    element("spacer").style.height = `${Math.max(this.layout.height + AXIS, this.height)}px`;
    const width = scroller.clientWidth;
    this.view.width = width;
    const theme = this.readTheme();
    this.painter = new Painter(this.sized(this.lanes, width, this.height), theme);
    const strip = element("overview").parentElement.clientHeight - 10;
    this.whole = new View(this.begin, this.end, width);
    new Painter(this.sized(element("overview"), width, strip), theme)
      .overview(this.layout.rows, this.whole, strip);
    this.draw();
  }

  draw() {
    for (const part of Object.keys(this.shown)) {
      element(`${part}-button`).setAttribute("aria-pressed", this.shown[part]);
    }
    this.view.scroll = this.scroller.scrollTop;
    this.painter.frame(this.layout, this.view, this.height, this.pinned ?? this.hovered);
    const left = this.whole.x(this.view.from), right = this.whole.x(this.view.to);
    const frame = element("window");
    frame.hidden = this.view.to - this.view.from >= (this.end - this.begin) * 0.999;
    frame.style.left = `${left}px`;
    frame.style.width = `${Math.max(right - left, 4)}px`;
    this.waiting = false;
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  toggle(part) {
    this.shown[part] = !this.shown[part];
    this.pinned = this.hovered = null;  // they name rows of the old layout
    this.resize();
  }

  // ---- Moving -----------------------------------------------------------------------------------

  show(from, to) {
    const whole = this.end - this.begin;
    const length = Math.min(Math.max(to - from, 50), whole);
    const first = Math.min(Math.max(from, this.begin), this.end - length);
    Object.assign(this.view, { from: first, to: first + length });
    this.redraw();
  }
  zoom(factor, x = this.cursor ?? (GUTTER + this.view.width) / 2) {
    const { view } = this;
    const fixed = view.time(Math.max(x, GUTTER));
    this.show(fixed - (fixed - view.from) * factor, fixed + (view.to - fixed) * factor);
  }
  pan(share) {
    const shift = (this.view.to - this.view.from) * share;
    this.show(this.view.from + shift, this.view.to + shift);
  }
  fit() {
    this.show(this.begin, this.end);
  }
  zoomTo({ row, index }) {
    const boxes = row.lane.compute;
    const length = Math.max(boxes.end[index] - boxes.begin[index], 1);
    this.show(boxes.begin[index] - 4 * length, boxes.end[index] + 4 * length);
  }

  // ---- Hovering ---------------------------------------------------------------------------------

  // What lies at a point of the canvas.
  hit(x, y) {
    if (x < GUTTER || y < AXIS) return null;
    const time = this.view.time(x), at = y - AXIS + this.view.scroll;
    const row = this.layout.rows.find(({ y: top, bottom }) => at >= top && at < bottom);
    if (!row) return null;
    if (at < row.y + row.laneHeight) return { row, facts: factsAt(row, time, "compute") };
    if (row.memory > 0 && at >= row.memoryY) return { row, facts: factsAt(row, time, "memory") };
    const boxes = at < row.wireY + row.wire ? row.lane.leaving : row.lane.arriving;
    return { row, facts: factsAt(row, time, "wire", boxes) };
  }

  focusOf(hit) {
    if (hit?.facts?.what !== "op") return null;
    const { row, facts } = hit;
    return { row, run: row.run, index: facts.index,
      microbatches: facts.ops.map((op) => op.microbatch).filter((m) => m !== null) };
  }

  hover(hit, clientX = 0, clientY = 0) {
    const before = this.hovered;
    this.hovered = this.focusOf(hit);
    if (before?.row !== this.hovered?.row || before?.index !== this.hovered?.index) this.redraw();
    const card = element("card");
    card.hidden = !hit?.facts;
    if (card.hidden) return;
    card.innerHTML = cardHtml(hit.facts, (op) => hit.row.lane.colours.of(op));
    const { width, height } = card.getBoundingClientRect();
    const left = clientX + 16 + width > innerWidth ? clientX - 16 - width : clientX + 16;
    const top = Math.min(clientY + 14, innerHeight - height - 8);
    card.style.left = `${Math.max(left, 4)}px`;
    card.style.top = `${Math.max(top, 4)}px`;
  }

  // ---- Input ------------------------------------------------------------------------------------

  listen() {
    this.listenToLanes();
    this.listenToOverview();
    this.listenToButtons();
    this.scroller.addEventListener("scroll", () => this.redraw());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.resize());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
  }

  listenToLanes() {
    const { lanes } = this;
    lanes.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    lanes.addEventListener("pointerdown", (event) => this.grab(event));
    lanes.addEventListener("pointermove", (event) => this.move(event));
    lanes.addEventListener("pointerup", (event) => this.release(event));
    lanes.addEventListener("pointerleave", () => {
      this.cursor = null;
      this.hover(null);
    });
    lanes.addEventListener("dblclick", (event) => {
      const focus = this.focusOf(this.hit(event.offsetX, event.offsetY));
      if (focus) this.zoomTo(focus);
    });
  }

  // A press or drag on the overview moves the window there.
  listenToOverview() {
    const footer = document.querySelector("footer");
    const jump = (event) => {
      const half = (this.view.to - this.view.from) / 2;
      const middle = this.whole.time(event.clientX);
      this.show(middle - half, middle + half);
    };
    footer.addEventListener("pointerdown", (event) => {
      footer.setPointerCapture(event.pointerId);
      jump(event);
    });
    footer.addEventListener("pointermove", (event) => event.buttons > 0 && jump(event));
  }

  listenToButtons() {
    const clicked = (id, action) => element(id).addEventListener("click", action);
    clicked("zoom-in", () => this.zoom(0.6));
    clicked("zoom-out", () => this.zoom(1 / 0.6));
    clicked("fit", () => this.fit());
    clicked("help-button", () => element("help").showModal());
    for (const [part, has] of [["memory", "hasMemory"], ["transfers", "hasTransfers"]]) {
      element(`${part}-button`).hidden = !this.runs.some((run) => run[has]);
      clicked(`${part}-button`, () => this.toggle(part));
    }
  }

  wheel(event) {
    if (event.offsetX < GUTTER) return;  // the page's own scrolling
    event.preventDefault();
    if (event.shiftKey) {
      this.scroller.scrollTop += event.deltaY || event.deltaX;
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(event.deltaX / this.view.width);
    } else {
      this.zoom(Math.exp(event.deltaY * 0.0015), event.offsetX);
    }
  }

  grab(event) {
    this.lanes.setPointerCapture(event.pointerId);
    this.drag = { x: event.clientX, y: event.clientY, from: this.view.from, to: this.view.to,
      scroll: this.scroller.scrollTop, moved: false };
  }

  move(event) {
    this.cursor = event.offsetX;
    const { drag } = this;
    if (!drag) {
      this.hover(this.hit(event.offsetX, event.offsetY), event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.moved ||= Math.hypot(dx, dy) > 4;
    if (!drag.moved) return;
    this.scroller.classList.add("dragging");
    this.hover(null);
    this.scroller.scrollTop = drag.scroll - dy;
    const shift = dx / this.view.scale;
    this.show(drag.from - shift, drag.to - shift);
  }

  release(event) {
    const clicked = this.drag && !this.drag.moved;
    this.drag = null;
    this.scroller.classList.remove("dragging");
    if (!clicked) return;
    const focus = this.focusOf(this.hit(event.offsetX, event.offsetY));
    const same = focus && this.pinned?.row === focus.row && this.pinned.index === focus.index;
    this.pinned = same ? null : focus;
    this.redraw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
      ArrowUp: () => (this.scroller.scrollTop -= 60),
      ArrowDown: () => (this.scroller.scrollTop += 60),
      0: () => this.fit(), "?": () => element("help").showModal(),
      m: () => this.toggle("memory"), t: () => this.toggle("transfers"),
      Escape: () => {
        this.pinned = null;
        this.redraw();
      },
    };
    const action = actions[event.key];
    if (!action || element("help").open) return;
    event.preventDefault();
    action();
  }

  // ---- For tests and scripts --------------------------------------------------------------------

  get handle() {
    const [first] = this.runs;
    return {
      ranks: first.lanes.length,
      ops: first.lanes.reduce((sum, { compute }) => sum + compute.count, 0),
      makespan_ns: first.report.makespan_ns,
      runs: this.runs.map((run) => run.name),
      view: () => ({
        from_ns: this.view.from + first.origin, to_ns: this.view.to + first.origin,
      }),
      // Shows the card of what a rank computes at an instant of the timeline; returns its facts.
      hover: (rank, time) => {
        const row = this.layout.rows[rank];
        const facts = row ? factsAt(row, time - row.run.origin, "compute") : null;
        this.hover(facts && { row, facts }, this.view.x(time - (row?.run.origin ?? 0)),
          (row?.y ?? 0) + this.lanes.getBoundingClientRect().top + AXIS);
        return facts;
      },
    };
  }
}

window.counterflow = new Timeline(JSON.parse(element("data").textContent)).handle;
document.body.dataset.ready = "1";
