// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The preemption hand-over: signal-yield, promotion of a thread to its donor's kernel thread, and
// demotion. Kernel threads are processes: one per worker, one per donor. What belongs to a user-level
// thread (context, flag, phase) lives in arrays, so that it moves with the thread.
//
// Checked: never two kernel threads on one stack; a context is resumed only when it was saved
// completely; a worker's private data is used by that worker only; a kernel thread that runs a
// thread's own code can be preempted; no thread is lost (else: an invalid end state).
// Planted bugs: see the BUG_ lines.

#define WORKERS 2
#ifndef THREADS
#define THREADS 2
#endif
#ifndef TICKS
#define TICKS 2      // times that one thread may be preempted
#endif
#define KERNEL_THREADS (WORKERS + THREADS)

#define PARKED 0     // the donor's word
#define RUN    1

#define OWN_CODE 0   // where a thread is
#define CALLING  1   // entered the runtime
#define LOADED   2   // has read which worker it is on
#define CALLED   3

chan ready = [THREADS] of { byte };
byte on_stack[THREADS];       // kernel threads that stand on its stack
bool saved[THREADS];          // its context can be resumed
bool no_preempt[THREADS];     // the flag in the identity's TLS
bool in_handler[THREADS];     // was switched out inside the signal handler
bool in_call[THREADS];        // is in a system call
byte phase[THREADS];
byte pointer[THREADS];        // worker pointer that a runtime call has loaded
byte ticks[THREADS];
byte promotions[THREADS];
byte word[THREADS];           // of its donor
bool masked[KERNEL_THREADS];  // the preempt signal is blocked
byte finished;

inline step_onto(t) {
  on_stack[t]++;
  assert(on_stack[t] == 1);
  assert(saved[t]);
  saved[t] = false
}

// Back in the thread's own code: sigreturn brings its own mask back, a cooperative switch does not.
inline go_on(kernel, t) {
  if
  :: in_handler[t] -> in_handler[t] = false; masked[kernel] = false
  :: else
  fi;
  assert(!masked[kernel]);
  no_preempt[t] = false
}

proctype worker(byte me) {
  byte now, next, left;

search:                       // on the scheduler's own stack
  do
  :: atomic { ready?[_] -> ready?now; step_onto(now); break }
  :: finished == THREADS -> goto stop
  od;
resumed:
  go_on(me, now);
  do
  // ---- the timer
  :: atomic { !masked[me] && !no_preempt[now] && ticks[now] < TICKS ->
              masked[me] = true; ticks[now]++ };
     no_preempt[now] = true;
     in_handler[now] = true;
     if
     :: in_call[now] -> goto promote
     :: else -> goto yield
     fi
  // ---- the thread's own code
  :: phase[now] == OWN_CODE && !in_call[now] && promotions[now] < 2 -> in_call[now] = true
  :: in_call[now] -> in_call[now] = false
  :: phase[now] == OWN_CODE && !in_call[now] ->
     phase[now] = CALLING;
#ifndef BUG_FLAG_LATE
     no_preempt[now] = true
#endif
  // ---- a runtime call that yields
  :: phase[now] == CALLING ->
     pointer[now] = me;
     phase[now] = LOADED
  :: phase[now] == LOADED ->
#ifdef BUG_FLAG_LATE
     no_preempt[now] = true;
#endif
     assert(pointer[now] == me);   // else: another worker's private queue
     phase[now] = CALLED;
     goto yield
  :: phase[now] == CALLED && !in_call[now] ->
     atomic { on_stack[now]--; finished++ };
     goto search
  od;

yield:                        // still on the old thread's stack, flag set
  if
  :: atomic { ready?[_] -> ready?next }
  :: empty(ready) -> goto resumed
  fi;
#ifdef BUG_PUBLISH_EARLY
  ready!now;
#endif
  saved[now] = true;
#ifndef BUG_MASK_KEPT
  masked[me] = false;         // the base mask, not the handler's
#endif
  atomic { on_stack[now]--; left = now; now = next; step_onto(now) };
#ifndef BUG_PUBLISH_EARLY
  ready!left;                 // publish late
#endif
  goto resumed;

promote:
#ifdef BUG_PROMOTE_EARLY
  word[now] = RUN;
#endif
  promotions[now]++;
  saved[now] = true;
  masked[me] = false;
  atomic { on_stack[now]--; left = now };
#ifndef BUG_PROMOTE_EARLY
  word[left] = RUN;           // and wake the donor
#endif
  goto search;

stop:
  skip
}

// The donor of thread t, parked on a stack of its own while t runs elsewhere.
proctype donor(byte t) {
  do
  :: word[t] == RUN ->
#ifndef BUG_RESET_LATE
     word[t] = PARKED;        // taken: from here on there may be another
#endif
     masked[WORKERS + t] = true;  // as while it is parked; sigreturn brings the thread's own mask
     atomic { step_onto(t) };
     go_on(WORKERS + t, t);
     // The system call goes on here, and ends. The next runtime call or the first tick outside a
     // system call demotes.
     in_call[t] = false;
     if
     :: no_preempt[t] = true                                            // runtime call
     :: masked[WORKERS + t] = true; no_preempt[t] = true; in_handler[t] = true  // tick
     fi;
#ifdef BUG_DEMOTE_EARLY
     ready!t;
#endif
     saved[t] = true;
     masked[WORKERS + t] = false;
     on_stack[t]--;           // on the park stack now
#ifndef BUG_DEMOTE_EARLY
     ready!t;
#endif
#ifdef BUG_RESET_LATE
     word[t] = PARKED
#endif
  :: finished == THREADS -> break
  od
}

init {
  byte i;
  atomic {
    do
    :: i < THREADS -> saved[i] = true; no_preempt[i] = true; ready!i; run donor(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < WORKERS -> run worker(i); i++
    :: else -> break
    od
  }
}
