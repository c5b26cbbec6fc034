/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launch/spawn.h"
#include "watch/broker.h"
#include "watch/guarded.h"
#include "watch/look.h"
#include "watch/loop.h"
#include "watch/modes.h"
#include "watch/pipes.h"
#include "watch/relay.h"

/*
 *   STARTING ──► RUNNING ──► WARNED      the deadline or a cancel, with a grace period: SIGTERM
 *      │            │           │
 *      └────────────┴───────────┴──► DYING ──► DONE
 *                                      │
 *    the occupant ended, or the cell was killed; it is over when init is gone, and the whole cell
 *    with it, or when that takes too long
 */
enum run_state { RUN_STARTING, RUN_RUNNING, RUN_WARNED, RUN_DYING, RUN_DONE };

#define TO(state) (1U << RUN_##state)

/* Which states may follow. */
static const unsigned followers[] = {
	[RUN_STARTING] = TO(RUNNING) | TO(DYING),
	[RUN_RUNNING] = TO(WARNED) | TO(DYING),
	[RUN_WARNED] = TO(DYING),
	[RUN_DYING] = TO(DONE),
	[RUN_DONE] = 0,
};

/* Hundreds of processes that spin take seconds to die; one that sleeps in the kernel may never. */
#define REAP_TIMEOUT (5 * VT_NS_PER_S)
/* How long the removal of a private folder, which may be full, is waited for once nobody is left.
 */
#define FOLDER_TIMEOUT (10 * VT_NS_PER_S)
/* Init dies at once of a SIGKILL, unless it sleeps in the kernel. */
#define KILL_TIMEOUT (1 * VT_NS_PER_S)
struct run {
	const struct vt_plan *plan;
	const struct vt_run_io *io;
	struct vt_result *result;
	enum run_state state;

	struct vt_loop loop;
	struct vt_cell cell;
	struct vt_stream out, err, report;
	struct vt_relay relay;
	struct vt_watch status, init, signals;
	struct vt_look look;
	struct vt_broker broker;
	struct vt_modes modes;
	struct vt_timer deadline, reaper;
	int fds[VT_NOTE_RUNNING_FDS]; /* from init: the occupant, the cell's proc and root */

	struct vt_pipes *pipes; /* what is not handed on yet */
	struct vt_findings findings;
	int64_t started, over; /* when the occupant was there, and when it was all over */
	bool empty;            /* no process is left but init */
};

static void move(struct run *run, enum run_state state)
{
	if (!(followers[run->state] & 1U << state))
		abort(); /* a bug in this file; going on would watch the wrong thing */
	run->state = state;
}

/* ---- ending -------------------------------------------------------------------------------- */

/* Nothing is watched any more but its death. */
static void let_die(struct run *run)
{
	move(run, RUN_DYING);
	/* What comes now cancels nothing any more: it is for whatever the caller does next. */
	vt_loop_remove(&run->loop, &run->signals);
	vt_timer_set(&run->deadline, INT64_MAX);
	vt_timer_set(&run->reaper, vt_clock_now() + REAP_TIMEOUT);
	vt_look_stop(&run->look);
	vt_broker_stop(&run->broker);
	vt_modes_stop(&run->modes);
	/* Our hold on its root would leave us to take that down. */
	for (size_t i = 0; i < VT_NOTE_RUNNING_FDS; i++)
		vt_fd_close(&run->fds[i]);
}

/* Everything in the cell dies; init's pidfd says when it has. */
static void kill_cell(struct run *run)
{
	struct vt_err err;

	if (run->state >= RUN_DYING)
		return;
	let_die(run);
	(void)vt_cell_kill(&run->cell, &err); /* the reaper's timer speaks if it did not help */
}

/* The first failure is the one that is reported. */
static void lose(struct run *run, const struct vt_err *failure)
{
	if (!run->findings.failed)
		run->findings.failure = *failure;
	run->findings.failed = true;
	kill_cell(run);
}

