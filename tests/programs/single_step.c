// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Preemption at every instruction of the library: fork, join, barrier, lock, task and switch run step by
// step (x86-64).
//
//   single_step SECONDS OUTER INNER [EVERY]
//
// With the trap flag set the processor raises SIGTRAP after each instruction. If that one was the
// library's, the handler sends the library's own preemption signal (glibc's 33, as by a timer) to its kernel thread. The signal is
// blocked in the trap handler, so that it arrives at the very instruction that was interrupted, as a
// timer's would. If the library then switches to another thread, the flag stays in the frame of the one
// that was preempted and comes back with it. Threads that are new get it from their own code below; a
// cooperative switch leaves it as it is.
//
// On a library without such a signal the steps alone are taken. EVERY: only each EVERYth instruction
// fires, at a phase that moves on from round to round; more rounds then fit into the time.
//
// That switch, fork, join and barrier were among the instructions is looked up in the library's symbol
// table. One place has no trap before it: the instruction after a system call. A signal is delivered
// there like anywhere else, but no step ends there.
#include "check.h"

#include <fcntl.h>
#include <link.h>
#include <omp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

enum { kTrapFlag = 0x100, kMost = 64, kTicks = 33 };

enum { kStepped = 1, kFired = 2 };
static uintptr_t text_low, text_size, load_address;
static char library_file[4096];
static unsigned char* met;  // one per byte of the text: what happened at the instruction there
static volatile int stopping, fires;
static unsigned every = 1, phase;
static unsigned long steps, shots;

// ---- the trap: no TLS and no libc, it may come between two identities

