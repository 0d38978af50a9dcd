# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How programs that call bosk.h and its like find the library: lib/libbosk.so is another name of
# libgomp.so.1, which is the library (two of them in a process would be two runtimes); pkg-config
# `bosk`, and find_package(bosk) with the target bosk::bosk. All paths follow from where they lie.

include(CMakePackageConfigHelpers)

file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib" "${PROJECT_BINARY_DIR}/package")
file(CREATE_LINK libgomp.so.1 "${PROJECT_BINARY_DIR}/lib/libbosk.so" SYMBOLIC)
install(FILES "${PROJECT_BINARY_DIR}/lib/libbosk.so" DESTINATION lib)

# With a run path: the system's libgomp.so.1, of the same name, has none of these functions.
file(
  CONFIGURE
  OUTPUT "${PROJECT_BINARY_DIR}/package/bosk.pc"
  CONTENT
    [[prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir=${prefix}/include

Name: bosk
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I${includedir}
Libs: -L${libdir} -Wl,-rpath,${libdir} -lbosk
]]
  @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/bosk.pc" DESTINATION lib/pkgconfig)

write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/bosk-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/bosk-config.cmake"
              "${PROJECT_BINARY_DIR}/package/bosk-config-version.cmake"
        DESTINATION lib/cmake/bosk)
