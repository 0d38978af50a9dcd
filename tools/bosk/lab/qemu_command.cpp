// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which options, and why these: docs/lab.md, "Under the bonnet".
#include "bosk/lab/qemu_command.h"

#include <fmt/format.h>

#include "protocol.h"

namespace bosk::tools::lab {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

/// In the values of QEMU's options a comma is written twice.
std::string escaped(const std::string& value) {
  std::string result;
  for (const char c : value) {
    result += c;
    if (c == ',') result += ',';
  }
  return result;
}

using Words = std::vector<std::string>;

void add_machine(const Shape& shape, bool hmat, Words* words) {
  // One host thread: guests that spin on several make no progress on two CPUs. cx16: QEMU 7.2's
  // cmpxchg16b returns wrong flags, and kernels then hang.
  words->insert(words->end(),
                {"-accel", "tcg,thread=single", "-machine", hmat ? "q35,hmat=on" : "q35", "-cpu",
                 "max,cx16=off", "-smp",
                 fmt::format("{},sockets={},dies={},cores={},threads={}", shape.cpus(),
                             shape.packages, shape.dies, shape.cores, shape.threads),
                 "-m", fmt::format("{}M", shape.bytes() / kMib)});
}

void add(Words* words, const std::string& option, const std::string& value) {
  words->push_back(option);
  words->push_back(value);
}

/// The node whose CPUs are beside a node: itself, or the nearest that has some.
size_t initiator_of(const Shape& shape, size_t node) {
  if (shape.nodes[node].beside) return *shape.nodes[node].beside;
  size_t best = 0;
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    if (shape.nodes[i].cpus == 0) continue;
    if (i == node) return i;
    if (shape.distances[i][node] < shape.distances[best][node]) best = i;
  }
  return best;
}

void add_nodes(const Shape& shape, bool hmat, Words* words) {
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    const NodeShape& node = shape.nodes[i];
    std::string text = fmt::format("node,nodeid={}", i);
    if (node.cpus > 0) {
      text += fmt::format(",cpus={}-{}", node.first_cpu, node.first_cpu + node.cpus - 1);
    }
    if (node.bytes > 0) {
      add(words, "-object",
          fmt::format("memory-backend-ram,id=m{},size={}M", i, node.bytes / kMib));
      text += fmt::format(",memdev=m{}", i);
    }
    if (hmat && node.bytes > 0) text += fmt::format(",initiator={}", initiator_of(shape, i));
    add(words, "-numa", text);
  }
  for (size_t from = 0; from < shape.nodes.size(); ++from) {
    for (size_t to = 0; to < shape.nodes.size(); ++to) {
      add(words, "-numa",
          fmt::format("dist,src={},dst={},val={}", from, to, shape.distances[from][to]));
    }
  }
}

/// ACPI's HMAT: what each node's memory gives to the CPUs beside it. Linux shows only that.
void add_bandwidths(const Shape& shape, Words* words) {
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    if (shape.nodes[i].bytes == 0) continue;
    for (size_t from = 0; from < shape.nodes.size(); ++from) {
      if (shape.nodes[from].cpus == 0) continue;
      const bool local = from == initiator_of(shape, i);
      const std::string place =
          fmt::format("hmat-lb,initiator={},target={},hierarchy=memory,", from, i);
      // Latencies must be told, too; nobody here can measure one.
      add(words, "-numa",
          place + fmt::format("data-type=access-latency,latency={}", local ? 10 : 20));
      const uint64_t bandwidth = shape.nodes[i].bandwidth_mib;
      add(words, "-numa",
          place + fmt::format("data-type=access-bandwidth,bandwidth={}M",
                              local ? bandwidth : bandwidth / 2));
    }
  }
}

void add_channel(Words* words, const std::string& id, int descriptor) {
  add(words, "-chardev", fmt::format("socket,id={},fd={}", id, descriptor));
}

void add_port(Words* words, const std::string& id, int descriptor, const char* name) {
  add_channel(words, id, descriptor);
  add(words, "-device", fmt::format("virtserialport,bus=serial.0,chardev={},name={}", id, name));
}

void add_devices(const QemuCommand& command, Words* words) {
  const Channels& channels = command.channels;
  words->insert(words->end(), {"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"});
  add_channel(words, "console", channels.console);
  add(words, "-serial", "chardev:console");
  add(words, "-device", "virtio-serial-pci,id=serial");
  add_port(words, "control", channels.control, LAB_PORT_CONTROL);
  add_port(words, "input", channels.input, LAB_PORT_STDIN);
  add_port(words, "output", channels.output, LAB_PORT_STDOUT);
  add_port(words, "error", channels.error, LAB_PORT_STDERR);
  // multidevs: the host's root is many file systems, whose inode numbers would collide.
  add(words, "-virtfs",
      "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap");
  for (const WritableFolder& folder : command.writable) {
    add(words, "-virtfs",
        fmt::format("local,path={},mount_tag={},security_model=none,multidevs=remap",
                    escaped(folder.path), folder.tag));
  }
}

/// Three seconds of a start on 64 CPUs are what this kernel does not do.
std::string kernel_words(const QemuCommand& command) {
  std::string words =
      "console=ttyS0 quiet panic=-1 "
      // Emulated timers are late on a loaded host; clocks need not be compared with one another.
      "no_timer_check tsc=reliable lpj=10000000 "
      // There is nobody to be protected from.
      "mitigations=off nokaslr audit=0 apparmor=0 selinux=0 random.trust_cpu=on "
      "cryptomgr.notests nowatchdog rcupdate.rcu_expedited=1";
  if (!command.more_kernel_words.empty()) words += " " + command.more_kernel_words;
  return words;
}

}  // namespace

std::vector<std::string> qemu_words(const QemuCommand& command) {
  Words words = {command.program};
  bool bandwidths = false;
  bool memory_only = false;
  for (const NodeShape& node : command.shape.nodes) {
    bandwidths |= node.bandwidth_mib != 0;
    memory_only |= node.cpus == 0;
  }
  // HMAT also tells which CPUs a node without CPUs is beside.
  add_machine(command.shape, bandwidths || memory_only, &words);
  add_nodes(command.shape, bandwidths || memory_only, &words);
  if (bandwidths) add_bandwidths(command.shape, &words);
  add_devices(command, &words);
  add(&words, "-kernel", command.kernel.image.string());
  add(&words, "-initrd", command.initramfs);
  add(&words, "-append", kernel_words(command));
  words.insert(words.end(), command.extra.words.begin(), command.extra.words.end());
  return words;
}

}  // namespace bosk::tools::lab