static long system_call(long number, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((no_stack_protector)) static void on_trap(int signal_number, siginfo_t* info,
                                                        void* context) {
  (void)signal_number;
  (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uintptr_t at = (uintptr_t)registers[REG_RIP];
  const unsigned char* code = (const unsigned char*)at;
  // Whoever is about to block SIGTRAP (a donor that parks, pthread_create) must not be stepped: the
  // kernel would end the process.
  if (code[0] == 0x0f && code[1] == 0x05 && registers[REG_RAX] == SYS_rt_sigprocmask &&
      registers[REG_RDI] != SIG_UNBLOCK && registers[REG_RSI] != 0 &&
      (*(const uint64_t*)registers[REG_RSI] >> (SIGTRAP - 1) & 1) != 0)
    registers[REG_EFL] &= ~(greg_t)kTrapFlag;
  if (stopping) registers[REG_EFL] &= ~(greg_t)kTrapFlag;
  if (at - text_low >= text_size) return;
  __atomic_fetch_or(&met[at - text_low], kStepped, __ATOMIC_RELAXED);
  const unsigned long step = __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
  if (!fires || (step + phase) % every != 0) return;
  __atomic_fetch_or(&met[at - text_low], kFired, __ATOMIC_RELAXED);
  __atomic_fetch_add(&shots, 1, __ATOMIC_RELAXED);
  // What a timer of the library would send.
  siginfo_t tick;
  memset(&tick, 0, sizeof tick);
  tick.si_signo = kTicks;
  tick.si_code = SI_TIMER;
  system_call(SYS_rt_tgsigqueueinfo, system_call(SYS_getpid, 0, 0, 0, 0),
              system_call(SYS_gettid, 0, 0, 0, 0), kTicks, (long)&tick);
}

static inline void step_on(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
static inline void step_off(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}

// ---- which code is the library's

static int find_text(struct dl_phdr_info* object, size_t size, void* wanted) {
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
    const uintptr_t low = object->dlpi_addr + part->p_vaddr;
    if ((uintptr_t)wanted - low >= part->p_memsz) continue;
    text_low = low;
    text_size = part->p_memsz;
    load_address = object->dlpi_addr;
    snprintf(library_file, sizeof library_file, "%s", object->dlpi_name);
    return 1;
  }
  return 0;
}

// ---- which instructions were met in switch, fork, join and barrier

// Names as the linker sees them, up to where a compiler's clones differ. A compiler may inline any but
// the first of each operation.
typedef struct {
  const char* name;
  const char* functions[8];
  unsigned long stepped, fired;
} Operation;
static Operation operations[] = {
    {"switch",
     {"bosk_context_switch", "_ZN4bosk5sched9switch_toE", "_ZN4bosk5sched5blockE",
      "_ZN4bosk5sched5yieldE"},
     0,
     0},
    {"fork",
     {"_ZN4bosk3omp8parallelE", "_ZN4bosk5sched14publish_bubbleE", "_ZN4bosk5sched10run_ghostsE",
      "_ZN4bosk3omp12serve_ghostsE", "_ZN4bosk5sched12assign_ghostE",
      "_ZN4bosk3omp12serve_nativeE"},
     0,
     0},
    {"join",
     {"_ZN4bosk5sched11join_bubbleE", "_ZN4bosk5sched16complete_membersE",
      "_ZN4bosk5schedL11opener_leftE"},
     0,
     0},
    {"barrier",
     {"_ZN4bosk5sched14bubble_barrierE", "_ZN4bosk3omp7barrierEv", "_ZN4bosk5sched11poll_groupsE",
      "_ZN4bosk5sched14report_arrivalsE"},
     0,
     0},
};
enum { kOperations = sizeof operations / sizeof operations[0] };

static void count_in(Operation* operation, uintptr_t from, uintptr_t size) {
  for (uintptr_t at = from - text_low; at < from - text_low + size && at < text_size; ++at) {
    operation->stepped += (met[at] & kStepped) != 0;
    operation->fired += (met[at] & kFired) != 0;
  }
}

static void count_symbol(const char* name, uintptr_t address, uintptr_t size) {
  for (int i = 0; i < kOperations; ++i)
    for (const char* const* function = operations[i].functions; *function != NULL; ++function)
      if (strncmp(name, *function, strlen(*function)) == 0) count_in(&operations[i], address, size);
}

// False: the library's file has no symbols.
static int read_symbols(void) {
  const int file = open(library_file, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return 0;
  const char* image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (image == MAP_FAILED) return 0;
  const ElfW(Ehdr)* header = (const ElfW(Ehdr)*)image;
  const ElfW(Shdr)* sections = (const ElfW(Shdr)*)(image + header->e_shoff);
  int found = 0;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    found = 1;
    const ElfW(Sym)* symbols = (const ElfW(Sym)*)(image + sections[i].sh_offset);
    const char* names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t j = 0; j < sections[i].sh_size / sizeof symbols[0]; ++j)
      if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC)
        count_symbol(names + symbols[j].st_name, load_address + symbols[j].st_value,
                     symbols[j].st_size);
  }
  munmap((void*)image, (size_t)status.st_size);
  return found;
}

static void check_operations(void) {
  if (!read_symbols()) {
    printf("%s has no symbols: not known which operations were stepped\n", library_file);
    return;
  }
  for (int i = 0; i < kOperations; ++i) {
    const Operation* operation = &operations[i];
    printf("%s: %lu instructions met, preempted at %lu\n", operation->name, operation->stepped,
           operation->fired);
    CHECK(operation->stepped > 10, "%s: only %lu instructions", operation->name,
          operation->stepped);
    CHECK(every != 1 || operation->fired == operation->stepped,
          "%s: %lu of %lu instructions were preempted", operation->name, operation->fired,
          operation->stepped);
  }
}

// ---- what is stepped

typedef struct {
  int number;
  long mark[2];
  long inner_sum;
} Cell;
static Cell cells[kMost][kMost];
static long locked, tasks_done;
static int singles;

