/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/warm_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "pool/bare.h"
#include "pool/input.h"
#include "watch/guarded.h"
#include "watch/procfs.h"

/* Hundreds of processes that spin take seconds to die; one that sleeps in the kernel may never. */
#define REAP_TIMEOUT (5 * VT_NS_PER_S)

#define TO(state) (1U << VT_WARM_##state)

/* Which states may follow. */
static const unsigned followers[VT_WARM_STATES] = {
	[VT_WARM_MAKING] = TO(BUILT) | TO(ENDING),    [VT_WARM_BUILT] = TO(ENTERING) | TO(ENDING),
	[VT_WARM_ENTERING] = TO(PARKED) | TO(ENDING), [VT_WARM_PARKED] = TO(RUNNING) | TO(ENDING),
	[VT_WARM_RUNNING] = TO(OVER) | TO(ENDING),    [VT_WARM_OVER] = TO(ENDING),
};

static int64_t cpu_time(const struct vt_warm *warm)
{
	pid_t pid = warm->plan->bare    ? warm->bare.occupant
		    : warm->child.swept ? 0
					: warm->child.pid;
	struct timespec used;
	/* What clock_getcpuclockid() gives, which asks the kernel whether there is such a process.
	 */
	clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);

	if (pid <= 0 || clock_gettime(clock, &used) < 0)
		return 0;
	return used.tv_sec * VT_NS_PER_S + used.tv_nsec;
}

void vt_warm_move(struct vt_warm *warm, enum vt_warm_state state)
{
	enum vt_warm_state from = warm->state;

	if (!(followers[from] & 1U << state))
		abort(); /* a bug in this file; going on would take one cell for another */
	warm->state = state;
	warm->since = vt_clock_now();
	if (state == VT_WARM_ENTERING)
		warm->entered = warm->since;
	if (state == VT_WARM_PARKED)
		warm->parked_cpu = cpu_time(warm);
	warm->owner->moved(warm, from);
}

/* ---- its end ------------------------------------------------------------------------------- */

static void close_watch(struct vt_warm *warm, struct vt_watch *watch)
{
	vt_loop_remove(warm->loop, watch);
	vt_fd_close(&watch->fd);
}

static void close_streams(struct vt_warm *warm)
{
	vt_loop_remove(warm->loop, &warm->talk);
	vt_children_shut(warm->children, &warm->talk.fd, warm->in.wary);
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		close_watch(warm, &warm->pipes[i]);
}

static void conclude_end(struct vt_warm *warm);
static void tell_result(struct vt_warm *warm, const struct vt_talk *talk);

static void check_gone(struct vt_warm *warm)
{
	if (warm->state != VT_WARM_ENDING || warm->init.fd >= 0 || warm->child.pid || warm->gone ||
	    !vt_warm_bare_gone(warm))
		return;
	/* Nothing of it is left that could write. */
	if (warm->call && !warm->judged && !warm->judging) {
		warm->judging = warm->owner->judge(warm);
		warm->judged = !warm->judging;
		warm->unjudged = !warm->judging;
	}
	if (warm->call && warm->judging)
		return;
	warm->gone = true;
	conclude_end(warm);
	warm->owner->gone(warm);
}

static void take_status(struct vt_warm *warm, int status)
{
	close_watch(warm, &warm->occupant);
	warm->findings.ended = true;
	warm->findings.wait_status = status;
}

/* One whose end was to wait is watched again; if that cannot be, it has ended. */
static void notice_end(struct vt_warm *warm)
{
	struct vt_err err;
	int status;

	if (warm->occupant.fd >= 0 && vt_loop_add(warm->loop, &warm->occupant, EPOLLIN, &err) < 0 &&
	    vt_child_try_reap(&warm->child, &status))
		take_status(warm, status);
}

