// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Objects of the traced program: names for ranges of its virtual addresses, read from a file that the
// program writes. A line of the file is
//
//   START LENGTH NAME
//
// the numbers decimal or with 0x; the name is the rest of the line. Lines of the same name are parts of one
// object. Where ranges overlap the later line holds: memory is freed and used again. Blank lines and those
// that start with '#' are skipped. A line counts when its newline is there.
#ifndef BOSK_LAB_OBJECTS_H
#define BOSK_LAB_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kMaxObjects = 256, kMaxObjectName = 63 };  // object 0 is "no object"

struct locality_range {
  uint64_t start;
  uint64_t end;
  unsigned object;
};

struct locality_objects {
  char names[kMaxObjects][kMaxObjectName + 1];
  unsigned count;                 // with object 0
  struct locality_range* ranges;  // sorted, apart from each other
  size_t range_count;
  size_t range_space;
  uint64_t bad_lines;  // not understood, or a name or range too many
  long read_to;        // in the file
};

void locality_objects_init(struct locality_objects* objects);
void locality_objects_free(struct locality_objects* objects);

// Forgets ranges and names; the file is read from its start next time.
void locality_objects_reset(struct locality_objects* objects);

// One line, without its newline.
void locality_objects_line(struct locality_objects* objects, const char* line);

// What is new in the file. A file that is not there has nothing new; one that became shorter is another.
void locality_objects_read(struct locality_objects* objects, const char* path);

// The object of an address; 0 if there is none.
unsigned locality_object_of(const struct locality_objects* objects, uint64_t address);

#ifdef __cplusplus
}
#endif
#endif
