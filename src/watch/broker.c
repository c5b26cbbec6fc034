/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Three kinds of process run what is here. The supervisor watches the listener
 * and forks the broker. The broker receives, forks helpers and counts them; it ends when the leash
 * is let go or the cell is gone, and takes its helpers along. A helper answers for one connect().
 *
 * Nobody tells the cell's thread to go on by itself: it could change address, path and descriptor
 * after they were looked at. The helper copies the address, opens what it names, looks at that, and
 * connects to that through its own descriptor of it.
 */
#include "watch/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/notify.h"
#include "kernel/ns.h"
#include "kernel/process.h"

/* Where the descriptors of a broker and its helpers are. */
enum { LISTENER_FD, ROOT_FD, LEASH_FD, OTHER_FDS = 4 };

enum {
	HELPERS = 32,      /* at once; a connect() beyond gets EAGAIN */
	CHECK_MS = 50,     /* how soon a helper ends whose caller waits no longer */
	PATIENCE_MS = 1000 /* how long the supervisor waits for the broker to clear up */
};

/* ---- a helper ------------------------------------------------------------------------------ */

/* What one connect() asks for, as it was when it was read. */
struct request {
	int sock;
	int domain;
	bool own_network; /* the socket is of the cell's network namespace */
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_storage room;
	} to;
	socklen_t len;
	char path[PATH_MAX + sizeof(struct sockaddr_un)]; /* of AF_UNIX by path: absolute */
};

enum { NAME_AT = offsetof(struct sockaddr_un, sun_path) };

static bool has_name(const struct request *r)
{
	return r->domain == AF_UNIX && r->to.any.sa_family == AF_UNIX && r->len > NAME_AT &&
	       r->len <= sizeof(r->to.local);
}

/* A name of the abstract kind begins with a zero byte. */
static bool is_abstract(const struct request *r)
{
	return r->to.local.sun_path[0] == '\0';
}

/* The path that the address names, from the cell's root. It need not end in a zero byte. */
static int gather_path(const struct vt_notice *notice, struct request *r)
{
	size_t at = 0, len = strnlen(r->to.local.sun_path, r->len - NAME_AT);

	if (r->to.local.sun_path[0] != '/') {
		int status = vt_notify_folder(notice->tid, r->path, PATH_MAX);

		if (status < 0)
			return status;
		at = strlen(r->path);
		r->path[at++] = '/';
	}
	memcpy(r->path + at, r->to.local.sun_path, len);
	r->path[at + len] = '\0';
	return 0;
}

/* Everything that only the supervisor's own user may see. In the kernel's order, for the errnos. */
static int gather(const struct vt_notice *notice, struct request *r)
{
	socklen_t size = sizeof(r->domain);
	int len = (int)notice->args[2];

	r->sock = vt_notify_take_fd(notice->tid, (int)notice->args[0]);
	if (r->sock < 0)
		return r->sock;
	if (getsockopt(r->sock, SOL_SOCKET, SO_DOMAIN, &r->domain, &size) < 0)
		return -errno;
	if (len < 0 || (size_t)len > sizeof(r->to))
		return -EINVAL;
	r->len = (socklen_t)len;
	int status = vt_notify_read(notice->tid, notice->args[1], &r->to, r->len);

	if (status < 0 || !has_name(r))
		return status;
	if (!is_abstract(r))
		return gather_path(notice, r);
	r->own_network = vt_notify_same_network(notice->tid, r->sock);
	return 0;
}

static int do_connect(const struct request *r, const struct sockaddr *to, socklen_t len)
{
	return connect(r->sock, to, len) < 0 ? -errno : 0;
}

/* In a pool the root is that of all cells, and what one writes to lies on a tmpfs at these places.
 */
static bool is_on_own_tmpfs(const struct vt_plan *plan, dev_t dev)
{
	struct stat own;

	if (!plan->pooled)
		return fstat(ROOT_FD, &own) == 0 && own.st_dev == dev;
	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].act == VT_ACT_SCRATCH &&
		    fstatat(ROOT_FD, plan->builds[i].to, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
		    own.st_dev == dev)
			return true;
	return false;
}

/* A socket that the cell made itself lies on its own tmpfs: nobody else can make one there. */
static bool is_allowed(const struct vt_plan *plan, const struct stat *st)
{
	if (is_on_own_tmpfs(plan, st->st_dev))
		return true;
	for (size_t i = 0; i < plan->broker.socket_count; i++)
		if (plan->broker.sockets[i].dev == st->st_dev &&
		    plan->broker.sockets[i].ino == st->st_ino)
			return true;
	return false;
}

