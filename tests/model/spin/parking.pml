// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parking and waking (src/sched/parking_protocol.h): no wake-up is lost. Stores pass through store
// buffers; the heavy barrier empties all of them, the light one does nothing by itself. A lost
// wake-up is an invalid end state. Planted bugs: see the BUG_ lines.

#define WAKERS 2
#define AWAKE  0
#define ASLEEP 1

byte state = AWAKE;       // the word that the kernel looks at, too
bool announced;           // the owner's store "asleep" is still in its buffer
bool work[WAKERS];
bool buffered[WAKERS];    // the waker's store to work is still in its buffer
bool queued;              // the kernel has put the owner to sleep
byte taken;

inline flush(w) {
  if
  :: buffered[w] -> work[w] = true; buffered[w] = false
  :: else
  fi
}

inline heavy_barrier() {
#ifndef BUG_NO_HEAVY_BARRIER
  atomic {
    state = (announced -> ASLEEP : state); announced = false;
    flush(0); flush(1)
  }
#endif
  skip
}

// Stores leave their buffers when they like; a wait returns for no reason, once.
active proctype memory() {
  bool lucky;
end:
  do
  :: atomic { announced -> state = ASLEEP; announced = false }
  :: atomic { buffered[0] -> flush(0) }
  :: atomic { buffered[1] -> flush(1) }
  :: atomic { queued && !lucky -> queued = false; lucky = true }
  od
}

inline take_work() {
  atomic {
    if :: work[0] -> work[0] = false; taken++ :: else fi;
    if :: work[1] -> work[1] = false; taken++ :: else fi
  }
}

active proctype owner() {
  bool found;
  do
  :: take_work();
     if :: taken == WAKERS -> break :: else fi;
#ifdef BUG_ANNOUNCE_LATE
     found = work[0]; found = found || work[1];
     announced = true;
     heavy_barrier();
#else
     announced = true;
     heavy_barrier();
     found = work[0]; found = found || work[1];
#endif
#ifdef BUG_NO_SECOND_LOOK
     found = false;
#endif
     if
     :: found -> atomic { announced = false; state = AWAKE }
     :: else ->
        // A system call empties the caller's buffer.
        atomic { state = (announced -> ASLEEP : state); announced = false };
        do
        :: state == ASLEEP ->
#ifdef BUG_WAIT_DOES_NOT_COMPARE
           queued = true;
#else
           atomic { if :: state == ASLEEP -> queued = true :: else fi };
#endif
           !queued
        :: state == AWAKE -> break
        od
     fi
  od;
  assert(taken == WAKERS)
}

proctype waker(byte me) {
  byte seen;
#ifdef BUG_LOOK_BEFORE_PUBLISHING
  seen = state;
  buffered[me] = true;
#else
  buffered[me] = true;
  // light barrier: the compiler keeps the order, the processor need not
  seen = state;
#endif
  if
  :: seen == ASLEEP ->
#ifdef BUG_WAKE_BEFORE_EXCHANGE
     queued = false;
     atomic { flush(me); state = AWAKE }
#else
     atomic { flush(me); seen = state; state = AWAKE };  // an exchange empties the buffer
     if :: seen == ASLEEP -> queued = false :: else fi
#endif
  :: else
  fi
}

init { atomic { run waker(0); run waker(1) } }
