// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which objects could tell identities, or kernel threads, apart: small libraries and programs that
// are compiled here.
#include "context/observers.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "context_support.h"
#include "in_child.h"

using namespace bosk;
using context::LoadedObject;
using context::ObjectVerdict;
using context_test::Folder;

namespace {

constexpr const char* kLibrary = "gcc -shared -fPIC -nostdlib";

/// A library that refers to `symbol`, whether or not anybody has it.
std::string import_of(const std::string& symbol) {
  return "extern void " + symbol + "(void) __attribute__((weak));\n" +
         "void (*bosk_test_pointer)(void) = " + symbol + ";\n";
}

/// Loads `path` and judges it; nothing else of the process is looked at.
struct Judged {
  bool loaded = false;
  std::string identity, kernel_thread, by_call;  ///< "": it says nothing
  bool better_ours = false;
};

Judged judge(const std::string& path) {
  Judged result;
  void* handle = dlopen(path.c_str(), RTLD_NOW);
  if (handle == nullptr) return result;
  struct Search {
    const std::string& path;
    Judged& result;
  } search{path, result};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* searched = static_cast<Search*>(argument);
        if (searched->path != info->dlpi_name) return 0;
        const ObjectVerdict verdict = context::judge_object(
            {info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum});
        searched->result.loaded = true;
        if (verdict.identity_symbol != nullptr) searched->result.identity = verdict.identity_symbol;
        if (verdict.kernel_thread_symbol != nullptr)
          searched->result.kernel_thread = verdict.kernel_thread_symbol;
        if (verdict.by_call_symbol != nullptr) searched->result.by_call = verdict.by_call_symbol;
        searched->result.better_ours = verdict.better_ours;
        return 1;
      },
      &search);
  dlclose(handle);
  return result;
}

Judged judge_source(const std::string& source, const std::string& flags = "",
                    const std::string& name = "libprobe.so") {
  Folder folder;
  const std::string library = folder.file(name);
  if (!context_test::compile(folder, std::string(kLibrary) + " " + flags, ".c", source, library))
    return {};
  return judge(library);
}

TEST(Observers, a_tls_segment_is_one) {
  const Judged judged = judge_source("_Thread_local int mine; int *where(void) { return &mine; }");
  ASSERT_TRUE(judged.loaded);
  EXPECT_EQ(judged.identity, "TLS segment");
  EXPECT_EQ(judged.kernel_thread, "");
}

TEST(Observers, imports_that_tell_identities_apart) {
  for (const char* symbol :
       {"pthread_self", "pthread_getspecific", "pthread_setspecific", "pthread_key_create",
        "tss_get", "tss_set", "tss_create", "thrd_current", "uselocale",
        "pthread_mutexattr_settype", "__emutls_get_address", "dlsym", "dlvsym",
        "pthread_getattr_np", "mtx_init", "__cxa_get_globals", "pthread_setcancelstate"}) {
    const Judged judged = judge_source(import_of(symbol));
    ASSERT_TRUE(judged.loaded) << symbol;
    EXPECT_EQ(judged.identity, symbol);
    EXPECT_EQ(judged.kernel_thread, "") << symbol;
  }
}

TEST(Observers, imports_that_act_on_the_kernel_thread) {
  for (const char* symbol :
       {"pthread_kill", "pthread_sigqueue", "pthread_getcpuclockid", "set_mempolicy",
        "timer_create", "tgkill", "numa_run_on_node", "hwloc_set_cpubind", "pthread_cancel",
        "arch_prctl", "pkey_set", "iopl", "io_uring_setup"}) {
    const Judged judged = judge_source(import_of(symbol));
    ASSERT_TRUE(judged.loaded) << symbol;
    EXPECT_EQ(judged.identity, "") << symbol;
    EXPECT_EQ(judged.kernel_thread, symbol);
  }
}

TEST(Observers, some_imports_do_both) {
  for (const char* symbol : {"pthread_mutexattr_setprotocol", "pthread_mutexattr_setrobust"}) {
    const Judged judged = judge_source(import_of(symbol));
    ASSERT_TRUE(judged.loaded) << symbol;
    EXPECT_EQ(judged.identity, symbol);
    EXPECT_EQ(judged.kernel_thread, symbol);
  }
}

