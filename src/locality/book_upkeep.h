// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sees to it that the books say where memory is although nobody tells them: pages come to whoever touches them, the kernel balances
// nodes, programs touch and move pages by themselves. Policies that go by footprints are told when these have changed.
//
//     areas that are marked for next-touch   every 10 ms while touches bring pages, at most 64 of them; down to
//                                            every 0.4 s while none come
//     one area after the other               a sample of 64 pages each, every 25 ms; less and less often, down to every 0.4 s, while
//                                            all is as it was
//
// Price: a look takes 25 to 50 us, an area that has changed up to 1.5 ms; at most a fiftieth of a processor's time in all, and a
// thousandth where nothing changes. Only while a policy minds memory, on machines of several nodes, and unless BOSK_MEMORY_WATCH is
// off.
//
// Who owns what: all state belongs to the service thread (service.cpp), and to forget_books() in a forked child.
#pragma once

#include <stdint.h>

namespace bosk::memory {
class AreaTable;
}

namespace bosk::locality {

/// Are these books that have to be kept for who goes by them?
bool books_are_kept(const memory::AreaTable* areas);

/// Looks if it is time. When it will be again, on sched::clock_now()'s clock; sched::kForever: not before somebody asks the
/// service thread for something else.
uint64_t keep_books();
void forget_books();

}  // namespace bosk::locality
