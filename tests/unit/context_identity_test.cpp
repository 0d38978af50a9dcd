// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// User-level threads under donor identities are full POSIX threads, also while they move about.
#include "context/identity.h"

#include <ctype.h>
#include <dlfcn.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "context_support.h"

using namespace bosk;
using context_test::DonorContext;

namespace {

constexpr int kContexts = 64;
const int kRounds = context_test::emulated() ? 20 : context_test::kSanitized ? 40 : 150;

// ThreadSanitizer reports an unlock by a stranger as such, although the mutex refuses it.
#if defined(BOSK_TSAN)
constexpr bool kStrangersUnlock = false;
#else
constexpr bool kStrangersUnlock = true;
#endif

thread_local int tls_value = 42;
thread_local std::string tls_string = "fresh";

/// What the contexts share; each member counts the failures of one check.
struct Board {
  std::atomic<int> tls{0}, library_tls{0}, error_number{0}, heap{0}, exceptions{0};
  std::atomic<int> recursive{0}, errorcheck{0}, stdio{0}, character_class{0}, specific{0};
  std::atomic<int> processor{0}, self{0}, locale_{0}, attributes{0};
  std::atomic<int> migrations{0}, yields{0}, destroyed{0};
  std::atomic<void*> passed_on{nullptr};
  pthread_key_t key;
  std::atomic<int* (*)()> library_variable{nullptr};
};
Board* board;

// Asked for in functions of their own: the compiler may keep what pthread_self() said, and the
// address of errno, for as long as one function lasts. That must be right too (it is one thread), and
// the bodies below rely on it, but here a fresh answer is wanted.
[[gnu::noinline]] pthread_t fresh_self() {
  asm volatile("");
  return pthread_self();
}
[[gnu::noinline]] int* fresh_errno() {
  asm volatile("");
  return &errno;
}

void expect(bool holds, std::atomic<int>& failures) {
  if (!holds) failures.fetch_add(1, std::memory_order_relaxed);
}

struct Member {
  DonorContext* self;
  int number;
  int last_tid = 0;

  void yield() {
    self->yield();
    board->yields.fetch_add(1, std::memory_order_relaxed);
    const int tid = base::thread_id();
    if (tid != last_tid && last_tid != 0) board->migrations.fetch_add(1, std::memory_order_relaxed);
    last_tid = tid;
  }

  void thread_locals() {
    const int before = tls_value;
    int* address = &tls_value;
    tls_string += static_cast<char>('a' + number % 26);
    const std::string copy = tls_string;
    tls_value = before + number;
    yield();
    expect(tls_value == before + number && address == &tls_value && tls_string == copy, board->tls);
    if (tls_string.size() > 200) tls_string = "fresh";

    int* (*where)() = board->library_variable.load();
    if (where == nullptr) return;
    int* theirs = where();
    const int value = ++*theirs;
    yield();
    expect(where() == theirs && *theirs == value, board->library_tls);
  }

  void error_numbers() {
    errno = 1000 + number;
    yield();
    expect(errno == 1000 + number && *fresh_errno() == 1000 + number, board->error_number);
    expect(pthread_equal(fresh_self(), self->identity()->pthread) &&
               pthread_equal(pthread_self(), fresh_self()),
           board->self);
  }

  void heap() {
    const size_t size = 16 + static_cast<size_t>(number) * 37 % 3000;
    auto* mine = static_cast<unsigned char*>(malloc(size));
    memset(mine, number, size);
    yield();
    expect(std::all_of(mine, mine + size, [&](unsigned char c) { return c == number; }),
           board->heap);
    // Somebody else frees it, perhaps on another kernel thread.
    free(board->passed_on.exchange(mine));
  }

  void exceptions() {
    try {
      try {
        throw number;
      } catch (int caught) {
        yield();
        expect(caught == number && std::uncaught_exceptions() == 0, board->exceptions);
        try {
          throw std::runtime_error(std::to_string(number));
        } catch (const std::exception& error) {
          yield();
          expect(error.what() == std::to_string(number), board->exceptions);
        }
        throw;
      }
    } catch (int caught) {
      expect(caught == number, board->exceptions);
    }
    expect(std::current_exception() == nullptr, board->exceptions);
  }