TEST(Observers, imports_that_count_when_they_are_called) {
  for (const char* symbol : {"pthread_setaffinity_np", "pthread_getaffinity_np",
                             "sched_setaffinity", "pthread_setschedparam", "setpriority",
                             "pthread_setname_np", "prctl", "sigaltstack", "unshare"}) {
    const Judged judged = judge_source(import_of(symbol));
    ASSERT_TRUE(judged.loaded) << symbol;
    EXPECT_EQ(judged.identity, "") << symbol;
    EXPECT_EQ(judged.kernel_thread, "") << symbol;
    EXPECT_EQ(judged.by_call, symbol);
  }
  for (const char* symbol : {"gettid", "syscall"}) {
    const Judged judged = judge_source(import_of(symbol));
    ASSERT_TRUE(judged.loaded) << symbol;
    EXPECT_EQ(judged.identity, symbol);
    EXPECT_EQ(judged.by_call, symbol);
  }
}

TEST(Observers, imports_of_which_ours_are_better) {
  for (const char* symbol :
       {"sched_yield", "usleep", "nanosleep", "thrd_yield", "sched_getaffinity"})
    EXPECT_TRUE(judge_source(import_of(symbol), "-fno-builtin -w").better_ours) << symbol;
  EXPECT_FALSE(judge_source(import_of("printf"), "-fno-builtin -w").better_ours);
}

TEST(Observers, ordinary_imports_do_nothing) {
  std::string source;
  for (const char* symbol : {"printf",
                             "malloc",
                             "__errno_location",
                             "pthread_mutex_lock",
                             "pthread_create",
                             "pthread_join",
                             "pthread_cond_wait",
                             "pthread_once",
                             "__pthread_key_create",
                             "clock_gettime",
                             "sched_getcpu",
                             "__tls_get_addr",
                             "dlopen",
                             "getpid",
                             "pthread_sel",
                             "pthread_selfish",
                             "sysca",
                             "syscalls",
                             "a",
                             "zzz"})
    source += "extern void " + std::string(symbol) + "(void) __attribute__((weak));\n" +
              "void (*p_" + symbol + ")(void) = " + symbol + ";\n";
  const Judged judged = judge_source(source, "-fno-builtin -w");
  ASSERT_TRUE(judged.loaded);
  EXPECT_EQ(judged.identity, "");
  EXPECT_EQ(judged.kernel_thread, "");
}

TEST(Observers, a_definition_is_no_import) {
  const Judged judged = judge_source("void *pthread_self(void) { return 0; }", "-w -fno-builtin");
  ASSERT_TRUE(judged.loaded);
  EXPECT_EQ(judged.identity, "");
}

TEST(Observers, whatever_hash_table_there_is) {
  const std::string exports = "int exported(void) { return 1; } int other(void) { return 2; }\n";
  for (const char* flags :
       {"-Wl,--hash-style=sysv", "-Wl,--hash-style=gnu", "-Wl,--hash-style=both",
        "-Wl,--hash-style=gnu -fvisibility=hidden", "-Wl,--hash-style=sysv -fvisibility=hidden",
        "-Wl,--hash-style=gnu -Wl,-z,lazy", "-Wl,--hash-style=gnu -Wl,-z,pack-relative-relocs"}) {
    // Hidden, the pointers still need the imports: nothing is exported then.
    const std::string source =
        "extern void pthread_self(void); extern void free(void); void (*p)(void) = pthread_self;\n"
        "void (*q)(void) = free; void call(void) { pthread_self(); }\n" +
        exports;
    const Judged second = judge_source(source, std::string(flags) + " -fno-builtin -w");
    ASSERT_TRUE(second.loaded) << flags;
    EXPECT_EQ(second.identity, "pthread_self") << flags;
    EXPECT_EQ(second.kernel_thread, "") << flags;
  }
}

TEST(Observers, run_times_are_not_judged) {
  const std::string source =
      "_Thread_local int mine; int *where(void) { return &mine; }\n" + import_of("pthread_kill");
  for (const char* name : {"libgfortran.so.5", "libgfortran-040039e1.so.5.0.0", "libstdc++.so.6",
                           "libudev.so.1", "libgomp-a34b3233.so.1.0.0"}) {
    const Judged judged = judge_source(source, "", name);
    ASSERT_TRUE(judged.loaded) << name;
    EXPECT_EQ(judged.identity, "") << name;
    EXPECT_EQ(judged.kernel_thread, "") << name;
  }
  for (const char* name : {"libmine.so", "libm-mine.so", "libcalc.so", "libgfortran2.so",
                           "libstdc.so", "xlibm.so", "libm-abc.so"}) {
    const Judged judged = judge_source(source, "", name);
    ASSERT_TRUE(judged.loaded) << name;
    EXPECT_EQ(judged.identity, "TLS segment") << name;
    EXPECT_EQ(judged.kernel_thread, "pthread_kill") << name;
  }
}

