/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/fdlink.h"
#include "base/file.h"
#include "base/utf8.h"
#include "kernel/mount.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "launch/heeded.h"
#include "launch/spawn.h"
#include "pool/shade.h"
#include "uapi/memfd.h"

/* What it is; and to have every function found once, before it forks, and not in each call. */
static const char *const variables[] = { "VITRO_ZYGOTE=3", "LD_BIND_NOW=1" };

enum {
	LAST_WORDS = 240, /* bytes of what it said before its end, as they are shown */
	LAST_READS = 64,
	/* More than fit in its socket. One that never stops telling does not keep others from their
	 * turn. */
	TURN_NOTES = 512,
};

#define COUNT(array)     (sizeof(array) / sizeof((array)[0]))
#define MAIN_COMES_FIRST "; vitro_host_main() must come first in its main()"

/*
 * The program that a process is of stays within its reach whatever else is not: an occupant finds
 * it at /proc/self/exe, on the mount that it was executed from. As an ordinary user he owns it, and
 * could change its mode, or where no Landlock holds write to it. So that mount can only be read, as
 * all that a zygote sees of the host; and what calls can write is not there at all. Who has no
 * power over mounts has it in the hull. Bare cells write to the host's own folders, and have what
 * the zygote sees.
 */
static int enter_mounts(const struct vt_plan *plan, int hull_user_fd, struct vt_err *err)
{
	const struct vt_mount_traits traits = { .device = true, .idmap_fd = -1 };

	if (unshare(CLONE_NEWNS) < 0 &&
	    (setns(hull_user_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0))
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make a zygote's mounts", NULL);
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the root", NULL);
	int r = vt_mount_restrict(root, &traits, "/", err);

	return r < 0 ? r : vt_shade_written(plan, err);
}

/* As a file of nobody's, which can be executed and not be written to. Returns it, or a failure. */
static int copy_program(int held_fd, struct vt_err *err)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char path[VT_FDLINK];

	/* It is held as a path alone. */
	(void)vt_fdlink(path, held_fd);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO_CLOSE int copy = memfd_create("program", flags | MFD_EXEC);
	off_t at = 0;
	ssize_t sent;

	if (fd < 0)
		return vt_fail_at(err, VT_STEP_EXEC, errno, "read the program", NULL);
	if (copy < 0 && errno == EINVAL) /* an older kernel, where all can be executed */
		copy = memfd_create("program", flags);
	while (copy >= 0 && (sent = sendfile(copy, fd, &at, 1 << 30)) != 0)
		if (sent < 0 && errno != EINTR)
			return vt_fail_at(err, VT_STEP_EXEC, errno, "copy the program", NULL);
	if (copy < 0 || fcntl(copy, F_ADD_SEALS, seals) < 0)
		return vt_fail_at(err, VT_STEP_EXEC, errno, "copy the program", NULL);
	return vt_fd_take(&copy);
}

/*
 * The file that it was from the beginning. Where another is in its place, or none, that one is
 * copied: executed as it is, it would be on a mount that can be written to. A client's program
 * whose name calls could change, since nothing covers it here, is executed as it is and not by its
 * name: they could put another there a moment after the look. *ret_fd is -1 where the path will do.
 */
static int find_program(const struct vt_pool_zygote *zygote, int *ret_fd, struct vt_err *err)
{
	struct stat first, now;

	*ret_fd = -1;
	if (zygote->program_fd < 0 || fstat(zygote->program_fd, &first) < 0)
		return 0;
	const bool same = stat(zygote->program, &now) == 0 && now.st_dev == first.st_dev &&
			  now.st_ino == first.st_ino;

	if (same && (zygote->plan->loads_ahead || !zygote->plan->bare || !zygote->has_main))
		return 0;
	int r = same ? fcntl(zygote->program_fd, F_DUPFD_CLOEXEC, 3)
		     : copy_program(zygote->program_fd, err);

	/* One that cannot be read goes by its path. */
	*ret_fd = r == -EACCES ? -1 : r;
	return *ret_fd < 0 && r != -EACCES ? r : 0;
}

