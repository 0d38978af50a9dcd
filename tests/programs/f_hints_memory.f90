! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! bosk_attach and friends from Fortran: what is attached before a region and inside it is found there.
program f_hints_memory
  use, intrinsic :: iso_c_binding
  use omp_lib
  use bosk
  implicit none
  integer, parameter :: members = 4, each = 500
  real(c_double), target :: rows(each, 0:members - 1)
  integer(c_size_t), parameter :: bytes = each * 8_c_size_t
  integer(c_int64_t) :: seen(1)
  integer :: me, round, wrong

  wrong = 0
  if (bosk_attach(bosk_me, c_loc(rows), bytes, bosk_reads, 0) /= bosk_estate) wrong = 1
  if (bosk_attach(bosk_next_team, c_loc(rows(1, 0)), bytes, bosk_reads, 3) /= bosk_ok) wrong = 2
  if (bosk_attach(3, c_loc(rows(1, 3)), bytes, bosk_writes, 0) /= bosk_ok) wrong = 3
  do round = 1, 2
    !$omp parallel num_threads(members) private(me, seen) reduction(max: wrong)
    me = omp_get_thread_num()
    if (bosk_footprint(bosk_my_team, seen, 1) /= 1 .or. seen(1) /= bytes) wrong = 4
    if (bosk_footprint(bosk_me, seen, 1) /= 1) wrong = 5
    if (seen(1) /= merge(bytes, 0_c_size_t, me == 3 .or. round == 2)) wrong = 6
    if (bosk_attach(bosk_me, c_loc(rows(1, me)), bytes, bosk_reads_and_writes, 0) /= bosk_ok) wrong = 7
    rows(:, me) = me
    if (bosk_redecide(bosk_when_all) /= 0 .or. bosk_redecide(2) /= bosk_einval) wrong = 12
    !$omp end parallel
  end do
  if (bosk_detach(3, c_loc(rows(1, 3))) /= bosk_ok) wrong = 8
  if (bosk_detach_all(2) /= bosk_ok) wrong = 9
  if (bosk_footprint(2, seen, 1) /= 1 .or. seen(1) /= 0) wrong = 10
  if (bosk_next_touch(2) /= 0) wrong = 11
  if (bosk_redecide(bosk_at_once) /= bosk_estate) wrong = 13
  if (bosk_set_relation(bosk_next_team, bosk_relation_collective) /= bosk_ok) wrong = 14
  if (bosk_set_relation(bosk_next_team, bosk_relation_sequence) /= bosk_enotsup) wrong = 15
  if (bosk_running() /= 1) wrong = 16
  if (wrong /= 0) then
    print *, 'wrong: ', wrong
    stop 1
  end if
  print '(a)', 'ok'
end program f_hints_memory
