// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who is a guest, and where its texts are.
#include "omp/guest_texts.h"

#include <stdlib.h>

#include <atomic>
#include <new>

#include "omp/team.h"

namespace bosk::omp {

namespace {

struct MemberTexts {
  MemberTexts* next;
  uint32_t index;
  char texts[kTextKinds][kTextBytes];
};

}  // namespace

/// Members only ever add to it, each for itself.
struct GuestTexts {
  static constexpr uint32_t kLists = 64;
  std::atomic<MemberTexts*> lists[kLists];
};

namespace {

struct Guest {
  Team* team;  ///< null: the thread's identity is its own
  uint32_t index;
};

/// As whose guest the thread runs. Member 0 is who opened the region, however deep; of the others those that are no
/// ghosts have a thread, and ghosts have an identity where these can be told apart.
Guest find_guest(const sched::Thread* me) {
  Team* team = me->member->team;
  uint32_t index = me->member->index;
  for (; team->level != 0; index = team->opener_index, team = parent_team(team)) {
    if (index >= team->native_count)
      return {team->needs == IdentityNeeds::kRelaxed ? team : nullptr, index};
    if (index != 0) break;
  }
  return {nullptr, 0};
}

GuestTexts* texts_of(Team* team) {
  // acquire: the lists are empty when they are seen; release: they are written before.
  GuestTexts* known = team->guest_texts.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* memory = calloc(1, sizeof(GuestTexts));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) GuestTexts{};
  if (team->guest_texts.compare_exchange_strong(known, made, std::memory_order_acq_rel,
                                                std::memory_order_acquire))
    return made;
  free(memory);
  return known;
}

}  // namespace

char* guest_text(Text kind) {
  const sched::Thread* me = context::self();
  if (me == nullptr || me->member == nullptr) return nullptr;
  const Guest guest = find_guest(me);
  if (guest.team == nullptr) return nullptr;
  GuestTexts* texts = texts_of(guest.team);
  if (texts == nullptr) return nullptr;
  std::atomic<MemberTexts*>& list = texts->lists[guest.index % GuestTexts::kLists];
  // acquire: the links. Its own record nobody else adds.
  MemberTexts* head = list.load(std::memory_order_acquire);
  for (MemberTexts* known = head; known != nullptr; known = known->next)
    if (known->index == guest.index) return known->texts[static_cast<size_t>(kind)];
  auto* made = static_cast<MemberTexts*>(calloc(1, sizeof(MemberTexts)));
  if (made == nullptr) return nullptr;
  made->index = guest.index;
  made->next = head;
  // release: the number and the link are there when it is seen.
  while (!list.compare_exchange_weak(made->next, made, std::memory_order_release,
                                     std::memory_order_acquire));
  return made->texts[static_cast<size_t>(kind)];
}

void free_guest_texts(Team* team) {
  GuestTexts* texts = team->guest_texts.load(std::memory_order_acquire);
  if (texts == nullptr) return;
  for (auto& list : texts->lists) {
    MemberTexts* at = list.load(std::memory_order_relaxed);
    while (at != nullptr) {
      MemberTexts* next = at->next;
      free(at);
      at = next;
    }
  }
  free(texts);
  team->guest_texts.store(nullptr, std::memory_order_relaxed);
}

}  // namespace bosk::omp
