// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The QEMU plugin: between a BEGIN and an END (bosk/markers.h) it counts what user code loads and stores, by the
// node of the CPU and the node of the memory. docs/locality.md says what that means and where it ends.
//
//   -plugin liblocality.so,cpus=0-3/4-7,memory=1024/1024,out=FOLDER[,objects=FILE]
//           [,threads=1][,private=256K/8,shared=2M/16,line=64]
//
// Only user code is instrumented. In the kernel's code two things are: nothing at all, but for the
// instructions that drop translations of addresses (moves to CR0, CR3, CR4, INVLPG, INVPCID). Asking QEMU for
// the physical address of each access is what costs most; so every CPU keeps the translations of the pages
// that it used last, and forgets all of them at such an instruction, as a processor does. A page that moves to
// another node is seen there from then on.
//
// QEMU must run with thread=single: nothing here is locked.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bosk/markers.h>
#include "qemu_plugin_api.h"
#include "report.h"
#include "session.h"

enum { kPageShift = 12, kUserBits = 47, kPagesKept = 1024, kGenerationShift = 40 };
enum { kObjectsEvery = 1 << 16 };  // accesses between two looks at the file of objects
static const uint64_t kPageMask = (UINT64_C(1) << kPageShift) - 1;

struct page {
  uint64_t key;  // virtual page number and the CPU's generation; 0: nothing
  uint64_t address;
  uint32_t node;
};

struct cpu {
  uint64_t generation;  // goes up when translations are dropped; above kGenerationShift in keys
  struct page pages[kPagesKept];
};

// What the launcher lets us check: memory and CPU of `node`, between CHECK and CHECKED.
struct check {
  bool on;
  unsigned node;
  uint64_t right;
  uint64_t all;
};

static struct {
  struct locality_session session;
  struct cpu* cpus;
  bool ask_qemu_for_cpu;  // see running_cpu()
  void** vcpus;           // QEMU's own records of its CPUs, by index
  void* last_vcpu;
  unsigned last_index;
  bool counting;
  unsigned run;
  unsigned until_objects;
  struct check check;
  char* folder;
  char* objects_path;
  qemu_plugin_insn_data_pointer_t code_pointer;  // one of the two
  qemu_plugin_insn_data_copy_t code_copy;
} plugin;

// QEMU 10 takes no plugin of version 1, and QEMU 7.2 none of a later one. What we use is the same in both,
// so we say what the QEMU at hand wants to hear, before it asks.
int qemu_plugin_version = 1;
__attribute__((constructor)) static void choose_version(void) {
  if (!dlsym(RTLD_DEFAULT, "qemu_plugin_n_vcpus")) qemu_plugin_version = 2;  // gone since version 2
}

// --- CPUs --------------------------------------------------------------------------------------------

// From QEMU 10 on, blocks translated under thread=single carry the number of the CPU that met them first,
// whichever CPU runs them (its plugin-gen.c takes "not parallel" for "one CPU"). So we look at QEMU's own
// variable. It is not part of the plugin interface; the launcher's check of the nodes tells if it fails us.
static unsigned running_cpu(unsigned given) {
  if (!plugin.ask_qemu_for_cpu) return given;
  static __thread void** current __attribute__((tls_model("initial-exec")));
  if (!current && !(current = dlsym(RTLD_DEFAULT, "current_cpu"))) return given;
  if (*current == plugin.last_vcpu) return plugin.last_index;
  for (unsigned cpu = 0; cpu < plugin.session.map.cpus; ++cpu) {
    if (plugin.vcpus[cpu] != *current) continue;
    plugin.last_vcpu = *current;
    return plugin.last_index = cpu;
  }
  return given;
}

// Called when the first block is translated: all CPUs are there by then.
static void learn_vcpus(void) {
  typedef void* (*get_cpu_t)(int index);
  get_cpu_t get_cpu = (get_cpu_t)dlsym(RTLD_DEFAULT, "qemu_get_cpu");
  plugin.ask_qemu_for_cpu = false;
  if (!get_cpu || !dlsym(RTLD_DEFAULT, "current_cpu")) return;
  plugin.vcpus = calloc(plugin.session.map.cpus, sizeof *plugin.vcpus);
  if (!plugin.vcpus) return;
  for (unsigned cpu = 0; cpu < plugin.session.map.cpus; ++cpu)
    plugin.vcpus[cpu] = get_cpu((int)cpu);
  plugin.ask_qemu_for_cpu = true;
}

// --- pages -------------------------------------------------------------------------------------------

static void forget_pages(unsigned given, void* unused) {
  (void)unused;
  unsigned index = running_cpu(given);
  if (index >= plugin.session.map.cpus) return;
  struct cpu* cpu = &plugin.cpus[index];
  if (++cpu->generation >> (64 - kGenerationShift)) {
    cpu->generation = 1;
    memset(cpu->pages, 0, sizeof cpu->pages);
  }
}

