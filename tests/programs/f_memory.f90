! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
! The Fortran module `bosk_memory`: types have the library's sizes, functions their arguments, codes their values.
program f_memory
  use bosk_memory
  implicit none
  integer(c_size_t), parameter :: bytes = 10 * 4096
  real(c_double), target :: array(bytes / 8)
  type(bosk_mem_area_info) :: area
  type(bosk_mem_attr) :: attr
  type(bosk_mem_page_info) :: page
  type(bosk_mem_stats) :: stats
  type(bosk_mem_moved) :: moved
  type(c_ptr) :: bubble, block, parts(2)
  integer(c_int64_t), target :: on(64)
  integer(c_int64_t) :: pages
  integer :: nodes
  real(c_double), pointer :: seen(:)

  array = 1
  nodes = bosk_topo_nodes()
  area%size = c_sizeof(area)
  call need(bosk_mem_area(c_loc(array), area), bosk_enoarea, "area of none")
  call need(bosk_mem_register(c_loc(array), bytes), 0, "register")
  call need(bosk_mem_register(c_loc(array), bytes), bosk_eoverlap, "register again")
  call need(bosk_mem_area(c_loc(array(7)), area), 0, "area")
  if (area%bytes /= bytes .or. area%allocated /= 0 .or. area%node /= bosk_unknown) error stop "area is wrong"
  page%size = c_sizeof(page)
  call need(bosk_mem_page(c_loc(array(7)), page), 0, "page")
  if (page%marked /= 0 .or. page%on_write /= 0) error stop "page is wrong"
  call need(bosk_bubble_create(bubble), 0, "create")
  call need(bosk_mem_attach_bubble(c_loc(array), bubble, bosk_mem_writes, 3), 0, "attach")
  moved%size = c_sizeof(moved)
  call need(bosk_mem_migrate(c_loc(array), nodes - 1, moved), 0, "migrate")
  if (moved%moved + moved%already + moved%refused < 10) error stop "moved is wrong"
  on = -1
  call need(bosk_mem_bubble_footprint(bubble, on, 64), nodes, "footprint")
  if (on(nodes) /= bytes .or. on(64) /= 0) error stop "footprint is wrong"
  call need(bosk_mem_split(c_loc(array), 2_c_size_t, parts), 0, "split")
  call need(bosk_mem_unregister(parts(1)), 0, "unregister")
  if (bosk_mem_next_touch_query(parts(2), 0_c_size_t, pages) /= 0) error stop "marked"
  call need(bosk_mem_distribute(parts(2), n_nodes=0, block=4096_c_size_t), 0, "distribute")
  call need(bosk_mem_unregister(parts(2)), 0, "unregister")
  if (any(array /= 1)) error stop "array has changed"

  call need(bosk_mem_attr_init_sized(attr, c_sizeof(attr)), 0, "attr")
  attr%policy = bosk_mem_on_node
  attr%node = nodes - 1
  attr%bubble = bubble
  call need(bosk_mem_alloc(block, bytes, attr), 0, "alloc")
  call c_f_pointer(block, seen, [bytes / 8])
  if (any(seen /= 0)) error stop "not zero"
  seen = 2
  area%size = c_sizeof(area)
  call need(bosk_mem_area(block, area), 0, "area")
  if (area%attached /= 1 .or. area%node /= nodes - 1) error stop "area of alloc is wrong"
  stats%size = c_sizeof(stats)
  call need(bosk_mem_node_stats(nodes - 1, stats), 0, "stats")
  if (stats%areas /= bytes) error stop "stats are wrong"
  call need(bosk_free(block), 0, "free")
  call need(bosk_free(block), bosk_enoarea, "free again")
  attr%node = nodes
  call need(bosk_mem_alloc(block, bytes, attr), bosk_enode, "no such node")
  block = bosk_malloc_on(1000_c_size_t, nodes - 1)
  if (bosk_malloc_size(block) < 1000) error stop "size is wrong"
  call need(bosk_free(block), 0, "free")
  call need(bosk_mem_redecide(bubble, bosk_mem_at_once), 0, "redecide")
  call need(bosk_mem_redecide(bubble, 2 * bosk_mem_when_all), bosk_einval, "redecide at no time")
  call need(bosk_bubble_destroy(bubble), 0, "destroy")
  call need(bosk_mem_redecide(bubble, bosk_mem_when_all), bosk_estale, "redecide of none")
  print '(a)', "ok"

contains

  subroutine need(code, expected, what)
    integer(c_int), intent(in) :: code
    integer, intent(in) :: expected
    character(*), intent(in) :: what
    if (code /= expected) then
      print '(a, ": ", i0, " instead of ", i0)', what, code, expected
      error stop 1
    end if
  end subroutine need
end program f_memory
