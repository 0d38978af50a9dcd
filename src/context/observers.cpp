// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Can the program tell two identities apart, or a thread from its kernel thread?
//
// A loaded object is judged by what it could do: its TLS segment and the names it imports. The lists
// below are argued in docs/design/identity.md; a wrong "yes" costs some nanoseconds a member (identities)
// or the speed of oversubscribed teams (kernel threads), a wrong "no" could make a program wrong.
#include "context/observers.h"

#include <gnu/libc-version.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>

#include "base/cpu.h"
#include "base/loader.h"
#include "base/settings.h"
#include "context/suspects.h"
#include "context/switch.h"
#include "context/taken_calls.h"

namespace bosk::context {
namespace {

const char* shown_name(const char* name) {
  if (name != nullptr && *name != '\0') return name;
  const auto* program = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return program != nullptr ? program : "the program";
}

struct Visit {
  uint16_t wanted;
  ObjectVerdict verdict;
};

bool visit_import(const char* symbol, void* argument) {
  auto* visit = static_cast<Visit*>(argument);
  const uint16_t found = observed_by(symbol) & visit->wanted;
  if ((found & kIdentity) != 0) visit->verdict.identity_symbol = symbol;
  if ((found & kKernelThread) != 0) visit->verdict.kernel_thread_symbol = symbol;
  if ((found & kTexts) != 0) visit->verdict.texts_symbol = symbol;
  if ((found & kByCall) != 0) visit->verdict.by_call_symbol = symbol;
  if ((found & kFloatFlags) != 0) visit->verdict.float_flags_symbol = symbol;
  if ((found & kBetterOurs) != 0) visit->verdict.better_ours = true;
  visit->wanted &= static_cast<uint16_t>(~found);
  return visit->wanted == 0;
}

/// The name of whoever was found first, kept for the report.
struct FirstFound {
  std::atomic<uint32_t> state{0};  ///< 0 nobody, 1 being written, 2 there
  char text[192] = {};

