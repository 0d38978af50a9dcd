! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The Fortran names of the omp_* routines, with arguments of 4 and of 8 bytes.
program api_fortran
  use omp_lib
  use, intrinsic :: iso_fortran_env, only: int64, int32
  implicit none
  integer(omp_sched_kind) :: kind
  integer(int32) :: chunk4, ids4(8)
  integer(int64) :: chunk8, ids8(8), large
  integer :: members, length
  character(len=40) :: text
  character(len=5) :: short
  character(len=500) :: long
  integer(omp_allocator_handle_kind) :: allocator
  type(omp_alloctrait) :: traits(1)

  call check(omp_get_thread_num() == 0, 'thread number')
  call check(omp_get_num_threads() == 1, 'team of one')
  call check(.not. omp_in_parallel(), 'in parallel')
  call check(omp_get_num_procs() >= 1, 'processors')
  call check(omp_get_wtime() > 0.0d0 .and. omp_get_wtick() > 0.0d0, 'clock')
  call check(omp_get_level() == 0 .and. omp_get_active_level() == 0, 'level')
  call check(omp_is_initial_device() .and. omp_get_num_devices() == 0, 'devices')
  call check(omp_get_supported_active_levels() == 255, 'levels')

  call omp_set_num_threads(3)
  call check(omp_get_max_threads() == 3, 'num_threads 4')
  call omp_set_num_threads(4_int64)
  call check(omp_get_max_threads() == 4, 'num_threads 8')
  large = 2_int64**40 + 1
  call omp_set_num_threads(large)
  call check(omp_get_max_threads() == huge(0_int32), 'a large number is the largest')
  call omp_set_num_threads(2)

  call omp_set_dynamic(.true.)
  call check(omp_get_dynamic(), 'dynamic')
  call omp_set_dynamic(.false._8)
  call check(.not. omp_get_dynamic(), 'dynamic off')
  call omp_set_max_active_levels(3_int64)
  call check(omp_get_max_active_levels() == 3, 'active levels')
  call omp_set_nested(.true.)
  call check(omp_get_nested(), 'nested')

  call omp_set_schedule(omp_sched_guided, 12_int64)
  call omp_get_schedule(kind, chunk4)
  call check(kind == omp_sched_guided .and. chunk4 == 12, 'schedule 4')
  call omp_set_schedule(omp_sched_dynamic, 7)
  call omp_get_schedule(kind, chunk8)
  call check(kind == omp_sched_dynamic .and. chunk8 == 7_int64, 'schedule 8')
  call omp_set_schedule(ior(int(omp_sched_static), ishft(1, 31)), 5)
  call omp_get_schedule(kind, chunk4)
  call check(kind == omp_sched_static .and. chunk4 == 5, 'the monotonic bit is not shown')

  members = 0
  !$omp parallel num_threads(3) reduction(+:members) private(length, text)
  members = members + 1
  call check(omp_in_parallel(), 'in parallel')
  call check(omp_get_team_size(1) == 3 .and. omp_get_team_size(1_int64) == 3, 'team size')
  call check(omp_get_ancestor_thread_num(1) == omp_get_thread_num(), 'ancestor 4')
  call check(omp_get_ancestor_thread_num(1_int64) == omp_get_thread_num(), 'ancestor 8')
  call check(omp_get_ancestor_thread_num(2_int64**32 + 1) == -1, 'a level beyond 32 bits')
  length = omp_capture_affinity(text, '%n of %N')
  call check(length == 6, 'length of the capture')
  call check(text(2:) == ' of 3', 'the capture is filled up with blanks')
  !$omp end parallel
  call check(members == 3, 'members')

  call omp_set_affinity_format('level %L of %P')
  length = omp_get_affinity_format(text)
  call check(length == 14 .and. text == 'level %L of %P', 'affinity format')
  length = omp_get_affinity_format(short)
  call check(length == 14 .and. short == 'level', 'a short variable')
  length = omp_capture_affinity(short, 'abcdefgh')
  call check(length == 8 .and. short == 'abcde', 'a short capture')
  long = repeat('x', 400)
  length = omp_capture_affinity(long, long(1:400)//'%n')
  call check(length == 401 .and. long(400:402) == 'x0 ', 'a long format')

  call check(omp_get_num_places() == 2, 'places')
  call check(omp_get_place_num_procs(0) == 1 .and. omp_get_place_num_procs(1_int64) == 1, 'CPUs')
  ids4 = -7
  ids8 = -7
  call omp_get_place_proc_ids(1, ids4)
  call omp_get_place_proc_ids(1_int64, ids8)
  call check(ids4(1) == 1 .and. ids4(2) == -7, 'CPU numbers 4')
  call check(ids8(1) == 1_int64 .and. ids8(2) == -7_int64, 'CPU numbers 8')
  ids4 = -7
  ids8 = -7
  call omp_get_partition_place_nums(ids4)
  call omp_get_partition_place_nums(ids8)
  call check(all(ids4(1:3) == [0, 1, -7]), 'partition 4')
  call check(all(ids8(1:3) == [0_int64, 1_int64, -7_int64]), 'partition 8')
  call check(omp_get_place_num() == 0 .and. omp_get_partition_num_places() == 2, 'place')
  call check(omp_get_proc_bind() == omp_proc_bind_close, 'binding')

  traits(1) = omp_alloctrait(omp_atk_alignment, 128)
  allocator = omp_init_allocator(omp_default_mem_space, 1, traits)
  call check(allocator /= omp_null_allocator, 'allocator 4')
  call omp_set_default_allocator(allocator)
  call check(omp_get_default_allocator() == allocator, 'default allocator')
  call omp_set_default_allocator(omp_null_allocator)
  call check(omp_get_default_allocator() == omp_default_mem_alloc, 'default allocator')
  call omp_destroy_allocator(allocator)
  allocator = omp_init_allocator(omp_default_mem_space, 1_int64, traits)
  call check(allocator /= omp_null_allocator, 'allocator 8')
  call omp_destroy_allocator(allocator)

  call omp_set_default_device(3_int64)
  call check(omp_get_default_device() == 3, 'default device')
  call omp_set_num_teams(3_int64)
  call check(omp_get_max_teams() == 3, 'teams')
  call omp_set_teams_thread_limit(4)
  call check(omp_get_teams_thread_limit() == 4, 'limit of teams')
  call check(omp_get_team_num() == 0 .and. omp_get_num_teams() == 1, 'league')
  call check(omp_get_thread_limit() > 0 .and. .not. omp_get_cancellation(), 'limits')
  call check(omp_pause_resource(omp_pause_soft, omp_get_initial_device()) == 0, 'pause')
  call check(omp_pause_resource_all(omp_pause_hard) == 0, 'pause all')
  print '(a)', 'ok'

contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (.not. good) then
      print '(2a)', 'api_fortran: wrong: ', what
      call exit(1)
    end if
  end subroutine check
end program api_fortran
