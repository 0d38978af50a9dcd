// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the queue tree in one block straight from the kernel: it may be needed before malloc is.
#include "sched/domain_queues.h"

#include <new>

#include "base/assert.h"
#include "base/mapped_array.h"

namespace bosk::sched {

bool DomainQueues::build(const topology::Machine& machine) {
  const size_t queue_bytes = size_t{machine.n_domains} * sizeof(RunQueue);
  const uint32_t stride = machine.root().height + 1u;
  const size_t sign_bytes = size_t{machine.n_domains} * sizeof(WorkSigns::Slot) + sizeof(WorkSigns);
  const size_t bytes =
      queue_bytes + sign_bytes + size_t{machine.n_pus} * stride * sizeof(RunQueue*);
  auto* block = static_cast<char*>(base::map_pages(bytes));
  if (block == nullptr) return false;
  machine_ = &machine;
  bytes_ = bytes;
  stride_ = stride;
  queues_ = reinterpret_cast<RunQueue*>(block);
  auto* slots = reinterpret_cast<WorkSigns::Slot*>(block + queue_bytes);
  signs_ = new (slots + machine.n_domains) WorkSigns;
  signs_->set(machine, slots);
  paths_ = reinterpret_cast<RunQueue**>(block + queue_bytes + sign_bytes);
  for (uint32_t domain = 0; domain < machine.n_domains; ++domain) {
    auto* queue = new (queues_ + domain) RunQueue;
    queue->domain = domain;
    queue->rank = domain;
    queue->signs = signs_;
    queue->announced = false;
    new (slots + domain) WorkSigns::Slot;
  }
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu) {
    RunQueue** entry = paths_ + size_t{pu} * stride;
    for (const topology::Domain* d = &machine.pu(pu); d != nullptr; d = d->parent)
      *entry++ = queues_ + d->id;
  }
  return true;
}

void DomainQueues::release() {
  if (queues_ == nullptr) return;
  for (uint32_t domain = 0; domain < machine_->n_domains; ++domain)
    BOSK_ASSERT(queues_[domain].first == nullptr);
  base::unmap_pages(queues_, bytes_);
  *this = DomainQueues{};
}

}  // namespace bosk::sched
