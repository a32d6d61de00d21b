#!/usr/bin/env python3
"""A million-op timeline in the viewer: size of the page, time to open it, time of a frame.

Usage: viewer_page.py COUNTERFLOW_BINARY [--ranks 16 --microbatches 31250] [--page FILE.html]

Compiles 1F1B with about 2 * ranks * microbatches compute ops and their transfers, a microbatch's
cost varying from one to the next so that nothing repeats, opens the page in headless Chromium and
draws frames over the whole time, zoomed in by steps, and with a microbatch or a search in focus. A
frame is JavaScript and rasterising together: each ends with a pixel read back. CPU time is the
renderer's, so that it means something on a busy machine too. Without --page the page is made first.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading

CONFIG = """\
units: {{time: us}}
pipeline:
  ranks: {ranks}
  microbatches: {{count: {microbatches}, scale: {scale}}}
  schedule: 1f1b
stages: {{forward: 10, backward_input: 10, backward_weight: 10, activation: 1MiB}}
links: {{latency: 0.7, bandwidth: 50GB/s, message: 50KiB}}
"""

LIMITS = {"page MB": 16, "opens s": 3, "slowest frame ms": 50}

# Runs in the page: tells the server it came from before and after each step.
MEASURE = """
<script>
(async () => {
  const post = (path, value) => fetch(path, {method: "POST", body: JSON.stringify(value)});
  while (!document.body.dataset.ready) await new Promise((go) => setTimeout(go, 2));
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
  await post("/step", {step: "open", wall: performance.now(), repeats: 1});
  const step = async (name, repeats, act) => {
    await post("/step", {step: null});
    let wall = Infinity;
    for (let i = 0; i < repeats; ++i) {
      const begin = performance.now();
      act();
      wall = Math.min(wall, performance.now() - begin);
    }
    await post("/step", {step: name, wall, repeats});
  };
  const frame = (name) => step(`frame: ${name}`, 20, () => counterflow.frame());
  const {from_ns: from, to_ns: to} = counterflow.view();
  await frame("whole");
  for (let zoom = 4; zoom <= 4 ** 8; zoom *= 4) {
    const half = (to - from) / zoom / 2, middle = from + 0.4 * (to - from);
    counterflow.show(middle - half, middle + half);
    await frame(`1/${zoom}`);
  }
  counterflow.show(from, to);
  await step("select an op", 1, () => {
    counterflow.select(3, from + 0.5 * (to - from));
    counterflow.frame();
  });
  await frame("a microbatch's path");
  await step("search", 1, () => {
    counterflow.search("B s3 m100-9000");
    counterflow.frame();
  });
  await frame("a search");
  await post("/done", {ops: counterflow.ops});
})();
</script>
"""


def renderer_seconds(browser: int) -> float:
    """CPU seconds so far of the processes of that browser which run pages."""
    total = 0.0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            command = (stat.parent / "cmdline").read_bytes()
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if b"--type=renderer" in command and int(os.getpgid(int(stat.parent.name))) == browser:
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        cpu = renderer_seconds(server.browser)
        if self.path == "/done":
            server.ops = told["ops"]
            server.done.set()
        elif told["step"]:
            used = (cpu - server.cpu) * 1e3 / told["repeats"]
            server.steps[told["step"]] = {"wall": told["wall"], "cpu": used}
        server.cpu = cpu
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def make_page(binary: str, ranks: int, microbatches: int, folder: pathlib.Path) -> pathlib.Path:
    draw = random.Random(0)
    scale = [round(draw.uniform(0.7, 1.4), 3) for _ in range(microbatches)]
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(ranks=ranks, microbatches=microbatches, scale=scale))
    command = [binary, "compile", config, "-o", folder, "--emit", "html", "-q"]
    subprocess.run(command, check=True)
    return folder / "timeline.html"


def measure(page: pathlib.Path, folder: pathlib.Path) -> tuple[int, dict]:
    """The compute ops of the page, and milliseconds of each step."""
    text = page.read_text(encoding="utf-8")
    (folder / "measured.html").write_text(text.replace("</body>", MEASURE + "</body>"))
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
    )
    server.done, server.steps, server.cpu = threading.Event(), {}, 0.0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
    command += ["--no-zygote", f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0"]
    command += [f"http://127.0.0.1:{server.server_port}/measured.html"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, start_new_session=True, **quiet) as process:
        server.browser = process.pid
        finished = server.done.wait(400)
        process.terminate()
    server.shutdown()
    if not finished:
        raise SystemExit("the page gave no result within 400 s")
    return server.ops, server.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--microbatches", type=int, default=31250)
    parser.add_argument("--page", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        page = args.page or make_page(args.binary, args.ranks, args.microbatches, folder)
        size = page.stat().st_size / 1e6
        ops, steps = measure(page, folder)
    print(f"{ops} compute ops, page {size:.1f} MB; milliseconds, wall (least of repeats) and CPU:")
    for step, times in steps.items():
        print(f"  {step:28} {times['wall']:8.1f} {times['cpu']:8.1f}")
    frames = [times for step, times in steps.items() if step.startswith("frame")]
    figures = {
        "page MB": size,
        "opens s": steps["open"]["wall"] / 1e3,
        "slowest frame ms": max(times["wall"] for times in frames),
    }
    for what, limit in LIMITS.items():
        verdict = "within" if figures[what] <= limit else "OVER"
        print(f"{what}: {figures[what]:.2f}, {verdict} {limit}")


if __name__ == "__main__":
    main()
