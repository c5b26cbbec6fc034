/* SPDX-License-Identifier: Apache-2.0 */
/* A caller that waits at its filter, and somebody who answers for it: with the real kernel. */
#include "kernel/child_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/fd.h"
#include "kernel/notify.h"
#include "kernel/seccomp.h"

/* A caller in a child, with its listener here. */
struct caller {
	pid_t pid;
	int listener;
};

/* What the caller asks for: connect(fd, address, len). */
struct question {
	int fd;
	struct sockaddr_un address;
	socklen_t len;
	const char *folder; /* it stands here */
	bool thread;        /* not the first thread asks */
};

static struct vt_err err;

static void send_fd(int socket_fd, int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(socket_fd, &message, 0) != 1)
		_exit(90);
}

static int receive_fd(int socket_fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int fd;

	assert_int_equal(recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* Its exit code is the errno that it got. */
static void *ask(void *arg)
{
	const struct question *q = arg;

	_exit(connect(q->fd, (const struct sockaddr *)&q->address, q->len) ? errno : 0);
}

static _Noreturn void call(const struct question *q, int socket_fd)
{
	pthread_t thread;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || (q->folder && chdir(q->folder) < 0))
		_exit(91);
	int listener = vt_seccomp_listen(
		vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_BROKERED), &err);

	if (listener < 0)
		_exit(92);
	send_fd(socket_fd, listener);
	(void)close(listener); /* the other side has it */
	if (!q->thread)
		ask((void *)q);
	if (pthread_create(&thread, NULL, ask, (void *)q))
		_exit(93);
	(void)pthread_join(thread, NULL); /* it ends the process */
	_exit(94);
}

static struct caller start(const struct question *q)
{
	struct caller caller;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	caller.pid = fork();
	assert_true(caller.pid >= 0);
	if (caller.pid == 0)
		call(q, pair[1]);
	(void)close(pair[1]); /* the child's */
	caller.listener = receive_fd(pair[0]);
	(void)close(pair[0]); /* done */
	return caller;
}

