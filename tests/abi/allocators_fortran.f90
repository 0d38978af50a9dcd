! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! OpenMP's allocators from Fortran: allocators_fortran [pinned]
program allocators_fortran
  use omp_lib
  use, intrinsic :: iso_c_binding
  implicit none
  character(16) :: mode
  type(omp_alloctrait) :: traits(4)
  integer(omp_allocator_handle_kind) :: a, b

  mode = ''
  if (command_argument_count() == 1) call get_command_argument(1, mode)
  traits(1) = omp_alloctrait(omp_atk_partition, omp_atv_interleaved)
  traits(2) = omp_alloctrait(omp_atk_alignment, 256)
  traits(3) = omp_alloctrait(omp_atk_pool_size, 100000)
  traits(4) = omp_alloctrait(omp_atk_fallback, omp_atv_null_fb)
  a = omp_init_allocator(omp_default_mem_space, 4, traits)
  call check(a /= omp_null_allocator, 'four traits')
  call use_it(a, 256)
  traits(1) = omp_alloctrait(omp_atk_partition, omp_atv_nearest)
  b = omp_init_allocator(omp_large_cap_mem_space, 4, traits)
  call check(b /= omp_null_allocator, 'large capacity')
  call use_it(b, 256)
  call use_it(omp_high_bw_mem_alloc, 16)
  call use_it(omp_large_cap_mem_alloc, 16)

  call omp_set_default_allocator(b)
  call members(b)
  call check(omp_get_default_allocator() == b, 'after the region')
  call omp_set_default_allocator(omp_default_mem_alloc)
  call omp_destroy_allocator(b)
  call omp_destroy_allocator(a)

  if (mode == 'pinned') then
    traits(1) = omp_alloctrait(omp_atk_pinned, omp_atv_true)
    traits(3) = omp_alloctrait(omp_atk_fallback, omp_atv_default_mem_fb)
    a = omp_init_allocator(omp_high_bw_mem_space, 3, traits)
    call check(a /= omp_null_allocator, 'pinned, of high bandwidth')
    call use_it(a, 256)
    call omp_destroy_allocator(a)
  end if
  print '(a)', 'ok'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print '(2a)', 'wrong: ', what
    stop 1
  end subroutine

  subroutine use_it(allocator, alignment)
    integer(omp_allocator_handle_kind), intent(in) :: allocator
    integer, intent(in) :: alignment
    type(c_ptr) :: block
    integer(c_intptr_t) :: address
    real(c_double), pointer :: x(:)
    integer :: i
    integer(c_size_t) :: n
    n = 10
    do while (n <= 5000)
      block = omp_alloc(n * 8_c_size_t, allocator)
      call check(c_associated(block), 'omp_alloc')
      address = transfer(block, address)
      call check(mod(address, int(alignment, c_intptr_t)) == 0, 'alignment')
      call c_f_pointer(block, x, [n])
      x = [(real(i, c_double), i = 1, int(n))]
      block = omp_realloc(block, 2 * n * 8_c_size_t, allocator, allocator)
      call check(c_associated(block), 'omp_realloc')
      call c_f_pointer(block, x, [n])
      call check(all(x == [(real(i, c_double), i = 1, int(n))]), 'content after omp_realloc')
      call omp_free(block, allocator)
      block = omp_calloc(n, 8_c_size_t, allocator)
      call check(c_associated(block), 'omp_calloc')
      call c_f_pointer(block, x, [n])
      call check(all(x == 0), 'omp_calloc is zero')
      call omp_free(block, omp_null_allocator)
      n = n * 3
    end do
  end subroutine

  subroutine members(inherited)
    integer(omp_allocator_handle_kind), intent(in) :: inherited
    integer(omp_allocator_handle_kind) :: mine
    integer :: wrong
    wrong = 0
    !$omp parallel num_threads(4) private(mine) reduction(+: wrong)
    if (omp_get_default_allocator() /= inherited) wrong = wrong + 1
    !$omp barrier
    mine = 2 + omp_get_thread_num()
    call omp_set_default_allocator(mine)
    !$omp barrier
    if (omp_get_default_allocator() /= mine) wrong = wrong + 1
    !$omp end parallel
    call check(wrong == 0, 'the default allocator of members')
  end subroutine
end program
