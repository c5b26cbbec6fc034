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
	char              **argv; /* what to spawn; NULL: the root that `hand` describes, or run */
	const struct mounts *hand;

	/* In this process: what it takes, of one run or of several, in ns. It returns how many, room at most. */
	size_t (*run)(const struct contestant *self, int64_t *samples, size_t room);
	/* Before each turn, and not timed; may be NULL. */
	void (*prepare)(const struct contestant *self);
	unsigned block; /* how often in a row within a turn; 0: once */
	void    *user;  /* for run and prepare */
	size_t   number;
};

struct stats {
	double min_us, p50_us, p99_us;
	/*
	 * By how much its p50 of a round is above that of the base in the same round: the p50 of all rounds.
	 * What the scheduler keeps on one CPU for seconds, and then spreads over two, has two p50s, and
	 * which of them is that of the whole is chance.
	 */
	double paired;
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
	double      aim;      /* better than the limit; 0: none */
	bool        at_least; /* and not at most */
};

struct report {
	struct table tables[32];
	size_t       table_count;
	struct bar   bars[40];
	size_t       bar_count;
	char        *facts[8]; /* other figures, as sentences */
	size_t       fact_count;
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
const struct stats *table_stats(const struct table *table, const char *name);
void                pause_ms(long ms);

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
void add_bar(struct report *report, const char *name, double value, double limit);
/* Prints it, and keeps it. */
void add_fact(struct report *report, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void report_json(const struct report *report, const struct machine *machine, const char *path);

/* hull.c: cells by hand, as a pool makes them: in a hull that has been there before. */
struct hand {
	pid_t pid;
	int   fd;
};

/* namespaces: the flags of clone() that a cell has of its own. */
void    hand_open(struct hand *hand, const struct mounts *mounts, unsigned long namespaces);
void    hand_close(struct hand *hand);
/* Makes one, until its second process has said so. How long that took. */
int64_t hand_make(struct hand *hand);
/* Ends it, and waits for that. */
void    hand_end(struct hand *hand);
/* Makes and ends cells for so long. Asks for it; then how many it made is waited for. */
void     hand_work(struct hand *hand, uint32_t ms);
uint32_t hand_worked(struct hand *hand);

/* byhand.c: starts a process that makes the mounts with bare system calls and execs /bin/true. */
pid_t byhand_start(const struct mounts *mounts);

/* What it and hull.c do in their children: on failure they say so and exit. */
_Noreturn void hand_fail(const char *what, const char *subject);
void           hand_put(const char *path, const char *text);
void           hand_map_ids(const char *proc, uid_t uid, gid_t gid);
int            hand_filesystem(const char *type, unsigned attrs);
int            hand_copy(int dir, const char *path);
void           hand_restrict(int mount, uint64_t attrs, unsigned flags);
/* hull: without what each cell has of its own, but the places for it. It becomes the root. */
void           hand_root(const struct mounts *mounts, bool hull);
