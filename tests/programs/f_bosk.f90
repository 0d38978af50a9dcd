! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The Fortran module `bosk`: types have the sizes that the library works with, functions their arguments, codes their
! values.
module workers
  use bosk
  implicit none
  ! Pairs: were a type too small here, the library would write into the second one.
  type(bosk_mutex), target :: mutexes(2)
  type(bosk_cond), target :: conds(2)
  type(bosk_sem), target :: sems(2)
  type(bosk_rwlock), target :: rwlocks(2)
  type(bosk_barrier), target :: barriers(2)
  type(bosk_once_t), target :: onces(2)
  integer, target :: turn = 0, counted = 0, prepared = 0, destroyed = 0
  integer(c_int64_t) :: key
  integer, parameter :: threads = 6

contains

  recursive function works(argument) bind(c) result(answer)
    type(c_ptr), value :: argument
    type(c_ptr) :: answer
    integer, pointer :: number
    integer :: code
    call c_f_pointer(argument, number)
    call need(bosk_mutex_lock(mutexes(1)), 0, "lock")
    do while (turn /= number)
      call need(bosk_cond_wait(conds(1), mutexes(1)), 0, "wait")
    end do
    turn = turn + 1
    call need(bosk_cond_broadcast(conds(1)), 0, "broadcast")
    call need(bosk_mutex_unlock(mutexes(1)), 0, "unlock")
    call need(bosk_rwlock_write(rwlocks(1)), 0, "write")
    counted = counted + 1
    call need(bosk_rwlock_unlock(rwlocks(1)), 0, "unlock")
    code = bosk_barrier_wait(barriers(1))
    if (code == bosk_barrier_serial) code = bosk_sem_post(sems(1))
    call need(code, 0, "barrier")
    call need(bosk_sleep_for(1000_c_int64_t), 0, "sleep")
    call need(bosk_once(onces(1), c_funloc(prepare)), 0, "once")
    if (c_associated(bosk_key_get(key))) error stop "a value that nobody has set"
    call need(bosk_key_set(key, argument), 0, "key_set")
    call need(bosk_thread_yield(), 0, "yield")
    answer = bosk_key_get(key)
  end function works

  subroutine prepare() bind(c)
    prepared = prepared + 1
  end subroutine prepare

  ! At the end of a thread that has set a value: counts it, by that value.
  subroutine destroy(value) bind(c)
    type(c_ptr), value :: value
    integer, pointer :: number
    call c_f_pointer(value, number)
    call need(bosk_mutex_lock(mutexes(1)), 0, "lock")
    destroyed = destroyed + number
    call need(bosk_mutex_unlock(mutexes(1)), 0, "unlock")
  end subroutine destroy

  ! The other end of a pipe: waits for what comes.
  recursive function reads(argument) bind(c) result(answer)
    type(c_ptr), value :: argument
    type(c_ptr) :: answer
    integer(c_int), pointer :: ends(:)
    integer(c_int), target :: word
    call c_f_pointer(argument, ends, [2])
    word = 0
    call need(int(bosk_read(ends(1), c_loc(word), c_sizeof(word))), int(c_sizeof(word)), "read")
    call need(word, 4711, "what was read")
    answer = c_null_ptr
  end function reads

  subroutine need(code, expected, what)
    integer(c_int), intent(in) :: code, expected
    character(len=*), intent(in) :: what
    if (code == expected) return
    print '(a, a, i0, a, i0)', what, " returned ", code, ", not ", expected
    error stop 1
  end subroutine need

  ! Nothing was written behind the first one.
  subroutine untouched(words, what)
    integer(c_int64_t), intent(in) :: words(:)
    character(len=*), intent(in) :: what
    call need(count(words /= 0), 0, what//" behind the first one")
  end subroutine untouched

end module workers

program f_bosk
  use bosk
  use workers
  implicit none
  type(bosk_thread_attr) :: attr
  type(bosk_stats) :: stats
  type(c_ptr) :: bubble, inner, at, thread(threads), answer, tree
  integer, target :: number(threads)
  integer(c_int) :: relation, serial, level, near(2)
  integer(c_int) :: length
  character(len=200, kind=c_char) :: line
  integer(c_int32_t) :: value
  integer(c_int64_t) :: from
  integer :: i
  integer(c_int), target :: ends(2), word
  type(bosk_pollfd) :: polled(1)

  interface
    function pipe(ends) bind(c) result(code)
      import :: c_int
      integer(c_int), intent(out) :: ends(2)
      integer(c_int) :: code
    end function pipe
  end interface

  call need(bosk_key_create(key, c_funloc(destroy)), 0, "key_create")
  call need(bosk_barrier_init(barriers(1), int(threads, c_int32_t)), 0, "barrier_init")
  call need(bosk_sem_init(sems(1), 0_c_int32_t), 0, "sem_init")
  call need(bosk_barrier_init(barriers(1), 0_c_int32_t), bosk_einval, "barrier of nobody")

  call need(bosk_bubble_create(bubble), 0, "bubble_create")
  call need(bosk_bubble_create(inner), 0, "bubble_create")
  call need(bosk_bubble_insert_bubble(bubble, inner), 0, "insert_bubble")
  call need(bosk_bubble_insert_bubble(inner, bubble), bosk_eloop, "a circle")
  call need(bosk_bubble_get_bubble(inner, at), 0, "get_bubble")
  if (.not. c_associated(at, bubble)) error stop "another bubble around"
  call need(bosk_bubble_set_relation(bubble, bosk_relation_gang), 0, "set_relation")
  call need(bosk_bubble_get_relation(bubble, relation), 0, "get_relation")
  call need(relation, bosk_relation_gang, "relation")
  call need(bosk_bubble_set_relation(bubble, bosk_relation_none), 0, "set_relation")
  call need(bosk_bubble_set_burst_level(bubble, "wurst"//c_null_char), bosk_enoent, "level wurst")
  call need(bosk_bubble_set_burst_level(bubble, "core"//c_null_char), 0, "level core")
  call need(bosk_bubble_set_burst_level(bubble), 0, "no level")
  call need(bosk_bubble_set_affinity(bubble, "wurst"//c_null_char), bosk_enoent, "affinity wurst")
  call need(bosk_bubble_set_affinity(bubble, "core"//c_null_char), 0, "affinity core")
  call need(bosk_bubble_set_affinity(bubble), 0, "no affinity")
  call need(bosk_bubble_barrier(bubble, serial), bosk_eperm, "barrier from outside")

  do i = 1, threads
    number(i) = i - 1
    call need(bosk_thread_attr_init_sized(attr, c_sizeof(attr)), 0, "attr_init")
    if (attr%load /= bosk_unknown .or. attr%priority /= 0 .or. attr%preemptible /= 1 .or. attr%light /= 0 .or. &
        attr%detached /= 0 .or. attr%asleep /= 0 .or. c_associated(attr%bubble)) error stop "attr is not as in C"
    attr%bubble = merge_ptr(mod(i, 2) == 0, bubble, inner)
    attr%load = 3
    call need(bosk_thread_create(thread(i), attr, c_funloc(works), c_loc(number(i))), 0, "thread_create")
  end do
  stats%size = c_sizeof(stats)
  call need(bosk_bubble_get_stats(bubble, stats), 0, "get_stats")
  call need(stats%threads, threads, "threads")
  call need(stats%not_started, threads, "not_started")
  call need(int(stats%load), 3 * threads, "load")
  call need(stats%last_worker, bosk_unknown, "last_worker")
  call need(bosk_thread_get_load(thread(1), value), 0, "get_load")
  call need(value, 3, "load")
  attr%demand = bosk_demand_memory + 1
  call need(bosk_thread_create(at, attr, c_funloc(works), c_null_ptr), bosk_einval, "a demand that there is not")
  call need(bosk_bubble_wake(bubble), 0, "wake")
  call need(bosk_bubble_wake(bubble), bosk_estate, "woken twice")
  do i = 1, threads
    call need(bosk_thread_join(thread(i), answer), 0, "join")
    at = c_loc(number(i))
    if (.not. c_associated(answer, at)) error stop "another answer"
  end do
  call need(bosk_thread_join(thread(1)), bosk_estale, "joined twice")
  call need(bosk_bubble_join(bubble), 0, "bubble_join")
  call need(bosk_bubble_destroy(inner), 0, "destroy")
  call need(bosk_bubble_destroy(bubble), 0, "destroy")
  call need(turn, threads, "turns")
  call need(counted, threads, "counted")
  call need(prepared, 1, "prepared")
  call need(destroyed, sum(number), "destroyed")
  call need(bosk_key_delete(key), 0, "key_delete")
  call need(bosk_key_delete(key), bosk_einval, "key_delete")
  call need(bosk_key_create(key, c_null_funptr), 0, "key_create")
  call need(bosk_key_set(key, c_loc(counted)), 0, "key_set")
  at = c_loc(counted)
  if (.not. c_associated(bosk_key_get(key), at)) error stop "another value"

  ! A thread that waits for a pipe does not hold a worker: there is none but main's where the test says so.
  call need(pipe(ends), 0, "pipe")
  call need(bosk_wait_fd(ends(1), bosk_pollin, bosk_after(1000_c_int64_t)), bosk_etimedout, "wait_fd")
  call need(bosk_wait_fd(ends(2), bosk_pollout, bosk_forever), bosk_pollout, "wait_fd")
  polled(1) = bosk_pollfd(ends(1), int(bosk_pollin, c_short), 0_c_short)
  call need(bosk_poll(polled, 1_c_size_t, bosk_after(1000_c_int64_t)), 0, "poll")
  call need(bosk_thread_create(thread(1), function=c_funloc(reads), argument=c_loc(ends)), 0, "thread_create")
  call need(bosk_thread_yield(), 0, "yield")
  word = 4711
  call need(int(bosk_write(ends(2), c_loc(word), c_sizeof(word))), int(c_sizeof(word)), "write")
  call need(bosk_thread_join(thread(1)), 0, "join")
  call need(bosk_accept(-1, c_null_ptr, flags=0), bosk_eio, "accept from nowhere")
  call need(bosk_connect(-1, c_null_ptr, 0, bosk_forever), bosk_eio, "connect nothing")

  call need(bosk_sem_wait_until(sems(1), bosk_forever), 0, "sem_wait")
  call need(bosk_sem_wait_until(sems(1), bosk_after(1000000_c_int64_t)), bosk_etimedout, "sem_wait")
  call need(bosk_sem_value(sems(1), value), 0, "sem_value")
  call need(value, 0, "value")
  call need(bosk_mutex_unlock(mutexes(1)), bosk_eperm, "unlock")
  call need(bosk_mutex_init(mutexes(1), bosk_mutex_recursive), 0, "init")
  call need(bosk_mutex_lock(mutexes(1)), 0, "lock")
  call need(bosk_mutex_trylock(mutexes(1)), 0, "lock")
  call need(bosk_rwlock_read_until(rwlocks(1), 0_c_int64_t), 0, "read")
  call need(bosk_rwlock_trywrite(rwlocks(1)), bosk_ebusy, "write")
  call untouched(mutexes(2)%bosk_private, "mutex")
  call untouched(conds(2)%bosk_private, "condition")
  call untouched(sems(2)%bosk_private, "semaphore")
  call untouched(rwlocks(2)%bosk_private, "lock")
  call untouched(barriers(2)%bosk_private, "barrier")
  call untouched(onces(2)%bosk_private, "once")

  from = bosk_now()
  call need(bosk_sleep_until(bosk_after(2000000_c_int64_t)), 0, "sleep")
  if (bosk_now() - from < 2000000_c_int64_t) error stop "slept too short"

  level = bosk_topo_level("PU"//c_null_char)
  call need(bosk_topo_domains(level), bosk_topo_pus(), "domains")
  call need(bosk_topo_neighbours(0, near, 2), min(2, bosk_topo_pus()), "neighbours")
  call need(near(1), 0, "nearest")
  call need(bosk_topo_distance(0, -1), bosk_einval, "distance")
  call need(bosk_topo_shares(0, 0, bosk_topo_pus() - 1), 1, "shares")
  if (bosk_here() < 0) error stop "nowhere"
  call need(bosk_tree_create(tree, "pu"//c_null_char), 0, "tree")
  call need(bosk_tree_leaves(tree), bosk_topo_pus(), "leaves")
  if (.not. c_associated(bosk_tree_root(tree))) error stop "no root"
  call need(bosk_tree_destroy(tree), 0, "tree_destroy")
  call need(bosk_tree_create(tree, "plank"//c_null_char), bosk_enoent, "no such tree")
  length = bosk_last_error(line, len(line, kind=c_size_t))
  if (index(line(1:length), 'bosk_tree_create: level "plank"') /= 1) error stop "another line"
  print '(a)', "ok"

contains

  pure function merge_ptr(condition, yes, no) result(chosen)
    logical, intent(in) :: condition
    type(c_ptr), intent(in) :: yes, no
    type(c_ptr) :: chosen
    chosen = no
    if (condition) chosen = yes
  end function merge_ptr

end program f_bosk
