// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of memory.
#include "policies/memory/memory.h"

#include <new>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "policies/cache/cache.h"
#include "policies/engine.h"
#include "policies/memory/draw.h"
#include "policies/memory/team.h"
#include "policies/scratch_pool.h"

namespace bosk::policies {
namespace {

using topology::Machine;

constexpr uint64_t kLeastPercent = 100;
constexpr uint64_t kMostPercent = 10'000;

struct Memory {
  draw::Parameters parameters;
  draw::Places places;
  ScratchPool<draw::Scratch> scratch;
  void* cache = nullptr;  ///< state of the policy cache, which teams are for
  const PolicyEngine* engine = nullptr;

  /// False: memory is to go to them, and they go where they would without (BOSK_MEMORY_MOVES).
  bool draws() const { return engine == nullptr || engine->moves_threads(); }
  /// Only if told that nothing else may move: the openers of nested teams stay on their workers whatever is decided, so memory has to
  /// come to them. (Members of level-1 teams exchange their seats: omp/settle_memory.h.)
  bool draws_teams() const {
    return engine != nullptr && engine->memory_moves() == base::MemoryMoves::kThreads;
  }
};

bool parse_most(const char* argument, uint64_t* percent) {
  return base::parse_number(argument, kLeastPercent, kMostPercent, percent);
}

bool check(const char* argument, const Machine&, topology::Error* error) {
  uint64_t percent;
  return parse_most(argument, &percent) ||
         error->set("\"%.60s\" is not a limit of load (%lu to %lu percent of a node's fair share)",
                    argument, static_cast<unsigned long>(kLeastPercent),
                    static_cast<unsigned long>(kMostPercent));
}

void stop(void* state) {
  auto* memory = static_cast<Memory*>(state);
  if (memory->cache != nullptr) kCachePolicy.stop(memory->cache);
  memory->scratch.release();
  memory->places.release();
  base::unmap_pages(memory, sizeof(Memory));
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  if (start.argument[0] != '\0' && !check(start.argument, *start.machine, error)) return false;
  void* pages = base::map_pages(sizeof(Memory));
  if (pages == nullptr) return error->set("no memory for the policy memory");
  auto* memory = new (pages) Memory;
  memory->parameters.inside.machine = start.machine;
  memory->parameters.inside.bottom = start.bottom;
  memory->parameters.places = &memory->places;
  memory->engine = start.engine;
  uint64_t percent;
  if (parse_most(start.argument, &percent))
    memory->parameters.most_percent = static_cast<uint32_t>(percent);
  PolicyStart inside = start;
  inside.argument = "";
  if (!memory->places.set(*start.machine, start.bottom) ||
      !kCachePolicy.start(inside, &memory->cache, error)) {
    stop(memory);
    return error->set("no memory for the policy memory");
  }
  *state = memory;
  return true;
}

/// What others had in use is lost with them.
void forked(void* state) {
  auto* memory = static_cast<Memory*>(state);
  new (&memory->scratch) ScratchPool<draw::Scratch>;
  kCachePolicy.forked(memory->cache);
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  auto* memory = static_cast<Memory*>(state);
  draw::Scratch* scratch = memory->scratch.take();
  if (scratch == nullptr) return false;
  const bool done =
      memory->draws()
          ? draw::distribute(memory->parameters, submission, scratch, answer)
          : cache::distribute(memory->parameters.inside, submission, &scratch->inside, answer);
  memory->scratch.give(scratch);
  return done;
}

uint64_t gain(void* state, const Submission& present, PlacementList* answer) {
  auto* memory = static_cast<Memory*>(state);
  draw::Scratch* scratch = memory->draws() ? memory->scratch.take() : nullptr;
  if (scratch == nullptr) return 0;
  const uint64_t bytes = draw::gain(memory->parameters, present, scratch, answer);
  memory->scratch.give(scratch);
  return bytes;
}

Verdict found(void* state, const FoundBubble& bubble) {
  return kCachePolicy.found(static_cast<Memory*>(state)->cache, bubble);
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  auto* memory = static_cast<Memory*>(state);
  if (shape.footprints != nullptr && memory->draws_teams()) {
    draw::Scratch* scratch = memory->scratch.take();
    TeamShape there = shape;
    bool placed = false;
    if (scratch != nullptr) {
      placed = draw::place_team(memory->parameters, &there, scratch, answer);
      memory->scratch.give(scratch);
    }
    if (!placed) kCachePolicy.submit_team(memory->cache, there, answer);
    return;
  }
  kCachePolicy.submit_team(memory->cache, shape, answer);
}

bool rule(void* state, uint32_t pu, StealRule* rule) {
  auto* memory = static_cast<Memory*>(state);
  if (!kCachePolicy.steal(memory->cache, pu, rule)) return false;
  rule->keeps_percent = memory->parameters.most_percent;
  rule->memory_comes = !memory->draws();
  return true;
}

}  // namespace

constinit const PolicyOps kMemoryPolicy = {
    .name = "memory",
    .summary =
        "threads and bubbles go to the node with most of the memory that is attached to them, within "
        "the load balance, then as cache; memory:PERCENT says how much of its fair share of the load a "
        "node may have for that (default 133)",
    .check = check,
    .start = start,
    .stop = stop,
    .submit = submit,
    .submit_team = submit_team,
    .found = found,
    .idle = nullptr,
    .tick = nullptr,
    .hint = nullptr,
    .done = nullptr,
    .steal = rule,
    .forked = forked,
    .gain = gain,
    .argument = "most in % of a share (133)",
};

}  // namespace bosk::policies
