// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What belongs to a POSIX thread stays with an OpenMP thread that blocks and goes on elsewhere: errno,
// stdio and recursive locks, malloc, exceptions, locale, thread-specific data, pthread_self.
#include "check.h"

#include <locale.h>
#include <omp.h>
#include <pthread.h>

#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Something that blocks in the runtime, chosen by number.
void block_somehow(int way) {
  switch (way % 4) {
    case 0: {
#pragma omp barrier
      break;
    }
    case 1: {
#pragma omp critical(identity)
      {
        volatile int spin = 0;
        for (int i = 0; i < 200; ++i) spin = spin + i;
      }
#pragma omp barrier
      break;
    }
    case 2: {
      int done = 0;
      for (int i = 0; i < 3; ++i) {
#pragma omp task shared(done)
        {
#pragma omp atomic
          done++;
        }
      }
#pragma omp taskwait
      CHECK(done == 3, "taskwait came back after %d of 3 tasks", done);
#pragma omp barrier
      break;
    }
    default: {
#pragma omp for schedule(dynamic, 1)
      for (int i = 0; i < 64; ++i) {
        volatile int spin = 0;
        for (int k = 0; k < 100; ++k) spin = spin + k;
      }
    }
  }
}

__attribute__((noipa)) int* where_errno_is() { return &errno; }

void errno_stays(int me, int round) {
  int* before = where_errno_is();
  for (int way = 0; way < 4; ++way) {
    if (way == 2) continue;  // a task run by this thread may set errno, lawfully
    errno = 1000 + me;
    block_somehow(way);
    CHECK(errno == 1000 + me, "round %d: errno of thread %d is %d after blocking (%d)", round, me,
          errno, way);
  }
  block_somehow(2);
  CHECK(where_errno_is() == before, "thread %d found its errno at another address", me);
}

void locks_stay(int me) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutex_t recursive, checked;
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checked, &kind);
  pthread_mutexattr_destroy(&kind);
  CHECK(pthread_mutex_lock(&recursive) == 0, "recursive lock failed");
  CHECK(pthread_mutex_lock(&checked) == 0, "errorcheck lock failed");
  for (int way = 0; way < 4; ++way) {
    block_somehow(way);
    int result = pthread_mutex_trylock(&recursive);
    CHECK(result == 0, "thread %d is no longer the owner of its recursive mutex (%d)", me, result);
    CHECK(pthread_mutex_lock(&checked) == EDEADLK, "thread %d is no longer the owner of its mutex",
          me);
  }
  for (int i = 0; i < 5; ++i)
    CHECK(pthread_mutex_unlock(&recursive) == 0, "unlock %d of the recursive mutex failed", i);
  CHECK(pthread_mutex_unlock(&recursive) == EPERM, "the recursive mutex was still held");
  CHECK(pthread_mutex_unlock(&checked) == 0, "thread %d may not unlock its mutex", me);
  pthread_mutex_destroy(&recursive);
  pthread_mutex_destroy(&checked);
}

FILE* shared_file;

void stdio_stays(int me) {
  FILE* mine = tmpfile();
  CHECK(mine, "tmpfile: errno %d", errno);
  flockfile(mine);
  for (int way = 0; way < 4; ++way) {
    fprintf(mine, "%d %d\n", me, way);
    block_somehow(way);
    CHECK(ftrylockfile(mine) == 0, "thread %d is no longer the owner of its FILE", me);
    funlockfile(mine);
  }
  funlockfile(mine);
  rewind(mine);
  for (int way = 0; way < 4; ++way) {
    int who = -1, what = -1;
    CHECK(fscanf(mine, "%d %d", &who, &what) == 2 && who == me && what == way,
          "thread %d reads back %d %d", me, who, what);
  }
  fclose(mine);
  // One FILE for all: the two halves of a line stay together.
  for (int i = 0; i < 20; ++i) {
    flockfile(shared_file);
    fprintf(shared_file, "%d:", me);
    fprintf(shared_file, "%d\n", me);
    funlockfile(shared_file);
  }
}

struct Fault : std::runtime_error {
  int owner, depth;
  Fault(int o, int d) : std::runtime_error("fault"), owner(o), depth(d) {}
};

struct Unwound {
  int me, way;
  ~Unwound() {
    CHECK(std::uncaught_exceptions() == 1, "thread %d: %d exceptions in flight while unwinding", me,
          std::uncaught_exceptions());
  }
};

void nested_throw(int me, int depth) {
  try {
    Unwound guard{me, depth};
    throw Fault(me, depth);
  } catch (const Fault& fault) {
    CHECK(std::uncaught_exceptions() == 0, "thread %d: an exception is in flight in its handler",
          me);
    block_somehow(depth);
    CHECK(fault.owner == me && fault.depth == depth, "thread %d caught the exception of thread %d",
          me, fault.owner);
    if (depth > 0) {
      nested_throw(me, depth - 1);
      block_somehow(depth + 1);
      try {
        throw;
      } catch (const Fault& again) {
        CHECK(&again == &fault && again.owner == me && again.depth == depth,
              "thread %d: rethrow raised exception %d/%d", me, again.owner, again.depth);
      }
    }
    CHECK(std::current_exception() != nullptr, "thread %d lost its current exception", me);
  }
}

