// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text and JSON of a result.
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char* const kKindNames[kKinds] = {"loads", "stores", "write_backs"};

enum { kAllObjects = -1 };

// Sums over objects where the object is kAllObjects.
static struct locality_cell cell_of(const struct locality_session* session, int object,
                                    enum locality_kind kind, unsigned cpu_node,
                                    unsigned memory_node) {
  if (object >= 0) {
    return locality_session_sum(session, (unsigned)object, kind, cpu_node, memory_node);
  }
  struct locality_cell sum = {0, 0};
  unsigned count = session->with_objects ? session->objects.count : 1;
  for (unsigned each = 0; each < count; ++each) {
    struct locality_cell cell = locality_session_sum(session, each, kind, cpu_node, memory_node);
    sum.times += cell.times;
    sum.bytes += cell.bytes;
  }
  return sum;
}

struct share {
  uint64_t times;  // in a node's memory
  uint64_t local_times;
  uint64_t bytes;
  uint64_t local_bytes;
  uint64_t nowhere;  // in no node's memory
};

static void add_to_share(const struct locality_session* session, int object,
                         enum locality_kind kind, struct share* share) {
  unsigned nodes = session->map.nodes;
  for (unsigned row = 0; row < nodes; ++row) {
    for (unsigned column = 0; column < nodes; ++column) {
      struct locality_cell cell = cell_of(session, object, kind, row, column);
      share->times += cell.times;
      share->bytes += cell.bytes;
      if (row != column) continue;
      share->local_times += cell.times;
      share->local_bytes += cell.bytes;
    }
    share->nowhere += cell_of(session, object, kind, row, nodes).times;
  }
}

// Loads and stores.
static struct share share_of(const struct locality_session* session, int object) {
  struct share share = {0, 0, 0, 0, 0};
  add_to_share(session, object, kLoads, &share);
  add_to_share(session, object, kStores, &share);
  return share;
}

// --- text --------------------------------------------------------------------------------------------

enum { kColumn = 16, kGrouped = 32 };

// 1234567 → "1,234,567"
static const char* grouped(uint64_t value, char text[kGrouped]) {
  char digits[kGrouped];
  int count = snprintf(digits, sizeof digits, "%" PRIu64, value);
  char* to = text;
  for (int i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return text;
}

// Nothing is no share at all, not 0 %.
static void print_percent(FILE* to, uint64_t part, uint64_t all) {
  if (all == 0) {
    fprintf(to, "%8s", "-");
  } else {
    fprintf(to, "%6.2f %%", 100.0 * (double)part / (double)all);
  }
}

static void print_matrix(const struct locality_session* session, enum locality_kind kind,
                         const char* title, FILE* to) {
  char text[kGrouped];
  unsigned nodes = session->map.nodes;
  fprintf(to, "%-12s", title);
  for (unsigned column = 0; column < nodes; ++column) {
    snprintf(text, sizeof text, "memory %u", column);
    fprintf(to, "%*s", kColumn, text);
  }
  fprintf(to, "%*s\n", 10, "local");
  for (unsigned row = 0; row < nodes; ++row) {
    uint64_t all = 0;
    fprintf(to, "  CPUs of %-2u", row);
    for (unsigned column = 0; column < nodes; ++column) {
      uint64_t times = cell_of(session, kAllObjects, kind, row, column).times;
      all += times;
      fprintf(to, "%*s", kColumn, grouped(times, text));
    }
    fprintf(to, "  ");
    print_percent(to, cell_of(session, kAllObjects, kind, row, row).times, all);
    fprintf(to, "\n");
  }
  fprintf(to, "\n");
}

static void print_caches(const struct locality_session* session, FILE* to) {
  if (!session->caches) return;
  fprintf(to,
          "What reaches memory past a private cache of %" PRIu64
          " KiB (%u ways) a core and a shared one of %" PRIu64
          " KiB (%u ways) a node; lines of %u bytes.\n",
          session->private_shape.bytes >> 10, session->private_shape.ways,
          session->shared_shape.bytes >> 10, session->shared_shape.ways, session->line_bytes);
}

static void print_objects(const struct locality_session* session, FILE* to) {
  char text[kGrouped];
  fprintf(to, "%-32s%*s%*s     local\n", "object", kColumn, "loads", kColumn, "stores");
  for (unsigned object = 1; object <= session->objects.count; ++object) {
    unsigned number = object % session->objects.count;  // what is no object comes last
    struct share loads = {0, 0, 0, 0, 0};
    struct share stores = {0, 0, 0, 0, 0};
    add_to_share(session, (int)number, kLoads, &loads);
    add_to_share(session, (int)number, kStores, &stores);
    fprintf(to, "  %-30s", number ? session->objects.names[number] : "(everything else)");
    fprintf(to, "%*s", kColumn, grouped(loads.times, text));
    fprintf(to, "%*s  ", kColumn, grouped(stores.times, text));
    print_percent(to, loads.local_times + stores.local_times, loads.times + stores.times);
    fprintf(to, "\n");
  }
  if (session->objects.bad_lines > 0) {
    fprintf(to, "  %" PRIu64 " lines of the file of objects were not understood, or too many\n",
            session->objects.bad_lines);
  }
  fprintf(to, "\n");
}

static void print_checks(const struct locality_session* session, FILE* to) {
  for (unsigned node = 0; node < session->map.nodes; ++node) {
    if (session->check[node] == kWrong) {
      fprintf(to, "NODE %u IS NOT WHERE IT WAS EXPECTED: the counts above are not to be trusted.\n",
              node);
    }
  }
}

void locality_report_text(const struct locality_report* report, FILE* to) {
  const struct locality_session* session = report->session;
  char text[kGrouped];
  fprintf(to, "Locality of user code: %s by the node of the CPU (rows) and of the memory.\n",
          session->caches ? "cache lines fetched" : "accesses");
  print_caches(session, to);
  if (!report->complete) fprintf(to, "The machine ended before the command did.\n");
  fprintf(to, "\n");
  print_matrix(session, kLoads, session->caches ? "for loads" : "loads", to);
  print_matrix(session, kStores, session->caches ? "for stores" : "stores", to);
  if (session->caches) print_matrix(session, kWriteBacks, "write-backs", to);
  if (session->with_objects) print_objects(session, to);

  struct share share = share_of(session, kAllObjects);
  fprintf(to, "local: ");
  print_percent(to, share.local_times, share.times);
  fprintf(to, " of %s %s", grouped(share.times, text), session->caches ? "lines" : "accesses");
  if (!session->caches) {
    fprintf(to, ",");
    print_percent(to, share.local_bytes, share.bytes);
    fprintf(to, " of %s bytes", grouped(share.bytes, text));
  }
  fprintf(to, "\n");
  if (share.nowhere > 0) {
    fprintf(to, "in no node's memory: %s\n", grouped(share.nowhere, text));
  }
  print_checks(session, to);
}

// --- JSON --------------------------------------------------------------------------------------------

static void json_string(FILE* to, const char* text) {
  fputc('"', to);
  for (; *text; ++text) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      fprintf(to, "\\%c", c);
    } else if (c < 0x20 || c >= 0x7f) {
      // Names may hold bytes that are no UTF-8; as Latin-1 every byte is some character.
      fprintf(to, "\\u%04x", c);
    } else {
      fputc(c, to);
    }
  }
  fputc('"', to);
}

