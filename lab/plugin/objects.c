// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of named objects: a sorted array without overlaps.
#include "objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxRanges = 1 << 20, kMaxLine = 4096 };

void locality_objects_init(struct locality_objects* objects) {
  memset(objects, 0, sizeof *objects);
  objects->count = 1;
}

void locality_objects_free(struct locality_objects* objects) {
  free(objects->ranges);
  locality_objects_init(objects);
}

void locality_objects_reset(struct locality_objects* objects) {
  objects->count = 1;
  objects->range_count = 0;
  objects->bad_lines = 0;
  objects->read_to = 0;
}

// The first range that ends behind the address.
static size_t first_behind(const struct locality_objects* objects, uint64_t address) {
  size_t low = 0;
  size_t high = objects->range_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (objects->ranges[middle].end > address) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

unsigned locality_object_of(const struct locality_objects* objects, uint64_t address) {
  size_t index = first_behind(objects, address);
  if (index == objects->range_count || objects->ranges[index].start > address) return 0;
  return objects->ranges[index].object;
}

// Room for two more ranges: a new one, and the rest of one that it splits.
static bool reserve(struct locality_objects* objects) {
  if (objects->range_count + 2 <= objects->range_space) return true;
  size_t space = objects->range_space ? 2 * objects->range_space : 64;
  if (space > kMaxRanges) return false;
  struct locality_range* larger = realloc(objects->ranges, space * sizeof *larger);
  if (!larger) return false;
  objects->ranges = larger;
  objects->range_space = space;
  return true;
}

// Puts a range in, in place of what it covers of others.
static bool put(struct locality_objects* objects, struct locality_range range) {
  if (!reserve(objects)) return false;
  size_t from = first_behind(objects, range.start);
  size_t to = from;
  while (to < objects->range_count && objects->ranges[to].start < range.end) ++to;

  struct locality_range parts[3];
  size_t count = 0;
  if (to > from && objects->ranges[from].start < range.start) {
    parts[count] = objects->ranges[from];
    parts[count++].end = range.start;
  }
  parts[count++] = range;
  if (to > from && objects->ranges[to - 1].end > range.end) {
    parts[count] = objects->ranges[to - 1];
    parts[count++].start = range.end;
  }
  memmove(&objects->ranges[from + count], &objects->ranges[to],
          (objects->range_count - to) * sizeof *objects->ranges);
  memcpy(&objects->ranges[from], parts, count * sizeof *parts);
  objects->range_count = objects->range_count - (to - from) + count;
  return true;
}

// The number of the object with this name; 0 if it is one too many.
static unsigned object_named(struct locality_objects* objects, const char* name) {
  for (unsigned object = 1; object < objects->count; ++object) {
    if (strcmp(objects->names[object], name) == 0) return object;
  }
  if (objects->count == kMaxObjects) return 0;
  strcpy(objects->names[objects->count], name);  // its length was checked
  return objects->count++;
}

// A number and the blanks behind it.
static bool number(const char** text, uint64_t* value) {
  if (**text < '0' || **text > '9') return false;
  char* end;
  errno = 0;
  *value = strtoull(*text, &end, 0);
  if (errno || (*end != ' ' && *end != '\t')) return false;
  *text = end + strspn(end, " \t");
  return true;
}

void locality_objects_line(struct locality_objects* objects, const char* line) {
  line += strspn(line, " \t");
  if (*line == '\0' || *line == '#') return;
  uint64_t start;
  uint64_t length;
  if (!number(&line, &start) || !number(&line, &length)) {
    ++objects->bad_lines;
    return;
  }
  size_t size = strlen(line);
  while (size > 0 && strchr(" \t\r", line[size - 1])) --size;
  unsigned object = 0;
  if (size > 0 && size <= kMaxObjectName && length > 0 && start + length > start) {
    char name[kMaxObjectName + 1];
    memcpy(name, line, size);
    name[size] = '\0';
    object = object_named(objects, name);
  }
  struct locality_range range = {start, start + length, object};
  if (object == 0 || !put(objects, range)) ++objects->bad_lines;
}

void locality_objects_read(struct locality_objects* objects, const char* path) {
  FILE* file = fopen(path, "re");
  if (!file) return;
  fseek(file, 0, SEEK_END);
  if (ftell(file) < objects->read_to) {
    // Names keep their numbers: there are counts under them.
    objects->range_count = 0;
    objects->read_to = 0;
  }
  fseek(file, objects->read_to, SEEK_SET);
  char line[kMaxLine];
  while (fgets(line, sizeof line, file)) {
    size_t size = strlen(line);
    if (size == 0 || line[size - 1] != '\n') {
      if (size < sizeof line - 1) break;  // not written to its end yet
      ++objects->bad_lines;               // longer than any we take
      int next;
      while ((next = fgetc(file)) != EOF && next != '\n') continue;
    } else {
      line[size - 1] = '\0';
      locality_objects_line(objects, line);
    }
    objects->read_to = ftell(file);
  }
  fclose(file);
}
