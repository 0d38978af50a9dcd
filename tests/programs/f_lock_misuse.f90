! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Nestable locks of Fortran, which hold a pointer, after their destruction: the routine that needs the lock says
! so and ends the program; those that can do without go on. Mode: set, unset, test, or none.
program f_lock_misuse
  use omp_lib
  implicit none
  integer(omp_nest_lock_kind) :: lock
  character(8) :: mode
  call get_command_argument(1, mode)
  call omp_init_nest_lock(lock)
  call omp_unset_nest_lock(lock)            ! nobody holds it
  call omp_set_nest_lock(lock)
  if (omp_test_nest_lock(lock) /= 2) stop 2
  call omp_destroy_nest_lock(lock)          ! held
  call omp_destroy_nest_lock(lock)          ! twice
  select case (mode)
  case ('set');   call omp_set_nest_lock(lock)
  case ('unset'); call omp_unset_nest_lock(lock)
  case ('test');  if (omp_test_nest_lock(lock) >= 0) stop 3
  case default
    call omp_init_nest_lock(lock)
    if (omp_test_nest_lock(lock) /= 1) stop 4
    call omp_unset_nest_lock(lock)
    call omp_destroy_nest_lock(lock)
    print '(a)', 'ok'
    stop
  end select
  stop 5
end program