static int exit_code(struct caller *caller)
{
	int status;

	assert_int_equal(waitpid(caller->pid, &status, 0), caller->pid);
	vt_fd_close(&caller->listener);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_probe(void **state)
{
	const char *tried = NULL;

	(void)state;
	assert_int_equal(vt_notify_probe(VT_NOTIFY_CONNECT, &tried), 0);
	assert_int_equal(vt_notify_probe(VT_NOTIFY_MODES, &tried), 0);
	assert_non_null(tried);
}

/* Everything that can be learned of a caller, and its answer. */
static void check_answered(bool thread)
{
	int pair[2];
	struct question q = { .address = { .sun_family = AF_UNIX, .sun_path = "some/where" },
			      .len = sizeof(q.address),
			      .folder = "/usr",
			      .thread = thread };
	struct sockaddr_un seen = { 0 };
	struct vt_notice notice;
	char folder[64], small[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	q.fd = pair[0];
	struct caller caller = start(&q);

	assert_int_equal(vt_notify_receive(caller.listener, &notice), 0);
	assert_int_equal(notice.nr, SYS_connect);
	assert_int_equal(notice.tid == caller.pid, !thread);
	assert_int_equal(vt_notify_read(notice.tid, notice.args[1], &seen, sizeof(seen)), 0);
	assert_memory_equal(&seen, &q.address, sizeof(seen));
	assert_int_equal(vt_notify_read(notice.tid, 16, &seen, sizeof(seen)), -EFAULT);
	assert_int_equal(vt_notify_folder(notice.tid, folder, sizeof(folder)), 0);
	assert_string_equal(folder, "/usr");
	assert_int_equal(vt_notify_folder(notice.tid, small, sizeof(small)), -ENAMETOOLONG);
	AUTO_CLOSE int taken = vt_notify_take_fd(notice.tid, (int)notice.args[0]);

	/* The same end of the pair: what is written there comes out at the other. */
	assert_true(taken >= 0);
	assert_true(fcntl(taken, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(taken, "x", 1), 1);
	assert_int_equal(read(pair[1], small, 1), 1);
	assert_int_equal(vt_notify_take_fd(notice.tid, 1 << 20), -EBADF);
	assert_int_equal(vt_notify_take_fd(notice.tid, -1), -EBADF);
	/* Of the host's own namespace only its root is told. */
	assert_int_equal(vt_notify_same_network(notice.tid, taken), geteuid() == 0);
	assert_true(vt_notify_waits(caller.listener, notice.id));
	assert_int_equal(vt_notify_answer(caller.listener, notice.id, -ENOLINK), 0);
	assert_false(vt_notify_waits(caller.listener, notice.id));
	assert_true(vt_notify_answer(caller.listener, notice.id, 0) < 0); /* too late */
	assert_int_equal(exit_code(&caller), ENOLINK);
	(void)close(pair[0]); /* done */
	(void)close(pair[1]); /* done */
}

static void test_answer(void **state)
{
	(void)state;
	check_answered(false);
	check_answered(true);
}

/* Kernels before 6.9 give no pidfd of a thread: a filter plays one. */
static void answer_on_an_older_kernel(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };
	struct question q = { .fd = socket(AF_UNIX, SOCK_STREAM, 0), .thread = true };
	struct vt_notice notice;

	(void)arg;
	struct caller caller = start(&q);

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(vt_seccomp_install(&filter, &err) == 0);
	MUST(vt_notify_receive(caller.listener, &notice) == 0);
	MUST(notice.tid != caller.pid);
	MUST(vt_notify_take_fd(notice.tid, q.fd) >= 0);
	MUST(vt_notify_answer(caller.listener, notice.id, 0) == 0);
	MUST(exit_code(&caller) == 0);
}

static void test_older_kernel(void **state)
{
	(void)state;
	run_child(answer_on_an_older_kernel, NULL);
}

/* One that is killed waits no longer, and its listener says when nobody is left. */
static void test_killed(void **state)
{
	const struct question q = { .fd = 0 };
	struct vt_notice notice;
	struct caller caller = start(&q);
	struct pollfd gone = { .fd = caller.listener };
	int status;

	(void)state;
	assert_int_equal(vt_notify_receive(caller.listener, &notice), 0);
	assert_int_equal(kill(caller.pid, SIGKILL), 0);
	assert_int_equal(waitpid(caller.pid, &status, 0), caller.pid);
	assert_false(vt_notify_waits(caller.listener, notice.id));
	assert_int_equal(vt_notify_answer(caller.listener, notice.id, 0), -ENOENT);
	assert_int_equal(poll(&gone, 1, 5000), 1);
	assert_true(gone.revents & POLLHUP);
	vt_fd_close(&caller.listener);
}

/* Nobody has the listener any more: the call fails, it does not go on. */
static void test_nobody_answers(void **state)
{
	const struct question q = { .fd = 0 };
	struct caller caller = start(&q);

	(void)state;
	vt_fd_close(&caller.listener);
	assert_int_equal(exit_code(&caller), ENOSYS);
}

static void listen_twice(void *arg)
{
	const struct sock_fprog *filter = vt_seccomp_builtin(VT_SECCOMP_DEFAULT,
							     VT_SOCKETS_BROKERED);

	(void)arg;
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(vt_seccomp_listen(filter, &err) >= 0);
	MUST(vt_seccomp_listen(filter, &err) == -EBUSY);
	MUST(strstr(err.what, "has a listener"));
}

static void test_one_listener(void **state)
{
	(void)state;
	run_child(listen_twice, NULL);
}

/* Sockets keep the network namespace that they were made in. */
static void change_network(void *arg)
{
	int before = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)arg;
	MUST(before >= 0);
	MUST(vt_notify_same_network(getpid(), before) == (geteuid() == 0));
	become_inner_root(CLONE_NEWNET);
	int after = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(after >= 0 && vt_notify_same_network(getpid(), after));
	MUST(!vt_notify_same_network(getpid(), before));
	MUST(!vt_notify_same_network(getpid(), -1));
}

static void test_network(void **state)
{
	(void)state;
	run_child(change_network, NULL);
}

static bool leads_to(int root, const char *path, const char *to)
{
	struct stat found, wanted;
	AUTO_CLOSE int fd = vt_notify_open_in(root, path);

	return fd >= 0 && fstat(fd, &found) == 0 && stat(to, &wanted) == 0 &&
	       found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev;
}

static void test_open_in(void **state)
{
	char base[] = "/tmp/test-notify-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(base));
	AUTO_CLOSE int root = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root >= 0);
	assert_int_equal(mkdirat(root, "etc", 0755), 0);
	assert_int_equal(symlinkat("/etc", root, "absolute"), 0);
	assert_int_equal(symlinkat("../../../../../../etc", root, "etc/climbing"), 0);
	assert_int_equal(symlinkat("loop", root, "loop"), 0);
	char etc[64];

	(void)snprintf(etc, sizeof(etc), "%s/etc", base); /* fits */
	assert_true(leads_to(root, "/etc", etc));
	assert_true(leads_to(root, "etc", etc));
	assert_true(leads_to(root, "absolute", etc));
	assert_true(leads_to(root, "/etc/climbing", etc));
	assert_true(leads_to(root, "/../../etc/../etc", etc));
	assert_true(leads_to(root, "/..", base));
	assert_int_equal(vt_notify_open_in(root, "/etc/passwd"), -ENOENT);
	assert_int_equal(vt_notify_open_in(root, "loop"), -ELOOP);
	assert_int_equal(vt_notify_open_in(root, ""), -ENOENT);
	/* Links of proc's jump: where to, no lookup can bound. */
	AUTO_CLOSE int real = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(vt_notify_open_in(real, "/proc/self/cwd") < 0);
	assert_int_equal(unlinkat(root, "loop", 0), 0);
	assert_int_equal(unlinkat(root, "absolute", 0), 0);
	assert_int_equal(unlinkat(root, "etc/climbing", 0), 0);
	assert_int_equal(unlinkat(root, "etc", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(base), 0);
}

/* From below a folder nothing leads out; from anywhere links do, but proc's that jump do not. */
static void test_open_beneath(void **state)
{
	char base[] = "/tmp/test-notify-XXXXXX";
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(base));
	AUTO_CLOSE int root = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root >= 0);
	assert_int_equal(mkdirat(root, "sub", 0755), 0);
	assert_int_equal(symlinkat("/etc", root, "out"), 0);
	assert_int_equal(symlinkat("..", root, "sub/up"), 0);
	AUTO_CLOSE int sub = vt_notify_open_beneath(root, "sub");
	AUTO_CLOSE int link = vt_notify_open_beneath(root, "out");
	AUTO_CLOSE int etc = vt_notify_open_at(root, "out", true);
	AUTO_CLOSE int itself = vt_notify_open_at(root, "out", false);

	assert_true(sub >= 0 && link >= 0 && etc >= 0 && itself >= 0);
	assert_true(fstat(link, &st) == 0 && S_ISLNK(st.st_mode));
	assert_true(fstat(itself, &st) == 0 && S_ISLNK(st.st_mode));
	assert_true(fstat(etc, &st) == 0 && S_ISDIR(st.st_mode));
	assert_int_equal(vt_notify_open_beneath(root, "out/passwd"), -ELOOP);
	assert_int_equal(vt_notify_open_beneath(root, "sub/up/sub"), -ELOOP);
	assert_int_equal(vt_notify_open_beneath(root, "../etc"), -EXDEV);
	assert_int_equal(vt_notify_open_beneath(root, "/etc"), -EXDEV);
	assert_int_equal(vt_notify_open_at(root, "/proc/self/cwd", true), -ELOOP);
	assert_int_equal(vt_notify_open_at(root, "/proc/self/root/etc", true), -ELOOP);
	assert_int_equal(unlinkat(root, "out", 0), 0);
	assert_int_equal(unlinkat(root, "sub/up", 0), 0);
	assert_int_equal(unlinkat(root, "sub", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(base), 0);
}

