// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checker against the axioms of the memory model, on random programs: the same outcomes, with
// and without sleep sets.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "checker/axioms.h"
#include "checker/expect.h"

namespace {

using axioms::Instruction;
using axioms::Program;
using axioms::What;
using A = model::ModelAtomics;
using enum std::memory_order;

std::string show(const Program& program) {
  std::string text;
  for (const auto& thread : program) {
    text += "thread:";
    for (const Instruction& i : thread) {
      static constexpr const char* kNames[] = {" load", " store", " add", " fence"};
      text += kNames[static_cast<int>(i.what)];
      if (i.what != What::kFence) text += i.place == 0 ? "(x" : "(y";
      if (i.what == What::kStore || i.what == What::kAdd) text += "," + std::to_string(i.value);
      if (i.what != What::kFence) text += ")";
      text += std::string(".") + model::show_order(i.order);
    }
    text += "\n";
  }
  return text;
}

model::Result run(const Program& program, const model::Options& options) {
  return model::explore(options, [&program] {
    struct State {
      A::atomic<int> place[axioms::kPlaces];
      std::vector<std::vector<int>> read;
    };
    auto s = std::make_shared<State>();
    s->read.resize(program.size());
    for (std::size_t t = 0; t < program.size(); ++t)
      model::spawn([s, &program, t] {
        for (const Instruction& i : program[t]) {
          auto& place = s->place[i.place];
          if (i.what == What::kLoad) s->read[t].push_back(place.load(i.order));
          if (i.what == What::kStore) place.store(i.value, i.order);
          if (i.what == What::kAdd) s->read[t].push_back(place.fetch_add(i.value, i.order));
          if (i.what == What::kFence) A::fence(i.order);
        }
      });
    model::at_end([s] {
      std::string text;
      for (const auto& thread : s->read)
        for (int value : thread) text += std::to_string(value) + " ";
      for (auto& place : s->place) text += "/" + std::to_string(place.load(relaxed));
      model::outcome(text);
    });
  });
}

enum class SeqCst { kNone, kFences, kAll };

Program random_program(std::mt19937& random, int threads, int operations, SeqCst seq_cst_use) {
  const auto pick = [&](std::initializer_list<std::memory_order> orders) {
    return orders.begin()[random() % orders.size()];
  };
  const bool all = seq_cst_use == SeqCst::kAll;
  Program program(static_cast<std::size_t>(threads));
  for (int n = 0; n < operations; ++n) {
    Instruction i;
    i.place = static_cast<int>(random() % axioms::kPlaces);
    i.value = n + 1;
    const unsigned dice = random() % 10;
    i.what = dice < 4   ? What::kLoad
             : dice < 7 ? What::kStore
             : dice < 8 ? What::kAdd
                        : What::kFence;
    if (seq_cst_use == SeqCst::kFences && n / threads == 1) i.what = What::kFence;
    if (i.what == What::kAdd) i.value = 10 * (n + 1);
    switch (i.what) {
      case What::kLoad:
        i.order = pick({relaxed, acquire, all ? seq_cst : relaxed});
        break;
      case What::kStore:
        i.order = pick({relaxed, release, all ? seq_cst : relaxed});
        break;
      case What::kAdd:
        i.order = pick({relaxed, acquire, release, all ? seq_cst : acq_rel});
        break;
      case What::kFence:
        i.order = seq_cst_use == SeqCst::kNone ? pick({acquire, release, acq_rel}) : seq_cst;
        break;
    }
    program[static_cast<std::size_t>(n % threads)].push_back(i);
  }
  return program;
}

/// `exact`: the checker must show every outcome that the axioms allow, not only no other.
void compare(int programs, int threads, int operations, SeqCst use, bool exact) {
  std::mt19937 random(static_cast<unsigned>(threads * 1000 + operations * 10) +
                      static_cast<unsigned>(use));
  if (model::kSlowBuild) programs /= 20;
  int missed = 0;
  for (int n = 0; n < programs; ++n) {
    const Program program = random_program(random, threads, operations, use);
    const model::Result reduced = run(program, {});
    ASSERT_TRUE(reduced.proved()) << show(program) << reduced.failure;
    if (operations <= 6) {
      ASSERT_EQ(reduced.outcomes, run(program, {.sleep_sets = false}).outcomes) << show(program);
    }
    const std::set<std::string> allowed = axioms::Enumerator(program).outcomes();
    for (const std::string& outcome : reduced.outcomes)
      ASSERT_TRUE(allowed.count(outcome)) << show(program) << "impossible: " << outcome;
    if (exact) {
      ASSERT_EQ(reduced.outcomes, allowed) << show(program);
    }
    missed += reduced.outcomes != allowed;
  }
  std::cout << missed << " of " << programs << " programs have outcomes that the checker misses\n";
}

TEST(Axioms, TwoThreads) { compare(1500, 2, 6, SeqCst::kNone, true); }
TEST(Axioms, TwoLongerThreads) { compare(200, 2, 8, SeqCst::kNone, true); }
TEST(Axioms, ThreeThreads) { compare(1000, 3, 7, SeqCst::kNone, true); }
TEST(Axioms, FourThreads) { compare(200, 4, 7, SeqCst::kNone, true); }
TEST(Axioms, SeqCstFences) { compare(1500, 2, 7, SeqCst::kFences, true); }
TEST(Axioms, SeqCstFencesThreeThreads) { compare(500, 3, 9, SeqCst::kFences, true); }
TEST(Axioms, SeqCstAccesses) { compare(1000, 3, 6, SeqCst::kAll, false); }

}  // namespace
