/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those who build a cell share: the two kinds of init (inside.c in namespaces, bare.c
 * without), the hull's, the spawner's cells and the zygote's. All of it runs in a child, before a
 * byte of the call does.
 */
#pragma once

#include "launch/cell.h"
#include "launch/inside.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is under way: filled by one step, used by the next. */
struct vt_building {
	const struct vt_inside *in;
	const struct vt_plan *plan;
	int root_fd;     /* the new root, attached; a bare cell's private folder */
	const char *scratch; /* the path of that folder */
	int place_fd;    /* of a bare cell: the folder around that; -1: none */
	int stage_fd;    /* where veils are made, while there are any to make */
	size_t veils;    /* that were made */
	int proc_fd;     /* the cell's proc; -1: it has none of its own */
	int ruleset_fd;  /* of a bare cell; -1: no Landlock */
	int ready_fd;    /* an eventfd: init tells the occupant that the root is there */
	pid_t init;      /* as init sees itself */
	pid_t occupant;  /* in init */
	int occupant_fd; /* its pidfd */
	/* What init does where a step failed; NULL: nothing. */
	void (*abandon)(const struct vt_building *);
};

/* Nothing is under way yet. */
static inline struct vt_building vt_building_of(const struct vt_inside *in)
{
	return (struct vt_building){
		.in = in,
		.plan = in->plan,
		.root_fd = -1,
		.scratch = in->plan->scratch,
		.place_fd = -1,
		.stage_fd = -1,
		.proc_fd = -1,
		.ruleset_fd = -1,
		.ready_fd = -1,
		.occupant_fd = -1,
	};
}

struct vt_inside_step {
	const char *name;
	int (*take)(struct vt_building *, struct vt_err *);
};

/* Tells the supervisor, and ends. Without a supervisor there is nobody to tell. */
_Noreturn void vt_inside_fail(int status_fd, const struct vt_err *err);

/* A note to the supervisor with descriptors, VT_NOTE_FDS at the most. */
int vt_inside_hand_over(int status_fd, enum vt_note_kind kind, const int *fds, size_t count,
			struct vt_err *err);

/* Takes them in order. The first that fails is told to the supervisor, and the process ends. */
void vt_inside_take_steps(const struct vt_inside_step *steps, size_t count, struct vt_building *b,
			  int status_fd);

/* Steps of both. */
int vt_inside_join_cgroup(struct vt_building *b, struct vt_err *err);
int vt_inside_await_ids(struct vt_building *b, struct vt_err *err);
int vt_inside_hide_memory(struct vt_building *b, struct vt_err *err);
int vt_inside_expect_children(struct vt_building *b, struct vt_err *err);
int vt_inside_start_occupant(struct vt_building *b, struct vt_err *err);

/* Forks, and goes on in the occupant too, where b->occupant is 0. */
int vt_inside_fork_occupant(struct vt_building *b, struct vt_err *err);

int vt_inside_tell_running(struct vt_building *b, struct vt_err *err);

enum vt_ending {
	VT_ENDING_REAPED,  /* the occupant has ended */
	VT_ENDING_TRACED,  /* and another process of the cell traces it, and was to be told
			      first: it cannot be reaped while that one lives */
	VT_ENDING_ORDERED, /* the supervisor wants no more of it */
};

/*
 * Reaps whatever ends in the cell until the occupant has, which its pidfd tells in any case, or
 * something comes on status_fd, if it is not -1. *ret_status is set if the occupant was reaped.
 * Signals stay blocked.
 */
enum vt_ending vt_inside_await_end(pid_t occupant, int occupant_fd, int status_fd, int *ret_status);

int vt_inside_bound_counts(struct vt_building *b, struct vt_err *err);
int vt_inside_share_counts(struct vt_building *b, struct vt_err *err);
int vt_inside_become_user(struct vt_building *b, struct vt_err *err);
int vt_inside_name_host(struct vt_building *b, struct vt_err *err);

/* Steps of an init that builds a root: root.c. */
int vt_inside_copy_mounts(struct vt_building *b, struct vt_err *err);
int vt_inside_attach_root(struct vt_building *b, struct vt_err *err);
int vt_inside_build_root(struct vt_building *b, struct vt_err *err); /* and enters it */

/* In a cell of a pool: opens the root that the hull built, and adds what is the cell's own. */
int vt_inside_finish_root(struct vt_building *b, struct vt_err *err);

/* The same in a zygote, without what takes power over its pid namespace. */
int vt_inside_furnish_root(struct vt_building *b, struct vt_err *err);

/* In whoever has power over the cell's network namespace, if the policy wants that: seal.c. */
int vt_inside_raise_loopback(struct vt_building *b, struct vt_err *err);

/*
 * All that an occupant does before a byte of the call runs: seal.c. Its descriptors are in place
 * then, the status socket at 3, where exec closes it. Returns only if every step was taken.
 */
void vt_seal(struct vt_building *b);

/* The same in an occupant that a zygote forked, which stands in its cell and is its user. */
void vt_seal_entered(struct vt_building *b);

/* What a hull's init does before it becomes the spawner: hull.c. */
_Noreturn void vt_hull_init(struct vt_building *b);

/* The whole life of a bare cell's init. */
_Noreturn void vt_bare_init(struct vt_building *b);

/* Of that, all before there is an occupant, and from then on. */
void vt_bare_build(struct vt_building *b);
_Noreturn void vt_bare_live(struct vt_building *b);

/*
 * What a zygote's fork does where cells are bare: bare_zygote.c. It becomes the init of a cell, and
 * returns only in the occupant that it started, which is sealed.
 */
void vt_bare_enter(const struct vt_plan *plan, const struct vt_cgroup *cgroup, const int *fds,
		   uint64_t cell);

/* How the occupant of a bare cell comes to an end with init. */
int vt_bare_follow_init(struct vt_building *b, struct vt_err *err);

/* How it comes to its working directory. */
int vt_bare_enter_folder(struct vt_building *b, struct vt_err *err);

/* How the occupant of a bare cell sees no more of the host than the plan shows. */
int vt_bare_enter_domain(struct vt_building *b, struct vt_err *err);
