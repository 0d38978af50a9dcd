! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! Fortran: parallel do, workshare, sections, single, ordered, critical, atomic, private data, reductions.
module check
  implicit none
  integer :: failures = 0
contains
  subroutine expect(condition, what, found)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    integer, intent(in) :: found
    if (.not. condition) then
      !$omp critical (check_output)
      if (failures == 0) print '(3a,i0)', 'f_worksharing: ', what, ', found ', found
      failures = failures + 1
      !$omp end critical (check_output)
    end if
  end subroutine
end module

program f_worksharing
  use omp_lib
  use check
  implicit none
  integer :: sizes(4), s, round
  call omp_set_dynamic(.false.)
  call omp_set_max_active_levels(3)
  sizes = [omp_get_max_threads(), 1, 2, 8]
  do s = 1, 4
    do round = 1, 10
      call loops(sizes(s))
      call private_arrays(sizes(s))
      call workshares(sizes(s))
      call others(sizes(s))
      call reductions(sizes(s))
      call atomics(sizes(s))
    end do
  end do
  call nested()
  if (failures > 0) call exit(1)
  print '(a)', 'ok'
contains

  subroutine loops(threads)
    integer, intent(in) :: threads
    integer :: i, j, hits(1000), plane(20, 30), last
    integer(8) :: k
    hits = 0
    !$omp parallel do num_threads(threads) schedule(dynamic, 3)
    do i = 1, 1000
      hits(i) = hits(i) + 1
    end do
    !$omp end parallel do
    call expect(all(hits == 1), 'dynamic do', sum(hits))
    !$omp parallel num_threads(threads)
    !$omp do schedule(guided)
    do i = 1000, 1, -1
      !$omp atomic
      hits(i) = hits(i) + 1
    end do
    !$omp end do nowait
    !$omp do schedule(static, 4)
    do k = 1_8, 1000_8
      !$omp atomic
      hits(k) = hits(k) + 1
    end do
    !$omp end do
    !$omp do schedule(runtime)
    do i = 2, 1000, 2
      hits(i) = hits(i) + 1
    end do
    !$omp end do
    !$omp end parallel
    call expect(sum(hits) == 3500, 'chain of do loops', sum(hits))
    plane = 0
    !$omp parallel do collapse(2) num_threads(threads) schedule(dynamic)
    do j = 1, 30
      do i = 1, 20
        plane(i, j) = plane(i, j) + i * j
      end do
    end do
    !$omp end parallel do
    call expect(sum(plane) == 210 * 465, 'collapse(2)', sum(plane))
    last = -1
    !$omp parallel do lastprivate(last) num_threads(threads) schedule(dynamic, 5)
    do i = 1, 100
      last = i
    end do
    !$omp end parallel do
    call expect(last == 100, 'lastprivate', last)
    last = 0
    !$omp parallel do ordered num_threads(threads) schedule(dynamic)
    do i = 1, 100
      !$omp ordered
      call expect(last == i - 1, 'ordered', last)
      last = i
      !$omp end ordered
    end do
    !$omp end parallel do
    call expect(last == 100, 'ordered do', last)
  end subroutine

  ! Allocatable and automatic arrays in private clauses: each thread has its own.
  subroutine private_arrays(threads)
    integer, intent(in) :: threads
    real(8), allocatable :: work(:), copied(:, :)
    real(8) :: automatic(threads * 10)
    integer :: i, wrong
    allocate (work(50), copied(10, 10))
    work = -1
    copied = 3.5d0
    automatic = 0
    wrong = 0
    !$omp parallel num_threads(threads) private(work, i) firstprivate(copied) reduction(+: wrong)
    if (.not. allocated(work)) wrong = wrong + 1
    if (any(copied /= 3.5d0)) wrong = wrong + 1
    work = omp_get_thread_num()
    copied = copied + omp_get_thread_num()
    !$omp barrier
    if (any(work /= omp_get_thread_num())) wrong = wrong + 1
    if (any(copied /= 3.5d0 + omp_get_thread_num())) wrong = wrong + 1
    deallocate (work)
    allocate (work(100 + omp_get_thread_num()))
    work = 1
    if (nint(sum(work)) /= 100 + omp_get_thread_num()) wrong = wrong + 1
    !$omp do
    do i = 1, size(automatic)
      automatic(i) = i
    end do
    !$omp end do
    !$omp end parallel
    call expect(wrong == 0, 'private arrays', wrong)
    call expect(all(copied == 3.5d0) .and. size(work) == 50, 'originals of private arrays', size(work))
    call expect(nint(sum(automatic)) == threads * 10 * (threads * 10 + 1) / 2, 'automatic array', nint(sum(automatic)))
  end subroutine

  subroutine workshares(threads)
    integer, intent(in) :: threads
    real(8) :: a(200), b(200), c(10, 10), total
    integer :: i
    total = 0
    !$omp parallel num_threads(threads) shared(a, b, c, total)
    !$omp workshare
    a = [(real(i, 8), i=1, 200)]
    b = 2 * a
    where (a > 100) b = 0
    c = 1
    !$omp end workshare
    !$omp workshare
    total = sum(b) + sum(matmul(c, c))
    forall (i=1:200) a(i) = b(i) + 1
    !$omp end workshare
    !$omp end parallel
    call expect(nint(total) == 10100 + 1000, 'workshare', nint(total))
    call expect(nint(sum(a)) == 10300, 'forall in workshare', nint(sum(a)))
    !$omp parallel workshare num_threads(threads)
    a = 7
    !$omp end parallel workshare
    call expect(nint(sum(a)) == 1400, 'parallel workshare', nint(sum(a)))
  end subroutine

  subroutine others(threads)
    integer, intent(in) :: threads
    integer :: done(3), singles, given, count, members
    done = 0
    singles = 0
    count = 0
    members = 0
    !$omp parallel num_threads(threads) private(given)
    !$omp sections
    !$omp section
    done(1) = done(1) + 1
    !$omp section
    done(2) = done(2) + 1
    !$omp section
    done(3) = done(3) + 1
    !$omp end sections
    !$omp single
    singles = singles + 1
    given = 4711
    !$omp end single copyprivate(given)
    call expect(given == 4711, 'copyprivate', given)
    !$omp critical (f_counter)
    count = count + 1
    !$omp end critical (f_counter)
    !$omp master
    members = omp_get_num_threads()
    !$omp end master
    !$omp barrier
    !$omp flush
    call expect(members == threads, 'team size', members)
    !$omp end parallel
    call expect(all(done == 1), 'sections', sum(done))
    call expect(singles == 1, 'single', singles)
    call expect(count == threads, 'critical', count)
  end subroutine

  subroutine reductions(threads)
    integer, intent(in) :: threads
    integer :: i, total, lowest, highest, bits, part(5)
    real(8) :: product8
    complex(8) :: z
    logical :: every, some, odd
    total = 10
    lowest = huge(1)
    highest = -huge(1)
    bits = 0
    part = 0
    product8 = 1
    z = (0d0, 0d0)
    every = .true.
    some = .false.
    odd = .true.
    !$omp parallel do num_threads(threads) reduction(+: total, part, z) reduction(min: lowest) &
    !$omp& reduction(max: highest) reduction(ior: bits) reduction(*: product8) reduction(.and.: every) &
    !$omp& reduction(.or.: some) reduction(.neqv.: odd) schedule(dynamic, 3)
    do i = 1, 100
      total = total + i
      lowest = min(lowest, abs(50 - i))
      highest = max(highest, abs(50 - i))
      bits = ior(bits, ishft(1, mod(i, 20)))
      part(mod(i, 5) + 1) = part(mod(i, 5) + 1) + i
      if (mod(i, 10) == 0) product8 = product8 * 2
      z = z + cmplx(i, -i, 8)
      every = every .and. i > 0
      some = some .or. i == 77
      odd = odd .neqv. .true.
    end do
    !$omp end parallel do
    call expect(total == 5060, 'reduction +', total)
    call expect(lowest == 0 .and. highest == 50, 'reduction min, max', highest)
    call expect(bits == 2**20 - 1, 'reduction ior', bits)
    call expect(sum(part) == 5050 .and. part(1) == 1050, 'array reduction', part(1))
    call expect(nint(product8) == 1024, 'reduction *', nint(product8))
    call expect(z == (5050d0, -5050d0), 'complex reduction', nint(real(z)))
    call expect(every .and. some .and. odd, 'logical reductions', 0)
  end subroutine

  ! Wide types have no instruction of their own: they take a lock inside the runtime.
  subroutine atomics(threads)
    integer, intent(in) :: threads
    complex(8) :: z
    real(16) :: wide
    integer :: i, ticket, sum_tickets, tickets
    z = (0d0, 0d0)
    wide = 0
    tickets = 0
    sum_tickets = 0
    !$omp parallel num_threads(threads) private(i, ticket) reduction(+: sum_tickets)
    do i = 1, 200
      !$omp atomic
      z = z + (1d0, 2d0)
      !$omp atomic
      wide = wide + 0.25_16
      !$omp atomic capture
      ticket = tickets
      tickets = tickets + 1
      !$omp end atomic
      sum_tickets = sum_tickets + ticket
    end do
    !$omp end parallel
    call expect(z == cmplx(200 * threads, 400 * threads, 8), 'atomic complex', nint(real(z)))
    call expect(wide == 50.0_16 * threads, 'atomic real(16)', int(wide))
    call expect(sum_tickets == 200 * threads * (200 * threads - 1) / 2, 'atomic capture', sum_tickets)
  end subroutine

  subroutine nested()
    integer :: total, i
    total = 0
    !$omp parallel num_threads(4) reduction(+: total)
    !$omp parallel num_threads(3) reduction(+: total)
    call expect(omp_get_level() == 2, 'level', omp_get_level())
    call expect(omp_get_team_size(1) == 4, 'outer team', omp_get_team_size(1))
    !$omp do
    do i = 1, 30
      total = total + i
    end do
    !$omp end do
    !$omp end parallel
    !$omp end parallel
    call expect(total == 4 * 465, 'nested parallel do', total)
  end subroutine
end program