static json_t *read_records(const struct vt_plan *plan, const char *bytes, size_t len)
{
	struct vt_guard_record record;
	struct vt_result result;

	vt_result_init(&result);
	while (len >= sizeof(record)) {
		const char *path = bytes + sizeof(record), *end = bytes + len;

		memcpy(&record, bytes, sizeof(record));
		const char *to = memchr(path, '\0', (size_t)(end - path));
		const char *last = to ? memchr(to + 1, '\0', (size_t)(end - to) - 1) : NULL;

		if (!last || record.build >= plan->build_count || record.event > VT_GUARD_REPLACED)
			break;
		vt_guarded_tell(&result, plan->builds[record.build].from,
				(enum vt_guard_event)record.event, path, to[1] ? to + 1 : NULL,
				(int)record.num);
		len = (size_t)(end - last) - 1;
		bytes = last + 1;
	}
	json_t *guarded = json_incref(result.guarded);

	vt_result_done(&result);
	return guarded;
}

json_t *vt_warm_read_judged(const struct vt_plan *plan, int fd)
{
	char *bytes = fd < 0 ? NULL : malloc(VT_GUARD_RECORDS_MAX);
	ssize_t len = bytes ? pread(fd, bytes, VT_GUARD_RECORDS_MAX, 0) : 0;
	json_t *guarded = len > 0 ? read_records(plan, bytes, (size_t)len) : NULL;

	free(bytes);
	return guarded;
}

void vt_warm_judged(struct vt_warm *warm, int fd)
{
	if (!warm->judging)
		return;
	json_decref(warm->guarded);
	warm->guarded = vt_warm_read_judged(warm->plan, fd);
	warm->judging = false;
	warm->judged = true;
	if (warm->state == VT_WARM_OVER && warm->call)
		tell_result(warm, &warm->result);
	else
		check_gone(warm);
}

void vt_warm_kill(struct vt_warm *warm)
{
	if (warm->state == VT_WARM_ENDING)
		return;
	warm->given_up = vt_clock_now() + REAP_TIMEOUT;
	vt_warm_move(warm, VT_WARM_ENDING);
	if (warm->look.loop)
		vt_look_stop(&warm->look);
	vt_broker_stop(&warm->broker);
	vt_warm_bare_kill(warm);
	/* With a call that is not over, there may be more in its pipes until the last writer is
	 * gone. */
	if (warm->call)
		vt_loop_remove(warm->loop, &warm->talk);
	else
		close_streams(warm);
	vt_fd_close(&warm->root_fd);
	vt_fd_close(&warm->proc_fd);
	vt_fd_close(&warm->scratch_fd);
	notice_end(warm);
	/* ESRCH: it has ended. Without an init there is nothing yet, or nothing any more. */
	if (warm->init.fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, warm->init.fd, SIGKILL, NULL, 0);
	check_gone(warm);
}

void vt_warm_fail(struct vt_warm *warm, const struct vt_err *why)
{
	if (warm->state == VT_WARM_ENDING)
		return;
	warm->owner->failed(warm, why);
	vt_warm_kill(warm);
}

void vt_warm_leave(struct vt_warm *warm)
{
	struct pollfd init = { .fd = warm->init.fd, .events = POLLIN };
	int status;

	if (warm->child.pid && vt_child_try_reap(&warm->child, &status))
		take_status(warm, status);
	if (warm->init.fd >= 0 && poll(&init, 1, 0) == 1)
		close_watch(warm, &warm->init);
	conclude_end(warm); /* while it shows that somebody is left */
	vt_child_forget(&warm->child);
	close_watch(warm, &warm->occupant);
	close_watch(warm, &warm->init);
	check_gone(warm);
}

int vt_warm_release(struct vt_warm *warm)
{
	struct vt_err err;

	return vt_cgroup_try_remove(&warm->cell.cgroup, &err);
}

void vt_warm_free(struct vt_warm *warm)
{
	if (!warm)
		return;
	vt_look_done(&warm->look);
	vt_broker_done(&warm->broker);
	vt_warm_bare_done(warm);
	vt_talk_in_done(&warm->in);
	vt_str_done(&warm->going);
	json_decref(warm->guarded);
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		vt_capture_done(&warm->captures[i]);
	/* A folder that will not go holds nothing that runs; the next vitro sweeps it. */
	(void)vt_warm_release(warm);
	free(warm);
}

