// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote accesses by where attached memory lies: what threads say that they go over, so often, by a sample of its pages, as
// the kernel knows them. Needs no privilege and no hardware, and sees what nobody has said: pages that were first touched
// after they had been attached, that the kernel or the program has moved, threads that are elsewhere now.
#include "locality/watch.h"
#include "memory/area_table.h"
#include "memory/manager.h"
#include "memory/page_nodes.h"

namespace bosk::locality {
namespace {

/// Of each area for each user; .4 µs each.
constexpr size_t kPagesOfUse = 16;

struct State {
  uint32_t phase = 0;
  base::MappedArray<uint64_t> on;  ///< bytes of an area by node
};
constinit State state;

bool begin() {
  const memory::AreaTable* areas = memory::areas();
  // Of an invented machine's pages nobody can say anything.
  if (areas == nullptr || !areas->nodes().real() || !state.on.resize(areas->nodes().count()))
    return false;
  // Other pages each time, of all in turn: by the golden ratio.
  state.phase += 0x9e3779b1u;
  return true;
}

/// Will stay, whatever is decided: it was put round several nodes.
bool is_spread(const memory::AreaInfo& area) {
  return area.placement == memory::Placement::kInterleaved ||
         area.placement == memory::Placement::kWeighted;
}

void add_use(const memory::AreaTable& areas, const policies::MemoryUser& user,
             const policies::MemoryUse& use, policies::RemoteAmounts* amounts) {
  const memory::AreaInfo& area = use.use.area;
  if (is_spread(area)) return;
  memory::sample_pages(areas.nodes(), area.begin, area.bytes(), kPagesOfUse, state.phase >> 8,
                       state.on.data());
  const double times = policies::rounds_of(use.use.times);
  for (uint32_t node = 0; node < state.on.size(); ++node)
    (node == user.node ? amounts->local : amounts->remote) +=
        times * use.share * static_cast<double>(state.on[node]);
}

bool measure(memory::AreaTable& areas, const Watched& watched, policies::RemoteAmounts* amounts) {
  policies::MemoryQuestion question{};
  watched.users.put_into(&question);
  for (uint32_t u = 0; u < question.n_users; ++u) {
    const policies::MemoryUser& user = question.users[u];
    if (user.node >= state.on.size()) continue;
    for (uint32_t i = user.first_use; i < user.first_use + user.n_uses; ++i)
      add_use(areas, user, question.uses[i], amounts);
  }
  return true;
}

void end() {}

}  // namespace

constinit const RemoteSource page_samples = {"where sampled pages are", true, begin, measure, end};

}  // namespace bosk::locality
