// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moving threads is measured where there is somewhere to go.
#include "threads/move_probe.h"

#include <gtest/gtest.h>

#include "in_child.h"

namespace bosk::threads {
namespace {

std::string measured() {
  memory::ThreadMoveCost cost;
  if (!measure_thread_move(true, &cost)) return "nothing";
  const bool good = cost.fixed_ns.source == memory::CostSource::kMeasured &&
                    cost.each_ns.source == memory::CostSource::kMeasured &&
                    cost.fixed_ns.value >= 1 && cost.each_ns.value >= 1;
  return good ? "figures" : "nonsense";
}

TEST(ThreadMoves, AreMeasuredBetweenPus) {
  for (const char* machine : {"core:2 pu:1", "node:2 core:1 pu:1", "node:2 core:2 pu:2"}) {
    SCOPED_TRACE(machine);
    const auto r =
        testing::in_child({{"BOSK_SYNTHETIC", machine}, {"BOSK_WORKERS", "8"}}, measured);
    EXPECT_EQ(r.output, "figures") << r.errors;
  }
}

TEST(ThreadMoves, AreNotMeasuredOnOnePu) {
  const auto r = testing::in_child({{"BOSK_SYNTHETIC", "core:1 pu:1"}}, measured);
  EXPECT_EQ(r.output, "nothing") << r.errors;
}

}  // namespace
}  // namespace bosk::threads