  void mutexes(pthread_mutex_t* recursive, pthread_mutex_t* errorcheck, int* owner) {
    if (pthread_mutex_trylock(recursive) == 0) {
      *owner = number;
      yield();
      expect(pthread_mutex_lock(recursive) == 0, board->recursive);
      yield();
      expect(pthread_mutex_unlock(recursive) == 0 && *owner == number, board->recursive);
      expect(pthread_mutex_unlock(recursive) == 0, board->recursive);
    } else {
      // Held by another, and that must stay another.
      expect(!kStrangersUnlock || pthread_mutex_unlock(recursive) == EPERM, board->recursive);
    }
    if (pthread_mutex_trylock(errorcheck) == 0) {
      yield();
      expect(pthread_mutex_lock(errorcheck) == EDEADLK, board->errorcheck);
      expect(pthread_mutex_unlock(errorcheck) == 0, board->errorcheck);
    } else {
      expect(!kStrangersUnlock || pthread_mutex_unlock(errorcheck) == EPERM, board->errorcheck);
    }
  }

  void streams(FILE* file) {
    if (ftrylockfile(file) == 0) {
      yield();
      expect(ftrylockfile(file) == 0, board->stdio);  // recursive for its owner
      expect(fprintf(file, "%d %d\n", number, number) > 0, board->stdio);
      funlockfile(file);
      yield();
      funlockfile(file);
    }
  }

  void characters_and_locale(locale_t utf8) {
    const bool wide = number % 2 == 0 && utf8 != nullptr;
    const locale_t before = uselocale(wide ? utf8 : LC_GLOBAL_LOCALE);
    yield();
    expect(isalpha('x') && !isalpha('1') && toupper('q') == 'Q', board->character_class);
    expect(uselocale(nullptr) == (wide ? utf8 : LC_GLOBAL_LOCALE) && (MB_CUR_MAX > 1) == wide,
           board->locale_);
    uselocale(before);
  }

  void thread_specific() {
    int* value = static_cast<int*>(pthread_getspecific(board->key));
    if (value == nullptr) {
      value = new int(number);
      pthread_setspecific(board->key, value);
    }
    yield();
    expect(pthread_getspecific(board->key) == value && *value == number, board->specific);
  }

  void processor() {
    // Only where the kernel did not move us between the questions.
    for (int attempt = 0; attempt < 100; ++attempt) {
      unsigned before = 0, after = 0;
      base::raw_syscall(SYS_getcpu, base::address_of(&before));
      const int said = sched_getcpu();
      base::raw_syscall(SYS_getcpu, base::address_of(&after));
      if (before != after) continue;
      expect(said == static_cast<int>(before), board->processor);
      return;
    }
  }

  void attributes() {
    pthread_attr_t attributes;
    void* low = nullptr;
    size_t size = 0;
    expect(pthread_getattr_np(pthread_self(), &attributes) == 0, board->attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    // Not a local variable's address: AddressSanitizer keeps these elsewhere.
    const auto* here = static_cast<char*>(__builtin_frame_address(0));
    expect(here >= low && here < static_cast<char*>(low) + size, board->attributes);
    cpu_set_t cpus;
    expect(pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0, board->attributes);
  }
};

class Identities : public ::testing::Test {
 protected:
  void SetUp() override {
    board = &board_;
    pthread_key_create(&board_.key, [](void* value) {
      delete static_cast<int*>(value);
      board->destroyed.fetch_add(1);
    });
  }
  void TearDown() override { pthread_key_delete(board_.key); }
  Board board_;
};

TEST_F(Identities, are_those_of_full_threads_wherever_they_run) {
  context_test::Folder folder;
  const std::string library = folder.file("libvariable.so");
  ASSERT_TRUE(context_test::compile(
      folder, "gcc -shared -fPIC", ".c",
      "static _Thread_local int v = 5; int *where(void) { return &v; }", library));
  pthread_mutexattr_t kind;
  pthread_mutex_t recursive, errorcheck;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&errorcheck, &kind);
  int owner = -1;
  FILE* file = fopen("/dev/null", "w");
  const locale_t utf8 = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);

  std::vector<std::unique_ptr<DonorContext>> contexts;
  std::vector<DonorContext*> all;
  for (int number = 1; number <= kContexts; ++number) {
    contexts.push_back(std::make_unique<DonorContext>([&, number](DonorContext& self) {
      Member member{&self, number};
      expect(tls_value == 42 && tls_string == "fresh", board->tls);
      for (int round = 0; round < kRounds; ++round) {
        // Loaded while the threads are under way: their DTVs grow wherever they happen to run.
        if (number == 7 && round == kRounds / 4) {
          void* handle = dlopen(library.c_str(), RTLD_NOW);
          void* symbol = handle == nullptr ? nullptr : dlsym(handle, "where");
          board->library_variable = reinterpret_cast<int* (*)()>(symbol);
        }
        member.thread_locals();
        member.error_numbers();
        member.heap();
        member.exceptions();
        member.mutexes(&recursive, &errorcheck, &owner);
        member.streams(file);
        member.characters_and_locale(utf8);
        member.thread_specific();
        member.processor();
        if (round % 8 == 0) member.attributes();
      }
    }));
    ASSERT_NE(contexts.back()->identity(), nullptr) << strerror(contexts.back()->error());
    all.push_back(contexts.back().get());
  }
  context_test::run_all(all, 3);
  // The threads end on their own time; their destructors use the board.
  contexts.clear();
  while (board_.destroyed.load() != kContexts) sched_yield();

