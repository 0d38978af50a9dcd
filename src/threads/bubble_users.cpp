// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes down who is in a bubble, and what they have attached.
#include "threads/bubble_users.h"

namespace bosk::threads {
namespace {

using topology::kNone;

uint32_t node_of(const topology::Machine& machine, uint32_t domain) {
  if (domain >= machine.n_domains) return kNone;
  const topology::Domain& d = machine.domain_array[domain];
  const uint32_t node = machine.node_of_pu(d.first_pu);
  return node == machine.node_of_pu(d.last_pu) ? node : kNone;
}

}  // namespace

/// The locks of the bubbles around it are held, which guard where it is.
void BubbleUsers::enter(void* self, sched::TreeEntity& entity) {
  auto& users = *static_cast<BubbleUsers*>(self);
  if (!users.enough_) return;
  PresentEntity present{kNone, kNone, 0, nullptr, sched::as_bubble(&entity) != nullptr};
  // Its bubble is the one before it, or around that.
  if (const uint32_t before = users.who_.size(); before != 0) {
    present.parent = before - 1;
    while (users.who_[present.parent] != static_cast<sched::TreeEntity*>(entity.bubble))
      present.parent = users.present_[present.parent].parent;
  }
  // acquire: the array was filled before it was attached.
  present.footprint = entity.figures.footprint.load(std::memory_order_acquire);
  users.any_ = users.any_ || present.footprint != nullptr;
  const uint32_t last = entity.figures.last_domain.load(std::memory_order_relaxed);
  const uint32_t decided = entity.figures.wake_domain.load(std::memory_order_relaxed);
  const bool runs = !present.is_bubble &&
                    entity.activity.load(std::memory_order_relaxed) == sched::Activity::kRunning;
  // What the outermost one is on, a lock guards that is not held.
  if (decided != kNone)
    present.node = node_of(*users.machine_, decided);  // it is about to go there
  else if (present.parent == kNone || (entity.whereabouts != sched::Whereabouts::kHeld &&
                                       (runs || entity.last_queue == nullptr)))
    present.node = node_of(*users.machine_, last);
  else if (entity.whereabouts == sched::Whereabouts::kHeld)
    present.node = users.present_[present.parent].node;  // it goes where its bubble goes
  else
    present.node = node_of(*users.machine_, entity.last_queue->domain);
  users.enough_ = users.present_.push(present) && users.who_.push(&entity);
  if (present.is_bubble || !users.enough_) return;
  for (uint32_t at = users.present_.size() - 1; at != kNone; at = users.present_[at].parent)
    ++users.present_[at].threads;
}

bool BubbleUsers::list(sched::NestedBubble& bubble, const topology::Machine& machine) {
  machine_ = &machine;
  enough_ = true;
  any_ = false;
  present_.clear();
  who_.clear();
  sched::visit(bubble, enter, this);
  return enough_;
}

uint32_t BubbleUsers::threads_on(memory::NodeIndex node) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < present_.size(); ++i)
    count += !present_[i].is_bubble && present_[i].node == node;
  return count;
}

bool BubbleUsers::ask_for(memory::AreaTable& areas, uint32_t entity, bool refresh) {
  const auto* footprint = present_[entity].footprint;
  attached_[entity] = {found_.size(), 0};
  if (footprint == nullptr) return true;
  const uint32_t room = areas.uses_of(footprint, nullptr, 0);
  if (!found_.resize(attached_[entity].first + room)) return false;
  memory::AreaUse* uses = found_.data() + attached_[entity].first;
  uint32_t found = areas.uses_of(footprint, uses, room);
  if (found > room) found = room;  // others attach meanwhile
  if (!found_.resize(attached_[entity].first + found)) return false;
  attached_[entity].count = found;
  for (uint32_t i = 0; refresh && i < found; ++i) memory::refresh_area(areas, uses[i].area);
  return true;
}

/// `threads` threads like this one.
bool BubbleUsers::add_user(uint32_t thread, uint32_t threads, locality::Users* users) {
  users->begin_user(present_[thread].node, threads);
  for (uint32_t at = thread; at != kNone; at = present_[at].parent) {
    const Attached& attached = attached_[at];
    const float share = static_cast<float>(threads) / static_cast<float>(present_[at].threads);
    for (uint32_t i = 0; i < attached.count; ++i)
      if (!users->add_use(found_[attached.first + i], share)) return false;
  }
  return true;
}

bool BubbleUsers::ask(memory::AreaTable& areas, bool refresh, locality::Users* users) {
  const uint32_t n = present_.size();
  const uint32_t nodes = machine_->n_nodes;
  found_.clear();
  users->clear();
  attached_.clear();
  if (!attached_.resize(n)) return false;
  for (uint32_t i = 0; i < n; ++i)
    if (!ask_for(areas, i, refresh)) return false;
  // Per bubble and node (and for those of whom it is not known): how many have nothing themselves.
  if (!plain_.resize(nodes + 1)) return false;
  for (uint32_t i = 0; i < n; ++i)
    if (!present_[i].is_bubble && attached_[i].count != 0 && !add_user(i, 1, users)) return false;
  for (uint32_t bubble = 0; bubble < n; ++bubble) {
    if (!present_[bubble].is_bubble) continue;
    for (uint32_t node = 0; node <= nodes; ++node) plain_[node] = 0;
    uint32_t last_member = bubble;
    const auto is_plain = [&](uint32_t i) {
      return !present_[i].is_bubble && present_[i].parent == bubble && attached_[i].count == 0;
    };
    const auto place = [&](uint32_t i) {
      return present_[i].node < nodes ? present_[i].node : nodes;
    };
    // Whoever is in the bubble comes behind it, and in front of whoever is not.
    for (uint32_t i = bubble + 1;
         i < n && present_[i].parent != kNone && present_[i].parent >= bubble; ++i) {
      if (!is_plain(i)) continue;
      ++plain_[place(i)];
      last_member = i;
    }
    for (uint32_t i = bubble + 1; i <= last_member; ++i) {
      if (!is_plain(i) || plain_[place(i)] == 0) continue;
      if (!add_user(i, plain_[place(i)], users)) return false;
      plain_[place(i)] = 0;
    }
  }
  return true;
}

void BubbleUsers::release() {
  present_.release();
  who_.release();
  attached_.release();
  found_.release();
  plain_.release();
}

}  // namespace bosk::threads
