// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "context/taken_calls.h"

#include <gnu/libc-version.h>

#include "context/suspects.h"

namespace bosk::context {
namespace {

struct Providers {
  const Precedence& precedence;
  const char* symbol;
  bool others;
};

int look_for_others(dl_phdr_info* info, size_t, void* argument) {
  auto* look = static_cast<Providers*>(argument);
  const LoadedObject object{info->dlpi_name != nullptr ? info->dlpi_name : "", info->dlpi_addr,
                            info->dlpi_phdr, info->dlpi_phnum};
  if (object.base == look->precedence.libc.base) return 1;
  if (object.base == look->precedence.ours.base) return 0;
  look->others = find_function(object, look->symbol) != nullptr;
  return look->others;
}

/// The loader, which has not looked for it yet, would find libc's: nobody before libc has the name.
bool would_get_libc_s(const Precedence& precedence, const char* symbol) {
  Providers look{precedence, symbol, false};
  dl_iterate_phdr(look_for_others, &look);
  return !look.others;
}

struct Taking {
  const LoadedObject& object;
  const Precedence& precedence;
  const char* leads_elsewhere;
};

void take_slot(const char* symbol, uintptr_t* slot, void* argument) {
  auto* taking = static_cast<Taking*>(argument);
  const uint16_t found = observed_by(symbol) & (kBetterOurs | kByCall);
  if (found == 0) return;
  const Precedence& precedence = taking->precedence;
  const auto address = [&](const LoadedObject& object) {
    return reinterpret_cast<uintptr_t>(find_function(object, symbol));
  };
  const uintptr_t ours = address(precedence.ours);
  const uintptr_t there = __atomic_load_n(slot, __ATOMIC_RELAXED);
  bool leads_to_us = ours != 0 && there == ours;
  if (ours != 0 && !leads_to_us) {
    const bool not_called_yet = contains(taking->object, there);
    if (not_called_yet && precedence.we_come_first)
      leads_to_us = true;
    else if (there == address(precedence.libc) ||
             (not_called_yet && would_get_libc_s(precedence, symbol)))
      leads_to_us = change_slot(taking->object, slot, there, ours);
  }
  if (!leads_to_us && (found & kByCall) != 0) taking->leads_elsewhere = symbol;
}

}  // namespace

void Precedence::see(const LoadedObject& object) {
  if (contains(object, reinterpret_cast<uintptr_t>(&take_slot))) {
    we_come_first = libc.headers == nullptr;
    ours = object;
  } else if (contains(object, reinterpret_cast<uintptr_t>(&gnu_get_libc_version))) {
    libc = object;
  }
}

const char* take_calls(const LoadedObject& object, const Precedence& precedence) {
  Taking taking{object, precedence, nullptr};
  for_each_slot(object, take_slot, &taking);
  return taking.leads_elsewhere;
}

}  // namespace bosk::context