TEST(Observers, libraries_that_place_only_their_own_threads) {
  const std::string source = "_Thread_local int mine; int *where(void) { return &mine; }\n" +
                             import_of("pthread_setaffinity_np") +
                             "extern void pthread_kill(void); void (*q)(void) = pthread_kill;";
  for (const char* name :
       {"libopenblasp-r0.3.21.so", "libtbb.so.12", "libnuma.so.1", "libpython3.11.so.1.0",
        "libjemalloc.so.2", "libscipy_openblas64_-32a4b2a6.so", "libuuid.so.1",
        "_posixsubprocess.cpython-311-x86_64-linux-gnu.so", "lib_lightgbm.so", "libxgboost.so",
        "libpciaccess.so.0"}) {
    const Judged judged = judge_source(source, "", name);
    ASSERT_TRUE(judged.loaded) << name;
    EXPECT_EQ(judged.identity, "TLS segment") << name;
    EXPECT_EQ(judged.kernel_thread, "") << name;
    EXPECT_EQ(judged.by_call, "") << name;
  }
}

TEST(Observers, the_vdso_is_readable_and_imports_nothing) {
  const auto* image = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (image == nullptr) GTEST_SKIP() << "no vDSO here";
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(image + header->e_phoff);
  uintptr_t base = reinterpret_cast<uintptr_t>(image);
  for (int i = 0; i < header->e_phnum; ++i)
    if (segments[i].p_type == PT_LOAD) {
      base -= segments[i].p_vaddr;
      break;
    }
  int imports = 0;
  EXPECT_EQ(context::for_each_import(
                {"some-vdso", base, segments, header->e_phnum},
                [](const char*, void* count) {
                  ++*static_cast<int*>(count);
                  return false;
                },
                &imports),
            context::ImportScan::kDone);
  EXPECT_EQ(imports, 0);
}

TEST(Observers, an_object_without_a_dynamic_segment_says_nothing) {
  const ObjectVerdict verdict = context::judge_object({"nothing", 0, nullptr, 0});
  EXPECT_EQ(verdict.identity_symbol, nullptr);
  EXPECT_EQ(verdict.kernel_thread_symbol, nullptr);
}

TEST(Observers, an_object_that_cannot_be_read_is_suspected) {
  static ElfW(Dyn) dynamic[2] = {};
  dynamic[0].d_tag = DT_SYMTAB;
  dynamic[0].d_un.d_ptr = 16;  // outside of every segment
  ElfW(Phdr) segment = {};
  segment.p_type = PT_DYNAMIC;
  segment.p_vaddr = reinterpret_cast<uintptr_t>(dynamic);
  const ObjectVerdict verdict = context::judge_object({"odd", 0, &segment, 1});
  EXPECT_STREQ(verdict.identity_symbol, "unreadable symbol table");
  EXPECT_STREQ(verdict.kernel_thread_symbol, "unreadable symbol table");
}

// ---- The process as a whole. ----

/// Runs `body` in a child of this process, which has no observer of its own: it is bosk's object.
bosk::testing::ChildResult in_process(const bosk::testing::Variables& variables,
                                      std::function<std::string()> body) {
  return bosk::testing::in_child(variables, [&] { return body(); });
}

class WholeProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (context_test::kSanitized) GTEST_SKIP() << "the sanitizer's run-time is an observer";
    library_ = folder_.file("libwatcher.so");
    ASSERT_TRUE(context_test::compile(
        folder_, kLibrary, ".c",
        "_Thread_local int mine; int *where(void) { return &mine; }\n" + import_of("pthread_kill") +
            "extern void pthread_getattr_np(void) __attribute__((weak));\n"
            "void (*bosk_test_other)(void) = pthread_getattr_np;\n",
        library_));
  }
  Folder folder_;
  std::string library_;
};

std::string answers(uint64_t now) {
  const char* name = context::observer_name();
  return std::string(context::identities_observable_cached(now) ? "strict" : "relaxed") +
         (context::kernel_threads_observable_cached(now) ? ", kernel threads" : "") +
         (name != nullptr ? " by name" : "");
}

