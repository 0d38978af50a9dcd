// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the environment into the ICVs of the process.
#include "omp/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "base/message.h"
#include "base/parse.h"
#include "omp/affinity_format.h"
#include "omp/allocator_object.h"
#include "omp/display_env.h"
#include "omp/places.h"
#include "omp/places_sysfs.h"
#include "topology/process_cpus.h"

namespace bosk::omp {
namespace {

using base::MappedArray;
using base::MessageLog;

// Everything that ProcessIcvs points to, in one piece.
struct Environment {
  ProcessIcvs icvs;
  topology::ProcessCpus cpus;
  PlaceList all_cpus;
  PlaceList places;
  MappedArray<uint32_t> nthreads;
  MappedArray<Bind> bind;
  Allocator allocator;  // if OMP_ALLOCATOR names a space
  char allocator_text[kAllocatorText];
};

// A variable with the suffix _ALL is for the host too, unless there is one without it.
struct Variable {
  const char* name;
  const char* value;
};

Variable find(const char* name, const char* name_all = nullptr) {
  const char* value = getenv(name);
  if (value == nullptr && name_all != nullptr) {
    value = getenv(name_all);
    name = name_all;
  }
  return {name, value};
}

#define BOSK_FIND_WITH_ALL(name) find(name, name "_ALL")

class Loader {
 public:
  Loader(Environment* to, MessageLog* log) : env_(to), to_(&to->icvs), log_(log) {}

  // In libgomp's order, so that several complaints come as they always did.
  void load() {
    defaults();
    schedule(BOSK_FIND_WITH_ALL("OMP_SCHEDULE"));
    boolean(BOSK_FIND_WITH_ALL("OMP_DYNAMIC"), &to_->initial.dynamic);
    boolean(find("OMP_CANCELLATION"), &to_->cancellation);
    boolean(find("OMP_DISPLAY_AFFINITY"), &to_->display_affinity);
    const bool device_given = number(BOSK_FIND_WITH_ALL("OMP_DEFAULT_DEVICE"), 0, INT32_MAX,
                                     &to_->initial.default_device);
    word(find("OMP_TARGET_OFFLOAD"), parse_target_offload, &to_->target_offload);
    // OpenMP 5.2 §21.2.7: no device but the host, and that would not do.
    if (to_->target_offload == TargetOffload::kMandatory && !device_given)
      to_->initial.default_device = kInvalidDevice;
    number(find("OMP_MAX_TASK_PRIORITY"), 0, INT32_MAX, &to_->max_task_priority);
    allocator(find("OMP_ALLOCATOR"));
    thread_limit(BOSK_FIND_WITH_ALL("OMP_THREAD_LIMIT"));
    number({"GOMP_DEBUG", secure_getenv("GOMP_DEBUG")}, 0, INT32_MAX, &to_->debug);
    threads(BOSK_FIND_WITH_ALL("OMP_NUM_THREADS"));
    number(BOSK_FIND_WITH_ALL("OMP_NUM_TEAMS"), 1, INT32_MAX, &to_->num_teams);
    number(BOSK_FIND_WITH_ALL("OMP_TEAMS_THREAD_LIMIT"), 1, INT32_MAX, &to_->teams_thread_limit);
    const bool may_bind = bind(BOSK_FIND_WITH_ALL("OMP_PROC_BIND"));
    levels(BOSK_FIND_WITH_ALL("OMP_MAX_ACTIVE_LEVELS"), find("OMP_NESTED"));
    places(may_bind, find("OMP_PLACES"), find("GOMP_CPU_AFFINITY"));
    affinity_format(find("OMP_AFFINITY_FORMAT"));
    waiting(BOSK_FIND_WITH_ALL("OMP_WAIT_POLICY"), find("GOMP_SPINCOUNT"));
    if (!stack_size(BOSK_FIND_WITH_ALL("OMP_STACKSIZE"))) stack_size(find("GOMP_STACKSIZE"));
    word(find("OMP_DISPLAY_ENV"), parse_display_env, &to_->display_env);
  }

 private:
  void invalid(const Variable& variable) {
    log_->add("Invalid value for environment variable %s", variable.name);
  }

  void defaults() {
    topology::Error error;
    if (!topology::load_process_cpus(&env_->cpus, &error) || env_->cpus.count == 0) {
      use_online_cpus();
    }
    to_->cpus = &env_->cpus;
    to_->available_cpus = env_->cpus.count;
    to_->all_cpus = &env_->all_cpus;
    to_->places = &env_->places;
    bool memory_left = env_->all_cpus.start_place();
    for (uint32_t cpu = env_->cpus.next(0); memory_left && cpu != topology::ProcessCpus::kNoCpu;
         cpu = env_->cpus.next(cpu + 1)) {
      memory_left = env_->all_cpus.add_cpu(cpu);
    }
    if (!memory_left) base::die(1, "out of memory while reading the environment");
    to_->initial = {.nthreads = env_->cpus.count,
                    .thread_limit = UINT32_MAX,
                    .run_sched = kScheduleDynamic,
                    .run_sched_chunk = 1,
                    .default_device = 0,
                    .max_active_levels = 1,
                    .dynamic = false,
                    .bind = Bind::kFalse};
    to_->spin_count = kSpinsUnset;
    to_->affinity_format = kDefaultAffinityFormat;
  }

