// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "context/suspects.h"

#include <stddef.h>
#include <string.h>

namespace bosk::context {
namespace {

/// Imports that betray an observer, or that we see to. In strcmp's order: looked up by halving.
struct Suspect {
  const char* symbol;
  uint16_t observes;
};
constexpr Suspect kSuspects[] = {
    {"PAPI_register_thread", kKernelThread},
    {"PAPI_thread_init", kKernelThread},
    {"__cxa_get_globals", kIdentity},
    {"__cxa_get_globals_fast", kIdentity},
    {"__cxa_thread_atexit_impl", kIdentity},
    {"__emutls_get_address", kIdentity},
    {"__h_errno_location", kIdentity},
    {"__pthread_getspecific", kIdentity},
    {"__pthread_setspecific", kIdentity},
    {"__res_state", kIdentity},
    {"_gfortran_ieee_procedure_entry", kFloatFlags},
    {"arch_prctl", kKernelThread | kAddressed},
    {"bosk_key_create", kIdentity},
    {"bosk_mutex_init", kIdentity},  // of recursive ones
    {"bosk_thread_create", kExplicitThreads},
    {"capget", kBetterOurs},
    {"capset", kByCall},
    {"dlerror", kIdentity},
    {"dlsym", kIdentity},
    {"dlvsym", kIdentity},
    {"fegetenv", kFloatFlags},
    {"fegetexceptflag", kFloatFlags},
    {"feholdexcept", kFloatFlags},
    {"fetestexcept", kFloatFlags},
    {"feupdateenv", kFloatFlags},
    {"ftrylockfile", kIdentity},  // recursive, as those below may be: does the opener hold it?
    {"getpriority", kBetterOurs},
    {"gettid", kIdentity | kByCall},
    {"herror", kIdentity},
    {"hwloc_set_cpubind", kKernelThread},
    {"hwloc_set_membind", kKernelThread},
    {"hwloc_set_membind_nodeset", kKernelThread},
    {"hwloc_set_thread_cpubind", kKernelThread},
    {"inet_ntoa", kTexts},
    {"io_uring_queue_init", kKernelThread | kAddressedByProgram},
    {"io_uring_queue_init_mem", kKernelThread | kAddressedByProgram},
    {"io_uring_queue_init_params", kKernelThread | kAddressedByProgram},
    {"io_uring_setup", kKernelThread | kAddressedByProgram},
    {"ioperm", kKernelThread | kAddressed},
    {"iopl", kKernelThread | kAddressed},
    {"mtx_init", kIdentity},
    {"nanosleep", kBetterOurs},
    {"nice", kByCall},
    {"numa_bind", kKernelThread},
    {"numa_run_on_node", kKernelThread},
    {"numa_run_on_node_mask", kKernelThread},
    {"numa_run_on_node_mask_all", kKernelThread},
    {"numa_sched_setaffinity", kKernelThread},
    {"numa_set_bind_policy", kKernelThread},
    {"numa_set_interleave_mask", kKernelThread},
    {"numa_set_localalloc", kKernelThread},
    {"numa_set_membind", kKernelThread},
    {"numa_set_membind_balancing", kKernelThread},
    {"numa_set_preferred", kKernelThread},
    {"numa_set_preferred_many", kKernelThread},
    {"personality", kByCall},
    {"pkey_alloc", kKernelThread | kAddressed},
    {"pkey_set", kKernelThread | kAddressed},
    {"prctl", kByCall},
    {"pthread_cancel", kKernelThread},
    {"pthread_getaffinity_np", kByCall},
    {"pthread_getattr_np", kIdentity},
    {"pthread_getcpuclockid", kKernelThread},
    {"pthread_getname_np", kByCall},
    {"pthread_getschedparam", kByCall},
    {"pthread_getspecific", kIdentity},
    {"pthread_key_create", kIdentity},
    {"pthread_kill", kKernelThread | kAddressed},
    {"pthread_mutex_clocklock", kIdentity},
    {"pthread_mutex_timedlock", kIdentity},
    {"pthread_mutex_trylock", kIdentity},
    {"pthread_mutexattr_setprotocol", kIdentity | kKernelThread | kAddressed},
    {"pthread_mutexattr_setrobust", kIdentity | kKernelThread | kAddressed},
    {"pthread_mutexattr_setrobust_np", kIdentity | kKernelThread | kAddressed},
    {"pthread_mutexattr_settype", kIdentity},
    {"pthread_self", kIdentity},
    {"pthread_setaffinity_np", kByCall},
    {"pthread_setcancelstate", kIdentity},
    {"pthread_setcanceltype", kIdentity},
    {"pthread_setname_np", kByCall},
    {"pthread_setschedparam", kByCall},
    {"pthread_setschedprio", kByCall},
    {"pthread_setspecific", kIdentity},
    {"pthread_sigmask", kAddressedByProgram},
    {"pthread_sigqueue", kKernelThread | kAddressed},
    {"pthread_yield", kBetterOurs},
    {"ptrace", kKernelThread},
    {"sched_getaffinity", kBetterOurs},
    {"sched_getparam", kBetterOurs},
    {"sched_getscheduler", kBetterOurs},
    {"sched_setaffinity", kByCall},
    {"sched_setattr", kKernelThread},
    {"sched_setparam", kByCall},
    {"sched_setscheduler", kByCall},
    {"sched_yield", kBetterOurs},
    {"set_mempolicy", kKernelThread},
    {"setfsgid", kByCall},
    {"setfsuid", kByCall},
    {"setns", kByCall},
    {"setpriority", kByCall},
    {"sigaltstack", kByCall | kAddressedByProgram},
    {"sigprocmask", kAddressedByProgram},
    {"sleep", kBetterOurs},
    {"strerror", kTexts},
    {"strerror_l", kTexts},
    {"strsignal", kTexts},
    {"syscall", kIdentity | kByCall},
    {"tgkill", kKernelThread | kAddressedByProgram},
    {"thrd_current", kIdentity},
    {"thrd_yield", kBetterOurs},
    {"timer_create", kKernelThread},
    {"tss_create", kIdentity},
    {"tss_get", kIdentity},
    {"tss_set", kIdentity},
    {"unshare", kByCall},
    {"uselocale", kIdentity},
    {"usleep", kBetterOurs},
};

constexpr bool in_order() {
  for (size_t i = 1; i < sizeof kSuspects / sizeof kSuspects[0]; ++i) {
    const char* a = kSuspects[i - 1].symbol;
    const char* b = kSuspects[i].symbol;
    while (*a != '\0' && *a == *b) ++a, ++b;
    if (static_cast<unsigned char>(*a) >= static_cast<unsigned char>(*b)) return false;
  }
  return true;
}
static_assert(in_order());

/// Nearly no import is a suspect, and a process of two hundred libraries has a hundred thousand: most end at their first two letters.
class Beginnings {
 public:
  constexpr Beginnings() {
    for (const Suspect& suspect : kSuspects) {
      const auto second = static_cast<unsigned char>(suspect.symbol[1]);
      seconds_[static_cast<unsigned char>(suspect.symbol[0])][second / 64] |= uint64_t{1}
                                                                              << second % 64;
    }
  }
  bool has(const char* symbol) const {
    const auto first = static_cast<unsigned char>(symbol[0]);
    if (first == 0) return false;
    const auto second = static_cast<unsigned char>(symbol[1]);
    return (seconds_[first][second / 64] >> second % 64 & 1) != 0;
  }

