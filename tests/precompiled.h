// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What nearly every unit and stress test includes: precompiled once for each kind (cmake/BoskTest.cmake). Tests include what
// they use all the same.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