static int connect_by_path(const struct vt_plan *plan, const struct request *r)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct stat st;
	AUTO_CLOSE int fd = vt_notify_open_in(ROOT_FD, r->path);

	if (fd < 0)
		return fd == -EXDEV ? -EACCES : fd; /* a link of proc's that jumps */
	if (fstat(fd, &st) < 0)
		return -errno;
	/* To what is no socket the kernel itself says no. */
	if (S_ISSOCK(st.st_mode) && !is_allowed(plan, &st))
		return -EACCES;
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", fd); /* fits */
	return do_connect(r, (const struct sockaddr *)&to, sizeof(to));
}

static int perform(const struct vt_plan *plan, const struct request *r)
{
	switch (r->domain) {
	case AF_INET:
	case AF_INET6:
		return plan->broker.inet ? do_connect(r, &r->to.any, r->len) : -EPERM;
	case AF_UNIX:
		if (!has_name(r))
			return -EINVAL;
		if (!is_abstract(r))
			return connect_by_path(plan, r);
		return plan->broker.abstract && r->own_network ? do_connect(r, &r->to.any, r->len)
							       : -EPERM;
	}
	return -EPERM; /* a socket that somebody else gave to the cell */
}

/* Changing ids clears it, so it is asked for before and after. */
static bool die_with(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
}

/* Whom the other side sees, and whose permissions count, is the cell's user. */
static bool become_cell(const struct vt_broker *broker, pid_t parent)
{
	struct vt_err err;

	if (broker->plan->own_ids &&
	    vt_process_become(broker->ids.uid, broker->ids.gid, true, &err) < 0)
		return false;
	return vt_caps_empty(&err) == 0 && die_with(parent);
}

static _Noreturn void help(const struct vt_broker *broker, pid_t parent,
			   const struct vt_notice *notice)
{
	static struct request r; /* too large for a stack */
	int result;

	if (syscall(SYS_close_range, OTHER_FDS, ~0U, 0) < 0 || !die_with(parent))
		_exit(1);
	result = gather(notice, &r);
	/* It still waits: then all that was read is its own. */
	if (!vt_notify_waits(LISTENER_FD, notice->id) ||
	    (result == 0 && !become_cell(broker, parent)))
		_exit(1);
	if (result == 0)
		result = perform(broker->plan, &r);
	(void)vt_notify_answer(LISTENER_FD, notice->id, result); /* gone: nobody cares */
	_exit(0);
}

/* ---- the broker ---------------------------------------------------------------------------- */

struct helper {
	pid_t pid;
	int pid_fd;
	uint64_t id; /* of the call that it answers for */
};

struct helpers {
	struct helper at[HELPERS];
	size_t count;
};

