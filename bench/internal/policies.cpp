// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What it costs to look for work, to move a bubble and to distribute many: the rows of
// `./dev bench policies`. One kernel thread on invented machines; bench/README.md has the meaning of each
// line.
#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "../programs/bench.h"
#include "base/cpu.h"
#include "policies/engine.h"
#include "policies/registry.h"
#include "topology/raw_machine.h"

namespace {

using namespace bosk;
using sched::NestedBubble;
using sched::TreeEntity;
using topology::Kind;

double ns_of_cycles(uint64_t cycles) {
  return static_cast<double>(cycles) * 1e3 / static_cast<double>(base::cycles_per_microsecond());
}

/// Median over many short turns, of which each says what it took: a turn that another process has
/// disturbed does not count.
template <class Turn>
double median_of_turns(Turn&& turn) {
  std::vector<double> samples;
  const double start = now_ns();
  while (now_ns() - start < bench_warm_ns()) turn();
  const double end = now_ns() + int{kBenchSamples} * bench_sample_ns();
  while ((now_ns() < end || samples.size() < 5) && samples.size() < 100'000)
    samples.push_back(turn());
  return bench_median(samples.data(), static_cast<int>(samples.size()));
}

/// A machine with an engine on it.
class World {
 public:
  /// Arities by level; the last one's are PUs.
  World(const std::vector<std::pair<Kind, uint32_t>>& levels, const char* plan_text) {
    topology::RawMachine raw;
    raw.reader = "invented";
    const uint32_t root = raw.add(Kind::kMachine, topology::kNone, topology::kNone);
    grow(raw, root, levels, 0);
    topology::Error error;
    machine_ = topology::build_machine(raw, nullptr, &error);
    policies::PolicyPlan plan;
    if (machine_ == nullptr || !queues_.build(*machine_) ||
        !policies::make_plan(plan_text, *machine_, &plan, &error) ||
        !engine_.start(queues_, plan, {}, &error))
      bench_fail("no invented machine");
  }
  ~World() {
    engine_.stop();
    for (uint32_t d = 0; d < machine_->n_domains; ++d) queues_.of(d).first = nullptr;
    queues_.release();
    topology::free_machine(machine_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  policies::PolicyEngine& engine() { return engine_; }
  const topology::Machine& machine() const { return *machine_; }
  sched::RunQueue& queue(uint32_t domain) const { return queues_.of(domain); }
  sched::QueuePath path(uint32_t pu) const { return queues_.path(pu); }

 private:
  void grow(topology::RawMachine& raw, uint32_t parent,
            const std::vector<std::pair<Kind, uint32_t>>& levels, size_t at) {
    if (at == levels.size()) return;
    const auto [kind, arity] = levels[at];
    for (uint32_t i = 0; i < arity; ++i) {
      const bool is_pu = at + 1 == levels.size();
      const uint32_t object = raw.add(kind, parent, is_pu ? next_pu_++ : topology::kNone);
      if (kind == Kind::kNode &&
          !raw.nodes.push({object, next_node_++, uint64_t{1} << 30, true, ""}))
        bench_fail("out of memory");
      grow(raw, object, levels, at + 1);
    }
  }

  topology::Machine* machine_ = nullptr;
  sched::DomainQueues queues_;
  policies::PolicyEngine engine_;
  uint32_t next_pu_ = 0;
  uint32_t next_node_ = 0;
};

/// ns of PolicyEngine::next() on a machine of so many levels, threads waiting on all of them.
double search_ns(uint32_t levels) {
  const Kind kinds[] = {Kind::kPackage, Kind::kNode, Kind::kL3, Kind::kL2, Kind::kCore};
  std::vector<std::pair<Kind, uint32_t>> shape;
  for (uint32_t i = 0; i + 2 < levels; ++i) shape.emplace_back(kinds[i], 2);
  shape.emplace_back(Kind::kPu, 2);
  World world(shape, "burst");
  const sched::QueuePath path = world.path(0);
  if (path.length != levels) bench_fail("the machine has not the levels that were asked for");
  TreeEntity threads[64];
  return median_of_turns([&] {
    uint32_t level = 0;
    for (TreeEntity& thread : threads) path.queue[level++ % levels]->enqueue(&thread);
    const uint64_t start = base::cycles();
    uint32_t found = 0;
    while (world.engine().next(0).entity != nullptr) ++found;
    const uint64_t took = base::cycles() - start;
    if (found != 64) bench_fail("a thread was lost");
    return ns_of_cycles(took) / 65;  // the last search finds nothing
  });
}

/// us until an idle PU has fetched a bubble of so many threads from the other node, closed it and burst
/// it near itself, and has one of the threads.
double regenerate_us(uint32_t members) {
  World world({{Kind::kNode, 2}, {Kind::kCore, members}, {Kind::kPu, 2}}, "burst");
  world.engine().set_damping({.settle_ns = 0, .worth_ns = 0});
  NestedBubble root;
  NestedBubble bubble;
  sched::insert(root, bubble);
  std::deque<TreeEntity> threads(members);
  for (TreeEntity& thread : threads) sched::insert(bubble, thread);
  world.engine().wake(root, 0);
  uint32_t pu = 0;
  sched::Found found = world.engine().next(pu);
  const double ns = median_of_turns([&] {
    auto* thread = static_cast<TreeEntity*>(found.entity);
    if (thread == nullptr) bench_fail("the bubble was not found");
    const uint32_t was_on = found.queue->domain;
    sched::requeue(*thread, *found.queue);
    pu = pu == 0 ? world.machine().n_pus / 2 : 0;
    const uint64_t start = base::cycles();
    if (!world.engine().idle(pu)) bench_fail("the idle PU has pulled nothing");
    found = world.engine().next(pu);
    const uint64_t took = base::cycles() - start;
    if (found.queue == nullptr || found.queue->domain == was_on ||
        found.queue->length != members - 1)
      bench_fail("the bubble did not move as a whole");
    return ns_of_cycles(took);
  });
  // The damping must have been off: every turn was a regeneration.
  if (world.engine().evolution_counts().settled != 0) bench_fail("a bubble was let alone");
  return ns / 1e3;
}

struct Distribution {
  double submit_ms = 0;
  double close_ms = 0;
};

/// A tree of so many entities over 1,024 PUs, by spread; and closing it all again.
Distribution distribute_ms(uint32_t entities) {
  World world({{Kind::kNode, 16}, {Kind::kL3, 4}, {Kind::kCore, 8}, {Kind::kPu, 2}}, "spread");
  std::mt19937 random(1);
  std::deque<NestedBubble> bubbles(entities / 8);
  for (uint32_t i = 1; i < bubbles.size(); ++i) sched::insert(bubbles[random() % i], bubbles[i]);
  std::deque<TreeEntity> threads(entities - static_cast<uint32_t>(bubbles.size()));
  for (TreeEntity& thread : threads) {
    thread.figures.load = 1 + random() % 20;
    sched::insert(bubbles[random() % bubbles.size()], thread);
  }
  world.engine().wake(bubbles[0], 0);
  std::vector<double> submit;
  std::vector<double> close;
  for (int i = 0; i < 2 * kBenchSamples + 1; ++i) {
    const double start = now_ns();
    const sched::Found found = world.engine().next(0);
    const double distributed = now_ns();
    if (found.entity == nullptr) bench_fail("nothing came out of the tree");
    sched::requeue(*static_cast<TreeEntity*>(found.entity), *found.queue);
    const double closing = now_ns();
    world.engine().redistribute();
    const double closed = now_ns();
    if (bubbles[0].state != sched::BubbleState::kClosed) bench_fail("the tree did not close");
    if (i == 0) continue;  // that one has paged the memory in
    submit.push_back((distributed - start) / 1e6);
    close.push_back((closed - closing) / 1e6);
  }
  return {bench_median(submit.data(), static_cast<int>(submit.size())),
          bench_median(close.data(), static_cast<int>(close.size()))};
}

}  // namespace

int main() {
  char name[32];
  for (uint32_t levels = 2; levels <= 7; ++levels) {
    snprintf(name, sizeof name, "search-%u", levels);
    bench_print(name, search_ns(levels), "ns");
  }
  bench_print("regenerate-8", regenerate_us(8), "us");
  bench_print("regenerate-64", regenerate_us(64), "us");
  const Distribution d = distribute_ms(100'000);
  bench_print("distribute-100000", d.submit_ms, "ms");
  bench_print("close-100000", d.close_ms, "ms");
  return 0;
}
