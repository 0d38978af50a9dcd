! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! STREAM's four kernels, once for each domain of the machine (Nested-STREAM of Broquedis 2009, section 4.3).
!
! Each member of the outer team has vectors of its own and opens an inner team which touches them first and
! works on them ever after. The threads of a domain share data with each other and with nobody else: kept
! together beside their vectors they use local memory only. Short vectors show the price of the inner
! regions, long ones the memory.
!
!   nested-stream [elements repeats domains threads-per-domain]
!
! Where BOSK_LAB_OBJECTS names a file, it gets a line for each vector: its address, its bytes, its name
! (bosk lab --locality=objects, docs/locality.md).
module stream
  implicit none
  integer, parameter :: real_kind = selected_real_kind(15)

  type :: domain
    real(real_kind), allocatable :: a(:), b(:), c(:)
  end type
contains

  subroutine tell(name, vector)
    character(*), intent(in) :: name
    real(real_kind), intent(in) :: vector(:)
    character(1024) :: path
    integer :: unit, status
    call get_environment_variable('BOSK_LAB_OBJECTS', path, status=status)
    if (status /= 0) return
    !$omp critical (objects)
    open (newunit=unit, file=trim(path), position='append', action='write', iostat=status)
    if (status == 0) then
      write (unit, '(i0,1x,i0,1x,a)') loc(vector(1)), size(vector) * real_kind, name
      close (unit)
    end if
    !$omp end critical (objects)
  end subroutine

  subroutine prepare(d, n, threads, name)
    type(domain), intent(inout) :: d
    integer, intent(in) :: n, threads
    character(*), intent(in) :: name
    integer :: i
    allocate (d%a(n), d%b(n), d%c(n))
    call tell(name // ' a', d%a)
    call tell(name // ' b', d%b)
    call tell(name // ' c', d%c)
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      d%a(i) = 1 + mod(i, 7)
      d%b(i) = 2
      d%c(i) = 0
    end do
    !$omp end parallel do
  end subroutine

  ! Four kernels, each in a region of its own. The scalar is private: shared, every thread would read the first
  ! thread's variable, on the first thread's node, for each element.
  subroutine kernels(d, n, threads, scalar)
    type(domain), intent(inout) :: d
    integer, intent(in) :: n, threads
    real(real_kind), intent(in) :: scalar
    integer :: i
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      d%c(i) = d%a(i)
    end do
    !$omp end parallel do
    !$omp parallel do num_threads(threads) schedule(static) firstprivate(scalar)
    do i = 1, n
      d%b(i) = scalar * d%c(i)
    end do
    !$omp end parallel do
    !$omp parallel do num_threads(threads) schedule(static)
    do i = 1, n
      d%c(i) = d%a(i) + d%b(i)
    end do
    !$omp end parallel do
    !$omp parallel do num_threads(threads) schedule(static) firstprivate(scalar)
    do i = 1, n
      d%a(i) = d%b(i) + scalar * d%c(i)
    end do
    !$omp end parallel do
  end subroutine

  integer function argument(index, otherwise)
    integer, intent(in) :: index, otherwise
    character(20) :: text
    integer :: status
    argument = otherwise
    if (command_argument_count() < index) return
    call get_command_argument(index, text)
    read (text, *, iostat=status) argument
    if (status /= 0 .or. argument < 1) then
      print '(a)', 'usage: nested-stream [elements repeats domains threads-per-domain]'
      call exit(2)
    end if
  end function
end module

program nested_stream
  use omp_lib
  use stream
  implicit none
  type(domain), allocatable :: domains(:)
  type(domain) :: reference
  real(real_kind) :: scalar, start, elapsed, checksum, worst
  character(20) :: name
  integer :: n, repeats, count, threads, me, repeat

  n = argument(1, 20000)
  repeats = argument(2, 600)
  count = argument(3, 4)
  threads = argument(4, 4)
  scalar = sqrt(2.0_real_kind) - 1  ! one repeat multiplies by 2s + s**2 = 1: the values stay as they are
  allocate (domains(count))
  call omp_set_max_active_levels(2)

  start = omp_get_wtime()
  !$omp parallel num_threads(count) private(me, repeat, name)
  do me = omp_get_thread_num() + 1, count, omp_get_num_threads()
    write (name, '(a,i0)') 'domain ', me
    call prepare(domains(me), n, threads, trim(name))
    do repeat = 1, repeats
      call kernels(domains(me), n, threads, scalar)
    end do
  end do
  !$omp end parallel
  elapsed = omp_get_wtime() - start

  call prepare(reference, n, 1, 'reference')
  do repeat = 1, repeats
    call kernels(reference, n, 1, scalar)
  end do
  worst = 0
  checksum = 0
  do me = 1, count
    worst = max(worst, maxval(abs(domains(me)%a - reference%a)), maxval(abs(domains(me)%b - reference%b)), &
                maxval(abs(domains(me)%c - reference%c)))
    checksum = checksum + sum(domains(me)%a) + sum(domains(me)%b) + sum(domains(me)%c)
  end do
  print '(i0,a,i0,a,i0,a,i0,a)', count, ' domains of ', threads, ' threads, ', n, ' elements, ', repeats, ' repeats'
  print '(a,es20.12e3)', 'checksum:', checksum
  print '(a,f8.3,a)', 'time: ', elapsed, ' s'
  ! Ten memory accesses of 8 bytes for each element and repeat: 2 + 2 + 3 + 3.
  print '(a,f8.2,a)', 'rate: ', 80.0 * real(n) * real(repeats) * real(count) / elapsed / 1e9, ' GB/s'
  if (.not. worst <= 1e-12_real_kind * maxval(abs(reference%c) + 1)) then
    print '(a,es10.3)', 'nested-stream: the result differs from the sequential one by ', worst
    call exit(1)
  end if
end program
