/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix stream sockets whose peer is not trusted: a cell, a client, another user before vitro
 * refuses it. A peer that can send bytes can send descriptors with them. If the receiver has no
 * room for these, the kernel closes them in the receiver's thread: in recv(), or in close() if they
 * were never read. Such a close may sleep for as long as the peer likes (a TCP connection with
 * SO_LINGER whose other end does not read), and all deadlines of the receiver's loop are late
 * meanwhile.
 *
 * From Linux 6.16 on a socket can refuse them: the sender gets EPERM (SO_PASSRIGHTS). Elsewhere the
 * socket is *wary*: it is read by vt_stranger_recv(), which takes nothing that has descriptors, and
 * closed by vt_children_shut(), where another process waits if need be.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Has a socket refuse descriptors from now on: 0, or the negative errno of a kernel that cannot.
 * Sockets that connect to a listener from now on inherit it.
 */
int vt_stranger_bar(int fd);

/*
 * The same of a socket on which something may have been sent already: accepted or given.
 * Returns whether it is wary.
 */
bool vt_stranger_meet(int fd);

/* Prepares a socket that cannot refuse descriptors for vt_stranger_recv(). */
void vt_stranger_watch(int fd);

/*
 * As recv(), of a wary socket, or of any that was given. -1 with EBADMSG: what comes next has
 * descriptors, and stays where it is. On a socket that reports credentials this cannot be told.
 */
ssize_t vt_stranger_recv(int fd, void *to, size_t len, int flags);
