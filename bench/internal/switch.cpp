// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the scheduler's own operations cost, without OpenMP: the rows of `./dev bench switch` in
// bosk's column. One worker; the calls are those that omp/ makes. bench/README.md has the meaning of
// each line.
#include "core.h"
#include "memory.h"
#include "plain_threads.h"
#include "preempting.h"
#include "switching.h"

namespace {

using namespace bench;

double run_plain_threads(void* me, long count) {
  const double start = now_ns();
  for (long i = 0; i < count; ++i)
    run_plain_thread(static_cast<sched::Thread*>(me), [] { BENCH_KEEP(); });
  return now_ns() - start;
}

template <Ghosts kHow>
double run_bubbles(void* me, long count) {
  const double start = now_ns();
  for (long i = 0; i < count; ++i)
    run_region(
        static_cast<sched::Thread*>(me), kHow, 1, [](Region*, sched::Thread*) { BENCH_KEEP(); },
        nullptr);
  return now_ns() - start;
}

// Cycles of the time-stamp counter, as kernel_switch has them; AArch64's counter ticks too slowly.
void print_cycles(const char* name, double ns) {
#if defined(__x86_64__)
  bench_print(name, ns * static_cast<double>(base::cycles_per_microsecond()) / 1e3, "cycles");
#else
  (void)name, (void)ns;
#endif
}

}  // namespace

int main() {
  // First, and in processes of their own: what follows makes threads that would be used again.
  const double ghost = in_child(ghost_bytes);
  const double own_stack_kib = in_child([] { return started_thread_kib(Ghosts::kOwnStacks); });
  const double strict_kib = in_child([] { return started_thread_kib(Ghosts::kStrict); });

  sched::Thread* me = attach();
  bench_print("round-trip", round_trip_ns(me), "ns");

  const FourLevels levels;
  const double search = search_ns(me, levels);
  const double yield = yield_and_switch_ns(me, levels);
  print_cycles("yield-cycles", search);
  print_cycles("switch-cycles", yield - search);
  bench_print("yield-and-switch", yield, "ns");
  print_cycles("yield-and-switch-cycles", yield);

  make_plain_thread();
  bench_print("thread", measure_short(run_plain_threads, me), "ns");
  bench_print("bubble", measure_short(run_bubbles<Ghosts::kStrict>, me), "ns");
  bench_print("bubble-own-stack", measure_short(run_bubbles<Ghosts::kOwnStacks>, me), "ns");
  bench_print("bubble-relaxed", measure_short(run_bubbles<Ghosts::kRelaxed>, me), "ns");

  bench_print("preemption", preemption_us(me), "us");
  bench_print("preemption-floor", signal_us(), "us");
  bench_print("preemption-by-timer", preemption_by_timer_us(me), "us");
  bench_print("preemption-share", preemption_share_percent(me), "%");
  bench_print("ghost-memory", ghost, "B");
  bench_print("thread-memory", strict_kib, "KiB");
  bench_print("thread-memory-own-stack", own_stack_kib, "KiB");
  return 0;
}