static void stop(struct run *run, enum vt_stop why)
{
	if (run->state >= RUN_DYING)
		return;
	if (run->findings.stop == VT_STOP_NONE)
		run->findings.stop = why;
	if (run->state != RUN_RUNNING || !run->plan->grace_ms || why == VT_STOP_MEMORY ||
	    why == VT_STOP_TMP || run->fds[VT_NOTE_OCCUPANT_FD] < 0) {
		kill_cell(run);
		return;
	}
	move(run, RUN_WARNED);
	/* ESRCH: it has just ended, and a note is on its way. */
	(void)syscall(SYS_pidfd_send_signal, run->fds[VT_NOTE_OCCUPANT_FD], SIGTERM, NULL, 0);
	vt_timer_set(&run->deadline, vt_clock_now() + run->plan->grace_ms * VT_NS_PER_MS);
}

/* A call that was told to end for its CPU time has its grace, whatever it burns meanwhile. */
static void limit_passed(void *owner, enum vt_stop why)
{
	struct run *run = owner;

	if (why != VT_STOP_CPU || run->state == RUN_RUNNING)
		stop(run, why);
}

static void watch_failed(void *owner, const struct vt_err *failure)
{
	lose(owner, failure);
}

static void finish(struct run *run)
{
	move(run, RUN_DONE);
	run->over = vt_clock_now();
	run->loop.over = true;
}

/* ---- what happens -------------------------------------------------------------------------- */

/* Not before there is somebody to read it: what a cell that is never built took would be lost. */
static void hand_on_input(struct run *run)
{
	struct vt_err err;

	if (run->io->in_relay &&
	    vt_relay_init(&run->relay, &run->loop, run->io->in_fd, vt_fd_take(&run->pipes->in_read),
			  vt_fd_take(&run->pipes->in_write), &err) < 0)
		lose(run, &err);
}

static void occupant_runs(struct run *run, const int fds[VT_NOTE_FDS])
{
	memcpy(run->fds, fds, sizeof(run->fds));
	if (run->state != RUN_STARTING)
		return;
	move(run, RUN_RUNNING);
	if (!run->plan->own_proc && run->plan->can_look)
		run->fds[VT_NOTE_PROC_FD] = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	run->started = vt_clock_now();
	vt_timer_set(&run->deadline, run->started + run->plan->wall_ms * VT_NS_PER_MS);
	vt_look_begin(&run->look, run->fds[VT_NOTE_PROC_FD], run->fds[VT_NOTE_ROOT_FD],
		      run->deadline.when);
	hand_on_input(run);
}

/* Expected once, and only where the plan wants it. */
static void take_listener(struct run *run, int listener_fd)
{
	const int root_fd = run->fds[VT_NOTE_ROOT_FD];
	const struct vt_plan *plan = run->plan;
	struct vt_err err;
	int r;

	if (run->state >= RUN_DYING || !plan->broker.on || run->broker.plan || run->modes.plan) {
		vt_fd_close(&listener_fd);
		return;
	}
	r = plan->broker.modes
		    ? vt_modes_listen(&run->modes, &run->loop, plan, listener_fd, root_fd, &err)
		    : vt_broker_listen(&run->broker, &run->loop, plan, vt_spawn_ids(plan),
				       listener_fd, root_fd, &err);
	if (r < 0)
		lose(run, &err);
}

/* No process is left but init, which ends by itself: it can be waited for at the very end. */
static void cell_is_empty(struct run *run, const struct vt_note *note)
{
	vt_look_take_rusage(&run->look, &note->usage);
	run->empty = true;
	if (run->state < RUN_DYING)
		let_die(run);
	if (run->state == RUN_DYING)
		finish(run);
}

static void occupant_ended(struct run *run, const struct vt_note *note)
{
	run->findings.ended = true;
	run->findings.wait_status = note->wait_status;
	if (note->empty)
		cell_is_empty(run, note);
	else
		kill_cell(run);
}

static void take_note(struct run *run, const struct vt_note *note, const int fds[VT_NOTE_FDS])
{
	switch (note->kind) {
	case VT_NOTE_RUNNING:
		occupant_runs(run, fds);
		return;
	case VT_NOTE_LISTENER:
		take_listener(run, fds[VT_NOTE_LISTENER_FD]);
		return;
	case VT_NOTE_FAILED:
		lose(run, &note->err);
		return;
	case VT_NOTE_ENDED:
		occupant_ended(run, note);
		return;
	case VT_NOTE_EMPTY:
		cell_is_empty(run, note);
		return;
	default:
		return; /* not a cell's to say */
	}
}

