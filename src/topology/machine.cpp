// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of kinds and levels.
#include "topology/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

namespace bosk::topology {
namespace {

struct Word {
  const char* text;
  Kind kind;
};

// The first word of a kind is its name.
constexpr Word kWords[] = {
    {"machine", Kind::kMachine},  {"package", Kind::kPackage}, {"node", Kind::kNode},
    {"die", Kind::kDie},          {"l3", Kind::kL3},           {"l2", Kind::kL2},
    {"core", Kind::kCore},        {"pu", Kind::kPu},           {"group", Kind::kGroup},
    {"packages", Kind::kPackage}, {"pack", Kind::kPackage},    {"socket", Kind::kPackage},
    {"sockets", Kind::kPackage},  {"nodes", Kind::kNode},      {"numa", Kind::kNode},
    {"numanode", Kind::kNode},    {"numanodes", Kind::kNode},  {"dies", Kind::kDie},
    {"l3cache", Kind::kL3},       {"l2cache", Kind::kL2},      {"cores", Kind::kCore},
    {"pus", Kind::kPu},           {"thread", Kind::kPu},       {"threads", Kind::kPu},
    {"hwthread", Kind::kPu},      {"hwthreads", Kind::kPu},    {"groups", Kind::kGroup},
};

constexpr bool names_are_in_kind_order() {
  for (unsigned k = 0; k < kKinds; k++) {
    if (static_cast<unsigned>(kWords[k].kind) != k) return false;
  }
  return true;
}
static_assert(names_are_in_kind_order());

}  // namespace

const char* kind_name(Kind kind) {
  const auto at = static_cast<unsigned>(kind);
  return at < kKinds ? kWords[at].text : "unknown";
}

bool parse_kind(const char* word, Kind* kind) {
  for (const Word& w : kWords) {
    if (strcasecmp(word, w.text) == 0) {
      *kind = w.kind;
      return true;
    }
  }
  return false;
}

const Level* Machine::find_level(const char* word, Error* error) const {
  Kind kind = Kind::kMachine;
  const bool known = parse_kind(word, &kind);
  if (known && level(kind) != nullptr) return level(kind);
  if (error != nullptr) {
    char have[128] = {};
    int at = 0;
    for (const Level& l : levels()) {
      at += snprintf(have + at, sizeof have - static_cast<size_t>(at), "%s%s", at == 0 ? "" : ", ",
                     kind_name(l.kind));
    }
    if (known) {
      error->set("this machine has no level %s (it has: %s)", kind_name(kind), have);
    } else {
      error->set("\"%.60s\" is not a level (this machine has: %s)", word, have);
    }
  }
  return nullptr;
}

const Level& Machine::cache_level() const {
  for (const Kind kind : {Kind::kL3, Kind::kL2}) {
    if (const Level* l = level(kind)) return *l;
  }
  return *level(Kind::kCore);
}

void free_machine(Machine* machine) { free(machine); }

}  // namespace bosk::topology
