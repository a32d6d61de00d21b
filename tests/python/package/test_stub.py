"""The stub file says what the built module has: names by mypy's stubtest, parameters here."""

import ast
import inspect
import re
import subprocess
import sys

import pytest
from package import ROOT, load, need

cf = load()
STUB = ROOT / "python" / "counterflow" / "_core.pyi"
SOURCES = ["python", "examples/python", "tests/python/package"]


def stub_parameters():
    """{qualified name: its parameters without self} of the stub."""
    found = {}

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, node.name + ".")
            elif isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(each) for each in node.decorator_list}
                if "property" in decorators:
                    continue
                names = [each.arg for each in node.args.args + node.args.kwonlyargs]
                found[prefix + node.name] = [each for each in names if each != "self"]

    visit(ast.parse(STUB.read_text()).body, "")
    return found


def built_parameters(function):
    """The names pybind11 writes in the first line of a docstring; None for what is not bound."""
    line = (inspect.getdoc(function) or "").splitlines()
    match = re.match(r"\w+\((.*)\) -> ", line[0]) if line else None
    if not match:
        return None
    names = re.findall(r"(?:^|, )(\w+)(?=: | = |, |$)", strip_brackets(match.group(1)))
    return [each for each in names if each != "self"]


def strip_brackets(text):
    """Without what stands in brackets, where commas separate other things."""
    while True:
        shorter = re.sub(r"\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def test_parameters_are_those_of_the_module():
    checked = 0
    for name, expected in stub_parameters().items():
        owner, _, function = name.rpartition(".")
        bound = getattr(getattr(cf._core, owner) if owner else cf._core, function)
        built = built_parameters(bound)
        if built is None or function in ("__eq__", "__hash__", "__len__", "__bool__", "__copy__"):
            continue
        assert built == expected, name
        checked += 1
    assert checked > 60


def test_names_are_those_of_the_module(tmp_path):
    need("mypy")
    # pybind11's own: its metaclass, and the (*args, **kwargs) of a class that cannot be made.
    allowed = tmp_path / "allowed.txt"
    allowed.write_text("counterflow\\._core\\.[A-Z][A-Za-z]+(\\.__init__)?\n")
    arguments = ["--concise", "--allowlist", allowed, "--ignore-unused-allowlist"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *arguments, "counterflow._core"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mypy", []),
        ("ruff", ["check", *SOURCES]),
        ("ruff", ["format", "--check", *SOURCES]),
    ],
)
def test_sources_are_clean(tool, arguments):
    need(tool)
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
