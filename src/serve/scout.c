/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/scout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"

enum {
	OUT_SHARE = 4, /* at once, of one client; who is next waits */
	SHARE = 4,     /* of one client, those that hang included, to all that there can still be */
	ANSWER_FD = 1,
	PROGRAM_FD = 3,
	WORK_MAX_S = 1, /* of CPU time: then it is given up */
};

#define PATIENCE (10 * VT_NS_PER_S)
struct vt_scout {
	struct vt_scouts *scouts;
	struct vt_client *client; /* held */
	struct vt_scout *next, **link;
	struct vt_cells_wish wish;
	struct vt_caller caller; /* of the wish */
	vt_scout_back *back;     /* NULL: nobody waits for it */
	void *user;
	pid_t pid; /* 0: it waits itself */
	bool lost;
	struct vt_watch end; /* its pidfd */
	int answer_fd;
	struct vt_timer timer;
};

static void take_out(struct vt_scout *scout)
{
	struct vt_scouts *scouts = scout->scouts;

	*scout->link = scout->next;
	if (scout->next)
		scout->next->link = scout->link;
	else if (!scout->pid)
		scouts->last = scout->link;
}

static void scout_free(struct vt_scout *scout)
{
	struct vt_loop *loop = scout->scouts->maker->loop;

	vt_loop_remove_timer(loop, &scout->timer);
	vt_loop_remove(loop, &scout->end);
	vt_fd_close(&scout->end.fd);
	vt_fd_close(&scout->answer_fd);
	vt_client_release(scout->client);
	free(scout);
}

static void tell(struct vt_scout *scout, struct vt_cells_found *found, const struct vt_err *err)
{
	vt_scout_back *back = scout->back;

	scout->back = NULL;
	if (back)
		back(scout->user, found, err);
}

/* ---- there ---------------------------------------------------------------------------------- */

/* What hangs holds nothing that another process waits for: no socket of a client, no lock. */
static _Noreturn void look(const struct vt_scouts *scouts, struct vt_cells_wish *wish, pid_t parent,
			   int answer_fd)
{
	const struct rlimit work = { WORK_MAX_S, WORK_MAX_S + 1 };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct vt_cells_found found;
	struct vt_err err;

	if (null_fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    setrlimit(RLIMIT_CPU, &work) < 0)
		_exit(1);
	if (vt_process_descriptors(null_fd, answer_fd, null_fd,
				   wish->program_fd >= 0 ? wish->program_fd : null_fd, &err) < 0)
		_exit(1);
	if (wish->program_fd >= 0)
		wish->program_fd = PROGRAM_FD;
	vt_cells_look(scouts->maker, wish, &found);
	const int fds[] = { found.image_fd, found.program_fd };
	size_t count = found.image_fd < 0 ? 0 : found.program_fd < 0 ? 1 : 2;

	_exit(vt_pass_send(ANSWER_FD, &found, sizeof(found), fds, count, &err) < 0);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void kill_scout(const struct vt_scout *scout)
{
	(void)kill(scout->pid, SIGKILL); /* our own child, not yet reaped: it is there */
}

static int start(struct vt_scout *scout, struct vt_err *err)
{
	struct vt_scouts *scouts = scout->scouts;
	struct vt_loop *loop = scouts->maker->loop;
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vt_fail(err, VT_STEP_PLAN, errno, "hear what is found of a pool");
	AUTO_CLOSE int theirs = pair[1];

	scout->answer_fd = pair[0];
	pid_t pid = vt_ns_clone(0, -1, &scout->end.fd, err);

	if (pid == 0)
		look(scouts, &scout->wish, parent, theirs);
	if (pid < 0)
		return pid;
	scout->pid = pid;
	scout->next = scouts->out;
	scout->link = &scouts->out;
	if (scout->next)
		scout->next->link = &scout->next;
	scouts->out = scout;
	scouts->out_count++;
	scout->client->looks++;
	vt_timer_set(&scout->timer, vt_clock_now() + PATIENCE);
	/* One that cannot be watched is late. */
	return vt_loop_add(loop, &scout->end, EPOLLIN, err) < 0 ? (kill_scout(scout), 0) : 0;
}

/* How many there can still be, beside so many. */
static unsigned count_left(const struct vt_scouts *scouts, unsigned taken)
{
	return scouts->most > taken ? scouts->most - taken : 0;
}

static int check_lost(const struct vt_scouts *scouts, const struct vt_client *client,
		      struct vt_err *err)
{
	unsigned left = count_left(scouts, scouts->lost_count);

	if (!left)
		return vt_fail(err, VT_STEP_PLAN, EBUSY,
			       "refused: %u looks at paths hang already, in mounts that do not "
			       "answer; unmount these, or start the server anew",
			       scouts->lost_count);
	if (client->looks_lost * SHARE >= left)
		return vt_fail(err, VT_STEP_PLAN, EBUSY,
			       "refused: %u looks at paths that this client named hang already, in "
			       "mounts that do not answer; unmount these",
			       client->looks_lost);
	return 0;
}

/* Of one that is out it is not known yet whether it hangs. */
static bool may_start(const struct vt_scouts *scouts, const struct vt_client *client)
{
	return client->looks < OUT_SHARE &&
	       (client->looks + client->looks_lost) * SHARE <
		       count_left(scouts, scouts->out_count + scouts->lost_count);
}

/* The first that waits and need not any more: it may start, or never will. */
static struct vt_scout *choose(const struct vt_scouts *scouts)
{
	struct vt_scout *scout = scouts->waiting;
	struct vt_err err;

	while (scout && !may_start(scouts, scout->client) &&
	       check_lost(scouts, scout->client, &err) == 0)
		scout = scout->next;
	return scout;
}

/* Those that waited, as far as there is room; each that cannot start is told. */
static void start_waiting(struct vt_scouts *scouts)
{
	struct vt_scout *scout;
	struct vt_err err;

	while ((scout = choose(scouts))) {
		take_out(scout);
		if (check_lost(scouts, scout->client, &err) < 0 || start(scout, &err) < 0) {
			tell(scout, NULL, &err);
			scout_free(scout);
		}
	}
}

static void count_home(struct vt_scout *scout)
{
	struct vt_scouts *scouts = scout->scouts;

	scouts->out_count -= !scout->lost;
	scout->client->looks -= !scout->lost;
	scouts->lost_count -= scout->lost;
	scout->client->looks_lost -= scout->lost;
}

/* What it found, for who waits. It has ended: nobody changes that any more. */
static int hear(const struct vt_scout *scout, int status, struct vt_cells_found *ret_found,
		struct vt_err *err)
{
	struct vt_cells_found found;
	int fds[2];
	int r = vt_pass_take(scout->answer_fd, &found, sizeof(found), fds, 2, MSG_DONTWAIT, err);

	if (r > 0) {
		found.image_fd = fds[0];
		found.program_fd = fds[1];
		found.err.what[sizeof(found.err.what) - 1] = '\0';
		*ret_found = found;
		return 0;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: to look at what the pool names is more than %d s of work, "
			       "which is the most for a server: grant folders in place of files, "
			       "or pass on fewer variables",
			       WORK_MAX_S);
	if (WIFSIGNALED(status))
		return vt_fail(err, VT_STEP_PLAN, ECHILD,
			       "the process that checked the pool's paths died of signal %d",
			       WTERMSIG(status));
	return vt_fail(err, VT_STEP_PLAN, ECHILD,
		       "the process that checked the pool's paths exited with code %d",
		       WEXITSTATUS(status));
}

static void end_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_scout *scout = source->owner;
	struct vt_scouts *scouts = scout->scouts;
	struct vt_cells_found found = { .image_fd = -1, .program_fd = -1 };
	struct vt_err err;
	int status = 0;

	(void)events;
	if (waitpid(scout->pid, &status, __WALL | WNOHANG) == 0)
		return;
	int r = hear(scout, status, &found, &err);

	count_home(scout);
	take_out(scout);
	tell(scout, r < 0 ? NULL : &found, &err);
	vt_cells_found_done(&found);
	scout_free(scout);
	start_waiting(scouts);
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_scout *scout = timer->owner;
	struct vt_scouts *scouts = scout->scouts;
	struct vt_err err;

	kill_scout(scout);
	/* Of one that could not be watched when it was sent, the end is to be seen all the same. */
	if (!scout->end.added && vt_loop_add(scouts->maker->loop, &scout->end, EPOLLIN, &err) < 0)
		vt_timer_set(timer, vt_clock_now() + PATIENCE);
	if (scout->lost)
		return;
	count_home(scout);
	scout->lost = true;
	scouts->lost_count++;
	scout->client->looks_lost++;
	(void)vt_fail(&err, VT_STEP_PLAN, ETIMEDOUT,
		      "refused: a path did not answer within 10 s: the policy's, the program's, or "
		      "one on PATH; see whether its mount hangs");
	tell(scout, NULL, &err);
	start_waiting(scouts);
}