static void status_ready(struct vt_watch *source, uint32_t events)
{
	struct run *run = source->owner;
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int r;

	(void)events; /* a hang-up shows as the end of the notes */
	while ((r = vt_cell_note(&run->cell, &note, fds, &err)) > 0)
		take_note(run, &note, fds);
	if (r == 0 || run->state == RUN_DONE)
		return;
	vt_loop_remove(&run->loop, source);
	kill_cell(run);
}

/* Our own child, whose pidfd says that it ended. */
static void reap_init(struct run *run)
{
	struct rusage usage = { 0 };
	int status =
		SIGKILL; /* taken for that where nobody can say: then what is left is looked for */

	while (wait4(run->cell.init, &status, __WALL, &usage) < 0 && errno == EINTR)
		;
	run->cell.init = -1;
	vt_look_take_rusage(&run->look, &usage);
	/* Somebody killed the init of a bare cell: what it would have swept may be there. */
	if (run->plan->bare && WIFSIGNALED(status))
		run->result->unreaped = !vt_cell_bury(run->plan, REAP_TIMEOUT / VT_NS_PER_MS);
}

/* Init is gone, and with it every process of the cell: the kernel lets it go last. */
static void init_ready(struct vt_watch *source, uint32_t events)
{
	struct run *run = source->owner;

	(void)events;
	status_ready(&run->status, 0); /* its last words come before its death */
	reap_init(run);
	kill_cell(run); /* where nobody has yet: init died of something else */
	if (run->state == RUN_DYING)
		finish(run);
}

static void signal_ready(struct vt_watch *source, uint32_t events)
{
	struct run *run = source->owner;
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return; /* somebody else took it */
	if (run->findings.stop == VT_STOP_CANCEL) {
		kill_cell(run); /* asked twice: no more grace */
		return;
	}
	run->findings.stop_signal = (int)info.ssi_signo;
	stop(run, VT_STOP_CANCEL);
}

static void deadline_fires(struct vt_timer *timer)
{
	struct run *run = timer->owner;

	if (run->state == RUN_WARNED)
		kill_cell(run);
	else
		stop(run, VT_STOP_DEADLINE);
}

static bool init_goes_within(const struct run *run, int64_t patience)
{
	struct pollfd gone = { .fd = run->cell.init_fd, .events = POLLIN };

	while (poll(&gone, 1, (int)(patience / VT_NS_PER_MS)) < 0 && errno == EINTR)
		;
	return gone.revents;
}

/*
 * An uninterruptible sleep, or an init that somebody stopped. Where others can bury the cell, init
 * is not needed for it; else it is the only one who may end the cell yet. Nobody waits for it
 * longer: the result says so.
 */
static void give_up_reaping(struct run *run)
{
	run->result->unreaped = true;
	if (vt_cell_can_bury(run->plan) && kill(run->cell.init, SIGKILL) == 0 &&
	    init_goes_within(run, KILL_TIMEOUT))
		reap_init(run); /* which buries, and knows better */
}

static void reaper_fires(struct vt_timer *timer)
{
	struct run *run = timer->owner;

	give_up_reaping(run);
	finish(run);
}

/* ---- from beginning to end ----------------------------------------------------------------- */

static void prepare(struct run *run)
{
	run->deadline = (struct vt_timer){ .fire = deadline_fires, .owner = run };
	run->reaper = (struct vt_timer){ .fire = reaper_fires, .owner = run };
	run->look = (struct vt_look){
		.plan = run->plan,
		.loop = &run->loop,
		.cell = &run->cell,
		.findings = &run->findings,
		.stop = limit_passed,
		.lose = watch_failed,
		.owner = run,
	};
	vt_look_init(&run->look);
	vt_loop_add_timer(&run->loop, &run->reaper);
	vt_loop_add_timer(&run->loop, &run->deadline);
	run->status = (struct vt_watch){ .fd = run->cell.status_fd,
					 .ready = status_ready,
					 .owner = run };
	run->init = (struct vt_watch){ .fd = run->cell.init_fd, .ready = init_ready, .owner = run };
	run->signals = (struct vt_watch){ .fd = run->io->signal_fd,
					  .ready = signal_ready,
					  .owner = run };
	/* Building the cell is bounded by the same time; the call's own begins with its occupant.
	 */
	run->started = vt_clock_now();
	vt_timer_set(&run->deadline, run->started + run->plan->wall_ms * VT_NS_PER_MS);
}

