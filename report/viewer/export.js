// What is shown as a file of its own, all ranks of it: SVG, PNG, and the page on paper.

const EXPORT_HEAD = 34;

// Draws head and lanes with a context made by context(width, height).
function exportOn(app, theme, context) {
  const { layout } = app;
  const view = Object.assign(new View(app.view.from, app.view.to, app.view.width), { scroll: 0 });
  const height = Math.ceil(layout.height + AXIS);
  const canvas = context(view.width, height + EXPORT_HEAD);
  canvas.fillStyle = theme.paper;
  canvas.fillRect(0, 0, view.width, EXPORT_HEAD);
  canvas.textAlign = "left";
  canvas.font = `600 14px ${theme.font}`;
  canvas.fillStyle = theme.ink;
  const title = element("title").textContent;
  canvas.fillText(title, 18, 22);
  const after = 18 + canvas.measureText(title).width + 14;
  canvas.font = `12px ${theme.font}`;
  canvas.fillStyle = theme.quiet;
  canvas.fillText(app.runs.length > 1 ? "" : headline(app.runs[0].report), after, 22);
  canvas.save();
  canvas.translate(0, EXPORT_HEAD);
  new Painter(canvas, theme).frame(layout, view, height, app.marks());
  canvas.restore();
  return canvas;
}

const headline = (report) => `${element("subtitle").textContent}; makespan ` +
  `${readableTime(report.makespan_ns)}, bubble ${readableShare(report.bubble_fraction)}`;

// The text of an SVG file.
function exportSvg(app, theme = app.theme) {
  return exportOn(app, theme,
    (width, height) => new SvgContext(width, height, `12px ${theme.font}`)).text();
}

// A PNG file at twice the size, less where a canvas could not hold it.
function exportPng(app) {
  const canvas = document.createElement("canvas");
  exportOn(app, app.theme, (width, height) => {
    const ratio = Math.min(2, 16000 / height);
    return Object.assign(sizedContext(canvas, width, height, ratio), { paintWidth: width });
  });
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The name of a file: the title's letters and digits.
const fileName = (extension) =>
  `${document.title.replace(/ - counterflow$/, "").replace(/[^\w.-]+/g, "-")}.${extension}`;

const saveSvg = (app) =>
  download(new Blob([exportSvg(app)], { type: "image/svg+xml" }), fileName("svg"));
const savePng = async (app) => download(await exportPng(app), fileName("png"));

// Paper is white and has no scroll bar: the lanes are printed as SVG in light colours.
function listenToPrint(app) {
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    element("print").innerHTML = exportSvg(app, readTheme());
    app.applyTheme();
  });
  addEventListener("afterprint", () => (element("print").innerHTML = ""));
}