std::vector<std::exception_ptr> carried;

void exceptions_stay(int me, int n) {
  nested_throw(me, 4);
  CHECK(!std::current_exception(), "thread %d still has a current exception", me);
  try {
    throw Fault(me, 77);
  } catch (...) {
    carried[me] = std::current_exception();
    block_somehow(0);
  }
  block_somehow(0);
  int neighbour = (me + 1) % n;
  try {
    std::rethrow_exception(carried[neighbour]);
  } catch (const Fault& fault) {
    block_somehow(0);
    CHECK(fault.owner == neighbour, "thread %d: carried exception of %d, expected %d", me,
          fault.owner, neighbour);
  }
  block_somehow(0);
  carried[me] = nullptr;
}

std::vector<std::vector<char*>> given;

void memory_crosses(int me, int n, int round) {
  for (int i = 0; i < 40; ++i) {
    size_t size = 1 + (static_cast<size_t>(me) * 131 + i * 977 + round * 31) % 9000;
    char* block = static_cast<char*>(malloc(size + 8));
    CHECK(block, "no memory");
    memcpy(block, &size, sizeof size);
    memset(block + 8, me + 1, size);
    given[me].push_back(block);
  }
  block_somehow(round);
  block_somehow(0);
  int neighbour = (me + 1 + round) % n;
  for (char* block : given[neighbour]) {
    size_t size;
    memcpy(&size, block, sizeof size);
    for (size_t i = 0; i < size; ++i)
      CHECK(block[8 + i] == neighbour + 1, "memory of thread %d was overwritten", neighbour);
    free(block);
  }
  block_somehow(0);
  given[me].clear();
  std::map<std::string, std::unique_ptr<int>> tree;
  for (int i = 0; i < 30; ++i) tree[std::to_string(i * 7919 % 1000)] = std::make_unique<int>(i);
  block_somehow(round);
  long sum = 0;
  for (auto& [key, item] : tree) sum += *item;
  CHECK(sum == 435, "the tree of thread %d sums to %ld", me, sum);
}

pthread_key_t key;

void self_stays(int me) {
  pthread_t self = pthread_self();
  locale_t mine = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
  locale_t before = uselocale(mine);
  pthread_setspecific(key, &self);
  for (int way = 0; way < 4; ++way) {
    block_somehow(way);
    CHECK(pthread_equal(self, pthread_self()), "pthread_self of thread %d changed", me);
    CHECK(pthread_getspecific(key) == &self, "thread %d has somebody else's specific value", me);
    CHECK(uselocale(static_cast<locale_t>(nullptr)) == mine, "thread %d has another locale", me);
  }
  pthread_setspecific(key, nullptr);
  uselocale(before);
  freelocale(mine);
  pthread_attr_t attributes;
  CHECK(pthread_getattr_np(self, &attributes) == 0, "pthread_getattr_np failed");
  void* base = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &base, &size);
  // Not a local variable's address: AddressSanitizer keeps these elsewhere.
  const char* here = static_cast<char*>(__builtin_frame_address(0));
  // The main thread's stack may be described as it is now, so allow for its growth.
  CHECK(here < static_cast<char*>(base) + size && here > static_cast<char*>(base) - (64 << 20),
        "thread %d: its stack is not where pthread_getattr_np says", me);
  pthread_attr_destroy(&attributes);
}

void everything(int round) {
  int me = omp_get_thread_num(), n = omp_get_num_threads();
  errno_stays(me, round);
  locks_stay(me);
  stdio_stays(me);
  exceptions_stay(me, n);
  memory_crosses(me, n, round);
  self_stays(me);
}

void flat(int threads, int rounds) {
  carried.assign(threads, nullptr);
  given.assign(threads, {});
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(threads)
    {
      CHECK(omp_get_num_threads() == threads, "team of %d, wanted %d", omp_get_num_threads(),
            threads);
      everything(round);
    }
  }
}

/// The nested form uses only what is private to a team.
void nested(int outer, int inner, int rounds) {
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel num_threads(outer)
    {
#pragma omp parallel num_threads(inner)
      {
        int me = omp_get_thread_num();
        errno_stays(me, round);
        locks_stay(me);
        stdio_stays(me);
        nested_throw(me, 3);
        self_stays(me);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "flat";
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  CHECK(pthread_key_create(&key, nullptr) == 0, "pthread_key_create failed");
  shared_file = tmpfile();
  CHECK(shared_file, "tmpfile: errno %d", errno);
  if (mode == "flat") {
    flat(omp_get_max_threads(), 20);
    flat(8, 40);
    flat(3, 40);
  } else {
    nested(2, 4, 40);
    nested(8, 4, 15);
  }
  rewind(shared_file);
  int a, b, lines = 0;
  while (fscanf(shared_file, "%d:%d", &a, &b) == 2) {
    CHECK(a == b, "a line was torn: %d:%d", a, b);
    ++lines;
  }
  CHECK(lines > 0 && feof(shared_file), "the shared file is malformed after %d lines", lines);
  return passed();
}
