// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounds of runs. Of the outputs the first of each variant is kept, the others are compared with these at once.
#include "bosk/compare/runs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "bosk/compare/progress.h"

namespace bosk::tools {
namespace {

constexpr size_t kErrorLines = 10;

/// What the others are compared with.
using FirstOutputs = std::vector<std::optional<MemoryFile>>;

/// Compares the output of a run with the first ones, and keeps it if it is one of them.
void look_at_output(const Variant& variant, size_t number, MemoryFile output, FirstOutputs* first,
                    VariantRuns* to) {
  const auto differences_from = [&](size_t other) {
    const auto& with = (*first)[other];
    return with.has_value() ? differences(*with, output) : Differences{};
  };
  MeasuredRun& run = to->runs.back();
  const bool repeated = (*first)[number].has_value();
  if (repeated) run.from_own_first = differences_from(number);
  // As the first, which was compared.
  if (repeated && run.from_own_first.none()) {
    run.from_reference = to->runs.front().from_reference;
    run.from_first_variant = to->runs.front().from_first_variant;
    return;
  }
  run.from_reference = differences_from(variant.reference);
  run.from_first_variant = variant.reference == 0 ? run.from_reference : differences_from(0);
  if (!repeated) (*first)[number] = std::move(output);
}

void take(const Variant& variant, size_t number, Finished finished, FirstOutputs* first,
          VariantRuns* to) {
  MeasuredRun run;
  run.wall_seconds = finished.wall_seconds;
  run.cpu_seconds = finished.cpu_seconds;
  run.peak_mib = finished.peak_mib;
  run.wait_status = finished.wait_status;
  const bool first_failure = run.wait_status != 0 &&
                             std::none_of(to->runs.begin(), to->runs.end(),
                                          [](const auto& other) { return other.wait_status != 0; });
  if (first_failure) to->last_errors = last_lines(finished.errors, kErrorLines);
  to->runs.push_back(run);
  look_at_output(variant, number, std::move(finished.output), first, to);
}

}  // namespace

Compared run_in_turn(const std::vector<Variant>& variants, size_t rounds,
                     const RepeatedInput& input, EndingSignals* signals) {
  Compared compared;
  for (const Variant& variant : variants) {
    VariantRuns runs;
    runs.name = variant.name;
    runs.reference = variant.reference;
    compared.variants.push_back(std::move(runs));
  }
  FirstOutputs first(variants.size());
  Progress progress(rounds * variants.size());
  for (size_t round = 0; round < rounds && compared.signal == 0; ++round) {
    for (size_t place = 0; place < variants.size(); ++place) {
      if ((compared.signal = signals->received()) != 0) break;
      const size_t number = round % 2 == 0 ? place : variants.size() - 1 - place;
      progress.next_run();
      Finished finished = run_once(variants[number].launch, input, signals, [&](double seconds) {
        progress.show(variants[number].name, seconds);
      });
      // Its time, and perhaps its end, are the signal's doing.
      if ((compared.signal = signals->received()) != 0) break;
      take(variants[number], number, std::move(finished), &first, &compared.variants[number]);
    }
    if (compared.signal == 0) compared.rounds++;
  }
  // What an unfinished round had has nothing to be compared with.
  for (VariantRuns& variant : compared.variants)
    variant.runs.resize(std::min(variant.runs.size(), compared.rounds));
  return compared;
}

}  // namespace bosk::tools