static int64_t cap_of(const struct vt_sink *sink, int64_t cap, bool capped)
{
	return sink->kind == VT_SINK_CAPTURE || capped ? cap : -1;
}

static int watch_all(struct run *run, struct vt_pipes *p, struct vt_err *err)
{
	const struct vt_run_io *io = run->io;
	const struct vt_plan *plan = run->plan;
	int r = vt_stream_init(&run->out, &run->loop, &io->out,
			       cap_of(&io->out, plan->stdout_bytes, plan->stdout_capped),
			       vt_fd_take(&p->out_read), err);

	if (r == 0)
		r = vt_stream_init(&run->err, &run->loop, &io->err,
				   cap_of(&io->err, plan->stderr_bytes, plan->stderr_capped),
				   vt_fd_take(&p->err_read), err);
	if (r == 0 && io->reports)
		r = vt_stream_init(&run->report, &run->loop,
				   &(struct vt_sink){ .kind = VT_SINK_CAPTURE, .fd = -1 },
				   plan->result_bytes, vt_fd_take(&p->report_read), err);
	if (r == 0)
		r = vt_loop_add(&run->loop, &run->status, EPOLLIN, err);
	if (r == 0)
		r = vt_loop_add(&run->loop, &run->init, EPOLLIN, err);
	if (r == 0 && io->signal_fd >= 0)
		r = vt_loop_add(&run->loop, &run->signals, EPOLLIN, err);
	return r;
}

/*
 * Output that could not be written is lost; that nobody wants it any more is no error, nor that who
 * cancelled the call did not wait for it.
 */
static int check_written(const struct run *run, const struct vt_stream *stream, const char *name,
			 struct vt_err *err)
{
	if (stream->failed == 0 || stream->failed == -EPIPE ||
	    (stream->failed == -EINTR && run->findings.stop_signal))
		return 0;
	return vt_fail(err, VT_STEP_OUTPUT, -stream->failed, "write %s", name);
}

/* Runs the loop over a live cell. Whatever fails here, the cell is dead afterwards. */
static int watch_cell(struct run *run, struct vt_pipes *p, struct vt_err *err)
{
	prepare(run);
	int r = watch_all(run, p, err);

	if (r == 0)
		r = vt_loop_run(&run->loop, err);
	if (r < 0) {
		struct vt_err later;

		(void)vt_cell_kill(&run->cell, &later); /* the first failure is the one to report */
		return r;
	}
	vt_stream_finish(&run->out, run->io->signal_fd);
	vt_stream_finish(&run->err, run->io->signal_fd);
	if (run->io->reports)
		vt_stream_finish(&run->report, run->io->signal_fd);
	r = check_written(run, &run->out, "standard output", err);
	return r < 0 ? r : check_written(run, &run->err, "standard error", err);
}

