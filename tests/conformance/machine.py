# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers what a test asks about its target: Linux on this processor, one compiler, and no device to
offload to."""

import fnmatch
import platform
from pathlib import Path

# What any of the machines that bosk runs on has.
ALWAYS = frozenset("""
    lp64 int32plus size32plus tls tls_native tls_runtime pthread lto shared fpic alias weak_undefined
    sync_char_short sync_int_long cas_char cas_int fd_truncate __OPTIMIZE__ large_long_double
    fortran_large_real fortran_large_int fopenmp fopenacc
    offload_device_shared_as
    """.split())

# Devices, 32 bits, and what is left out because it takes long.
NEVER = frozenset("""
    offload_device offload_device_nonshared_as offload_device_nvptx offload_device_gcn
    offload_device_intel_mic offload_device_any_intel_mic offload_target_nvptx offload_target_amdgcn
    offload_target_intelmic offloading_enabled openacc_nvidia_accel_present
    openacc_nvidia_accel_selected openacc_radeon_accel_present openacc_radeon_accel_selected
    openacc_cuda openacc_cublas openacc_cudart ia32 ilp32 hppa*-*-hpux*
    aarch64_tiny run_expensive_tests skip-all-targets iN-VAl-Id
    """.split())


def processor_flags() -> frozenset:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


class Machine:
    """`Machine()(name)`: does that hold here? Names that nobody knows are collected: a test that asks
    for one is not run, and the list says what to add above."""

    def __init__(self, language: str = "", openacc: bool = False, processor: str = "",
                 flags: frozenset = None):
        self.processor = processor or platform.machine()
        self.triplet = self.processor + "-pc-linux-gnu"
        self.unknown = set()
        flags = processor_flags() if flags is None else flags
        intel = self.processor == "x86_64"
        self.answers = {name: True for name in ALWAYS} | {name: False for name in NEVER} | {
            "c": language == "c", "c++": language == "c++", "openacc_host_selected": openacc,
            "vect_simd_clones": intel, "__float128": intel,
            "sse2_runtime": intel and "sse2" in flags, "avx_runtime": intel and "avx" in flags,
            "avx2_runtime": intel and "avx2" in flags, "avx512f_runtime": intel and "avx512f" in flags,
        }

    def __call__(self, name: str) -> bool:
        if name in self.answers:
            return self.answers[name]
        if "-" in name:
            return fnmatch.fnmatchcase(self.triplet, name)
        self.unknown.add(name)
        return False
