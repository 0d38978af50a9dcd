// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions that are opened while an exception is on its way (by a destructor), or while one is being handled: both are
// the opener's affair, and the other members know of none.
//   unwinding MEMBERS
#include "check.h"

#include <omp.h>

#include <exception>
#include <stdexcept>

namespace {

int members;

/// What a member finds, in a region that may throw inside.
int surprises(int uncaught_of_opener, bool handled_by_opener) {
  int found = 0;
#pragma omp parallel num_threads(members) reduction(+ : found)
  {
    const bool opener = omp_get_thread_num() == 0;
    found += std::uncaught_exceptions() != (opener ? uncaught_of_opener : 0);
    found += (std::current_exception() != nullptr) != (opener && handled_by_opener);
    try {
      throw omp_get_thread_num();
    } catch (int number) {
      found += number != omp_get_thread_num();
      found += std::uncaught_exceptions() != (opener ? uncaught_of_opener : 0);
      try {
        throw;
      } catch (int again) {
        found += again != number;
      }
    }
  }
  found += std::uncaught_exceptions() != uncaught_of_opener;
  return found;
}

struct OpensInDestructor {
  ~OpensInDestructor() {
    const int found = surprises(uncaught, false);
    CHECK(found == 0, "%d surprises where %d exceptions are uncaught", found, uncaught);
    if (uncaught > 1) return;
    // One more under way, caught before this destructor ends.
    try {
      OpensInDestructor inner{2};
      throw std::runtime_error("inner");
    } catch (const std::exception& exception) {
      CHECK(!strcmp(exception.what(), "inner"), "caught %s", exception.what());
    }
  }
  int uncaught;
};

void unwind() {
  try {
    OpensInDestructor guard{1};
    throw std::runtime_error("outer");
  } catch (const std::exception& exception) {
    CHECK(!strcmp(exception.what(), "outer"), "caught %s", exception.what());
    const int found = surprises(0, true);
    CHECK(found == 0, "%d surprises while one is handled", found);
    try {
      throw;
    } catch (const std::exception& again) {
      CHECK(&again == &exception, "another one was thrown again: %s", again.what());
    }
  }
  CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr, "some are left");
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2, "unwinding MEMBERS");
  members = atoi(argv[1]);
  omp_set_max_active_levels(2);
  for (int round = 0; round < 50; ++round) {
    unwind();
#pragma omp parallel num_threads(2)
    unwind();
  }
  return passed();
}
