// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "locality/users.h"

#include <algorithm>

namespace bosk::locality {

void Users::clear() {
  users_.clear();
  uses_.clear();
}

void Users::begin_user(memory::NodeIndex node, uint32_t threads) {
  next_ = {node, threads, uses_.size(), 0};
}

bool Users::add_use(const memory::AreaUse& use, float share) {
  // Who uses nothing is not there.
  if (next_.n_uses == 0 && !users_.push(next_)) return false;
  if (!uses_.push({use, share})) return false;
  users_[users_.size() - 1].n_uses = ++next_.n_uses;
  return true;
}

bool Users::add_all_of(memory::AreaTable& areas, memory::OwnerId owner, bool refresh) {
  const uint32_t room = areas.uses_of(owner, nullptr, 0);
  if (room == 0) return true;
  if (!found_.resize(room)) return false;
  // Others attach and detach meanwhile.
  const uint32_t found = std::min(areas.uses_of(owner, found_.data(), room), room);
  for (uint32_t i = 0; i < found; ++i) {
    if (refresh) memory::refresh_area(areas, found_[i].area);
    if (!add_use(found_[i], 1)) return false;
  }
  return true;
}

void Users::put_into(policies::MemoryQuestion* question) const {
  question->users = users_.data();
  question->n_users = users_.size();
  question->uses = uses_.data();
  question->n_uses = uses_.size();
}

void Users::release() {
  users_.release();
  uses_.release();
  found_.release();
}

}  // namespace bosk::locality