// The page of an access; NULL for a device, and where QEMU does not know.
static const struct page* page_of(unsigned cpu_index, qemu_plugin_meminfo_t info,
                                  uint64_t address) {
  struct cpu* cpu = &plugin.cpus[cpu_index];
  uint64_t number = address >> kPageShift;
  struct page* page = &cpu->pages[number % kPagesKept];
  uint64_t key = cpu->generation << kGenerationShift | number;
  if (page->key == key) return page;

  const struct qemu_plugin_hwaddr* where = qemu_plugin_get_hwaddr(info, address);
  if (!where || qemu_plugin_hwaddr_is_io(where)) return NULL;
  page->key = key;
  page->address = qemu_plugin_hwaddr_phys_addr(where) & ~kPageMask;
  page->node = locality_node_of(&plugin.session.map, page->address);
  return page;
}

// --- accesses ----------------------------------------------------------------------------------------

static void check_access(unsigned cpu, const struct page* page) {
  struct check* check = &plugin.check;
  ++check->all;
  check->right +=
      page && page->node == check->node && plugin.session.map.node_of_cpu[cpu] == check->node;
}

static void look_at_objects(void) {
  plugin.until_objects = kObjectsEvery;
  locality_objects_read(&plugin.session.objects, plugin.objects_path);
}

static void on_access(unsigned given, qemu_plugin_meminfo_t info, uint64_t address, void* unused) {
  (void)unused;
  if (!plugin.counting && !plugin.check.on) return;
  unsigned cpu = running_cpu(given);
  // An instruction of the user's that faults leaves its instrumentation on for what the processor does then.
  if (address >> kUserBits || cpu >= plugin.session.map.cpus) return;
  const struct page* page = page_of(cpu, info, address);
  if (plugin.check.on) {
    check_access(cpu, page);
    return;
  }
  if (!page) {
    ++plugin.session.io;
    return;
  }
  struct locality_session* session = &plugin.session;
  if (session->with_objects && --plugin.until_objects == 0) look_at_objects();
  locality_session_access(session, cpu, address, page->address | (address & kPageMask), page->node,
                          1U << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info));
}

// --- markers -----------------------------------------------------------------------------------------

static void begin(void) {
  if (!plugin.counting) ++plugin.run;
  locality_session_reset(&plugin.session);
  if (plugin.session.with_objects) look_at_objects();
  plugin.counting = true;
}

static void end(bool complete) {
  if (!plugin.counting) return;
  plugin.counting = false;
  if (plugin.session.with_objects) look_at_objects();
  struct locality_report report = {&plugin.session, plugin.run, complete};
  if (!locality_report_write(&report, plugin.folder)) {
    fprintf(stderr, "bosk lab: cannot write the locality to %s: %s\n", plugin.folder,
            strerror(errno));
  }
}

static void end_check(void) {
  struct check* check = &plugin.check;
  if (!check->on) return;
  check->on = false;
  // Some accesses around the marks are to the stack, wherever that is.
  bool right = check->all >= 64 && check->right >= check->all / 4 * 3;
  plugin.session.check[check->node] = right ? kRight : kWrong;
}

static void on_mark(unsigned cpu, void* data) {
  (void)cpu;
  unsigned code = (unsigned)(uintptr_t)data;
  if (code == BOSK_LAB_BEGIN) {
    begin();
  } else if (code == BOSK_LAB_END) {
    end(true);
  } else if (code == BOSK_LAB_OBJECTS) {
    if (plugin.counting && plugin.session.with_objects) look_at_objects();
  } else if (code == BOSK_LAB_CHECKED) {
    end_check();
  } else if (code >= BOSK_LAB_CHECK(0) && code < BOSK_LAB_CHECK(plugin.session.map.nodes)) {
    plugin.check = (struct check){.on = true, .node = code - BOSK_LAB_CHECK(0)};
  }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void* unused) {
  (void)id, (void)unused;
  end(false);
}

// --- translation -------------------------------------------------------------------------------------

enum { kLongestCode = 15 };

// Copies the instruction's bytes; returns how many.
static size_t code_of(const struct qemu_plugin_insn* instruction, uint8_t code[kLongestCode]) {
  size_t size = qemu_plugin_insn_size(instruction);
  if (size > kLongestCode) size = kLongestCode;
  if (plugin.code_copy) return plugin.code_copy(instruction, code, size);
  memcpy(code, plugin.code_pointer(instruction), size);
  return size;
}

// The code of a marker, or 0.
static unsigned mark_of(const uint8_t* code, size_t size) {
  if (size != 7 || code[0] != 0x0f || code[1] != 0x1f || code[2] != 0x80) return 0;
  uint32_t operand;
  memcpy(&operand, code + 3, sizeof operand);
  if ((operand & ~(uint32_t)BOSK_LAB_MARK_MASK) != BOSK_LAB_MARK_BASE) return 0;
  return operand & BOSK_LAB_MARK_MASK;
}