  // No affinity mask to be had (an old sandbox): every CPU that is online, numbered from 0.
  void use_online_cpus() {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t most = topology::ProcessCpus::kInlineCpus;
    const uint32_t n = online < 1 ? 1 : online > most ? most : static_cast<uint32_t>(online);
    env_->cpus = {};
    env_->cpus.count = n;
    env_->cpus.n_words = (n + 63) / 64;
    for (uint32_t i = 0; i < n; i++) env_->cpus.inline_words[i / 64] |= uint64_t{1} << (i % 64);
  }

  template <typename T>
  void word(const Variable& variable, bool (*parse)(const char*, T*), T* value) {
    if (variable.value != nullptr && !parse(variable.value, value)) invalid(variable);
  }

  void boolean(const Variable& variable, bool* value) {
    if (variable.value != nullptr && !base::parse_choice(variable.value, "true", "false", value)) {
      invalid(variable);
    }
  }

  // True: it was given and is well-formed.
  template <typename T>
  bool number(const Variable& variable, uint64_t least, uint64_t most, T* value) {
    if (variable.value == nullptr) return false;
    uint64_t n;
    if (!base::parse_number(variable.value, least, most, &n)) {
      invalid(variable);
      return false;
    }
    *value = static_cast<T>(n);
    return true;
  }

  void schedule(const Variable& variable) {
    if (variable.value == nullptr) return;
    switch (
        parse_schedule(variable.value, &to_->initial.run_sched, &to_->initial.run_sched_chunk)) {
      case ScheduleParse::kOk:
        break;
      case ScheduleParse::kUnknownKind:
        log_->add("Unknown value for environment variable %s", variable.name);
        break;
      case ScheduleParse::kBadChunk:
        log_->add("Invalid value for chunk size in environment variable %s", variable.name);
        break;
    }
  }

  void allocator(const Variable& variable) {
    AllocatorSetting setting;
    word(variable, parse_allocator, &setting);
    format_allocator(setting, env_->allocator_text);
    to_->allocator_text = env_->allocator_text;
    env_->allocator.traits = setting.traits;
    to_->default_allocator = setting.predefined != kNullAllocator
                                 ? setting.predefined
                                 : reinterpret_cast<AllocatorHandle>(&env_->allocator);
  }

  void thread_limit(const Variable& variable) {
    uint64_t n;
    if (number(variable, 1, INT64_MAX, &n)) {
      to_->initial.thread_limit = n > INT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n);
    }
  }

  void threads(const Variable& variable) {
    if (variable.value == nullptr) return;
    if (!parse_thread_list(variable.value, &env_->nthreads)) {
      env_->nthreads.release();
      return invalid(variable);
    }
    to_->initial.nthreads = env_->nthreads[0];
    to_->nthreads = {env_->nthreads.data(), env_->nthreads.size()};
  }

  // False: OMP_PROC_BIND=false, nothing shall be bound.
  bool bind(const Variable& variable) {
    if (variable.value == nullptr) return true;
    if (!parse_bind_list(variable.value, &env_->bind)) {
      env_->bind.release();
      invalid(variable);
      return true;
    }
    to_->initial.bind = env_->bind[0];
    to_->bind = {env_->bind.data(), env_->bind.size()};
    return to_->initial.bind != Bind::kFalse;
  }

  void levels(const Variable& most, const Variable& nested) {
    uint64_t n;
    if (number(most, 0, INT64_MAX, &n)) {
      to_->initial.max_active_levels = static_cast<uint8_t>(
          n < static_cast<uint64_t>(kSupportedActiveLevels) ? n : kSupportedActiveLevels);
      return;
    }
    // Without either, a list per level would be pointless if levels were not active.
    bool on = to_->nthreads.count > 1 || to_->bind.count > 1;
    boolean(nested, &on);
    to_->initial.max_active_levels = on ? kSupportedActiveLevels : 1;
  }

  void places(bool may_bind, const Variable& list, const Variable& affinity) {
    const PlaceSource source = sysfs_place_source();
    const bool listed = list.value != nullptr && parse_places(list.value, env_->cpus, source,
                                                              !may_bind, &env_->places, log_);
    // Its form is checked even if OMP_PLACES has said it all.
    const bool numbered =
        affinity.value != nullptr &&
        parse_cpu_affinity(affinity.value, env_->cpus, !may_bind || listed, &env_->places, log_);
    if (!may_bind) return;
    if (listed || numbered) {
      if (to_->initial.bind == Bind::kFalse) to_->initial.bind = Bind::kTrue;
    } else if (to_->initial.bind != Bind::kFalse &&
               !default_places(env_->cpus, source, &env_->places)) {
      base::die(1, "out of memory while reading the environment");
    }
  }

