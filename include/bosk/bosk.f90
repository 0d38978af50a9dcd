! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The Fortran face of bosk: what bosk/bosk.h, tree.h, sync.h and topology.h declare, by the same names. What each
! function does and returns is told there; this file says only what is different in Fortran.
!
! - Handles of threads, bubbles and trees are of type(c_ptr).
! - A thread runs a function with bind(c), of one type(c_ptr) argument by value and such a result; its address is
!   c_funloc(it). Locals of a procedure that must live in one thread each need the attribute of a recursive
!   procedure (recursive, or -frecursive).
! - Names of levels end with c_null_char: "node"//c_null_char. Arguments that may be null in C are optional.
! - A deadline is integer(c_int64_t); bosk_forever never comes. unsigned numbers of C are the integers of the same
!   bits: bosk_unknown is -1.
! - Objects for synchronisation need the attribute target or volatile where several threads use them; initialised as
!   they are declared, all but barriers and semaphores can be used at once.
!
! The module consists of declarations only: nothing but the library (-lbosk) need be linked. bosk.mod is installed for the
! gfortran that bosk was built with; for another compiler, compile this file.
module bosk
  use, intrinsic :: iso_c_binding
  implicit none
  public

  ! ---- codes (bosk/error.h)
  integer(c_int), parameter :: bosk_ok = 0
  integer(c_int), parameter :: bosk_einval = -1
  integer(c_int), parameter :: bosk_enomem = -2
  integer(c_int), parameter :: bosk_estale = -3
  integer(c_int), parameter :: bosk_ebusy = -4
  integer(c_int), parameter :: bosk_edeadlk = -5
  integer(c_int), parameter :: bosk_eperm = -6
  integer(c_int), parameter :: bosk_enotsup = -7
  integer(c_int), parameter :: bosk_etimedout = -8
  integer(c_int), parameter :: bosk_eagain = -9
  integer(c_int), parameter :: bosk_estate = -10
  integer(c_int), parameter :: bosk_eloop = -11
  integer(c_int), parameter :: bosk_enoent = -12
  integer(c_int), parameter :: bosk_eio = -13
  integer(c_int), parameter :: bosk_eoverlap = -14
  integer(c_int), parameter :: bosk_eunmapped = -15
  integer(c_int), parameter :: bosk_enode = -16
  integer(c_int), parameter :: bosk_enoarea = -17

  integer(c_int64_t), parameter :: bosk_forever = -1_c_int64_t
  integer(c_int32_t), parameter :: bosk_unknown = -1_c_int32_t
  integer(c_int), parameter :: bosk_mutex_plain = 0, bosk_mutex_errorcheck = 0, bosk_mutex_recursive = 1
  integer(c_int), parameter :: bosk_barrier_serial = 1
  !> Events of bosk_wait_fd and bosk_poll, as in poll.h.
  integer(c_int), parameter :: bosk_pollin = 1, bosk_pollpri = 2, bosk_pollout = 4, bosk_pollerr = 8, bosk_pollhup = 16

  ! ---- what a bubble stands for
  integer(c_int), parameter :: bosk_relation_none = 0
  integer(c_int), parameter :: bosk_relation_data_sharing = 1
  integer(c_int), parameter :: bosk_relation_collective = 2
  integer(c_int), parameter :: bosk_relation_smt_symbiosis = 3
  integer(c_int), parameter :: bosk_relation_gang = 4
  integer(c_int), parameter :: bosk_relation_sequence = 5
  integer(c_int), parameter :: bosk_relation_memory_beside_compute = 6

  ! ---- what bounds a thread's speed
  integer(c_int32_t), parameter :: bosk_demand_unknown = 0
  integer(c_int32_t), parameter :: bosk_demand_compute = 1
  integer(c_int32_t), parameter :: bosk_demand_memory = 2

  !> Fill it with bosk_thread_attr_init_sized(attr, c_sizeof(attr)) first.
  type, bind(c) :: bosk_thread_attr
    integer(c_size_t) :: size
    type(c_ptr) :: name       !< c_loc of a text that ends with c_null_char
    type(c_ptr) :: bubble
    type(c_ptr) :: level      !< as name
    type(c_ptr) :: affinity   !< as name
    integer(c_int32_t) :: load
    integer(c_int32_t) :: priority
    integer(c_int32_t) :: preemptible
    integer(c_int32_t) :: light
    integer(c_int32_t) :: detached
    integer(c_int32_t) :: asleep
    integer(c_int32_t) :: demand
    integer(c_int32_t) :: unused
  end type bosk_thread_attr

  !> Set its size to c_sizeof(stats) first.
  type, bind(c) :: bosk_stats
    integer(c_size_t) :: size
    integer(c_int64_t) :: cpu_ns
    integer(c_int64_t) :: load
    integer(c_int32_t) :: threads
    integer(c_int32_t) :: bubbles
    integer(c_int32_t) :: not_started
    integer(c_int32_t) :: ready
    integer(c_int32_t) :: running
    integer(c_int32_t) :: blocked
    integer(c_int32_t) :: last_worker
    integer(c_int32_t) :: last_domain
    integer(c_int64_t) :: footprint
    integer(c_int32_t) :: steals
    integer(c_int32_t) :: steal_levels
    integer(c_int64_t) :: cache_accesses
    integer(c_int64_t) :: cache_misses
  end type bosk_stats

  type, bind(c) :: bosk_mutex
    integer(c_int64_t) :: bosk_private(5) = 0
  end type bosk_mutex
  type, bind(c) :: bosk_cond
    integer(c_int64_t) :: bosk_private(4) = 0
  end type bosk_cond
  type, bind(c) :: bosk_barrier
    integer(c_int64_t) :: bosk_private(4) = 0
  end type bosk_barrier
  type, bind(c) :: bosk_sem
    integer(c_int64_t) :: bosk_private(4) = 0
  end type bosk_sem
  type, bind(c) :: bosk_rwlock
    integer(c_int64_t) :: bosk_private(6) = 0
  end type bosk_rwlock

  type, bind(c) :: bosk_once_t
    integer(c_int64_t) :: bosk_private(3) = 0
  end type bosk_once_t

  !> struct pollfd.
  type, bind(c) :: bosk_pollfd
    integer(c_int) :: fd
    integer(c_short) :: events
    integer(c_short) :: revents
  end type bosk_pollfd

  !> The calling member of a parallel region expects so much work (bosk/hints.h).
  interface bosk_set_load
    subroutine bosk_set_load(load)
      import :: c_int32_t
      integer(c_int32_t), intent(in) :: load
    end subroutine bosk_set_load
    subroutine bosk_set_load_8(load)
      import :: c_int64_t
      integer(c_int64_t), intent(in) :: load
    end subroutine bosk_set_load_8
  end interface bosk_set_load

  !> For whom memory is attached (bosk/hints.h); 0 and more: that member of the next teams.
  integer(c_int), parameter :: bosk_me = -1
  integer(c_int), parameter :: bosk_my_team = -2
  integer(c_int), parameter :: bosk_next_team = -3
  integer(c_int), parameter :: bosk_reads = 1
  integer(c_int), parameter :: bosk_writes = 2
  integer(c_int), parameter :: bosk_reads_and_writes = 3
  !> When bosk_redecide looks.
  integer(c_int), parameter :: bosk_at_once = 0
  integer(c_int), parameter :: bosk_when_all = 1

  interface
    !> What the caller's last call that failed was about, in text(1:n), n the smaller of `code` and size - 1, with a
    !> c_null_char behind it. `size`: len(text). `code`: the length of the whole line; 0: there is none.
    function bosk_last_error(text, size) bind(c) result(code)
      import :: c_char, c_int, c_size_t
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function bosk_last_error

    ! ---- hints of memory (bosk/hints.h): begin is c_loc() of the first element
    function bosk_attach(who, begin, bytes, use, times) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr, c_size_t
      integer(c_int), value :: who
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
      integer(c_int), value :: use
      integer(c_int32_t), value :: times
      integer(c_int) :: code
    end function bosk_attach

    function bosk_detach(who, begin) bind(c) result(code)
      import :: c_int, c_ptr
      integer(c_int), value :: who
      type(c_ptr), value :: begin
      integer(c_int) :: code
    end function bosk_detach

    function bosk_detach_all(who) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: who
      integer(c_int) :: code
    end function bosk_detach_all

    function bosk_footprint(who, bytes, nodes) bind(c) result(code)
      import :: c_int, c_int64_t
      integer(c_int), value :: who
      integer(c_int64_t), intent(out) :: bytes(*)
      integer(c_int), value :: nodes
      integer(c_int) :: code
    end function bosk_footprint

    function bosk_next_touch(who) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: who
      integer(c_int) :: code
    end function bosk_next_touch

    function bosk_redecide(when) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: when
      integer(c_int) :: code
    end function bosk_redecide

    !> relation: bosk_relation_none and so on, but not bosk_relation_sequence.
    function bosk_set_relation(who, relation) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: who, relation
      integer(c_int) :: code
    end function bosk_set_relation

    function bosk_running() bind(c) result(members)
      import :: c_int
      integer(c_int) :: members
    end function bosk_running

    ! ---- threads (bosk/bosk.h)
    function bosk_thread_attr_init_sized(attr, size) bind(c) result(code)
      import :: bosk_thread_attr, c_int, c_size_t
      type(bosk_thread_attr), intent(out) :: attr
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function bosk_thread_attr_init_sized

    function bosk_thread_create(thread, attr, function, argument) bind(c) result(code)
      import :: bosk_thread_attr, c_funptr, c_int, c_ptr
      type(c_ptr), intent(out) :: thread
      type(bosk_thread_attr), intent(in), optional :: attr
      type(c_funptr), value :: function
      type(c_ptr), value :: argument
      integer(c_int) :: code
    end function bosk_thread_create

    function bosk_thread_wake(thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_thread_wake

    function bosk_thread_join(thread, result) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      type(c_ptr), intent(out), optional :: result
      integer(c_int) :: code
    end function bosk_thread_join

    function bosk_thread_detach(thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_thread_detach

    function bosk_thread_yield() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_thread_yield

    function bosk_thread_exit(result) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: result
      integer(c_int) :: code
    end function bosk_thread_exit

    function bosk_thread_set_priority(thread, priority) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: priority
      integer(c_int) :: code
    end function bosk_thread_set_priority

    function bosk_thread_get_priority(thread, priority) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int32_t), intent(out) :: priority
      integer(c_int) :: code
    end function bosk_thread_get_priority

    function bosk_thread_set_load(thread, load) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: load
      integer(c_int) :: code
    end function bosk_thread_set_load

    function bosk_thread_get_load(thread, load) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int32_t), intent(out) :: load
      integer(c_int) :: code
    end function bosk_thread_get_load

    function bosk_thread_set_preemptible(thread, preemptible) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int32_t), value :: preemptible
      integer(c_int) :: code
    end function bosk_thread_set_preemptible

    function bosk_thread_get_bubble(thread, bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      type(c_ptr), intent(out) :: bubble
      integer(c_int) :: code
    end function bosk_thread_get_bubble

    function bosk_thread_get_stats(thread, stats) bind(c) result(code)
      import :: bosk_stats, c_int, c_ptr
      type(c_ptr), value :: thread
      type(bosk_stats), intent(inout) :: stats
      integer(c_int) :: code
    end function bosk_thread_get_stats

    function bosk_thread_self() bind(c) result(thread)
      import :: c_ptr
      type(c_ptr) :: thread
    end function bosk_thread_self

    ! ---- bubbles (bosk/bosk.h)
    function bosk_bubble_create(bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: bubble
      integer(c_int) :: code
    end function bosk_bubble_create

    function bosk_bubble_destroy(bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int) :: code
    end function bosk_bubble_destroy

    function bosk_bubble_insert_thread(bubble, thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_bubble_insert_thread

    function bosk_bubble_insert_bubble(outer, inner) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: outer
      type(c_ptr), value :: inner
      integer(c_int) :: code
    end function bosk_bubble_insert_bubble

    function bosk_bubble_remove_thread(thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_bubble_remove_thread

    function bosk_bubble_remove_bubble(inner) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: inner
      integer(c_int) :: code
    end function bosk_bubble_remove_bubble

    function bosk_bubble_move_thread(to, thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: to
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_bubble_move_thread

    function bosk_bubble_wake(bubble, level) bind(c) result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: bubble
      character(kind=c_char), intent(in), optional :: level(*)
      integer(c_int) :: code
    end function bosk_bubble_wake

    function bosk_bubble_join(bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int) :: code
    end function bosk_bubble_join

    function bosk_bubble_barrier(bubble, serial) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), intent(out), optional :: serial
      integer(c_int) :: code
    end function bosk_bubble_barrier

    function bosk_bubble_get_bubble(bubble, outer) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      type(c_ptr), intent(out) :: outer
      integer(c_int) :: code
    end function bosk_bubble_get_bubble

    function bosk_bubble_set_priority(bubble, priority) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int32_t), value :: priority
      integer(c_int) :: code
    end function bosk_bubble_set_priority

    function bosk_bubble_get_priority(bubble, priority) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int32_t), intent(out) :: priority
      integer(c_int) :: code
    end function bosk_bubble_get_priority

    function bosk_bubble_set_load(bubble, load) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int32_t), value :: load
      integer(c_int) :: code
    end function bosk_bubble_set_load

    function bosk_bubble_get_load(bubble, load) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int32_t), intent(out) :: load
      integer(c_int) :: code
    end function bosk_bubble_get_load

    function bosk_bubble_set_burst_level(bubble, level) bind(c) result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: bubble
      character(kind=c_char), intent(in), optional :: level(*)
      integer(c_int) :: code
    end function bosk_bubble_set_burst_level

    function bosk_bubble_set_affinity(bubble, level) bind(c) result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: bubble
      character(kind=c_char), intent(in), optional :: level(*)
      integer(c_int) :: code
    end function bosk_bubble_set_affinity

    function bosk_bubble_set_policy(bubble, policy) bind(c) result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: bubble
      character(kind=c_char), intent(in), optional :: policy(*)
      integer(c_int) :: code
    end function bosk_bubble_set_policy

    function bosk_bubble_set_slice(bubble, nanoseconds) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int64_t), value :: nanoseconds
      integer(c_int) :: code
    end function bosk_bubble_set_slice

    function bosk_bubble_set_relation(bubble, relation) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), value :: relation
      integer(c_int) :: code
    end function bosk_bubble_set_relation

    function bosk_bubble_get_relation(bubble, relation) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), intent(out) :: relation
      integer(c_int) :: code
    end function bosk_bubble_get_relation

    function bosk_bubble_get_stats(bubble, stats) bind(c) result(code)
      import :: bosk_stats, c_int, c_ptr
      type(c_ptr), value :: bubble
      type(bosk_stats), intent(inout) :: stats
      integer(c_int) :: code
    end function bosk_bubble_get_stats

    ! ---- bubbles after the machine (bosk/tree.h)
    function bosk_tree_create(tree, level) bind(c) result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), intent(out) :: tree
      character(kind=c_char), intent(in), optional :: level(*)
      integer(c_int) :: code
    end function bosk_tree_create

    function bosk_tree_destroy(tree) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int) :: code
    end function bosk_tree_destroy

    function bosk_tree_leaves(tree) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int) :: code
    end function bosk_tree_leaves

    function bosk_tree_leaf_of(tree, pu) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int), value :: pu
      integer(c_int) :: code
    end function bosk_tree_leaf_of

    function bosk_tree_wake(tree) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int) :: code
    end function bosk_tree_wake

    function bosk_tree_join(tree) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int) :: code
    end function bosk_tree_join

    function bosk_tree_leaf(tree, leaf) bind(c) result(bubble)
      import :: c_int, c_ptr
      type(c_ptr), value :: tree
      integer(c_int), value :: leaf
      type(c_ptr) :: bubble
    end function bosk_tree_leaf

    function bosk_tree_root(tree) bind(c) result(bubble)
      import :: c_ptr
      type(c_ptr), value :: tree
      type(c_ptr) :: bubble
    end function bosk_tree_root

    ! ---- synchronisation and sleeping (bosk/sync.h)
    function bosk_mutex_init(mutex, kind) bind(c) result(code)
      import :: bosk_mutex, c_int
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int), value :: kind
      integer(c_int) :: code
    end function bosk_mutex_init

    function bosk_mutex_destroy(mutex) bind(c) result(code)
      import :: bosk_mutex, c_int
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int) :: code
    end function bosk_mutex_destroy

    function bosk_mutex_lock(mutex) bind(c) result(code)
      import :: bosk_mutex, c_int
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int) :: code
    end function bosk_mutex_lock

    function bosk_mutex_trylock(mutex) bind(c) result(code)
      import :: bosk_mutex, c_int
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int) :: code
    end function bosk_mutex_trylock

    function bosk_mutex_lock_until(mutex, deadline) bind(c) result(code)
      import :: bosk_mutex, c_int, c_int64_t
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_mutex_lock_until

    function bosk_mutex_unlock(mutex) bind(c) result(code)
      import :: bosk_mutex, c_int
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int) :: code
    end function bosk_mutex_unlock

    function bosk_cond_init(cond) bind(c) result(code)
      import :: bosk_cond, c_int
      type(bosk_cond), intent(inout) :: cond
      integer(c_int) :: code
    end function bosk_cond_init

    function bosk_cond_destroy(cond) bind(c) result(code)
      import :: bosk_cond, c_int
      type(bosk_cond), intent(inout) :: cond
      integer(c_int) :: code
    end function bosk_cond_destroy

    function bosk_cond_wait(cond, mutex) bind(c) result(code)
      import :: bosk_cond, bosk_mutex, c_int
      type(bosk_cond), intent(inout) :: cond
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int) :: code
    end function bosk_cond_wait

    function bosk_cond_wait_until(cond, mutex, deadline) bind(c) result(code)
      import :: bosk_cond, bosk_mutex, c_int, c_int64_t
      type(bosk_cond), intent(inout) :: cond
      type(bosk_mutex), intent(inout) :: mutex
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_cond_wait_until

    function bosk_cond_signal(cond) bind(c) result(code)
      import :: bosk_cond, c_int
      type(bosk_cond), intent(inout) :: cond
      integer(c_int) :: code
    end function bosk_cond_signal

    function bosk_cond_broadcast(cond) bind(c) result(code)
      import :: bosk_cond, c_int
      type(bosk_cond), intent(inout) :: cond
      integer(c_int) :: code
    end function bosk_cond_broadcast

    function bosk_barrier_init(barrier, count) bind(c) result(code)
      import :: bosk_barrier, c_int, c_int32_t
      type(bosk_barrier), intent(inout) :: barrier
      integer(c_int32_t), value :: count
      integer(c_int) :: code
    end function bosk_barrier_init

    function bosk_barrier_destroy(barrier) bind(c) result(code)
      import :: bosk_barrier, c_int
      type(bosk_barrier), intent(inout) :: barrier
      integer(c_int) :: code
    end function bosk_barrier_destroy

    function bosk_barrier_wait(barrier) bind(c) result(code)
      import :: bosk_barrier, c_int
      type(bosk_barrier), intent(inout) :: barrier
      integer(c_int) :: code
    end function bosk_barrier_wait

    function bosk_sem_init(sem, value) bind(c) result(code)
      import :: bosk_sem, c_int, c_int32_t
      type(bosk_sem), intent(inout) :: sem
      integer(c_int32_t), value :: value
      integer(c_int) :: code
    end function bosk_sem_init

    function bosk_sem_destroy(sem) bind(c) result(code)
      import :: bosk_sem, c_int
      type(bosk_sem), intent(inout) :: sem
      integer(c_int) :: code
    end function bosk_sem_destroy

    function bosk_sem_wait(sem) bind(c) result(code)
      import :: bosk_sem, c_int
      type(bosk_sem), intent(inout) :: sem
      integer(c_int) :: code
    end function bosk_sem_wait

    function bosk_sem_trywait(sem) bind(c) result(code)
      import :: bosk_sem, c_int
      type(bosk_sem), intent(inout) :: sem
      integer(c_int) :: code
    end function bosk_sem_trywait

    function bosk_sem_wait_until(sem, deadline) bind(c) result(code)
      import :: bosk_sem, c_int, c_int64_t
      type(bosk_sem), intent(inout) :: sem
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_sem_wait_until

    function bosk_sem_post(sem) bind(c) result(code)
      import :: bosk_sem, c_int
      type(bosk_sem), intent(inout) :: sem
      integer(c_int) :: code
    end function bosk_sem_post

    function bosk_sem_value(sem, value) bind(c) result(code)
      import :: bosk_sem, c_int, c_int32_t
      type(bosk_sem), intent(inout) :: sem
      integer(c_int32_t), intent(out) :: value
      integer(c_int) :: code
    end function bosk_sem_value

    function bosk_rwlock_init(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_init

    function bosk_rwlock_destroy(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_destroy

    function bosk_rwlock_read(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_read

    function bosk_rwlock_read_until(lock, deadline) bind(c) result(code)
      import :: bosk_rwlock, c_int, c_int64_t
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_rwlock_read_until

    function bosk_rwlock_tryread(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_tryread

    function bosk_rwlock_write(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_write

    function bosk_rwlock_write_until(lock, deadline) bind(c) result(code)
      import :: bosk_rwlock, c_int, c_int64_t
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_rwlock_write_until

    function bosk_rwlock_trywrite(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_trywrite

    function bosk_rwlock_unlock(lock) bind(c) result(code)
      import :: bosk_rwlock, c_int
      type(bosk_rwlock), intent(inout) :: lock
      integer(c_int) :: code
    end function bosk_rwlock_unlock

    !> `function`: c_funloc of a subroutine with bind(c) and no arguments.
    function bosk_once(once, function) bind(c) result(code)
      import :: bosk_once_t, c_funptr, c_int
      type(bosk_once_t), intent(inout) :: once
      type(c_funptr), value :: function
      integer(c_int) :: code
    end function bosk_once

    !> `destructor`: c_funloc of a subroutine with bind(c) of one type(c_ptr) argument by value, or c_null_funptr.
    function bosk_key_create(key, destructor) bind(c) result(code)
      import :: c_funptr, c_int, c_int64_t
      integer(c_int64_t), intent(out) :: key
      type(c_funptr), value :: destructor
      integer(c_int) :: code
    end function bosk_key_create

    function bosk_key_delete(key) bind(c) result(code)
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: key
      integer(c_int) :: code
    end function bosk_key_delete

    function bosk_key_get(key) bind(c) result(value)
      import :: c_int64_t, c_ptr
      integer(c_int64_t), value :: key
      type(c_ptr) :: value
    end function bosk_key_get

    function bosk_key_set(key, value) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: key
      type(c_ptr), value :: value
      integer(c_int) :: code
    end function bosk_key_set

    ! ---- I/O on descriptors of the operating system (bosk/sync.h); units of Fortran have none to tell
    function bosk_wait_fd(fd, events, deadline) bind(c) result(code)
      import :: c_int, c_int64_t
      integer(c_int), value :: fd
      integer(c_int), value :: events
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_wait_fd

    function bosk_poll(fds, count, deadline) bind(c) result(code)
      import :: bosk_pollfd, c_int, c_int64_t, c_size_t
      type(bosk_pollfd), intent(inout) :: fds(*)
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_poll

    !> `buffer`: c_loc of it. The answer is signed: bytes, or a code.
    function bosk_read(fd, buffer, bytes) bind(c) result(answer)
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: fd
      type(c_ptr), value :: buffer
      integer(c_size_t), value :: bytes
      integer(c_size_t) :: answer
    end function bosk_read

    function bosk_write(fd, buffer, bytes) bind(c) result(answer)
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: fd
      type(c_ptr), value :: buffer
      integer(c_size_t), value :: bytes
      integer(c_size_t) :: answer
    end function bosk_write

    function bosk_accept(fd, address, address_bytes, flags) bind(c) result(code)
      import :: c_int, c_ptr
      integer(c_int), value :: fd
      type(c_ptr), value :: address
      integer(c_int), intent(inout), optional :: address_bytes
      integer(c_int), value :: flags
      integer(c_int) :: code
    end function bosk_accept

    function bosk_connect(fd, address, address_bytes, deadline) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: fd
      type(c_ptr), value :: address
      integer(c_int), value :: address_bytes
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_connect

    function bosk_sleep_for(nanoseconds) bind(c) result(code)
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: nanoseconds
      integer(c_int) :: code
    end function bosk_sleep_for

    function bosk_sleep_until(deadline) bind(c) result(code)
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: deadline
      integer(c_int) :: code
    end function bosk_sleep_until

    function bosk_now() bind(c) result(now)
      import :: c_int64_t
      integer(c_int64_t) :: now
    end function bosk_now

    function bosk_after(nanoseconds) bind(c) result(deadline)
      import :: c_int64_t
      integer(c_int64_t), value :: nanoseconds
      integer(c_int64_t) :: deadline
    end function bosk_after

    ! ---- the machine (bosk/topology.h)
    function bosk_topo_levels() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_topo_levels

    function bosk_topo_depth() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_topo_depth

    function bosk_topo_pus() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_topo_pus

    function bosk_topo_is_real() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_topo_is_real

    function bosk_topo_nodes() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_topo_nodes

    function bosk_here() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_here

    function bosk_topo_level(name) bind(c) result(code)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: code
    end function bosk_topo_level

    function bosk_topo_domains(level) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int) :: code
    end function bosk_topo_domains

    function bosk_topo_domain_of(level, pu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int), value :: pu
      integer(c_int) :: code
    end function bosk_topo_domain_of

    function bosk_topo_pus_in(level, domain) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int), value :: domain
      integer(c_int) :: code
    end function bosk_topo_pus_in

    function bosk_topo_first_pu(level, domain) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int), value :: domain
      integer(c_int) :: code
    end function bosk_topo_first_pu

    function bosk_topo_os_number(level, domain) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int), value :: domain
      integer(c_int) :: code
    end function bosk_topo_os_number

    function bosk_topo_pu_of_cpu(cpu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: cpu
      integer(c_int) :: code
    end function bosk_topo_pu_of_cpu

    function bosk_here_in(level) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int) :: code
    end function bosk_here_in

    function bosk_topo_distance(pu, other_pu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: pu
      integer(c_int), value :: other_pu
      integer(c_int) :: code
    end function bosk_topo_distance

    function bosk_topo_shared_level(pu, other_pu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: pu
      integer(c_int), value :: other_pu
      integer(c_int) :: code
    end function bosk_topo_shared_level

    function bosk_topo_shares(level, pu, other_pu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: level
      integer(c_int), value :: pu
      integer(c_int), value :: other_pu
      integer(c_int) :: code
    end function bosk_topo_shares

    function bosk_topo_neighbours(pu, pus, count) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: pu
      integer(c_int), intent(out) :: pus(*)
      integer(c_int), value :: count
      integer(c_int) :: code
    end function bosk_topo_neighbours

    function bosk_topo_node_of(pu) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: pu
      integer(c_int) :: code
    end function bosk_topo_node_of

    function bosk_topo_node_os_number(node) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: node
      integer(c_int) :: code
    end function bosk_topo_node_os_number

    function bosk_topo_node_distance(from, to) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: from
      integer(c_int), value :: to
      integer(c_int) :: code
    end function bosk_topo_node_distance

    function bosk_topo_node_bytes(node) bind(c) result(bytes)
      import :: c_int, c_int64_t
      integer(c_int), value :: node
      integer(c_int64_t) :: bytes
    end function bosk_topo_node_bytes
  end interface
end module bosk
