"""Pages opened in headless Chromium, asked through a script of the test's own.

One browser serves all tests of a process. It is spoken to over the DevTools protocol, on a pipe,
so an answer is waited for however long it takes: nothing depends on how fast this machine is.
"""

import atexit
import functools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 120

# Runs before the page's own script: an error of the page must not go unseen.
CATCH = (
    "window.faults=[];addEventListener('error',e=>faults.push(e.message));"
    "addEventListener('unhandledrejection',e=>faults.push(String(e.reason)));"
)
# What the test asks, once the page says that it is ready (or has failed).
ASK = """(async () => {
  while (!document.body?.dataset.ready && faults.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  let value = null;
  try { value = await (async () => { %s })(); } catch (error) { faults.push(String(error)); }
  return {value, faults, ready: document.body.dataset.ready ?? null};
})()"""


def browser() -> str:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "the browser tests need Chromium: apt-get install chromium"
    return path


class Chromium:
    """A headless browser and its DevTools pipe: it reads file 3 and writes file 4."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        # Bash moves the ends of the pipes to the numbers that the browser expects.
        command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium"]
        command += [browser(), "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"]
        self.process = subprocess.Popen(
            command,
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.unread = b""
        self.calls = 0

    def close(self):
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()

    def _message(self, deadline: float) -> dict:
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"the browser gave no answer within {TIMEOUT_S} s"
            some = os.read(self.back, 1 << 20)
            assert some, "the browser ended"
            self.unread += some
        line, self.unread = self.unread.split(b"\0", 1)
        return json.loads(line)

    def call(self, method: str, session: str | None = None, **params) -> dict:
        """The result of one DevTools command."""
        self.calls += 1
        number = self.calls
        request = {"id": number, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while (answer := self._message(deadline)).get("id") != number:
            pass  # an event that nobody asked for
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]


@functools.cache
def chromium() -> Chromium:
    started = Chromium()
    atexit.register(started.close)
    return started


def ask(page: Path, script: str, *, size=(1200, 800), fragment="", scheme="light"):
    """What `script` (the body of an async function) returns inside the page, once it is ready.

    Every call opens the page anew, in a context without a past. `scheme` is what the user's
    system prefers, "light" or "dark".
    """
    tab = chromium()
    context = tab.call("Target.createBrowserContext")["browserContextId"]
    try:
        target = tab.call("Target.createTarget", url="about:blank", browserContextId=context)
        session = tab.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        call = functools.partial(tab.call, session=session["sessionId"])
        call("Page.enable")
        call("Page.addScriptToEvaluateOnNewDocument", source=CATCH)
        width, height = size
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        call("Emulation.setDeviceMetricsOverride", **screen)
        prefers = {"name": "prefers-color-scheme", "value": scheme}
        call("Emulation.setEmulatedMedia", features=[prefers])
        call("Page.navigate", url=page.as_uri() + fragment)
        asked = call(
            "Runtime.evaluate", expression=ASK % script, awaitPromise=True, returnByValue=True
        )
    finally:
        tab.call("Target.disposeBrowserContext", browserContextId=context)
    answer = asked["result"]["value"]
    assert answer["faults"] == []
    assert answer["ready"] == "1"
    return answer["value"]
