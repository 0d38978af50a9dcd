// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The book of PUs and gangs.
#include "policies/gang/pu_book.h"

#include <new>

namespace bosk::policies::gang {

using topology::Domain;

bool PuBook::start(const topology::Machine& machine) {
  machine_ = &machine;
  void* pus = base::map_pages(size_t{machine.n_pus} * sizeof(Pu));
  void* counts = base::map_pages(size_t{machine.n_domains} * sizeof(uint32_t));
  if (pus == nullptr || counts == nullptr) {
    if (pus != nullptr) base::unmap_pages(pus, size_t{machine.n_pus} * sizeof(Pu));
    if (counts != nullptr) base::unmap_pages(counts, size_t{machine.n_domains} * sizeof(uint32_t));
    return false;
  }
  pus_ = static_cast<Pu*>(pus);
  free_ = new (counts) uint32_t[machine.n_domains];
  clear();
  return true;
}

void PuBook::clear() {
  for (uint32_t pu = 0; pu < machine_->n_pus; ++pu) new (pus_ + pu) Pu{kNone, 0, 0};
  for (const Domain& d : machine_->domains()) free_[d.id] = d.n_pus();
  gangs_.clear();
}

void PuBook::stop() {
  base::unmap_pages(pus_, size_t{machine_->n_pus} * sizeof(Pu));
  base::unmap_pages(free_, size_t{machine_->n_domains} * sizeof(uint32_t));
  gangs_.release();
}

uint32_t PuBook::find(EntityToken token) const {
  for (uint32_t i = 0; i < gangs_.size(); ++i)
    if (gangs_[i].token == token) return i;
  return kNone;
}

uint32_t PuBook::add(EntityToken token) {
  for (uint32_t i = 0; i < gangs_.size(); ++i) {
    if (gangs_[i].token != nullptr) continue;
    gangs_[i] = {token, 0, 0};
    return i;
  }
  return gangs_.push({token, 0, 0}) ? gangs_.size() - 1 : kNone;
}

/// `by` is 1 or, as unsigned numbers go round, -1.
void PuBook::count(uint32_t pu, uint32_t by) {
  for (const Domain* d = &machine_->pu(pu); d != nullptr; d = d->parent) free_[d->id] += by;
}

void PuBook::occupy(uint32_t gang, uint32_t number) {
  Pu& pu = pus_[number];
  ++pu.threads;
  pu.asked = 0;
  if (pu.gang.load(std::memory_order_relaxed) == gang) return;
  pu.gang.store(gang, std::memory_order_relaxed);
  ++gangs_[gang].pus;
  count(number, UINT32_MAX);
}

void PuBook::give_back(uint32_t number) {
  Pu& pu = pus_[number];
  Gang& gang = gangs_[pu.gang.load(std::memory_order_relaxed)];
  pu.gang.store(kNone, std::memory_order_relaxed);
  pu.threads = 0;
  count(number, 1);
  if (--gang.pus == 0) gang.token = nullptr;
}

void PuBook::drop(uint32_t gang) {
  if (gangs_[gang].pus == 0) gangs_[gang].token = nullptr;
  for (uint32_t pu = 0; gangs_[gang].token != nullptr && pu < machine_->n_pus; ++pu)
    if (pus_[pu].gang.load(std::memory_order_relaxed) == gang) give_back(pu);
}

void PuBook::thread_ended(uint32_t pu) {
  if (owned(pu) && --pus_[pu].threads == 0) give_back(pu);
}

bool PuBook::asked_for_work(uint32_t pu) {
  if (!owned(pu)) return false;
  if (++pus_[pu].asked < kAsks) return true;
  give_back(pu);
  return false;
}

}  // namespace bosk::policies::gang
