/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   The machine that bosk places threads on, as a program sees it: how many domains of which kind, where am I, how far
   is it, who is near (2005, section 5.2 builds bubbles after it). docs/topology.md tells what a domain is.

   PUs (hardware threads) are numbered 0, 1, … from left to right, so that neighbours have neighbouring numbers: these
   are not Linux's CPU numbers. Only PUs that the process may use are counted. A level divides all PUs among its
   domains, which are numbered from left to right, too. Levels are numbered from the outermost (0, the whole machine)
   to the innermost (the PUs). The machine, packages, NUMA nodes, cores and PUs are always levels, even if they
   divide nothing; caches, dies and groups only where there are any.

   All functions may be called by any thread at any time, but not in a signal handler. The first call reads the machine,
   which takes a millisecond; the machine does not change afterwards. Results are not negative, unless they are
   codes of bosk/error.h: BOSK_EINVAL if a number is not one of a level, domain, PU or node, or a pointer is null;
   BOSK_ENOMEM from any of them if the machine cannot be read for want of a thread. */
#ifndef BOSK_TOPOLOGY_H
#define BOSK_TOPOLOGY_H

#include <stdint.h>

#include <bosk/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- levels and domains */

/** How many levels there are: at least 5. */
int bosk_topo_levels(void);
/** "machine", "package", "node", "die", "l3", "l2", "core", "pu" or "group"; null if there is no such level. */
const char* bosk_topo_level_name(int level);
/** The level by its name, in any case; the usual other names ("socket", "numa", …) will do, and "llc" is the level of
    the last cache. BOSK_ENOENT: no such word, or the machine has no such level. */
int bosk_topo_level(const char* name);
/** How many domains the level divides the machine into. */
int bosk_topo_domains(int level);
/** How many domains are around each other at most, from the machine to a PU, where those that divide nothing do
    not count: the length of a search through run queues. */
int bosk_topo_depth(void);

/** How many PUs the process may use. */
int bosk_topo_pus(void);
/** The domain of the level that the PU is in. */
int bosk_topo_domain_of(int level, int pu);
/** A domain's PUs are so many, from this one on. */
int bosk_topo_pus_in(int level, int domain);
int bosk_topo_first_pu(int level, int domain);
/** The number that Linux gives it: of a PU its CPU, of a node what numactl knows. BOSK_ENOENT: it has none. */
int bosk_topo_os_number(int level, int domain);
/** The PU of a CPU of Linux's. BOSK_ENOENT: the process may not use it, or there is none. */
int bosk_topo_pu_of_cpu(int cpu);
/** 1: the CPU numbers are those of the system that this runs on; 0: the machine was invented (BOSK_SYNTHETIC,
    BOSK_TOPOLOGY_XML). */
int bosk_topo_is_real(void);

/* ---- where am I */

/** The PU that the caller is on: that of its worker, if bosk runs it (a worker stands for a PU also where it is not
    bound to it), else that of the CPU it is on. Old news as soon as it is told. BOSK_ENOENT: a thread that bosk does
    not run, on an invented machine. */
int bosk_here(void);
/** The domain of the level that the caller is in. */
int bosk_here_in(int level);

/* ---- how far, and who is near */

/** How many domains lie around the two PUs up to the first that has both: 0 for the same PU, 1 for siblings (two
    hardware threads of a core, say). Symmetric; the way over a third PU is never shorter than the longer half. */
int bosk_topo_distance(int pu, int other_pu);
/** The innermost level at which both are in one domain: what they share. */
int bosk_topo_shared_level(int pu, int other_pu);
/** 1: both are in one domain of the level, 0: they are not. */
int bosk_topo_shares(int level, int pu, int other_pu);
/** The PUs, nearest first, itself the first of all, equally near ones from left to right: fills in `pus`, `count` at
    most. Returns how many it has filled in. */
int bosk_topo_neighbours(int pu, int* pus, int count);

/* ---- memory */

/** How many NUMA nodes, those with memory only included. Node numbers are left to right; the first ones need not be
    the domains of the level "node", which have PUs. */
int bosk_topo_nodes(void);
/** The nearest node of a PU. */
int bosk_topo_node_of(int pu);
/** The number that mbind(2) and numactl know. */
int bosk_topo_node_os_number(int node);
/** As the firmware tells it: 10 is local, 20 twice as far. */
int bosk_topo_node_distance(int from, int to);
/** Bytes of memory. BOSK_ENOENT: nobody told. */
int64_t bosk_topo_node_bytes(int node);

#ifdef __cplusplus
}
#endif
#endif
