/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/command.h"
#include "kernel/caps.h"
#include "kernel/seccomp.h"
#include "plan/plan.h"
#include "watch/run.h"

enum { CONTROL_SECONDS = 10, OUTPUT_MAX = 1 << 16, REAP_MS = 2 };

void vt_said_parse(const char *text, struct vt_said *ret_said)
{
	static const char *const heads[] = {
		[VT_SAID_REACHED] = "reached: ",
		[VT_SAID_DENIED] = "denied: ",
		[VT_SAID_UNCLEAR] = "unclear: ",
	};

	*ret_said = (struct vt_said){ .word = VT_SAID_NOTHING };
	while (*text) {
		size_t len = strcspn(text, "\n");

		for (int i = VT_SAID_REACHED; i <= VT_SAID_UNCLEAR; i++) {
			size_t head = strlen(heads[i]);

			if (strncmp(text, heads[i], head) != 0)
				continue;
			ret_said->word = (enum vt_said_word)i;
			(void)snprintf(ret_said->line, sizeof(ret_said->line), "%.*s",
				       (int)(len - head), text + head); /* cut is fine */
		}
		text += len + (text[len] == '\n');
	}
}

int vt_control_detach(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL); /* not SIGKILL and its like, which nobody changes */
	(void)sigemptyset(&none);              /* cannot fail */
	return setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int write_text(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* All of them at once with a user namespace: what is done there stays there, even root's. */
static int enter_namespaces(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -1;
	(void)snprintf(map, sizeof(map), "0 %u 1", uid); /* fits */
	if (write_text("/proc/self/setgroups", "deny") < 0 ||
	    write_text("/proc/self/uid_map", map) < 0)
		return -1;
	(void)snprintf(map, sizeof(map), "0 %u 1", gid); /* fits */
	return write_text("/proc/self/gid_map", map);
}

static _Noreturn void say_unclear(const char *what, int num)
{
	(void)dprintf(STDOUT_FILENO, "unclear: %s: %s\n", what, strerror(num));
	_exit(1);
}

/* The act itself: leads a group of its own, since some end what they started by their group. */
static _Noreturn void become_act(char *const *argv, enum vt_control_kind kind,
				 const struct sock_fprog *filter, int out)
{
	struct vt_err err;
	char *const envp[] = { NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	if (vt_control_detach() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		say_unclear("it cannot be started", errno);
	if (kind == VT_CONTROL_NAMESPACES && enter_namespaces() < 0)
		say_unclear("no namespaces for it outside", errno);
	if (kind == VT_CONTROL_CHILD) {
		pid_t child = fork();

		if (child < 0)
			say_unclear("fork", errno);
		if (child > 0) {
			(void)waitpid(child, NULL, 0);
			_exit(0);
		}
	}
	if (filter && (vt_caps_no_new_privs(&err) < 0 || vt_seccomp_install(filter, &err) < 0))
		say_unclear("no filter for it outside", err.num);
	(void)execve(argv[0], argv, envp);
	say_unclear("it cannot be executed", errno);
}

/*
 * Between us and the act: what the act leaves behind becomes this one's child and is waited for. It
 * holds no end of the act's output.
 */
static _Noreturn void reap_all(pid_t act)
{
	int64_t end = vt_clock_now() + CONTROL_SECONDS * VT_NS_PER_S;
	bool over = false;

	for (;;) {
		pid_t pid = waitpid(-1, NULL, over ? 0 : WNOHANG);

		if (pid < 0 && errno == ECHILD)
			_exit(0);
		if (pid == 0 && vt_clock_now() > end) {
			/* Ours until it is reaped, and its group's number with it. */
			(void)kill(-act, SIGKILL);
			over = true;
		} else if (pid == 0) {
			(void)poll(NULL, 0, REAP_MS);
		}
	}
}

static _Noreturn void keep_control(char *const *argv, enum vt_control_kind kind,
				   const struct sock_fprog *filter, int out)
{
	pid_t act = -1;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* cannot fail */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
		act = fork();
	if (act < 0)
		_exit(1);
	if (act == 0)
		become_act(argv, kind, filter, out);
	(void)close(out);
	reap_all(act);
}

/* Until it is closed by all who may write. They are bounded in time, and so is this. */
static void read_all(int fd, struct vt_str *out)
{
	int64_t end = vt_clock_now() + (CONTROL_SECONDS + 2) * VT_NS_PER_S;
	char bytes[4096];

	for (;;) {
		int64_t left = (end - vt_clock_now()) / VT_NS_PER_MS;
		struct pollfd ready = { .fd = fd, .events = POLLIN };

		if (left <= 0 || (poll(&ready, 1, (int)left) < 0 && errno != EINTR))
			return;
		ssize_t got = ready.revents ? read(fd, bytes, sizeof(bytes)) : -1;

		if (got == 0 || (ready.revents && got < 0 && errno != EINTR))
			return;
		if (got > 0 && out->len < OUTPUT_MAX)
			vt_str_addn(out, bytes, (size_t)got);
	}
}

int vt_control_start(char *const *argv, enum vt_control_kind kind, const struct sock_fprog *filter,
		     struct vt_control *ret_control, struct vt_err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make a pipe");
	AUTO_CLOSE int in = ends[0];
	AUTO_CLOSE int out = ends[1];
	pid_t keeper = fork();

	if (keeper < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "start a control");
	if (keeper == 0) {
		(void)close(in);
		keep_control(argv, kind, filter, out);
	}
	vt_fd_close(&out);
	ret_control->keeper = keeper;
	vt_str_init(&ret_control->out);
	read_all(in, &ret_control->out);
	if (vt_str_ok(&ret_control->out))
		return 0;
	vt_control_end(ret_control);
	return vt_fail(err, VT_STEP_WATCH, ENOMEM, "read what a control says");
}

void vt_control_end(struct vt_control *control)
{
	while (waitpid(control->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	vt_str_done(&control->out);
}

int vt_attempt_inside(const struct vt_host *host, const struct vt_policy *policy, char *const *argv,
		      int signal_fd, struct vt_plan **ret_plan, struct vt_result *ret_result,
		      struct vt_err *err)
{
	const struct vt_run_io io = {
		.in_fd = -1,
		.out = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.err = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.signal_fd = signal_fd,
	};
	struct vt_command command = { 0 };
	struct vt_plan *plan = NULL;
	struct vt_result result;
	struct vt_arena *arena = vt_arena_new();
	char name[48];
	const struct vt_request request = { &command, argv, environ, .name = name };
	int r = arena ? 0 : vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin");

	/* Another self-test may run at the same time, and one that was killed leave a folder. */
	(void)snprintf(name, sizeof(name), "self-%d-%lld", (int)getpid(),
		       (long long)vt_clock_now()); /* fits */
	if (r == 0)
		r = vt_command_find(arena, argv[0], &(struct vt_lookup){ .cwd = "/" }, &command,
				    err);
	if (r == 0)
		r = vt_plan_make(policy, host, &request, &plan, err);
	if (r == 0) {
		vt_result_init(&result);
		r = vt_run(plan, &io, &result, err);
		if (r < 0) {
			vt_result_done(&result);
			vt_plan_free(plan);
		} else {
			*ret_plan = plan;
			*ret_result = result;
		}
	}
	vt_arena_free(arena);
	return r;
}
