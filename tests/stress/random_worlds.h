// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs random worlds, each of which checks itself, on several pthreads at once.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace bosk::test {

/// Calls run_world(seed) `rounds` times on the caller and on each of `others` pthreads beside it, each time with another
/// seed. BOSK_STRESS_SEED, which a failure names, repeats the seeds.
template <class F>
void run_worlds(uint32_t others, uint32_t rounds, F&& run_world) {
  const char* given = getenv("BOSK_STRESS_SEED");
  const uint32_t first = given != nullptr ? static_cast<uint32_t>(strtoul(given, nullptr, 10))
                                          : std::random_device{}();
  const std::string seed = "BOSK_STRESS_SEED=" + std::to_string(first);
  SCOPED_TRACE(seed);
  std::vector<std::thread> pthreads;
  pthreads.reserve(others);
  for (uint32_t i = 0; i < others; ++i)
    pthreads.emplace_back([&run_world, &seed, first, rounds, i] {
      SCOPED_TRACE(seed);  // traces are a thread's own
      for (uint32_t round = 0; round < rounds; ++round) run_world(first + 1000 * i + round);
    });
  for (uint32_t round = 0; round < rounds; ++round) run_world(first + 100000 + round);
  for (std::thread& pthread : pthreads) pthread.join();
}

}  // namespace bosk::test
