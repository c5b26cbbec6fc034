/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it takes to fork a running Node, of which nobody thought that it would be. Its own:
 *
 *  - V8 marks its memory as not to be inherited. So all mappings are marked otherwise before a fork, but for those that would
 *    be shared and could be written to, which are marked so: libuv's rings of io_uring.
 *  - Helper threads (V8's worker, the scheduler of delayed tasks, the one that starts the inspector) are not in the fork.
 *    They sleep for want of work when it is made. V8's worker is made again (revive.h). Another that is woken in the
 *    fork must be so in vain: libuv aborts where it cannot write to a loop's eventfd, which sealing has
 *    closed. So there are others in their place.
 *  - The event loop needs descriptors of its own: uv_loop_fork().
 *  - libuv's lock of signals and its thread pool are set up anew by handlers of pthread_atfork(), which a clone()
 *    does not run. This library is preloaded, and remembers them.
 *  - V8 has a handler of SIGSEGV, by which an access beyond a WebAssembly memory becomes an exception.
 *  - At its end Node waits for its threads. A fork ends by _exit() alone.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct uv_loop_s;

enum { VT_NODE_EVENTS = 32 };

struct vt_node_fork {
	int proc_fd, maps_fd, fds_fd; /* /proc/self, and of it, opened where it could be seen */
	int events[VT_NODE_EVENTS]; /* numbers of eventfds */
	int event_count;
	struct sigaction on_segv;
};

/* While /proc can be seen. Returns 0 or a negative errno. */
int vt_node_fork_init(struct vt_node_fork *fork);
/* Whether the handlers of pthread_atfork() are known: it was preloaded, and there were not too many. */
bool vt_node_fork_knows_handlers(void);
/* Before a fork, when something was done since the last. Returns 0 or a negative errno. */
int vt_node_fork_prepare(struct vt_node_fork *fork);
/* In the fork, sealed or not, of whose descriptors those from 4 on are closed. Returns 0 or a negative errno. */
int vt_node_fork_wake(const struct vt_node_fork *fork, struct uv_loop_s *loop);
