// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C++ face of bosk/memory.h (C++17, header only): memory of a node, or near the caller, for containers.
//
// ```cpp
// bosk::node_resource on_node{node};
// std::pmr::vector<double> matrix{n * n, &on_node};      // the resource must outlive it
// std::vector<double, bosk::allocator<double>> here(n);  // near whoever allocates
// bosk::area stripe{matrix.data(), bytes};               // registered as long as it lives: declare it behind the memory
// stripe.attach(thread, BOSK_MEM_WRITES);
// bosk::area::existing(block).migrate(node);             // what is an area already, by whomever
// ```
//
// What cannot be done is thrown: std::bad_alloc by allocators, std::system_error of bosk::error_category() by others.
#ifndef BOSK_MEMORY_HPP
#define BOSK_MEMORY_HPP

#include <bosk/memory.h>
#include <bosk/bosk.hpp>

#include <cstddef>
#include <memory_resource>
#include <new>

namespace bosk {

/// Blocks of any alignment from heaps near the caller; blocks of one resource may be given back to another.
class heap_resource : public std::pmr::memory_resource {
 protected:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* block = alignment <= 16 ? bosk_malloc(bytes) : bosk_aligned_alloc(alignment, bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override { bosk_free(block); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return dynamic_cast<const heap_resource*>(&other) != nullptr;
  }
};

/// The same, from one node.
class node_resource final : public heap_resource {
 public:
  /// Throws if the node does not exist or has no memory for the process.
  explicit node_resource(int node) : node_(node) {
    void* block = bosk_malloc_on(1, node);
    if (block == nullptr)
      throw std::system_error(BOSK_ENODE, error_category(), "bosk::node_resource");
    bosk_free(block);
  }
  int node() const noexcept { return node_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (alignment <= 16) {
      if (void* block = bosk_malloc_on(bytes, node_)) return block;
      throw std::bad_alloc();
    }
    bosk_mem_attr_t attr;
    bosk_mem_attr_init(&attr);
    attr.policy = BOSK_MEM_ON_NODE;
    attr.node = static_cast<std::uint32_t>(node_);
    attr.alignment = alignment;
    void* block;
    if (bosk_mem_alloc(&block, bytes != 0 ? bytes : 1, &attr) != BOSK_OK) throw std::bad_alloc();
    return block;
  }

  int node_;
};

/// Near whoever allocates. Stateless: all of them are equal.
template <class T>
struct allocator {
  using value_type = T;

  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    void* block = alignof(T) <= 16 ? bosk_malloc(count * sizeof(T))
                                   : bosk_aligned_alloc(alignof(T), count * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t) noexcept { bosk_free(block); }

  template <class U>
  friend bool operator==(const allocator&, const allocator<U>&) noexcept {
    return true;
  }
  template <class U>
  friend bool operator!=(const allocator&, const allocator<U>&) noexcept {
    return false;
  }
};

/// What the bubble's threads work on is not what it was: true if threads or memory move because of it, now or as
/// soon as they can (bosk_mem_redecide()).
inline bool redecide(const bubble& of, bosk_mem_when when = BOSK_MEM_AT_ONCE) {
  const int result = bosk_mem_redecide(of.native_handle(), when);
  if (result < 0) check(result, "bosk_mem_redecide");
  return result == 1;
}

/// Memory that is registered as long as this lives: the program's own, or a whole block that was allocated here, small or
/// large; or an area that somebody else has made, and who made it ends it.
class area {
 public:
  /// Throws what bosk_mem_register() says; BOSK_EOVERLAP if some of it is registered already.
  area(void* begin, std::size_t bytes) : begin_(begin), registered_(true) {
    check(bosk_mem_register(begin, bytes), "bosk_mem_register");
  }
  /// The area that the address is in (from bosk_mem_alloc(), bosk_mem_split(), a registration elsewhere). It stays one when
  /// this goes, and this must not outlive it. Throws BOSK_ENOAREA if there is none.
  static area existing(const void* address) {
    bosk_mem_area_t known{};
    known.size = sizeof known;
    check(bosk_mem_area(address, &known), "bosk_mem_area");
    return area(known.begin);
  }
  ~area() {
    if (registered_) bosk_mem_unregister(begin_);
  }
  area(const area&) = delete;
  area& operator=(const area&) = delete;

  void* begin() const noexcept { return begin_; }
  void attach(bosk_thread_t thread, int use = BOSK_MEM_READS_AND_WRITES,
              std::uint32_t times = BOSK_UNKNOWN) {
    check(bosk_mem_attach_thread(begin_, thread, use, times), "bosk_mem_attach_thread");
  }
  void attach(bosk_bubble_t bubble, int use = BOSK_MEM_READS_AND_WRITES,
              std::uint32_t times = BOSK_UNKNOWN) {
    check(bosk_mem_attach_bubble(begin_, bubble, use, times), "bosk_mem_attach_bubble");
  }
  void migrate(int node) { check(bosk_mem_migrate(begin_, node, nullptr), "bosk_mem_migrate"); }
  /// False: this memory or this system cannot do it.
  bool next_touch(int flags = 0) {
    const int result = bosk_mem_next_touch(begin_, 0, flags);
    if (result == BOSK_ENOTSUP) return false;
    check(result, "bosk_mem_next_touch");
    return true;
  }

 private:
  explicit area(void* begin) noexcept : begin_(begin), registered_(false) {}

  void* begin_;
  bool registered_;
};

}  // namespace bosk
#endif
