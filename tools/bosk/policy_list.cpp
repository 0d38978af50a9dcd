// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of policies: name, argument, hooks, and what each does.
#include "policy_list.h"

#include <fmt/format.h>

#include <string>

#include "policies/registry.h"

namespace bosk::tools {
namespace {

constexpr size_t kWidth = 96;

/// The hooks by which a policy takes part, as docs/policies.md names them.
std::string hooks_of(const policies::PolicyOps& ops) {
  std::string list;
  const auto add = [&](bool there, const char* name) {
    if (there) list += (list.empty() ? "" : " ") + std::string(name);
  };
  add(ops.found != nullptr, "found");
  add(ops.submit != nullptr, "submit");
  add(ops.submit_team != nullptr, "submit_team");
  add(ops.idle != nullptr, "idle");
  add(ops.steal != nullptr, "steal");
  add(ops.tick != nullptr, "tick");
  add(ops.hint != nullptr, "hint");
  add(ops.done != nullptr, "done");
  return list;
}

/// Words in lines that begin behind `indent` blanks.
void print_wrapped(const std::string& text, size_t indent) {
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const size_t word = end - at;
    if (column != 0 && indent + column + 1 + word > kWidth) {
      fmt::print("\n");
      column = 0;
    }
    fmt::print("{}{}", std::string(column == 0 ? indent : 1, ' '), text.substr(at, word));
    column += word + (column == 0 ? 0 : 1);
    at = end + 1;
  }
  fmt::print("\n");
}

}  // namespace

void list_policies() {
  fmt::print("{:<10}{:<28}{}\n", "policy", "argument", "hooks");
  for (const policies::PolicyOps* ops : policies::known_policies()) {
    fmt::print("{:<10}{:<28}{}\n", ops->name, ops->argument != nullptr ? ops->argument : "-",
               hooks_of(*ops));
    print_wrapped(ops->summary, 10);
  }
  fmt::print(
      "\nNAME[:ARGUMENT][@LEVEL][,...]: each acts from its level down to that of the next one inside;\n"
      "bosk topo shows the levels. Without --policy or BOSK_POLICY: {}.\n",
      policies::default_policy().name);
}

}  // namespace bosk::tools
