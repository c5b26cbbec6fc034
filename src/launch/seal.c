/* SPDX-License-Identifier: Apache-2.0 */
/* How an occupant seals itself, in either kind of cell. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

int vt_inside_raise_loopback(struct vt_building *b, struct vt_err *err)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (!b->plan->loopback_up)
		return 0;
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return vt_fail_at(err, VT_STEP_NETWORK, errno, "raise the loopback", NULL);
	return 0;
}

/*
 * Making a network namespace takes as long as building the root, so the occupant makes it
 * meanwhile. Init stays in the supervisor's; it opens no socket, and nobody in the cell can reach
 * into it.
 */
static int enter_network(struct vt_building *b, struct vt_err *err)
{
	if (b->plan->own_network && unshare(CLONE_NEWNET) < 0)
		return vt_fail_at(err, VT_STEP_NETWORK, errno, "make a network namespace", NULL);
	return vt_inside_raise_loopback(b, err);
}

/* Init enters the new root for both: the kernel moves whoever stands in the old one. */
static int await_root(struct vt_building *b, struct vt_err *err)
{
	uint64_t ready;
	ssize_t len;

	do
		len = read(b->ready_fd, &ready, sizeof(ready));
	while (len < 0 && errno == EINTR);
	if (len != sizeof(ready))
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "wait for the root", NULL);
	return 0;
}

/* Before the descriptors: the rules were made by init, as the caller. */
static int enter_domain(struct vt_building *b, struct vt_err *err)
{
	return b->plan->bare ? vt_bare_enter_domain(b, err) : 0;
}

static int enter_descriptors(struct vt_building *b, struct vt_err *err)
{
	const struct vt_inside *in = b->in;
	int input = in->stdio.in;

	/*
	 * Opened in the cell, by each: flags, owner and locks are of an opening, and stay for whom
	 * it is handed to next; and by a mount of the host's its times can be changed.
	 */
	if (input < 0)
		input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (input < 0)
		return vt_fail_at(err, VT_STEP_DESCRIPTORS, errno, "open", "/dev/null");
	return vt_process_descriptors_with(input, in->stdio.out, in->stdio.err, in->status_fd,
					   in->stdio.report ? in->stdio.report : -1, err);
}

static int enter_session(struct vt_building *b, struct vt_err *err)
{
	int r = b->plan->bare ? vt_bare_follow_init(b, err) : 0;

	if (r == 0)
		r = vt_process_detach(err);
	/* A zygote has left them for all that it forks. */
	return r < 0 || b->plan->pooled ? r : vt_process_leave_keys(err);
}

/* Before the descriptors: a bare cell's may be one of them. */
static int enter_bare_folder(struct vt_building *b, struct vt_err *err)
{
	return b->plan->bare ? vt_bare_enter_folder(b, err) : 0;
}

static int enter_folder(struct vt_building *b, struct vt_err *err)
{
	if (b->plan->bare)
		return 0; /* entered early */
	if (chdir(b->plan->cwd) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "enter the working directory",
				  b->plan->cwd);
	return 0;
}

/* That of open files, or all others. */
static int set_limits(const struct vt_plan *plan, bool open_files, struct vt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->rlimit_count; i++)
		if ((plan->rlimits[i].resource == RLIMIT_NOFILE) == open_files)
			r = vt_process_limit(&plan->rlimits[i], 1, err);
	return r;
}

/*
 * Who hands over a listener is held to his limit of open files, of which another cell of the same
 * user can have used up as many as this one gets: it comes after that.
 */
static int enter_limits(struct vt_building *b, struct vt_err *err)
{
	int r = set_limits(b->plan, false, err);

	return r < 0 || b->plan->broker.on ? r : set_limits(b->plan, true, err);
}

static int enter_powerless(struct vt_building *b, struct vt_err *err)
{
	/* A bare cell's init has dropped them for both. */
	int r = b->plan->bare ? vt_caps_empty(err) : vt_caps_drop(err);

	return r < 0 ? r : vt_caps_no_new_privs(err);
}

static int enter_landlock(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	const struct vt_landlock_abi handled = {
		.fs = plan->landlock_fs,
		.scoped = plan->landlock_scoped,
	};

	if (plan->bare || !handled.fs)
		return 0; /* a bare cell's is entered early */
	AUTO_CLOSE int ruleset = vt_landlock_new(&handled, err);
	AUTO_CLOSE int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (ruleset < 0)
		return ruleset;
	if (root_fd < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "open the root", NULL);
	for (size_t i = 0; i < plan->landlock_rule_count; i++) {
		const struct vt_landlock_rule *rule = &plan->landlock_rules[i];
		int r = vt_landlock_allow(ruleset, root_fd, rule->to, rule->rights, err);

		if (r < 0)
			return r;
	}
	return vt_landlock_enter(ruleset, err);
}

/*
 * On the status socket, at 3 by now. Nobody but the supervisor has the listener after exec. All
 * filters with a listener let a process narrow its own limits.
 */
static int install_brokered(const struct vt_plan *plan, struct vt_err *err)
{
	AUTO_CLOSE int listener = vt_seccomp_listen(plan->filters[0], err);
	int r = listener < 0 ? listener
			     : vt_inside_hand_over(3, VT_NOTE_LISTENER, &listener, 1, err);

	return r < 0 ? r : set_limits(plan, true, err);
}

static int enter_seccomp(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;

	for (size_t i = 0; i < plan->filter_count; i++) {
		int r = i == 0 && plan->broker.on ? install_brokered(plan, err)
						  : vt_seccomp_install(plan->filters[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The order is the security argument, as it is for init's. What comes before "root" is done while
 * init builds it.
 */
/* clang-format off */
static const struct vt_inside_step early_steps[] = {
	{ "network",     enter_network },    /* before the powers go: it needs them */
	{ "session",     enter_session },
	{ "powerless",   enter_powerless },
	{ "root",        await_root },
	{ "domain",      enter_domain },     /* a bare cell's Landlock: its rules are a descriptor yet */
	{ "bare folder", enter_bare_folder },
	{ "descriptors", enter_descriptors },
};
static const struct vt_inside_step late_steps[] = {
	{ "folder",      enter_folder },
	{ "limits",      enter_limits },     /* after the descriptors: there are more than it allows */
	{ "landlock",    enter_landlock },   /* needs no_new_privs, and the paths of the new root */
	{ "seccomp",     enter_seccomp },    /* last: it forbids what the steps above need */
};
/* clang-format on */

/* Without what a zygote's fork has done by then: it came into a root and a network that are there.
 */
/* clang-format off */
static const struct vt_inside_step entered_steps[] = {
	{ "session",     enter_session },
	{ "powerless",   enter_powerless },
	{ "descriptors", enter_descriptors },
};
/* clang-format on */

void vt_seal_entered(struct vt_building *b)
{
	vt_inside_take_steps(entered_steps, COUNT(entered_steps), b, b->in->status_fd);
	vt_inside_take_steps(late_steps, COUNT(late_steps), b, 3);
}

void vt_seal(struct vt_building *b)
{
	b->abandon = NULL; /* that is init's to do */
	vt_inside_take_steps(early_steps, COUNT(early_steps), b, b->in->status_fd);
	vt_inside_take_steps(late_steps, COUNT(late_steps), b, 3);
}
