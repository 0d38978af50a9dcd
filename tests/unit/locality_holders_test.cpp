// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of who holds a line, against a map of sets; nearly full, so that runs of slots are long.
#include <gtest/gtest.h>

#include "lab/plugin/holders.h"
#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace {

struct Plain {
  std::set<unsigned> cores, nodes;
};

RC_GTEST_PROP(LocalityHolders, AgreesWithAMap, ()) {
  constexpr unsigned kCores = 130, kNodes = 64;
  locality_holders table;
  RC_ASSERT(locality_holders_init(&table, 1, kCores));
  // More lines than a cache model would put there: all slots but one.
  const size_t most = table.slots - 1;
  std::map<uint64_t, Plain> plain;
  const uint64_t base = *rc::gen::inRange<uint64_t>(0, uint64_t{1} << 40);
  uint64_t random = *rc::gen::arbitrary<uint64_t>() | 1;
  for (int step = 0; step < 1000; step++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t line = base + (random >> 40) % (2 * most);
    const unsigned core = static_cast<unsigned>(random >> 20) % kCores;
    const unsigned node = static_cast<unsigned>(random >> 28) % kNodes;
    const auto found = plain.find(line);
    const bool there = found != plain.end();
    if ((random >> 60) % 2 == 0 && (there || plain.size() < most)) {
      if ((random >> 59) % 2 == 0) {
        locality_holders_add_core(&table, line, core);
        plain[line].cores.insert(core);
      } else {
        locality_holders_add_node(&table, line, node);
        plain[line].nodes.insert(node);
      }
    } else if (there) {
      Plain& holders = found->second;
      if (!holders.cores.empty()) {
        locality_holders_remove_core(&table, line, *holders.cores.begin());
        holders.cores.erase(holders.cores.begin());
      } else {
        locality_holders_remove_node(&table, line, *holders.nodes.begin());
        holders.nodes.erase(holders.nodes.begin());
      }
      if (holders.cores.empty() && holders.nodes.empty()) plain.erase(found);
    }
  }
  for (uint64_t line = base; line < base + 2 * most; line++) {
    const size_t slot = locality_holders_find(&table, line);
    const auto found = plain.find(line);
    RC_ASSERT((slot == SIZE_MAX) == (found == plain.end()));
    if (slot == SIZE_MAX) continue;
    uint64_t nodes = 0;
    for (unsigned node : found->second.nodes) nodes |= uint64_t{1} << node;
    RC_ASSERT(table.nodes[slot] == nodes);
    std::vector<uint64_t> cores(table.words);
    for (unsigned core : found->second.cores) cores[core / 64] |= uint64_t{1} << core % 64;
    for (unsigned word = 0; word < table.words; word++) {
      RC_ASSERT(table.cores[slot * table.words + word] == cores[word]);
    }
  }
  locality_holders_clear(&table);
  RC_ASSERT(locality_holders_find(&table, base) == SIZE_MAX);
  locality_holders_free(&table);
}

}  // namespace
#endif
