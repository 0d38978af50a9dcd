// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An observer at work in a thread of its own, and what comes of it: for `bosk run --learn` and `bosk attach`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "affinity/observer/observer.h"
#include "affinity/recording.h"
#include "bosk/learn/learn_page.h"
#include "topology/machine.h"

namespace bosk::tools {

/// What the environment asks for (BOSK_LEARN_…). Throws OptionError.
affinity::ObserverSettings observer_settings();

class Learning {
 public:
  struct Wish {
    std::string program;  ///< for heads
    std::string record;   ///< the file; empty: none
    bool moves_data = false;
    bool moves_threads = false;
  };
  /// Throws OptionError: a file that cannot be written, no socket.
  explicit Learning(const Wish& wish);

  /// For BOSK_OBSERVER.
  const std::string& name() const { return observer_.name(); }
  /// `whom`: calls watch() or attach().
  void begin(const std::function<void(affinity::Observer*)>& whom);
  /// Once, after begin() if that was called.
  void end();

  /// From begin() on, and these do not change: can anything be seen, and if there are no page-fault events, why?
  bool can_see() const { return observer_.counts().can_see; }
  const std::string& why_no_events() const { return observer_.counts().no_events; }
  /// After end().
  std::string page();
  nlohmann::ordered_json json();

 private:
  affinity::ObserverSettings settings() const;

  Wish wish_;
  const topology::Machine* machine_;
  affinity::Learner learner_;
  affinity::Observer observer_;
  std::unique_ptr<affinity::RecordingWriter> writer_;
  std::chrono::steady_clock::time_point began_;
  Learnt learnt_;
  std::thread thread_;
};

}  // namespace bosk::tools
