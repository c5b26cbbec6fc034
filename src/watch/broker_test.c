/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that wait at a real filter, and a broker that answers: on a root made of two tmpfs. */
#include "watch/caller_test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/fd.h"
#include "kernel/seccomp.h"
#include "watch/broker.h"

enum { AT_ONCE = 32 }; /* as in broker.c */

/* A root of its own: "own" on its tmpfs, "other" on another one, as a grant is. */
struct stage {
	char base[64];
	int root_fd;
	int own, named, forbidden; /* listeners there */
	struct vt_inode inode;     /* of the named one */
	struct vt_plan plan;
	struct vt_loop loop;
	struct vt_broker broker;
	struct vt_err err;
};

static struct sockaddr_un name_of(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s", path); /* they are short */
	return name;
}

static int listen_at(const struct stage *stage, const char *path)
{
	char whole[96];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(whole, sizeof(whole), "%s/%s", stage->base, path); /* fits */
	const struct sockaddr_un name = name_of(whole);

	MUST(fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0);
	MUST(listen(fd, 0) == 0);
	return fd;
}

/* In a child: everything goes with it and its mount namespace. */
static void set(struct stage *stage)
{
	char other[96];
	struct stat st;

	*stage = (struct stage){ .base = "/tmp" };
	become_inner_root(CLONE_NEWNET);
	/* What a broker forgets is ours then, and shows. */
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	MUST(mount("none", stage->base, "tmpfs", 0, NULL) == 0);
	(void)snprintf(other, sizeof(other), "%s/other", stage->base); /* fits */
	MUST(mkdir(other, 0755) == 0 && mount("none", other, "tmpfs", 0, NULL) == 0);
	stage->root_fd = open(stage->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	stage->own = listen_at(stage, "own");
	stage->named = listen_at(stage, "other/named");
	stage->forbidden = listen_at(stage, "other/forbidden");
	MUST(fstatat(stage->root_fd, "other/named", &st, 0) == 0);
	MUST(symlinkat("/other/forbidden", stage->root_fd, "link") == 0);
	MUST(symlinkat("/own", stage->root_fd, "other/link") == 0);
	stage->inode = (struct vt_inode){ st.st_dev, st.st_ino };
	stage->plan.broker = (struct vt_brokered){
		.on = true, .abstract = true, .sockets = &stage->inode, .socket_count = 1
	};
	MUST(vt_loop_init(&stage->loop, &stage->err) == 0);
}

static int filter_brokered(struct vt_err *err)
{
	return vt_seccomp_listen(vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_BROKERED), err);
}

/* Runs act in a process under the filter, and the supervisor's part beside it. */
static void run_brokered(struct stage *stage, void (*act)(void *), void *arg)
{
	struct caller caller;
	int listener = start_caller(&caller, filter_brokered, act, arg);

	MUST(vt_broker_listen(&stage->broker, &stage->loop, &stage->plan,
			      vt_spawn_ids(&stage->plan), listener, stage->root_fd,
			      &stage->err) == 0);
	see_caller_out(&caller, &stage->loop);
}

/* Nothing is left of it, its helpers included. */
static void check_gone(struct stage *stage)
{
	vt_broker_done(&stage->broker);
	vt_broker_done(&stage->broker);
	MUST(stage->broker.pid == 0);
	MUST_FAIL(waitpid(-1, NULL, __WALL), ECHILD);
}

/* The errno of a connect(), 0 if it succeeds. */
static int dial(const char *path)
{
	const struct sockaddr_un name = name_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	int num = connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ? errno : 0;

	MUST(close(fd) == 0);
	return num;
}

static void connect_everywhere(void *arg)
{
	const struct stage *stage = arg;
	const struct sockaddr_un name = name_of("/own");
	const struct sockaddr *to = (const struct sockaddr *)&name;
	struct sockaddr_in inet = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(dial("/own") == 0);
	MUST(accept(stage->own, NULL, NULL) >= 0);
	MUST(dial("/other/../../../own") == 0);
	MUST(accept(stage->own, NULL, NULL) >= 0);
	MUST(dial("/other/link") == 0);
	MUST(accept(stage->own, NULL, NULL) >= 0);
	MUST(dial("/other/named") == 0);
	MUST(dial("/other/forbidden") == EACCES);
	MUST(dial("/link") == EACCES);
	MUST(dial("/other") == ECONNREFUSED);
	MUST(dial("/nowhere") == ENOENT);
	MUST(dial("/own/below") == ENOTDIR);
	MUST_FAIL(connect(-1, to, sizeof(name)), EBADF);
	MUST_FAIL(connect(stage->root_fd, to, sizeof(name)), EBADF); /* O_PATH */
	MUST_FAIL(connect(0, to, sizeof(name)), ENOTSOCK);
	MUST_FAIL(connect(fd, (const struct sockaddr *)16, sizeof(name)), EFAULT);
	for (socklen_t len = 0; len <= sizeof(sa_family_t); len++)
		MUST_FAIL(connect(fd, to, len), EINVAL);
	MUST_FAIL(connect(fd, to, 3), ECONNREFUSED); /* "/" */
	MUST_FAIL(connect(fd, to, sizeof(name) + 1), EINVAL);
	MUST_FAIL(connect(fd, to, (socklen_t)-1), EINVAL);
	MUST_FAIL(connect(fd, (struct sockaddr *)&inet, sizeof(inet)), EINVAL);
	MUST(connect(fd, to, offsetof(struct sockaddr_un, sun_path) + 4) == 0); /* no zero byte */
}

static void try_everywhere(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	run_brokered(&stage, connect_everywhere, &stage);
	MUST(stage.broker.pid > 0);
	check_gone(&stage);
}