  void note(const char* object, const char* symbol) {
    uint32_t nobody = 0;
    if (!state.compare_exchange_strong(nobody, 1, std::memory_order_relaxed)) return;
    size_t used = 0;
    const auto append = [&](const char* part) {
      while (*part != '\0' && used + 1 < sizeof text) text[used++] = *part++;
    };
    append(object);
    append(" (");
    append(symbol);
    append(")");
    text[used] = '\0';
    // release pairs with the acquire in get(): the text is whole.
    state.store(2, std::memory_order_release);
  }
  const char* get() const { return state.load(std::memory_order_acquire) == 2 ? text : nullptr; }
};

/// All of it may be written by several initial threads at once, each with what it has seen itself; an older look that is stored last
/// only leads to one more look. Who finds that somebody has looked goes by what that one has found: `found` is written before all that
/// tells of a look (release), and read after it (acquire).
struct State {
  std::atomic<uint64_t> looked_at{0};   ///< cycles; 0: not yet, or forgotten
  std::atomic<uint64_t> loads_seen{0};  ///< the loader's counts of loads and unloads at that time
  std::atomic<uint8_t> found{0};        ///< only ever grows
  /// libc stands before us: objects that are loaded later are to be led here, too, though all else is known.
  std::atomic<bool> libc_first{false};
  FirstFound identity;
  FirstFound kernel_thread;
  FirstFound addressing;
};
constinit State state;

struct Look {
  uint64_t loads = 0;
  bool first = true;
  Precedence precedence;
  // The first object that imports names of texts; null: none.
  const char* texts_object = nullptr;
  const char* texts_symbol = nullptr;
};

LoadedObject object_of(const dl_phdr_info* info) {
  return {info->dlpi_name != nullptr ? info->dlpi_name : "", info->dlpi_addr, info->dlpi_phdr,
          info->dlpi_phnum};
}

int look_who_comes_first(dl_phdr_info* info, size_t, void* argument) {
  auto* look = static_cast<Look*>(argument);
  if (look->first) {
    look->first = false;
    // Never 0, which means that nothing was seen yet.
    look->loads = ((info->dlpi_adds << 32) ^ info->dlpi_subs) | uint64_t{1} << 63;
    if (look->loads == state.loads_seen.load(std::memory_order_acquire)) return 1;
  }
  look->precedence.see(object_of(info));
  return 0;
}

#if defined(__x86_64__)
void see_float_flags() { __atomic_store_n(&bosk_x87_flags_matter, 1, __ATOMIC_RELAXED); }
bool sees_float_flags() { return __atomic_load_n(&bosk_x87_flags_matter, __ATOMIC_RELAXED) != 0; }
#else
void see_float_flags() {}
bool sees_float_flags() { return true; }
#endif

int look_at_object(dl_phdr_info* info, size_t, void* argument) {
  auto* look = static_cast<Look*>(argument);
  const LoadedObject object = object_of(info);
  if (object.base == look->precedence.ours.base) return 0;
  const ObjectVerdict verdict = judge_object(object);
  uint8_t found = 0;
  if (verdict.identity_symbol != nullptr) {
    state.identity.note(shown_name(object.name), verdict.identity_symbol);
    found |= kIdentity;
  }
  const char* acts_by = verdict.kernel_thread_symbol;
  if (verdict.better_ours || verdict.by_call_symbol != nullptr) {
    const char* not_ours = take_calls(object, look->precedence);
    if (acts_by == nullptr && verdict.by_call_symbol != nullptr) acts_by = not_ours;
  }
  // The program itself is taken at its word: it calls what it imports.
  if (acts_by == nullptr && object.name[0] == '\0') acts_by = verdict.by_call_symbol;
  if (acts_by != nullptr) {
    state.kernel_thread.note(shown_name(object.name), acts_by);
    found |= kKernelThread;
  }
  if (verdict.texts_symbol != nullptr && look->texts_symbol == nullptr) {
    look->texts_object = shown_name(object.name);
    look->texts_symbol = verdict.texts_symbol;
  }
  if (found != 0) found |= state.found.fetch_or(found, std::memory_order_relaxed);
  if (verdict.float_flags_symbol != nullptr) see_float_flags();
  return found == (kIdentity | kKernelThread) && sees_float_flags() &&
         look->precedence.we_come_first;
}

/// In a child that cannot look.
uint8_t assume_the_worst() {
  constexpr const char* kWhy = "forked while another thread loaded an object";
  state.kernel_thread.note("fork()", kWhy);
  state.identity.note("fork()", kWhy);
  see_float_flags();
  return state.found.fetch_or(kIdentity | kKernelThread, std::memory_order_relaxed) | kIdentity |
         kKernelThread;
}

uint8_t found_now(uint64_t now_cycles) {
  const uint64_t before = state.looked_at.load(std::memory_order_acquire);
  const uint8_t found = state.found.load(std::memory_order_relaxed);
  if (found == (kIdentity | kKernelThread) && sees_float_flags() &&
      !state.libc_first.load(std::memory_order_relaxed))
    return found;
  // Unsigned: a clock that is a little behind on another CPU leads to one more look.
  if (before != 0 && now_cycles - before < 1000 * base::cycles_per_microsecond()) return found;
  if (!base::LoaderLook::is_possible()) return assume_the_worst();
  Look look;
  {
    const base::LoaderLook alone;
    if (dl_iterate_phdr(look_who_comes_first, &look) == 0) {
      state.libc_first.store(!look.precedence.we_come_first, std::memory_order_relaxed);
      dl_iterate_phdr(look_at_object, &look);
    }
    if (look.texts_symbol != nullptr && !look.precedence.we_come_first) {
      state.identity.note(look.texts_object, look.texts_symbol);
      state.found.fetch_or(kIdentity, std::memory_order_relaxed);
    }
  }
  state.loads_seen.store(look.loads, std::memory_order_release);
  state.looked_at.store(now_cycles | 1, std::memory_order_release);
  return state.found.load(std::memory_order_relaxed);
}

}  // namespace

ObjectVerdict judge_object(const LoadedObject& object) {
  const char* name = shown_name(object.name);
  if (is_runtime(name)) return {};
  Visit visit{kIdentity | kKernelThread | kTexts | kFloatFlags | kByCall | kBetterOurs, {}};
  if (has_tls_segment(object)) {
    visit.verdict.identity_symbol = "TLS segment";
    visit.wanted &= static_cast<uint16_t>(~kIdentity);
  }
  if (is_own_affair(name)) visit.wanted &= static_cast<uint16_t>(~(kKernelThread | kByCall));
  if (visit.wanted != 0 &&
      for_each_import(object, visit_import, &visit) == ImportScan::kUnreadable) {
    if ((visit.wanted & kIdentity) != 0) visit.verdict.identity_symbol = "unreadable symbol table";
    if ((visit.wanted & kKernelThread) != 0)
      visit.verdict.kernel_thread_symbol = "unreadable symbol table";
  }
  return visit.verdict;
}

namespace {

struct AddressLook {
  bool program = true;  ///< the first object is the program
  uint16_t found = 0;
  const char* object = nullptr;  ///< that is looked at
};

bool visit_addressing(const char* symbol, void* argument) {
  auto* look = static_cast<AddressLook*>(argument);
  const uint16_t found = observed_by(symbol);
  const uint16_t counts = kAddressed | (look->program ? kAddressedByProgram : uint16_t{0});
  look->found |= found & (counts | kExplicitThreads);
  if ((found & counts) != 0) state.addressing.note(look->object, symbol);
  return false;
}

int look_for_addressing(dl_phdr_info* info, size_t, void* argument) {
  auto* look = static_cast<AddressLook*>(argument);
  const LoadedObject object = object_of(info);
  const char* name = look->object = shown_name(object.name);
  if (!contains(object, reinterpret_cast<uintptr_t>(&look_at_object)) && !is_runtime(name) &&
      !is_own_affair(name))
    for_each_import(object, visit_addressing, look);
  look->program = false;
  return 0;
}

}  // namespace

bool threads_are_addressed() {
  if (base::settings().identity != base::IdentityChoice::kAuto) return false;
  // relaxed: of use to a child only, which cannot look itself.
  static constinit std::atomic<uint16_t> found_last{kAddressed};
  if (base::LoaderLook::is_possible()) {
    AddressLook look;
    const base::LoaderLook alone;
    dl_iterate_phdr(look_for_addressing, &look);
    found_last.store(look.found, std::memory_order_relaxed);
  }
  const uint16_t found = found_last.load(std::memory_order_relaxed);
  return (found & (kAddressed | kAddressedByProgram)) != 0 && (found & kExplicitThreads) == 0;
}

bool identities_observable_cached(uint64_t now_cycles) {
  // Also where the answer is given: the flags of x87 are looked for on the way.
  const uint8_t found = found_now(now_cycles);
  switch (base::settings().identity) {
    case base::IdentityChoice::kAuto:
      break;
    case base::IdentityChoice::kRelaxed:
      return false;
    case base::IdentityChoice::kStrict:
    case base::IdentityChoice::kKernelThread:
      return true;
  }
  return (found & kIdentity) != 0;
}

bool kernel_threads_observable_cached(uint64_t now_cycles) {
  switch (base::settings().identity) {
    case base::IdentityChoice::kAuto:
    case base::IdentityChoice::kStrict:
      break;
    case base::IdentityChoice::kRelaxed:
      return false;
    case base::IdentityChoice::kKernelThread:
      return true;
  }
  return (found_now(now_cycles) & kKernelThread) != 0;
}

bool kernel_threads_observable() { return kernel_threads_observable_cached(base::cycles()); }

void observers_may_have_changed() { state.looked_at.store(0, std::memory_order_relaxed); }

const char* observer_name() {
  return base::settings().identity == base::IdentityChoice::kAuto ? state.identity.get() : nullptr;
}

const char* addressing_name() { return state.addressing.get(); }

const char* kernel_thread_observer_name() { return state.kernel_thread.get(); }

}  // namespace bosk::context
