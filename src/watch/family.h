/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who descends from one process, by a look at a whole machine's /proc: for cells whose processes
 * share it with everybody else's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct vt_family {
	pid_t  init;
	pid_t *pids; /* its descendants, in order */
	size_t count;
};

/* Looks once. Returns 0 or a negative errno; -E2BIG where the machine has too many processes. */
int vt_family_find(struct vt_family *family, int proc_fd, pid_t init);
bool vt_family_has(const struct vt_family *family, pid_t pid);
/* A zeroed one is fine. */
void vt_family_done(struct vt_family *family);
