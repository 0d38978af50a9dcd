/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   Memory that follows its threads: which memory there is, who works on it, on which NUMA node it lies.

   An *area* is a range of memory that the manager knows: one that the program registered (its own arrays,
   globals, parts of stacks), or one that was allocated here. Areas never overlap. *Attaching* an area to a
   thread or bubble says that it works on it, how, and how often; bytes per node of all that is attached to an entity
   are its *footprint*, which policies and statistics see. The ideas are those of F. Broquedis, N. Furmento, B. Goglin,
   P.-A. Wacrenier, R. Namyst, "ForestGOMP: An Efficient OpenMP Environment for NUMA Architectures" (2009), here
   "2009"; docs/memory.md tells them in order.

   Every function may be called by any thread of the process at any time, not in a signal handler. It returns 0 or
   more, or a code of bosk/error.h, and has changed nothing then; hints can never make a program wrong. Nodes have the
   numbers of bosk/topology.h. Wherever an address is asked for, any address in the area will do, unless the
   function says that the area must begin there. BOSK_ENOMEM can come from all of them: there is no memory for
   the books, or no thread to read the machine. Sizes are in bytes, page sizes the system's. */
#ifndef BOSK_MEMORY_H
#define BOSK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <bosk/bosk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- areas (2009 section 3.2) ------------------------------------------------------------------------ */

/** How the pages of an area find their nodes. */
enum bosk_mem_policy {
  BOSK_MEM_DEFAULT = 0,      /* as the system does it: usually first touch */
  BOSK_MEM_ON_NODE = 1,      /* on one node */
  BOSK_MEM_LEAST_LOADED = 2, /* on the node that had most free memory when it was allocated */
  BOSK_MEM_INTERLEAVED = 3,  /* page by page, or block by block, over nodes in turn */
  BOSK_MEM_WEIGHTED = 4,     /* over nodes, in proportion to their bandwidths */
  BOSK_MEM_FIRST_TOUCH = 5,  /* on the node of whichever thread touches a page first */
  BOSK_MEM_NEXT_TOUCH = 6    /* on that of whichever touches it next */
};

/** Makes the range an area: it stays the program's, who frees it after bosk_mem_unregister(). Need not begin or
    end with a page; what is moved are all pages that it touches. Looks at its pages, 4,096 of them at
    most: some 0.4 us a page on machines of several nodes, nothing on others. Blocks that were allocated here can be registered
    like any memory, whatever their size: one of more than 1 MiB, or of bosk_mem_alloc(), is an area of whole pages from its beginning
    and is adopted, all of it (or a part that bosk_mem_split() has made), from `begin` into its last page.
    BOSK_EINVAL: null, empty or past the end of memory; BOSK_EUNMAPPED; BOSK_EOVERLAP: a part of it is registered already, or it
    is some part only of such a block. */
int bosk_mem_register(void* begin, size_t bytes);

/** The registered area that begins there is none any more; nothing is attached to it then. Its pages stay where they
    are. An adopted one is as before it was registered: an area, with nothing attached, until it is freed. BOSK_ENOAREA: no
    registered one begins there. */
int bosk_mem_unregister(void* begin);

/** Cuts the area that begins there into `parts` areas of as equal numbers of pages as there can be. All that
    was attached to it is attached to each. Their addresses are in begins[0 ... parts-1], unless `begins` is null.
    Each is then unregistered, or freed, by itself. BOSK_ENOAREA: none begins there; BOSK_EINVAL: fewer than two
    parts, or more than it has pages. */
int bosk_mem_split(void* begin, size_t parts, void** begins);

/** What is known of an area. */
typedef struct bosk_mem_area {
  size_t size; /* set by the caller: sizeof(bosk_mem_area_t) */
  void* begin;
  size_t bytes;
  uint32_t policy;    /* enum bosk_mem_policy */
  uint32_t node;      /* that it was put on or moved to as a whole; BOSK_UNKNOWN: none */
  uint32_t allocated; /* 1: pages that were allocated here; 0: registered only */
  uint32_t attached;  /* how many threads and bubbles it is attached to */
  uint64_t huge_page; /* size of the reserved huge pages it consists of; 0: ordinary pages */
} bosk_mem_area_t;

