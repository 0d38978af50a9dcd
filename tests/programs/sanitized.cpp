// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that its user built with -fsanitize=address: nothing may be reported but its own mistakes,
// which it makes when asked to (overflow, returned, leak).
#include "check.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>

#include <stdexcept>

namespace {

constexpr int kMembers = 8;

/// Frames with red zones on both sides, most of `kilobytes` deep; the sum of what it wrote.
[[gnu::noinline]] long deep(int kilobytes, int seed) {
  volatile char block[1024];
  for (int i = 0; i < 1024; i += 64) block[i] = static_cast<char>(seed + kilobytes);
  long sum = kilobytes > 1 ? deep(kilobytes - 1, seed) : 0;
  for (int i = 0; i < 1024; i += 64) sum += block[i] == static_cast<char>(seed + kilobytes);
  return sum;
}

[[gnu::noinline]] long one_big_frame(int seed) {
  volatile char block[3 << 20];
  for (int i = 0; i < 3 << 20; i += 4096) block[i] = static_cast<char>(seed);
  long sum = 0;
  for (int i = 0; i < 3 << 20; i += 4096) sum += block[i] == static_cast<char>(seed);
  return sum;
}

[[gnu::noinline]] void throw_below(int depth, int number) {
  volatile int around[16];
  for (int i = 0; i < 16; ++i) around[i] = number;
  if (depth == 0) throw std::runtime_error("expected");
  throw_below(depth - 1, number + around[depth % 16] - number);
}

/// Leaves frames with red zones by an exception: what it skips must be clean for the next calls.
[[gnu::noinline]] void throw_and_go_on(int seed) {
  volatile int mine[16];
  for (int i = 0; i < 16; ++i) mine[i] = seed + i;
  int caught = 0;
  try {
    throw_below(20, seed);
  } catch (std::runtime_error&) {
    caught = 1;
  }
  CHECK(caught, "the exception was lost");
  CHECK(deep(30, seed) == 30 * 16, "wrong sum after an exception");
  for (int i = 0; i < 16; ++i) CHECK(mine[i] == seed + i, "a local variable changed");
}

template <typename Body>
void nested(Body body) {
#pragma omp parallel num_threads(kMembers)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(kMembers)
    body(outer * kMembers + omp_get_thread_num());
  }
}

void frames() {
  int bad = 0;
  for (int round = 0; round < 3; ++round)
    nested([&](int id) {
      long sum = deep(200, id);
#pragma omp barrier
      sum += one_big_frame(id);
#pragma omp barrier
      if (sum != 200 * 16 + (3 << 20) / 4096) {
#pragma omp atomic
        bad++;
      }
    });
  CHECK(bad == 0, "%d members found their frames changed", bad);
}

void exceptions() {
  for (int round = 0; round < 3; ++round)
    nested([](int id) {
      throw_and_go_on(id);
#pragma omp barrier
      throw_and_go_on(id + 1);
#pragma omp task firstprivate(id)
      throw_and_go_on(id + 2);
#pragma omp taskwait
      // A member that has moved to another worker, perhaps.
      throw_and_go_on(id + 3);
    });
}

/// A task that spins for another one: the runtime sets the spinning one aside in the middle of its frames, runs
/// the other on another stack, and comes back.
void spinning_tasks() {
  for (int round = 0; round < 20; ++round) {
    int flag = 0;
    int done = 0;
#pragma omp parallel num_threads(2) shared(flag, done)
#pragma omp single nowait
    {
      // Whichever of the two the runtime starts first: in every second round it spins.
      for (int step = 0; step < 2; ++step) {
        const int raiser = (step + round) % 2;
#pragma omp task firstprivate(raiser) shared(flag, done)
        {
          volatile int mine[16];
          for (int i = 0; i < 16; ++i) mine[i] = raiser + i;
          throw_and_go_on(raiser);
          if (raiser)
            __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
          else
            while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {
            }
          throw_and_go_on(raiser + 1);
          for (int i = 0; i < 16; ++i) CHECK(mine[i] == raiser + i, "a task's variable changed");
#pragma omp atomic
          done++;
        }
      }
    }
    CHECK(done == 2, "%d of 2 tasks ran", done);
  }
}

/// Kernel threads, and with them the sanitizer's records of them, come and go.
void short_lived() {
  for (int round = 0; round < 5; ++round) {
    pthread_t threads[4];
    for (pthread_t& thread : threads)
      CHECK(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  nested([](int id) { throw_and_go_on(id); });
                  return nullptr;
                },
                nullptr) == 0,
            "pthread_create failed");
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
  }
}

/// A forked child that ends by exit() looks for leaks, too. Forks while no other thread is at work: GCC
/// 12's AddressSanitizer lets fork() copy its own locks as they are.
void forked() {
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) {
      arm_watchdog(60);
      exceptions();
      exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %d", status);
    int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
    {
      throw_and_go_on(round);
      members++;
    }
    CHECK(members == 2, "%d members", members);
  }
}

int* volatile escaped;

[[gnu::noinline]] void let_escape() {
  int local[4] = {1, 2, 3, 4};
  escaped = local;
}

[[gnu::noinline]] void write_at(volatile char* buffer, int at) { buffer[at] = 1; }

void overflow() {
  nested([](int id) {
    volatile char buffer[40];
    write_at(buffer, id == kMembers * kMembers - 1 ? 40 : 0);
  });
}

void returned() {
  nested([](int id) {
    if (id != kMembers + 3) return;
    let_escape();
    CHECK(*escaped == 1, "unreachable: the read is a mistake");
  });
}

void leak() {
  nested([](int id) {
    volatile auto* block = new char[77];
    block[0] = static_cast<char>(id);
  });
  deep(200, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "frames";
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  struct {
    const char* name;
    void (*run)();
  } const modes[] = {{"frames", frames},        {"exceptions", exceptions},
                     {"tasks", spinning_tasks}, {"threads", short_lived},
                     {"fork", forked},          {"overflow", overflow},
                     {"returned", returned},    {"leak", leak}};
  for (const auto& known : modes) {
    if (strcmp(mode, known.name) != 0) continue;
    known.run();
    return passed();
  }
  fail_at(__LINE__, "unknown mode %s", mode);
}
