"""Pages opened in headless Chromium, asked through a script of the test's own."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

TIMEOUT_S = 120

# Runs before the page's own script: an error of the page must not go unseen.
CATCH = (
    "<script>window.faults=[];addEventListener('error',e=>faults.push(e.message));"
    "addEventListener('unhandledrejection',e=>faults.push(String(e.reason)));</script>"
)
# Runs after it: what the test asks, answered in an element of its own.
ASK = """<script>
(async () => {
  const answer = document.createElement("pre");
  answer.id = "answer";
  let value = null;
  while (!document.body.dataset.ready && faults.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  try { value = await (async () => { %s })(); } catch (error) { faults.push(String(error)); }
  answer.textContent = JSON.stringify({value, faults, ready: document.body.dataset.ready ?? null});
  document.body.append(answer);
})();
</script>"""


def browser() -> str:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "the browser tests need Chromium: apt-get install chromium"
    return path


def ask(page: Path, script: str, *flags: str, size=(1200, 800), fragment=""):
    """What `script` (the body of an async function) returns inside the page, once it is ready."""
    text = page.read_text(encoding="utf-8")
    text = text.replace("<head>", "<head>" + CATCH, 1)
    text = text.replace("</body>", (ASK % script) + "</body>")
    asked = page.with_suffix(".asked.html")
    asked.write_text(text, encoding="utf-8")
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--virtual-time-budget=5000", f"--user-data-dir={page.parent / 'profile'}"]
    command += [f"--window-size={size[0]},{size[1]}"]
    command += [*flags, "--dump-dom", asked.as_uri() + fragment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page gave no answer\n{done.stderr[-2000:]}"
    answer = json.loads(unescape(found.group(1)))
    assert answer["faults"] == []
    assert answer["ready"] == "1"
    return answer["value"]
