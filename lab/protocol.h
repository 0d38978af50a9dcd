// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tool and the guest's first process say to each other, over virtio-serial ports. C and C++.
//
// Every message is a kind (one byte), the length of what follows (four bytes, little endian) and so many
// bytes. The ports "stdout" and "stderr" carry the program's bytes as they are.
#pragma once

#define LAB_PORT_CONTROL "bosk.control"
#define LAB_PORT_STDIN "bosk.stdin"
#define LAB_PORT_STDOUT "bosk.stdout"
#define LAB_PORT_STDERR "bosk.stderr"

enum {
  LAB_HEADER = 5,
  LAB_MOST = 4 << 20,  // the longest message: a job with a long command line

  // Host to guest, on the control port.
  LAB_JOB = 'J',     // what to run: items, see below
  LAB_WINDOW = 'Z',  // the terminal's size: "ROWS COLUMNS"
  // Host to guest, on the port of standard input; empty: its end.
  LAB_INPUT = 'I',

  // Guest to host, on the control port.
  LAB_READY = 'R',    // the guest is up: its kernel's release
  LAB_STARTED = 'S',  // the program runs
  LAB_LOST = 'L',     // a file in the working directory that goes with the guest
  LAB_EXIT = 'X',     // the last message: the exit status as text
  LAB_ERROR = 'E',    // the last message: "STATUS why"
};

// Items of a job, each a letter, its text and a NUL.
enum {
  LAB_ARGUMENT = 'a',    // a word of the command
  LAB_VARIABLE = 'e',    // NAME=value of its environment
  LAB_DIRECTORY = 'd',   // where it runs
  LAB_WRITABLE = 'w',    // "TAG PATH": a 9p export that is writable, and where it belongs
  LAB_ONE_STREAM = '1',  // standard error goes where standard output goes
  LAB_TERMINAL = 't',    // give it a terminal; "ROWS COLUMNS"
  LAB_USER = 'u',        // "UID GID GROUP…"
  LAB_CLOCK = 'c',       // "SECONDS NANOSECONDS" since 1970: the time now
  LAB_LIMIT = 'l',       // "RESOURCE SOFT HARD", as setrlimit(2) has them
};
