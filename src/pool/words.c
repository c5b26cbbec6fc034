/* SPDX-License-Identifier: Apache-2.0 */
/* What is said between the supervisor and an occupant, in turns. */
#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/stranger.h"
#include "kernel/pass.h"
#include "pool/bare.h"
#include "pool/warm_private.h"

enum {
	/*
	 * What is taken of one cell before others have their turn: a cell that never stops talking
	 * delays them by no more than that.
	 */
	TURN_BYTES = 1 << 20,
	TURN_MESSAGES = 64,

	/* What it is told and does not read: from here on it is not heard, or ended. */
	UNREAD_MANY = 1 << 20,
	UNREAD_MAX = 256 << 20,
};

/* ---- what the occupant says ---------------------------------------------------------------- */

/* It broke the rules of the socket, and cannot be understood any more. */
static void break_off(struct vt_warm *warm, const struct vt_err *err)
{
	if (!warm->broken && !warm->findings.failed && warm->findings.stop == VT_STOP_NONE)
		warm->broken = err->num;
	vt_warm_end(warm);
}

/* Of an occupant of commands, before it is anything else than vitro's own. */
static void take_unable(struct vt_warm *warm, const struct vt_talk *talk)
{
	int num = talk->id > 0 && talk->id < 4096 ? (int)talk->id : EIO;
	struct vt_err err;

	(void)vt_fail_at(&err, VT_STEP_EXEC, num, "execute", warm->call->arguments);
	vt_warm_give_up(warm, &err);
}

static void take_talk(struct vt_warm *warm, const struct vt_talk *talk)
{
	struct vt_pool_call *call = warm->call;
	struct vt_err err;

	if (call->command && talk->kind == VT_TALK_UNABLE) {
		take_unable(warm, talk);
		return;
	}
	switch (call->command ? VT_TALK_EXECUTE : talk->kind) { /* a command says nothing else */
	case VT_TALK_LOG:
		if (call->events->log)
			call->events->log(call, talk->name, talk->body, talk->body_len);
		return;
	case VT_TALK_ASK:
		/* Numbers of the wire have a sign, and a client takes none that is negative. */
		if (talk->id > INT64_MAX)
			break;
		call->events->ask(call, talk->id, talk->name, talk->body, talk->body_len);
		return;
	case VT_TALK_RESULT:
	case VT_TALK_ERROR:
		if (warm->findings.stop == VT_STOP_NONE)
			vt_warm_take_result(warm, talk);
		else
			vt_warm_end(warm); /* it is too late, grace or not */
		return;
	default:
		break;
	}
	(void)vt_fail(&err, VT_STEP_WATCH, EBADMSG, "understand what the occupant says");
	break_off(warm, &err);
}

/* ---- what it is told, and when it is heard ------------------------------------------------- */

static size_t unread(const struct vt_warm *warm)
{
	return warm->rest_len + warm->going.len - warm->going_at;
}

/* Waits for what the socket is of use for now. */
static void watch_talk(struct vt_warm *warm)
{
	uint32_t events = 0;
	struct vt_err err;

	if (!warm->held && unread(warm) <= UNREAD_MANY)
		events |= EPOLLIN;
	if (unread(warm))
		events |= EPOLLOUT;
	vt_loop_remove(warm->loop, &warm->talk);
	if (events && vt_loop_add(warm->loop, &warm->talk, events, &err) < 0)
		vt_warm_give_up(warm, &err);
}

bool vt_words_hold(struct vt_warm *warm)
{
	struct vt_pool_call *call = warm->call;

	if (!call || !call->events->full || !call->events->full(call))
		return false;
	warm->held = true;
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		vt_loop_remove(warm->loop, &warm->pipes[i]);
	if (warm->state == VT_WARM_RUNNING)
		watch_talk(warm);
	return true;
}

void vt_warm_resume(struct vt_warm *warm)
{
	struct vt_err err;

	if (!warm->held)
		return;
	warm->held = false;
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		if (warm->pipes[i].fd >= 0 &&
		    vt_loop_add(warm->loop, &warm->pipes[i], EPOLLIN, &err) < 0)
			vt_warm_give_up(warm, &err);
	if (warm->occupant.fd >= 0 && vt_loop_add(warm->loop, &warm->occupant, EPOLLIN, &err) < 0)
		vt_warm_give_up(warm, &err);
	if (warm->state == VT_WARM_RUNNING)
		watch_talk(warm);
}

