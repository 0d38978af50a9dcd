! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Target constructs in Fortran: arrays with descriptors, allocatables, pointers, derived types, optional
! arguments, tasks.
program f_target
  use omp_lib
  implicit none
  type point
    integer :: x
    real :: y(5)
  end type point
  integer :: round, good

  do round = 1, 5
    call arrays(17 + round)
    call derived
    call optional_argument(3)
    call optional_argument
    call tasks
  end do
  good = 0
  !$omp parallel num_threads(3) reduction(+:good)
  call arrays(10)
  call tasks
  good = good + 1
  !$omp end parallel
  call check(good == 3, 'members')
  print '(a)', 'ok'

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) then
      print '(2a)', 'f_target: ', what
      stop 1
    end if
  end subroutine check

  subroutine arrays(n)
    integer, intent(in) :: n
    integer :: automatic(n), fixed(8), i, total
    integer, allocatable :: allocated_one(:, :)
    integer, pointer :: pointed(:)
    integer, target :: aim(20)
    real(8) :: scalar
    automatic = [(i, i = 1, n)]
    fixed = 2
    aim = [(i, i = 1, 20)]
    pointed => aim(2:20:3)
    allocate (allocated_one(n, 3))
    allocated_one = 1
    scalar = 1.5d0
    total = 0
    !$omp target map(tofrom: automatic, allocated_one, total) map(to: fixed) map(tofrom: pointed)
    automatic = automatic + fixed(1)
    allocated_one(:, 2) = 5
    total = sum(allocated_one) + size(pointed)
    pointed = -pointed
    scalar = 0d0
    !$omp end target
    call check(all(automatic == [(i + 2, i = 1, n)]), 'automatic array')
    call check(total == 7 * n + 7, 'total')
    call check(all(aim(2:20:3) < 0) .and. aim(3) == 3, 'pointer to a section')
    call check(scalar == 1.5d0, 'a scalar came out')

    !$omp target firstprivate(fixed, automatic) map(from: total)
    total = sum(fixed) + automatic(n)
    fixed = 0
    automatic = 0
    !$omp end target
    call check(total == 16 + n + 2 .and. sum(fixed) == 16 .and. automatic(n) == n + 2, 'firstprivate arrays')

    total = 0
    !$omp target teams distribute parallel do reduction(+: total) map(to: automatic) &
    !$omp& num_teams(3) thread_limit(2)
    do i = 1, n
      total = total + automatic(i)
    end do
    !$omp end target teams distribute parallel do
    call check(total == n * (n + 1) / 2 + 2 * n, 'loop')

    !$omp target data map(tofrom: automatic)
    !$omp target update to(automatic)
    !$omp target
    automatic(1) = omp_get_level() * 100 + omp_get_num_threads() * 10
    if (omp_is_initial_device()) automatic(1) = automatic(1) + 1
    !$omp end target
    !$omp target update from(automatic)
    !$omp end target data
    call check(automatic(1) == 11, 'context')
    !$omp target enter data map(to: allocated_one)
    !$omp target exit data map(from: allocated_one)
    deallocate (allocated_one)
  end subroutine arrays

  subroutine derived
    type(point) :: a, b(4)
    character(len=9) :: text
    complex :: c
    logical :: flag
    integer :: i
    a%x = 4
    a%y = [(real(i), i = 1, 5)]
    b = a
    text = 'abcdefghi'
    c = (1.0, 2.0)
    flag = .true.
    !$omp target map(tofrom: a, b(2:3)) map(from: text) firstprivate(c, flag)
    if (flag) a%x = a%x + 1
    b(2)%y(3) = real(c) + aimag(c) + 10
    text = 'region'
    c = 0
    !$omp end target
    call check(a%x == 5 .and. b(2)%y(3) == 13 .and. b(3)%y(3) == 3, 'derived types')
    call check(text == 'region' .and. c == (1.0, 2.0), 'text or complex')
  end subroutine derived

  subroutine optional_argument(given)
    integer, optional, intent(in) :: given
    integer :: found
    found = -1
    !$omp target map(from: found) map(to: given)
    found = 0
    if (present(given)) found = given
    !$omp end target
    call check(found == merge(3, 0, present(given)), 'optional argument')
  end subroutine optional_argument

  subroutine tasks
    integer :: value, i, values(10)
    value = 0
    do i = 1, 10
      values = i
      !$omp target map(tofrom: value) firstprivate(i, values) depend(inout: value) nowait
      if (all(values == i)) value = value + i
      !$omp end target
      values = 0
      !$omp target update to(value) depend(inout: value) nowait
    end do
    !$omp target exit data map(from: value) depend(inout: value)
    call check(value == 55, 'chain of target tasks')
    !$omp taskgroup
    do i = 1, 10
      !$omp target map(tofrom: value) nowait
      !$omp atomic
      value = value + 1
      !$omp end target
    end do
    !$omp end taskgroup
    call check(value == 65, 'target tasks in a taskgroup')
  end subroutine tasks
end program f_target
