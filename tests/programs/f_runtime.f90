! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Fortran: threadprivate common blocks and module data, the omp_lib routines, locks and nested locks, tasks.
module check
  implicit none
  integer :: failures = 0
  integer :: own = 100
  real(8), allocatable :: table(:)
  !$omp threadprivate(own, table)
contains
  subroutine expect(condition, what, found)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    integer, intent(in) :: found
    if (.not. condition) then
      !$omp critical (check_output)
      if (failures == 0) print '(3a,i0)', 'f_runtime: ', what, ', found ', found
      failures = failures + 1
      !$omp end critical (check_output)
    end if
  end subroutine

  recursive function fib(n) result(value)
    integer, intent(in) :: n
    integer :: value, a, b
    if (n < 2) then
      value = n
      return
    end if
    !$omp task shared(a)
    a = fib(n - 1)
    !$omp end task
    !$omp task shared(b)
    b = fib(n - 2)
    !$omp end task
    !$omp taskwait
    value = a + b
  end function
end module

program f_runtime
  use omp_lib
  use check
  implicit none
  integer :: sizes(4), s, round
  call omp_set_dynamic(.false.)
  call omp_set_max_active_levels(3)
  sizes = [omp_get_max_threads(), 1, 2, 8]
  do s = 1, 4
    call private_common(sizes(s))
    call private_module(sizes(s))
    do round = 1, 5
      call locks(sizes(s))
      call tasks(sizes(s))
    end do
  end do
  call routines()
  if (failures > 0) call exit(1)
  print '(a)', 'ok'
