// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the plugin needs of QEMU's plugin interface, declared in our own words: no Debian package ships
// QEMU's header. Only names, types and argument orders are here. They are the same from interface
// version 1 (QEMU 7.2) to 4 (QEMU 10), but for qemu_plugin_insn_data, which is looked up by name.
#ifndef BOSK_LAB_QEMU_PLUGIN_API_H
#define BOSK_LAB_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;  // one access: ask the functions below

struct qemu_plugin_tb;      // a block of instructions that QEMU is translating
struct qemu_plugin_insn;    // one of them
struct qemu_plugin_hwaddr;  // where an access went

typedef struct {
  const char* target_name;
  struct {
    int min;  // the interface versions that this QEMU takes
    int cur;
  } version;
  bool system_emulation;
  struct {
    int smp_vcpus;
    int max_vcpus;
  } system;
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };  // a callback that reads no register
enum qemu_plugin_mem_rw {
  QEMU_PLUGIN_MEM_R = 1,
  QEMU_PLUGIN_MEM_W = 2,
  QEMU_PLUGIN_MEM_RW = 3,
};

typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb* block);
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t id, void* data);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned cpu, void* data);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned cpu, qemu_plugin_meminfo_t info,
                                          uint64_t address, void* data);

// What QEMU calls.
__attribute__((visibility("default"))) extern int qemu_plugin_version;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info, int argc,
                                                               char** argv);

// What QEMU offers.
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           qemu_plugin_vcpu_tb_trans_cb_t call);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t call, void* data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction,
                                            qemu_plugin_vcpu_udata_cb_t call,
                                            enum qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn* instruction,
                                      qemu_plugin_vcpu_mem_cb_t call,
                                      enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw which, void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn* instruction);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
// Valid until the next call on this kernel thread.
struct qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr* where);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr* where);

// qemu_plugin_insn_data up to interface version 2, and since 3.
typedef const void* (*qemu_plugin_insn_data_pointer_t)(const struct qemu_plugin_insn* instruction);
typedef size_t (*qemu_plugin_insn_data_copy_t)(const struct qemu_plugin_insn* instruction, void* to,
                                               size_t length);

#endif