static _Noreturn void fail(const struct vt_err *err)
{
	const struct vt_note failed = { .kind = VT_NOTE_FAILED, .err = *err };
	struct vt_err unheard;

	(void)vt_pass_send(3, &failed, sizeof(failed), NULL, 0,
			   &unheard); /* we end, heard or not */
	_exit(127);
}

/* Opens it once more: what is open for writing is not executed. Returns it, or a failure. */
static int reopen(int copy, struct vt_err *err)
{
	char path[VT_FDLINK];

	(void)vt_fdlink(path, copy);
	int fd = open(path, O_PATH | O_CLOEXEC);

	(void)close(copy); /* nothing is lost */
	return fd < 0 ? vt_fail_at(err, VT_STEP_EXEC, errno, "open the program", NULL) : fd;
}

/* One that is not there is another, too. */
static void tell_object(const char *object)
{
	struct vt_note note = { .kind = VT_NOTE_OBJECT };
	struct stat st = { 0 };
	struct vt_err unheard;

	(void)stat(object, &st);
	vt_file_stamp(&st, note.err.what);
	(void)vt_pass_send(3, &note, sizeof(note), NULL, 0, &unheard); /* it is for a log alone */
}

/*
 * Between clone and exec. The program's path may be on a file system that does not answer: before
 * it is asked, nothing of the supervisor's is held any more.
 */
static _Noreturn void become(struct vt_pool_zygote *zygote, char **envp, int control, int said,
			     int hull_user_fd)
{
	enum { HELD_FD, HULL_FD, CONTROL_FD = 3 };
	struct vt_err err;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), program = -1;

	if (null < 0 || vt_process_detach(&err) < 0 ||
	    vt_process_descriptors(zygote->program_fd >= 0 ? zygote->program_fd : null,
				   hull_user_fd < 0 ? null : hull_user_fd, said, control,
				   &err) < 0 ||
	    fcntl(CONTROL_FD, F_SETFD, 0) < 0 || (null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
		_exit(125);
	if (zygote->program_fd >= 0)
		zygote->program_fd = HELD_FD;
	int r = hull_user_fd < 0 ? 0 : enter_mounts(zygote->plan, HULL_FD, &err);

	/* After it: who gets other capabilities loses this. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(125);
	if (r == 0)
		r = find_program(zygote, &program, &err);
	if (r == 0 && program >= 0)
		r = program = reopen(program, &err);
	if (dup2(null, HELD_FD) < 0 || dup2(null, HULL_FD) < 0)
		_exit(125);
	if (r < 0)
		fail(&err);
	if (zygote->object)
		tell_object(zygote->object);
	/* Either returns only to fail. */
	if (program < 0)
		(void)execve(zygote->program, zygote->argv, envp);
	else
		(void)syscall(SYS_execveat, program, "", zygote->argv, envp, AT_EMPTY_PATH);
	/* A script has its interpreter read it by this descriptor, which exec must not close then.
	 */
	if (program >= 0 && errno == ENOENT && fcntl(program, F_SETFD, 0) == 0)
		(void)syscall(SYS_execveat, program, "", zygote->argv, envp, AT_EMPTY_PATH);
	(void)vt_fail_at(&err, VT_STEP_EXEC, errno, "execute", zygote->program);
	fail(&err);
}

/* The plan's environment, of which it heeds nothing that names code, and ours. */
static char **make_environment(char *const *envp, const char *preload)
{
	static char *const none[] = { NULL };
	char **all = vt_heeded_hide(envp ? envp : none, 1 + COUNT(variables));
	size_t count = 0;

	if (!all)
		return NULL;
	while (all[count])
		count++;
	memcpy(all + count, variables, sizeof(variables));
	all[count + COUNT(variables)] = (char *)preload;
	return all;
}

static void take_note(struct vt_pool_zygote *zygote, struct vt_note *note, int fds[VT_NOTE_FDS])
{
	note->err.what[sizeof(note->err.what) - 1] = '\0';
	if (note->kind == VT_NOTE_READY) {
		if (zygote->ready || zygote->retired)
			return;
		zygote->ready = true;
		*zygote->loading = '\0';
		vt_fd_close(&zygote->said_fd);
		zygote->is_ready(zygote->user);
	} else if (note->cell) {
		zygote->note(zygote->user, note, fds);
	} else if (note->kind == VT_NOTE_FAILED) {
		zygote->failure = note->err;
	} else if (note->kind == VT_NOTE_LOADS && !zygote->ready) {
		(void)snprintf(zygote->loading, sizeof(zygote->loading), "%.255s",
			       note->err.what); /* a longer one is none that was asked for */
	} else if (note->kind != VT_NOTE_OBJECT || !zygote->looked) {
		zygote->looked |= note->kind == VT_NOTE_OBJECT; /* before anything of it ran */
		zygote->said(zygote, note);
	}
}

/* Negative: nothing more can be heard, for this reason. */
static int hear(struct vt_pool_zygote *zygote, struct vt_err *err)
{
	struct vt_watch *source = &zygote->control;
	struct vt_note note;
	int fds[VT_NOTE_FDS];
	int r = 1;

	for (int left = TURN_NOTES; left > 0 && source->fd >= 0; left--) {
		r = vt_pass_take(source->fd, &note, sizeof(note), fds, VT_NOTE_FDS, MSG_DONTWAIT,
				 err);
		if (r <= 0)
			break;
		zygote->heard = true;
		take_note(zygote, &note, fds);
		for (size_t i = 0; i < VT_NOTE_FDS; i++)
			vt_fd_close(&fds[i]);
	}
	return source->fd >= 0 ? r : 0;
}

static void control_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_zygote *zygote = source->owner;
	struct vt_err err;

	(void)events;
	int r = hear(zygote, &err);

	if (r < 0)
		vt_loop_remove(zygote->loop, source);
	/* The end of one that is gone is told by its pidfd. Nobody would hear of this one any more.
	 */
	if (r < 0 && r != -EPIPE)
		vt_pool_zygote_kill(zygote, &err);
}

