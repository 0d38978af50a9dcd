! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Fortran with 8-byte default integers (-fdefault-integer-8): the routines take the _8_ entries.
program f_int8
  use omp_lib
  implicit none
  integer :: i, total, chunk
  integer(omp_sched_kind) :: kind
  call omp_set_num_threads(6)
  call omp_set_dynamic(.false.)
  call omp_set_max_active_levels(2)
  call omp_set_schedule(omp_sched_dynamic, 4)
  call omp_get_schedule(kind, chunk)
  if (chunk /= 4) call fail('chunk', chunk)
  total = 0
  !$omp parallel reduction(+: total)
  if (omp_get_num_threads() /= 6) call fail('team', int(omp_get_num_threads(), 8))
  !$omp do schedule(runtime)
  do i = 1, 1000
    total = total + i
  end do
  !$omp end do
  !$omp parallel num_threads(2) reduction(+: total)
  if (omp_get_team_size(1) /= 6) call fail('outer team', int(omp_get_team_size(1), 8))
  if (omp_get_ancestor_thread_num(1) < 0) call fail('ancestor', int(omp_get_ancestor_thread_num(1), 8))
  total = total + 1
  !$omp end parallel
  !$omp end parallel
  if (total /= 500500 + 12) call fail('sum', total)
  print '(a)', 'ok'
contains
  subroutine fail(what, found)
    character(*), intent(in) :: what
    integer, intent(in) :: found
    print '(3a,i0)', 'f_int8: wrong ', what, ': ', found
    call exit(1)
  end subroutine
end program
