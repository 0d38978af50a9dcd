// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads plug-ins and refuses those that cannot be what they claim.
#include "policies/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <new>

#include "base/loader.h"
#include "base/parse.h"
#include "base/settings.h"
#include "base/sleeping_lock.h"

namespace bosk::policies {
namespace {

constexpr const char kSymbol[] = "bosk_policy_plugin";
/// A table without a single hook ends here.
constexpr uint32_t kLeastSize = offsetof(bosk_policy, check);

/// Guards the list. Sleeping, because dlopen() runs the plug-in's constructors.
constinit base::SleepingLock lock;
constinit Plugin* loaded = nullptr;

bool is_name(const char* name) {
  if (name == nullptr) return false;
  size_t length = 0;
  while (base::is_word_char(name[length]) || name[length] == '-') ++length;
  return name[length] == '\0' && length > 0 && length <= BOSK_POLICY_NAME_MAX;
}

/// Copies the table, however old or new its header is.
bool take_table(const char* path, const bosk_policy* given, bosk_policy* table,
                topology::Error* error) {
  if (given->interface != BOSK_POLICY_INTERFACE)
    return error->set(
        "%.200s was made for version %u of bosk/policy.h, and this bosk has version %d; compile it "
        "with this bosk's header",
        path, given->interface, BOSK_POLICY_INTERFACE);
  if (given->size < kLeastSize || given->size % sizeof(void*) != 0 || given->size > 4096)
    return error->set(
        "%.200s: its %s has a size of %u, which is none; begin it with BOSK_POLICY_HEADER", path,
        kSymbol, given->size);
  for (size_t at = sizeof *table; at < given->size; ++at)
    if (reinterpret_cast<const char*>(given)[at] != 0)
      return error->set("%.200s has hooks that this bosk does not know yet; use a newer bosk",
                        path);
  memcpy(table, given, given->size < sizeof *table ? given->size : sizeof *table);
  if (!is_name(table->name))
    return error->set("%.200s: the name in its %s must be 1 to %d letters, digits, '-' and '_'",
                      path, kSymbol, BOSK_POLICY_NAME_MAX);
  if (table->summary == nullptr) table->summary = "";
  return true;
}

/// dlerror() often begins with the path, which the caller says anyway.
const char* without_path(const char* reason, const char* path) {
  const size_t length = strlen(path);
  if (strncmp(reason, path, length) == 0 && reason[length] == ':') {
    reason += length + 1;
    while (base::is_blank(*reason)) ++reason;
  }
  return reason;
}

Plugin* make_plugin(const char* path, void* handle, topology::Error* error) {
  const auto* given = static_cast<const bosk_policy*>(dlsym(handle, kSymbol));
  if (given == nullptr) {
    error->set("%.200s has no symbol %s, so it is no policy (see docs/plugins.md)", path, kSymbol);
    return nullptr;
  }
  bosk_policy table{};
  if (!take_table(path, given, &table, error)) return nullptr;
  void* memory = base::map_pages(sizeof(Plugin));
  if (memory == nullptr) {
    error->set("no memory for the policy %.200s", path);
    return nullptr;
  }
  auto* made = new (memory) Plugin{table, {}, handle, loaded, {}};
  make_plugin_ops(made);
  loaded = made;
  return made;
}

const PolicyOps* load_locked(const char* path, topology::Error* error) {
  // Local: its names are nobody else's business. Now: no lazy binding, which takes locks of libc, in
  // the middle of a hook.
  const char* why = nullptr;
  void* handle = base::open_library(path, RTLD_NOW | RTLD_LOCAL, &why);
  if (handle == nullptr) {
    error->set("%.200s cannot be loaded: %.200s", path, without_path(why, path));
    return nullptr;
  }
  for (Plugin* plugin = loaded; plugin != nullptr; plugin = plugin->next) {
    if (plugin->handle != handle) continue;
    dlclose(handle);  // counted twice
    return &plugin->ops;
  }
  Plugin* made = make_plugin(path, handle, error);
  if (made == nullptr) {
    dlclose(handle);
    return nullptr;
  }
  return &made->ops;
}

}  // namespace

const PolicyOps* load_plugin(const char* path, topology::Error* error) {
  // Without a slash dlopen() would look for a library of the system.
  char in_folder[base::PolicyClause::kPathMax + sizeof "./"];
  if (strchr(path, '/') == nullptr && strlen(path) <= base::PolicyClause::kPathMax) {
    snprintf(in_folder, sizeof in_folder, "./%s", path);
    path = in_folder;
  }
  lock.lock();
  const PolicyOps* ops = load_locked(path, error);
  lock.unlock();
  return ops;
}

void plugins_forget_after_fork() { new (&lock) base::SleepingLock; }

}  // namespace bosk::policies
