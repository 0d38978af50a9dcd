! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! OpenACC in Fortran without an accelerator: constructs, and the routines of the module openacc in
! all their forms. f_acc MODE; the manifest says in which words the modes "no-…" end.
module f_acc_check
  implicit none
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a,a)', 'f_acc: ', what
    stop 1
  end subroutine
end module

program f_acc
  use f_acc_check
  use openacc
  use iso_c_binding, only: c_int64_t, c_size_t
  implicit none
  character(len=32) :: mode

  mode = 'all'
  if (command_argument_count() > 0) call get_command_argument(1, mode)
  select case (mode)
  case ('all')
    call constructs()
    call devices()
    call properties()
    call data_routines()
    call queues()
  case ('no-type')
    call acc_set_device_type(77)
  case ('no-nvidia')
    call acc_init(acc_device_nvidia)
  case ('no-size')
    call empty_array()
  case ('no-length')
    call empty_length()
  case ('no-queue')
    call acc_init(acc_device_host)
    call acc_wait(-9)
  case default
    call check(.false., 'unknown mode')
  end select
  print '(a)', 'ok'

contains

  subroutine constructs()
    integer, parameter :: n = 500
    real :: a(n), b(n), total
    integer :: i, offset
    a = [(real(i), i = 1, n)]
    b = 1
    offset = 2
    total = 0
    !$acc data copy(a) copyin(b)
    !$acc parallel loop firstprivate(offset) present(a, b) async(1)
    do i = 1, n
      a(i) = a(i) + b(i) * offset
    end do
    !$acc kernels loop reduction(+:total) wait(1)
    do i = 1, n
      total = total + a(i)
    end do
    !$acc update self(a(1:10)) device(b) if_present
    !$acc host_data use_device(a)
    a(1) = a(1) + 1
    !$acc end host_data
    !$acc end data
    call check(nint(total) == n * (n + 1) / 2 + 2 * n, 'the total is wrong')
    call check(nint(a(1)) == 4 .and. nint(a(n)) == n + 2, 'the array is wrong')
    !$acc enter data create(a) async
    !$acc serial if(offset > 5) present(a)
    a(2) = -1
    !$acc end serial
    !$acc exit data copyout(a) finalize
    !$acc wait
    call check(nint(a(2)) == -1, 'serial did not run')
  end subroutine

  subroutine devices()
    call acc_shutdown(acc_device_host)
    call acc_init(acc_device_default)
    call check(acc_get_num_devices(acc_device_host) == 1, 'no host')
    call check(acc_get_num_devices(acc_device_not_host) == 0, 'an accelerator')
    call check(acc_get_device_type() == acc_device_host, 'not on the host')
    call acc_set_device_type(acc_device_host)
    call acc_set_device_num(0, acc_device_host)
    call check(acc_get_device_num(acc_device_default) == 0, 'another number')
    call check(asked(acc_device_host) .and. asked(acc_device_none), 'not on the host')
    call check(.not. (asked(acc_device_nvidia) .or. asked(acc_device_default)), 'not the host only')
  end subroutine

  ! gfortran would answer for a constant.
  logical function asked(type)
    integer, intent(in) :: type
    integer, volatile :: hidden
    hidden = type
    asked = acc_on_device(hidden)
  end function

  subroutine properties()
    character(len=8) :: text
    integer(c_size_t) :: memory
    memory = acc_get_property(0, acc_device_host, acc_property_memory)
    call check(memory == 0, 'the memory is known')
    text = '********'
    call acc_get_property_string(0, acc_device_host, acc_property_vendor, text)
    call check(text == 'GNU     ', 'the vendor is ' // text)
    text = '********'
    call acc_get_property_string(0, acc_device_host, acc_property_name, text(2:3))
    call check(text == '*GO*****', 'the name is ' // text)
    call acc_get_property_string(0, acc_device_host, acc_property_driver, text(1:0))
    call check(text == '*GO*****', 'an empty text was written to')
    call acc_get_property_string(0, acc_device_host, acc_property_free_memory, text)
    call check(text == ' ', 'free memory has a name')
  end subroutine

  subroutine data_routines()
    integer :: a(10), scalar, i, square(4, 4)
    integer(c_int64_t) :: long
    character(len=5) :: word
    a = [(i, i = 1, 10)]
    scalar = 3
    square = 7
    word = 'hello'
    long = 40
    call acc_copyin(a)
    call acc_copyin(a, 40)
    call acc_copyin(a, long)
    call acc_pcopyin(scalar)
    call acc_present_or_copyin(a, 8)
    call acc_present_or_copyin(a, long)
    call acc_create(square(1:2, 2:3))
    call acc_create(a, 4)
    call acc_create(a, long)
    call acc_pcreate(word)
    call acc_present_or_create(a, 40)
    call acc_present_or_create(a, long)
    call check(acc_is_present(a) .and. acc_is_present(a, 40) .and. acc_is_present(a, long), 'gone')
    call check(acc_is_present(scalar) .and. acc_is_present(word), 'scalars are gone')
    call check(acc_is_present(square(2, :)), 'a row is gone')
    call check(.not. acc_is_present(a, 0), 'nothing is present')
    call check(.not. acc_is_present(a(5:4)), 'an empty section is present')
    a(4) = 44
    call acc_update_self(a)
    call acc_update_self(a, 40)
    call acc_update_self(a, long)
    call acc_update_device(a)
    call acc_update_device(a, 40)
    call acc_update_device(a, long)
    call acc_copyin_async(a, 1)
    call acc_copyin_async(a, 40, 1)
    call acc_copyin_async(a, long, 1)
    call acc_create_async(a, 1)
    call acc_create_async(a, 40, 1)
    call acc_create_async(a, long, 1)
    call acc_update_self_async(a, 1)
    call acc_update_self_async(a, 40, 1)
    call acc_update_self_async(a, long, 1)
    call acc_update_device_async(a, 1)
    call acc_update_device_async(a, 40, 1)
    call acc_update_device_async(a, long, 1)
    call acc_copyout_async(a, 1)
    call acc_copyout_async(a, 40, 1)
    call acc_copyout_async(a, long, 1)
    call acc_delete_async(a, 1)
    call acc_delete_async(a, 40, 1)
    call acc_delete_async(a, long, 1)
    call acc_copyout(a)
    call acc_copyout(a, 40)
    call acc_copyout(a, long)
    call acc_copyout_finalize(a)
    call acc_copyout_finalize(a, 40)
    call acc_copyout_finalize(a, long)
    call acc_delete(a)
    call acc_delete(a, 0)
    call acc_delete(a, long)
    call acc_delete_finalize(a(5:4))
    call acc_delete_finalize(a, 40)
    call acc_delete_finalize(a, long)
    call check(sum(a) == 55 - 4 + 44 .and. all(square == 7) .and. word == 'hello', 'data changed')
    call check(acc_is_present(a), 'it went away')
  end subroutine

  subroutine queues()
    integer :: queue
    do queue = -2, 3
      call check(acc_async_test(queue), 'a queue is not empty')
      call acc_wait(queue)
      call acc_async_wait(queue)
      call acc_wait_async(queue, 9)
      call acc_wait_all_async(queue)
    end do
    call check(acc_async_test_all(), 'not all queues are empty')
    call acc_wait_all()
    call acc_async_wait_all()
  end subroutine

  subroutine empty_array()
    real :: a(3)
    a = 1
    call acc_copyin(a(3:2))
  end subroutine

  subroutine empty_length()
    real :: a(3)
    a = 1
    call acc_create_async(a, 0, 1)
  end subroutine
end program
