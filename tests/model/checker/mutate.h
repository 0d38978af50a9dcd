// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plants bugs: weakens each memory order of a model in turn and looks whether the model notices.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "explorer.h"

namespace model {

struct Mutant {
  Site site;
  std::memory_order from = std::memory_order_seq_cst;
  std::memory_order to = std::memory_order_relaxed;
  std::string text;  // the source line, trimmed
  bool caught = false;
  std::string failure;
};

inline std::ostream& operator<<(std::ostream& out, const Mutant& m) {
  out << (m.caught ? "caught    " : "SURVIVED  ") << show_site(m.site.file.c_str(), m.site.line)
      << " " << show_order(m.from) << " -> " << show_order(m.to)
      << (m.site.failure_order ? " (on failure)" : "") << "   " << m.text;
  return m.caught ? out << "\n            " << m.failure.substr(0, m.failure.find('\n')) : out;
}

inline std::vector<std::memory_order> weaker(const SiteUse& use) {
  using enum std::memory_order;
  if (use.barrier) return {relaxed};
  switch (use.order) {
    case seq_cst:
      return {acq_rel, relaxed};
    case acq_rel:
      return {acquire, release, relaxed};
    case acquire:
    case release:
      return {relaxed};
    default:
      return {};
  }
}

inline std::string source_line(const std::string& file, unsigned line) {
  std::ifstream in(file);
  std::string text;
  for (unsigned i = 0; i < line && std::getline(in, text); ++i) {
  }
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

/// Every memory order that the bodies' threads use is weakened by one or more steps, fences and
/// barriers are removed; only sites in files whose path contains `file` count. Caught is what one of
/// the bodies notices. The bodies themselves must pass, else the answer is empty.
inline std::vector<Mutant> mutate(const Options& options,
                                  const std::vector<std::function<void()>>& bodies,
                                  const std::string& file) {
  std::map<Site, SiteUse> sites;
  std::vector<Mutant> mutants;
  for (const auto& body : bodies)
    if (Explorer(options, body).run(&sites).failed) return mutants;
  for (const auto& [site, use] : sites) {
    if (site.file.find(file) == std::string::npos) continue;
    for (const std::memory_order to : weaker(use)) {
      Mutant mutant{site, use.order, to, source_line(site.file, site.line), false, ""};
      const Weakening weakening{site, to};
      Options planted = options;
      planted.weakening = &weakening;
      for (std::size_t i = 0; i < bodies.size() && !mutant.caught; ++i) {
        const Result result = Explorer(planted, bodies[i]).run();
        mutant.caught = result.failed;
        mutant.failure = result.failure;
      }
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

}  // namespace model
