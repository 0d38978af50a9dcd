! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Interop and unique identifiers as GCC 15's omp_lib declares them: functions that return pointers to
! texts, arguments by value. A library for target_newer.c, as programs cannot be linked to what Debian's
! libgomp does not have.
module newer
  use iso_c_binding
  implicit none
  interface
    function omp_get_num_interop_properties(interop) bind(c)
      import
      integer(c_int) :: omp_get_num_interop_properties
      integer(c_intptr_t), value :: interop
    end function
    function omp_get_interop_int(interop, property, code) bind(c)
      import
      integer(c_intptr_t) :: omp_get_interop_int
      integer(c_intptr_t), value :: interop
      integer(c_int), value :: property
      integer(c_int), optional, intent(out) :: code
    end function
    function omp_get_interop_str(interop, property, code)
      import
      character(:), pointer :: omp_get_interop_str
      integer(c_intptr_t), value :: interop
      integer(c_int), value :: property
      integer(c_int), optional, intent(out) :: code
    end function
    function omp_get_interop_name(interop, property)
      import
      character(:), pointer :: omp_get_interop_name
      integer(c_intptr_t), value :: interop
      integer(c_int), value :: property
    end function
    function omp_get_interop_type_desc(interop, property)
      import
      character(:), pointer :: omp_get_interop_type_desc
      integer(c_intptr_t), value :: interop
      integer(c_int), value :: property
    end function
    function omp_get_interop_rc_desc(interop, code)
      import
      character(:), pointer :: omp_get_interop_rc_desc
      integer(c_intptr_t), value :: interop
      integer(c_int), value :: code
    end function
    integer(c_int) function omp_get_device_from_uid(uid)
      import
      character(*), intent(in) :: uid
    end function
  end interface
  interface omp_get_uid_from_device
    function omp_get_uid_from_device(device)
      import
      character(:), pointer :: omp_get_uid_from_device
      integer(c_int32_t), value :: device
    end function
    function omp_get_uid_from_device_8(device)
      import
      character(:), pointer :: omp_get_uid_from_device_8
      integer(c_int64_t), value :: device
    end function
  end interface
end module newer

subroutine plugin_run() bind(c)
  use newer
  implicit none
  integer(c_intptr_t), parameter :: none = 0
  character(14), parameter :: names(9) = [character(14) :: 'fr_id', 'fr_name', 'vendor', 'vendor_name', &
    'device_num', 'platform', 'device', 'device_context', 'targetsync']
  character(:), pointer :: text
  integer(c_int) :: property, code
  integer(c_int64_t) :: wide
  character(30) :: padded

  call check(omp_get_num_interop_properties(none) == 0, 'number of properties')
  do property = -9, -1
    code = 7
    call check(omp_get_interop_int(none, property, code) == 0 .and. code == -1, 'integer')
    code = 7
    text => omp_get_interop_str(none, property, code)
    call check(.not. associated(text) .and. code == -1, 'string')
    text => omp_get_interop_str(none, property)
    call check(.not. associated(text), 'string, without a code')
    text => omp_get_interop_name(none, property)
    call check(associated(text), 'name')
    call check(len(text) == len_trim(names(-property)) .and. text == names(-property), 'name: '//text)
    call check(.not. associated(omp_get_interop_type_desc(none, property)), 'type')
  end do
  code = 7
  text => omp_get_interop_str(none, -10, code)
  call check(.not. associated(text) .and. code == -2, 'out of range')
  call check(.not. associated(omp_get_interop_name(none, 0)), 'name out of range')
  do code = -7, 2
    text => omp_get_interop_rc_desc(none, code)
    call check(associated(text) .eqv. (code >= -5 .and. code <= 1), 'description')
    if (associated(text)) call check(len(text) > 5, text)
  end do

  text => omp_get_uid_from_device(0)
  call check(text == 'OMP_INITIAL_DEVICE' .and. len(text) == 18, 'uid')
  call check(omp_get_device_from_uid(text) == 0, 'device of uid')
  padded = text
  call check(omp_get_device_from_uid(padded) == 0, 'device of a padded uid')
  call check(omp_get_device_from_uid(text(1:17)) == -4, 'device of part of a uid')
  call check(omp_get_device_from_uid('') == -4, 'device of nothing')
  call check(.not. associated(omp_get_uid_from_device(1)), 'uid of a device that is not there')
  wide = -1
  text => omp_get_uid_from_device(wide)
  call check(text == 'OMP_INITIAL_DEVICE', 'uid of an 8-byte number')
  wide = 2_c_int64_t**32
  call check(.not. associated(omp_get_uid_from_device(wide)), 'uid of a number beyond 4 bytes')

contains
  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) then
      print '(2a)', 'f_target_newer: ', what
      stop 1
    end if
  end subroutine check
end subroutine plugin_run
