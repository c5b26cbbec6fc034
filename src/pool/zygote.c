/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/mount.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "launch/spawn.h"

/* What it is; and to have every function found once, before it forks, and not in each call. */
static const char *const variables[] = { "VITRO_ZYGOTE=3", "LD_BIND_NOW=1" };

/* More than fit in its socket. One that never stops telling does not keep others from their turn.
 */
enum { TURN_NOTES = 512 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * The program that a process is of stays within its reach whatever else is not: an occupant finds
 * it at /proc/self/exe, on the mount that it was executed from. As an ordinary user he owns it, and
 * could change its mode, or where no Landlock holds write to it. So that mount can only be read, as
 * all that a zygote sees of the host. Who has no power over mounts has it in the hull. Bare cells
 * write to the host's own folders, and have what the zygote sees.
 */
static int enter_read_only(int hull_user_fd, struct vt_err *err)
{
	const struct vt_mount_traits traits = { .device = true, .idmap_fd = -1 };

	if (unshare(CLONE_NEWNS) < 0 &&
	    (setns(hull_user_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0))
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make a zygote's mounts", NULL);
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the root", NULL);
	return vt_mount_restrict(root, &traits, "/", err);
}

static _Noreturn void fail(const struct vt_err *err)
{
	const struct vt_note failed = { .kind = VT_NOTE_FAILED, .err = *err };
	struct vt_err unheard;

	(void)vt_pass_send(3, &failed, sizeof(failed), NULL, 0,
			   &unheard); /* we end, heard or not */
	_exit(127);
}

/* Between clone and exec. */
static _Noreturn void become(const struct vt_pool_zygote *zygote, char **envp, int control,
			     int hull_user_fd)
{
	struct vt_err err;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r = hull_user_fd < 0 ? 0 : enter_read_only(hull_user_fd, &err);

	if (null < 0 || vt_process_detach(&err) < 0 ||
	    vt_process_descriptors(null, null, null, control, &err) < 0 ||
	    fcntl(3, F_SETFD, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(125);
	if (r < 0)
		fail(&err);
	(void)execve(zygote->program, zygote->argv, envp); /* returns only to fail */
	(void)vt_fail_at(&err, VT_STEP_EXEC, errno, "execute", zygote->program);
	fail(&err);
}

/* The plan's environment, and ours. */
static char **make_environment(char *const *envp)
{
	size_t count = 0;

	while (envp && envp[count])
		count++;
	char **all = calloc(count + COUNT(variables) + 1, sizeof(char *));

	if (!all)
		return NULL;
	memcpy(all, envp, count * sizeof(char *));
	memcpy(all + count, variables, sizeof(variables));
	return all;
}

static void take_note(struct vt_pool_zygote *zygote, struct vt_note *note, int fds[VT_NOTE_FDS])
{
	note->err.what[sizeof(note->err.what) - 1] = '\0';
	if (note->kind == VT_NOTE_READY) {
		if (zygote->ready || zygote->retired)
			return;
		zygote->ready = true;
		zygote->is_ready(zygote->user);
	} else if (note->cell) {
		zygote->note(zygote->user, note, fds);
	} else if (note->kind == VT_NOTE_FAILED) {
		zygote->failure = note->err;
	}
}

static void control_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_zygote *zygote = source->owner;
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int r = 1;

	(void)events;
	for (int left = TURN_NOTES; left > 0 && source->fd >= 0; left--) {
		r = vt_pass_take(source->fd, &note, sizeof(note), fds, VT_NOTE_FDS, MSG_DONTWAIT,
				 &err);
		if (r <= 0)
			break;
		take_note(zygote, &note, fds);
		for (size_t i = 0; i < VT_NOTE_FDS; i++)
			vt_fd_close(&fds[i]);
	}
	if (source->fd >= 0 && r < 0)
		vt_loop_remove(zygote->loop, source); /* its end is told by its pidfd */
}

void vt_pool_zygote_kill(struct vt_pool_zygote *zygote, const struct vt_err *why)
{
	control_ready(&zygote->control, 0); /* its last words */
	const struct vt_err err = zygote->failure.num ? zygote->failure : *why;

	vt_pool_zygote_end(zygote);
	zygote->ended(zygote->user, &err);
}

static void ended(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_zygote *zygote = source->owner;
	struct vt_err err;

	(void)events;
	int status = vt_child_reap(&zygote->child);

	if (WIFSIGNALED(status))
		(void)vt_fail(&err, VT_STEP_EXEC, ECHILD, "keep '%s' ready: it died of signal %d",
			      zygote->program, WTERMSIG(status));
	else
		(void)vt_fail(&err, VT_STEP_EXEC, ECHILD, "keep '%s' ready: it ended with code %d",
			      zygote->program, WEXITSTATUS(status));
	vt_pool_zygote_kill(zygote, &err);
}

void vt_pool_zygote_init(struct vt_pool_zygote *zygote)
{
	zygote->control = (struct vt_watch){ .fd = -1, .ready = control_ready, .owner = zygote };
	zygote->end = (struct vt_watch){ .fd = -1, .ready = ended, .owner = zygote };
}

static int watch(struct vt_pool_zygote *zygote, int image_fd, const int hull_fds[VT_HULL_FDS],
		 struct vt_err *err)
{
	const struct vt_note plan = { .kind = VT_NOTE_PLAN };
	int fds[1 + VT_HULL_FDS] = { image_fd };

	memcpy(fds + 1, hull_fds, VT_HULL_FDS * sizeof(int));
	int r = vt_pass_send(zygote->control.fd, &plan, sizeof(plan), fds,
			     hull_fds[0] < 0 ? 1 : 1 + VT_HULL_FDS, err);

	if (r == 0)
		r = vt_loop_add(zygote->loop, &zygote->control, EPOLLIN, err);
	return r < 0 ? r : vt_loop_add(zygote->loop, &zygote->end, EPOLLIN, err);
}

int vt_pool_zygote_start(struct vt_pool_zygote *zygote, int image_fd,
			 const int hull_fds[VT_HULL_FDS], struct vt_err *err)
{
	int pair[2];
	char **envp = make_environment(zygote->envp);

	if (!envp || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(envp);
		return vt_fail(err, VT_STEP_CLONE, errno, "start a zygote");
	}
	AUTO_CLOSE int theirs = pair[1];

	zygote->control.fd = pair[0];
	zygote->failure.num = 0;
	zygote->retired = 0;
	pid_t pid = vt_ns_clone(0, -1, &zygote->end.fd, err);

	if (pid == 0)
		become(zygote, envp, theirs, hull_fds[VT_HULL_USER_FD]);
	free(envp);
	if (pid > 0)
		vt_child_know(zygote->children, &zygote->child, pid);
	int r = pid < 0 ? pid : watch(zygote, image_fd, hull_fds, err);

	if (r < 0)
		vt_pool_zygote_end(zygote);
	return r;
}

bool vt_pool_zygote_is_gone(const struct vt_pool_zygote *zygote)
{
	struct pollfd control = { .fd = zygote->control.fd };

	return zygote->child.pid && poll(&control, 1, 0) == 1 && control.revents & POLLHUP;
}

void vt_pool_zygote_retire(struct vt_pool_zygote *zygote)
{
	zygote->ready = false;
	zygote->retired = vt_clock_now();
	if (zygote->control.fd >= 0)
		(void)shutdown(zygote->control.fd, SHUT_WR); /* ENOTCONN: it is gone */
}

void vt_pool_zygote_end(struct vt_pool_zygote *zygote)
{
	vt_loop_remove(zygote->loop, &zygote->control);
	vt_loop_remove(zygote->loop, &zygote->end);
	vt_fd_close(&zygote->control.fd);
	if (zygote->child.pid) {
		/* Not by its number, which is another's once it was swept. ESRCH: it has ended. */
		(void)syscall(SYS_pidfd_send_signal, zygote->end.fd, SIGKILL, NULL, 0);
		(void)vt_child_reap(&zygote->child);
	}
	zygote->ready = false;
	vt_fd_close(&zygote->end.fd);
}