/* ---- its call ------------------------------------------------------------------------------ */

enum {
	PIPE_MOST = 1 << 20, /* that fits in one */
	/* Of one that is written to all the while, before others have their turn: there may be
	   many. */
	PIPE_TURN = 64 << 10,
};

/* What is in a pipe now, and so much at the most. */
static void drain(struct vt_warm *warm, size_t stream, size_t most)
{
	char bytes[16384];

	for (size_t left = most; left;) {
		ssize_t len = warm->pipes[stream].fd < 0
				      ? 0
				      : read(warm->pipes[stream].fd, bytes, sizeof(bytes));

		if (len < 0 && errno == EINTR)
			continue;
		if (len == 0)
			close_watch(warm, &warm->pipes[stream]);
		if (len <= 0)
			return;
		vt_capture_add(&warm->captures[stream], bytes, (size_t)len);
		if (warm->call && warm->call->events->output)
			warm->call->events->output(warm->call, (int)stream + 1, bytes, (size_t)len);
		left -= (size_t)len < left ? (size_t)len : left;
	}
}

/* Most calls have printed nothing: that takes one question, and none of the above's memory. */
static void drain_all(struct vt_warm *warm)
{
	struct pollfd pipes[VT_WARM_STREAMS];

	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		pipes[i] = (struct pollfd){ .fd = warm->pipes[i].fd, .events = POLLIN };
	if (poll(pipes, VT_WARM_STREAMS, 0) == 0)
		return;
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		drain(warm, i, PIPE_MOST);
}

static void reach_verdict(struct vt_warm *warm, struct vt_verdict *verdict)
{
	struct vt_findings *findings = &warm->findings;

	vt_findings_take_limits(findings, warm->plan);
	findings->wall_ms = (warm->deadline - warm->started) / VT_NS_PER_MS;
	findings->own_deadline = findings->wall_ms < warm->plan->wall_ms;
	findings->cpu_ns = warm->look.cpu_ns;
	vt_verdict_reach(findings, verdict);
}

/* Tells the call's maker, once. */
static void conclude(struct vt_warm *warm, struct vt_outcome *outcome)
{
	struct vt_pool_call *call = warm->call;
	struct vt_result *result = &outcome->result;
	int64_t alive = cpu_time(warm), cpu = alive > warm->ended_cpu ? alive : warm->ended_cpu;

	if (!call)
		return;
	cpu = (cpu > warm->look.cpu_ns ? cpu : warm->look.cpu_ns) - warm->parked_cpu;
	outcome->came_to_cell = true;
	result->wall_ms = (double)(vt_clock_now() - warm->started) / VT_NS_PER_MS;
	result->cpu_ms = cpu > 0 ? (double)cpu / VT_NS_PER_MS : 0;
	result->peak_memory_kb = warm->look.peak_memory ? warm->look.peak_memory / 1024 : -1;
	result->processes = warm->look.processes ? warm->look.processes : 1;
	drain_all(warm);
	result->out = warm->captures[0];
	result->err = warm->captures[1];
	result->guarded = warm->guarded;
	warm->call = NULL;
	warm->rest_len = 0; /* which was the call's */
	call->warm = NULL;
	call->events->done(call, outcome);
}

static void tell_result(struct vt_warm *warm, const struct vt_talk *talk)
{
	struct vt_frames_given given = { warm->in.data, warm->in.cap };
	struct vt_outcome outcome;
	struct vt_verdict *verdict = &outcome.result.verdict;

	vt_outcome_init(&outcome);
	outcome.given = &given;
	if (talk->kind == VT_TALK_RESULT) {
		verdict->status = VT_STATUS_OK;
		outcome.value = talk->body;
		outcome.value_len = talk->body_len;
	} else {
		vt_verdict_tool_failed(verdict, talk->name, talk->body);
		outcome.error_type = *talk->name ? talk->name : NULL;
		outcome.error = talk->body;
		outcome.error_len = talk->body_len;
	}
	conclude(warm, &outcome);
	warm->in.data = given.memory;
	warm->in.cap = given.memory ? given.cap : 0;
}

