// The page itself: its state and what may be done to it.

const MANY_OPS = 2e5;
const BUTTON = { compact: "ranks" };  // buttons that are not named after what they toggle

class Timeline {
  constructor({ palette, runs }) {
    this.palette = palette;
    this.runs = runs;
    this.begin = Math.min(...runs.map((run) => run.begin));
    this.end = Math.max(...runs.map((run) => run.end));
    this.scroller = element("scroller");
    this.canvas = element("lanes");
    this.view = new View(this.begin, this.end, 1);
    this.selected = this.hovered = null;  // marks: {row, strip, lane, instruction}
    this.cursor = null;                   // x of the pointer over the lanes
    this.hidden = new Set();              // kinds
    this.query = "";
    this.found = this.path = this.filter = null;  // layers
    // Side by side the lanes matter most.
    this.shown = { memory: runs.length === 1, transfers: runs.length === 1, compact: false };
    this.fresh = this.partsOff();
    this.minimap = new Minimap(this);
    fillHeader(runs);
    fillSummary(runs);
    this.follow(location.hash, true);
    this.input = new Input(this);
    listenToPrint(this);
    this.fillIdle();
  }

  get ops() {
    return this.runs.reduce((sum, run) => sum + run.lanes.reduce(
      (ops, { compute }) => ops + compute.count, 0), 0);
  }

  // What takes a moment at a million ops waits there until it is asked for, and says so.
  fillIdle() {
    const small = this.ops < MANY_OPS;
    if (small) for (const run of this.runs) this.countSlack(run);
    if (this.runs.length > 1) return;
    element("idle").textContent = small ? idleLine(this.runs[0]) : laterLine(this.runs[0], this.ops);
  }
  countSlack(run) {
    if (run.graph.isKnown) run.slack ??= slackOf(run);
  }

  // ---- Drawing ----------------------------------------------------------------------------------

