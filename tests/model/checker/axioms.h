// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A second opinion on the memory model, for the checker's own test: all outcomes of a straight-line
// program by the axioms of RC11 (Lahav and others 2017; release sequences as in C++20), found by
// trying every reads-from and every modification order. Shares no code with the checker.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace axioms {

enum class What { kLoad, kStore, kAdd, kFence };
struct Instruction {
  What what = What::kLoad;
  int place = 0;
  int value = 0;
  std::memory_order order = std::memory_order_relaxed;
};
using Program = std::vector<std::vector<Instruction>>;
inline constexpr int kPlaces = 2;
inline constexpr int kMost = 16;  // events

/// A relation between events: bit b of row a.
struct Relation {
  std::array<std::uint32_t, kMost> row{};

  bool has(int a, int b) const { return row[a] >> b & 1; }
  void add(int a, int b) { row[a] |= 1u << b; }
  Relation operator|(const Relation& r) const {
    Relation out;
    for (int i = 0; i < kMost; ++i) out.row[i] = row[i] | r.row[i];
    return out;
  }
  Relation then(const Relation& r) const {
    Relation out;
    for (int a = 0; a < kMost; ++a)
      for (int b = 0; b < kMost; ++b)
        if (has(a, b)) out.row[a] |= r.row[b];
    return out;
  }
  Relation closure() const {
    Relation out = *this;
    for (int k = 0; k < kMost; ++k)
      for (int a = 0; a < kMost; ++a)
        if (out.has(a, k)) out.row[a] |= out.row[k];
    return out;
  }
  Relation or_same() const {
    Relation out = *this;
    for (int i = 0; i < kMost; ++i) out.add(i, i);
    return out;
  }
  bool irreflexive() const {
    for (int i = 0; i < kMost; ++i)
      if (has(i, i)) return false;
    return true;
  }
  template <class Test>
  Relation only(Test test) const {
    Relation out;
    for (int a = 0; a < kMost; ++a)
      for (int b = 0; b < kMost; ++b)
        if (has(a, b) && test(a, b)) out.add(a, b);
    return out;
  }
};

class Enumerator {
 public:
  explicit Enumerator(const Program& program) {
    for (int place = 0; place < kPlaces; ++place)
      events_.push_back({-1, {What::kStore, place, 0, std::memory_order_relaxed}});
    for (std::size_t t = 0; t < program.size(); ++t)
      for (const Instruction& i : program[t]) events_.push_back({static_cast<int>(t), i});
    for (int a = 0; a < size(); ++a) {
      for (int b = a + 1; b < size(); ++b)
        if (events_[b].thread >= 0 &&
            (events_[a].thread < 0 || events_[a].thread == events_[b].thread))
          po_.add(a, b);
      if (reads(a)) readers_.push_back(a);
    }
    for (int place = 0; place < kPlaces; ++place)
      for (int a = kPlaces; a < size(); ++a)
        if (writes(a) && events_[a].i.place == place) order_[place].push_back(a);
    source_.resize(events_.size());
  }

  /// The values read, in program order, and the final values.
  std::set<std::string> outcomes() {
    choose_source(0);
    return std::move(found_);
  }

 private:
  struct Event {
    int thread;
    Instruction i;
  };

  int size() const { return static_cast<int>(events_.size()); }
  bool reads(int e) const {
    return events_[e].i.what == What::kLoad || events_[e].i.what == What::kAdd;
  }
  bool writes(int e) const {
    return events_[e].i.what == What::kStore || events_[e].i.what == What::kAdd;
  }
  bool fence(int e) const { return events_[e].i.what == What::kFence; }
  bool same_place(int a, int b) const {
    return !fence(a) && !fence(b) && events_[a].i.place == events_[b].i.place;
  }
  bool is(int e, std::initializer_list<std::memory_order> orders) const {
    return std::find(orders.begin(), orders.end(), events_[e].i.order) != orders.end();
  }
  bool releases(int e) const {
    using enum std::memory_order;
    return (writes(e) || fence(e)) && is(e, {release, acq_rel, seq_cst});
  }
  bool acquires(int e) const {
    using enum std::memory_order;
    return (reads(e) || fence(e)) && is(e, {acquire, acq_rel, seq_cst});
  }
  bool seq_cst(int e) const { return is(e, {std::memory_order_seq_cst}); }

