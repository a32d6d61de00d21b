// The state of the page in its address, so that a link shows the same again.

// "#from=0&to=5&op=0.2.17&q=F&hide=W&off=memory&path=1&ranks=fit&theme=dark", times in nanoseconds
// of the timeline. Only what differs from a fresh page is named.
function writeLink(state) {
  const parts = new URLSearchParams();
  for (const key of ["from", "to"]) {
    if (state[key] !== null) parts.set(key, String(Math.round(state[key])));
  }
  if (state.op) parts.set("op", state.op.join("."));
  if (state.query) parts.set("q", state.query);
  if (state.hide.length > 0) parts.set("hide", state.hide.join(","));
  if (state.off.length > 0) parts.set("off", state.off.join(","));
  if (state.path) parts.set("path", "1");
  if (state.compact) parts.set("ranks", "fit");
  if (state.theme) parts.set("theme", state.theme);
  if (state.scroll > 0) parts.set("scroll", String(Math.round(state.scroll)));
  return parts.toString();
}

// The state a link names. What is no number, or names nothing, is left out.
function readLink(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (key) => {
    const text = parts.get(key);
    return text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
  };
  const list = (key) => (parts.get(key) ?? "").split(",").filter((each) => each !== "");
  const op = (parts.get("op") ?? "").split(".").map(Number);
  return {
    from: number("from"), to: number("to"),
    op: op.length === 3 && op.every((each) => Number.isInteger(each) && each >= 0) ? op : null,
    query: parts.get("q") ?? "", hide: list("hide").filter((token) => token in KINDS),
    off: parts.has("off") ? list("off") : null, path: parts.get("path") === "1",
    compact: parts.get("ranks") === "fit", scroll: number("scroll") ?? 0,
    theme: ["dark", "light"].find((theme) => theme === parts.get("theme")) ?? null,
  };
}
