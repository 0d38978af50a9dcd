// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/other_runtimes.h"

#include <gtest/gtest.h>

namespace bosk::omp {
namespace {

TEST(OmpOtherRuntimes, TheyAreKnownByTheNamesThatTheyAreShippedBy) {
  for (const char* file :
       {"/usr/lib/libomp.so.5", "/usr/lib/libomp-19.so.5", "/v/faiss.libs/libomp-f1025659.so.5",
        "/usr/lib/libomp5.so", "/opt/intel/libiomp5.so", "libiomp5.so"})
    EXPECT_TRUE(is_other_runtime(file)) << file;
}

TEST(OmpOtherRuntimes, WhatBoskStandsForOrIsNoRuntimeIsNot) {
  for (const char* file :
       {"/usr/lib/libgomp.so.1", "/v/scikit_learn.libs/libgomp-a34b3233.so.1.0.0",
        "/usr/lib/libomptarget.so.19.1", "/usr/lib/libompd.so", "/home/libomp.txt",
        "/libomp.so.5/data", ""})
    EXPECT_FALSE(is_other_runtime(file)) << file;
}

TEST(OmpOtherRuntimes, ThereIsNoneInThisProcess) {
  char file[4096];
  EXPECT_FALSE(find_other_runtime(file, sizeof file)) << file;
}

}  // namespace
}  // namespace bosk::omp
