! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Heat conduction in a bar, cut into stripes: the application of Thibault 2005, section 5.2. The program asks for
! the number of NUMA nodes and makes a bubble for each, instead of binding threads by hand: neighbours share edges, so
! they should be neighbours on the machine, whatever it is.
!
!   conduction [CELLS [STEPS [STRIPES]]]      default 4000, 200 and 8
!
! Build: gfortran -I$(pkg-config --variable=includedir bosk)/bosk/fortran conduction.f90 $(pkg-config --libs bosk)
module bar
  use bosk
  implicit none

  type :: stripe
    integer :: first, last
  end type stripe

  ! What all threads work on. Module variables have one address for all of them; each thread finds its own stripe by
  ! the address that it is given.
  real(c_double), allocatable, target :: now(:), next(:)
  type(stripe), allocatable, target :: stripes(:)
  type(bosk_barrier), target :: step_done
  integer :: steps

contains

  ! A thread runs a function with C's conventions. It must be recursive: its variables are its own.
  recursive function conduct(argument) bind(c) result(nothing)
    type(c_ptr), value :: argument
    type(c_ptr) :: nothing
    type(stripe), pointer :: mine
    integer :: step, code
    call c_f_pointer(argument, mine)
    do step = 1, steps
      if (mod(step, 2) == 1) then
        call one_step(now, next, mine)
      else
        call one_step(next, now, mine)
      end if
      ! Nobody begins the next step before all have ended this one. A thread that waits here does not hold its
      ! processor, so that there may be more stripes than processors.
      code = bosk_barrier_wait(step_done)
      if (code < 0) error stop "bosk_barrier_wait"
    end do
    nothing = c_null_ptr
  end function conduct

  pure subroutine one_step(from, to, mine)
    real(c_double), intent(in) :: from(0:)
    real(c_double), intent(inout) :: to(0:)
    type(stripe), intent(in) :: mine
    integer :: i
    do i = mine%first, mine%last
      to(i) = from(i) + 0.25_c_double * (from(i - 1) - 2 * from(i) + from(i + 1))
    end do
  end subroutine one_step

  ! Hot at one end, cold elsewhere.
  subroutine heat(cells)
    integer, intent(in) :: cells
    now(0:cells + 1) = 0
    next(0:cells + 1) = 0
    now(0) = 100
    next(0) = 100
  end subroutine heat

  ! Equal to the last bit.
  logical function same(a, b)
    real(c_double), intent(in) :: a(:), b(:)
    same = all(transfer(a, [0_c_int64_t]) == transfer(b, [0_c_int64_t]))
  end function same

  integer function argument_or(number, default)
    integer, intent(in) :: number, default
    character(len=20) :: text
    argument_or = default
    if (command_argument_count() < number) return
    call get_command_argument(number, text)
    read (text, *) argument_or
  end function argument_or

  subroutine check(code, what)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: what
    if (code >= 0) return
    print '(a, a, i0)', what, " returned ", code
    error stop 1
  end subroutine check

end module bar

program conduction
  use bosk
  use bar
  implicit none
  integer :: cells, count, i, leaf, leaves
  type(c_ptr) :: tree
  type(c_ptr), allocatable :: threads(:)
  type(bosk_thread_attr) :: attr
  real(c_double), allocatable :: expected(:)
  type(stripe) :: whole
  logical :: right

  cells = argument_or(1, 4000)
  steps = argument_or(2, 200)
  count = argument_or(3, 8)
  if (cells < 1 .or. steps < 0 .or. count < 1 .or. count > cells) error stop "conduction: no such bar"
  allocate (now(0:cells + 1), next(0:cells + 1), stripes(count), threads(count))

  ! First by one thread, for comparison.
  call heat(cells)
  whole = stripe(1, cells)
  do i = 1, steps
    if (mod(i, 2) == 1) then
      call one_step(now, next, whole)
    else
      call one_step(next, now, whole)
    end if
  end do
  if (mod(steps, 2) == 1) then
    expected = next
  else
    expected = now
  end if

  ! One bubble for each NUMA node of this machine, inside of one for the whole: four of four stripes on the machine of
  ! the paper, one of all on a desktop. Each bubble stays together; which node it is on is not our business.
  call heat(cells)
  call check(bosk_tree_create(tree, "node"//c_null_char), "bosk_tree_create")
  leaves = bosk_tree_leaves(tree)
  call check(bosk_barrier_init(step_done, int(count, c_int32_t)), "bosk_barrier_init")
  do i = 1, count
    stripes(i) = stripe(1 + int((i - 1_8) * cells / count), int(int(i, 8) * cells / count))
    ! Neighbouring stripes go to the same leaf.
    leaf = int((i - 1_8) * leaves / count)
    call check(bosk_thread_attr_init_sized(attr, c_sizeof(attr)), "bosk_thread_attr_init_sized")
    attr%bubble = bosk_tree_leaf(tree, leaf)
    attr%load = stripes(i)%last - stripes(i)%first + 1
    call check(bosk_thread_create(threads(i), attr, c_funloc(conduct), c_loc(stripes(i))), "bosk_thread_create")
  end do
  ! Until now nothing runs: bubbles are built first, then let go as a whole, so that the scheduler sees all of it.
  call check(bosk_tree_wake(tree), "bosk_tree_wake")
  do i = 1, count
    call check(bosk_thread_join(threads(i)), "bosk_thread_join")
  end do
  call check(bosk_tree_destroy(tree), "bosk_tree_destroy")
  call check(bosk_barrier_destroy(step_done), "bosk_barrier_destroy")

  ! Each cell was computed by the same operations in the same order: the results are the same to the last bit.
  if (mod(steps, 2) == 1) then
    right = same(next, expected)
  else
    right = same(now, expected)
  end if
  print '(i0, a, i0, a, i0, a, i0, a, a)', cells, " cells, ", steps, " steps, ", count, " stripes in ", leaves, &
    " bubbles: ", merge("as by one thread", "WRONG           ", right)
  if (.not. right) error stop 1
  deallocate (expected, threads)
end program conduction
