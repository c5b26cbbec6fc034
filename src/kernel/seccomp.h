/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System call filters. The built-in ones are compiled when vitro is built: tools/genfilter turns
 * the tables of seccomp_profile.c into BPF, since compiling costs a call more than all its mounts.
 * What is left for run time is picking one and installing it.
 *
 * What a profile does, whichever it is: unknown and new calls get ENOSYS, so that libc falls back;
 * dangerous ones get EPERM; clone3 gets ENOSYS, since its flags lie behind a pointer; setting
 * setuid and setgid bits is denied always, since nosuid protects only inside; a call of another
 * machine's, such as a 32-bit one, ends the process with SIGSYS.
 */
#pragma once

#include <linux/filter.h>

#include "base/err.h"

enum vt_seccomp_profile {
	VT_SECCOMP_DEFAULT, /* what a modern Python, Node, Go or JVM program needs */
	VT_SECCOMP_STRICT,  /* also without tracing, priorities, message queues, ... */
	VT_SECCOMP_PROFILES
};

/*
 * The socket families that socket() may name: bits. socketpair(AF_UNIX) is always allowed for
 * streams and packets; for datagrams, which can be sent to any other unix socket, only with
 * VT_SOCKETS_UNIX. With VT_SOCKETS_BROKERED, AF_UNIX sockets are streams and packets only, which
 * reach others by connect() alone; and every connect() waits for the answer of whoever holds the
 * filter's listener.
 */
enum vt_seccomp_sockets {
	VT_SOCKETS_NONE = 0,
	VT_SOCKETS_UNIX = 1 << 0,
	VT_SOCKETS_INET = 1 << 1, /* AF_INET and AF_INET6 */
	VT_SOCKETS_BROKERED = 1 << 2,
	VT_SOCKETS_SETS = 1 << 3
};

/*
 * The built-in filter for this profile and these families. Static data, never NULL; for a profile
 * or families that do not exist, the tightest.
 */
const struct sock_fprog *vt_seccomp_builtin(enum vt_seccomp_profile profile, unsigned sockets);

/*
 * Filters that are installed beside a profile, and in which what they do not name passes. The
 * kernel asks all filters, and the strictest answer counts; of two errnos that of the filter
 * installed last.
 */
enum vt_seccomp_addon {
	/*
	 * What the promises about files, network, memory, pids and processes stand on, whatever a
	 * profile of the user's allows. The built-in profiles contain it.
	 */
	VT_SECCOMP_ALWAYS,
	/*
	 * For a cell without namespaces of its own: no message queues of the host's, no watching of
	 * folders, no attributes by name and no changes of owners and attributes, which Landlock
	 * leaves alone, and no say in how other processes are scheduled.
	 */
	VT_SECCOMP_BARE,
	/*
	 * Beside it, where the cell's user is the caller: no changes of modes and times, which
	 * Landlock leaves alone too, and no large pipes. With VT_SOCKETS_BROKERED, those of modes
	 * and times wait for the answer of whoever holds the filter's listener.
	 */
	VT_SECCOMP_OWNER,
	/*
	 * Beside VT_SECCOMP_BARE, where nothing else bounds whom a signal reaches: no signals but
	 * to one's own process group, and no tracing.
	 */
	VT_SECCOMP_MUTE,
	/*
	 * For a cell that has a socket of another network than its own: no questions about
	 * networks.
	 */
	VT_SECCOMP_CALLED,
	VT_SECCOMP_ADDONS
};

/*
 * The add-on; only VT_SECCOMP_ALWAYS and VT_SECCOMP_OWNER depend on the families. Static data,
 * never NULL. `addon` must be one of those above; families that do not exist are none.
 */
const struct sock_fprog *vt_seccomp_addon(enum vt_seccomp_addon addon, unsigned sockets);

/*
 * Installs it on the calling thread for good; no_new_privs must be set. Runs in the child: no
 * malloc.
 */
int vt_seccomp_install(const struct sock_fprog *filter, struct vt_err *err);

/*
 * The same for a filter with VT_SOCKETS_BROKERED: its listener, close-on-exec, or a negative errno;
 * -EBUSY where a filter around us has one already. Whoever has it answers, see kernel/notify.h.
 */
int vt_seccomp_listen(const struct sock_fprog *filter, struct vt_err *err);
