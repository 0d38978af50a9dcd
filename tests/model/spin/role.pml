// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lending a worker's role (lend_role, reacquire_role, hand_role_over of src/sched/preemption.cpp): a
// native thread in a system call keeps its kernel thread, and a carrier plays the role on that carrier's
// own kernel thread until the native thread asks for it. Another worker takes carriers from the same
// cache, and may promote what it runs on one to that carrier's kernel thread.
//
// Checked: the role has one player; the carrier's stack one user, and it is resumed only when it was
// saved; a kernel thread is given one command at a time and none is lost (else: an invalid end state);
// a thread runs on with the preempt signal as it was.
// Planted bugs: see the BUG_ lines.

#define ROUNDS 2

#define NONE     0  // commands
#define PLAY     1  // the carrier, which plays the role
#define PROMOTED 2  // what another worker ran on the carrier, in a system call

#define NATIVE   1  // players
#define STAND_IN 2

byte player = NATIVE;
byte users;             // kernel threads on the carrier's stack
bool saved = true;      // its context can be resumed
bool in_cache = true;
bool native_ready;      // the native thread is on its worker's queue
byte native_word;       // commands
byte stand_in_word;
bool native_ticks = true;  // the preempt signal reaches the native thread
byte rounds;

inline step_onto_carrier() {
  atomic { users++; assert(users == 1); assert(saved); saved = false }
}
inline leave_carrier() {
  saved = true;
  users--
}
inline give_stand_in(what) {
  atomic { assert(stand_in_word == NONE); stand_in_word = what }
}

active proctype native_kernel() {
  do
  :: rounds == ROUNDS -> break
  :: rounds < ROUNDS ->
     assert(player == NATIVE);
     assert(native_ticks);
     native_ticks = false;             // in the handler, at a system call
     if
     :: atomic { in_cache -> in_cache = false };
#ifdef BUG_COMMAND_BEFORE_THE_ROLE
        give_stand_in(PLAY);
        player = STAND_IN;
#else
        player = STAND_IN;
        give_stand_in(PLAY);
#endif
#ifdef BUG_TOUCHED_AFTER_LENDING
        assert(player == NATIVE);
#endif
        native_ticks = true;           // sigreturn; the system call goes on
        stand_in_word != PROMOTED;     // and ends: it may wait for what the other worker runs
        if
        :: skip                        // a runtime call
        :: native_ticks = false        // or a tick outside a system call
        fi;
#ifdef BUG_DOES_NOT_ASK
        skip;
#else
        native_ready = true;
#endif
        native_word == PLAY;
        native_word = NONE;
        assert(player == NATIVE);
        native_ticks = true
     :: !in_cache -> native_ticks = true  // no carrier now: later
     fi;
     rounds++
  od
}

active proctype stand_in_kernel() {
  byte command;
end:
  do
  :: stand_in_word != NONE ->          // parked, on a stack of its own
     command = stand_in_word;
#ifndef BUG_RESET_LATE
     stand_in_word = NONE;
#endif
     step_onto_carrier();
     if
     :: command == PLAY ->
        assert(player == STAND_IN);
#ifdef BUG_KEEPER_IN_CACHE
        // The carrier would look for other work and go to the cache while its kernel thread plays.
        leave_carrier();
        in_cache = true;
        native_ready; native_ready = false;
        player = NATIVE;
        native_word = PLAY
#else
        native_ready; native_ready = false;
#ifdef BUG_NATIVE_WOKEN_BEFORE_THE_ROLE
        native_word = PLAY;
        player = NATIVE;
#else
        player = NATIVE;
#endif
#ifdef BUG_BACK_ON_THE_STACK
        in_cache = true;
        leave_carrier();
#else
        leave_carrier();               // onto the park stack
        in_cache = true;
#endif
#ifndef BUG_NATIVE_WOKEN_BEFORE_THE_ROLE
        native_word = PLAY
#endif
#endif
     :: command == PROMOTED ->         // its system call ends, it is demoted, goes on and ends
        leave_carrier();
        in_cache = true
     fi;
#ifdef BUG_RESET_LATE
     stand_in_word = NONE
#endif
  od
}

active proctype other_worker() {
  byte turns;
  do
  :: turns == ROUNDS -> break
  :: atomic { turns < ROUNDS && in_cache -> in_cache = false };
     turns++;
     step_onto_carrier();
     leave_carrier();
     if
     :: in_cache = true                // a ghost ran on it and ended
     :: give_stand_in(PROMOTED)        // one was found in a system call
     fi
  :: turns < ROUNDS && rounds == ROUNDS -> break
  od
}
