// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of the scheduler that were chosen by measuring: how soon it looks, tries again, or gives up. Each has its unit in its name.
// None is a matter of correctness; what a proof needs stands with the proof, and what the user sets in base/settings.h.
#pragma once

#include <stdint.h>

namespace bosk::sched::tuning {

// ---- ticks

/// Of members behind one that blocks: a tick costs 2 us, and some 50 on a virtual machine, so this is a tenth of one's time at most.
inline constexpr uint64_t kQuickTickNs = 500'000;
/// The slice of who polls where those that take turns get on: some microseconds of work each. Below 70 us nothing advances on a
/// virtual machine, whose ticks cost 46 to 55.
inline constexpr uint64_t kHandOverTickNs = 100'000;
/// With nothing else to run, before the timer stops: an idle process makes no system calls by this.
inline constexpr uint32_t kIdleTicks = 20;
/// Looks of the monitor in a row that find a thread blocked, and nobody who waits, before it is left alone.
inline constexpr uint32_t kIdleLooks = 20;
/// … at the quick pace after the last one that had something to do.
inline constexpr uint32_t kQuickLooks = 8;

// ---- members that poll

/// Between two looks at the registers of one: a loop that reads a flag takes some ns, one that computes is elsewhere by then.
inline constexpr uint64_t kBetweenLooksNs = 30'000;
/// Of known polling loops every such verdict is proved anew, in case they are other code now.
inline constexpr uint32_t kVerifiedEvery = 8;
/// A polling loop has other registers, too, when what it reads has changed meanwhile: once is not enough to forget it.
inline constexpr uint8_t kMostDoubts = 4;
/// Regions of a team whose members poll follow each other within so much: who has ended in one waits for the next, in its turn.
inline constexpr uint64_t kNextRegionUs = 20;
/// The turn of a team whose members poll: a hundred ticks of a virtual machine at most, and short for who waits for his.
inline constexpr uint64_t kTurnUs = 4000;

/// Who waits for its gang's turn looks so often; the kernel adds some 50 us. A hundredth of a turn.
inline constexpr long kGangNapNs = 20'000;

// ---- threads that poll outside of regions (spins/outside.h)

/// CPU time after which one is looked at for the first time, or again when its own ticks have ended.
inline constexpr uint64_t kOutsidePatienceNs = 250'000;
inline constexpr uint64_t kOutsidePatienceOfPollersNs = 100'000;
/// One that computes is asked more and more seldom, …
inline constexpr uint64_t kMostOutsidePatienceNs = 1'024'000'000;
/// … and one that was found to poll before, and may again at any time.
inline constexpr uint64_t kMostOutsidePatienceOfPollersNs = 32'000'000;
/// What the monitor has seen of members that want CPUs is believed for so long.
inline constexpr uint64_t kDemandBelievedUs = 50'000;
/// How long who polls sleeps. It must not find out much later than it would if all took turns on the CPUs, for a slice of the
/// kernel's each, so the longest depends on how many there are.
inline constexpr uint32_t kFirstNapUs = 100;
inline constexpr uint32_t kNapForEachUs = 1500;
inline constexpr uint32_t kLongestNapUs = 8000;
/// How long it polls between.
inline constexpr uint64_t kBetweenNapsNs = 30'000;

// ---- others on our CPUs (rivals.h, apart.cpp)

/// What a worker that polls misses of the time, if somebody else had its CPU; some microseconds are usual.
inline constexpr uint64_t kLongGapUs = 200;
/// Two such gaps within this are believed; one may have been the host's doing.
inline constexpr uint64_t kGapsTogetherUs = 50'000;
/// How long they are believed to be there, at first and when they have proved to stay.
inline constexpr uint64_t kFirstRivalsUs = 20'000;
inline constexpr uint64_t kLongestRivalsUs = 1'280'000;
/// Longer polls than this were asked for by the user.
inline constexpr uint64_t kMostLearntPollUs = 10'000;
/// What an idle worker polls beside others: a wake costs about as much.
inline constexpr uint64_t kPollBesideOthersUs = 5;
/// A worker that takes so long to come to another CPU met somebody there; then it stays where the kernel puts it, for longer and longer.
inline constexpr uint64_t kLateOnCpuUs = 500;
inline constexpr uint64_t kFirstStayUs = 20'000;
inline constexpr uint64_t kLongestStayUs = 1'280'000;
/// For whom a worker looks before it leaves a CPU, and how old what they say of theirs may be: a turn of those that poll.
inline constexpr uint32_t kNeighboursLookedAt = 4;
inline constexpr uint64_t kFreshCpuUs = kTurnUs;

// ---- samples of where the time goes (time_samples.h)

/// A program is sampled so often in each doubling of its age, …
inline constexpr uint64_t kSamplesOfAge = 100;
/// … within these bounds: a wake-up costs some 10 us, and some 50 on a virtual machine.
inline constexpr uint64_t kShortestSampleNs = 250'000;
inline constexpr uint64_t kLongestSampleNs = 10'000'000;
/// Who computes is looked at closer so often in each doubling of the program's age, within these bounds: up to a dozen ticks of some 3 us.
inline constexpr uint64_t kLooksOfAge = 50;
inline constexpr uint64_t kShortestLookNs = 1'000'000;
inline constexpr uint64_t kLongestLookNs = 20'000'000;
/// CPU time from sample to sample: the kernel looks at its timers for it once in 1 to 10 ms.
inline constexpr uint64_t kSampleCpuNs = 4'000'000;
/// So many samples tell more than looks from outside.
inline constexpr uint64_t kFewSamples = 16;
/// What is known so far is kept for who looks after the program has died.
inline constexpr uint64_t kSamplesToldNs = 100'000'000;
/// A look at many workers takes its time, and no more than one part of so many.
inline constexpr uint64_t kSamplePauseOfCost = 200;

}  // namespace bosk::sched::tuning