static void json_share(FILE* to, uint64_t part, uint64_t all) {
  if (all == 0) {
    fprintf(to, "null");
  } else {
    fprintf(to, "%.6f", (double)part / (double)all);
  }
}

// "loads": {"times": [[…]…], "bytes": [[…]…], "nowhere": […]}
static void json_matrix(const struct locality_session* session, int object, enum locality_kind kind,
                        const char* indent, FILE* to) {
  unsigned nodes = session->map.nodes;
  fprintf(to, "%s\"%s\": {", indent, kKindNames[kind]);
  for (int bytes = 0; bytes < 2; ++bytes) {
    fprintf(to, "\"%s\": [", bytes ? "bytes" : "times");
    for (unsigned row = 0; row < nodes; ++row) {
      for (unsigned column = 0; column < nodes; ++column) {
        struct locality_cell cell = cell_of(session, object, kind, row, column);
        fprintf(to, "%s%" PRIu64,
                column ? ", "
                : row  ? ", ["
                       : "[",
                bytes ? cell.bytes : cell.times);
      }
      fprintf(to, "]");
    }
    fprintf(to, "], ");
  }
  fprintf(to, "\"nowhere\": [");
  for (unsigned row = 0; row < nodes; ++row) {
    fprintf(to, "%s%" PRIu64, row ? ", " : "", cell_of(session, object, kind, row, nodes).times);
  }
  fprintf(to, "]}");
}

static void json_matrices(const struct locality_session* session, int object, const char* indent,
                          FILE* to) {
  struct share share = share_of(session, object);
  fprintf(to, "%s\"local_share\": ", indent);
  json_share(to, share.local_times, share.times);
  fprintf(to, ",\n%s\"local_share_of_bytes\": ", indent);
  json_share(to, share.local_bytes, share.bytes);
  fprintf(to, ",\n");
  json_matrix(session, object, kLoads, indent, to);
  fprintf(to, ",\n");
  json_matrix(session, object, kStores, indent, to);
  if (session->caches && object <= 0) {
    fprintf(to, ",\n");
    json_matrix(session, object, kWriteBacks, indent, to);
  }
}