static bool drops_translations(const uint8_t* code, size_t size) {
  size_t at = 0;
  unsigned rex = 0;
  while (at < size && (code[at] == 0x66 || code[at] == 0xf2 || code[at] == 0xf3)) ++at;
  if (at < size && (code[at] & 0xf0) == 0x40) rex = code[at++];
  if (at + 2 >= size || code[at] != 0x0f) return false;
  unsigned reg = code[at + 2] >> 3 & 7;
  switch (code[at + 1]) {
    case 0x22:  // mov to a control register; with REX.R it is CR8, the priority
      return !(rex & 4) && (reg == 0 || reg == 3 || reg == 4);
    case 0x01:  // invlpg has an operand in memory
      return reg == 7 && code[at + 2] >> 6 != 3;
    case 0x38:  // invpcid
      return code[at + 2] == 0x82;
    default:
      return false;
  }
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  if (plugin.ask_qemu_for_cpu && !plugin.vcpus) learn_vcpus();
  bool user = qemu_plugin_tb_vaddr(block) >> kUserBits == 0;
  size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    uint8_t code[kLongestCode];
    size_t size = code_of(instruction, code);
    if (user) {
      unsigned mark = mark_of(code, size);
      if (mark) {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                                               (void*)(uintptr_t)mark);
      }
      // Loads and stores together: QEMU 7.2 takes the one for the other when asked for one kind.
      qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                       QEMU_PLUGIN_MEM_RW, NULL);
    } else if (drops_translations(code, size)) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, forget_pages, QEMU_PLUGIN_CB_NO_REGS,
                                             NULL);
    }
  }
}

// --- start -------------------------------------------------------------------------------------------

static int refuse(const char* what, const char* which) {
  fprintf(stderr, "bosk lab: locality plugin: %s%s\n", what, which);
  return 1;
}

// "256K/8": bytes, and ways.
static bool parse_shape(const char* text, struct locality_cache_shape* shape) {
  char* end;
  uint64_t bytes = strtoull(text, &end, 10);
  if (*end == 'K') bytes <<= 10;
  if (*end == 'M') bytes <<= 20;
  if (*end == 'K' || *end == 'M') ++end;
  if (bytes == 0 || *end != '/') return false;
  shape->bytes = bytes;
  shape->ways = (unsigned)strtoul(end + 1, &end, 10);
  return *end == '\0' && shape->ways > 0;
}

// The value if the argument is NAME=value, else NULL.
static const char* value_of(const char* argument, const char* name) {
  size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1
                                                                         : NULL;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
  const char* cpus = "";
  const char* memory = "";
  struct locality_cache_shape private_shape = {0, 0};
  struct locality_cache_shape shared_shape = {0, 0};
  unsigned line = 64;
  unsigned threads = 1;
  for (int i = 0; i < argc; ++i) {
    const char* value;
    if ((value = value_of(argv[i], "cpus"))) {
      cpus = value;
    } else if ((value = value_of(argv[i], "memory"))) {
      memory = value;
    } else if ((value = value_of(argv[i], "out"))) {
      plugin.folder = strdup(value);
    } else if ((value = value_of(argv[i], "objects"))) {
      plugin.objects_path = strdup(value);
    } else if ((value = value_of(argv[i], "threads"))) {
      threads = (unsigned)strtoul(value, NULL, 10);
    } else if ((value = value_of(argv[i], "line"))) {
      line = (unsigned)strtoul(value, NULL, 10);
    } else if ((value = value_of(argv[i], "private"))) {
      if (!parse_shape(value, &private_shape)) return refuse("not BYTES/WAYS: ", argv[i]);
    } else if ((value = value_of(argv[i], "shared"))) {
      if (!parse_shape(value, &shared_shape)) return refuse("not BYTES/WAYS: ", argv[i]);
    } else {
      return refuse("unknown argument ", argv[i]);
    }
  }
  if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
    return refuse("made for whole machines of x86_64 only", "");
  }
  if (!plugin.folder) return refuse("out=FOLDER is missing", "");

  struct locality_address_map map;
  const char* wrong = locality_map_parse(&map, cpus, memory);
  if (wrong) return refuse(wrong, "");
  if (threads == 0) return refuse("threads: there is none", "");
  map.threads = threads;
  if ((int)map.cpus < info->system.max_vcpus) return refuse("cpus: fewer than the machine has", "");
  locality_map_use(&map, info->version.cur < 2 ? kBlockOffsets : kGuestPhysical);
  plugin.ask_qemu_for_cpu = info->version.cur >= 2;
  if (!locality_session_init(&plugin.session, &map, plugin.objects_path != NULL, line,
                             private_shape, shared_shape)) {
    return refuse("impossible caches (or no memory)", "");
  }
  plugin.cpus = calloc(map.cpus, sizeof *plugin.cpus);
  if (!plugin.cpus) return refuse("no memory", "");
  for (unsigned cpu = 0; cpu < map.cpus; ++cpu) plugin.cpus[cpu].generation = 1;

  void* code = dlsym(RTLD_DEFAULT, "qemu_plugin_insn_data");
  if (!code) return refuse("this QEMU shows no instructions to plugins", "");
  if (info->version.cur < 3) {
    plugin.code_pointer = (qemu_plugin_insn_data_pointer_t)code;
  } else {
    plugin.code_copy = (qemu_plugin_insn_data_copy_t)code;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
  return 0;
}
