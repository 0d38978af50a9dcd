// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Policies in shared objects: include/bosk/policy.h on their side, PolicyOps on ours.
//
// A plug-in is loaded once per process and never unloaded, because a worker may stand in its code at
// any time. Its table is copied, with null for hooks that its header did not know yet, and gets a
// PolicyOps of its own whose functions call the plug-in's (plugin_hooks.cpp). What the plug-in may
// call is a table, too (plugin_api.cpp): it needs no symbol of ours, so that it does not matter how
// the program and we were loaded, and the tool can check it.
#pragma once

#include <bosk/policy.h>
#include <stddef.h>

#include "base/message.h"
#include "policies/policy.h"
#include "policies/scratch_pool.h"

namespace bosk::policies {

/// A plug-in that was loaded. Constant afterwards, but for what was said already.
struct Plugin {
  bosk_policy table;
  PolicyOps ops;
  void* handle;  ///< of dlopen(): the same file gives the same
  Plugin* next;
  base::SayOnce nonsense;
};

/// Memory for one submit() of a plug-in.
struct PluginScratch {
  base::MappedArray<uint64_t> words;
  PluginScratch* next_scratch = nullptr;
  void release() { words.release(); }
};

/// The policy in this file ("./" goes without saying); null: `error` says in one line why not. Reads
/// files and allocates.
const PolicyOps* load_plugin(const char* path, topology::Error* error);
/// Would the plug-in take the argument (which may be "") here? Not for other tables than
/// load_plugin()'s.
bool check_plugin(const PolicyOps& ops, const PolicyStart& start, topology::Error* error);

/// In the child of a fork: another thread may have been loading.
void plugins_forget_after_fork();

// ---- between plugin*.cpp

/// The table with which a plug-in's hooks are called; absent ones stay absent. The name and the
/// summary are the plug-in's.
void make_plugin_ops(Plugin* plugin);
/// What plug-ins may call.
extern const bosk_policy_api kPluginApi;

}  // namespace bosk::policies

/// What a plug-in is given to act with: lives from start() to stop().
struct bosk_policy_host {
  bosk::policies::Plugin* plugin;
  void* state;  ///< the plug-in's own
  const bosk::topology::Machine* machine;
  const bosk::topology::Level* bottom;
  bosk::policies::PolicyEngine* engine;  ///< null: the plug-in is being checked
  bosk::policies::ScratchPool<bosk::policies::PluginScratch> scratch;
};

/// On the stack of the hook that is given it.
struct bosk_policy_work {
  bosk_policy_host* host;
  const bosk::policies::Submission* submission;
  bosk::policies::PlacementList* answer;
  bosk::policies::PluginScratch* scratch;  ///< null until memory() is called
};
struct bosk_policy_homes {
  const bosk::policies::TeamShape* shape;
  const bosk_policy_host* host;
  bosk::policies::TeamPlacement* answer;
  uint32_t named;  ///< members that home_next() has placed
  bool listed;     ///< by home_next()
  uint32_t gang_ticks;
  const char* wrong;  ///< what cannot be in the answer, or null
};
