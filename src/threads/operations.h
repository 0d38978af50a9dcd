// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the functions of bosk.h do, by the same names without the prefix. Described there.
#pragma once

#include "bosk/bosk.h"
#include "topology/error.h"

namespace bosk::threads {

void init_attributes(bosk_thread_attr_t* attr);
int create_thread(bosk_thread_t* out, const bosk_thread_attr_t* attr, void* (*function)(void*),
                  void* argument);
/// The library's own: light, joined by nobody, put on that domain of the home's machine.
int create_helper(const char* name, uint32_t domain, void* (*function)(void*), void* argument);
int wake_thread(bosk_thread_t thread);
int join_thread(bosk_thread_t thread, void** result);
int detach_thread(bosk_thread_t thread);
bosk_thread_t this_thread();
int yield_thread();
int exit_thread(void* result);
int set_thread_priority(bosk_thread_t thread, int32_t priority);
int get_thread_priority(bosk_thread_t thread, int32_t* priority);
int set_thread_load(bosk_thread_t thread, uint32_t load);
int get_thread_load(bosk_thread_t thread, uint32_t* load);
int set_thread_preemptible(bosk_thread_t thread, int32_t preemptible);
int get_thread_name(bosk_thread_t thread, char* name, size_t size);
int get_thread_bubble(bosk_thread_t thread, bosk_bubble_t* bubble);

int create_bubble(bosk_bubble_t* bubble);
int destroy_bubble(bosk_bubble_t bubble);
int insert_thread(bosk_bubble_t bubble, bosk_thread_t thread);
int insert_bubble(bosk_bubble_t outer, bosk_bubble_t inner);
int remove_thread(bosk_thread_t thread);
int remove_bubble(bosk_bubble_t inner);
int move_thread(bosk_bubble_t to, bosk_thread_t thread);
int wake_bubble(bosk_bubble_t bubble, const char* level);
int join_bubble(bosk_bubble_t bubble);
int bubble_barrier(bosk_bubble_t bubble, int* serial);
int get_bubble_bubble(bosk_bubble_t bubble, bosk_bubble_t* outer);
int set_bubble_priority(bosk_bubble_t bubble, int32_t priority);
int get_bubble_priority(bosk_bubble_t bubble, int32_t* priority);
int set_bubble_load(bosk_bubble_t bubble, uint32_t load);
int get_bubble_load(bosk_bubble_t bubble, uint32_t* load);
int set_burst_level(bosk_bubble_t bubble, const char* level);
int set_affinity(bosk_bubble_t bubble, const char* level);
/// `why`: what the code alone does not say, if anything.
int set_policy(bosk_bubble_t bubble, const char* policy, topology::Error* why);
int set_slice(bosk_bubble_t bubble, uint64_t nanoseconds);
int get_slice(bosk_bubble_t bubble, uint64_t* nanoseconds);
int set_relation(bosk_bubble_t bubble, int relation);
int get_relation(bosk_bubble_t bubble, int* relation);

int thread_stats(bosk_thread_t thread, bosk_stats_t* stats);
int bubble_stats(bosk_bubble_t bubble, bosk_stats_t* stats);

}  // namespace bosk::threads
