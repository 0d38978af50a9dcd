// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was learnt, for people: one page.
#pragma once

#include <optional>
#include <string>

#include "affinity/learner.h"
#include "affinity/mapping.h"
#include "affinity/observer/observer.h"
#include "affinity/recording.h"
#include "topology/machine.h"

namespace bosk::tools {

/// What the page is about, besides what the learner knows.
struct Learnt {
  std::string program;
  std::string source;  ///< who saw the accesses
  std::string blind;   ///< what that one does not see
  double seconds = 0;
  /// Of an observed program; none: read from a recording.
  const affinity::ObserverCosts* costs = nullptr;
  const affinity::ObserverCounts* counts = nullptr;
  bool moves_data = false;     ///< memory was moved, or would have been
  bool moves_threads = false;  ///< and threads
};

/// `machine`: of the CPUs that the accesses name; null: it is another one's, and no mapping can be said.
std::string learn_page(const Learnt& learnt, affinity::Learner* learner,
                       const topology::Machine* machine);

/// Of a program that was not observed: `why` not.
std::string off_page(const std::string& program, const std::string& why);

}  // namespace bosk::tools
