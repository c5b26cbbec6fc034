/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client: what it asks for in frames, and what it is told. It makes pools, and calls in them. Runs in
 * the supervisor, on its loop; the client is the caller himself, so that it may ask for whatever he may.
 *
 *	client                          supervisor
 *	hello {version}                 hello {version, vitro}
 *	pool {pool, program | object |
 *	  command, ready_min,
 *	  ready_max, live_max},
 *	  sources of its policy         pool {pool, ok}, what holds | pool {pool, ok, num, error}
 *	drop {pool}
 *	call {call, pool, tool, id,
 *	  wall_ms, stream}, arguments   output {call, stream}, bytes
 *	call {..., stdin}, words of a
 *	  command, its input
 *	                                log {call, level}, text
 *	                                ask {call, ask, tool}, arguments
 *	answer {call, ask, ok}, value
 *	cancel {call}                   done {call, status, ...}, value, stdout, stderr
 *	count                           count {ready, ...}, of all pools
 *
 * A pool without any of the three has no cells: its client only wants to know what holds. One is dropped
 * when no call in it is under way. A head has "do" from the client, "is" from the supervisor. What is not
 * understood ends the session. docs/wire.md has every field.
 */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "watch/loop.h"

struct vt_session;

/*
 * fd is taken over; the session ends the loop when its client is gone. host is borrowed, and so is
 * program_fd: the file of the client's own program, whatever its path leads to by now; -1: it is not known.
 */
int  vt_session_new(struct vt_loop *loop, struct vt_host *host, int fd, int program_fd,
		    struct vt_session **ret_session, struct vt_err *err);
void vt_session_free(struct vt_session *session);
