#!/usr/bin/env bash
# Everything that can be checked on a CPU, from a bare Debian 12 or 13: installs what is missing,
# builds with warnings as errors, runs all tests, then the C++ and command-line tests again under
# the address and undefined-behaviour sanitizers. Stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }
pytest_labels='^(cli|python|browser)$'  # ctest knows them too; here pytest speaks for itself

run_pytest() {  # run_pytest BINARY FOLDER
  COUNTERFLOW_BIN=$PWD/$1 .venv/bin/python -m pytest -q -rs --strict-markers -p no:cacheprovider \
    -n "$(nproc)" "$2"
}

step 'setup'
tools/setup.sh test
python=$PWD/.venv/bin/python

step 'build: dev'
cmake --preset dev -DBUILD_TESTING=ON -DCOUNTERFLOW_BENCHMARKS=ON -DPython3_EXECUTABLE="$python" \
  >/dev/null
cmake --build --preset dev

step 'C++ tests'
ctest --preset dev --output-on-failure -LE "$pytest_labels"

# By pip, as a user installs it, but from what the dev build has made: only the bindings are compiled.
step 'Python package'
.venv/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps . \
  -C build-dir=build/dev -C cmake.build-type=RelWithDebInfo \
  -C cmake.define.BUILD_TESTING=ON -C cmake.define.COUNTERFLOW_BENCHMARKS=ON
export COUNTERFLOW_REQUIRE_PACKAGE=1

step 'command line, Python and browser tests'
for folder in tests/cli tests/python tests/browser; do
  run_pytest build/dev/counterflow "$folder"
done

step 'build: asan'
cmake --preset asan -DBUILD_TESTING=ON -DPython3_EXECUTABLE="$python" >/dev/null
cmake --build --preset asan

step 'C++ tests under sanitizers'
ctest --preset asan --output-on-failure -LE "$pytest_labels"

step 'command line under sanitizers'
run_pytest build/asan/counterflow tests/cli

step 'fuzzing the readers, briefly'
tools/fuzz.sh 10

step 'all passed'