  void affinity_format(const Variable& variable) {
    if (variable.value == nullptr) return;
    to_->affinity_format = base::keep_text(variable.value, strlen(variable.value));
    if (to_->affinity_format == nullptr) {
      base::die(1, "out of memory while reading the environment");
    }
  }

  void waiting(const Variable& policy, const Variable& spins) {
    word(policy, parse_wait_policy, &to_->wait_policy);
    if (to_->wait_policy == WaitPolicy::kActive) to_->spin_count = kSpinsActive;
    if (to_->wait_policy == WaitPolicy::kPassive) to_->spin_count = 0;
    if (spins.value == nullptr) return;
    to_->spin_count_given = parse_spin_count(spins.value, &to_->spin_count);
    if (!to_->spin_count_given) invalid(spins);
  }

  // True: it was given in the right form, so that nobody else is asked, even if it cannot be used.
  bool stack_size(const Variable& variable) {
    if (variable.value == nullptr) return false;
    uint64_t bytes;
    if (!parse_stack_size(variable.value, &bytes)) {
      invalid(variable);
      return false;
    }
    const long smallest = sysconf(_SC_THREAD_STACK_MIN);
    const uint64_t least = smallest > 0 ? static_cast<uint64_t>(smallest) : 16'384;
    if (bytes < least) {
      log_->add("Stack size less than minimum of %lluk",
                static_cast<unsigned long long>((least + 1023) / 1024));
    } else if (bytes > SIZE_MAX / 2) {
      log_->add("Stack size larger than system limit");
    } else {
      to_->stack_size = bytes;
    }
    return true;
  }

  Environment* env_;
  ProcessIcvs* to_;
  MessageLog* log_;
};

#undef BOSK_FIND_WITH_ALL

void discard(Environment* env) {
  env->nthreads.release();
  env->bind.release();
  env->places.release();
  env->all_cpus.release();
  topology::free_process_cpus(&env->cpus);
  if (env->icvs.affinity_format != kDefaultAffinityFormat) {
    base::unmap_pages(const_cast<char*>(env->icvs.affinity_format),
                      strlen(env->icvs.affinity_format) + 1);
  }
  base::unmap_pages(env, sizeof(Environment));
}

// omp_set_num_teams and omp_set_teams_thread_limit; -1: as the environment said.
constinit std::atomic<int> num_teams_set{-1};
constinit std::atomic<int> teams_thread_limit_set{-1};

}  // namespace

namespace detail {

constinit base::PublishOnce<ProcessIcvs> published_icvs;

const ProcessIcvs& load_process_icvs() {
  // Called by whatever the program calls first: errno is the program's.
  const int saved = errno;
  void* room = base::map_pages(sizeof(Environment));
  if (room == nullptr) base::die(1, "out of memory while reading the environment");
  auto* env = new (room) Environment{};
  MessageLog log;
  Loader(env, &log).load();
  if (published_icvs.publish(&env->icvs)) {
    log.tell_and_release(base::gomp_error);
    if (env->icvs.display_env != DisplayEnv::kFalse) {
      display_env(env->icvs.display_env == DisplayEnv::kVerbose);
    }
  } else {
    log.release();
    discard(env);
  }
  errno = saved;
  return *published_icvs.get();
}

}  // namespace detail

uint32_t num_teams_icv() {
  // relaxed: a number that nothing else hangs on.
  const int set = num_teams_set.load(std::memory_order_relaxed);
  return set >= 0 ? static_cast<uint32_t>(set) : process_icvs().num_teams;
}

uint32_t teams_thread_limit_icv() {
  const int set = teams_thread_limit_set.load(std::memory_order_relaxed);
  return set >= 0 ? static_cast<uint32_t>(set) : process_icvs().teams_thread_limit;
}

void set_num_teams_icv(int n) {
  if (n >= 0) num_teams_set.store(n, std::memory_order_relaxed);
}

void set_teams_thread_limit_icv(int n) {
  if (n >= 0) teams_thread_limit_set.store(n, std::memory_order_relaxed);
}

uint32_t dynamic_thread_limit_at(uint32_t nthreads, uint32_t available_cpus, double load) {
  const uint32_t most = nthreads < available_cpus ? nthreads : available_cpus;
  // A load of .9 and more counts as one CPU taken.
  const uint32_t taken =
      load > 0 ? load < UINT32_MAX ? static_cast<uint32_t>(load + 0.1) : most : 0;
  return taken < most ? most - taken : 1;
}

uint32_t dynamic_thread_limit(uint32_t nthreads, uint32_t available_cpus) {
  // The average of fifteen minutes: the region that has just ended hardly counts in it.
  const int saved = errno;
  double load[3];
  const bool known = getloadavg(load, 3) == 3;
  errno = saved;
  return dynamic_thread_limit_at(nthreads, available_cpus, known ? load[2] : 0.0);
}

}  // namespace bosk::omp
