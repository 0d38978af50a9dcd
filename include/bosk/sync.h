/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   Synchronisation, thread-local data, sleeping and I/O for threads of every kind: bosk's own, members of OpenMP
   teams (flat and nested), and any pthread. Who waits here does not hold a processor: its worker runs other
   threads meanwhile.

   Unless said otherwise a function returns 0, or one of the negative codes of bosk/error.h, and may be called by
   any thread at any time, but not in a signal handler. BOSK_EINVAL for a null pointer, and for an object that was destroyed, is not listed each time. An
   object must not be copied or moved, and stays in this process. What one thread wrote before it unlocked,
   signalled, posted, or came to a barrier is seen by the thread that this lets go on.

   Deadlines are points in time, in nanoseconds of CLOCK_MONOTONIC (std::chrono::steady_clock): bosk_now() plus
   a while, or BOSK_FOREVER. Functions with a deadline that has passed still succeed where they need not wait; else they let other threads
   run first, so that a loop of them holds nobody up. All
   of them can return BOSK_ENOMEM: they need one kernel thread (two for I/O) for the process, and the system
   refuses it.

   What the papers say of it: Marcel offers POSIX synchronisation to its user-level threads (2005, section 4);
   a thread that blocks leaves its worker to the others of its bubble. docs/synchronization.md has the rest. */
#ifndef BOSK_SYNC_H
#define BOSK_SYNC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bosk/error.h>

struct pollfd;
struct sockaddr;

