// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cache model against the numbers of small cases, and against a plain one that searches all caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "lab/plugin/cache_model.h"
#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

using WriteBack = std::pair<unsigned, uint64_t>;  // node, line

struct Shape {
  unsigned cpus = 4;
  unsigned nodes = 2;
  unsigned private_sets = 1, private_ways = 2;
  unsigned shared_sets = 1, shared_ways = 4;
};

/// The model under test, with four CPUs to a node unless said otherwise.
class Model {
 public:
  explicit Model(const Shape& shape) {
    for (unsigned cpu = 0; cpu < shape.cpus; cpu++) {
      nodes_.push_back(static_cast<uint8_t>(cpu * shape.nodes / shape.cpus));
    }
    constexpr unsigned kLine = 64;
    caches_.reset(locality_caches_new(
        shape.cpus, nodes_.data(), shape.nodes, kLine,
        {uint64_t{kLine} * shape.private_sets * shape.private_ways, shape.private_ways},
        {uint64_t{kLine} * shape.shared_sets * shape.shared_ways, shape.shared_ways},
        [](void* data, unsigned node, uint64_t line) {
          static_cast<Model*>(data)->written.insert({node, line});
        },
        this));
    EXPECT_NE(caches_, nullptr);
  }
  bool load(unsigned cpu, uint64_t line) { return access(cpu, line, false); }
  bool store(unsigned cpu, uint64_t line) { return access(cpu, line, true); }
  bool access(unsigned cpu, uint64_t line, bool store) {
    return locality_caches_access(caches_.get(), cpu, line, store);
  }
  void clear() { locality_caches_clear(caches_.get()); }

  std::multiset<WriteBack> written;

 private:
  struct Free {
    void operator()(locality_caches* caches) const { locality_caches_free(caches); }
  };
  std::vector<uint8_t> nodes_;
  std::unique_ptr<locality_caches, Free> caches_;
};

TEST(LocalityCaches, ALineIsFetchedOnce) {
  Model model({});
  EXPECT_TRUE(model.load(0, 7));
  EXPECT_FALSE(model.load(0, 7));
  EXPECT_FALSE(model.load(1, 7)) << "the node's shared cache has it";
  EXPECT_TRUE(model.load(2, 7)) << "the other node's has not";
  EXPECT_TRUE(model.written.empty());
}

TEST(LocalityCaches, StoresFetchToo) {
  Model model({});
  EXPECT_TRUE(model.store(0, 7));
  EXPECT_FALSE(model.store(0, 7));
  EXPECT_FALSE(model.load(0, 7));
}

TEST(LocalityCaches, TheLeastRecentlyUsedGoes) {
  Model model({.private_ways = 2, .shared_ways = 3});
  for (uint64_t line : {1, 2, 3}) EXPECT_TRUE(model.load(0, line));
  EXPECT_FALSE(model.load(0, 1)) << "still in the shared cache, and now its most recent line";
  EXPECT_TRUE(model.load(0, 4)) << "takes the place of 2 there";
  EXPECT_FALSE(model.load(0, 3));
  EXPECT_FALSE(model.load(0, 1));
  EXPECT_TRUE(model.load(0, 2));
}

TEST(LocalityCaches, AStoreTakesTheLineFromTheOtherNode) {
  Model model({});
  EXPECT_TRUE(model.load(0, 7));
  EXPECT_TRUE(model.load(2, 7));
  EXPECT_FALSE(model.store(0, 7));
  EXPECT_TRUE(model.load(2, 7));
  EXPECT_EQ(model.written, (std::multiset<WriteBack>{{0, 7}})) << "what the load found dirty";
  EXPECT_FALSE(model.load(0, 7)) << "the loser of a load keeps its copy";
  EXPECT_FALSE(model.store(2, 7));
  EXPECT_TRUE(model.store(0, 7));
  EXPECT_EQ(model.written, (std::multiset<WriteBack>{{0, 7}, {1, 7}}));
}

TEST(LocalityCaches, AStoreTakesTheLineFromANeighbour) {
  Model model({});
  EXPECT_TRUE(model.store(0, 7));
  EXPECT_FALSE(model.store(1, 7)) << "by way of the shared cache";
  EXPECT_FALSE(model.store(0, 7));
  EXPECT_TRUE(model.written.empty()) << "nothing leaves the node";
}

TEST(LocalityCaches, DirtyLinesGoBackWhenPushedOut) {
  Model model({.private_ways = 1, .shared_ways = 2});
  model.store(0, 1);
  model.load(0, 2);
  EXPECT_TRUE(model.written.empty()) << "1 is in the shared cache now";
  model.load(0, 3);
  model.load(0, 4);
  EXPECT_EQ(model.written, (std::multiset<WriteBack>{{0, 1}}));
}

TEST(LocalityCaches, ALineOfALargeSweepIsFetchedEachTime) {
  Model model({.private_sets = 4, .private_ways = 2, .shared_sets = 12, .shared_ways = 4});
  for (int turn = 0; turn < 3; turn++) {
    for (uint64_t line = 0; line < 60; line++) EXPECT_TRUE(model.load(1, line));
  }
  model.clear();
  for (uint64_t line = 0; line < 48; line++) EXPECT_TRUE(model.load(1, line));
  for (uint64_t line = 0; line < 48; line++) EXPECT_FALSE(model.load(1, line)) << "12 sets of 4";
}

