// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/acting/wish_file.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <utility>

#include "observed/hand_over.h"

namespace bosk::affinity {
namespace {

using Word = std::atomic_ref<uint32_t>;

uint32_t get(uint32_t& of) { return Word(of).load(std::memory_order_relaxed); }
void put(uint32_t& of, uint32_t value) { Word(of).store(value, std::memory_order_relaxed); }

}  // namespace

WishFile::WishFile(FileDescriptor file, bosk_wishes* words)
    : file_(std::move(file)), words_(words) {}

WishFile::~WishFile() { munmap(words_, sizeof *words_); }

std::unique_ptr<WishFile> WishFile::make() {
  FileDescriptor file(memfd_create("bosk-wishes", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.number(), sizeof(bosk_wishes)) != 0) return nullptr;
  // Nobody whom it is given to may take our memory away.
  if (fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return nullptr;
  void* words =
      mmap(nullptr, sizeof(bosk_wishes), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (words == MAP_FAILED) return nullptr;
  return std::unique_ptr<WishFile>(new WishFile(std::move(file), static_cast<bosk_wishes*>(words)));
}

bool WishFile::send(const FileDescriptor& socket) const {
  char byte = 0;
  iovec text = {&byte, 1};
  alignas(cmsghdr) char with[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = with;
  message.msg_controllen = sizeof with;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = file_.number();
  std::memcpy(CMSG_DATA(header), &number, sizeof number);
  return sendmsg(socket.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void WishFile::ring() {
  // release: who is woken sees what was wished.
  Word(words_->news).fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &words_->news, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void WishFile::read() {
  members_.clear();
  cpus_.clear();
  const uint32_t seats = get(words_->seats);
  const uint32_t team = get(words_->team);
  // Whatever it writes, no more than there is.
  if (seats > BOSK_MOST_SEATS || team > seats || team < 2) return;
  for (uint32_t i = 0; i < seats; ++i) {
    bosk_seat& seat = words_->seat[i];
    const uint32_t member = get(seat.member);
    if (member < team) members_[get(seat.thread)] = member;
    if (i < team) cpus_.push_back(get(seat.cpu));
  }
}

uint32_t WishFile::member_of(uint32_t thread) const {
  const auto at = members_.find(thread);
  return at == members_.end() ? kNobody : at->second;
}

void WishFile::wish(std::span<const uint32_t> cpus) {
  bool is_new = get(words_->wished) != cpus.size();
  for (size_t member = 0; member < cpus.size(); ++member) {
    is_new = is_new || get(words_->wish[member]) != cpus[member];
    put(words_->wish[member], cpus[member]);
  }
  put(words_->wished, static_cast<uint32_t>(cpus.size()));
  if (is_new) ring();
}

}  // namespace bosk::affinity
