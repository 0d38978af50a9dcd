// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How bubbles whose members have a relation to each other are kept and laid out, for all policies.
//
//     node           [ S ]              S: two threads in SMT symbiosis
//     core     ( )          (S)         its seat is a core: whoever decides where S goes, decides
//     pu      p0 p1        s1 s2        which core; there it opens, a thread for each PU
//
// Two steps. *Where*: a related bubble is a unit; policies that distribute deal it to a domain where
// its seat is or lies below (keeps_whole(), may_hold()), those that do not let it go down on the way
// of the worker that found it. *How*: at its seat lay_out() says where its members go:
//
// | relation | seat | members |
// |---|---|---|
// | data sharing | smallest domain with a PU for each; larger than a node: it is not kept | on the seat's queue: any PU of it |
// | collective | smallest domain with a PU for each | evenly over the PUs, in order |
// | SMT symbiosis | a core | one on each PU in turn |
// | memory beside compute | smallest domain with a PU for each | evenly, the two kinds in turn, so that neighbours in a core or cache differ |
// | sequence | smallest domain for its widest member: for threads a PU | one at a time: burst() lets the first one out, leave() the next |
// | gang | smallest domain with a PU for each | the policy gang decides when (gang.h) |
//
// One that is found on a domain too small for its seat, because the bubble around it was taken there,
// opens on the smallest domain around that has room.
//
// What is queued in an open related bubble is not stolen out of the domain on which it opened; what is
// in a gang not at all, and of memory beside compute only by PUs of the same core.
//
// Costs: keeps_whole() and may_hold() O(children of the domain), lay_out() O(members · log arity).
// Nothing is stored.
#pragma once

#include <stdint.h>

#include "policies/policy.h"

namespace bosk::policies::relations {

/// Has the bubble a relation that keeps it whole on its way down?
bool keeps_whole(const topology::Machine& machine, const EntityView& entity);
/// May the seat of a bubble that is kept whole be `d`, or below it?
bool may_hold(const topology::Machine& machine, const EntityView& entity,
              const topology::Domain& d);
/// It opens on `d`: no child of it may hold it.
bool sits(const topology::Machine& machine, const EntityView& entity, const topology::Domain& d);
/// The seat on the way from `d` down to the PU.
const topology::Domain& seat_on_way(const topology::Machine& machine, const EntityView& entity,
                                    const topology::Domain& d, uint32_t pu);

/// Where a bubble that was found on `domain`, around the PU, may open: `domain`, or if its seat cannot be
/// below, the seat above. For anything but a bubble that is kept whole `domain`.
uint32_t seat_from(const topology::Machine& machine, const EntityView& entity, uint32_t domain,
                   uint32_t pu);

/// The smallest domain around the PU that has `width` PUs, not above `scope`.
const topology::Domain& smallest_around(const topology::Machine& machine,
                                        const topology::Domain& scope, uint32_t pu, uint32_t width);

/// Places of the direct members of the first root, which sits on `domain` and is no sequence (that
/// bursts, see sched::burst()). False: out of memory.
bool lay_out(const topology::Machine& machine, const WorkView& work, uint32_t domain,
             PlacementList* answer);

/// Homes of the members of a team of OpenMP, around where its opener is at home, and the seat, which its members do not leave. kNone, and
/// no answer: the relation does not keep so many together, and any policy may place them. Of memory beside compute the first half of
/// the members is bound by memory.
uint32_t place_team(const topology::Machine& machine, sched::Relation relation,
                    const TeamShape& shape, TeamPlacement* answer);

}  // namespace bosk::policies::relations