  EXPECT_EQ(board_.tls, 0);
  EXPECT_NE(board_.library_variable.load(), nullptr);
  EXPECT_EQ(board_.library_tls, 0);
  EXPECT_EQ(board_.error_number, 0);
  EXPECT_EQ(board_.heap, 0);
  EXPECT_EQ(board_.exceptions, 0);
  EXPECT_EQ(board_.recursive, 0);
  EXPECT_EQ(board_.errorcheck, 0);
  EXPECT_EQ(board_.stdio, 0);
  EXPECT_EQ(board_.character_class, 0);
  EXPECT_EQ(board_.locale_, 0);
  EXPECT_EQ(board_.specific, 0);
  EXPECT_EQ(board_.processor, 0);
  EXPECT_EQ(board_.self, 0);
  EXPECT_EQ(board_.attributes, 0);
  // Otherwise the above shows nothing.
  EXPECT_GT(board_.yields, kContexts * kRounds * 6);
  EXPECT_GT(board_.migrations, 100);
  EXPECT_EQ(tls_value, 42);
  free(board_.passed_on.exchange(nullptr));
  freelocale(utf8);
  fclose(file);
}

/// The counter-proof: contexts that share their carrier's identity fail the same checks.
TEST_F(Identities, without_one_of_its_own_a_context_sees_its_neighbours_values) {
  struct Plain {
    std::unique_ptr<char[]> stack;
    void* sp;
    void* caller;
    int number;
  };
  static int disturbed;
  disturbed = 0;
  std::vector<Plain> contexts(4);
  for (int i = 0; i < 4; ++i) {
    Plain& context = contexts[i];
    context.number = i;
    context.stack = std::make_unique<char[]>(128 * 1024);
    context.sp = context::make_context(
        context.stack.get() + 128 * 1024,
        [](void* argument) {
          auto* me = static_cast<Plain*>(argument);
          *fresh_errno() = 100 + me->number;
          context::bosk_context_switch(&me->sp, me->caller, 0);
          if (*fresh_errno() != 100 + me->number) ++disturbed;
          for (;;) context::bosk_context_switch(&me->sp, me->caller, 0);
        },
        &context);
  }
  for (int round = 0; round < 2; ++round)
    for (Plain& context : contexts) context::bosk_context_switch(&context.caller, context.sp, 0);
  EXPECT_EQ(disturbed, 3);
}

std::atomic<int> destructions;
struct Counted {
  bool used = false;
  ~Counted() {
    if (used) destructions.fetch_add(1);
  }
};
thread_local Counted counted;

TEST_F(Identities, end_as_threads_do) {
  destructions = 0;
  for (int i = 0; i < 5; ++i) {
    DonorContext context([&](DonorContext&) {
      counted.used = true;
      pthread_setspecific(board->key, new int(3));
    });
    ASSERT_NE(context.identity(), nullptr) << strerror(context.error());
    context.resume();
    EXPECT_TRUE(context.done());
    EXPECT_EQ(destructions, 0);
    context::release_donor(context.take_identity());
    while (destructions.load() == 0 || board_.destroyed.load() == 0) sched_yield();
    EXPECT_EQ(destructions.exchange(0), 1);
    EXPECT_EQ(board_.destroyed.exchange(0), 1);
  }
}

TEST_F(Identities, a_native_one_describes_the_calling_thread) {
  context::Identity identity;
  std::thread([&] {
    context::adopt_calling_thread(&identity);
    EXPECT_EQ(identity.kind, context::IdentityKind::kNative);
    EXPECT_EQ(identity.thread_pointer, context::thread_pointer());
    EXPECT_EQ(identity.block, context::thread_block());
    EXPECT_EQ(identity.block->identity, &identity);
    EXPECT_EQ(identity.tid, base::thread_id());
    EXPECT_TRUE(pthread_equal(identity.pthread, pthread_self()));
  }).join();
}

}  // namespace