TEST_F(WholeProcess, is_looked_at_when_something_was_loaded_but_not_at_once) {
  const auto result = in_process({}, [&]() -> std::string {
    const uint64_t now = base::cycles();
    const uint64_t later = now + 1001 * base::cycles_per_microsecond();
    std::string text = answers(now) + "; ";
    void* handle = dlopen(library_.c_str(), RTLD_NOW);
    if (handle == nullptr) return dlerror();
    text += answers(now + 1) + "; ";
    context::identities_observable_cached(later);
    text += answers(later) + "; ";
    dlclose(handle);
    text += answers(later + 5000 * base::cycles_per_microsecond()) + "; ";
    text += std::string(context::observer_name()).substr(library_.rfind('/') + 1) + "; ";
    text += std::string(context::kernel_thread_observer_name()).substr(library_.rfind('/') + 1);
    return text;
  });
  EXPECT_EQ(result.output,
            "relaxed; relaxed; strict, kernel threads by name; strict, kernel threads by name; "
            "libwatcher.so (TLS segment); libwatcher.so (pthread_kill)");
}

TEST_F(WholeProcess, is_looked_at_at_once_after_a_dlopen_that_was_seen) {
  const auto result = in_process({}, [&]() -> std::string {
    const uint64_t now = base::cycles();
    std::string text = answers(now) + "; ";
    if (dlopen(library_.c_str(), RTLD_NOW) == nullptr) return dlerror();
    context::observers_may_have_changed();
    context::identities_observable_cached(now + 1);
    return text + answers(now + 1);
  });
  EXPECT_EQ(result.output, "relaxed; strict, kernel threads by name");
}

// Nobody goes by the look of somebody else that has not come to its end.
TEST_F(WholeProcess, is_looked_at_by_all_who_are_the_first_to_ask) {
  constexpr int kThreads = 8;
  for (int turn = 0; turn < 20; ++turn) {
    const auto result = in_process({}, [&]() -> std::string {
      if (dlopen(library_.c_str(), RTLD_NOW) == nullptr) return dlerror();
      std::atomic<int> ready{0};
      std::atomic<int> told[3] = {};
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
          ready.fetch_add(1);
          while (ready.load() < kThreads) std::this_thread::yield();
          told[0] += context::stacks_observable_cached(base::cycles()) ? 1 : 0;
          told[1] += context::identities_observable_cached(base::cycles()) ? 1 : 0;
          told[2] += context::kernel_threads_observable_cached(base::cycles()) ? 1 : 0;
        });
      for (std::thread& thread : threads) thread.join();
      return std::to_string(told[0]) + " " + std::to_string(told[1]) + " " +
             std::to_string(told[2]);
    });
    ASSERT_EQ(result.output, "8 8 8");
  }
}

TEST_F(WholeProcess, obeys_the_environment) {
  for (const auto& [choice, expected] :
       {std::pair{"relaxed", "relaxed"}, std::pair{"strict", "strict, kernel threads"},
        std::pair{"kthread", "strict, kernel threads"},
        std::pair{"auto", "strict, kernel threads by name"}}) {
    const auto result = in_process({{"BOSK_IDENTITY", choice}}, [&]() -> std::string {
      if (dlopen(library_.c_str(), RTLD_NOW) == nullptr) return dlerror();
      context::identities_observable_cached(base::cycles());
      return answers(base::cycles());
    });
    EXPECT_EQ(result.output, expected) << choice;
  }
  const auto result =
      in_process({{"BOSK_IDENTITY", "strict"}}, [&]() { return answers(base::cycles()); });
  EXPECT_EQ(result.output, "strict");
}

// ---- Whole programs, with the check preloaded as bosk is. ----

class Programs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    preload_ = folder_->file("libpreload.so");
    const std::string root = std::string(BOSK_SOURCE_DIR) + "/src/";
    ready_ = !context_test::emulated() && !context_test::kSanitized &&
             context_test::compile(
                 *folder_,
                 "g++ -std=gnu++20 -O1 -shared -fPIC -static-libstdc++ -static-libgcc -I" + root +
                     " " + root + "base/*.cpp " + root + "context/observers.cpp " + root +
                     "context/loaded_object.cpp " + root + "context/taken_calls.cpp " + root +
                     "context/suspects.cpp -x c++",
                 ".cpp", R"(
#include <stdio.h>
#include "base/cpu.h"
#include "context/observers.h"
#include "context/switch.h"
// Of the switch, which is not in this library.
uint8_t bosk_x87_flags_matter;
__attribute__((constructor)) static void report() {
  const bool strict = bosk::context::identities_observable_cached(bosk::base::cycles());
  const bool kernel = bosk::context::kernel_threads_observable();
  const char* first = bosk::context::observer_name();
  const char* second = bosk::context::kernel_thread_observer_name();
  printf("%s %s\n%s %s\n", strict ? "strict" : "relaxed", first ? first : "",
         kernel ? "kernel threads" : "workers", second ? second : "");
  fflush(stdout);
}
)",
                 preload_);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override {
    if (context_test::emulated()) GTEST_SKIP() << "preloading is for the native machine";
    if (context_test::kSanitized) GTEST_SKIP() << "programs here are not sanitized";
    ASSERT_TRUE(ready_);
  }

  /// What the check says in a program made of `source`.
  std::string ask(const std::string& command, const std::string& extension,
                  const std::string& source) {
    Folder folder;
    const std::string program = folder.file("program");
    if (!context_test::compile(folder, command, extension, source, program)) return "no program";
    FILE* pipe = popen(("LD_PRELOAD='" + preload_ + "' '" + program + "'").c_str(), "r");
    char line[512];
    std::string text;
    while (pipe != nullptr && fgets(line, sizeof line, pipe) != nullptr) text += line;
    if (pipe != nullptr) pclose(pipe);
    // The folder's name changes from run to run.
    for (size_t at; (at = text.find(program)) != std::string::npos;)
      text.replace(at, program.size(), "program");
    return text;
  }

  static Folder* folder_;
  static std::string preload_;
  static bool ready_;
};
Folder* Programs::folder_;
std::string Programs::preload_;
bool Programs::ready_;