static void inner_member(int outer, int inner, int round) {
  const int me = omp_get_thread_num();
  step_on();
  Cell* cell = &cells[outer][me];
  CHECK(omp_get_num_threads() == inner, "inner team of %d", omp_get_num_threads());
  CHECK(cell->number == round, "member %d of %d ran twice in round %d", me, outer, round);
  cell->number = round + 1;
  for (int turn = 0; turn < 2; ++turn) {
    cell->mark[turn] = round * 100 + me;
#pragma omp barrier
    step_on();
    for (int other = 0; other < inner; ++other)
      CHECK(cells[outer][other].mark[turn] == round * 100 + other,
            "round %d, turn %d: mark of member %d of %d is %ld", round, turn, other, outer,
            cells[outer][other].mark[turn]);
  }
#pragma omp critical
  ++locked;
  step_on();
}

static void one_round(int outer, int inner, int round) {
  locked = tasks_done = singles = 0;
  step_on();
#pragma omp parallel num_threads(outer)
  {
    step_on();
    const int me = omp_get_thread_num();
    CHECK(omp_get_num_threads() == outer, "outer team of %d", omp_get_num_threads());
#pragma omp parallel num_threads(inner)
    inner_member(me, inner, round);
    step_on();
#pragma omp single
    ++singles;
    step_on();
#pragma omp task
    {
      step_on();
      __atomic_fetch_add(&tasks_done, 1, __ATOMIC_RELAXED);
    }
#pragma omp barrier
    step_on();
    CHECK(__atomic_load_n(&tasks_done, __ATOMIC_RELAXED) == outer, "%ld tasks of %d are done",
          tasks_done, outer);
  }
  step_off();
  CHECK(locked == (long)outer * inner, "round %d: %ld in the critical construct, expected %d",
        round, locked, outer * inner);
  CHECK(singles == 1, "round %d: %d singles", round, singles);
  for (int i = 0; i < outer; ++i)
    for (int j = 0; j < inner; ++j)
      CHECK(cells[i][j].number == round + 1, "round %d: member %d of %d did not run", round, j, i);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 3;
  const int outer = argc > 2 ? atoi(argv[2]) : 3, inner = argc > 3 ? atoi(argv[3]) : 3;
  every = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
  CHECK(outer > 0 && outer <= kMost && inner > 0 && inner <= kMost && every > 0, "bad arguments");
  CHECK(dl_iterate_phdr(find_text, (void*)(uintptr_t)omp_get_num_threads) == 1,
        "no OpenMP library");
  met = calloc(text_size, 1);
  CHECK(met != NULL, "no memory for %zu marks", text_size);
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  // Once without steps: threads are made, and the library's handler is there.
#pragma omp parallel num_threads(outer)
  {
#pragma omp parallel num_threads(inner)
    cells[omp_get_ancestor_thread_num(1)][omp_get_thread_num()].number = 0;
  }
  // glibc's sigaction() keeps this signal to itself; the kernel's says whether the handler is the library's.
  unsigned long kernel_action[4] = {0};
  CHECK(system_call(SYS_rt_sigaction, kTicks, 0, (long)kernel_action, 8) == 0, "rt_sigaction");
  fires = kernel_action[0] - text_low < text_size;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  *(uint64_t*)&action.sa_mask |= UINT64_C(1) << (kTicks - 1);
  CHECK(sigaction(SIGTRAP, &action, NULL) == 0, "sigaction: %s", strerror(errno));
  const double end = now() + seconds;
  int round = 0;
  do {
    phase = (unsigned)round;
    one_round(outer, inner, round);
    ++round;
  } while (now() < end);
  stopping = 1;
  unsigned long places = 0;
  for (uintptr_t i = 0; i < text_size; ++i) places += (met[i] & kFired) != 0;
  printf("%d rounds, %lu steps in the library, %lu preemptions at %lu different instructions\n",
         round, steps, shots, places);
  CHECK(steps > 1000, "only %lu steps", steps);
  CHECK(!fires || places > 300, "only %lu different instructions", places);
  if (fires) check_operations();
  return passed();
}