void vt_warm_take_result(struct vt_warm *warm, const struct vt_talk *talk)
{
	/* Before it moves, by which the next call may begin. */
	warm->judging = warm->owner->judge(warm);
	warm->result = *talk;
	vt_warm_move(warm, VT_WARM_OVER);
	/* What the cell still does is judged once more when it is gone. */
	if (!warm->judging && warm->call)
		tell_result(warm, talk);
}

/* The cell is gone, and its call is not over: what is in its pipes is all that there will ever be.
 */
static void conclude_end(struct vt_warm *warm)
{
	struct vt_outcome outcome;

	if (!warm->call)
		return;
	if (warm->result.kind) {
		tell_result(warm, &warm->result);
		close_streams(warm);
		return;
	}
	vt_look_conclude(&warm->look);
	vt_outcome_init(&outcome);
	outcome.result.unreaped = warm->bare.unburied ||
				  (warm->given_up <= vt_clock_now() && !warm->bare.empty &&
				   (warm->init.fd >= 0 || warm->child.pid));
	if (warm->broken)
		vt_verdict_bad_talk(&outcome.result.verdict, warm->broken,
				    warm->plan->result_bytes);
	else
		reach_verdict(warm, &outcome.result.verdict);
	/* A command's value is what it printed. */
	if (outcome.result.verdict.status == VT_STATUS_OK && !warm->call->command)
		vt_verdict_no_result(&outcome.result.verdict);
	conclude(warm, &outcome);
	close_streams(warm);
}

void vt_warm_end(struct vt_warm *warm)
{
	if (warm->state != VT_WARM_RUNNING)
		return;
	vt_warm_kill(warm);
}

void vt_warm_tick(struct vt_warm *warm, int64_t now)
{
	if (warm->state == VT_WARM_RUNNING && vt_warm_due(warm) <= now)
		vt_warm_stop(warm, VT_STOP_DEADLINE);
	else if (warm->state == VT_WARM_ENDING && warm->given_up <= now) {
		conclude_end(warm); /* nobody waits longer for it */
		warm->given_up = INT64_MAX;
		(void)vt_warm_bare_give_up(warm);
		check_gone(warm);
	}
}

int64_t vt_warm_due(const struct vt_warm *warm)
{
	if (warm->state == VT_WARM_RUNNING)
		return warm->warned ? warm->warned : warm->deadline;
	return warm->state == VT_WARM_ENDING ? warm->given_up : INT64_MAX;
}

/*
 * With a grace period the occupant is told first; whoever asks again does not wait for it. Of a
 * bare cell's occupant there is nothing to tell it by but a number that can be another's.
 */
static bool warn(struct vt_warm *warm, enum vt_stop why)
{
	if (warm->state != VT_WARM_RUNNING || warm->warned || !warm->plan->grace_ms ||
	    warm->plan->bare || warm->occupant.fd < 0 ||
	    (why != VT_STOP_DEADLINE && why != VT_STOP_CANCEL))
		return false;
	warm->warned = vt_clock_now() + warm->plan->grace_ms * VT_NS_PER_MS;
	return syscall(SYS_pidfd_send_signal, warm->occupant.fd, SIGTERM, NULL, 0) == 0;
}

void vt_warm_stop(struct vt_warm *warm, enum vt_stop why)
{
	if (warm->findings.stop == VT_STOP_NONE)
		warm->findings.stop = why;
	if (!warn(warm, why))
		vt_warm_end(warm);
}

static void limit_passed(void *owner, enum vt_stop why)
{
	vt_warm_stop(owner, why);
}

