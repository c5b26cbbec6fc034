/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/relay.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"

/* The occupant sees the end of its input. */
static void end(struct vt_relay *relay)
{
	vt_loop_remove(relay->loop, &relay->in);
	vt_loop_remove(relay->loop, &relay->out);
	vt_fd_close(&relay->out.fd);
}

static void watch(struct vt_relay *relay, struct vt_source *wanted, struct vt_source *other,
		  uint32_t events)
{
	struct vt_err err;

	vt_loop_remove(relay->loop, other);
	if (vt_loop_add(relay->loop, wanted, events, &err) < 0)
		end(relay);
}

/* Writes what is held; then it is the terminal's turn again. */
static void out_ready(struct vt_source *source, uint32_t events)
{
	struct vt_relay *relay = source->owner;

	(void)events; /* an error shows in the write */
	ssize_t n = write(source->fd, relay->held + relay->written, relay->len - relay->written);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end(relay); /* nobody reads it any more */
		return;
	}
	relay->written += n > 0 ? (size_t)n : 0;
	if (relay->written == relay->len)
		watch(relay, &relay->in, &relay->out, EPOLLIN);
	else
		watch(relay, &relay->out, &relay->in, EPOLLOUT);
}

static void in_ready(struct vt_source *source, uint32_t events)
{
	struct vt_relay *relay = source->owner;

	(void)events; /* a hang-up shows as the end of the input */
	ssize_t n = read(source->fd, relay->held, sizeof(relay->held));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(relay);
		return;
	}
	relay->len = (size_t)n;
	relay->written = 0;
	out_ready(&relay->out, 0);
}

int vt_relay_init(struct vt_relay *relay, struct vt_loop *loop, int in_fd, int out_fd,
		  struct vt_err *err)
{
	relay->loop = loop;
	relay->in = (struct vt_source){ .fd = in_fd, .ready = in_ready, .owner = relay };
	relay->out = (struct vt_source){ .fd = out_fd, .ready = out_ready, .owner = relay };
	return vt_loop_add(loop, &relay->in, EPOLLIN, err);
}

void vt_relay_done(struct vt_relay *relay)
{
	if (relay->loop)
		end(relay);
}
