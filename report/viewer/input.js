// Hand and key: events become calls of the page's methods.

class Input {
  constructor(app) {
    this.app = app;
    this.drag = null;
    this.listenToLanes(element("lanes"));
    this.listenToButtons();
    this.listenToSearch(element("search"));
    app.scroller.addEventListener("scroll", () => app.changed());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => app.resize());
    addEventListener("hashchange", () => app.follow(location.hash));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.applyTheme());
  }

  listenToLanes(lanes) {
    lanes.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    lanes.addEventListener("pointerdown", (event) => {
      lanes.setPointerCapture(event.pointerId);
      this.grab(event);
    });
    lanes.addEventListener("pointermove", (event) => this.move(event));
    lanes.addEventListener("pointerup", (event) => this.release(event));
    lanes.addEventListener("pointercancel", () => this.letGo());
    lanes.addEventListener("pointerleave", () => {
      this.app.cursor = null;
      this.app.hover(null);
    });
    lanes.addEventListener("dblclick", (event) => {
      const hit = this.app.hit(event.offsetX, event.offsetY);
      if (hit?.mark) this.app.zoomTo(hit.mark);
    });
  }

  listenToButtons() {
    const { app } = this;
    const clicked = (id, action) => element(id).addEventListener("click", action);
    clicked("zoom-in", () => app.zoom(0.6));
    clicked("zoom-out", () => app.zoom(1 / 0.6));
    clicked("fit", () => app.fit());
    clicked("help-button", () => element("help").showModal());
    clicked("details-button", () => app.showDetails());
    clicked("theme-button", () => app.nextTheme());
    clicked("path-button", () => app.togglePath());
    clicked("ranks-button", () => app.toggle("compact"));
    clicked("svg-button", () => saveSvg(app));
    clicked("png-button", () => savePng(app));
    for (const [part, has] of [["memory", "hasMemory"], ["transfers", "hasTransfers"]]) {
      element(`${part}-button`).hidden = !app.runs.some((run) => run[has]);
      clicked(`${part}-button`, () => app.toggle(part));
    }
    element("legend").addEventListener("click", (event) => {
      const token = event.target.closest("[data-kind]")?.dataset.kind;
      if (token) app.toggleKind(token);
    });
  }

  listenToSearch(field) {
    field.addEventListener("input", () => this.app.search(field.value));
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.app.step(event.shiftKey);
      if (event.key !== "Escape") return;
      field.value = "";
      this.app.search("");
      field.blur();
    });
  }

  // ---- Pointer ----

  wheel(event) {
    const { app } = this;
    if (event.offsetX < GUTTER) return;  // the page's own scrolling
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    const dx = event.deltaX * unit, dy = event.deltaY * unit;
    if (event.shiftKey) app.scroller.scrollTop += dy || dx;
    else if (Math.abs(dx) > Math.abs(dy)) app.pan(dx / app.view.width);
    else app.zoom(Math.exp(dy * 0.0015), event.offsetX);
  }

  grab(event) {
    const { view, scroller } = this.app;
    this.drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to,
      scroll: scroller.scrollTop, moved: false };
  }

  move(event) {
    const { app, drag } = this;
    app.cursor = event.offsetX;
    if (!drag) {
      app.hover(app.hit(event.offsetX, event.offsetY), event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.moved ||= Math.hypot(dx, dy) > 4;
    if (!drag.moved) return;
    app.scroller.classList.add("dragging");
    app.hover(null);
    app.scroller.scrollTop = drag.scroll - dy;
    const shift = dx / app.view.scale;
    app.show(drag.from - shift, drag.to - shift);
  }

  letGo() {
    const { drag } = this;
    this.drag = null;
    this.app.scroller.classList.remove("dragging");
    return drag;
  }

  release(event) {
    const drag = this.letGo();
    if (!drag || drag.moved) return;
    const { app } = this;
    const mark = app.hit(event.offsetX, event.offsetY)?.mark ?? null;
    app.select(mark && app.isSelected(mark) ? null : mark);
  }

  // ---- Keys ----

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const { app } = this;
    const { scroller } = app;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.shiftKey && moves[event.key]) {
      event.preventDefault();
      app.walk(...moves[event.key]);
      return;
    }
    const actions = {
      "+": () => app.zoom(0.6), "=": () => app.zoom(0.6), "-": () => app.zoom(1 / 0.6),
      ArrowLeft: () => app.pan(-0.15), ArrowRight: () => app.pan(0.15),
      ArrowUp: () => (scroller.scrollTop -= 60), ArrowDown: () => (scroller.scrollTop += 60),
      PageUp: () => (scroller.scrollTop -= app.height * 0.9),
      PageDown: () => (scroller.scrollTop += app.height * 0.9),
      Home: () => app.show(app.begin, app.begin + app.view.to - app.view.from),
      End: () => app.show(app.end - app.view.to + app.view.from, app.end),
      0: () => app.fit(), "?": () => element("help").showModal(),
      "/": () => element("search").focus(),
      n: () => app.step(false), N: () => app.step(true), f: () => app.showDetails(),
      m: () => app.toggle("memory"), t: () => app.toggle("transfers"),
      r: () => app.toggle("compact"), c: () => app.togglePath(), d: () => app.nextTheme(),
      z: () => app.selected && app.zoomTo(app.selected), Escape: () => app.select(null),
    };
    if (event.target === scroller || event.target === document.body) {
      actions.Enter = () => app.walk(1, 0);
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