constexpr const char* kClean = "relaxed \nworkers \n";

TEST_F(Programs, plain_c_is_relaxed) {
  EXPECT_EQ(ask("gcc -O2", ".c", R"(
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *p) { pthread_mutex_lock(&lock); free(p); pthread_mutex_unlock(&lock); return 0; }
int main(int argc, char **argv) {
  if (argc > 1) { pthread_t t; pthread_create(&t, 0, run, malloc(9)); pthread_join(t, 0); }
  errno = 0;
  return strlen(argv[0]) == 0 || errno;
}
)"),
            kClean);
}

TEST_F(Programs, cpp_with_streams_threads_and_exceptions_is_relaxed) {
  const std::string source = R"(
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
std::mutex mutex;
std::recursive_mutex recursive;
std::condition_variable condition;
std::once_flag once;
int main(int argc, char** argv) {
  std::map<std::string, std::vector<int>> map;
  if (argc > 1) {
    std::thread thread([&] { std::lock_guard<std::mutex> guard(mutex); map["a"].push_back(1); });
    thread.join();
    std::lock_guard<std::recursive_mutex> guard(recursive);
    std::call_once(once, [] { std::cout << "once\n"; });
    std::cout << std::async([] { return 1; }).get() << argv[1];
  }
  try { map.at("b"); } catch (const std::out_of_range&) { return 0; }
  return 1;
}
)";
  EXPECT_EQ(ask("g++ -O0 -no-pie", ".cpp", source), kClean);
}

TEST_F(Programs, fortran_is_relaxed) {
  if (system("command -v gfortran >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gfortran";
  EXPECT_EQ(ask("gfortran -O2", ".f90", R"(
program numbers
  implicit none
  real, allocatable :: x(:)
  real(16) :: y
  character(20) :: text
  allocate(x(10))
  call random_number(x)
  y = sum(x)
  write (text, '(f10.3)') y
  if (len_trim(text) == 0) stop 1
end program
)"),
            kClean);
}

TEST_F(Programs, those_that_ask_who_they_are_are_strict) {
  EXPECT_EQ(ask("g++ -O2", ".cpp", R"(
#include <iostream>
#include <thread>
int main(int argc, char**) { if (argc > 1) std::cout << std::this_thread::get_id(); }
)"),
            "strict program (pthread_self)\nworkers \n");
  EXPECT_EQ(
      ask("gcc -O2", ".c", "__thread int x; int main(int c, char **v) { x = c; return x - 1; }"),
      "strict program (TLS segment)\nworkers \n");
}

TEST_F(Programs, an_address_taken_in_a_fixed_place_program_counts) {
  // The import then has a value of its own, and stands among the hashed symbols.
  EXPECT_EQ(ask("gcc -O2 -no-pie -fno-pic -w -fno-builtin", ".c", R"(
extern void pthread_self(void);
int main(int argc, char **argv) { return argc > 1 && (long)pthread_self == (long)argv; }
)"),
            "strict program (pthread_self)\nworkers \n");
}

TEST_F(Programs, those_that_act_on_kernel_threads_get_them) {
  EXPECT_EQ(ask("gcc -O2", ".c", R"(
#define _GNU_SOURCE
#include <sched.h>
int main(int argc, char **argv) {
  cpu_set_t set;
  (void)argv;
  return argc > 1 && sched_setaffinity(0, sizeof set, &set);
}
)"),
            "relaxed \nkernel threads program (sched_setaffinity)\n");
}

}  // namespace