/** The area that the address is in. Takes no lock, unless an entity has ended since anything was
    attached or detached; 10^5 areas: 0.1 us. BOSK_ENOAREA: it is in none; BOSK_EINVAL:
    null, or a size that no version had. */
int bosk_mem_area(const void* address, bosk_mem_area_t* area);

/** How many bytes of the area lie on each node, as far as known: bytes[0 ... nodes-1]. Known is what was found when it
    was registered, last moved or last looked at; if next-touch has brought anything since then, this looks again (0.4 us a
    page, 1.5 ms at the most an area). Under a policy that minds memory areas that are attached are looked at by and by
    (docs/memory.md). Returns how many nodes there are. Codes as bosk_mem_area(). */
int bosk_mem_area_nodes(const void* address, uint64_t* bytes, int nodes);

/** Looks at the area's pages again, now: 4,096 of them at most, at even distances. For who cannot wait until it is found
    that pages have been touched first, or moved by somebody else, or has no policy that minds memory. BOSK_ENOAREA. */
int bosk_mem_update(const void* address);

/** The node that the data of the page at the address lie on now, as the kernel says; it need not be in any area. So too of a
    page that is marked for next-touch, which bosk_mem_page() tells; to ask is no touch.
    BOSK_ENOENT: on none yet, or nobody can tell (invented machines); BOSK_EINVAL: null; BOSK_EUNMAPPED. */
int bosk_mem_locate(const void* address);

/** What is known of a page. */
typedef struct bosk_mem_page {
  size_t size;       /* set by the caller: sizeof(bosk_mem_page_t) */
  uint32_t node;     /* that its data lie on; BOSK_UNKNOWN: on none yet, or nobody can tell */
  uint32_t marked;   /* 1: for next-touch: it goes to the node of whoever touches it next */
  uint32_t on_write; /* 1: who reads it leaves it where it is, and marked */
  uint32_t unused;   /* 0 */
} bosk_mem_page_t;

/** The page at the address, at some moment during the call; it need not be in any area. 1 us. BOSK_EINVAL: null, or a size that no
    version had; BOSK_EUNMAPPED. */
int bosk_mem_page(const void* address, bosk_mem_page_t* page);

/* ---- allocation (2009 section 3.2; 2005 section 6) ------------------------------------------------------ */

/** As malloc() and friends: bosk_free() gives back, not free(). Near the caller: on the node of the processor that it
    is on, or on the next one that has room. Up to 1 MiB a block comes from the heap of that node (no
    area: register it if it is to be attached), above that it is an area of whole pages (to register it does no harm). Blocks are aligned
    to 16 bytes. Null, and errno ENOMEM: there is no memory. Any thread may free any block. */
void* bosk_malloc(size_t bytes);
void* bosk_calloc(size_t count, size_t bytes);
/** The block, with another size: on the node that it is on. Null: it could not be done (errno EINVAL: it is no
    block), and the old one is as it was. An area of pages that moves has nobody attached to it. */
void* bosk_realloc(void* block, size_t bytes);
/** `alignment`: a power of two, else null and errno EINVAL. */
void* bosk_aligned_alloc(size_t alignment, size_t bytes);
/** From the heap of this node; if that is full the system may take another one. Null, and errno EINVAL: there is no such
    node, or it has no memory that the process may use. */
void* bosk_malloc_on(size_t bytes, int node);
/** Gives back what came from any function here; null is fine. What is attached to it is detached. BOSK_ENOAREA:
    it is no block, or was given back already (as far as its memory has not been used again). */
int bosk_free(void* block);
/** Bytes that the block was asked for; of whole pages, rounded up. 0: it is no block. */
size_t bosk_malloc_size(const void* block);

