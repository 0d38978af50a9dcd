// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mapping by Scotch (F. Pellegrini, 1994), opened when it is first wanted: bosk runs without it.
#include <dlfcn.h>

#include <cstdio>
#include <limits>
#include <mutex>

#include "affinity/mapping.h"
#include "base/loader.h"

namespace bosk::affinity {
namespace {

using topology::Domain;
using topology::Machine;

// Scotch's interface, as its user's guide gives it; SCOTCH_Num is an int or larger, as the library was built: numSizeof() tells.
template <typename Num>
struct Functions {
  int (*graph_build)(void*, Num, Num, const Num*, const Num*, const Num*, const Num*, Num,
                     const Num*, const Num*);
  int (*arch_tree)(void*, Num, const Num*, const Num*);
  int (*graph_map)(void*, const void*, const void*, Num*);
};

struct Library {
  void* handle = nullptr;
  const char* why = nullptr;
  int num_bytes = 0;
  void* (*graph_alloc)() = nullptr;
  int (*graph_init)(void*) = nullptr;
  void (*graph_exit)(void*) = nullptr;
  void* (*arch_alloc)() = nullptr;
  int (*arch_init)(void*) = nullptr;
  void (*arch_exit)(void*) = nullptr;
  void* (*strat_alloc)() = nullptr;
  int (*strat_init)(void*) = nullptr;
  void (*strat_exit)(void*) = nullptr;
  int (*strat_graph_map)(void*, const char*) = nullptr;
  void (*random_reset)() = nullptr;
  void (*mem_free)(void*) = nullptr;
};

// Debian's name, that of the releases before, and whatever this system's development link points at.
constexpr const char* kFiles[] = {"libscotch-7.0.so", "libscotch.so.7.0", "libscotch-6.1.so",
                                  "libscotch-6.0.so", "libscotch.so"};

// From parts grown from one thread, then refined (Fiduccia and Mattheyses). Scotch's own choice, by levels of ever coarser graphs, costs six
// times as much and finds no better mapping in the graphs that we make: some threads, few partners each.
constexpr const char* kStrategy = "r{sep=gf}";

template <typename Function>
bool find(Library* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library->handle, name));
  if (*function != nullptr) return true;
  library->why = "this version of Scotch lacks a function";
  return false;
}

Library open_scotch() {
  Library library;
  const char* first_why = nullptr;
  for (const char* file : kFiles) {
    library.handle = base::open_library(file, RTLD_NOW | RTLD_LOCAL, &library.why);
    if (library.handle != nullptr) break;
    if (first_why == nullptr) first_why = library.why;
  }
  if (library.handle == nullptr) {
    library.why = "Scotch is not installed (Debian: libscotch-7.0)";
    return library;
  }
  library.why = nullptr;
  int (*num_sizeof)() = nullptr;
  if (find(&library, "SCOTCH_numSizeof", &num_sizeof) &&
      find(&library, "SCOTCH_graphAlloc", &library.graph_alloc) &&
      find(&library, "SCOTCH_graphInit", &library.graph_init) &&
      find(&library, "SCOTCH_graphExit", &library.graph_exit) &&
      find(&library, "SCOTCH_archAlloc", &library.arch_alloc) &&
      find(&library, "SCOTCH_archInit", &library.arch_init) &&
      find(&library, "SCOTCH_archExit", &library.arch_exit) &&
      find(&library, "SCOTCH_stratAlloc", &library.strat_alloc) &&
      find(&library, "SCOTCH_stratInit", &library.strat_init) &&
      find(&library, "SCOTCH_stratExit", &library.strat_exit) &&
      find(&library, "SCOTCH_stratGraphMap", &library.strat_graph_map) &&
      find(&library, "SCOTCH_randomReset", &library.random_reset) &&
      find(&library, "SCOTCH_memFree", &library.mem_free))
    library.num_bytes = num_sizeof();
  return library;
}

/// One at a time: the library's random numbers are everybody's.
std::mutex in_use;

/// The arity of each depth, outermost first; empty: the domains of one depth differ.
std::vector<uint32_t> arities(const Machine& machine) {
  std::vector<uint32_t> found(machine.n_depths - 1);
  for (const Domain& domain : machine.domains()) {
    const bool is_last = domain.depth == found.size();
    if (domain.is_pu() != is_last) return {};
    if (is_last) continue;
    uint32_t& arity = found[domain.depth];
    if (arity != 0 && arity != domain.n_children) return {};
    arity = domain.n_children;
  }
  return found;
}

/// What sharing costs between children of the first domain of a depth: of those that are furthest from each other.
uint32_t cost_across(const Machine& machine, uint32_t depth) {
  for (const Domain& domain : machine.domains())
    if (domain.depth == depth) return sharing_cost(machine, domain.first_pu, domain.last_pu);
  return 1;
}

