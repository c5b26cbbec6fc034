/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fdlink.h"

/* POLLOUT promises room for PIPE_BUF in a pipe, and less in a terminal; more could block. */
#define POLLED_BYTES ((size_t)512)

/* Whether opening it again gives the same thing: the master of a terminal would make a new one. */
static bool can_open_anew(int fd, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) ||
	       (S_ISCHR(st->st_mode) && isatty(fd) && st->st_rdev != makedev(TTYAUX_MAJOR, 2));
}

void vt_outlet_init(struct vt_outlet *outlet, int fd)
{
	char path[VT_FDLINK];
	struct stat st;

	*outlet = (struct vt_outlet){ .kind = VT_OUTLET_POLLED, .fd = fd };
	if (fstat(fd, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		outlet->kind = VT_OUTLET_FILE;
	} else if (S_ISSOCK(st.st_mode)) {
		outlet->kind = VT_OUTLET_SOCKET;
	} else if (can_open_anew(fd, &st)) {
		(void)vt_fdlink(path, fd);
		int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		if (own >= 0)
			*outlet = (struct vt_outlet){ .kind = VT_OUTLET_OWN, .fd = own };
	}
}

void vt_outlet_done(struct vt_outlet *outlet)
{
	if (outlet->kind == VT_OUTLET_OWN)
		(void)close(outlet->fd); /* nothing is buffered in it */
	outlet->kind = VT_OUTLET_POLLED;
	outlet->fd = -1;
}

static ssize_t write_polled(int fd, const char *bytes, size_t len)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	if (poll(&ready, 1, 0) <= 0)
		return -EAGAIN;
	ssize_t written = write(fd, bytes, len < POLLED_BYTES ? len : POLLED_BYTES);

	return written < 0 ? -errno : written;
}

ssize_t vt_outlet_write(const struct vt_outlet *outlet, const char *bytes, size_t len)
{
	ssize_t written;

	do {
		if (outlet->kind == VT_OUTLET_POLLED)
			written = write_polled(outlet->fd, bytes, len);
		else if (outlet->kind == VT_OUTLET_SOCKET)
			written = send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			written = write(outlet->fd, bytes, len);
		if (written == -1 && outlet->kind != VT_OUTLET_POLLED)
			written = -errno;
	} while (written == -EINTR);
	return written;
}
