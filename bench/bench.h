/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark: contestants that do the same thing in different ways run interleaved, in a random
 * order per round, so that whatever else the machine does meets all of them. It is a program of its
 * own, and ends with a message at the first thing that goes wrong: a benchmark with a failed run in it
 * measures nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rig.h"

enum pattern { BACK_TO_BACK, SPACED, BURST, PATTERNS };

struct contestant {
	const char         *name;
	char              **argv; /* what to spawn; NULL: the root that `hand` describes */
	const struct mounts *hand;
};

struct stats {
	double min_us, p50_us, p99_us;
};

/* What a contest measured, one row per contestant. */
struct table {
	const char   *title;
	enum pattern  pattern;
	unsigned      rounds, burst;
	size_t        count, base; /* base: the row that ratios refer to */
	const char   *names[8];
	struct stats  stats[8];
};

/* Something that must hold, and whether it does. */
struct bar {
	const char *name;
	double      value, limit;
};

struct report {
	struct table tables[16];
	size_t       table_count;
	long         memory_kb;
	struct bar   bars[8];
	size_t       bar_count;
};

struct contest {
	const char              *title;
	const struct contestant *contestants;
	size_t                   count, base;
	enum pattern             pattern;
	unsigned                 rounds;
	unsigned                 burst; /* how many at once, for BURST */
};

/* contest.c: runs it, and prints and keeps its table. */
const struct table *contest_run(const struct contest *contest, struct report *report);
double              table_p50(const struct table *table, const char *name);

/* machine.c: what the figures depend on, for a person. */
struct machine {
	char kernel[200], cpu[128], thp[64], load[64];
	int  cpus, mounts;
	char pinning[64];
};

void machine_look(struct machine *ret_machine);

/* report.c */
void report_machine(const struct machine *machine);
void report_table(const struct table *table);
/* after: the load average once all has run. */
void report_bars(const struct report *report, const struct machine *after);
bool bar_holds(const struct bar *bar);
void report_json(const struct report *report, const struct machine *machine, const char *path);

/* byhand.c: starts a process that makes the mounts with bare system calls and execs /bin/true. */
pid_t byhand_start(const struct mounts *mounts);
