/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a supervisor: one process, with all its connections. What one client may have is
 * counted here, so that a second connection gives it nothing more. It is known by its pid, and by
 * when it was started: a pid is used again. Processes that are in no pid namespace of ours have no
 * pid here: all of one user's are one client. Runs in the supervisor.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/turns.h"

struct vt_client {
	struct vt_client *next, **link; /* among all of them */
	unsigned          holders; /* its sessions, its calls, and who looks at paths for it */
	pid_t             pid;     /* 0: not known */
	int64_t           since;
	uid_t             uid;
	struct vt_turner  turner;
	unsigned          sessions;
	unsigned          calls;      /* under way, also of sessions that are gone */
	size_t            call_bytes; /* of these */
	size_t            held;       /* bytes of frames that have not come whole */
	size_t            unread;     /* bytes that wait to be read by it, or to be told */
	size_t            kept;       /* bytes of its environments, and of its pools' cells */
	/* ready: cells that wait at the least, of its pools */
	unsigned          pools, cells, ready;
	int64_t           paused_until; /* what it asked for took long: others are next */
	unsigned          looks, looks_lost; /* at paths: under way, and that could not be killed */
};

/* When the process was started, in the kernel's ticks; 0: that cannot be seen. */
int64_t vt_client_since(pid_t pid);

/* pid: 0 where it is not known. NULL: there is none. */
struct vt_client *vt_client_find(struct vt_client *first, pid_t pid, int64_t since, uid_t uid);
/* One that joins the others, held once. NULL: no memory. */
struct vt_client *vt_client_new(struct vt_client **first, pid_t pid, int64_t since, uid_t uid);

static inline struct vt_client *vt_client_hold(struct vt_client *client)
{
	client->holders++;
	return client;
}

/* The last one frees it. */
void vt_client_release(struct vt_client *client);