/// An object of Scotch's: its memory, and what it holds.
class Held {
 public:
  Held(void* object, int (*init)(void*), void (*exit)(void*), void (*free)(void*))
      : object_(object),
        exit_(exit),
        free_(free),
        is_ready_(object != nullptr && init(object) == 0) {}
  ~Held() {
    if (is_ready_) exit_(object_);
    if (object_ != nullptr) free_(object_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  bool is_ready() const { return is_ready_; }
  void* get() const { return object_; }

 private:
  void* object_;
  void (*exit_)(void*);
  void (*free_)(void*);
  bool is_ready_;
};

template <typename Num>
Placement map(Library* library, const SharingGraph& graph, const Machine& machine,
              const std::vector<uint32_t>& tree, const char** why) {
  Functions<Num> of;
  if (!find(library, "SCOTCH_graphBuild", &of.graph_build) ||
      !find(library, "SCOTCH_archTleaf", &of.arch_tree) ||
      !find(library, "SCOTCH_graphMap", &of.graph_map)) {
    *why = library->why;
    return {};
  }
  std::vector<Num> sizes(tree.begin(), tree.end());
  std::vector<Num> costs;
  costs.reserve(tree.size());
  for (uint32_t depth = 0; depth < tree.size(); ++depth)
    costs.push_back(static_cast<Num>(cost_across(machine, depth)));
  // Weights as they are, unless their sum would not fit.
  uint64_t sum = 0;
  for (const SharingGraph::Edge& edge : graph.edges) sum += edge.weight;
  const uint64_t scale = sum / (static_cast<uint64_t>(std::numeric_limits<Num>::max()) / 256) + 1;
  std::vector<Num> first(graph.first.begin(), graph.first.end());
  std::vector<Num> ends;
  std::vector<Num> weights;
  ends.reserve(graph.edges.size());
  weights.reserve(graph.edges.size());
  for (const SharingGraph::Edge& edge : graph.edges) {
    ends.push_back(static_cast<Num>(edge.thread));
    weights.push_back(static_cast<Num>(edge.weight / scale + 1));
  }

  const Held scotch_graph(library->graph_alloc(), library->graph_init, library->graph_exit,
                          library->mem_free);
  const Held scotch_tree(library->arch_alloc(), library->arch_init, library->arch_exit,
                         library->mem_free);
  const Held strategy(library->strat_alloc(), library->strat_init, library->strat_exit,
                      library->mem_free);
  const auto threads = static_cast<Num>(graph.threads());
  std::vector<Num> parts(graph.threads());
  library->random_reset();
  if (!scotch_graph.is_ready() || !scotch_tree.is_ready() || !strategy.is_ready() ||
      of.graph_build(scotch_graph.get(), 0, threads, first.data(), nullptr, nullptr, nullptr,
                     static_cast<Num>(ends.size()), ends.data(), weights.data()) != 0 ||
      of.arch_tree(scotch_tree.get(), static_cast<Num>(sizes.size()), sizes.data(), costs.data()) !=
          0 ||
      library->strat_graph_map(strategy.get(), kStrategy) != 0 ||
      of.graph_map(scotch_graph.get(), scotch_tree.get(), strategy.get(), parts.data()) != 0) {
    *why = "Scotch failed";
    return {};
  }
  Placement placement;
  for (const Num part : parts) {
    if (part < 0 || static_cast<uint64_t>(part) >= machine.n_pus) {
      *why = "Scotch placed a thread nowhere";
      return {};
    }
    placement.push_back(static_cast<uint32_t>(part));
  }
  return placement;
}

}  // namespace

Placement map_by_scotch(const SharingGraph& graph, const Machine& machine, const char** why) {
  const char* unwanted = nullptr;
  if (why == nullptr) why = &unwanted;
  *why = nullptr;
  const std::lock_guard alone(in_use);
  static Library library = open_scotch();
  if (library.num_bytes == 0) {
    *why = library.why;
    return {};
  }
  const std::vector<uint32_t> tree = arities(machine);
  if (tree.empty() || graph.edges.empty()) {
    *why = graph.edges.empty() ? "nothing is shared" : "the machine is not regular";
    return {};
  }
  if (library.num_bytes == sizeof(int32_t))
    return map<int32_t>(&library, graph, machine, tree, why);
  if (library.num_bytes == sizeof(int64_t))
    return map<int64_t>(&library, graph, machine, tree, why);
  *why = "Scotch's integers have a size that bosk does not know";
  return {};
}

}  // namespace bosk::affinity
