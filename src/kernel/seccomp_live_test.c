/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in filters, installed for real: the kernel takes them, and they do what they say. */
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* All filters, counted through. */
enum { FILTERS = VT_SECCOMP_PROFILES * VT_SOCKETS_SETS };

static enum vt_seccomp_profile profile_of(int f)
{
	return (enum vt_seccomp_profile)(f / VT_SOCKETS_SETS);
}

static unsigned sockets_of(int f)
{
	return (unsigned)(f % VT_SOCKETS_SETS);
}

static const struct sock_fprog *filter_of(int f)
{
	return vt_seccomp_builtin(profile_of(f), sockets_of(f));
}

/* Children say by their exit code which step went wrong. */
#define MUST(step, condition)        \
	do {                         \
		if (!(condition))    \
			_exit(step); \
	} while (0)
#define FAILS_WITH(call, num) (errno = 0, (call) == -1 && errno == (num))

static void seal(int f)
{
	struct vt_err err = { 0 };

	MUST(100, !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(101, vt_seccomp_install(filter_of(f), &err) == 0);
	MUST(102, err.num == 0);
}

/* Runs `act` in a child, and returns its wait status. */
static int in_child(void (*act)(int), int f)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		(void)setrlimit(RLIMIT_CORE, &none); /* only tidiness: some children are killed */
		act(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void *thread_main(void *arg)
{
	*(int *)arg = 42;
	return NULL;
}

static void live_as_usual(int f)
{
	pthread_t thread;
	int status, answer = 0;
	pid_t pid;

	seal(f);
	/* A thread and a process, which glibc makes by clone since clone3 is not there. */
	MUST(1, !pthread_create(&thread, NULL, thread_main, &answer));
	MUST(2, !pthread_join(thread, NULL) && answer == 42);
	pid = fork();
	MUST(3, pid >= 0);
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	MUST(4, waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	MUST(5, FAILS_WITH(syscall(SYS_clone3, NULL, 0), ENOSYS));
	MUST(6, FAILS_WITH(syscall(SYS_unshare, 0), EPERM));
	MUST(7, FAILS_WITH(syscall(SYS_setns, -1, 0), EPERM));
	MUST(8, FAILS_WITH(syscall(SYS_bpf, 0, NULL, 0), EPERM));
	MUST(9, FAILS_WITH(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT));
	MUST(10, (socket(AF_INET, SOCK_STREAM, 0) >= 0) == !!(sockets_of(f) & VT_SOCKETS_INET));
	MUST(11, (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) ==
			 !!(sockets_of(f) & (VT_SOCKETS_UNIX | VT_SOCKETS_BROKERED)));
	/* A second one, as a program that narrows itself would add. */
	MUST(12, !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
			  vt_seccomp_builtin(VT_SECCOMP_STRICT, VT_SOCKETS_NONE)));
}

static void test_kernel_takes_every_filter(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++)
		assert_int_equal(in_child(live_as_usual, f), 0);
}

static void plant_setuid(int f)
{
	char name[] = "/tmp/vitro-seccomp-test-XXXXXX";
	int fd = mkstemp(name);

	MUST(1, fd >= 0 && !unlink(name));
	MUST(2, !fchmod(fd, 04755)); /* the control: outside it works */
	MUST(3, !fchmod(fd, 0600));
	seal(f);
	MUST(4, FAILS_WITH(fchmod(fd, 04755), EPERM));
	MUST(5, FAILS_WITH(fchmod(fd, 02755), EPERM));
	MUST(6, FAILS_WITH(syscall(SYS_fchmod, fd, 0xdeadbeef00000000 | 04755), EPERM));
	MUST(7, FAILS_WITH(open(name, O_CREAT | O_WRONLY, 04755), EPERM));
	MUST(8, FAILS_WITH(open("/tmp", O_TMPFILE | O_WRONLY, 02755), EPERM));
	MUST(9, FAILS_WITH(mknod(name, S_IFREG | 04755, 0), EPERM));
	MUST(10, !fchmod(fd, 01755));
}

static void test_kernel_keeps_setid_bits_out(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++)
		assert_int_equal(in_child(plant_setuid, f), 0);
}

/* A socket that waits under an abstract name of the kernel's choice. */
static void await_peers(int type, struct sockaddr_un *ret_name, socklen_t *ret_len)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	*ret_len = sizeof(*ret_name);
	MUST(20, fd >= 0);
	MUST(21, !bind(fd, (const struct sockaddr *)&any, sizeof(sa_family_t)));
	MUST(22, type == SOCK_DGRAM || !listen(fd, 1));
	MUST(23, !getsockname(fd, (struct sockaddr *)ret_name, ret_len));
}

