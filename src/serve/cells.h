/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's pools stand on: a policy, the plan that comes of it on this machine, and the pool of
 * cells. Commands that bring nothing of their own along are alike but for their program, so that under one
 * policy they share their cells. Runs in the supervisor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "pool/pool.h"
#include "watch/loop.h"

/* What a client asks for. */
struct vt_cells_wish {
	/* One of them is set, or none: then it is only asked what the policy comes to. */
	const char *program; /* that holds its own tools ready; absolute */
	const char *object;  /* a shared object with functions; absolute */
	const char *command; /* a program to run, as it is typed */
	const char *sources; /* of the policy, as JSON */
	size_t      sources_len;
	unsigned    ready_min, ready_max, live_max;
};

struct vt_cells {
	struct vt_cells  *next;
	unsigned          users;
	struct vt_policy *policy;
	struct vt_plan   *plan;
	struct vt_pool   *pool;  /* NULL: none was asked for */
	char             *program, *object;
	int               program_fd; /* the file that program was; 0: none */
	char             *argv[3];
	char             *sources; /* of those that others may share; else NULL */
	size_t            sources_len;
};

/* Whoever makes them. The rest is the owner's. */
struct vt_cells_maker {
	struct vt_loop  *loop;
	struct vt_host  *host;
	struct vt_children *children;
	bool             settled; /* what can be had here is known */
	int              spawner_fd; /* vitro's own program; -1: it cannot be found */
	int              program_fd; /* the client's own, which all its programs are; -1: not known */
	void           (*log)(void *user, int level, const char *text);
	void            *user;
	struct vt_cells *first;
	unsigned         count;
	struct vt_pool_counts past; /* of those that are gone: their sums */
};

/*
 * *ret_path is where the program of a command is; NULL of others. It is freed with free(). -EPERM: refused;
 * -ENOENT and others of VT_STEP_COMMAND: the program or object cannot be had.
 */
int vt_cells_get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		 struct vt_cells **ret_cells, char **ret_path, struct vt_err *err);

/* All cells, and what there was so far. */
void vt_cells_count(const struct vt_cells_maker *maker, struct vt_pool_counts *ret_counts);

/* The last one ends them, and whatever runs in them. NULL is fine. */
void vt_cells_release(struct vt_cells_maker *maker, struct vt_cells *cells);
