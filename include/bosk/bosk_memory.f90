! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The Fortran face of bosk/memory.h, by the same names; the module bosk comes with it. What each function does and
! returns is told there; what is different in Fortran, at the top of bosk.f90.
!
! An array is given by c_loc(array) and its bytes by storage_size(array) / 8 * size(array) (of a kind that is large enough). Nodes
! begin with 0, as everywhere in bosk. What may be null in C is optional.
module bosk_memory
  use, intrinsic :: iso_c_binding
  use bosk
  implicit none
  public

  integer(c_int32_t), parameter :: bosk_mem_default = 0
  integer(c_int32_t), parameter :: bosk_mem_on_node = 1
  integer(c_int32_t), parameter :: bosk_mem_least_loaded_node = 2 !< bosk_mem_least_loaded is the function
  integer(c_int32_t), parameter :: bosk_mem_interleaved = 3
  integer(c_int32_t), parameter :: bosk_mem_weighted = 4
  integer(c_int32_t), parameter :: bosk_mem_first_touch = 5
  integer(c_int32_t), parameter :: bosk_mem_on_next_touch = 6     !< bosk_mem_next_touch is the function
  integer(c_int), parameter :: bosk_mem_reads = 1, bosk_mem_writes = 2, bosk_mem_reads_and_writes = 3
  integer(c_int), parameter :: bosk_mem_at_once = 0, bosk_mem_when_all = 1
  integer(c_int32_t), parameter :: bosk_mem_pages_ordinary = 0
  integer(c_int32_t), parameter :: bosk_mem_pages_huge = 1
  integer(c_int32_t), parameter :: bosk_mem_pages_reserved_huge = 2
  integer(c_int), parameter :: bosk_mem_on_write = 1, bosk_mem_calls_work = 2

  type, bind(c) :: bosk_mem_area_info
    integer(c_size_t) :: size
    type(c_ptr) :: begin
    integer(c_size_t) :: bytes
    integer(c_int32_t) :: policy
    integer(c_int32_t) :: node
    integer(c_int32_t) :: allocated
    integer(c_int32_t) :: attached
    integer(c_int64_t) :: huge_page
  end type bosk_mem_area_info

  !> Fill it with bosk_mem_attr_init_sized(attr, c_sizeof(attr)) first.
  type, bind(c) :: bosk_mem_attr
    integer(c_size_t) :: size
    integer(c_int32_t) :: policy
    integer(c_int32_t) :: node
    type(c_ptr) :: nodes
    integer(c_int32_t) :: n_nodes
    integer(c_int32_t) :: pages
    integer(c_size_t) :: alignment
    type(c_ptr) :: thread
    type(c_ptr) :: bubble
    integer(c_int32_t) :: use
    integer(c_int32_t) :: times
  end type bosk_mem_attr

  !> What bosk_mem_page() tells of a page.
  type, bind(c) :: bosk_mem_page_info
    integer(c_size_t) :: size
    integer(c_int32_t) :: node
    integer(c_int32_t) :: marked
    integer(c_int32_t) :: on_write
    integer(c_int32_t) :: unused
  end type bosk_mem_page_info

  type, bind(c) :: bosk_mem_stats
    integer(c_size_t) :: size
    integer(c_int64_t) :: total
    integer(c_int64_t) :: free
    integer(c_int64_t) :: reserved
    integer(c_int64_t) :: used
    integer(c_int64_t) :: areas
  end type bosk_mem_stats

  type, bind(c) :: bosk_mem_moved
    integer(c_size_t) :: size
    integer(c_int64_t) :: moved
    integer(c_int64_t) :: already
    integer(c_int64_t) :: absent
    integer(c_int64_t) :: refused
    integer(c_int64_t) :: no_memory
    integer(c_int64_t) :: unsplit
  end type bosk_mem_moved

  interface
    function bosk_mem_register(begin, bytes) bind(c) result(code)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function bosk_mem_register

    function bosk_mem_unregister(begin) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: begin
      integer(c_int) :: code
    end function bosk_mem_unregister

    function bosk_mem_split(begin, parts, begins) bind(c) result(code)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: begin
      integer(c_size_t), value :: parts
      type(c_ptr), intent(out), optional :: begins(*)
      integer(c_int) :: code
    end function bosk_mem_split

    function bosk_mem_area(address, area) bind(c) result(code)
      import :: bosk_mem_area_info, c_int, c_ptr
      type(c_ptr), value :: address
      type(bosk_mem_area_info), intent(inout) :: area
      integer(c_int) :: code
    end function bosk_mem_area

    function bosk_mem_area_nodes(address, bytes, nodes) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: address
      integer(c_int64_t), intent(out) :: bytes(*)
      integer(c_int), value :: nodes
      integer(c_int) :: code
    end function bosk_mem_area_nodes

    function bosk_mem_update(address) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int) :: code
    end function bosk_mem_update

    function bosk_mem_locate(address) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int) :: code
    end function bosk_mem_locate

    function bosk_mem_page(address, page) bind(c) result(code)
      import :: bosk_mem_page_info, c_int, c_ptr
      type(c_ptr), value :: address
      type(bosk_mem_page_info), intent(inout) :: page
      integer(c_int) :: code
    end function bosk_mem_page

    function bosk_malloc(bytes) bind(c) result(block)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function bosk_malloc

    function bosk_calloc(count, bytes) bind(c) result(block)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: count
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function bosk_calloc

    function bosk_realloc(old, bytes) bind(c) result(block)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: old
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function bosk_realloc

    function bosk_aligned_alloc(alignment, bytes) bind(c) result(block)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: alignment
      integer(c_size_t), value :: bytes
      type(c_ptr) :: block
    end function bosk_aligned_alloc

    function bosk_malloc_on(bytes, node) bind(c) result(block)
      import :: c_int, c_ptr, c_size_t
      integer(c_size_t), value :: bytes
      integer(c_int), value :: node
      type(c_ptr) :: block
    end function bosk_malloc_on

    function bosk_free(block) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: block
      integer(c_int) :: code
    end function bosk_free

    function bosk_malloc_size(block) bind(c) result(bytes)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: block
      integer(c_size_t) :: bytes
    end function bosk_malloc_size

    function bosk_mem_attr_init_sized(attr, size) bind(c) result(code)
      import :: bosk_mem_attr, c_int, c_size_t
      type(bosk_mem_attr), intent(out) :: attr
      integer(c_size_t), value :: size
      integer(c_int) :: code
    end function bosk_mem_attr_init_sized

    function bosk_mem_alloc(block, bytes, attr) bind(c) result(code)
      import :: bosk_mem_attr, c_int, c_ptr, c_size_t
      type(c_ptr), intent(inout) :: block
      integer(c_size_t), value :: bytes
      type(bosk_mem_attr), intent(in), optional :: attr
      integer(c_int) :: code
    end function bosk_mem_alloc

    function bosk_mem_trim() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_mem_trim

    function bosk_mem_attach_thread(address, thread, use, times) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: address
      type(c_ptr), value :: thread
      integer(c_int), value :: use
      integer(c_int32_t), value :: times
      integer(c_int) :: code
    end function bosk_mem_attach_thread

    function bosk_mem_attach_bubble(address, bubble, use, times) bind(c) result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: address
      type(c_ptr), value :: bubble
      integer(c_int), value :: use
      integer(c_int32_t), value :: times
      integer(c_int) :: code
    end function bosk_mem_attach_bubble

    function bosk_mem_detach_thread(address, thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_mem_detach_thread

    function bosk_mem_detach_bubble(address, bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      type(c_ptr), value :: bubble
      integer(c_int) :: code
    end function bosk_mem_detach_bubble

    function bosk_mem_detach_area(address) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int) :: code
    end function bosk_mem_detach_area

    function bosk_mem_detach_all_thread(thread) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int) :: code
    end function bosk_mem_detach_all_thread

    function bosk_mem_detach_all_bubble(bubble) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int) :: code
    end function bosk_mem_detach_all_bubble

    function bosk_mem_thread_footprint(thread, bytes, nodes) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: thread
      integer(c_int64_t), intent(out) :: bytes(*)
      integer(c_int), value :: nodes
      integer(c_int) :: code
    end function bosk_mem_thread_footprint

    function bosk_mem_bubble_footprint(bubble, bytes, nodes) bind(c) result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int64_t), intent(out) :: bytes(*)
      integer(c_int), value :: nodes
      integer(c_int) :: code
    end function bosk_mem_bubble_footprint

    function bosk_mem_migrate(address, node, moved) bind(c) result(code)
      import :: bosk_mem_moved, c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int), value :: node
      type(bosk_mem_moved), intent(inout), optional :: moved
      integer(c_int) :: code
    end function bosk_mem_migrate

    function bosk_mem_distribute(address, nodes, n_nodes, block, moved) bind(c) result(code)
      import :: bosk_mem_moved, c_int, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: address
      integer(c_int32_t), intent(in), optional :: nodes(*)
      integer(c_int32_t), value :: n_nodes
      integer(c_size_t), value :: block
      type(bosk_mem_moved), intent(inout), optional :: moved
      integer(c_int) :: code
    end function bosk_mem_distribute

    function bosk_mem_migrate_thread(thread, node, moved) bind(c) result(code)
      import :: bosk_mem_moved, c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int), value :: node
      type(bosk_mem_moved), intent(inout), optional :: moved
      integer(c_int) :: code
    end function bosk_mem_migrate_thread

    function bosk_mem_migrate_bubble(bubble, node, moved) bind(c) result(code)
      import :: bosk_mem_moved, c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), value :: node
      type(bosk_mem_moved), intent(inout), optional :: moved
      integer(c_int) :: code
    end function bosk_mem_migrate_bubble

    function bosk_mem_next_touch(begin, bytes, flags) bind(c) result(code)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
      integer(c_int), value :: flags
      integer(c_int) :: code
    end function bosk_mem_next_touch

    function bosk_mem_next_touch_cancel(begin, bytes) bind(c) result(code)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function bosk_mem_next_touch_cancel

    function bosk_mem_next_touch_query(begin, bytes, pages) bind(c) result(marked)
      import :: c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: begin
      integer(c_size_t), value :: bytes
      integer(c_int64_t), intent(out), optional :: pages
      integer(c_int64_t) :: marked
    end function bosk_mem_next_touch_query

    function bosk_mem_next_touch_thread(thread, flags) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: thread
      integer(c_int), value :: flags
      integer(c_int) :: code
    end function bosk_mem_next_touch_thread

    function bosk_mem_next_touch_bubble(bubble, flags) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), value :: flags
      integer(c_int) :: code
    end function bosk_mem_next_touch_bubble

    !> 1: threads or memory move; 0: all is well as it is. `when` is bosk_mem_at_once or bosk_mem_when_all.
    function bosk_mem_redecide(bubble, when) bind(c) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: bubble
      integer(c_int), value :: when
      integer(c_int) :: code
    end function bosk_mem_redecide

    function bosk_mem_node_stats(node, stats) bind(c) result(code)
      import :: bosk_mem_stats, c_int
      integer(c_int), value :: node
      type(bosk_mem_stats), intent(inout) :: stats
      integer(c_int) :: code
    end function bosk_mem_node_stats

    function bosk_mem_least_loaded() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function bosk_mem_least_loaded

    function bosk_mem_print(fd) bind(c) result(code)
      import :: c_int
      integer(c_int), value :: fd
      integer(c_int) :: code
    end function bosk_mem_print
  end interface
end module bosk_memory
