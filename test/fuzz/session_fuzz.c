/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor's session under any stream from its client, on an invented machine. Its pools are no
 * real ones: a tool's name says what its calls do, and no process is ever made. Whatever is said,
 * each message that comes back is one that the client understands, and no call is told of twice or
 * after its end. Input: test/fuzz/frames.h; FRAMES_GREETED: a hello comes first; FRAMES_MORE: all
 * at once, else in pieces.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frame.h"
#include "client/result.h"
#include "frames.h"
#include "pool/pool.h"
#include "serve/private.h"
#include "serve/settle.h"

/* ---- pools that are none -------------------------------------------------------------------- */

struct vt_pool {
	struct vt_loop *loop;
	struct vt_timer timer;
	struct vt_pool_call *first; /* calls that are not over */
};

static void unlink_call(struct vt_pool_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
}

/* What a tool says is up to it: here, what it was called with. */
static void end_call(struct vt_pool_call *call, enum vt_status status)
{
	struct vt_outcome outcome = { .came_to_cell = true };

	vt_result_init(&outcome.result);
	outcome.result.verdict.status = status;
	if (status == VT_STATUS_OK) {
		outcome.value = call->arguments;
		outcome.value_len = call->arguments_len;
		vt_capture_init(&outcome.result.out, 16);
		vt_capture_add(&outcome.result.out, call->arguments, call->arguments_len);
	} else if (status == VT_STATUS_ERROR) {
		outcome.error_type = call->name;
		outcome.error = call->arguments;
		outcome.error_len = call->arguments_len;
	}
	unlink_call(call);
	call->events->done(call, &outcome);
	vt_capture_done(&outcome.result.out);
}

static void act(struct vt_pool_call *call)
{
	const char *bytes = call->arguments;
	size_t len = call->arguments_len;

	switch (*call->name) {
	case 'h': /* it hangs */
		return;
	case 'o':
		call->events->output(call, 1, bytes, len);
		call->events->output(call, 2, bytes, len);
		break;
	case 'l':
		call->events->log(call, call->name, bytes, len);
		break;
	case 'a':
		call->events->ask(call, 1, call->name, bytes, len);
		return; /* until it is answered */
	case 'e':
		end_call(call, VT_STATUS_ERROR);
		return;
	default:
		break;
	}
	(void)call->events->full(call);
	end_call(call, VT_STATUS_OK);
}

static void fire(struct vt_timer *timer)
{
	struct vt_pool *pool = timer->owner;

	for (struct vt_pool_call *call = pool->first, *next; call; call = next) {
		next = call->next;
		act(call);
	}
}

int vt_pool_new(struct vt_loop *loop, const struct vt_pool_options *options,
		struct vt_pool **ret_pool, struct vt_err *err)
{
	struct vt_pool *pool = calloc(1, sizeof(*pool));

	(void)err;
	REQUIRE(pool && options->plan && options->ready_min > 0 && options->live_max > 0);
	pool->loop = loop;
	pool->timer = (struct vt_timer){ .fire = fire, .owner = pool };
	vt_loop_add_timer(loop, &pool->timer);
	*ret_pool = pool;
	return 0;
}

void vt_pool_free(struct vt_pool *pool)
{
	if (!pool)
		return;
	vt_pool_quit(pool);
	vt_loop_remove_timer(pool->loop, &pool->timer);
	free(pool);
}

void vt_pool_leave(struct vt_pool *pool)
{
	vt_pool_free(pool);
}

void vt_pool_quit(struct vt_pool *pool)
{
	while (pool->first)
		end_call(pool->first, VT_STATUS_CANCELLED);
}

bool vt_pool_is_over(const struct vt_pool *pool)
{
	return !pool->first;
}

void vt_pool_submit(struct vt_pool *pool, struct vt_pool_call *call)
{
	REQUIRE(memchr(call->name, '\0', call->name_len) && call->wall_ms >= 0);
	REQUIRE(!call->command ||
		(call->arguments_len && !call->arguments[call->arguments_len - 1]));
	call->pool = pool;
	call->next = pool->first;
	call->link = &pool->first;
	if (call->next)
		call->next->link = &call->next;
	pool->first = call;
	vt_timer_set(&pool->timer, vt_clock_now());
}

void vt_pool_learn(struct vt_pool *pool, const char *module)
{
	REQUIRE(pool && *module && strlen(module) <= 255);
}

bool vt_pool_can_learn(const struct vt_pool *pool, const char *module)
{
	REQUIRE(pool && strlen(module) <= 255);
	return true;
}

void vt_pool_learn_same(struct vt_pool *pool, const struct vt_pool *other)
{
	REQUIRE(pool && other && pool != other);
}

