// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that threads and bubbles work on: who they are to the memory manager, and what becomes of it when
// they end. An entity is to the manager the number that is its handle, which no other ever has.
#pragma once

#include "base/cpu.h"
#include "bosk/bosk.h"
#include "memory/area_table.h"
#include "sched/bubble_tree.h"

namespace bosk::threads {

/// The manager of this process; null: the machine cannot be read for want of a thread, or there is no
/// memory. Preemption is on.
memory::AreaTable* memory_areas();

int attach_thread(const void* address, bosk_thread_t thread, int use, uint32_t times);
int attach_bubble(const void* address, bosk_bubble_t bubble, int use, uint32_t times);
int detach_thread_from(const void* address, bosk_thread_t thread);
int detach_bubble_from(const void* address, bosk_bubble_t bubble);
int detach_all_of_thread(bosk_thread_t thread);
int detach_all_of_bubble(bosk_bubble_t bubble);
/// Bytes per node of what is attached to it, and to all that is in it.
int thread_footprint(bosk_thread_t thread, uint64_t* bytes, int nodes);
int bubble_footprint(bosk_bubble_t bubble, uint64_t* bytes, int nodes);
/// Where memory of its own would best be: where it ran last, or where most of what is attached to it lies;
/// kNone: nobody knows. The codes of check_thread() and check_bubble().
int best_node(bosk_thread_t thread, memory::NodeIndex* node);
int best_node(bosk_bubble_t bubble, memory::NodeIndex* node);
/// Calls each(context, area) for every area that is attached to the thread, or to the bubble and all that is in
/// it, with preemption on and no lock held: some may have gone by then. An area that several have attached comes
/// several times. BOSK_ENOMEM; the codes of check_thread() and check_bubble().
using EachArea = void (*)(void* context, const memory::AreaInfo& area);
int each_area_of(bosk_thread_t thread, EachArea each, void* context);
int each_area_of(bosk_bubble_t bubble, EachArea each, void* context);
int redecide(bosk_bubble_t bubble, int when);
/// Something that is attached was freed, moved or cut: policies that go by footprints look at who runs (2009 §3.1).
void memory_has_changed();
/// Asks the kernel about areas to which next-touch has brought something. With preemption on.
void bring_books_up_to_date();
/// Is there any such policy? For callers to whom finding out whether anything was attached costs something.
bool policies_mind_memory();
/// BOSK_OK: it is a thread that has not ended, or a bubble.
int check_thread(bosk_thread_t thread);
int check_bubble(bosk_bubble_t bubble);

inline memory::OwnerId owner_of(bosk_thread_t thread) {
  return reinterpret_cast<uintptr_t>(thread);
}
inline memory::OwnerId owner_of(bosk_bubble_t bubble) {
  return reinterpret_cast<uintptr_t>(bubble);
}

void forget_attached(sched::TreeEntity& entity);
/// Before its record is given back: nothing is attached to it any more. Nobody can attach by now, for its life
/// is kFree. Preemption is off.
inline void let_memory_go(sched::TreeEntity& entity) {
  if (BOSK_UNLIKELY(entity.figures.footprint.load(std::memory_order_relaxed) != nullptr))
    forget_attached(entity);
}

}  // namespace bosk::threads