  applyTheme() {
    const root = document.documentElement;
    if (this.chosenTheme) root.dataset.theme = this.chosenTheme;
    else delete root.dataset.theme;
    this.resize();
  }
  nextTheme() {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!this.chosenTheme && matchMedia("(prefers-color-scheme: dark)").matches);
    this.chosenTheme = isDark ? "light" : "dark";
    this.applyTheme();
    this.changed();
  }

  resize() {
    const { scroller, view } = this;
    this.height = scroller.clientHeight;
    this.layout = layOut(this.runs, this.height, this.shown);
    element("spacer").style.height = `${Math.max(this.layout.height + AXIS, this.height)}px`;
    view.width = scroller.clientWidth;
    this.theme = readTheme();
    this.painter = new Painter(sizedContext(this.canvas, view.width, this.height), this.theme);
    this.minimap.paint(this.theme);
    this.selected = this.renewed(this.selected);
    this.hovered = null;
    this.draw();
  }
  // A mark in the present layout.
  renewed(mark) {
    return mark && this.markOf(mark.lane, mark.instruction);
  }
  markOf(lane, instruction) {
    const row = this.layout.rows.find((each) => each.lane === lane);
    const strip = row?.strips.find(({ boxes }) => boxes.place(instruction) >= 0);
    return strip ? { row, strip, lane, instruction } : null;
  }

  // What the painter marks; see Painter.frame.
  marks() {
    const { selected, hovered, filter } = this;
    const layer = this.path ?? this.found ?? this.trail;
    return { layer, filter, selected, hovered, arrows: this.arrows };
  }

  draw() {
    for (const part of Object.keys(this.shown)) {
      element(`${BUTTON[part] ?? part}-button`).setAttribute("aria-pressed", this.shown[part]);
    }
    element("path-button").setAttribute("aria-pressed", this.path !== null);
    this.view.scroll = this.scroller.scrollTop;
    this.painter.frame(this.layout, this.view, this.height, this.marks());
    this.minimap.place();
    this.isWaiting = false;
  }
  redraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => this.draw());
  }
  // Something a link names has changed.
  changed() {
    this.redraw();
    clearTimeout(this.linking);
    this.linking = setTimeout(() => this.writeLink(), 200);
  }

  // ---- Moving -----------------------------------------------------------------------------------

  show(from, to) {
    const whole = this.end - this.begin;
    const length = Math.min(Math.max(to - from, Math.min(50, whole)), whole);
    const first = Math.min(Math.max(from, this.begin), this.end - length);
    Object.assign(this.view, { from: first, to: first + length });
    this.changed();
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
  zoomTo({ lane, instruction }) {
    const begin = lane.begin[instruction];
    const length = Math.max(lane.end[instruction] - begin, 1);
    this.show(begin - 4 * length, begin + 5 * length);
  }
  // Moves as little as needed for a mark to be seen.
  reveal({ lane, instruction, row }) {
    const { view, scroller } = this;
    const begin = lane.begin[instruction], end = lane.end[instruction];
    const margin = (view.to - view.from) * 0.05;
    if (end > view.to - margin || begin < view.from) {
      const half = (view.to - view.from) / 2;
      this.show((begin + end) / 2 - half, (begin + end) / 2 + half);
    }
    if (row.y < scroller.scrollTop || row.bottom + AXIS > scroller.scrollTop + this.height) {
      scroller.scrollTop = row.y - this.height / 2;
    }
  }

  // ---- Hovering and selecting -------------------------------------------------------------------

  // What lies at a point of the canvas: {row, facts, mark}, mark being null where no box is.
  hit(x, y) {
    if (x < GUTTER || y < AXIS) return null;
    const time = this.view.time(x), at = y - AXIS + this.view.scroll;
    const row = this.layout.rows.find(({ y: top, bottom }) => at >= top && at < bottom);
    if (!row) return null;
    const strip = row.strips.find(({ y: top, height }) => at >= top && at < top + height);
    if (!strip) {
      return row.memory > 0 && at >= row.memoryY
        ? { row, facts: factsAt(row, time, "memory"), mark: null } : null;
    }
    return this.hitStrip(row, strip, time);
  }
  hitStrip(row, strip, time) {
    const facts = factsAt(row, time, strip.part, strip.boxes);
    const mark = facts?.instruction === undefined ? null
      : { row, strip, lane: row.lane, instruction: facts.instruction };
    return { row, facts, mark };
  }

  // Shows the card of a hit at a point of the window; null hides it.
  hover(hit, clientX = 0, clientY = 0) {
    const before = this.hovered;
    this.hovered = hit?.mark ?? null;
    if (before?.row !== this.hovered?.row || before?.instruction !== this.hovered?.instruction) {
      this.redraw();
    }
    const card = element("card");
    card.hidden = !hit?.facts;
    if (card.hidden) return;
    const { lane } = hit.row;
    card.innerHTML = cardHtml(hit.facts, lane, this.runs.filter((run) => run !== lane.run));
    const { width, height } = card.getBoundingClientRect();
    const left = clientX + 16 + width > innerWidth ? clientX - 16 - width : clientX + 16;
    const top = Math.min(clientY + 14, innerHeight - height - 8);
    card.style.left = `${Math.max(left, 4)}px`;
    card.style.top = `${Math.max(top, 4)}px`;
  }

  isSelected({ lane, instruction }) {
    return this.selected?.lane === lane && this.selected.instruction === instruction;
  }
  // Highlights an op, its dependencies and its microbatches' whole path; null lets go.
  select(mark) {
    this.selected = mark;
    this.trail = this.arrows = null;
    if (mark) {
      const { lane, instruction } = mark, { run } = lane, { graph } = run;
      this.countSlack(run);
      const microbatches = lane.ops(instruction).map(({ microbatch }) => microbatch)
        .filter((microbatch) => microbatch !== null);
      if (microbatches.length > 0) this.trail = microbatchLayer(run, microbatches);
      const node = graph.node(lane, instruction);
      if (lane.isCompute(instruction)) this.arrows = { run, ...dependencyPairs(graph, node) };
    }
    announce(mark && boxFacts(mark.lane, mark.instruction));
    this.changed();
  }
  // From op to op with the keys: `along` a rank, `across` to the rank above or below.
  walk(along, across) {
    const { selected, layout, view } = this;
    if (!selected) {
      const row = layout.rows.find(({ y, bottom }) => bottom > view.scroll && y >= 0);
      const boxes = row?.lane.compute;
      const first = boxes && Math.min(boxes.from(view.from), boxes.count - 1);
      if (first >= 0) this.go(row.lane, boxes.index[first]);
      return;
    }
    const { lane, instruction } = selected;
    const row = layout.rows[layout.rows.indexOf(selected.row) + across];
    const target = across === 0 ? lane : row?.lane;
    if (!target || target.compute.count === 0) return;
    const at = lane.compute.place(instruction);
    const place = across === 0 ? at + along
      : target.compute.from((lane.begin[instruction] + lane.end[instruction]) / 2);
    const last = target.compute.count - 1;
    this.go(target, target.compute.index[Math.min(Math.max(place, 0), last)]);
  }
  go(lane, instruction) {
    const mark = this.markOf(lane, instruction);
    this.select(mark);
    if (mark) this.reveal(mark);
  }

  // ---- Choosing what is shown -------------------------------------------------------------------

  toggle(part) {
    this.shown[part] = !this.shown[part];
    this.resize();
    this.changed();
  }
  toggleKind(token) {
    if (!this.hidden.delete(token)) this.hidden.add(token);
    this.applyHidden();
    this.changed();
  }
  applyHidden() {
    this.filter = this.hidden.size > 0 ? kindLayer(this.hidden) : null;
    fillLegend(this.runs, this.palette, this.hidden);
    if (this.layout) this.minimap.paint(this.theme);
  }
  togglePath(wanted = this.path === null) {
    this.path = wanted ? pathLayer(this.runs) : null;
    this.sayPath();
    this.changed();
  }
  sayPath() {
    if (!this.path) {
      element("note").textContent = "";
      return;
    }
    const { graph, criticalPath: path } = this.runs[0];
    const times = pathTimes(graph, path);
    element("note").textContent = path.length === 0 ? "dependencies are not known" :
      `critical path: ${count(path.length, "step")}, compute ${readableTime(times.compute)}, ` +
      `transfers ${readableTime(times.transfer)}` +
      (times.other > 0 ? `, queues ${readableTime(times.other)}` : "");
  }
  // Highlights what a query finds; returns how many compute ops that are.
  search(query) {
    this.query = query;
    const { test, unknown } = parseQuery(query);
    this.found = test ? new Layer(test) : null;
    const ops = test ? foundIn(this.runs, this.found) : 0;
    element("found").textContent = unknown ? `no “${unknown}”` : test ? count(ops, "op") : "";
    element("search").setAttribute("aria-invalid", unknown !== null);
    this.changed();
    return ops;
  }
  // Selects the next op found.
  step(backwards) {
    if (!this.found) return;
    const next = nextFound(this.runs, this.found, this.selected, backwards);
    if (next) this.go(next.lane, next.instruction);
  }
  showDetails() {
    fillDetails(this.runs);
    element("details").showModal();
    // The table has counted it.
    if (this.runs.length === 1) element("idle").textContent = idleLine(this.runs[0]);
  }

  // ---- Links ------------------------------------------------------------------------------------

  partsOff() {
    return ["memory", "transfers"].filter((part) => !this.shown[part]);
  }
  get link() {
    const { view, selected, runs } = this;
    const [{ origin }] = runs;
    const whole = view.from <= this.begin && view.to >= this.end;
    const off = this.partsOff();
    return writeLink({
      from: whole ? null : view.from + origin, to: whole ? null : view.to + origin,
      op: selected && [runs.indexOf(selected.lane.run), selected.lane.rank, selected.instruction],
      query: this.query, hide: [...this.hidden], theme: this.chosenTheme,
      off: off.join() === this.fresh.join() ? [] : off.length > 0 ? off : ["none"],
      path: this.path !== null, compact: this.shown.compact, scroll: this.scroller.scrollTop,
    });
  }
  writeLink() {
    const { link } = this;
    if (location.hash.slice(1) !== link) {
      const bare = location.pathname + location.search;
      history.replaceState(null, "", link === "" ? bare : `#${link}`);
    }
  }
  // The stretch of time a link names, or the whole, where it names none of this timeline.
  showLinked({ from, to }) {
    const { origin } = this.runs[0];
    const first = from === null ? this.begin : from - origin;
    const last = to === null ? this.end : to - origin;
    const isThere = first < last && first < this.end && last > this.begin;
    this.show(isThere ? first : this.begin, isThere ? last : this.end);
  }
  // Shows what a link names.
  follow(hash, isFresh = false) {
    if (!isFresh && hash.slice(1) === this.link) return;
    const state = readLink(hash);
    this.chosenTheme = state.theme;
    for (const part of ["memory", "transfers"]) {
      this.shown[part] = !(state.off ?? this.fresh).includes(part);
    }
    this.shown.compact = state.compact;
    this.hidden = new Set(state.hide);
    this.applyHidden();
    this.applyTheme();
    this.showLinked(state);
    element("search").value = state.query;
    this.search(state.query);
    this.togglePath(state.path);
    this.scroller.scrollTop = state.scroll;
    const [r, rank, instruction] = state.op ?? [];
    const lane = this.runs[r]?.lanes[rank];
    const isThere = lane && instruction < lane.count && lane.hasRun(instruction);
    this.select(isThere ? this.markOf(lane, instruction) : null);
  }
}

// The arrows of an op: what it needed, and what needs it.
function dependencyPairs(graph, node) {
  return {
    into: graph.needs(node).filter(({ op }) => op >= 0).map(({ op }) => [op, node]),
    out: graph.feeds(node).map(({ op }) => [node, op]),
  };
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: value("paper"), ink: value("ink"), quiet: value("quiet"), rule: value("rule"),
    grid: value("grid"), idle: value("idle"), memory: value("memory"),
    memoryEdge: value("memory-edge"), limit: value("limit"), arrowIn: value("arrow-in"),
    arrowOut: value("arrow-out"), onLight: "#1b212b", onDark: "#ffffff", font: value("font"),
  };
}