  void choose_source(std::size_t n) {
    if (n == readers_.size()) {
      choose_order(0);
      return;
    }
    const int r = readers_[n];
    for (int w = 0; w < size(); ++w) {
      if (w == r || !writes(w) || !same_place(w, r)) continue;
      source_[r] = w;
      choose_source(n + 1);
    }
  }

  void choose_order(int place) {
    if (place == kPlaces) {
      check();
      return;
    }
    auto& order = order_[place];
    std::sort(order.begin(), order.end());
    do choose_order(place + 1);
    while (std::next_permutation(order.begin(), order.end()));
  }

  void check() {
    Relation rf, mo, rb;
    for (int r : readers_) rf.add(source_[r], r);
    if (!(po_ | rf).closure().irreflexive()) return;  // no load buffering
    for (int place = 0; place < kPlaces; ++place) {
      std::vector<int> line{place};
      line.insert(line.end(), order_[place].begin(), order_[place].end());
      for (std::size_t a = 0; a < line.size(); ++a)
        for (std::size_t b = a + 1; b < line.size(); ++b) mo.add(line[a], line[b]);
    }
    for (int r : readers_)
      for (int w = 0; w < size(); ++w)
        if (w != r && mo.has(source_[r], w)) rb.add(r, w);
    for (int r : readers_)  // atomicity
      for (int w = 0; w < size(); ++w)
        if (writes(r) && rb.has(r, w) && mo.has(w, r)) return;
    const Relation eco = (rf | mo | rb).closure();
    const Relation hb = (po_ | synchronizes(rf)).closure();
    if (!eco.irreflexive() || !hb.irreflexive() || !hb.then(eco).irreflexive()) return;
    if (!sequential(hb, eco, mo, rb)) return;
    report();
  }

  Relation synchronizes(const Relation& rf) const {
    const Relation through_rmw = rf.only([&](int, int b) { return writes(b); });
    Relation start;  // from the releasing event to the head of the release sequence
    for (int a = 0; a < size(); ++a)
      for (int w = 0; w < size(); ++w)
        if (releases(a) && writes(w) && (a == w || (fence(a) && po_.has(a, w)))) start.add(a, w);
    Relation end;
    for (int r = 0; r < size(); ++r)
      for (int b = 0; b < size(); ++b)
        if (acquires(b) && reads(r) && (r == b || (fence(b) && po_.has(r, b)))) end.add(r, b);
    return start.then(through_rmw.closure().or_same()).then(rf).then(end);
  }

  bool sequential(const Relation& hb, const Relation& eco, const Relation& mo,
                  const Relation& rb) const {
    const Relation elsewhere = po_.only([&](int a, int b) { return !same_place(a, b); });
    const Relation here = hb.only([&](int a, int b) { return same_place(a, b); });
    const Relation scb = po_ | elsewhere.then(hb).then(elsewhere) | here | mo | rb;
    Relation sc, fences;
    for (int e = 0; e < size(); ++e)
      if (seq_cst(e)) (fence(e) ? fences : sc).add(e, e);
    const Relation all = sc | fences;
    const Relation base = (all | fences.then(hb)).then(scb).then(all | hb.then(fences));
    const Relation of_fences = fences.then(hb | hb.then(eco).then(hb)).then(fences);
    return (base | of_fences).closure().irreflexive();
  }

  void report() {
    std::vector<int> value(events_.size());
    std::function<int(int)> written = [&](int e) {
      const Instruction& i = events_[e].i;
      return i.what == What::kStore ? i.value : written(source_[e]) + i.value;
    };
    std::string text;
    for (int r : readers_) text += std::to_string(written(source_[r])) + " ";
    for (int place = 0; place < kPlaces; ++place)
      text += "/" + std::to_string(written(order_[place].empty() ? place : order_[place].back()));
    found_.insert(text);
  }

  std::vector<Event> events_;
  Relation po_;
  std::vector<int> readers_;
  std::vector<int> source_;
  std::array<std::vector<int>, kPlaces> order_;
  std::set<std::string> found_;
};

}  // namespace axioms
