// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events for profiling libraries: who wants them, and telling them.
#pragma once

#include "abi/goacc/profiling_types.h"

namespace bosk::acc {

constexpr int kAsyncNoValue = -1;
constexpr int kAsyncSync = -2;

/// acc_prof_register and acc_prof_unregister. Requests that make no sense are dropped, as the
/// specification leaves no way to complain.
void register_callback(int event, Callback callback, int registration);
void unregister_callback(int event, Callback callback, int registration);

/// Somebody wants to hear something, the calling thread has not switched events off, and it is not
/// in a callback already.
bool events_wanted();

/// Calls whoever registered for `prof->event`: events that begin something in the order of
/// registration, events that end something the other way round.
void tell_callbacks(ProfInfo* prof, EventInfo* event, ApiInfo* api);

/// Loads what ACC_PROFLIB names, once per process. Must come before the first event.
void load_profiling_libraries();

/// The events of one construct. Whatever a callback writes at its start is there at its end.
class Events {
 public:
  struct What {
    Construct construct;
    int device_type = 2;  // acc_device_host
    int device_number = 0;
    bool implicit = false;
    int async = kAsyncSync;
  };
  explicit Events(const What& what);
  void tell(Event event);

 private:
  bool wanted_;
  ProfInfo prof_;
  EventInfo event_;
  ApiInfo api_;
};

}  // namespace bosk::acc
