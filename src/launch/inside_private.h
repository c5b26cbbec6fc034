/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two kinds of init share: inside.c builds a cell in namespaces, bare.c one without. Nobody
 * else includes this. All of it runs in the child, between clone and exec.
 */
#pragma once

#include "launch/inside.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is under way: filled by one step, used by the next. */
struct vt_building {
	const struct vt_inside *in;
	const struct vt_plan *plan;
	int root_fd;     /* the new root, attached; a bare cell's private folder */
	int place_fd;    /* of a bare cell: the folder around that; -1: none */
	int stage_fd;    /* where veils are made, while there are any to make */
	int proc_fd;     /* the cell's proc; -1: it has none of its own */
	int ruleset_fd;  /* of a bare cell; -1: no Landlock */
	int ready_fd;    /* an eventfd: init tells the occupant that the root is there */
	pid_t init;      /* as init sees itself */
	pid_t occupant;  /* in init */
	int occupant_fd; /* its pidfd */
	void (*abandon)(const struct vt_building *); /* in init, where a step failed; NULL: nothing */
};

struct vt_inside_step {
	const char *name;
	int (*take)(struct vt_building *, struct vt_err *);
};

/* Takes them in order. The first that fails is told to the supervisor, and the process ends. */
void vt_inside_take_steps(const struct vt_inside_step *steps, size_t count, struct vt_building *b,
			  int status_fd);

/* Steps of both. */
int vt_inside_join_cgroup(struct vt_building *b, struct vt_err *err);
int vt_inside_await_ids(struct vt_building *b, struct vt_err *err);
int vt_inside_hide_memory(struct vt_building *b, struct vt_err *err);
int vt_inside_expect_children(struct vt_building *b, struct vt_err *err);
int vt_inside_start_occupant(struct vt_building *b, struct vt_err *err);
int vt_inside_tell_running(struct vt_building *b, struct vt_err *err);

/* The whole life of a bare cell's init. */
_Noreturn void vt_bare_init(struct vt_building *b);

/* How the occupant of a bare cell comes to an end with init. */
int vt_bare_follow_init(struct vt_building *b, struct vt_err *err);

/* How it comes to its working directory. */
int vt_bare_enter_folder(struct vt_building *b, struct vt_err *err);

/* How the occupant of a bare cell sees no more of the host than the plan shows. */
int vt_bare_enter_domain(struct vt_building *b, struct vt_err *err);
