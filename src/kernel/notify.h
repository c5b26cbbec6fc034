/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answering for system calls that wait: the acts of whoever holds the listener of a filter (see
 * vt_seccomp_listen()). A caller is never told to go on by itself, since it could change what was
 * looked at in between: what it asked for is done in its stead, on its own descriptor, and it gets
 * the result.
 *
 * What is read of a caller is true only if vt_notify_waits() says so afterwards: a thread that has
 * ended leaves its number to another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A call that waits. */
struct vt_notice {
	uint64_t id;
	pid_t    tid; /* of the thread, as this process sees it */
	int      nr;
	uint64_t args[6];
};

/*
 * What calls are answered for: connect() of a cell in namespaces, over which its maker has every
 * power, takes vt_notify_take_fd(); chmod() and the like do not, which containers deny as a rule.
 */
enum vt_notify_use { VT_NOTIFY_CONNECT, VT_NOTIFY_MODES };

/*
 * Whether this kernel has what is needed, and lets us use it: 0, or a negative errno with what was
 * tried. Whether a listener can be had is another question: a filter around us may have one.
 */
int vt_notify_probe(enum vt_notify_use use, const char **ret_tried);

/* The next call that waits. -ENOENT: it does no longer. Blocks where there is none. */
int vt_notify_receive(int listener, struct vt_notice *ret_notice);

/* Whether it still does. */
bool vt_notify_waits(int listener, uint64_t id);

/* Lets it return 0, or fail with this negative errno. A negative errno where it waits no longer. */
int vt_notify_answer(int listener, uint64_t id, int result);

/* A copy of a descriptor of the thread's, close-on-exec, or a negative errno. */
int vt_notify_take_fd(pid_t tid, int fd);

/* Reads so many bytes of its memory, all or none: 0, -EFAULT, ... */
int vt_notify_read(pid_t tid, uint64_t address, void *buf, size_t len);

/* Reads a text with its zero byte, -ENAMETOOLONG where that is not among the first `size`. */
int vt_notify_read_text(pid_t tid, uint64_t address, char *buf, size_t size);

/*
 * Opens, O_PATH, what a descriptor of its shows, or for AT_FDCWD its working directory: through
 * /proc, which asks for less than vt_notify_take_fd(). -EBADF where there is none.
 */
int vt_notify_open_fd(pid_t tid, int number);

/* Its working directory, as a path of its own root. */
int vt_notify_folder(pid_t tid, char *buf, size_t size);

/*
 * Whether a socket belongs to the thread's own network namespace, as far as we may know: we need
 * CAP_NET_ADMIN there.
 */
bool vt_notify_same_network(pid_t tid, int socket_fd);

/*
 * Opens what a path leads to, O_PATH, with root_fd as "/": no link and no ".." leads out of it, and
 * none of proc's that jump. A negative errno else.
 */
int vt_notify_open_in(int root_fd, const char *path);

/*
 * The same from a folder in our own root, wherever it leads; `last` is whether a link at its end
 * does.
 */
int vt_notify_open_at(int dir_fd, const char *path, bool last);

/*
 * Opens what lies below root_fd, O_PATH, through no link at all: the kernel vouches that it is
 * there.
 */
int vt_notify_open_beneath(int root_fd, const char *path);