/** Pages of an area. */
enum bosk_mem_pages {
  BOSK_MEM_PAGES_ORDINARY = 0,
  BOSK_MEM_PAGES_HUGE = 1,         /* transparent huge ones, if the system has any left */
  BOSK_MEM_PAGES_RESERVED_HUGE = 2 /* of those that the administrator has reserved */
};

/** What an area is allocated with. Fill it with bosk_mem_attr_init() first, then change what matters: later versions add
    fields at the end, and the library goes by `size`. */
typedef struct bosk_mem_attr {
  size_t size;           /* set by bosk_mem_attr_init() */
  uint32_t policy;       /* enum bosk_mem_policy. Default: BOSK_MEM_DEFAULT */
  uint32_t node;         /* for BOSK_MEM_ON_NODE */
  const uint32_t* nodes; /* for BOSK_MEM_INTERLEAVED and _WEIGHTED: n_nodes of them; null: all */
  uint32_t n_nodes;
  uint32_t pages;   /* enum bosk_mem_pages. Default: ordinary ones */
  size_t alignment; /* a power of two; 0: that of its pages */
  /** It is attached to this thread or bubble (one of the two, or neither). With BOSK_MEM_DEFAULT it is put where that
      is: where the thread ran last, else where most of what it has attached lies, else first touch. So
      it lives, and moves, with it. */
  bosk_thread_t thread;
  bosk_bubble_t bubble;
  uint32_t use;   /* enum bosk_mem_use. Default: both */
  uint32_t times; /* how often it goes through it. Default: BOSK_UNKNOWN */
} bosk_mem_attr_t;

/** All fields their defaults. BOSK_EINVAL: null, or a size that no version had. */
int bosk_mem_attr_init_sized(bosk_mem_attr_t* attr, size_t size);
static inline int bosk_mem_attr_init(bosk_mem_attr_t* attr) {
  return bosk_mem_attr_init_sized(attr, sizeof *attr);
}

/** An area of whole pages, zeroed, in *block; bosk_free() gives it back. `attr` may be null. A node that is full lets
    pages go elsewhere, as the system does; bosk_mem_update() tells. On machines of one node policies are
    accepted and change nothing. Of pages that nobody has touched BOSK_MEM_NEXT_TOUCH is first touch.
    BOSK_EINVAL: null, no bytes, a field out of range; BOSK_ENODE: a node that does not exist, or has no memory for the
    process; BOSK_ESTALE, BOSK_ESTATE: the thread or bubble does not exist, has ended; BOSK_ENOMEM: also if no huge
    pages are left in reserve (/proc/sys/vm/nr_hugepages). */
int bosk_mem_alloc(void** block, size_t bytes, const bosk_mem_attr_t* attr);

/** Gives memory back to the system that the caller's heaps do not need at the moment (without it this happens by and
    by), and what next-touch keeps for nodes that exchange data. Always 0. */
int bosk_mem_trim(void);

/* ---- who works on what (2009 section 3.2) --------------------------------------------------------------- */

/** What an entity does with an area; one or both. */
enum bosk_mem_use { BOSK_MEM_READS = 1, BOSK_MEM_WRITES = 2, BOSK_MEM_READS_AND_WRITES = 3 };

/** The thread or bubble works on the area: `use` is an enum bosk_mem_use, `times` how often it will go through it, as
    far as one can say (BOSK_UNKNOWN: nobody knows). Again for the same area: the new use counts. An area may be
    attached to many, and an entity have many. When the entity ends, or the area, it is undone; memory never goes with an
    entity. 1 us or less, however many areas there are. BOSK_EINVAL: null, no such use; BOSK_ENOAREA; BOSK_ESTALE: no such
    thread or bubble; BOSK_ESTATE: the thread has ended. */
int bosk_mem_attach_thread(const void* address, bosk_thread_t thread, int use, uint32_t times);
int bosk_mem_attach_bubble(const void* address, bosk_bubble_t bubble, int use, uint32_t times);