#ifdef __cplusplus
extern "C" {
#endif

/* ---- time */

#define BOSK_FOREVER UINT64_MAX

/** Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bosk_now(void);
/** The deadline `nanoseconds` from now; BOSK_FOREVER if that is too far away to be told. */
uint64_t bosk_after(uint64_t nanoseconds);

/** Sleeps. Other threads run on the worker meanwhile; how late the caller goes on depends on them. Never returns
    early. A time that has passed lets the others run first, as far as there are any. BOSK_ENOMEM: see above. */
int bosk_sleep_for(uint64_t nanoseconds);
int bosk_sleep_until(uint64_t deadline);

/* ---- mutexes: one thread at a time. The owner is the thread that locked it; members of one OpenMP team are
   different threads, also where one worker runs them one after the other. */

typedef struct bosk_mutex {
  uint64_t bosk_private[5];
} bosk_mutex_t;

enum bosk_mutex_kind {
  BOSK_MUTEX_PLAIN = 0,      /**< tells who misuses it */
  BOSK_MUTEX_ERRORCHECK = 0, /**< the same: checking costs nothing that could be saved */
  BOSK_MUTEX_RECURSIVE = 1   /**< its owner may lock it again, and unlocks it as often */
};

/** A plain mutex, as good as one from bosk_mutex_init(). Zero bytes are one, too. */
#define BOSK_MUTEX_INITIALIZER {{0, 0, 0, 0, 0}}

/** A free mutex of the given kind. BOSK_EINVAL: no such kind. */
int bosk_mutex_init(bosk_mutex_t* mutex, int kind);
/** It must not be used again before it is initialised again. BOSK_EBUSY: somebody holds it. */
int bosk_mutex_destroy(bosk_mutex_t* mutex);
/** Waits until the mutex is free and takes it. BOSK_EDEADLK: the caller has it, and it is not recursive.
    BOSK_EAGAIN: locked 2^31 times by its owner. */
int bosk_mutex_lock(bosk_mutex_t* mutex);
/** The same without waiting. BOSK_EBUSY: somebody has it. */
int bosk_mutex_trylock(bosk_mutex_t* mutex);
/** The same, but BOSK_ETIMEDOUT at the deadline. */
int bosk_mutex_lock_until(bosk_mutex_t* mutex, uint64_t deadline);
/** BOSK_EPERM: the caller does not have it, and nothing happens. */
int bosk_mutex_unlock(bosk_mutex_t* mutex);

/* ---- conditions: waiting for something that a mutex guards. */

typedef struct bosk_cond {
  uint64_t bosk_private[4];
} bosk_cond_t;

#define BOSK_COND_INITIALIZER {{0, 0, 0, 0}}

int bosk_cond_init(bosk_cond_t* cond);
/** BOSK_EBUSY: somebody waits. Threads that have been woken need not have returned yet. */
int bosk_cond_destroy(bosk_cond_t* cond);
/** Unlocks the mutex (a recursive one as often as it is locked), waits to be woken, and locks it again as it was.
    There are no wake-ups without a signal, but whoever locks the mutex first may have taken what was signalled:
    look again. BOSK_EPERM: the caller does not have the mutex. */
int bosk_cond_wait(bosk_cond_t* cond, bosk_mutex_t* mutex);
/** The same until the deadline: then BOSK_ETIMEDOUT, with the mutex locked again all the same. A signal is never
    spent on a wait that times out. */
int bosk_cond_wait_until(bosk_cond_t* cond, bosk_mutex_t* mutex, uint64_t deadline);
/** Wakes the thread that has waited longest, if there is one. */
int bosk_cond_signal(bosk_cond_t* cond);
/** Wakes all that wait. */
int bosk_cond_broadcast(bosk_cond_t* cond);

/* ---- barriers: `count` threads wait for each other, again and again. */

typedef struct bosk_barrier {
  uint64_t bosk_private[4];
} bosk_barrier_t;

#define BOSK_BARRIER_SERIAL 1

/** BOSK_EINVAL: count is 0. Needs no destruction before it is initialised anew, if nobody waits in it. */
int bosk_barrier_init(bosk_barrier_t* barrier, uint32_t count);
/** BOSK_EBUSY: somebody waits in it. Threads that it has let go need not have returned yet. */
int bosk_barrier_destroy(bosk_barrier_t* barrier);
/** Waits until `count` threads have come. Returns BOSK_BARRIER_SERIAL to one of them (the last), 0 to the rest.
    It is ready for its next use at once. */
int bosk_barrier_wait(bosk_barrier_t* barrier);

/* ---- counting semaphores */

typedef struct bosk_sem {
  uint64_t bosk_private[4];
} bosk_sem_t;

#define BOSK_SEM_MAX 0x7fffffff

/** BOSK_EINVAL: more than BOSK_SEM_MAX. */
int bosk_sem_init(bosk_sem_t* sem, uint32_t value);
/** BOSK_EBUSY: somebody waits. */
int bosk_sem_destroy(bosk_sem_t* sem);
/** Takes one unit, in the order of coming. */
int bosk_sem_wait(bosk_sem_t* sem);
/** BOSK_EBUSY: there is none. */
int bosk_sem_trywait(bosk_sem_t* sem);
/** BOSK_ETIMEDOUT at the deadline. */
int bosk_sem_wait_until(bosk_sem_t* sem, uint64_t deadline);
/** Gives one unit: to whoever has waited longest, else to the next that comes. BOSK_EAGAIN: there are
    BOSK_SEM_MAX already. */
int bosk_sem_post(bosk_sem_t* sem);
/** How many units there are now; `*value` is old news when it is read. */
int bosk_sem_value(bosk_sem_t* sem, uint32_t* value);

/* ---- read-write locks: many readers or one writer, in the order of coming, so that neither side starves. A
   thread that reads must not ask again, for reading or writing: behind a writer that waits it would wait for
   itself. */

typedef struct bosk_rwlock {
  uint64_t bosk_private[6];
} bosk_rwlock_t;

#define BOSK_RWLOCK_INITIALIZER {{0, 0, 0, 0, 0, 0}}

int bosk_rwlock_init(bosk_rwlock_t* lock);
/** BOSK_EBUSY: held or waited for. */
int bosk_rwlock_destroy(bosk_rwlock_t* lock);
/** BOSK_EDEADLK: the caller has it for writing. BOSK_EAGAIN: 2^31 readers. */
int bosk_rwlock_read(bosk_rwlock_t* lock);
int bosk_rwlock_read_until(bosk_rwlock_t* lock, uint64_t deadline); /**< also BOSK_ETIMEDOUT */
int bosk_rwlock_tryread(bosk_rwlock_t* lock); /**< BOSK_EBUSY: somebody writes, or waits to */
/** BOSK_EDEADLK: the caller has it for writing. */
int bosk_rwlock_write(bosk_rwlock_t* lock);
int bosk_rwlock_write_until(bosk_rwlock_t* lock, uint64_t deadline); /**< also BOSK_ETIMEDOUT */
int bosk_rwlock_trywrite(bosk_rwlock_t* lock); /**< BOSK_EBUSY: somebody has it */
/** Gives back what the caller has. BOSK_EPERM: nobody has it, or another thread writes. (Which threads read is
    not known.) */
int bosk_rwlock_unlock(bosk_rwlock_t* lock);

/* ---- once */

typedef struct bosk_once {
  uint64_t bosk_private[3];
} bosk_once_t;

#define BOSK_ONCE_INITIALIZER {{0, 0, 0}}

/** Calls the function if nobody has yet; who comes meanwhile waits until it has returned. BOSK_EDEADLK: called
    from inside of that function. A function that does not return (longjmp, exception) keeps all others
    waiting. In a child that is forked while another thread is in the function, nobody has called it yet. */
int bosk_once(bosk_once_t* once, void (*function)(void));

/* ---- thread-local data: a value per key and thread.

   A thread of bosk loses its values when it ends: its destructors run then. Other threads (main, pthreads, workers
   that run members of teams) have them until the pthread ends, as with pthread_getspecific(); members of nested
   teams start with whatever value an earlier member left behind, as with threadprivate variables. */

typedef uint64_t bosk_key_t;

/** A new key, whose value is null for every thread. `destructor` (may be null) is called for each thread that ends
    with a value other than null, with that value, after it has been set to null; while destructors set new values
    they are called again, four times at most. BOSK_EAGAIN: 1,024 keys exist. */
int bosk_key_create(bosk_key_t* key, void (*destructor)(void*));
/** No destructor is called for its values from now on. BOSK_EINVAL: there is no such key. */
int bosk_key_delete(bosk_key_t key);
/** The calling thread's value; null if there is no such key. */
void* bosk_key_get(bosk_key_t key);
/** BOSK_EINVAL: there is no such key. BOSK_ENOMEM. */
int bosk_key_set(bosk_key_t key, const void* value);

/* ---- I/O that does not hold a worker. Descriptors may be blocking or not, and stay what they are. A descriptor
   that another thread closes meanwhile ends no wait (nor does it end a poll(2)): shut it down first, or give a
   deadline. BOSK_EIO: the kernel refuses; errno says why. */

/** Waits for any of `events` (POLLIN, POLLOUT, … of poll.h), an error, or a hang-up. Returns what has happened, as in
    pollfd.revents: positive. BOSK_ETIMEDOUT; BOSK_EIO, with EBADF: it is not open. */
int bosk_wait_fd(int fd, int events, uint64_t deadline);
/** poll(2) with a deadline: returns how many are ready, 0 at the deadline, or a code: BOSK_EINVAL, BOSK_ENOMEM,
    BOSK_EIO. */
int bosk_poll(struct pollfd* fds, size_t count, uint64_t deadline);

/** read(2), once something can be read. Bytes, 0 at the end of the file, or BOSK_EIO. */
ssize_t bosk_read(int fd, void* buffer, size_t bytes);
/** write(2), once something can be written: at least one byte, but perhaps fewer than asked for, also where the
    descriptor is blocking. Bytes, or BOSK_EIO. */
ssize_t bosk_write(int fd, const void* buffer, size_t bytes);
/** accept4(2): the new descriptor, or BOSK_EIO. */
int bosk_accept(int fd, struct sockaddr* address, unsigned int* address_bytes, int flags);
/** connect(2): 0; BOSK_EIO; BOSK_ETIMEDOUT at the deadline: the connection may still come about, so close the
    socket. */
int bosk_connect(int fd, const struct sockaddr* address, unsigned int address_bytes,
                 uint64_t deadline);

#ifdef __cplusplus
}
#endif
#endif