/* How much the socket took: less than all of it where it is full. -EPIPE: nobody reads it any more.
 */
static ssize_t send_some(struct vt_warm *warm, const char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t sent = send(warm->talk.fd, bytes + at, len - at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			at += (size_t)sent;
		else if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return -EPIPE;
		else if (sent == 0 || errno != EINTR)
			break;
	}
	return (ssize_t)at;
}

static void send_going(struct vt_warm *warm)
{
	ssize_t sent = 0;

	if (warm->rest_len) {
		sent = send_some(warm, warm->rest, warm->rest_len);
		warm->rest += sent > 0 ? sent : 0;
		warm->rest_len -= sent > 0 ? (size_t)sent : 0;
	}
	if (warm->rest_len == 0 && warm->going.len) {
		sent = send_some(warm, warm->going.text + warm->going_at,
				 warm->going.len - warm->going_at);
		warm->going_at += sent > 0 ? (size_t)sent : 0;
	}
	/* A socket that hung up is always ready: with something left for it, the loop would spin
	 * for as long as a call that is held is not heard. */
	if (sent < 0) {
		warm->rest_len = 0;
		warm->going_at = warm->going.len;
	}
	/* What is gone makes room, also where something is always left. */
	if (warm->going_at >= warm->going.len / 2) {
		vt_str_drop(&warm->going, warm->going_at);
		warm->going_at = 0;
	}
	if (warm->call && warm->call->events->unheard)
		warm->call->events->unheard(warm->call, warm->going.len);
	watch_talk(warm);
}

/* Puts what is left of a message, from `at` on, in line, and sends what can be sent. */
static void queue(struct vt_warm *warm, const struct vt_talk *talk, size_t at)
{
	const struct vt_talk_head head = { .kind = talk->kind,
					   .flags = talk->flags,
					   .name_len = (uint32_t)talk->name_len,
					   .id = talk->id,
					   .body_len = talk->body_len };
	struct vt_err err;

	vt_str_addn(&warm->going, (const char *)&head, sizeof(head));
	vt_str_addn(&warm->going, talk->name, talk->name_len);
	vt_str_addn(&warm->going, talk->body, talk->body_len);
	if (!vt_str_ok(&warm->going)) {
		(void)vt_fail(&err, VT_STEP_WATCH, ENOMEM, "speak to the occupant");
		vt_warm_give_up(warm, &err);
		return;
	}
	warm->going_at += at;
	send_going(warm);
}

void vt_words_go_on(struct vt_warm *warm, const struct vt_talk *talk, size_t at)
{
	size_t before = sizeof(struct vt_talk_head) + talk->name_len;

	if (at < before) {
		queue(warm, talk, at);
		return;
	}
	warm->rest = talk->body + (at - before);
	warm->rest_len = talk->body_len - (at - before);
	send_going(warm);
}

static void say(struct vt_warm *warm, const struct vt_talk *talk)
{
	size_t at = 0;
	struct vt_err err;

	/* All of it goes, or nobody is there: that shows by itself. */
	if (unread(warm) == 0 && vt_talk_send(warm->talk.fd, MSG_DONTWAIT, talk, &at, &err) != 0) {
		vt_loop_try(warm->loop, &warm->talk);
		return;
	}
	queue(warm, talk, at);
}

void vt_warm_answer(struct vt_warm *warm, uint64_t id, bool ok, const char *body, size_t len)
{
	const struct vt_talk talk = { .kind = VT_TALK_ANSWER,
				      .flags = ok ? 0 : VT_TALK_FAILED,
				      .id = id,
				      .body = (char *)body,
				      .body_len = len };

	struct vt_err err;

	if (warm->state != VT_WARM_RUNNING)
		return;
	if (unread(warm) <= UNREAD_MAX) {
		say(warm, &talk);
		return;
	}
	(void)vt_fail(&err, VT_STEP_WATCH, ENOBUFS, "speak to an occupant that does not listen");
	break_off(warm, &err);
}

/* ---- how it is heard ----------------------------------------------------------------------- */

void vt_words_check_parked(struct vt_warm *warm)
{
	if (warm->state == VT_WARM_ENTERING && warm->parked && warm->child.pid)
		vt_warm_move(warm, VT_WARM_PARKED);
}