contains

  subroutine private_common(threads)
    integer, intent(in) :: threads
    integer :: counter, pad(21), round
    real(8) :: values(8)
    common /shared_block/ counter, pad, values
    !$omp threadprivate(/shared_block/)
    counter = -1
    values = 2.5d0
    !$omp parallel num_threads(threads) copyin(/shared_block/)
    call expect(counter == -1 .and. all(values == 2.5d0), 'copyin of a common block', counter)
    counter = omp_get_thread_num() * 10
    values = omp_get_thread_num()
    !$omp end parallel
    do round = 1, 30
      !$omp parallel num_threads(threads)
      call expect(counter == omp_get_thread_num() * 10 + round - 1, 'common block from region to region', counter)
      call expect(all(nint(values) == omp_get_thread_num()), 'array in a common block', nint(values(1)))
      counter = counter + 1
      !$omp end parallel
    end do
  end subroutine

  subroutine private_module(threads)
    integer, intent(in) :: threads
    integer :: round
    !$omp parallel num_threads(threads)
    own = 1000 + omp_get_thread_num()
    if (allocated(table)) deallocate (table)
    allocate (table(10 + omp_get_thread_num()))
    table = omp_get_thread_num()
    !$omp end parallel
    do round = 1, 20
      !$omp parallel num_threads(threads)
      call expect(own == 1000 + omp_get_thread_num(), 'threadprivate module variable', own)
      call expect(size(table) == 10 + omp_get_thread_num(), 'threadprivate allocatable', size(table))
      !$omp barrier
      call expect(all(nint(table) == omp_get_thread_num()), 'contents of a threadprivate allocatable', nint(table(1)))
      !$omp end parallel
    end do
    !$omp parallel num_threads(threads)
    deallocate (table)
    !$omp end parallel
    ! Nested members have copies of their own.
    !$omp parallel num_threads(2)
    !$omp parallel num_threads(3)
    own = omp_get_ancestor_thread_num(1) * 10 + omp_get_thread_num()
    !$omp barrier
    call expect(own == omp_get_ancestor_thread_num(1) * 10 + omp_get_thread_num(), 'nested threadprivate', own)
    !$omp end parallel
    !$omp end parallel
  end subroutine

  subroutine locks(threads)
    integer, intent(in) :: threads
    integer(omp_lock_kind) :: lock
    integer(omp_nest_lock_kind) :: nest
    integer :: count, deep, i, depth
    call omp_init_lock(lock)
    call omp_init_nest_lock(nest)
    count = 0
    deep = 0
    !$omp parallel num_threads(threads) private(i, depth)
    do i = 1, 100
      if (mod(i, 2) == 0) then
        call omp_set_lock(lock)
      else
        do while (.not. omp_test_lock(lock))
        end do
      end if
      count = count + 1
      call omp_unset_lock(lock)
      call omp_set_nest_lock(nest)
      call omp_set_nest_lock(nest)
      depth = omp_test_nest_lock(nest)
      call expect(depth == 3, 'omp_test_nest_lock', depth)
      deep = deep + 1
      call omp_unset_nest_lock(nest)
      call omp_unset_nest_lock(nest)
      call omp_unset_nest_lock(nest)
    end do
    !$omp end parallel
    call expect(count == 100 * threads, 'lock', count)
    call expect(deep == 100 * threads, 'nested lock', deep)
    call omp_destroy_lock(lock)
    call omp_destroy_nest_lock(nest)
  end subroutine

  subroutine tasks(threads)
    integer, intent(in) :: threads
    integer :: value, i, total, chain, group
    character(20) :: text
    total = 0
    chain = 0
    group = 0
    !$omp parallel num_threads(threads)
    !$omp single
    value = fib(14)
    do i = 1, 50
      write (text, '(a,i0)') 'task ', i
      !$omp task firstprivate(text, i)
      call expect(index(text, 'task ') == 1, 'firstprivate string', i)
      !$omp atomic
      total = total + i
      !$omp end task
    end do
    do i = 1, 50
      !$omp task depend(inout: chain) firstprivate(i)
      call expect(chain == i - 1, 'depend', chain)
      chain = i
      !$omp end task
    end do
    !$omp taskwait
    !$omp taskgroup
    !$omp taskloop grainsize(3)
    do i = 1, 40
      !$omp atomic
      group = group + i
    end do
    !$omp end taskloop
    !$omp end taskgroup
    call expect(group == 820, 'taskloop', group)
    !$omp end single
    !$omp end parallel
    call expect(value == 377, 'fib(14)', value)
    call expect(total == 1275, 'tasks', total)
    call expect(chain == 50, 'chain of tasks', chain)
  end subroutine

  subroutine routines()
    integer(omp_sched_kind) :: kind
    integer :: chunk
    integer(8) :: big
    real(8) :: before
    character(40) :: format
    call omp_set_num_threads(3)
    call expect(omp_get_max_threads() == 3, 'omp_get_max_threads', omp_get_max_threads())
    big = 5
    call omp_set_num_threads(int(big))
    !$omp parallel
    call expect(omp_get_num_threads() == 5, 'omp_set_num_threads', omp_get_num_threads())
    call expect(omp_in_parallel(), 'omp_in_parallel', 0)
    !$omp end parallel
    call omp_set_schedule(omp_sched_guided, 6)
    call omp_get_schedule(kind, chunk)
    call expect(kind == omp_sched_guided .and. chunk == 6, 'omp_get_schedule', chunk)
    call expect(omp_get_thread_limit() > 0 .and. omp_get_num_procs() > 0, 'limits', omp_get_num_procs())
    call expect(omp_get_level() == 0 .and. omp_get_ancestor_thread_num(0) == 0, 'level', omp_get_level())
    call expect(omp_get_max_active_levels() == 3, 'levels', omp_get_max_active_levels())
    before = omp_get_wtime()
    call expect(omp_get_wtime() >= before .and. omp_get_wtick() > 0, 'omp_get_wtime', 0)
    call expect(.not. omp_get_dynamic() .and. .not. omp_in_final(), 'flags', 0)
    call omp_set_dynamic(.true.)
    call expect(omp_get_dynamic(), 'omp_set_dynamic', 0)
    call omp_set_dynamic(.false.)
    call omp_set_affinity_format('thread %n of %N')
    chunk = omp_get_affinity_format(format)
    call expect(trim(format) == 'thread %n of %N', 'affinity format', chunk)
    chunk = omp_capture_affinity(format, '%n/%N')
    call expect(trim(format) == '0/1' .and. chunk == 3, 'omp_capture_affinity', chunk)
  end subroutine
end program
