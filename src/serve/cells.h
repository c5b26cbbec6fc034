/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's pools stand on: a policy, the plan that comes of it on this machine, and the pool
 * of cells. Each is planned anew, and shares the cells of another one where all is the same: key.h.
 * Commands that bring nothing of their own along are alike but for their program, so that under one
 * policy they share their cells. Runs in the supervisor.
 *
 * Several clients share them, too; not those that learned something, with whom did not ask for
 * that. Cells that nobody has any more are kept for a while, so that a client that comes often and
 * stays for one call finds them ready.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "host/host.h"
#include "host/interpreter.h"
#include "launch/image.h"
#include "plan/lookup.h"
#include "plan/plan.h"
#include "pool/pool.h"
#include "watch/loop.h"

/* What a client asks for. */
struct vt_cells_wish {
	/* One of them is set, or none: then it is only asked what the policy comes to. */
	const char *program; /* that holds its own tools ready; absolute */
	const char *object;  /* a shared object with functions; absolute */
	const char *command; /* a program to run, as it is typed */
	const char *interpreters[VT_LANGUAGES]; /* one that holds functions ready, as it is typed */
	const char *setup;   /* what its zygote is told; NULL without one */
	const char *sources; /* of the policy, as JSON */
	size_t      sources_len;
	unsigned    ready_min, ready_max, live_max;
	/* of ready_min, so many where the cells are new, and nobody's yet */
	unsigned    ready_share;
	/* Whose environment and working directory count; NULL: this process's. */
	const struct vt_caller *caller;
	/*
	 * the file that program is, whatever its path leads to by now; -1: not known. Of a server's
	 * client opened as a path alone (O_PATH)
	 */
	int         program_fd;
	uint64_t    client;     /* who asks: a number that no other client has */
};

struct vt_cells {
	struct vt_cells  *next;
	struct vt_cells_maker *maker;
	unsigned          users;
	unsigned          calls;  /* of these; the others are pools, and the server's tools */
	/* without any: until when it is kept; quitting: until when it is waited for */
	int64_t           due;
	bool              quitting;
	uint64_t          client; /* that had it planned last */
	unsigned          generation; /* of what the maker kept when it was planned */
	struct vt_str     key;    /* all in which others must be the same to share it; or empty */
	struct vt_policy *policy; /* NULL where the plan came from a scout */
	struct vt_plan   *plan;
	struct vt_image_whole *image; /* that the plan is in; NULL: in none */
	size_t            image_len;
	unsigned         *plan_users; /* cells that have all of these; NULL: no others do */
	unsigned          ready_min, ready_max, live_max; /* as they were wished for */
	bool              has_main; /* a client's program, with tools of its own */
	size_t            bytes;  /* that it keeps, beside what the pool does */
	char             *policy_name; /* for a log */
	char             *path;   /* of a command's program, until somebody has it */
	struct vt_pool   *pool;  /* NULL: none was asked for */
	char             *program, *object;
	/* the file that program was, as a path alone (O_PATH) where it is a client's; -1: none */
	int               program_fd;
	char             *script, *setup, *preload; /* of an interpreter; else NULL */
	const struct vt_interpreter *interpreter; /* or NULL */
	char             *argv[3 + VT_INTERPRETER_FLAGS]; /* ends with NULL */
};

enum { VT_CELLS_KEPT = 8192 };

/* Whoever makes them. The rest is the owner's. */
struct vt_cells_maker {
	struct vt_loop  *loop;
	struct vt_host  *host;
	struct vt_children *children;
	struct vt_bulk_spare *spare;
	struct vt_pool_room *room; /* for cells; NULL: it is not bounded */
	unsigned         count_max; /* of cells that are not shared with others */
	unsigned         burst_max; /* descriptors that making them may take for a moment */
	bool             settled; /* what can be had here is known */
	int              spawner_fd; /* vitro's own program; -1: it cannot be found */
	bool             shared;     /* by several clients */
	int64_t          keep_ns;    /* how long cells that nobody has are kept */
	/* cells: of which it is; NULL: of none */
	void           (*log)(void *user, const struct vt_cells *cells, int level,
			const char *text);
	void            *user;

	const char      *kept[VT_CELLS_KEPT]; /* paths that no call may change; owned */
	unsigned         kept_users[VT_CELLS_KEPT];
	unsigned         kept_count;
	unsigned         generation; /* how often one joined them */
	const char      *closed;  /* one of them that none may read; NULL: there is none */
	bool             runs;    /* there was a pool whose zygotes are of vitro's files */
	/* why one that could change these would be refused; num 0: there was none */
	struct vt_err    exposed;
	struct vt_timer  timer;
	struct vt_cells *first;
	unsigned         count;
	unsigned         quitting; /* that are not among them any more */
	size_t           bytes;    /* of all of them */
	size_t           bytes_max; /* from here on those go that nobody has */
	/* 0: nobody waits for what was told to end, but one client for its own */
	int64_t          waits_until;
	struct vt_pool_counts past; /* of those that are gone: their sums */
};

