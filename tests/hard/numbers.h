// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a library does by syscall(2); see numbers.c.
#pragma once

long number_of_thread(void);
/// To the first CPU that it may use.
int bind_by_number(void);
/// How many CPUs it may use.
int cpus_by_number(void);
/// -1, and EBADF: six arguments come through.
long bad_call(int* error);
/// The sixth argument: an offset.
int map_by_number(int descriptor, long offset);
/// The child's exit status.
int fork_by_number(int status);
/// The same, of a child that asks for its number and changes its priority before.
int vfork_and_call(int status);