void vt_pool_resume(struct vt_pool *pool)
{
	vt_timer_set(&pool->timer, vt_clock_now());
}

void vt_pool_answer(struct vt_pool_call *call, uint64_t id, bool ok, const char *body, size_t len)
{
	REQUIRE(id <= INT64_MAX && (body || !len));
	if (id == 1 && *call->name == 'a')
		end_call(call, ok ? VT_STATUS_OK : VT_STATUS_NO_RESULT);
}

void vt_pool_cancel(struct vt_pool_call *call)
{
	end_call(call, VT_STATUS_CANCELLED);
}

void vt_pool_count(const struct vt_pool *pool, struct vt_pool_counts *ret_counts)
{
	*ret_counts = (struct vt_pool_counts){ .live = pool->first ? 1 : 0 };
}

int vt_serve_settle(struct vt_policy *policy, struct vt_host *host, struct vt_err *err)
{
	(void)policy;
	(void)host;
	(void)err;
	return 0;
}

/* ---- a machine where every path is a folder of root's --------------------------------------- */

static int look(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	(void)host;
	*ret_path = (struct vt_path){ .mode = S_IFDIR | 0755, .dev = 1, .ino = 1 + strlen(path) };
	return 0;
}

static int step(const struct vt_host *host, const char *path, struct vt_path *ret_path,
		char *target, size_t size)
{
	(void)target;
	(void)size;
	return look(host, path, ret_path);
}

static const struct vt_host machine = {
	.uid = 1000,
	.gid = 1000,
	.cpus = 4,
	.landlock_abi = 7,
	.userns = { 0, "a trial" },
	.seccomp = { 0, "a trial" },
	.notify = { 0, "a trial" },
	.own_proc = { 0, "a trial" },
	.look = look,
	.step = step,
};

/* ---- the client ----------------------------------------------------------------------------- */

struct feeder {
	struct vt_timer timer;
	struct vt_str stream;
	struct vt_frames_in in;
	size_t sent, piece;
	int fd;
};

/* All that came is what a client understands. */
static void drain(struct feeder *feeder)
{
	struct vt_message message;
	struct vitro_result parts;
	struct vt_frame frame;
	struct vt_err err;
	int status;

	do {
		while ((status = vt_frames_next(&feeder->in, &frame, &err)) > 0) {
			REQUIRE(vt_message_read(&frame, &message, &err) == 0);
			REQUIRE(strcmp(message.is, "done") != 0 ||
				vt_result_read(&message, &parts, &err) == 0);
		}
		REQUIRE(status == 0);
	} while (vt_frames_read(&feeder->in, feeder->fd, &err) > 0);
}

static void feed(struct vt_timer *timer)
{
	struct feeder *feeder = timer->owner;
	size_t left = feeder->stream.len - feeder->sent;

	drain(feeder);
	if (left == 0) {
		(void)shutdown(feeder->fd, SHUT_WR); /* it is a socket */
		return;
	}
	ssize_t sent = send(feeder->fd, feeder->stream.text + feeder->sent,
			    left < feeder->piece ? left : feeder->piece,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent > 0)
		feeder->sent += (size_t)sent;
	vt_timer_set(timer, vt_clock_now());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char hello[] = "{\"do\":\"hello\",\"version\":1}";
	struct feeder feeder = { .piece = SIZE_MAX };
	struct vt_host host = machine;
	struct vt_loop loop;
	struct vt_err err;
	int ends[2];

	if (size < 1)
		return 0;
	vt_str_init(&feeder.stream);
	if (data[0] & FRAMES_GREETED)
		frames_add(&feeder.stream, hello, strlen(hello), NULL, 0);
	frames_of(&feeder.stream, data, size);
	if (!(data[0] & FRAMES_MORE))
		feeder.piece = 100 + feeder.stream.len / 64;
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	feeder.fd = ends[0];
	vt_frames_in_init(&feeder.in, VT_FRAME_MAX);
	REQUIRE(vt_loop_init(&loop, &err) == 0);
	feeder.timer = (struct vt_timer){ .fire = feed, .owner = &feeder };
	vt_loop_add_timer(&loop, &feeder.timer);
	vt_timer_set(&feeder.timer, vt_clock_now());
	REQUIRE(vt_serve_private(&loop, &host, ends[1], -1, &err) == 0);
	vt_loop_remove_timer(&loop, &feeder.timer);
	drain(&feeder);
	vt_loop_done(&loop);
	vt_frames_in_done(&feeder.in);
	vt_str_done(&feeder.stream);
	close(ends[0]);
	return 0;
}
