// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A region opens in a destructor while an exception unwinds: who counts exceptions finds its own, and nobody else's.
//   unwinding flat|nested|barrier [MEMBERS]
#include "hard.h"

#include <exception>
#include <stdexcept>

namespace {

int team;
bool barrier;

void expect(int wanted, const char* where, int member) {
  const int found = std::uncaught_exceptions();
  CHECK(found == wanted, "%s: member %d has %d uncaught exceptions, not %d", where, member, found,
        wanted);
}

struct OpensRegion {
  ~OpensRegion() {
    expect(1, "before the region", 0);
    int caught = 0;
#pragma omp parallel num_threads(team) reduction(+ : caught)
    {
      const int me = omp_get_thread_num();
      const int own = me == 0 ? 1 : 0;
      expect(own, "in the region", me);
      try {
        struct Looks {
          int wanted, me;
          ~Looks() { expect(wanted, "while the member's own unwinds", me); }
        } looks{own + 1, me};
        throw std::runtime_error("a member's");
      } catch (const std::exception&) {
        ++caught;
        expect(own, "in the member's handler", me);
      }
      if (barrier) {
#pragma omp barrier
        expect(own, "after a barrier", me);
      }
    }
    expect(1, "after the region", 0);
    CHECK(caught == team, "%d exceptions caught, not %d", caught, team);
  }
};

void unwind() {
  for (int i = 0; i < 50; ++i) {
    bool caught = false;
    try {
      const OpensRegion guard;
      throw std::logic_error("the opener's");
    } catch (const std::logic_error&) {
      caught = true;
      expect(0, "in the opener's handler", 0);
      // A region while an exception is being handled; rethrown afterwards.
      try {
#pragma omp parallel num_threads(team)
        try {
          throw omp_get_thread_num();
        } catch (int member) {
          CHECK(member == omp_get_thread_num(), "caught %d", member);
        }
        CHECK(std::current_exception() != nullptr, "the exception that is being handled is gone");
        throw;
      } catch (const std::logic_error& again) {
        CHECK(is(again.what(), "the opener's"), "rethrown: %s", again.what());
      }
    }
    CHECK(caught, "nothing was caught");
    expect(0, "afterwards", 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  team = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  barrier = is(mode, "barrier");
  if (is(mode, "flat") || barrier) {
    unwind();
  } else if (is(mode, "nested")) {
    if (team > 8) team = 8;
#pragma omp parallel num_threads(2)
    unwind();
  } else {
    no_such_mode();
  }
  return passed();
}