int vt_scout_send(struct vt_scouts *scouts, struct vt_client *client,
		  const struct vt_cells_wish *wish, vt_scout_back *back, void *user,
		  struct vt_scout **ret_scout, struct vt_err *err)
{
	int r = check_lost(scouts, client, err);

	if (r < 0)
		return r;
	struct vt_scout *scout = calloc(1, sizeof(*scout));

	if (!scout)
		return vt_cells_no_memory(err);
	*scout = (struct vt_scout){ .scouts = scouts,
				    .client = vt_client_hold(client),
				    .wish = *wish,
				    .back = back,
				    .user = user,
				    .answer_fd = -1 };
	if (wish->caller) {
		scout->caller = *wish->caller;
		scout->wish.caller = &scout->caller;
	}
	scout->end = (struct vt_watch){ .fd = -1, .ready = end_ready, .owner = scout };
	scout->timer = (struct vt_timer){ .fire = timer_fires, .owner = scout };
	vt_loop_add_timer(scouts->maker->loop, &scout->timer);
	if (may_start(scouts, client)) {
		r = start(scout, err);
		if (r < 0) {
			scout_free(scout);
			return r;
		}
	} else {
		scout->link = scouts->last;
		*scouts->last = scout;
		scouts->last = &scout->next;
	}
	*ret_scout = scout;
	return 0;
}

void vt_scout_leave(struct vt_scout *scout)
{
	if (!scout)
		return;
	scout->back = NULL;
	if (scout->pid) {
		kill_scout(scout); /* its end is seen to */
		return;
	}
	take_out(scout);
	scout_free(scout);
}

void vt_scouts_init(struct vt_scouts *scouts, struct vt_cells_maker *maker)
{
	*scouts = (struct vt_scouts){ .maker = maker, .last = &scouts->waiting };
}

void vt_scouts_done(struct vt_scouts *scouts)
{
	while (scouts->waiting)
		vt_scout_leave(scouts->waiting);
	while (scouts->out) {
		struct vt_scout *scout = scouts->out;

		kill_scout(scout);
		(void)waitpid(scout->pid, NULL, __WALL | WNOHANG); /* else it is init's */
		take_out(scout);
		scout_free(scout);
	}
}
