! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! call bosk_set_load(n): on one worker without ticks, members start heaviest first.
program f_hints
  use omp_lib
  implicit none
  external :: bosk_set_load, bosk_set_load_8
  integer :: started(0:4), next, at, round
  integer, parameter :: expected(0:4) = [0, 3, 1, 4, 2]

  do round = 1, 2
    next = 0
    !$omp parallel num_threads(5) private(at)
    !$omp atomic capture
    at = next
    next = next + 1
    !$omp end atomic
    started(at) = omp_get_thread_num()
    if (mod(omp_get_thread_num(), 2) == 0) then
      call bosk_set_load(1 + omp_get_thread_num() / 4)
    else
      call bosk_set_load_8(5_8 + omp_get_thread_num())
    end if
    !$omp end parallel
  end do
  if (any(started /= expected)) then
    print *, 'order: ', started
    stop 1
  end if
  print '(a)', 'ok'
end program f_hints
