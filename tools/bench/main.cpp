#include <benchmark/benchmark.h>

#include "tools/heap.h"

// Measured with the memory settings of the command itself.
int main(int argc, char** argv) {
  counterflow::keep_freed_memory();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