void vt_pool_zygote_kill(struct vt_pool_zygote *zygote, const struct vt_err *why)
{
	struct vt_err unheard;

	(void)hear(zygote, &unheard); /* its last words */
	const struct vt_err err = zygote->failure.num ? zygote->failure : *why;

	vt_pool_zygote_end(zygote);
	zygote->ended(zygote, &err);
}

/* The end of what it said of why it cannot go on, as a message can show it; "": nothing. */
static void hear_last_words(const struct vt_pool_zygote *zygote, char shown[LAST_WORDS])
{
	char said[LAST_WORDS + 4096];
	size_t len = 0, most = LAST_WORDS / 2;
	ssize_t got = 0;

	/* What came before makes room; a child of its own may never stop. */
	for (int i = 0; i < LAST_READS && zygote->said_fd >= 0; i++) {
		size_t kept = len < most ? len : most;

		memmove(said, said + len - kept, kept);
		len = kept;
		got = read(zygote->said_fd, said + len, sizeof(said) - len);
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	while (len > 0 && strchr(" \t\r\n", said[len - 1])) /* a NUL is one of them */
		len--;
	size_t skipped = len > most ? len - most : 0;

	(void)vt_utf8_show_text(shown, LAST_WORDS, said + skipped, len - skipped);
}

/* Sentences that say what is commonly wrong. */
static const char *advise(const struct vt_pool_zygote *zygote, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; /* by somebody */

	if (zygote->ready || killed)
		return "";
	if (zygote->advice)
		return zygote->advice;
	if (!zygote->has_main)
		return "";
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return "; is a library missing? LD_LIBRARY_PATH does not count here, nor does what "
		       "calls may write: link with -Wl,-rpath,FOLDER";
	return MAIN_COMES_FIRST;
}

/* One that its own child traces is left to whoever sweeps, when that has ended. */
static void reap(struct vt_pool_zygote *zygote, int *ret_status)
{
	*ret_status = 0;
	if (!vt_child_try_reap(&zygote->child, ret_status))
		vt_child_forget(&zygote->child);
}

void vt_pool_zygote_give_up(struct vt_pool_zygote *zygote, int64_t ms)
{
	struct vt_err err;
	char words[LAST_WORDS];

	hear_last_words(zygote, words);
	(void)vt_fail(&err, VT_STEP_COMMAND, ETIMEDOUT,
		      "cannot keep '%s' ready: it takes longer than %g s to begin%s%s%s%s",
		      zygote->program, (double)ms / 1000, zygote->has_main ? MAIN_COMES_FIRST : "",
		      *words ? " (it said: " : "", words, *words ? ")" : "");
	vt_pool_zygote_kill(zygote, &err);
}

static void ended(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_zygote *zygote = source->owner;
	struct vt_err err;
	char words[LAST_WORDS];

	(void)events;
	int status;

	reap(zygote, &status);
	bool killed = WIFSIGNALED(status);

	hear_last_words(zygote, words);
	(void)vt_fail(&err, VT_STEP_COMMAND, ECHILD, "cannot keep '%s' ready: it %s %d%s%s%s%s",
		      zygote->program, killed ? "died of signal" : "ended with code",
		      killed ? WTERMSIG(status) : WEXITSTATUS(status), advise(zygote, status),
		      *words ? " (it said: " : "", words, *words ? ")" : "");
	vt_pool_zygote_kill(zygote, &err);
}

void vt_pool_zygote_init(struct vt_pool_zygote *zygote)
{
	zygote->control = (struct vt_watch){ .fd = -1, .ready = control_ready, .owner = zygote };
	zygote->end = (struct vt_watch){ .fd = -1, .ready = ended, .owner = zygote };
	zygote->said_fd = -1;
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
	int pair[2], said[2];
	char **envp = make_environment(zygote->envp, zygote->preload);

	/* Whoever says more than fits is not waited for. */
	if (!envp || pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(envp);
		return vt_fail(err, VT_STEP_CLONE, errno, "start a zygote");
	}
	AUTO_CLOSE int their_words = said[1];

	zygote->said_fd = said[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		int r = vt_fail(err, VT_STEP_CLONE, errno, "start a zygote");

		free(envp);
		vt_fd_close(&zygote->said_fd);
		return r;
	}
	AUTO_CLOSE int theirs = pair[1];

	zygote->control.fd = pair[0];
	zygote->failure.num = 0;
	*zygote->loading = '\0';
	zygote->lesson = 0;
	zygote->lines = 0;
	zygote->heard = false;
	zygote->looked = false;
	zygote->started = vt_clock_now();
	zygote->retired = 0;
	pid_t pid = vt_ns_clone(0, -1, &zygote->end.fd, err);

	if (pid == 0)
		become(zygote, envp, theirs, their_words, hull_fds[VT_HULL_USER_FD]);
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

bool vt_pool_zygote_comes(const struct vt_pool_zygote *zygote)
{
	return zygote->child.pid && !zygote->ready && !zygote->retired;
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
	/* Not by its number, which is another's once it was swept. ESRCH: it has ended. */
	if (zygote->child.pid)
		(void)syscall(SYS_pidfd_send_signal, zygote->end.fd, SIGKILL, NULL, 0);
	vt_children_leave(zygote->children, &zygote->child, &zygote->end.fd);
	zygote->ready = false;
	vt_fd_close(&zygote->end.fd);
	vt_fd_close(&zygote->said_fd);
}
