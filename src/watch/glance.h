/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the looker asks between two looks at a cell's memory, in a tenth of the time of one: whether
 * there are other processes than before, and how much the known ones have grown. Takes no lock of
 * theirs. What grows by an open descriptor alone, as a memfd does, is not seen: it is written, and
 * slower than memory is touched.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VT_GLANCES = 16 }; /* processes; where there are more, none is glanced at */

struct vt_glance {
	bool on; /* it knows all processes of the cell */
	int proc_fd, root_fd;
	pid_t init;    /* the cell's, where proc is the host's; 0: it is the cell's own */
	DIR *names;    /* of the cell's proc; */
	long first;    /* and where those of processes begin in it */
	uint64_t mark; /* of the processes that there are; another one where there are others */
	unsigned count;
	int statm[VT_GLANCES], stat[VT_GLANCES];
	int64_t seen;  /* their memory when it was prepared last, */
	uint64_t done; /* and what they had done: another one where they have run since */
};

/*
 * Of the folder of the cell's proc, which is borrowed, and of one on its tmpfs, or -1. init: as in
 * struct vt_usage_limits.
 */
void vt_glance_init(struct vt_glance *glance, int proc_fd, int root_fd, pid_t init);

/* Before a look: what it will find is what later glances are compared with. */
void vt_glance_prepare(struct vt_glance *glance);

/* How much memory has come since; -EAGAIN where only a look tells. */
int vt_glance(const struct vt_glance *glance, int64_t *ret_grown);

/* Whether nothing has run since: then nothing can have come that a glance does not see. */
bool vt_glance_is_idle(const struct vt_glance *glance);

void vt_glance_done(struct vt_glance *glance);