/* Begins with what its owner has set. It stays where it is. */
void vt_cells_maker_init(struct vt_cells_maker *maker);
/* Ends all cells, and waits for that; calls that run end as cancelled. */
void vt_cells_maker_done(struct vt_cells_maker *maker);

/* Of which language its pool is to be; NULL: of none. */
const struct vt_interpreter *vt_cells_interpreter(const struct vt_cells_wish *wish);
/* Whether cells are wanted, and not only what they would be. */
bool vt_cells_are_used(const struct vt_cells_wish *wish);

/*
 * From now on no call that could change the file at path, or a link on the way to it, is planned.
 * It is there.
 */
int vt_cells_keep(struct vt_cells_maker *maker, const char *path, struct vt_err *err);
/* Once for each time that it was kept. */
void vt_cells_unkeep(struct vt_cells_maker *maker, const char *path);
/*
 * Ends cells that were planned when less was kept, if their calls could change what is kept by now:
 * those that run are cancelled, and no further ones are taken.
 */
void vt_cells_end_writers(struct vt_cells_maker *maker);

/* The same, and none that could read it, and so keep it locked. Of one file. */
int vt_cells_close(struct vt_cells_maker *maker, const char *path, struct vt_err *err);

/* Finds out what can be had here, once, ahead of the first who asks. */
int vt_cells_settle(struct vt_cells_maker *maker, struct vt_err *err);

/*
 * *ret_path is where the program of a command is; NULL of others. It is freed with free(). -EPERM:
 * refused; -ENOENT and others of VT_STEP_COMMAND: the program or object cannot be had.
 */
int vt_cells_get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		 struct vt_cells **ret_cells, char **ret_path, struct vt_err *err);

/*
 * What somebody found who asked the paths of a wish. One message between processes, with two
 * descriptors.
 */
struct vt_cells_found {
	struct vt_err err; /* num 0: it can be had */
	unsigned      generation;
	int           image_fd, program_fd; /* -1: none */
};

/* Asks them, as vt_cells_get() would, in a process that ends then. */
void vt_cells_look(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   struct vt_cells_found *ret_found);
/* The same as vt_cells_get() of what was found, which asks no path of a client's. */
int vt_cells_take(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		  struct vt_cells_found *found,
		  struct vt_cells **ret_cells, char **ret_path, struct vt_err *err);
void vt_cells_found_done(struct vt_cells_found *found);

/* All cells, and what there was so far. */
void vt_cells_count(const struct vt_cells_maker *maker, struct vt_pool_counts *ret_counts);

/* How many pools of cells somebody has. Those that nobody has make room. */
unsigned vt_cells_taken(const struct vt_cells_maker *maker);

/* Cells that wait at the least, where they are made for this wish. */
static inline unsigned vt_cells_ready(const struct vt_cells_wish *wish)
{
	return wish->ready_min < wish->ready_share ? wish->ready_min : wish->ready_share;
}

/* One more call, which lets go of it. */
static inline void vt_cells_hold(struct vt_cells *cells)
{
	cells->users++;
	cells->calls++;
}
/* NULL is fine. */
void vt_cells_let_go(struct vt_cells *cells);

/*
 * What a pool stands on learns a module. *cells become others, where somebody else has these: that
 * one's calls are not to run what they did not ask for. 1: they did. may_make: 0, or what is
 * returned where others would have to be made; err says why already.
 */
int vt_cells_learn(struct vt_cells **cells, const char *module, int may_make, struct vt_err *err);

/* Sets all that a wish comes to, by asking paths: find.c. */
int vt_cells_find(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err);
/* The same by what another process found. Takes its program_fd over. */
int vt_cells_believe(struct vt_cells *cells, const struct vt_cells_wish *wish,
		     struct vt_cells_found *found,
		     struct vt_err *err);

/* Sets its program, the file that it is, and its argv, by what the plan was made for: choose.c. */
int vt_cells_choose_zygote(struct vt_cells *cells, const struct vt_cells_wish *wish,
			   const struct vt_command *command, struct vt_err *err);
/* Sets its argv, by what was chosen. */
int vt_cells_arrange(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err);

/*
 * Whether its calls could change what vitro executes outside of cells, by its path, whenever a
 * zygote is started: the folder python, vitro-object, and vitro's own program, by whose place these
 * are found. -EPERM: its own zygotes, or those of another client or pool of this process, would be
 * what a call made of them. choose.c.
 */
int vt_cells_check_run(struct vt_cells *cells, const struct vt_cells_wish *wish,
		       struct vt_err *err);

/* -ENOMEM, of what pools are made of. */
int vt_cells_no_memory(struct vt_err *err);

/* Without a user they end, from the loop, when they were kept for long enough. NULL is fine. */
void vt_cells_release(struct vt_cells *cells);
