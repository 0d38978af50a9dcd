// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/hellos.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "observed/hand_over.h"

namespace bosk::affinity {
namespace {

/// Those that come at once, as the processes of a shell's pipeline or of `make -j` do, between two looks of ours. The kernel takes less.
constexpr int kBacklog = 4096;

std::string fresh_name() {
  std::random_device random;
  return "bosk-observer-" + std::to_string(getpid()) + "-" + std::to_string(random());
}

void poll_also(const FileDescriptor& poll, const FileDescriptor& other) {
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  epoll_ctl(poll.number(), EPOLL_CTL_ADD, other.number(), &wanted);
}

}  // namespace

Hellos::Hellos()
    : name_(fresh_name()),
      listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      poll_(epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name_.data(), name_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  if (!listener_ || !poll_ ||
      bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener_.number(), kBacklog) != 0)
    throw std::system_error(errno, std::system_category(), "a socket for the program to observe");
  poll_also(poll_, listener_);
}

void Hellos::accept_all() {
  for (;;) {
    FileDescriptor peer(
        accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (!peer) return;
    ucred who = {};
    socklen_t size = sizeof who;
    if (getsockopt(peer.number(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) continue;
    if (who.uid != geteuid() && geteuid() != 0) continue;
    poll_also(poll_, peer);
    peers_.push_back({who.pid, std::move(peer)});
  }
}

std::optional<Hellos::Hello> Hellos::next() {
  accept_all();
  for (auto at = peers_.begin(); at != peers_.end();) {
    bosk_observed_message text = {};
    iovec into = {&text, sizeof text};
    alignas(cmsghdr) char with[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = with;
    message.msg_controllen = sizeof with;
    const ssize_t got = recvmsg(at->socket.number(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      ++at;
      continue;
    }
    Hello hello = {at->process, FileDescriptor(), text.error, text.kind, std::move(at->socket)};
    at = peers_.erase(at);
    // Whatever came is ours to close, also with a message that is none.
    const cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
      hello.userfaultfd = FileDescriptor(descriptor);
    }
    if (got != sizeof text || text.version != BOSK_OBSERVED_VERSION) continue;
    if (hello.kind == BOSK_OBSERVED_HELLO) hello.waits = FileDescriptor();
    if (!hello.userfaultfd && hello.error == 0) hello.error = EBADF;
    return hello;
  }
  return std::nullopt;
}

}  // namespace bosk::affinity