/* Waits for one that has ended, or is about to. */
static void reap(struct helpers *helpers, size_t i)
{
	struct helper *helper = &helpers->at[i];

	while (waitpid(helper->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	vt_fd_close(&helper->pid_fd);
	/* Too late as a rule: it has answered. If not, its caller must not wait for ever. */
	(void)vt_notify_answer(LISTENER_FD, helper->id, -ECONNREFUSED);
	*helper = helpers->at[--helpers->count];
}

static void end_helper(const struct helper *helper)
{
	(void)kill(helper->pid, SIGKILL); /* our own child, not yet reaped: it is there */
}

static _Noreturn void end(struct helpers *helpers)
{
	for (size_t i = 0; i < helpers->count; i++)
		end_helper(&helpers->at[i]);
	while (helpers->count)
		reap(helpers, helpers->count - 1);
	_exit(0);
}

static void attend(const struct vt_broker *broker, struct helpers *helpers,
		   const struct vt_notice *notice)
{
	struct helper *helper = &helpers->at[helpers->count];
	const pid_t self = getpid();
	struct vt_err err;

	if (notice->nr != SYS_connect || helpers->count == HELPERS) {
		(void)vt_notify_answer(LISTENER_FD, notice->id,
				       notice->nr == SYS_connect ? -EAGAIN : -ENOSYS);
		return;
	}
	pid_t pid = vt_ns_clone(0, -1, &helper->pid_fd, &err);

	if (pid == 0)
		help(broker, self, notice);
	if (pid < 0) {
		(void)vt_notify_answer(LISTENER_FD, notice->id, -EAGAIN);
		return;
	}
	helper->pid = pid;
	helper->id = notice->id;
	helpers->count++;
}

static _Noreturn void serve(const struct vt_broker *broker)
{
	enum { LISTENER, LEASH, FIRST_HELPER };
	struct helpers helpers = { .count = 0 };
	struct vt_notice notice;

	attend(broker, &helpers, &broker->first);
	for (;;) {
		struct pollfd fds[FIRST_HELPER + HELPERS] = {
			[LISTENER] = { .fd = LISTENER_FD, .events = POLLIN },
			[LEASH] = { .fd = LEASH_FD },
		};

		for (size_t i = 0; i < helpers.count; i++)
			fds[FIRST_HELPER + i] = (struct pollfd){ .fd = helpers.at[i].pid_fd,
								 .events = POLLIN };
		if (poll(fds, FIRST_HELPER + helpers.count, helpers.count ? CHECK_MS : -1) < 0)
			continue; /* EINTR; out of memory passes */
		if (fds[LEASH].revents || fds[LISTENER].revents & (POLLHUP | POLLERR))
			end(&helpers);
		for (size_t i = helpers.count; i-- > 0;) {
			if (fds[FIRST_HELPER + i].revents)
				reap(&helpers, i);
			else if (!vt_notify_waits(LISTENER_FD, helpers.at[i].id))
				end_helper(&helpers.at[i]);
		}
		/* One that was killed meanwhile waits no longer. */
		if (fds[LISTENER].revents & POLLIN && vt_notify_receive(LISTENER_FD, &notice) == 0)
			attend(broker, &helpers, &notice);
	}
}

/* ---- the supervisor ------------------------------------------------------------------------ */

/* Nobody of the cell's user may look into a process that has our memory. */
static _Noreturn void become_broker(const struct vt_broker *broker, pid_t parent, int leash_fd)
{
	struct vt_err err;

	if (!die_with(parent) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    vt_process_descriptors(broker->listener.fd, broker->root_fd, leash_fd, leash_fd, &err) <
		    0)
		_exit(1);
	serve(broker);
}

static void forget_listener(struct vt_broker *broker)
{
	if (!broker->loop)
		return;
	vt_loop_remove(broker->loop, &broker->listener);
	vt_fd_close(&broker->listener.fd);
	broker->loop = NULL;
}

static int start(struct vt_broker *broker, struct vt_err *err)
{
	const pid_t parent = getpid();
	int fds[2];

	/* Its only use is that its other end hangs up. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make a leash for the broker");
	AUTO_CLOSE int ours = fds[0], theirs = fds[1];
	AUTO_CLOSE int pid_fd = -1;
	pid_t pid = vt_ns_clone(0, -1, &pid_fd, err);

	if (pid < 0)
		return pid;
	if (pid == 0)
		become_broker(broker, parent, theirs);
	broker->pid = pid;
	broker->pid_fd = vt_fd_take(&pid_fd);
	broker->leash_fd = vt_fd_take(&ours);
	return 0;
}

/*
 * The first call is received here and not by the broker: until it is, any signal interrupts it, and
 * a fork takes its time. That never waits: the kernel has as many as it has announced, or more.
 * Where there can be no broker, nobody has the listener any more, and the kernel says ENOSYS to
 * every connect().
 */
static void listener_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_broker *broker = source->owner;
	int r = events & EPOLLIN ? vt_notify_receive(source->fd, &broker->first) : -EPIPE;
	struct vt_err err;

	if (r == -ENOENT || r == -EINTR)
		return; /* it waits no longer, or shows again */
	if (r == 0)
		(void)start(broker, &err);
	forget_listener(broker);
}

int vt_broker_listen(struct vt_broker *broker, struct vt_loop *loop, const struct vt_plan *plan,
		     struct vt_outer ids, int listener_fd, int root_fd, struct vt_err *err)
{
	broker->loop = loop;
	broker->plan = plan;
	broker->ids = ids;
	broker->root_fd = root_fd;
	broker->listener = (struct vt_watch){ .fd = listener_fd,
					      .ready = listener_ready,
					      .owner = broker };
	int r = vt_loop_add(loop, &broker->listener, EPOLLIN, err);

	if (r < 0)
		forget_listener(broker);
	return r;
}

void vt_broker_stop(struct vt_broker *broker)
{
	forget_listener(broker);
	if (broker->pid)
		vt_fd_close(&broker->leash_fd);
}

void vt_broker_done(struct vt_broker *broker)
{
	struct pollfd gone = { .fd = broker->pid_fd, .events = POLLIN };

	vt_broker_stop(broker);
	if (!broker->pid)
		return;
	while (poll(&gone, 1, PATIENCE_MS) < 0 && errno == EINTR)
		;
	if (!gone.revents)
		(void)kill(broker->pid, SIGKILL); /* our own child, not yet reaped: it is there */
	while (waitpid(broker->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	vt_fd_close(&broker->pid_fd);
	broker->pid = 0;
}