static void json_caches(const struct locality_session* session, FILE* to) {
  if (!session->caches) {
    fprintf(to, "  \"caches\": null,\n");
    return;
  }
  fprintf(to,
          "  \"caches\": {\"line\": %u, \"private\": {\"bytes\": %" PRIu64
          ", \"ways\": %u}, \"shared\": {\"bytes\": %" PRIu64 ", \"ways\": %u}},\n",
          session->line_bytes, session->private_shape.bytes, session->private_shape.ways,
          session->shared_shape.bytes, session->shared_shape.ways);
}

static void json_objects(const struct locality_session* session, FILE* to) {
  fprintf(to, ",\n  \"objects\": [");
  // Last what is no object; its name is null.
  for (unsigned object = 1; object <= session->objects.count; ++object) {
    unsigned number = object % session->objects.count;
    fprintf(to, "%s\n    {\"name\": ", object > 1 ? "," : "");
    if (number) {
      json_string(to, session->objects.names[number]);
    } else {
      fprintf(to, "null");
    }
    fprintf(to, ", \"ranges\": [");
    bool first = true;
    for (size_t i = 0; number && i < session->objects.range_count; ++i) {
      const struct locality_range* range = &session->objects.ranges[i];
      if (range->object != number) continue;
      fprintf(to, "%s[%" PRIu64 ", %" PRIu64 "]", first ? "" : ", ", range->start,
              range->end - range->start);
      first = false;
    }
    fprintf(to, "],\n");
    json_matrices(session, (int)number, "     ", to);
    fprintf(to, "}");
  }
  fprintf(to, "],\n  \"objects_not_understood\": %" PRIu64, session->objects.bad_lines);
}

void locality_report_json(const struct locality_report* report, FILE* to) {
  static const char* const kChecks[] = {"unchecked", "right", "wrong"};
  const struct locality_session* session = report->session;
  const struct locality_address_map* map = &session->map;
  fprintf(to, "{\n  \"format\": \"bosk-locality\",\n  \"version\": 1,\n  \"run\": %u,\n",
          report->run);
  fprintf(to, "  \"complete\": %s,\n  \"nodes\": [", report->complete ? "true" : "false");
  for (unsigned node = 0; node < map->nodes; ++node) {
    fprintf(to, "%s\n    {\"memory\": %" PRIu64 ", \"check\": \"%s\", \"cpus\": [", node ? "," : "",
            map->start[node + 1] - map->start[node], kChecks[session->check[node]]);
    bool first = true;
    for (unsigned cpu = 0; cpu < map->cpus; ++cpu) {
      if (map->node_of_cpu[cpu] != node) continue;
      fprintf(to, "%s%u", first ? "" : ", ", cpu);
      first = false;
    }
    fprintf(to, "]}");
  }
  fprintf(to, "],\n");
  json_caches(session, to);
  fprintf(to, "  \"unit\": \"%s\",\n  \"device_accesses\": %" PRIu64 ",\n",
          session->caches ? "lines" : "accesses", session->io);
  json_matrices(session, kAllObjects, "  ", to);
  if (session->with_objects) json_objects(session, to);
  fprintf(to, "\n}\n");
}

// --- files -------------------------------------------------------------------------------------------

typedef void (*printer_t)(const struct locality_report* report, FILE* to);

static bool write_under(const struct locality_report* report, printer_t print, const char* path) {
  FILE* file = fopen(path, "we");
  if (!file) return false;
  print(report, file);
  bool good = !ferror(file);
  return fclose(file) == 0 && good;
}

bool locality_report_write(const struct locality_report* report, const char* folder) {
  char number[16] = "";
  if (report->run > 1) snprintf(number, sizeof number, "-%u", report->run);
  static const char* const kEndings[2] = {"txt", "json"};
  static const printer_t kPrinters[2] = {locality_report_text, locality_report_json};
  char names[2][PATH_MAX];
  char scratch[2][PATH_MAX + 4];
  if (strlen(folder) > PATH_MAX - 64) {
    errno = ENAMETOOLONG;
    return false;
  }
  bool good = true;
  for (int i = 0; i < 2; ++i) {
    snprintf(names[i], sizeof names[i], "%s/locality%s.%s", folder, number, kEndings[i]);
    snprintf(scratch[i], sizeof scratch[i], "%s.new", names[i]);
    good = good && write_under(report, kPrinters[i], scratch[i]);
  }
  for (int i = 0; i < 2 && good; ++i) good = rename(scratch[i], names[i]) == 0;
  if (good) return true;
  int error = errno;
  for (int i = 0; i < 2; ++i) unlink(scratch[i]);
  errno = error;
  return false;
}
