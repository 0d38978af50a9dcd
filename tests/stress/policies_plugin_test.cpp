// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plug-in that takes bubbles in charge and lets them out from a thread of its own, while workers
// search, end threads, close bubbles and take members out of them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "../plugins/probe.h"
#include "../unit/policy_harness.h"

namespace {

using namespace bosk;
using namespace bosk::test;

constexpr int kRounds = 40;
constexpr const char* kPlugin = BOSK_TEST_PLUGINS "/probe.so";

probe& the_probe() {
  void* handle = dlopen(kPlugin, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  auto* found = static_cast<probe*>(dlsym(handle, "probe"));
  *found = {};
  found->regenerated_domain = BOSK_POLICY_NONE;
  return *found;
}

/// A worker of PU `pu` until `left` threads have ended. Now and then it closes a bubble.
void work(World& world, Tree& tree, std::uint32_t pu, std::uint32_t seed,
          std::atomic<std::size_t>& left) {
  std::mt19937 random(seed);
  while (left.load(std::memory_order_relaxed) != 0) {
    const sched::Found found = world.engine().next(pu);
    if (found.entity == nullptr) {
      world.engine().idle(pu);
      std::this_thread::yield();
      continue;
    }
    auto& thread = *static_cast<sched::TreeEntity*>(found.entity);
    if (random() % 8 == 0) sched::close(tree.bubbles[random() % tree.bubbles.size()]);
    if (random() % 4 == 0) {  // its time slice is over
      sched::requeue(thread, *found.queue);
      continue;
    }
    world.engine().done(thread);
    sched::leave(thread);
    left.fetch_sub(1, std::memory_order_relaxed);
  }
}

TEST(PluginThread, LetsOutWhatItKeepsWhileWorkersSearchAndCloseBubbles) {
  probe& p = the_probe();
  std::uint32_t kept = 0;
  for (int round = 0; round < kRounds; ++round) {
    Tree tree(round, 20, 200);
    World world(lopsided(round), (std::string(kPlugin) + ":thread").c_str());
    // One below each of the domains that the plug-in lets out to: it has no hook that would bring what lies where nobody searches.
    const topology::Domain& root = world.machine().domain_array[0];
    std::atomic<std::size_t> left{tree.threads.size()};
    world.engine().wake(tree.bubbles[0], 0);
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < root.n_children; ++i)
      workers.emplace_back(
          [&, i] { work(world, tree, root.children()[i].first_pu, 1000 * round + i, left); });
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(left.load(), 0u);
    kept += p.found;
  }
  EXPECT_EQ(p.start, kRounds);
  EXPECT_EQ(p.stop, kRounds);
  EXPECT_GE(p.let_out, static_cast<std::uint32_t>(kRounds));
  EXPECT_GE(kept, p.let_out);
}

}  // namespace
