// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves areas, and keeps the books: where they are after that.
#pragma once

#include "memory/area_table.h"
#include "memory/migration.h"
#include "memory/next_touch/next_touch.h"

namespace bosk::memory {

/// All pages that the area touches go to the node. Of our own pages those that nobody has touched yet will be there,
/// too. What could not go is in *moved. `area`: as it was looked up.
void migrate_area(AreaTable& areas, const AreaInfo& area, NodeIndex node, Moved* moved);

/// In blocks of `block` bytes (whole pages), to the nodes in turn. BOSK_ENOMEM: none for the list of pages.
int distribute_area(AreaTable& areas, const AreaInfo& area, const NodeIndex* nodes,
                    uint32_t n_nodes, size_t block, Moved* moved);

/// Pages that lie on node n go to to[n]; to n itself or kNone: they stay. BOSK_ENOMEM: as above.
int migrate_parts(AreaTable& areas, const AreaInfo& area, const NodeIndex* to, Moved* moved);

/// For pages of the area that nobody has touched, and pages that are marked for next-touch: the kernel decides by who
/// touches them.
void place_by_touch(AreaTable& areas, const AreaInfo& area);

/// Marks `bytes` from `from` on, which are in the area, so that pages go wherever they are touched next. A code of
/// NextTouchError.
int mark_area(AreaTable& areas, const AreaInfo& area, uintptr_t from, size_t bytes,
              const NextTouchOptions& options);
/// The same, and no books. kNextTouchNotMapped: the area is not what it was when it was looked up, and nothing is marked.
int mark_if_there(const AreaTable& areas, const AreaInfo& area, uintptr_t from, size_t bytes,
                  const NextTouchOptions& options);
/// Some of its pages have been marked and not been touched since.
bool is_coming(const AreaInfo& area);
/// How much of it is still to come: kNo, kPartly or kMostly.
Coming look_at_marks(const AreaInfo& area);
/// Asks the kernel where the area's pages are now, for areas whose pages came or went without the manager. While more than half of
/// it is marked and has not been touched, nothing changes.
void refresh_area(AreaTable& areas, const AreaInfo& area);
/// The same for all areas that are coming, if next-touch has brought anything since the last call. At most 64 of them,
/// each at the price of look_at_pages(). True: footprints have changed.
bool refresh_coming_areas(AreaTable& areas);
/// A sample of its pages shows an eighth of the area elsewhere than the books do; any of it, if the sample is all of them: else books that
/// were made while somebody touched it would stay wrong. 64 pages are asked about: some 25 us.
bool is_out_of_date(const AreaTable& areas, const AreaInfo& area);
/// It has been marked: whoever migrates it takes the marks away.
void note_marked(AreaTable& areas, const AreaInfo& area);
/// Takes marks away, if there may be any. The area is not in the table any more (not as this one), and its memory is still there: who is about to
/// mark it at this moment (a policy, beside the program) is waited for, or finds that it is gone.
void forget_marks_of_gone(const AreaInfo& area);

}  // namespace bosk::memory
