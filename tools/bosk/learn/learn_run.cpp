// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bosk/escaped.h"
#include "bosk/learn/learning.h"
#include "observed/hand_over.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr int kFailure = 125;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

std::string observed_library(const std::string& library) {
  const std::filesystem::path path =
      std::filesystem::path(library).parent_path() / "libbosk-observed.so";
  if (access(path.c_str(), R_OK) != 0)
    throw OptionError(kFailure, fmt::format("{}: {}; build or install it beside the library",
                                            path.string(), std::strerror(errno)));
  return path.string();
}

void check_learn_options(const RunOptions& options) {
  if (options.learn.empty()) {
    if (!options.record.empty())
      throw OptionError(kUsage, "--record keeps what --learn sees: give --learn=observe as well");
    return;
  }
  static constexpr std::string_view kWords[] = {"true", "observe", "data", "threads", "both"};
  if (std::ranges::find(kWords, options.learn) == std::end(kWords))
    throw OptionError(
        kUsage,
        fmt::format(
            "--learn={}: there are observe, which looks only, threads, data, and both (as --learn alone)",
            escaped(options.learn)));
  observer_settings();
}

LearnRun::LearnRun(const RunOptions& options, const std::vector<std::string>& words) {
  check_learn_options(options);
  const bool both = options.learn == "both" || options.learn == "true";
  learning_ = std::make_unique<Learning>(Learning::Wish{joined(words), options.record,
                                                        both || options.learn == "data",
                                                        both || options.learn == "threads"});
}

LearnRun::~LearnRun() = default;

Variables LearnRun::variables() const { return {{BOSK_OBSERVER_VARIABLE, learning_->name()}}; }

Companion LearnRun::companion() {
  return {[this](pid_t process) {
            learning_->begin([&](affinity::Observer* observer) { observer->watch(process); });
          },
          [this] {
            learning_->end();
            fmt::print(stderr, "{}", learning_->page());
          }};
}

nlohmann::ordered_json LearnRun::learnt() { return learning_->json(); }

}  // namespace bosk::tools
