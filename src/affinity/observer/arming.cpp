// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/arming.h"

#include <algorithm>

namespace bosk::affinity {
namespace {

constexpr uint32_t kFewestPages = 16;
/// Where threads are told by counts of faults: with more pages, threads that write to some of them at the same time cannot be told apart, and so those that share would
/// least be seen.
constexpr uint32_t kCountedPages = 1;

}  // namespace

Arming::Arming(Account* account, ObserverCosts* costs, ObserverCounts* counts)
    : account_(account), costs_(costs), counts_(counts) {}

void Arming::do_without_events() {
  has_events_ = false;
  shape_.pages = kCountedPages;
}

void Arming::measure_prices() { price_ = measure_fault_price(has_events_); }

double Arming::call_price() const { return call_ns_ + running_ * price_.interrupt_ns; }

double Arming::chunk_price() const {
  return shape_.pages * (price_.fault_ns + price_.event_ns) + call_price();
}

/// While memory is walked nobody in the process may have a fault, so all its threads may have to wait.
double Arming::clear_price(const SoftDirty& marks) const {
  return marks.expected_faults() * (price_.fault_ns + price_.event_ns) +
         (1 + running_) * marks.clear_ns() + running_ * price_.interrupt_ns;
}

double Arming::step(Members* members) const {
  double step = chunk_price();
  for (auto& [number, member] : *members)
    if (const SoftDirty* marks = member.process.soft_dirty(); marks != nullptr)
      step = std::max(step, clear_price(*marks));
  return step;
}

void Arming::spend_on_events(double faults) {
  account_->spend(price_.event_ns * faults, &costs_->events);
}

void Arming::spend_on_faults(double faults) {
  account_->spend(price_.fault_ns * faults, &costs_->faults);
}

void Arming::spend_on_move() { account_->spend(price_.interrupt_ns * running_, &costs_->moves); }

WriteProtection::Look Arming::look(Member* member) {
  WriteProtection::Look found;
  WriteProtection* protection = member->process.protection();
  if (protection == nullptr) return found;
  if (const size_t chunks = protection->chunks(); chunks != 0) {
    const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    protection->look(&found);
    const double took = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    call_ns_ += (took / static_cast<double>(chunks) - call_ns_) / 8;
    account_->spend(price_.interrupt_ns * running_ * static_cast<double>(chunks),
                    &costs_->interrupts);
  }
  counts_->armed += found.armed;
  counts_->written += found.written.size();
  spend_on_faults(static_cast<double>(found.written.size()));
  if (found.must_map_again) member->must_look = true;
  return found;
}

/// One chunk more.
bool Arming::arm_chunk(Members* members) {
  double all = 0;
  for (const auto& [number, member] : *members)
    if (member.process.is_mapped()) all += member.life_ns;
  double at = std::uniform_real_distribution<double>(0, std::max(all, 1.0))(random_);
  for (auto& [number, member] : *members) {
    if (!member.process.is_mapped()) continue;
    at -= member.life_ns;
    WriteProtection* protection = member.process.protection();
    if (at > 0 || protection == nullptr) continue;
    WriteProtection::Look found;
    const bool began = protection->begin(&found);
    counts_->armed += found.armed;
    if (found.must_map_again) member.must_look = true;
    return began;
  }
  return false;
}

/// In turn: of each process after that whose marks were cleared last, and then from the first one on.
void Arming::clear_marks(Members* members) {
  for (size_t i = 0; i < members->size(); ++i) {
    auto at = members->upper_bound(cleared_);
    if (at == members->end()) at = members->begin();
    SoftDirty* marks = at->second.process.soft_dirty();
    if (marks != nullptr && marks->is_any_use()) {
      if (account_->credit() < clear_price(*marks)) return;
      if (!marks->clear()) at->second.must_look = true;
      account_->spend(running_ * (marks->clear_ns() + price_.interrupt_ns), &costs_->interrupts);
      ++counts_->cleared;
    }
    cleared_ = at->first;
  }
}

/// So many pages that the call that arms them does not cost more than they do.
void Arming::choose_pages(Members* members) {
  if (!has_events_) return;
  uint32_t pages = kFewestPages;
  while (pages < WriteProtection::kMostPages &&
         pages * (price_.fault_ns + price_.event_ns) < call_price())
    pages *= 2;
  shape_.pages = pages;
  for (auto& [number, member] : *members)
    if (member.process.protection() != nullptr) member.process.protection()->set_pages(pages);
}

void Arming::arm(Members* members) {
  choose_pages(members);
  size_t chunks = 0;
  for (auto& [number, member] : *members)
    if (member.process.protection() != nullptr) chunks += member.process.protection()->chunks();
  if (!has_events_) {
    // Two chunks that are written to in one period could not be told apart.
    if (chunks == 0) arm_chunk(members);
    return;
  }
  // What those that are armed will cost until the next look is spent already.
  double left = account_->credit() - static_cast<double>(chunks) * chunk_price();
  while (left > chunk_price() && arm_chunk(members)) left -= chunk_price();
  clear_marks(members);
}

}  // namespace bosk::affinity
