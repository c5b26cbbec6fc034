/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of pools: calls of C tools by the library, against what they are made of. It is one
 * program, with the tools in it, so that the library starts it afresh to hold them ready.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <vitro.h>

#include "bench.h"

enum {
	MESSAGE_BYTES = 64, /* what a call takes and gives in most tables, and what goes through the bare socket */
	MB = 1 << 20,
	RESULT_MB = 100, /* what a large value has */
	READY = 64,      /* cells that wait */
};

/* ---- tools.c ------------------------------------------------------------------------------- */

extern const struct vitro_tool bench_tools[];

/* In a process that holds tools ready: memory that large values are in before anything is timed. */
void tools_prepare(void);

/* ---- calls.c: a tool host, and its calls; each dies where one fails ------------------------- */

/* ready cells are kept, no more and no fewer. result_mb: 0 for the default. */
vitro_toolhost *host_open(unsigned ready, unsigned result_mb);
/* The same with the cells of a server; socket NULL: with those of a private supervisor. */
vitro_toolhost *host_open_at(unsigned ready, unsigned result_mb, const char *socket);
/* Waits until so many cells are ready, none is being made, and nobody does anything about others. */
void            host_settle(vitro_toolhost *host, unsigned ready);
/* The result of a tool; it is to be freed. */
vitro_result   *host_call(vitro_toolhost *host, const char *tool, const char *arguments);
/* What a tool printed, to be freed. */
char           *host_output(vitro_toolhost *host, const char *tool, const char *arguments);
/* One call with a message, there and back: how long it took. */
int64_t         host_time(vitro_toolhost *host);
/* So many at once, until all are over: how long it took. */
int64_t         host_burst(vitro_toolhost *host, unsigned count);
/* So many that stay, until the host is freed. */
void            host_hold(vitro_toolhost *host, unsigned count);
/* Calls for so long, so many at a time. How many. */
unsigned        host_work(vitro_toolhost *host, unsigned at_once, int64_t ns);

/* ---- served.c: a server ---------------------------------------------------------------------- */

struct served {
	pid_t           pid;
	char            folder[32], path[48];
	vitro_toolhost *host; /* that uses it */
};

void served_open(struct served *served, unsigned ready);
void served_close(struct served *served);

/* ---- mates.c: processes at the other end of a bare socket ----------------------------------- */

struct mate {
	pid_t pid;
	int   fd;
};

void    echo_open(struct mate *mate);
/* The same behind a process that hands on what it gets, as a supervisor does. */
void    relay_open(struct mate *mate);
/* The same with a fork that was made ahead for each message: all that a call must be, sealed in
   nothing. */
void    forks_open(struct mate *mate);
void    forks_fill(struct mate *mate); /* there are as many again as a block has messages */
int64_t echo_time(struct mate *mate); /* MESSAGE_BYTES there and back */
/* Of what copy_time() asks for, bytes at most. */
void    copy_open(struct mate *mate, size_t bytes);
/* So many bytes through the socket, and once from memory to memory. */
int64_t copy_time(struct mate *mate, size_t bytes);
void    mate_close(struct mate *mate);

/* ---- memory.c ------------------------------------------------------------------------------ */

struct cell_memory {
	unsigned cells;
	double   pss_kb;    /* init and occupant; 0: they cannot be looked at */
	double   kernel_kb; /* slabs, page tables, stacks, per-CPU memory */
	double   by_hand_kb; /* the kernel's of two processes in the same namespaces and mounts, without limits,
				filter, pipes or sockets */
};

/* Of cells that are parked. It takes a while, and the machine must do little else; before anything else has made and
   ended cells, whose slabs would be used again and not be seen. */
void memory_look(unsigned cells, const struct mounts *mounts, unsigned long namespaces,
		 struct cell_memory *ret_memory);

/* ---- pool_tables.c: what is timed, and against what ------------------------------------------ */

struct options {
	const char *json, *only;
	unsigned    rounds;
	bool        quick, check;
	char        static_true[PATH_MAX + 16];
};

/* All that is timed, under one kind of pinning. */
struct bench {
	const struct options *options;
	struct report        *report;
	const char           *pinning;
	struct mounts         mounts;
	unsigned long         namespaces;
	struct mate           echo, relay, forks, copy;
	struct hand           hand;
	vitro_toolhost       *host, *empty;
	struct served         served;
};

void bench_calls(struct bench *bench);
void bench_served(struct bench *bench);
void bench_empty(struct bench *bench);
void bench_results(struct bench *bench);
void bench_burst(struct bench *bench);
/* What does not depend on pinning: on all CPUs. */
void bench_throughput(struct bench *bench);
void bench_live(struct bench *bench); /* leaves calls under way */
void bench_memory(struct bench *bench);
