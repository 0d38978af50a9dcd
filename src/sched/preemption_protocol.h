// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lock-free core of preemption: when a kernel thread's timer runs, and how contexts and workers'
// roles go from one kernel thread to another. Templates over what they work on, for the checker.
#pragma once

#include <stdint.h>

#include <atomic>

namespace bosk::sched {

// ---- ticks
//
// The timer of a kernel thread runs while its flag is 1. Who queues something for a worker that may be
// running the program's own code relies on a tick; a worker whose ticks find nothing stops them.
//
//   Publisher:                              Worker, in a tick that found nothing:
//
//     put it on the worker's queue            stop the timer; flag = 0
//     full fence                              full fence
//     which kernel thread plays the role?     look at the queue again: something there?
//     its flag is 0? arm it                   then arm
//
// Why no tick is lost: of the two fences one comes first. If it is the publisher's, the worker's second
// look finds what was queued. If it is the worker's, the publisher sees the flag fallen, or raised again
// by somebody else, who starts the timer. The kernel thread is looked up after the fence, too: else the
// publisher could ask the one that played the role long ago. When the role moves, the new player's
// timer is armed in any case (lend_to, take_role_back), so that a publisher that met the old one may
// rely on it.

/// Any kernel thread. Of several, one starts the timer.
template <class Flag, class Start>
inline void arm_ticks(Flag& armed, Start start) {
  // acquire: the start comes after the stop of whoever lowered the flag.
  if (armed.exchange(1, std::memory_order_acquire) == 0) start();
}

/// The kernel thread whose timer it is. Stops first, then lowers the flag: the other way round,
/// somebody who arms it in between would be undone.
template <class Flag, class Stop>
inline void disarm_ticks(Flag& armed, Stop stop) {
  stop();
  // release: see arm_ticks().
  armed.store(0, std::memory_order_release);
}

/// The same in a tick that found nothing. True: there is something after all, and the caller arms.
template <class A, class Flag, class Stop, class Look>
inline bool disarm_ticks_unless(Flag& armed, Stop stop, Look look) {
  disarm_ticks(armed, stop);
  A::fence(std::memory_order_seq_cst);
  return look();
}

/// Publisher, after queueing: the kernel thread whose timer it must arm; null: it runs.
template <class A, class Role>
inline auto kernel_to_arm(const Role& kernel_of_role) {
  A::fence(std::memory_order_seq_cst);
  // acquire: the kernel thread may be new; what the start of its timer needs was written before.
  auto* kernel = kernel_of_role.load(std::memory_order_acquire);
  // relaxed: the fence orders it after the queue.
  return kernel->timer_armed.load(std::memory_order_relaxed) == 0 ? kernel : nullptr;
}

// ---- contexts and roles
//
//   Native thread N, worker w:                  Kernel thread of the stand-in S (a carrier), parked:
//
//     tick at a system call
//       lend_to(): all of w to S ───────────▶   runs S, which looks for other work: it plays w
//     ... the system call; no worker ...
//     runtime call: N on w's ready queue ───▶   takes N from the queue
//     sleeps on its own command word            take_role_back(): w to N
//                                               onto its park stack
//     goes on, with w  ◀─────────────────────   give_role_back()
//
// A role has one player at a time: what belongs to it is written before the command that hands it on
// and not touched afterwards. Why that is enough: the command word is released and acquired.

/// `kernel` is parked, or on its way there with nobody else's command; it goes on with this context.
template <class Kernel, class Stack, class Mask>
inline void run_there(Kernel& kernel, const Stack& sp, Mask mask) {
  kernel.run_sp = sp;
  kernel.run_thread_pointer = kernel.thread_pointer;
  kernel.run_mask = mask;
  kernel.command.give(Kernel::kRun);
}

/// `me`, which keeps its kernel thread, gives its worker's role to `stand_in` on that one's own kernel
/// thread. `arm` starts a kernel thread's timer if it does not run.
template <class Worker, class Thread, class Mask, class Arm>
inline void lend_to(Worker& w, Thread& me, Thread& stand_in, Mask mask, Arm arm) {
  me.last_worker = &w;
  me.worker = nullptr;
  stand_in.worker = &w;
  w.current = &stand_in;
  // release: see kernel_to_arm().
  w.kernel.store(stand_in.own, std::memory_order_release);
  arm(stand_in.own);
  run_there(*stand_in.own, stand_in.sp, mask);
  // Nothing of the worker's may be touched from here on.
}

/// The stand-in's kernel thread has found `native` ready. Its caller leaves for its park stack next.
template <class Worker, class Thread, class Disarm, class Arm>
inline void take_role_back(Worker& w, Thread& native, Disarm disarm, Arm arm) {
  disarm(w.kernel.load(std::memory_order_relaxed));
  // relaxed: whoever knows the worker knows that kernel thread, too, which was its first player.
  w.kernel.store(native.own, std::memory_order_relaxed);
  arm(native.own);
}

/// On the park stack: nobody stands on a stack that others may take up any more. The keeper's kernel
/// thread is this one; whoever takes the keeper may give it a command before it waits for one.
template <class Thread, class GiveCarrierBack>
inline void give_role_back(Thread& native, GiveCarrierBack give_carrier_back) {
  auto& w = *native.pinned;
  Thread* keeper = w.keeper;
  w.keeper = nullptr;
  give_carrier_back(keeper);
  native.own->command.give(native.own->kRun);
}

}  // namespace bosk::sched
