// window.counterflow: what scripts and tests may ask the page.

function handleOf(app) {
  const [first] = app.runs;
  const row = (index) => app.layout.rows[index];
  const factsOf = (rank, time) => {
    const at = row(rank);
    return at ? factsAt(at, time - at.run.origin, "compute") : null;
  };
  return {
    ranks: first.lanes.length,
    ops: first.lanes.reduce((sum, { compute }) => sum + compute.count, 0),
    makespan_ns: first.report.makespan_ns,
    runs: app.runs.map((run) => run.name),
    view: () => ({ from_ns: app.view.from + first.origin, to_ns: app.view.to + first.origin }),
    show: (from, to) => app.show(from - first.origin, to - first.origin),
    // Shows the card of what a lane computes at an instant of the timeline; returns its facts.
    hover: (lane, time) => {
      const facts = factsOf(lane, time);
      app.hover(facts && { row: row(lane), facts, mark: null },
        app.view.x(time - (row(lane)?.run.origin ?? 0)),
        (row(lane)?.y ?? 0) + app.canvas.getBoundingClientRect().top + AXIS);
      return facts;
    },
    // Selects the op a lane computes at an instant, as a click does; returns its dependencies.
    select: (lane, time) => {
      const facts = factsOf(lane, time);
      app.select(facts?.what === "op" ? app.markOf(row(lane).lane, facts.instruction) : null);
      const { run, into = [], out = [] } = app.arrows ?? {};
      const text = (node) => `${run.graph.text(node)}@${run.graph.rank(node)}`;
      return { needs: into.map(([from]) => text(from)), feeds: out.map(([, to]) => text(to)) };
    },
    selected: () => app.selected && app.selected.lane.text(app.selected.instruction),
    // The compute ops that stand out now, by lane.
    highlighted: () => {
      const { layer } = app.marks();
      return layer && app.layout.rows.map(({ lane }) =>
        Array.from(layer.of(lane.compute).index, (i) => lane.text(i)));
    },
    search: (query) => {
      element("search").value = query;
      return app.search(query);
    },
    critical_path: (run = 0) => app.runs[run].criticalPath.map(({ node, from, to }) => ({
      op: node < 0 ? null : app.runs[run].graph.text(node),
      rank: node < 0 ? null : app.runs[run].graph.rank(node), from_ns: from, to_ns: to })),
    idle: (run = 0) => app.runs[run].idleReasons,
    link: () => app.link,
    svg: () => exportSvg(app),
    png: () => exportPng(app),
    // Draws a frame at once, pixels and all; returns its milliseconds.
    frame: () => {
      const begin = performance.now();
      app.draw();
      app.canvas.getContext("2d").getImageData(0, 0, 1, 1);
      return performance.now() - begin;
    },
  };
}

async function open() {
  const head = JSON.parse(element("head").textContent);
  const app = new Timeline(await readData(head, element("columns").textContent));
  window.counterflow = handleOf(app);
  document.body.dataset.ready = "1";
}

open().catch((error) => {
  element("subtitle").textContent = `This page could not be opened: ${error.message}. It needs a ` +
    "browser of 2023 or later.";
  throw error;
});