static void take_word(struct vt_warm *warm, struct vt_note *note, int *fd)
{
	struct vt_err err;
	int r = 0;

	vt_warm_bare_hear(warm); /* what came before, on another socket */
	if (note->kind == VT_NOTE_LISTENER && warm->plan->broker.modes)
		r = vt_warm_bare_listen(warm, vt_fd_take(fd), &err);
	else if (note->kind == VT_NOTE_LISTENER && warm->plan->broker.on && !warm->broker.plan)
		/* Who connects for the cell is who the cell is. */
		r = vt_broker_listen(&warm->broker, warm->loop, warm->plan,
				     vt_spawn_slot_ids(warm->plan, warm->slot), vt_fd_take(fd),
				     warm->root_fd, &err);
	if (r < 0) {
		vt_warm_fail(warm, &err);
	} else if (note->kind == VT_NOTE_FAILED) {
		note->err.what[sizeof(note->err.what) - 1] = '\0';
		vt_warm_fail(warm, &note->err);
	} else if (note->kind == VT_NOTE_PARKED) {
		/* Until here descriptors of its own came: its listener. From here on nothing but
		 * the call's. */
		if (!warm->plan->bars_rights || vt_stranger_bar(warm->talk.fd) < 0) {
			warm->in.wary = true;
			vt_stranger_watch(warm->talk.fd);
		}
		warm->parked = true;
		vt_words_check_parked(warm);
	}
}

/* The first words are vitro's own code's, before anything else can run: its listener, its end, or
 * that it is ready. */
static void take_first_words(struct vt_warm *warm)
{
	struct vt_note note;
	struct vt_err err;
	int r = 1;

	while (r > 0 && warm->state == VT_WARM_ENTERING && !warm->parked) {
		AUTO_CLOSE int fd = -1;

		r = vt_pass_take(warm->talk.fd, &note, sizeof(note), &fd, 1, MSG_DONTWAIT, &err);
		if (r > 0)
			take_word(warm, &note, &fd);
	}
	/* Nobody has its end any more: why, the zygote tells, or its end, or the occupant's. */
	if (r == -EPIPE)
		vt_loop_remove(warm->loop, &warm->talk);
	else if (r < 0)
		vt_warm_fail(warm, &err);
}

/* Takes what it says, up to so many bytes and messages. */
static void hear(struct vt_warm *warm, size_t bytes, int messages)
{
	struct vt_talk talk;
	struct vt_err err;
	int r = 1;

	warm->in.may_read = bytes;
	for (int count = 1; warm->state == VT_WARM_RUNNING && r > 0; count++) {
		/* What was read ahead is taken all the same: no event tells of that. */
		if (count > messages)
			warm->in.may_read = 0;
		r = vt_talk_next(&warm->in, warm->talk.fd, MSG_DONTWAIT, &talk, &err);
		if (r > 0)
			take_talk(warm, &talk);
	}
	/* After its result the caller has the next turn; whatever it says then is of no interest.
	 */
	if (r >= 0 && (warm->state == VT_WARM_RUNNING || warm->state == VT_WARM_OVER))
		return;
	/* Closed: its end will tell more. */
	vt_loop_remove(warm->loop, &warm->talk);
	if (r < 0 && (err.num == EBADMSG || err.num == EMSGSIZE))
		break_off(warm, &err);
	else if (r < 0 && err.num != EPIPE)
		vt_warm_give_up(warm, &err); /* not for anything that it did */
	else if (warm->state == VT_WARM_PARKED || warm->state == VT_WARM_ENTERING)
		vt_warm_kill(warm); /* it may not speak, nor end, before it is spoken to */
}

/* Not more than is there now: whoever is left of the cell may never stop talking. */
void vt_warm_hear_last(struct vt_warm *warm)
{
	int there = 0;

	if (warm->state == VT_WARM_ENTERING && !warm->parked)
		take_first_words(warm);
	else if (warm->state == VT_WARM_RUNNING && ioctl(warm->talk.fd, SIOCINQ, &there) == 0)
		hear(warm, (size_t)there, INT_MAX);
}

void vt_words_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_warm *warm = source->owner;

	if (warm->state == VT_WARM_OVER) {
		vt_loop_remove(warm->loop, source);
		return;
	}
	if (warm->state == VT_WARM_ENTERING && !warm->parked) {
		take_first_words(warm);
		return;
	}
	if (events & EPOLLOUT)
		send_going(warm);
	if (events & ~(uint32_t)EPOLLOUT && !vt_words_hold(warm))
		hear(warm, TURN_BYTES, TURN_MESSAGES);
}
