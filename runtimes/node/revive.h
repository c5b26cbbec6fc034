/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's worker threads in a fork. A fork has none of them, but all their memory; what they lack is a thread of the
 * kernel's. Those that wait for work do so in pthread_cond_wait(). This library is preloaded and has one of its own: it
 * keeps no count of who waits, which a fork would find wrong, and each helper notes where it stands before it sleeps. In the fork a
 * new thread goes on from there, with the stack and the TLS of the one that was, as if it had been woken for nothing.
 *
 * Without them V8's jobs are done by who waits for them, but Node waits at the end of a worker thread (and, up to
 * version 21, of any loop) until its own workers have looked at each.
 */
#pragma once

/* From now on threads that begin are no platform's: a fork does not get them again. */
void vt_revive_end_of_platform(void);
/* In a fork, once its locks are as they should be. Returns 0 or a negative errno. */
int vt_revive_all(void);
