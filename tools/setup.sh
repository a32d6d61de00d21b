#!/usr/bin/env bash
# Installs what is missing, nothing else: packages by apt, Python packages into .venv.
# Usage: tools/setup.sh build | test     (test includes build)
# Debian 12 and 13, as root or with sudo. Running it again costs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(g++ cmake ninja-build libboost-graph-dev libyaml-cpp-dev libfmt-dev
  nlohmann-json3-dev libcli11-dev zlib1g-dev libgloo-dev)
test_packages=(libgtest-dev libbenchmark-dev graphviz python3 python3-dev python3-venv chromium
  fonts-dejavu-core clang libclang-rt-dev)
torch_version=2.13.0  # the tests against PyTorch; its wheels for Python 3.11

say() { printf 'setup: %s\n' "$*" >&2; }

install_packages() {
  local missing=() package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [[ $status == "install ok installed" ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      say "missing packages: ${missing[*]}; run this as root, or install sudo"
      exit 4
    fi
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Torch is large and comes as a wheel for one Python: without it the tests that need it are left out,
# aloud; COUNTERFLOW_REQUIRE_TORCH=1 makes its absence an error.
install_torch() {
  local python=.venv/bin/python
  $python -c "import torch; assert torch.__version__.split('+')[0] == '$torch_version'" \
    2>/dev/null && return 0
  local minor
  minor=$($python -c 'import sys; print(sys.version_info.minor)')
  if [[ ${COUNTERFLOW_REQUIRE_TORCH:-0} != 1 && $minor -ne 11 ]]; then
    say "Python 3.$minor: torch $torch_version is not installed, tests against PyTorch are left out"
    return 0
  fi
  say "installing torch $torch_version"
  if ! .venv/bin/pip install --quiet --disable-pip-version-check "torch==$torch_version" numpy scipy; then
    [[ ${COUNTERFLOW_REQUIRE_TORCH:-0} != 1 ]] || exit 4
    say "torch $torch_version could not be installed, tests against PyTorch are left out"
  fi
}

install_python() {
  [[ -x .venv/bin/pip ]] || python3 -m venv .venv
  .venv/bin/python -c 'import pytest, xdist, numpy, scikit_build_core, pybind11, mypy, ruff' 2>/dev/null ||
    .venv/bin/pip install --quiet --disable-pip-version-check pytest pytest-xdist numpy scikit-build-core \
      pybind11 mypy ruff
  install_torch
}

case "${1:-}" in
  build) install_packages "${build_packages[@]}" ;;
  test)
    install_packages "${build_packages[@]}" "${test_packages[@]}"
    install_python
    ;;
  *)
    say "usage: tools/setup.sh build | test"
    exit 2
    ;;
esac