static void test_open_fd(void **state)
{
	struct stat here, found;
	AUTO_CLOSE int folder = vt_notify_open_fd(getpid(), AT_FDCWD);
	AUTO_CLOSE int again = vt_notify_open_fd(getpid(), folder);

	(void)state;
	assert_true(folder >= 0 && again >= 0 && stat(".", &here) == 0);
	assert_true(fstat(again, &found) == 0 && found.st_ino == here.st_ino);
	assert_int_equal(vt_notify_open_fd(getpid(), 999999), -EBADF);
	assert_int_equal(vt_notify_open_fd(getpid(), -1), -EBADF);
}

static void test_read_text(void **state)
{
	const char text[] = "text";
	char buf[8];

	(void)state;
	assert_int_equal(vt_notify_read_text(getpid(), (uintptr_t)text, buf, sizeof(buf)), 0);
	assert_string_equal(buf, text);
	assert_int_equal(vt_notify_read_text(getpid(), (uintptr_t)text, buf, 4), -ENAMETOOLONG);
	assert_int_equal(vt_notify_read_text(getpid(), 1, buf, sizeof(buf)), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),          cmocka_unit_test(test_answer),
		cmocka_unit_test(test_older_kernel),   cmocka_unit_test(test_killed),
		cmocka_unit_test(test_nobody_answers), cmocka_unit_test(test_one_listener),
		cmocka_unit_test(test_network),        cmocka_unit_test(test_open_in),
		cmocka_unit_test(test_open_beneath),   cmocka_unit_test(test_open_fd),
		cmocka_unit_test(test_read_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