TEST(LocalityCaches, RefusesImpossibleCaches) {
  const uint8_t nodes[1] = {0};
  const auto possible = [&](unsigned line, locality_cache_shape one, locality_cache_shape two) {
    locality_caches* caches =
        locality_caches_new(1, nodes, 1, line, one, two, [](void*, unsigned, uint64_t) {}, nullptr);
    locality_caches_free(caches);
    return caches != nullptr;
  };
  EXPECT_TRUE(possible(64, {1024, 2}, {4096, 4}));
  EXPECT_TRUE(possible(64, {1536, 8}, {12288, 16})) << "3 and 12 sets";
  EXPECT_FALSE(possible(64, {1000, 2}, {4096, 4}));
  EXPECT_FALSE(possible(64, {1024, 0}, {4096, 4}));
  EXPECT_FALSE(possible(64, {1024, 2}, {0, 0}));
  EXPECT_FALSE(possible(65, {1024, 2}, {4096, 4}));
  EXPECT_FALSE(possible(64, {1024, 65}, {4096, 4}));
}

#ifdef BOSK_HAVE_RAPIDCHECK

/// One cache: lists, most recent first.
struct PlainCache {
  struct Entry {
    uint64_t line;
    bool dirty;
  };
  unsigned ways = 1;
  std::vector<std::list<Entry>> sets;

  std::list<Entry>& set_of(uint64_t line) { return sets[line % sets.size()]; }
  Entry* find(uint64_t line) {
    for (Entry& entry : set_of(line)) {
      if (entry.line == line) return &entry;
    }
    return nullptr;
  }
  /// The line becomes the most recent one; returns what fell out.
  std::vector<Entry> put(uint64_t line, bool dirty) {
    std::list<Entry>& set = set_of(line);
    if (const Entry* there = find(line)) {
      dirty = dirty || there->dirty;
      drop(line);
    }
    set.push_front({line, dirty});
    if (set.size() <= ways) return {};
    const Entry victim = set.back();
    set.pop_back();
    return {victim};
  }
  void drop(uint64_t line) {
    set_of(line).remove_if([&](const Entry& entry) { return entry.line == line; });
  }
};

/// The rules of cache_model.h, read one by one: every access looks at every cache.
class PlainModel {
 public:
  explicit PlainModel(const Shape& shape) : shape_(shape) {
    private_.assign(shape.cpus, {shape.private_ways, {}});
    for (PlainCache& cache : private_) cache.sets.resize(shape.private_sets);
    shared_.assign(shape.nodes, {shape.shared_ways, {}});
    for (PlainCache& cache : shared_) cache.sets.resize(shape.shared_sets);
  }

  bool access(unsigned cpu, uint64_t line, bool store) {
    const unsigned node = node_of(cpu);
    PlainCache& own = private_[cpu];
    const bool had = own.find(line) != nullptr;
    if (had) own.put(line, false);
    if (!had || store) settle(cpu, node, line, store);
    if (had) {
      if (store) own.find(line)->dirty = true;
      return false;
    }
    const bool fill = shared_[node].find(line) == nullptr;
    put_shared(node, line, false);
    for (const PlainCache::Entry& victim : own.put(line, store)) {
      if (victim.dirty) put_shared(node, victim.line, true);
    }
    return fill;
  }

  std::multiset<WriteBack> written;

 private:
  unsigned node_of(unsigned cpu) const { return cpu * shape_.nodes / shape_.cpus; }

  void put_shared(unsigned node, uint64_t line, bool dirty) {
    for (const PlainCache::Entry& victim : shared_[node].put(line, dirty)) {
      if (victim.dirty) written.insert({node, victim.line});
    }
  }

  void settle(unsigned cpu, unsigned node, uint64_t line, bool drop) {
    std::set<unsigned> dirty_nodes;
    const auto visit = [&](PlainCache* cache, unsigned whose) {
      PlainCache::Entry* entry = cache->find(line);
      if (entry == nullptr) return;
      if (entry->dirty) dirty_nodes.insert(whose);
      entry->dirty = false;
      if (drop) cache->drop(line);
    };
    for (unsigned other = 0; other < shape_.cpus; other++) {
      if (other != cpu) visit(&private_[other], node_of(other));
    }
    for (unsigned other = 0; other < shape_.nodes; other++) {
      if (other != node) visit(&shared_[other], other);
    }
    for (unsigned dirty : dirty_nodes) {
      if (dirty == node) {
        put_shared(node, line, true);
      } else {
        written.insert({dirty, line});
      }
    }
  }

  Shape shape_;
  std::vector<PlainCache> private_;
  std::vector<PlainCache> shared_;
};

RC_GTEST_PROP(LocalityCaches, AgreesWithThePlainModel, ()) {
  Shape shape;
  shape.nodes = *rc::gen::inRange(1u, 5u);
  shape.cpus = shape.nodes * *rc::gen::element(1u, 2u, 3u, 20u);
  shape.private_sets = *rc::gen::inRange(1u, 5u);
  shape.private_ways = *rc::gen::inRange(1u, 5u);
  shape.shared_sets = *rc::gen::inRange(1u, 9u);
  shape.shared_ways = *rc::gen::inRange(1u, 5u);
  const uint64_t lines = *rc::gen::element<uint64_t>(3, 12, 60);
  const int stores = *rc::gen::inRange(0, 4);  // of four accesses
  Model model(shape);
  PlainModel plain(shape);
  const int count = *rc::gen::inRange(1, 600);
  uint64_t random = *rc::gen::arbitrary<uint64_t>() | 1;
  for (int i = 0; i < count; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const unsigned cpu = static_cast<unsigned>(random >> 33) % shape.cpus;
    const uint64_t line = (random >> 20) % lines;
    const bool store = static_cast<int>((random >> 60) & 3) < stores;
    RC_ASSERT(model.access(cpu, line, store) == plain.access(cpu, line, store));
    RC_ASSERT(model.written == plain.written);
  }
}
#endif

}  // namespace