void vt_warm_give_up(void *owner, const struct vt_err *failure)
{
	struct vt_warm *warm = owner;

	if (!warm->findings.failed)
		warm->findings.failure = *failure;
	warm->findings.failed = true;
	vt_warm_end(warm);
}

void vt_warm_lose(struct vt_warm *warm, const struct vt_err *why)
{
	vt_warm_hear_last(warm);
	if (warm->state == VT_WARM_RUNNING)
		vt_warm_give_up(warm, why);
}

/* ---- what happens -------------------------------------------------------------------------- */

void vt_warm_pipe_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_warm *warm = source->owner;

	(void)events; /* a hang-up is read as such */
	if (warm->state == VT_WARM_OVER && !warm->call)
		close_watch(warm, source); /* of no interest any more */
	else if (!vt_words_hold(warm))
		drain(warm, (size_t)(source - warm->pipes), PIPE_TURN);
}

/* Whether the whole cell is on its way to its end, though nobody here killed it. */
static bool is_dying(const struct vt_warm *warm)
{
	return vt_proc_is_exiting(warm->init.fd) || warm->owner->is_dying(warm->owner->user);
}

static int lost_init(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WATCH, ECHILD, "keep the cell's init");
}

/* Of one that was not reaped yet: its own, and that of those it waited for. */
static int64_t ended_cpu(int pidfd)
{
	struct rusage usage = { 0 };

	/* The raw call has a place for it; where there is nothing to be had, it stays 0. */
	(void)syscall(SYS_waitid, P_PIDFD, pidfd, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL,
		      &usage);
	return vt_rusage_cpu_ns(&usage);
}

/*
 * A command has ended, its cell is killed, and nobody holds its pipes: all that there will ever be
 * is there. That the kernel takes the cell apart need not be waited for.
 */
static void conclude_command(struct vt_warm *warm)
{
	if (!warm->call || !warm->call->command || warm->plan->bare || warm->owner->is_judged(warm))
		return;
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		drain(warm, i, PIPE_MOST);
	if (warm->pipes[0].fd < 0 && warm->pipes[1].fd < 0)
		conclude_end(warm);
}

/* Whoever is killed then mostly has too little memory to begin with. */
void vt_warm_lose_entering(struct vt_warm *warm, int status)
{
	long long mb = (long long)(warm->plan->memory_bytes >> 20);
	struct vt_err err;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && mb > 0)
		(void)vt_fail(&err, VT_STEP_WATCH, ENOMEM,
			      "keep an occupant until it is ready: it was killed; is "
			      "limits.memory_mb, %lld MB, enough for it?",
			      mb);
	else
		(void)vt_fail(&err, VT_STEP_WATCH, ECHILD, "keep an occupant until it is ready");
	vt_warm_fail(warm, &err);
}

/* The occupant is our own child. */
void vt_warm_occupant_ended(struct vt_watch *source, uint32_t events)
{
	struct vt_warm *warm = source->owner;
	struct vt_err err;

	(void)events;
	/* Its last words are heard when there is room for them, and so is its end. */
	if (!warm->plan->bare && warm->state == VT_WARM_RUNNING && vt_words_hold(warm)) {
		vt_loop_remove(warm->loop, source);
		return;
	}
	warm->ended_cpu = ended_cpu(source->fd);
	/* What it said before it ended counts first. */
	if (warm->plan->bare)
		vt_warm_bare_ended(warm);
	else if (warm->state == VT_WARM_RUNNING)
		vt_warm_hear_last(warm);
	int status;

	/*
	 * Whoever traces it, from within the cell, is told first: that ends with the cell, and then
	 * it is looked again. To wait for it would be to wait for as long as the cell likes.
	 */
	if (!vt_child_try_reap(&warm->child, &status)) {
		vt_loop_remove(warm->loop, source);
		vt_warm_kill(warm);
		return;
	}
	if (warm->plan->bare)
		vt_warm_bare_reaped(warm, status);
	else
		take_status(warm, status);
	if (warm->state == VT_WARM_RUNNING && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
	    is_dying(warm)) {
		(void)lost_init(&err);
		vt_warm_give_up(warm, &err);
	} else if (warm->state == VT_WARM_RUNNING) {
		vt_warm_end(warm);
		conclude_command(warm);
	} else if (warm->state == VT_WARM_ENTERING) {
		vt_warm_hear_last(warm); /* which may say what went wrong */
		vt_warm_lose_entering(warm, status);
	}
	if (warm->state != VT_WARM_ENDING)
		vt_warm_kill(warm);
	else
		check_gone(warm);
}

