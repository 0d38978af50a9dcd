// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GoogleTest expectations about models.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "checker.h"

namespace model {

/// Without an optimiser, or under a sanitizer, exploring takes ten to a hundred times as long.
#if !defined(__OPTIMIZE__) || defined(MODEL_ASAN) || defined(MODEL_TSAN)
inline constexpr bool kSlowBuild = true;
#else
inline constexpr bool kSlowBuild = false;
#endif

/// Every execution of the body is right.
inline void expect_proved(const Options& options, const std::function<void()>& body) {
  const Result r = explore(options, body);
  std::cout << r.executions << " executions, " << r.pruned << " pruned\n";
  EXPECT_FALSE(r.failed) << r.failure;
  EXPECT_TRUE(r.complete && !r.bounded) << "not all executions were explored";
}

/// The same for a model of more than some ten thousand executions: slow builds take a sample.
inline void expect_big_proved(const Options& options, const std::function<void()>& body) {
  if (!kSlowBuild) return expect_proved(options, body);
  Options sample = options;
  sample.random_walks = 200;
  const Result r = explore(sample, body);
  std::cout << "slow build: " << r.executions << " random executions only\n";
  EXPECT_FALSE(r.failed) << r.failure;
}

inline void expect_failure(const Options& options, const std::function<void()>& body,
                           const std::string& text) {
  const Result r = explore(options, body);
  EXPECT_TRUE(r.failed);
  EXPECT_THAT(r.failure, testing::HasSubstr(text));
}

/// Each of the `count` memory orders in `file` matters: weakened, one of the bodies fails. Counting
/// them makes a new one that no body uses stand out.
inline void expect_every_order_matters(const Options& options,
                                       const std::vector<std::function<void()>>& bodies,
                                       const std::string& file, std::size_t count) {
  if (kSlowBuild) GTEST_SKIP() << "mutation runs in optimised builds only";
  const std::vector<Mutant> mutants = mutate(options, bodies, file);
  EXPECT_EQ(mutants.size(), count);
  for (const Mutant& m : mutants) {
    std::cout << m << "\n";
    EXPECT_TRUE(m.caught) << m;
  }
}

}  // namespace model
