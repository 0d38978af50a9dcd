! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Fortran: big automatic and private arrays in members, nested members and tasks (OMP_STACKSIZE=64M).
program f_stack
  use omp_lib
  implicit none
  integer :: round, wrong
  call omp_set_dynamic(.false.)
  call omp_set_max_active_levels(2)
  do round = 1, 3
    wrong = 0
    !$omp parallel num_threads(4) reduction(+: wrong)
    if (omp_get_thread_num() > 0) wrong = wrong + use_stack(4000000, omp_get_thread_num())
    !$omp end parallel
    call expect('level 1', wrong)
    !$omp parallel num_threads(3) reduction(+: wrong)
    if (omp_get_thread_num() > 0) wrong = wrong + nested()
    !$omp end parallel
    call expect('nested', wrong)
    call private_array()
  end do
  print '(a)', 'ok'
contains

  subroutine expect(what, found)
    character(*), intent(in) :: what
    integer, intent(in) :: found
    if (found == 0) return
    print '(3a,i0,a)', 'f_stack: ', what, ': ', found, ' wrong values'
    call exit(1)
  end subroutine

  integer function nested()
    nested = 0
    !$omp parallel num_threads(3) reduction(+: nested)
    nested = nested + use_stack(4000000, 10 * omp_get_thread_num())
    !$omp end parallel
  end function

  ! An automatic array of n real(8), 32 MB for 4,000,000, on the stack of its thread.
  integer function use_stack(n, me)
    integer, intent(in) :: n, me
    real(8) :: work(n)
    integer :: i
    do i = 1, n, 512
      work(i) = i + me
    end do
    call pause_a_little()
    use_stack = 0
    do i = 1, n, 512
      if (nint(work(i)) /= i + me) use_stack = use_stack + 1
    end do
  end function

  subroutine pause_a_little()
    integer, save :: turns = 0
    !$omp critical (f_stack_turns)
    turns = turns + 1
    !$omp end critical (f_stack_turns)
    !$omp taskyield
  end subroutine

  ! A private copy of a big array: the compiler puts it on the stack of each member.
  subroutine private_array()
    real(8) :: work(200000)
    integer :: i, bad
    bad = 0
    work = -1
    !$omp parallel num_threads(6) private(work, i) reduction(+: bad)
    work = omp_get_thread_num()
    !$omp barrier
    do i = 1, size(work), 100
      if (nint(work(i)) /= omp_get_thread_num()) bad = bad + 1
    end do
    !$omp end parallel
    call expect('private array', bad)
  end subroutine
end program