/** It does so no longer. BOSK_ENOENT: it never did; others as above. */
int bosk_mem_detach_thread(const void* address, bosk_thread_t thread);
int bosk_mem_detach_bubble(const void* address, bosk_bubble_t bubble);
/** From everything that it is attached to. */
int bosk_mem_detach_area(const void* address);
/** Everything that is attached to it. */
int bosk_mem_detach_all_thread(bosk_thread_t thread);
int bosk_mem_detach_all_bubble(bosk_bubble_t bubble);

/** Bytes per node of what is attached to the thread, or to the bubble and all that is in it, as far as known, in
    bytes[0 ... nodes-1], as bosk_mem_area_nodes() says of each. Returns how many nodes there are. What several have attached
    counts for each; areas of which more than half is marked for next-touch and has not been touched count for nobody.
    The sum is `footprint` in bosk_stats_t. */
int bosk_mem_thread_footprint(bosk_thread_t thread, uint64_t* bytes, int nodes);
int bosk_mem_bubble_footprint(bosk_bubble_t bubble, uint64_t* bytes, int nodes);

/* ---- moving (2009 sections 3.2 and 4.4) ---------------------------------------------------------------- */

/** What became of pages that were to move. Data are never at risk: what cannot go stays where it was. Nothing else moves:
    huge pages that the area only touches are split first, some 200 us each. Those that cannot be (locked, shared with a
    child, reserved) stay whole and where they are: the area's pages in them are `unsplit`. */
typedef struct bosk_mem_moved {
  size_t size;        /* set by the caller: sizeof(bosk_mem_moved_t) */
  uint64_t moved;     /* pages */
  uint64_t already;   /* were there before (of many pages single ones may count as moved) */
  uint64_t absent;    /* nobody has touched them yet */
  uint64_t refused;   /* pinned, shared with another process, forbidden by a cpuset, unsplit */
  uint64_t no_memory; /* the node is full */
  uint64_t unsplit;   /* of the refused: see above. The first version did not have it */
} bosk_mem_moved_t;

/** Moves the area, all pages that it touches, to the node; marks for next-touch are gone then. Pages of an allocated
    area that nobody has touched will be there, too. `moved` may be null. Returns when they have moved: some 120 us and
    11 us a page (2009), less a page in large areas. BOSK_ENOAREA; BOSK_ENODE: the node does not exist, or has no
    memory for the process; BOSK_EINVAL: a size of `moved` that no version had. Pages that stay are no error. */
int bosk_mem_migrate(const void* address, int node, bosk_mem_moved_t* moved);

/** Distributes the area over nodes[0 ... n_nodes-1] in turn, in blocks of so many bytes, rounded up to pages; 0: one
    block for each node, as equal as can be. `nodes` may be null: all that have memory for the process. BOSK_EINVAL: a list of
    none; others as bosk_mem_migrate(). */
int bosk_mem_distribute(const void* address, const uint32_t* nodes, uint32_t n_nodes, size_t block,
                        bosk_mem_moved_t* moved);

/** Moves everything that is attached to the thread, or to the bubble and all that is in it. Sums in *moved.
    BOSK_ESTALE, BOSK_ESTATE, BOSK_ENODE. */
int bosk_mem_migrate_thread(bosk_thread_t thread, int node, bosk_mem_moved_t* moved);
int bosk_mem_migrate_bubble(bosk_bubble_t bubble, int node, bosk_mem_moved_t* moved);

/* ---- next-touch (2009 section 3.2; B. Goglin, N. Furmento 2009) ----------------------------------------- */

enum bosk_mem_next_touch_flags {
  BOSK_MEM_ON_WRITE = 1, /* reads leave a page where it is; the next write takes it along */
  BOSK_MEM_CALLS_WORK =
      2, /* BOSK_ENOTSUP rather than marks on which system calls fail with EFAULT */
};