 private:
  uint64_t seconds_[256][4] = {};
};
constexpr Beginnings kBeginnings;

/// Libraries that are not judged at all: the run-times of the languages, which compare nobody's
/// copies, and what bosk itself brings in.
constexpr const char* kRuntimes[] = {
    "ld-linux-x86-64", "ld-linux-aarch64", "linux-vdso", "libatomic", "libc",      "libdl",
    "libgcc_s",        "libgfortran",      "libgomp",    "libhwloc",  "libm",      "libmvec",
    "libpthread",      "libquadmath",      "libresolv",  "librt",     "libstdc++", "libudev",
    "libutil",
};

/// Libraries that act on kernel threads only to set up those of their own, or that merely pass such
/// calls on; whoever asks them to is judged by its own imports. Or none of it in a member: each with its
/// reason in docs/design/identity.md, "Kernel threads of their own". A `*` at the end stands for anything.
constexpr const char* kOwnAffairs[] = {
    "_posixsubprocess*",
    "lib_lightgbm*",
    "libasan",
    "libblis*",
    "libcrypto*",
    "libevent*",
    "libfabric*",
    "libgomp*",
    "libgromacs*",
    "libhwasan",
    "libiomp5*",
    "libjemalloc*",
    "liblsan",
    "libmimalloc*",
    "libmkl_*",
    "libmpi*",
    "libnuma",
    "libomp",
    "libopen-pal",
    "libopen-rte",
    "libopenblas*",
    "libpciaccess",
    "libpmix*",
    "libpython*",
    "libR",
    "libscipy_openblas*",
    "libtbb*",
    "libtcmalloc*",
    "libtsan",
    "libubsan",
    "libuc*",
    "libuuid",
    "libxgboost*",
    "mca_*",
    "python*",
};

/// `name` without folder is `word`.so…, or `word` with the suffix that Python wheels give the copies
/// they carry ("libgfortran-040039e1.so.5").
bool is_library(const char* name, const char* word) {
  const char* slash = strrchr(name, '/');
  const char* base = slash != nullptr ? slash + 1 : name;
  size_t length = strlen(word);
  const bool any_end = word[length - 1] == '*';
  if (any_end) --length;
  if (strncmp(base, word, length) != 0) return false;
  if (any_end) return true;
  const char* rest = base + length;
  if (*rest == '-') {
    size_t digits = strspn(rest + 1, "0123456789abcdef");
    if (digits >= 8) rest += 1 + digits;
  }
  return strncmp(rest, ".so", 3) == 0;
}

template <size_t kCount>
bool is_one_of(const char* name, const char* const (&words)[kCount]) {
  for (const char* word : words)
    if (is_library(name, word)) return true;
  return false;
}

}  // namespace

uint16_t observed_by(const char* symbol) {
  if (!kBeginnings.has(symbol)) return 0;
  size_t low = 0;
  size_t high = sizeof kSuspects / sizeof kSuspects[0];
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const int order = strcmp(symbol, kSuspects[middle].symbol);
    if (order == 0) return kSuspects[middle].observes;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return 0;
}

bool is_runtime(const char* object) { return is_one_of(object, kRuntimes); }
bool is_own_affair(const char* object) { return is_one_of(object, kOwnAffairs); }

}  // namespace bosk::context
