/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "base/stranger.h"

static void in_ready(struct vt_watch *source, uint32_t events);

/* The occupant sees the end of its input. */
static void end(struct vt_relay *relay)
{
	vt_loop_remove(relay->loop, &relay->in);
	vt_loop_remove(relay->loop, &relay->out);
	vt_fd_close(&relay->out.fd);
}

/* Only a file has a place to go back to; for all else lseek says ESPIPE, and nothing changes. */
static void give_back(const struct vt_relay *relay)
{
	int unread;

	if (ioctl(relay->probe_fd, FIONREAD, &unread) < 0)
		return;
	off_t ahead = unread + (off_t)(relay->len - relay->written);

	/* The occupant can put bytes of its own into the pipe: no more is given back than was
	 * taken. */
	ahead = ahead < relay->taken ? ahead : relay->taken;
	if (ahead > 0)
		(void)lseek(relay->in.fd, -ahead, SEEK_CUR);
}

/* A description of our own, where there can be one; a socket, or a pipe of another user, has none.
 */
static int open_anew(int fd)
{
	char path[VT_FDLINK];
	struct stat st;

	if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode))
		return -1; /* the place in a file is to be shared */
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(TTYAUX_MAJOR, 2))
		return -1; /* the master of a terminal: to open it is to make another terminal */
	(void)vt_fdlink(path, fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* What is held must be written; else more is read. A file is always ready, and cannot be polled. */
static void watch(struct vt_relay *relay)
{
	bool reading = relay->written == relay->len;
	struct vt_err err;
	int r;

	vt_loop_remove(relay->loop, reading ? &relay->out : &relay->in);
	r = reading ? vt_loop_add(relay->loop, &relay->in, EPOLLIN, &err) : -EPERM;
	if (r == -EPERM)
		r = vt_loop_add(relay->loop, &relay->out, EPOLLOUT, &err);
	if (r < 0)
		end(relay);
}

static void out_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_relay *relay = source->owner;

	(void)events; /* an error shows in the write */
	if (relay->written == relay->len) {
		in_ready(&relay->in, 0);
		return;
	}
	ssize_t n = write(source->fd, relay->held + relay->written, relay->len - relay->written);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end(relay); /* nobody reads it any more */
		return;
	}
	relay->written += n > 0 ? (size_t)n : 0;
	watch(relay);
}

/*
 * What poll promised somebody else may have read, where the description is theirs too: a read must
 * not wait for more. A file has no others to wait for, and RWF_NOWAIT would tell its pages apart.
 */
static ssize_t read_at_once(struct vt_relay *relay)
{
	struct iovec held = { .iov_base = relay->held, .iov_len = sizeof(relay->held) };
	ssize_t n;

	if (relay->own || !relay->in.added)
		return read(relay->in.fd, relay->held, sizeof(relay->held));
	/* Whoever writes to it is not who started vitro, and may be nobody's friend. */
	n = vt_stranger_recv(relay->in.fd, relay->held, sizeof(relay->held), MSG_DONTWAIT);
	if (n >= 0 || errno != ENOTSOCK)
		return n;
	n = preadv2(relay->in.fd, &held, 1, -1, RWF_NOWAIT);
	if (n >= 0 || errno != EOPNOTSUPP)
		return n;
	return read(relay->in.fd, relay->held, sizeof(relay->held));
}

static void in_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_relay *relay = source->owner;

	(void)events; /* a hang-up shows as the end of the input */
	ssize_t n = read_at_once(relay);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(relay);
		return;
	}
	relay->taken += n;
	relay->len = (size_t)n;
	relay->written = 0;
	out_ready(&relay->out, 0);
}

int vt_relay_init(struct vt_relay *relay, struct vt_loop *loop, int in_fd, int probe_fd, int out_fd,
		  struct vt_err *err)
{
	int own = open_anew(in_fd);

	relay->loop = loop;
	relay->own = own >= 0;
	relay->probe_fd = probe_fd;
	relay->in = (struct vt_watch){ .fd = own >= 0 ? own : in_fd,
				       .ready = in_ready,
				       .owner = relay };
	relay->out = (struct vt_watch){ .fd = out_fd, .ready = out_ready, .owner = relay };
	watch(relay);
	return relay->out.fd >= 0 ? 0
				  : vt_fail(err, VT_STEP_WATCH, EIO, "watch the standard input");
}

void vt_relay_done(struct vt_relay *relay)
{
	if (!relay->loop)
		return;
	give_back(relay);
	end(relay);
	vt_fd_close(&relay->probe_fd);
	if (relay->own)
		vt_fd_close(&relay->in.fd);
}