static void test_whom_it_reaches(void **state)
{
	(void)state;
	run_child(try_everywhere, NULL);
}

/* Sockets of families that the policy gives nothing of: left to the cell by somebody else. */
static void connect_inherited(void *arg)
{
	const int *fds = arg;
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(1) };

	MUST_FAIL(connect(fds[0], (const struct sockaddr *)&to, sizeof(to)), EPERM);
	MUST_FAIL(connect(fds[1], (const struct sockaddr *)&to, sizeof(to)), EPERM);
}

static void try_inherited(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	int fds[] = { socket(AF_INET, SOCK_STREAM, 0), socket(AF_NETLINK, SOCK_RAW, 0) };

	MUST(fds[0] >= 0 && fds[1] >= 0);
	run_brokered(&stage, connect_inherited, fds);
	check_gone(&stage);
}

static void test_other_families(void **state)
{
	(void)state;
	run_child(try_inherited, NULL);
}

/* Two sockets of another network namespace, a listener there, and its abstract name. */
struct strangers {
	int fds[2], listener;
	struct sockaddr_un name;
	socklen_t len;
};

static void connect_stranger(void *arg)
{
	const struct strangers *s = arg;
	const struct sockaddr_un own = { .sun_family = AF_UNIX, .sun_path = "\0own" };
	const struct sockaddr *to = (const struct sockaddr *)&own;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);

	MUST_FAIL(connect(s->fds[1], (const struct sockaddr *)&s->name, s->len), EPERM);
	MUST_FAIL(connect(fd, (const struct sockaddr *)&s->name, s->len), ECONNREFUSED);
	MUST(bind(listener, to, sizeof(own)) == 0 && listen(listener, 1) == 0);
	MUST(connect(fd, to, sizeof(own)) == 0);
}

static void try_stranger(void *arg)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct strangers s = { .fds = { socket(AF_UNIX, SOCK_STREAM, 0),
					socket(AF_UNIX, SOCK_STREAM, 0) },
			       .listener = socket(AF_UNIX, SOCK_STREAM, 0),
			       .len = sizeof(s.name) };
	struct stage stage;

	(void)arg;
	MUST(bind(s.listener, (const struct sockaddr *)&any, sizeof(sa_family_t)) == 0);
	MUST(listen(s.listener, 8) == 0);
	MUST(getsockname(s.listener, (struct sockaddr *)&s.name, &s.len) == 0);
	set(&stage);
	/* The control: a name is looked up where the socket is from, not where its user is. */
	MUST(connect(s.fds[0], (const struct sockaddr *)&s.name, s.len) == 0);
	run_brokered(&stage, connect_stranger, &s);
	check_gone(&stage);
}

static void test_abstract_names(void **state)
{
	(void)state;
	run_child(try_stranger, NULL);
}

static void connect_nowhere(void *arg)
{
	(void)arg;
}

static void try_nowhere(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	run_brokered(&stage, connect_nowhere, NULL);
	MUST(stage.broker.pid == 0);
	check_gone(&stage);
}

static void test_made_when_needed(void **state)
{
	(void)state;
	run_child(try_nowhere, NULL);
}

/* A crowd at a listener that accepts nobody: one fits, 32 wait, the others are sent away. */
static void crowd(void *arg)
{
	enum { CROWD = AT_ONCE + 8 };
	pid_t waiting[CROWD];
	int away = 0, status;

	(void)arg;
	MUST(dial("/own") == 0);
	for (int i = 0; i < CROWD; i++) {
		waiting[i] = fork();
		MUST(waiting[i] >= 0);
		if (waiting[i] == 0)
			_exit(dial("/own"));
	}
	for (int i = 0; i < CROWD - AT_ONCE; i++) {
		MUST(wait(&status) > 0 && WIFEXITED(status));
		away += WEXITSTATUS(status) == EAGAIN;
	}
	MUST(away == CROWD - AT_ONCE);
	MUST(waitpid(-1, &status, WNOHANG) == 0);
	/* The callers go, so do those who waited in their stead, and there is room again. */
	for (int i = 0; i < CROWD; i++)
		(void)kill(waiting[i], SIGKILL); /* or has ended, and was reaped */
	while (wait(&status) > 0)
		;
	MUST(usleep(500000) == 0);
	MUST(dial("/other/forbidden") == EACCES);
	/* And one that never gets an answer, when all ends. */
	if (fork() == 0)
		_exit(dial("/own"));
	MUST(usleep(100000) == 0);
}

static void try_crowd(void *arg)
{
	struct stage stage;
	int status;

	(void)arg;
	set(&stage);
	run_brokered(&stage, crowd, NULL);
	vt_broker_done(&stage.broker);
	/* The last caller has become our child; it does not wait for ever. */
	MUST(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == ECONNREFUSED);
	check_gone(&stage);
}

static void test_crowd(void **state)
{
	(void)state;
	run_child(try_crowd, NULL);
}

/* It ends by itself when the cell is gone, though nobody told it. */
static void try_end(void *arg)
{
	struct stage stage;
	struct pollfd gone = { .events = POLLIN };

	(void)arg;
	set(&stage);
	run_brokered(&stage, connect_everywhere, &stage);
	gone.fd = stage.broker.pid_fd;
	MUST(poll(&gone, 1, 5000) == 1);
	check_gone(&stage);
}

static void test_ends_with_the_cell(void **state)
{
	(void)state;
	run_child(try_end, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whom_it_reaches),    cmocka_unit_test(test_other_families),
		cmocka_unit_test(test_made_when_needed),   cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_ends_with_the_cell), cmocka_unit_test(test_abstract_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
