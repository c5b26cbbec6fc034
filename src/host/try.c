/* SPDX-License-Identifier: Apache-2.0 */
#include "host/try.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/process.h"

enum { PATIENCE_MS = 5000 };

struct answer {
	int result;
	struct vt_err err;
};

static void say(int fd, int result, const struct vt_err *err)
{
	struct answer answer = { .result = result };

	if (result < 0)
		answer.err = *err;
	(void)send(fd, &answer, sizeof(answer), MSG_NOSIGNAL); /* nobody there: nobody cares */
}

/* The child: waits for its ids, becomes root in its namespace, tries, answers. */
static _Noreturn void run(int fd, bool drop_groups, bool mapped,
			  int (*act)(const void *arg, struct vt_err *err), const void *arg)
{
	struct vt_err err = { 0 };
	char go;
	int result = 0;

	if (recv(fd, &go, 1, 0) != 1)
		_exit(1);
	if (mapped)
		result = vt_process_become(0, 0, drop_groups, &err);
	/* Only after the ids: changing those clears it. */
	if (result == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		result = vt_fail(&err, VT_STEP_SESSION, errno, "ask to die with the parent");
	if (result == 0)
		result = act(arg, &err);
	say(fd, result, &err);
	_exit(0);
}

static int map_ids(const struct vt_host *host, pid_t pid, struct vt_err *err)
{
	bool own = host->privileged && host->id_count > 0;

	return vt_ns_map_ids(pid, 0, own ? host->id_base : host->uid, 0,
			     own ? host->id_base : host->gid, own, err);
}

/* A try that was too slow, or was killed, says nothing about what it tried: EAGAIN, which passes.
 */
static int await(int fd, struct vt_err *err)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	struct answer answer;
	int ready;

	do
		ready = poll(&poller, 1, PATIENCE_MS);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return vt_fail(err, VT_STEP_PLAN, EAGAIN, "no answer within %d s",
			       PATIENCE_MS / 1000);
	ssize_t len = recv(fd, &answer, sizeof(answer), 0);

	if (len != sizeof(answer))
		return vt_fail(err, VT_STEP_PLAN, len < 0 ? errno : EAGAIN, "the try was killed");
	if (answer.result < 0)
		*err = answer.err;
	return answer.result;
}

int vt_try_with(const struct vt_host *host, uint64_t namespaces,
		int (*act)(const void *arg, struct vt_err *err), const void *arg,
		struct vt_err *err)
{
	bool mapped = namespaces & CLONE_NEWUSER;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vt_fail(err, VT_STEP_PLAN, errno, "make a socket pair");
	AUTO_CLOSE int ours = pair[0], theirs = pair[1], pidfd = -1;
	/* Not clone3 where fork will do: what is tried then must not fail for want of that. */
	pid_t pid = namespaces ? vt_ns_clone(namespaces, -1, &pidfd, err) : fork();

	if (pid < 0)
		return namespaces ? pid : vt_fail(err, VT_STEP_PLAN, errno, "fork");
	if (pid == 0) {
		(void)close(ours); /* or the child would not see us go */
		run(theirs, host->privileged && host->id_count > 0, mapped, act, arg);
	}
	vt_fd_close(&theirs);
	int r = mapped ? map_ids(host, pid, err) : 0;

	if (r == 0 && send(ours, "", 1, MSG_NOSIGNAL) < 0)
		r = vt_fail(err, VT_STEP_PLAN, errno, "start the try");
	if (r == 0)
		r = await(ours, err);
	vt_process_end(pid);
	return r;
}

struct plain_act {
	int (*act)(struct vt_err *err);
};

static int act_plainly(const void *arg, struct vt_err *err)
{
	const struct plain_act *plain = arg;

	return plain->act(err);
}

int vt_try(const struct vt_host *host, uint64_t namespaces, int (*act)(struct vt_err *err),
	   struct vt_err *err)
{
	const struct plain_act plain = { act };

	return vt_try_with(host, namespaces, act_plainly, &plain, err);
}
