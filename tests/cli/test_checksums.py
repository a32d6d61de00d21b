"""Every byte that the examples compile to, by SHA-256.

The sums stand in tests/data/checksums.txt. When an output is meant to change, write them anew and
read the difference:

    python3 tests/cli/test_checksums.py          # uses COUNTERFLOW_BIN or build/dev/counterflow
    git diff tests/data/checksums.txt
"""

import base64
import gzip
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import DATA, EXAMPLES, ROOT, TIMEOUT_S, binary

SUMS = DATA / "checksums.txt"


COLUMNS = re.compile(rb'(?<=<script id="columns" type="text/plain">)[^<]*')


def unpacked(content: bytes) -> bytes:
    """A page's columns as they are before compression, which versions of zlib do differently."""
    return COLUMNS.sub(lambda found: gzip.decompress(base64.b64decode(found[0])), content)


def compiled(folder: Path) -> dict[str, str]:
    """{"example/file": sum} of every example, compiled into a folder."""
    sums = {}
    for example in sorted(EXAMPLES.glob("*.yaml")):
        out = folder / example.stem
        # From the root of the project, so that no path of this machine comes into a message.
        subprocess.run(
            [binary(), "compile", example.relative_to(ROOT), "-q", "-o", out],
            cwd=ROOT, check=True, timeout=TIMEOUT_S,
        )
        for path in sorted(out.iterdir()):
            name = f"{example.stem}/{path.name}"
            sums[name] = hashlib.sha256(unpacked(path.read_bytes())).hexdigest()
    return sums


def recorded() -> dict[str, str]:
    lines = SUMS.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def test_examples_compile_to_the_recorded_bytes(tmp_path):
    now, then = compiled(tmp_path), recorded()
    assert now, f"no examples in {EXAMPLES}"
    changed = [name for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name)]
    assert not changed, f"changed: {changed}; if that is meant: python3 {Path(__file__).name}"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        sums = compiled(Path(folder))
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    SUMS.write_text(text, encoding="utf-8")
    print(f"{SUMS.relative_to(ROOT)}: {len(sums)} files")
    return 0 if sums else 1


if __name__ == "__main__":
    sys.exit(main())