/** Marks the pages that lie wholly in the range: each goes to the node of whichever thread touches it next. The range
    is part of one area; bytes 0: the whole area around `begin`. `flags`: enum bosk_mem_next_touch_flags, or 0. Again is
    fine, touched or not. Marks are gone when the area is freed, unregistered or migrated, and at a fork; data never move then.
    Without privileges (docs/memory.md) a system call (read, write) on a marked page fails with EFAULT: touch it before.
    BOSK_ENOAREA; BOSK_EINVAL: no such flags, or a range that is not all in the area; BOSK_EUNMAPPED: a part of it has been
    unmapped since; BOSK_ENOTSUP: this kind of memory (docs/next-touch.md; bosk_last_error() says which: locked, shared, ...), or this system, cannot do it; BOSK_EBUSY: another one watches the range (userfaultfd); BOSK_ENOMEM: also too many
    mappings (vm.max_map_count): some pages may be marked. */
int bosk_mem_next_touch(void* begin, size_t bytes, int flags);
/** Takes marks away. Codes as above. */
int bosk_mem_next_touch_cancel(void* begin, size_t bytes);
/** How many pages of the range are marked; *pages, unless null: of how many. Codes as above. */
int64_t bosk_mem_next_touch_query(const void* begin, size_t bytes, uint64_t* pages);
/** Marks everything that is attached to the thread, or to the bubble and all that is in it. What cannot be marked stays
    as it is, which is no error. */
int bosk_mem_next_touch_thread(bosk_thread_t thread, int flags);
int bosk_mem_next_touch_bubble(bosk_bubble_t bubble, int flags);

/* ---- placing anew (2009 section 3.1) --------------------------------------------------------------------- */

/** When bosk_mem_redecide() looks. */
enum bosk_mem_when {
  BOSK_MEM_AT_ONCE = 0,
  BOSK_MEM_WHEN_ALL = 1 /* when it has been called as often as there are threads in the bubble */
};

/** What the threads of the bubble work on is not what it was: where the policy `memory` acts (BOSK_POLICY=memory, or
    bosk_bubble_set_policy()) it is decided anew whether they go to their memory, memory comes to them, both or neither, by
    costs or as BOSK_MEMORY_MOVES says (docs/policies.md). Threads move if that brings them nearer to an eighth or more of what is
    attached to them: the bubble is closed and placed anew, which nobody waits for, and memory is seen to after that. Memory
    alone has moved, or is marked for next-touch, when the call returns. The outermost open bubble around this one is what
    is looked at where memory may move. Attaching, detaching, freeing and moving attached memory say the same,
    to be looked at soon. Returns 1: something moves; 0: nothing contradicts how things are, it is not open, it is not
    everybody's turn yet, or no policy minds. BOSK_EINVAL: no such time; BOSK_ESTALE. */
int bosk_mem_redecide(bosk_bubble_t bubble, int when);

/* ---- nodes ------------------------------------------------------------------------------------------- */

/** What a node has. BOSK_UNKNOWN_64: nobody told. */
typedef struct bosk_mem_stats {
  size_t size;       /* set by the caller: sizeof(bosk_mem_stats_t) */
  uint64_t total;    /* bytes that it has */
  uint64_t free;     /* that can be had now: free ones, and old pages of files */
  uint64_t reserved; /* addresses that the heap of this node has; memory only where blocks are */
  uint64_t used;     /* by blocks of the heap */
  uint64_t areas;    /* known to lie on it, of all areas */
} bosk_mem_stats_t;

/** BOSK_ENODE: there is no such node; BOSK_EINVAL: null, or a size that no version had. */
int bosk_mem_node_stats(int node, bosk_mem_stats_t* stats);

/** The node with most memory free. BOSK_ENODE: the process may have memory of none. */
int bosk_mem_least_loaded(void);

/** Writes all areas, one a line, and what nodes have, to the file descriptor. BOSK_EIO: it cannot be written. */
int bosk_mem_print(int fd);

#ifdef __cplusplus
}
#endif
#endif
