# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The Fortran modules `bosk` and `bosk_memory`: source for any compiler, and .mod files for the one that was found.

# The module is declarations only; who links with it (the examples) need not link its object.
get_property(bosk_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("Fortran" IN_LIST bosk_languages)
  set(bosk_modules "${PROJECT_BINARY_DIR}/fortran")
  add_library(bosk_fortran OBJECT "${PROJECT_SOURCE_DIR}/include/bosk/bosk.f90"
                                  "${PROJECT_SOURCE_DIR}/include/bosk/bosk_memory.f90")
  set_target_properties(bosk_fortran PROPERTIES Fortran_MODULE_DIRECTORY "${bosk_modules}")
  target_include_directories(bosk_fortran INTERFACE "${bosk_modules}")
  # Not there where only some targets were built.
  install(FILES "${bosk_modules}/bosk.mod" "${bosk_modules}/bosk_memory.mod" DESTINATION include/bosk/fortran OPTIONAL)
endif()

# Programs to begin with, in all three languages.
install(DIRECTORY examples/bubbles DESTINATION share/doc/bosk/examples)
