// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints the ICVs.
#include "omp/display_env.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "omp/affinity_format.h"
#include "omp/environment.h"
#include "omp/places.h"

namespace bosk::omp {
namespace {

class Writer {
 public:
  explicit Writer(base::MappedArray<char>* text) : text_(text) {}

  void put(const char* s) {
    const uint32_t length = static_cast<uint32_t>(strlen(s));
    const uint32_t at = text_->size();
    good_ = good_ && text_->resize(at + length);
    if (good_) memcpy(text_->data() + at, s, length);
  }
  void put_number(uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(value));
    put(digits);
  }
  void open(const char* name) {
    put("  ");
    put(name);
    put(" = '");
  }
  void close() { put("'\n"); }
  void line(const char* name, const char* value) {
    open(name);
    put(value);
    close();
  }
  void line(const char* name, bool value) { line(name, value ? "TRUE" : "FALSE"); }
  void number(const char* name, uint64_t value) {
    open(name);
    put_number(value);
    close();
  }
  bool good() const { return good_; }

 private:
  base::MappedArray<char>* text_;
  bool good_ = true;
};

const char* bind_name(Bind bind) {
  switch (bind) {
    case Bind::kFalse:
      return "FALSE";
    case Bind::kTrue:
      return "TRUE";
    case Bind::kPrimary:
      return "MASTER";  // the name before OpenMP 5.1, which libgomp 12 prints
    case Bind::kClose:
      return "CLOSE";
    case Bind::kSpread:
      return "SPREAD";
  }
  return "";
}

void put_threads(Writer* out, const ProcessIcvs& process) {
  out->open("OMP_NUM_THREADS");
  out->put_number(process.initial.nthreads);
  for (uint32_t i = 1; i < process.nthreads.count; i++) {
    out->put(",");
    out->put_number(process.nthreads.at[i]);
  }
  out->close();
}

// The modifier is shown where it is not what the kind has anyway, the chunk likewise.
void put_schedule(Writer* out, const DataIcvs& icvs) {
  constexpr const char* kNames[] = {"STATIC", "DYNAMIC", "GUIDED", "AUTO"};
  const uint32_t kind = icvs.run_sched & ~kScheduleMonotonic;
  const bool monotonic = (icvs.run_sched & kScheduleMonotonic) != 0;
  out->open("OMP_SCHEDULE");
  if (kind == kScheduleStatic && !monotonic) out->put("NONMONOTONIC:");
  if (kind != kScheduleStatic && monotonic) out->put("MONOTONIC:");
  out->put(kNames[kind - kScheduleStatic]);
  const int32_t usual = kind == kScheduleStatic ? 0 : 1;
  if (kind != kScheduleAuto && icvs.run_sched_chunk != usual) {
    out->put(",");
    out->put_number(static_cast<uint64_t>(icvs.run_sched_chunk));
  }
  out->close();
}

void put_bind(Writer* out, const ProcessIcvs& process) {
  out->open("OMP_PROC_BIND");
  out->put(bind_name(process.initial.bind));
  for (uint32_t i = 1; i < process.bind.count; i++) {
    out->put(",");
    out->put(bind_name(process.bind.at[i]));
  }
  out->close();
}

void put_places(Writer* out, const PlaceList& places) {
  out->open("OMP_PLACES");
  for (uint32_t i = 0; i < places.count(); i++) {
    out->put(i == 0 ? "{" : ",{");
    bool first = true;
    for (const CpuRange& range : places.ranges(i)) {
      if (!first) out->put(",");
      first = false;
      out->put_number(range.first);
      if (range.count == 1) continue;
      out->put(":");
      out->put_number(range.count);
    }
    out->put("}");
  }
  out->close();
}

}  // namespace

bool format_env(const ProcessIcvs& process, const CurrentIcvs& current, bool verbose,
                base::MappedArray<char>* text) {
  constexpr const char* kOffload[] = {"DEFAULT", "MANDATORY", "DISABLED"};
  const DataIcvs& icvs = process.initial;
  Writer out(text);
  out.put("\nOPENMP DISPLAY ENVIRONMENT BEGIN\n");
  out.line("_OPENMP", "201511");
  out.line("OMP_DYNAMIC", icvs.dynamic);
  out.line("OMP_NESTED", icvs.max_active_levels > 1);
  put_threads(&out, process);
  put_schedule(&out, icvs);
  put_bind(&out, process);
  put_places(&out, *process.places);
  out.number("OMP_STACKSIZE", process.stack_size);
  out.line("OMP_WAIT_POLICY", process.wait_policy == WaitPolicy::kActive ? "ACTIVE" : "PASSIVE");
  out.number("OMP_THREAD_LIMIT", icvs.thread_limit);
  out.number("OMP_MAX_ACTIVE_LEVELS", icvs.max_active_levels);
  out.number("OMP_NUM_TEAMS", current.num_teams);
  out.number("OMP_TEAMS_THREAD_LIMIT", current.teams_thread_limit);
  out.line("OMP_CANCELLATION", process.cancellation);
  if (icvs.default_device == kInvalidDevice)
    out.line("OMP_DEFAULT_DEVICE", "-4");
  else
    out.number("OMP_DEFAULT_DEVICE", static_cast<uint64_t>(icvs.default_device));
  out.number("OMP_MAX_TASK_PRIORITY", static_cast<uint64_t>(process.max_task_priority));
  out.line("OMP_DISPLAY_AFFINITY", process.display_affinity);
  out.line("OMP_AFFINITY_FORMAT", current.affinity_format);
  out.line("OMP_ALLOCATOR", process.allocator_text);
  out.line("OMP_TARGET_OFFLOAD", kOffload[static_cast<unsigned>(process.target_offload)]);
  if (verbose) {
    out.line("GOMP_CPU_AFFINITY", "");  // what it gave is among the places
    out.number("GOMP_STACKSIZE", process.stack_size);
    out.number("GOMP_SPINCOUNT", process.spin_count);
  }
  out.put("OPENMP DISPLAY ENVIRONMENT END\n");
  return out.good();
}

void display_env(bool verbose) {
  base::MappedArray<char> text;
  const ProcessIcvs& process = process_icvs();
  if (format_env(process, {num_teams_icv(), teams_thread_limit_icv(), affinity_format()}, verbose,
                 &text)) {
    base::write_error_text(text.data(), text.size());
  } else {
    base::say("out of memory: the environment is not shown");
  }
  text.release();
}

}  // namespace bosk::omp
