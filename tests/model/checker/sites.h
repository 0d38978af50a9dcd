// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which memory orders a model uses, and planting a weaker one.
#pragma once

#include <map>

#include "operation.h"
#include "options.h"

namespace model {

inline Site site_of(const Operation& op, bool failure_order) {
  return {op.at.file_name(), op.at.line(), op.at.column(), failure_order};
}

inline bool is_barrier(const Operation& op) {
  return op.kind == Kind::kLight || op.kind == Kind::kHeavy;
}

inline void weaken(Operation& op, const Weakening& weakening) {
  if (op.at.line() != weakening.site.line) return;
  if (site_of(op, weakening.site.failure_order) != weakening.site) return;
  if (is_barrier(op)) {
    op.kind = Kind::kFence;
    op.order = std::memory_order_relaxed;
  } else if (weakening.site.failure_order) {
    op.fail_order = weakening.order;
  } else {
    op.order = weakening.order;
  }
}

/// What a futex does is the kernel's business, and a pause orders nothing: no sites.
inline void collect(const Operation& op, std::map<Site, SiteUse>& sites) {
  if (op.kind == Kind::kPause || op.kind == Kind::kFutexWait || op.kind == Kind::kFutexWake) return;
  sites.emplace(site_of(op, false), SiteUse{op.order, is_barrier(op)});
  if (op.kind == Kind::kCas) sites.emplace(site_of(op, true), SiteUse{op.fail_order, false});
}

}  // namespace model
