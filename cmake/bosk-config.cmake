# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# find_package(bosk): the target bosk::bosk, headers and library. Installed as it is.

get_filename_component(bosk_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET bosk::bosk)
  add_library(bosk::bosk SHARED IMPORTED)
  set_target_properties(
    bosk::bosk PROPERTIES IMPORTED_LOCATION "${bosk_prefix}/lib/libgomp.so.1"
                          IMPORTED_SONAME libgomp.so.1
                          INTERFACE_INCLUDE_DIRECTORIES "${bosk_prefix}/include")
endif()
unset(bosk_prefix)
