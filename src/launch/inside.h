/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child side of a launch: what init does from its first instruction, and how an occupant seals
 * itself. Everything here runs between clone and exec: no malloc, no stdio, no locks, nothing left
 * to decide. The build checks the symbols that inside.c uses against a list.
 */
#pragma once

#include "kernel/cgroup.h"
#include "kernel/work.h"
#include "launch/own.h"
#include "launch/veil.h"
#include "plan/plan.h"

/*
 * The three descriptors that the occupant gets as 0, 1 and 2, and what it tells of itself on.
 * Borrowed.
 */
struct vt_stdio {
	int in; /* -1: nothing to read, from a /dev/null of its own */
	int out, err;
	int report; /* the occupant's VT_REPORT_FD; 0: none */
};

enum { VT_REPORT_FD = 4 };

/* What the parent prepared for the child beside the plan. */
struct vt_inside {
	const struct vt_plan   *plan;
	const struct vt_cgroup *cgroup;
	struct vt_stdio         stdio;
	int                     status_fd;
	int                    *mounts; /* per build: a mount that the parent made, or -1 */
	uid_t                   uid;    /* of the cell, on the host */
	gid_t                   gid;
	const struct vt_work   *works;  /* the plan's work folders */
	struct vt_layers       *layers; /* room for the child: what is opened of them, -1 until
					   then */
	int                    *picked; /* the same, of a hull: its veils' overlays, in the
					   plan's order; else NULL */
	int                     spawner_fd; /* of a hull: the program that its init becomes */
};

/* Runs as the first process of a new cell: builds it, starts the occupant, reaps, ends. */
_Noreturn void vt_inside_init(const struct vt_inside *inside);