static void conclude(struct run *run)
{
	struct vt_findings *findings = &run->findings;
	const struct vt_plan *plan = run->plan;
	struct vt_result *result = run->result;

	vt_look_conclude(&run->look);
	vt_findings_take_limits(findings, plan);
	findings->cpu_ns = run->look.cpu_ns;
	vt_verdict_reach(findings, &result->verdict);
	if (vt_capture_dropped(&run->report.capture))
		vt_verdict_report_cut(&result->verdict, plan->result_bytes);
	/* A note of failure comes before the command, and only then. */
	result->unbuilt = findings->failed && findings->failure.step != VT_STEP_EXEC &&
			  findings->failure.step != VT_STEP_WATCH;
	result->failure = findings->failure;
	result->wall_ms = (double)(run->over - run->started) / VT_NS_PER_MS;
	result->cpu_ms = (double)run->look.cpu_ns / VT_NS_PER_MS;
	result->peak_memory_kb = run->look.peak_memory / 1024;
	result->processes = run->look.processes ? run->look.processes : 1;
	result->passed_on = run->io->out.kind != VT_SINK_CAPTURE;
	memcpy(result->err_tail, run->err.tail, run->err.tail_len);
	result->err_tail_len = run->err.tail_len;
	result->out_unended = vt_stream_unended(&run->out);
	result->err_unended = vt_stream_unended(&run->err);
	result->silent = run->out.tail_len == 0 && run->err.tail_len == 0;
	/* Ownership of what was captured goes to the result. */
	result->out = run->out.capture;
	result->err = run->err.capture;
	vt_capture_init(&run->out.capture, 0);
	vt_capture_init(&run->err.capture, 0);
	result->report = run->report.capture;
	vt_capture_init(&run->report.capture, 0);
}

static int run_in(struct run *run, struct vt_pipes *p, struct vt_err *err)
{
	const struct vt_stdio stdio = {
		.in = run->io->in_relay ? p->in_read : run->io->in_fd,
		.out = p->out_write,
		.err = p->err_write,
		.report = run->io->reports ? p->report_write : 0,
	};
	int r = vt_spawn(run->plan, &stdio, &run->cell, &run->findings.failure);

	vt_fd_close(&p->out_write);
	vt_fd_close(&p->err_write);
	vt_fd_close(&p->report_write);
	if (r < 0) {
		run->findings.failed = true;
	} else {
		r = watch_cell(run, p, err);
		if (r < 0)
			return r;
	}
	conclude(run);
	return 0;
}

/* What was not waited for while there was something better to do. */
static void await_init(struct run *run)
{
	bool clearing = run->empty && run->plan->bare;

	if (run->cell.init < 0 || run->result->unreaped)
		return;
	if (init_goes_within(run, clearing ? FOLDER_TIMEOUT : REAP_TIMEOUT))
		reap_init(run);
	else if (clearing)
		run->result->uncleared = true; /* init goes on without us */
	else
		give_up_reaping(run);
}

static void release(struct run *run)
{
	struct vt_err err;

	vt_look_done(&run->look);
	vt_broker_done(&run->broker);
	vt_modes_done(&run->modes);
	await_init(run);
	vt_relay_done(&run->relay);
	vt_stream_done(&run->out);
	vt_stream_done(&run->err);
	vt_stream_done(&run->report);
	for (size_t i = 0; i < VT_NOTE_RUNNING_FDS; i++)
		vt_fd_close(&run->fds[i]);
	/* A folder that will not go holds nothing that runs; the next vitro sweeps it. */
	(void)vt_cell_done(&run->cell, &err);
	/* After a vitro that was killed; nobody waits for it while a call has a deadline. */
	vt_spawn_sweep(run->plan);
	vt_loop_done(&run->loop);
}

int vt_run(const struct vt_plan *plan, const struct vt_run_io *io, struct vt_result *ret_result,
	   struct vt_err *err)
{
	AUTO_PIPES struct vt_pipes p = VT_PIPES_NONE;
	struct run run = {
		.plan = plan, .io = io, .result = ret_result, .pipes = &p, .fds = { -1, -1, -1 }
	};
	struct vt_guarded guarded = { .plan = plan };
	int r = vt_loop_init(&run.loop, err);

	if (r < 0)
		return r;
	vt_cell_init(&run.cell);
	r = vt_guarded_begin(&guarded, plan, err);
	if (r == 0)
		r = vt_pipes_make(&p, io->in_relay, io->reports, err);
	if (r == 0 && plan->own_ids) {
		const struct vt_outer outer = vt_spawn_ids(plan);

		r = vt_pipes_give(&p, outer.uid, outer.gid, err);
	}
	if (r == 0)
		r = run_in(&run, &p, err);
	release(&run);
	/* Only now is nothing left that could go on writing. */
	vt_guarded_end(&guarded, ret_result);
	return r;
}