/* Connects one end of a fresh pair to a third socket. */
static int reconnect(int type, const struct sockaddr_un *to, socklen_t len)
{
	int pair[2];

	if (socketpair(AF_UNIX, type, 0, pair))
		return -1;
	return connect(pair[0], (const struct sockaddr *)to, len);
}

static void escape_by_socketpair(int f)
{
	struct sockaddr_un datagram, stream, packet;
	socklen_t datagram_len, stream_len, packet_len;
	/* ENOSYS: there is nobody here to ask. */
	int refusal = sockets_of(f) & VT_SOCKETS_BROKERED ? ENOSYS
		      : sockets_of(f)                     ? EISCONN
							  : EPERM;

	await_peers(SOCK_DGRAM, &datagram, &datagram_len);
	await_peers(SOCK_STREAM, &stream, &stream_len);
	await_peers(SOCK_SEQPACKET, &packet, &packet_len);
	/* The control: outside it is a way. */
	MUST(1, !reconnect(SOCK_DGRAM, &datagram, datagram_len));
	MUST(2, !reconnect(SOCK_RAW, &datagram, datagram_len));
	seal(f);
	MUST(3, FAILS_WITH(reconnect(SOCK_DGRAM, &datagram, datagram_len), ESOCKTNOSUPPORT));
	MUST(4, FAILS_WITH(reconnect(SOCK_RAW, &datagram, datagram_len), ESOCKTNOSUPPORT));
	MUST(5, FAILS_WITH(reconnect(SOCK_STREAM, &stream, stream_len), refusal));
	MUST(6, FAILS_WITH(reconnect(SOCK_SEQPACKET, &packet, packet_len), refusal));
}

static void test_kernel_no_way_round_denied_unix_sockets(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++)
		if (!(sockets_of(f) & VT_SOCKETS_UNIX))
			assert_int_equal(in_child(escape_by_socketpair, f), 0);
}

#ifdef __x86_64__
static void call_32bit(int f)
{
	long answer;

	if (f >= 0)
		seal(f);
	__asm__ volatile("int $0x80" : "=a"(answer) : "0"(20L /* getpid */) : "memory");
	MUST(1, answer == getpid());
}

static void test_kernel_kills_32bit_calls(void **state)
{
	/* A kernel without 32-bit calls answers with SIGSEGV by itself. */
	bool exists = in_child(call_32bit, -1) == 0;

	(void)state;
	for (int f = 0; f < FILTERS; f++) {
		int status = in_child(call_32bit, f);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), exists ? SIGSYS : SIGSEGV);
	}
}
#endif