void vt_warm_reap(struct vt_warm *warm)
{
	if (warm->state == VT_WARM_ENDING && warm->child.pid && warm->occupant.fd >= 0 &&
	    !warm->occupant.added)
		vt_warm_occupant_ended(&warm->occupant, 0);
}

/* Whether the kernel has killed in it for want of memory. */
static bool was_short_of_memory(const struct vt_warm *warm)
{
	struct vt_cgroup_usage usage;
	struct vt_err err;

	return vt_cgroup_read(&warm->cell.cgroup, &usage, &err) == 0 && usage.oom_kills > 0;
}

void vt_warm_lose_init(struct vt_warm *warm)
{
	struct vt_err err;

	(void)lost_init(&err);
	vt_warm_lose(warm, &err);
	if (warm->state == VT_WARM_ENTERING && was_short_of_memory(warm))
		vt_warm_lose_entering(warm, SIGKILL); /* the occupant was killed with it */
	else if (warm->state < VT_WARM_PARKED)
		vt_warm_fail(warm, &err);
	vt_warm_kill(warm);
}

/* Init is gone, and with it every process of the cell: the kernel lets it go last. */
void vt_warm_init_ended(struct vt_watch *source, uint32_t events)
{
	struct vt_warm *warm = source->owner;

	(void)events;
	close_watch(warm, source);
	vt_warm_lose_init(warm);
	check_gone(warm);
}

/* ---- the call ------------------------------------------------------------------------------ */

static void begin_look(struct vt_warm *warm)
{
	warm->look = (struct vt_look){
		.plan = warm->plan,
		.loop = warm->loop,
		.cell = &warm->cell,
		.findings = &warm->findings,
		.stop = limit_passed,
		.lose = vt_warm_give_up,
		.owner = warm,
	};
	vt_look_init(&warm->look);
	vt_look_begin(&warm->look, warm->proc_fd,
		      warm->plan->bare ? warm->root_fd : warm->scratch_fd, warm->deadline);
}

bool vt_warm_run(struct vt_warm *warm, struct vt_pool_call *call)
{
	const struct vt_talk talk = { .kind = VT_TALK_EXECUTE,
				      .name = (char *)call->name,
				      .name_len = call->name_len,
				      .body = (char *)call->arguments,
				      .body_len = call->arguments_len };
	int64_t wall_ms = warm->plan->wall_ms;
	struct vt_err err;
	size_t at = 0;

	if (call->wall_ms > 0 && call->wall_ms < wall_ms)
		wall_ms = call->wall_ms;
	warm->started = vt_clock_now();
	warm->deadline = warm->started + wall_ms * VT_NS_PER_MS;
	int input = call->command ? vt_input_hand(warm->talk.fd, call->input, call->input_len, &err)
				  : 0;
	int r = input < 0 ? 1 : vt_talk_send(warm->talk.fd, MSG_DONTWAIT, &talk, &at, &err);

	if (input == -EPIPE || (r < 0 && at == 0)) {
		vt_warm_kill(warm);
		return false;
	}
	warm->call = call;
	call->warm = warm;
	warm->unjudged = true;
	vt_warm_move(warm, VT_WARM_RUNNING);
	if (input < 0)
		vt_warm_give_up(warm, &err);
	else if (r == 0)
		vt_words_go_on(warm, &talk, at);
	else
		vt_loop_try(warm->loop, &warm->talk);
	if (warm->state == VT_WARM_RUNNING)
		begin_look(warm);
	return true;
}
