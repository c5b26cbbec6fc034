/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/scout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/process.h"

enum {
	OUT_SHARE = 4, /* at once, of one client; who is next waits */
	SHARE = 4,     /* of one client, those that hang included, to all that there can still be */
	PROGRAM_FD = 3,
};

#define PATIENCE (10 * VT_NS_PER_S)
/* What the server will have to do itself then, on its loop; and after how much of it, in whole
 * seconds, it is given up. */
#define WORK_MAX_MS 250
#define WORK_LAST_S 1
/* How long what has answered is taken to answer. */
#define KNOWN (1 * VT_NS_PER_S)

struct vt_scout {
	struct vt_scouts *scouts;
	struct vt_client *client; /* held */
	struct vt_scout *next, **link;
	struct vt_cells_wish wish;
	struct vt_caller caller; /* of the wish */
	vt_scout_back *back;     /* NULL: nobody waits for it */
	void *user;
	uint64_t hash; /* of the wish */
	pid_t pid;     /* 0: it waits itself */
	bool lost;
	struct vt_watch end; /* its pidfd */
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
	vt_client_release(scout->client);
	free(scout);
}

static void tell(struct vt_scout *scout, const struct vt_err *err)
{
	vt_scout_back *back = scout->back;

	scout->back = NULL;
	if (back)
		back(scout->user, err);
}

/* ---- what is known -------------------------------------------------------------------------- */

static uint64_t add_bytes(uint64_t hash, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
	return hash;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	return text ? add_bytes(hash, text, strlen(text) + 1) : hash * 3;
}

/* Of all that says which paths are looked at. Whoever finds two that are alike only spares himself
 * a look. */
static uint64_t hash_wish(const struct vt_cells_wish *wish)
{
	uint64_t hash = 0xcbf29ce484222325;

	hash = add_text(add_text(add_text(hash, wish->program), wish->object), wish->command);
	hash = add_text(hash, wish->setup);
	for (size_t i = 0; i < VT_LANGUAGES; i++)
		hash = add_text(hash, wish->interpreters[i]);
	hash = add_bytes(hash, wish->sources, wish->sources_len);
	if (!wish->caller)
		return hash;
	hash = add_text(hash, wish->caller->cwd);
	for (char *const *one = wish->caller->environ; one && *one; one++)
		hash = add_text(hash, *one);
	return hash;
}

bool vt_scouts_know(const struct vt_scouts *scouts, const struct vt_cells_wish *wish)
{
	uint64_t hash = hash_wish(wish);
	int64_t now = vt_clock_now();

	for (size_t i = 0; i < VT_SCOUTS_KNOWN; i++)
		if (scouts->known[i].hash == hash && now < scouts->known[i].until)
			return true;
	return false;
}

static void learn(struct vt_scouts *scouts, uint64_t hash)
{
	scouts->known[scouts->known_next].hash = hash;
	scouts->known[scouts->known_next].until = vt_clock_now() + KNOWN;
	scouts->known_next = (scouts->known_next + 1) % VT_SCOUTS_KNOWN;
}

/* ---- there ---------------------------------------------------------------------------------- */

/* What hangs holds nothing that another process waits for: no socket of a client, no lock. */
static _Noreturn void look(const struct vt_scouts *scouts, struct vt_cells_wish *wish, pid_t parent)
{
	const struct rlimit work = { WORK_LAST_S, WORK_LAST_S };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct vt_err err;

	if (null_fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    setrlimit(RLIMIT_CPU, &work) < 0)
		_exit(1);
	if (vt_process_descriptors(null_fd, null_fd, null_fd,
				   wish->program_fd >= 0 ? wish->program_fd : null_fd, &err) < 0)
		_exit(1);
	if (wish->program_fd >= 0)
		wish->program_fd = PROGRAM_FD;
	vt_cells_look(scouts->maker, wish);
	_exit(0);
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
	pid_t pid = vt_ns_clone(0, -1, &scout->end.fd, err);

	if (pid == 0)
		look(scouts, &scout->wish, parent);
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
			tell(scout, &err);
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

static int64_t to_ms(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000 + time->tv_usec / 1000;
}

/* What it found, for who waits. */
static int judge(int status, const struct rusage *usage, struct vt_err *err)
{
	int64_t work = to_ms(&usage->ru_utime) + to_ms(&usage->ru_stime);

	if (work > WORK_MAX_MS)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: to look at what the pool names is more than %d ms of "
			       "work, which is the most for a server: grant folders in place of "
			       "files, or pass on fewer variables",
			       WORK_MAX_MS);
	if (status)
		return vt_fail(err, VT_STEP_PLAN, ECHILD,
			       "look at what the pool is made of: who did that ended with %x",
			       (unsigned)status);
	return 0;
}

static void end_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_scout *scout = source->owner;
	struct vt_scouts *scouts = scout->scouts;
	struct rusage usage = { 0 };
	struct vt_err err;
	int status = 0;

	(void)events;
	if (wait4(scout->pid, &status, __WALL | WNOHANG, &usage) == 0)
		return;
	int r = judge(status, &usage, &err);

	if (r == 0)
		learn(scouts, scout->hash);
	count_home(scout);
	take_out(scout);
	tell(scout, r < 0 ? &err : NULL);
	scout_free(scout);
	start_waiting(scouts);
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_scout *scout = timer->owner;
	struct vt_scouts *scouts = scout->scouts;
	struct vt_err err;

	kill_scout(scout);
	if (scout->lost)
		return;
	count_home(scout);
	scout->lost = true;
	scouts->lost_count++;
	scout->client->looks_lost++;
	(void)vt_fail(&err, VT_STEP_PLAN, ETIMEDOUT,
		      "refused: a path did not answer within 10 s: the policy's, the program's, or "
		      "one on PATH; see whether its mount hangs");
	tell(scout, &err);
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
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a pool");
	*scout = (struct vt_scout){ .scouts = scouts,
				    .client = vt_client_hold(client),
				    .wish = *wish,
				    .hash = hash_wish(wish),
				    .back = back,
				    .user = user };
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
