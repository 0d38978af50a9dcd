// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions and tasks from lambdas, as the compiler would make them.
#pragma once

#include <atomic>
#include <type_traits>

#include "omp/explicit_task.h"
#include "omp/taskgroup.h"
#include "omp/team.h"

namespace bosk::omp {

/// body(thread number) as a region of `threads` members.
template <class Body>
void region(uint32_t threads, Body body) {
  parallel([](void* data) { (*static_cast<Body*>(data))(current_member()->index); }, &body, threads,
           0);
}

/// As region(), but only thread 0 does the body; the others go to the barrier at the end.
template <class Body>
void single_region(uint32_t threads, Body body) {
  region(threads, [&](uint32_t index) {
    if (index == 0) body();
    barrier();
  });
}

struct TaskOptions {
  bool deferrable = true;
  uint32_t flags = 0;
  void** depend = nullptr;
  int priority = 0;
  void* event = nullptr;
};

/// A task that runs a byte-wise copy of `body`.
template <class Body>
void task(Body body, TaskOptions options = {}) {
  static_assert(std::is_trivially_copyable_v<Body>);
  create_task({[](void* data) { (*static_cast<Body*>(data))(); }, &body, nullptr, sizeof(Body),
               alignof(Body), options.deferrable, options.flags, options.depend, options.priority,
               options.event, nullptr});
}

/// The same by the short way, if that is open.
template <class Body>
void plain_task(Body body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (!create_plain_task([](void* data) { (*static_cast<Body*>(data))(); }, &body, sizeof(Body),
                         alignof(Body), true))
    task(body);
}

/// A task with an event, which the compiler passes as the first of the data.
template <class Body>
struct DetachedBody {
  uintptr_t event;
  Body body;
  void operator()() const { body(event); }
};
template <class Body>
void detached_task(uintptr_t* event, Body body, TaskOptions options = {}) {
  options.flags |= kTaskDetach;
  options.event = event;
  task(DetachedBody<Body>{0, body}, options);
}

inline void wait_for_children() { taskwait(current_thread()); }

}  // namespace bosk::omp