static void seal_with(enum vt_seccomp_addon addon, int f)
{
	struct vt_err err = { 0 };

	MUST(100, !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(101, vt_seccomp_install(vt_seccomp_addon(addon, sockets_of(f)), &err) == 0);
}

static void live_under_always(int f)
{
	int fd = memfd_create("file", 0), status;
	pid_t pid;

	MUST(1, fd >= 0 && !fchmod(fd, 04755) && !fchmod(fd, 0600)); /* the control */
	seal_with(VT_SECCOMP_ALWAYS, f);
	MUST(2, FAILS_WITH(fchmod(fd, 04755), EPERM) && !fchmod(fd, 0755));
	MUST(3, FAILS_WITH(syscall(SYS_clone3, NULL, 0), ENOSYS));
	MUST(4, FAILS_WITH(syscall(SYS_io_uring_setup, 1, NULL), EPERM));
	MUST(5, FAILS_WITH(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT));
	MUST(6, (socket(AF_INET, SOCK_STREAM, 0) >= 0) == !!(sockets_of(f) & VT_SOCKETS_INET));
	MUST(7, (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) ==
			!!(sockets_of(f) & (VT_SOCKETS_UNIX | VT_SOCKETS_BROKERED)));
	MUST(11, FAILS_WITH(fsetxattr(fd, "user.vitro", "x", 1, 0), EOPNOTSUPP));
	/* Left to the profile, and denied by the built-in ones. */
	MUST(8, personality(READ_IMPLIES_EXEC) >= 0);
	pid = fork();
	MUST(9, pid >= 0);
	if (!pid)
		_exit(7);
	MUST(10, waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

static void live_bare(int f)
{
	const struct timespec times[2] = { { 0 } };
	const int changes = sockets_of(f) & VT_SOCKETS_BROKERED ? ENOSYS
								: EPERM; /* nobody answers */
	int fd = memfd_create("file", 0);
	struct rlimit limit;

	MUST(1, fd >= 0 && !fchmod(fd, 0600) && !futimens(fd, times)); /* the controls */
	MUST(2, !setpriority(PRIO_PROCESS, (id_t)getppid(), getpriority(PRIO_PROCESS, 0)));
	MUST(11, !fchown(fd, (uid_t)-1, (gid_t)-1));
	seal_with(VT_SECCOMP_BARE, f);
	MUST(5, FAILS_WITH(fchown(fd, (uid_t)-1, (gid_t)-1), EPERM));
	MUST(12, !fchmod(fd, 0600) && !futimens(fd, times));
	seal_with(VT_SECCOMP_OWNER, f);
	MUST(3, FAILS_WITH(fchmod(fd, 0600), changes));
	MUST(4, FAILS_WITH(futimens(fd, times), changes));
	MUST(6, FAILS_WITH(setpriority(PRIO_PROCESS, (id_t)getppid(), 0), EPERM));
	MUST(7, !setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
	MUST(8, FAILS_WITH(prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit), EPERM));
	MUST(9, !prlimit(0, RLIMIT_NOFILE, NULL, &limit));
	MUST(10, !kill(getpid(), 0));
}

static void live_mute(int f)
{
	int fds[2];

	MUST(1, !kill(getppid(), 0) && !pipe(fds)); /* the controls */
	MUST(2, !fcntl(fds[0], F_SETOWN, getppid()));
	seal_with(VT_SECCOMP_MUTE, f);
	MUST(3, FAILS_WITH(kill(getppid(), 0), EPERM));
	MUST(4, FAILS_WITH(kill(-1, 0), EPERM));
	MUST(5, FAILS_WITH(syscall(SYS_tgkill, getppid(), getppid(), 0), EPERM));
	MUST(6, FAILS_WITH(syscall(SYS_pidfd_open, getppid(), 0), EPERM));
	MUST(7, FAILS_WITH(fcntl(fds[0], F_SETOWN, getppid()), EPERM));
	MUST(8, FAILS_WITH(syscall(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, getppid(), 0, 0), EPERM));
	MUST(9, !kill(0, 0));
}

/* abort() cannot raise its signal, and still must not come back. */
static void abort_mute(int f)
{
	/* The test framework's handlers would take its last resort for a failed test. */
	(void)signal(SIGSEGV, SIG_DFL);
	(void)signal(SIGILL, SIG_DFL);
	(void)signal(SIGTRAP, SIG_DFL);
	seal_with(VT_SECCOMP_MUTE, f);
	abort();
}

static void test_kernel_takes_every_addon(void **state)
{
	int status;

	(void)state;
	for (int f = 0; f < VT_SOCKETS_SETS; f++)
		assert_int_equal(in_child(live_under_always, f), 0);
	assert_int_equal(in_child(live_bare, 0), 0);
	assert_int_equal(in_child(live_mute, 0), 0);
	status = in_child(abort_mute, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_not_equal(WTERMSIG(status), SIGABRT);
}

static void install_without_promise(int f)
{
	struct vt_err err = { 0 };

	MUST(1, geteuid() || !setuid(65534));
	MUST(2, vt_seccomp_install(filter_of(f), &err) == -EACCES);
	MUST(3, err.step == VT_STEP_SECCOMP && err.num == EACCES);
	MUST(4, strstr(err.what, "no_new_privs"));
	MUST(5, syscall(SYS_unshare, 0) == 0); /* and nothing was installed */
}

static void install_nothing(int f)
{
	const struct sock_fprog empty = { 0, NULL };
	struct vt_err err = { 0 };

	(void)f;
	MUST(1, !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(2, vt_seccomp_install(&empty, &err) == -EINVAL);
	MUST(3, err.step == VT_STEP_SECCOMP && err.num == EINVAL);
}

static void test_install_failures_are_told(void **state)
{
	(void)state;
	assert_int_equal(in_child(install_without_promise, 0), 0);
	assert_int_equal(in_child(install_nothing, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_takes_every_filter),
		cmocka_unit_test(test_kernel_keeps_setid_bits_out),
		cmocka_unit_test(test_kernel_no_way_round_denied_unix_sockets),
#ifdef __x86_64__
		cmocka_unit_test(test_kernel_kills_32bit_calls),
#endif
		cmocka_unit_test(test_kernel_takes_every_addon),
		cmocka_unit_test(test_install_failures_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
