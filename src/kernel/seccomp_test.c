/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in filters, run by an interpreter, which can ask about any call with any arguments;
 * seccomp_live_test.c asks the kernel.
 */
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kernel/bpf_test.h"

/* What may lie above the 32 bits that the kernel looks at. */
#define GARBAGE 0xdeadbeef00000000ull

/* Calls that this system's headers may lack. */
enum {
	NR_CACHESTAT = 451,
	NR_FCHMODAT2 = 452,
	NR_FUTEX_WAIT = 455,
	NR_STATMOUNT = 457,
	NR_LISTMOUNT = 458,
	NR_MSEAL = 462,
	NR_OPEN_TREE_ATTR = 467,
};

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

static int ask_data(int f, const struct seccomp_data *data)
{
	return bpf_answer(filter_of(f), data);
}

static int ask4(int f, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct seccomp_data data = {
		.nr = (int)nr,
		.arch = NATIVE_ARCH,
		.args = { a, b, c, d, GARBAGE, GARBAGE },
	};

	return ask_data(f, &data);
}

/* Asks twice, with and without garbage above; the answers must be one. */
static int ask(int f, long nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	int plain = ask4(f, nr, a, b, c, d);

	assert_int_equal(ask4(f, nr, GARBAGE | a, GARBAGE | b, GARBAGE | c, GARBAGE | d), plain);
	return plain;
}

static void want(int expected, int f, long nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	int got = ask(f, nr, a, b, c, d);

	if (got != expected)
		fail_msg("call %ld(%#x, %#x, %#x, %#x) in filter %d: %d, not %d", nr, a, b, c, d, f,
			 got, expected);
}

/* Calls whose arguments do not matter; each list ends with -1. */
/* clang-format off */
static const struct {
	int  expected[VT_SECCOMP_PROFILES];
	long calls[64];
} plain[] = {
	{ { PASS, PASS }, {
		SYS_read, SYS_execve, SYS_execveat, SYS_exit_group, SYS_rt_sigreturn,
		SYS_restart_syscall, SYS_futex, SYS_rseq, SYS_membarrier, SYS_munmap,
		SYS_getrandom, SYS_statx, SYS_close_range, SYS_epoll_pwait2, SYS_pidfd_open,
		SYS_pidfd_send_signal, SYS_sched_setaffinity, SYS_setgroups,
		SYS_landlock_restrict_self, SYS_sendmsg, NR_FUTEX_WAIT, NR_MSEAL,
#ifdef __x86_64__
		SYS_fork, SYS_vfork, SYS_arch_prctl,
#endif
		-1 } },
	{ { PASS, EPERM }, {
		SYS_setpriority, SYS_sched_setscheduler, SYS_sched_setattr,
		SYS_ioprio_set,
		-1 } },
	{ { PASS, ENOSYS }, {
		SYS_mq_open, SYS_set_mempolicy, SYS_sync,
		-1 } },
	{ { ENOSYS, ENOSYS }, {
		SYS_clone3, SYS_openat2, SYS_vmsplice, SYS_mbind, NR_FCHMODAT2, NR_CACHESTAT, NR_STATMOUNT, NR_LISTMOUNT,
		SYS_shmget, SYS_shmat, SYS_semget, SYS_msgget, SYS_io_setup,
#ifdef __x86_64__
		SYS_uselib,
#endif
		-1 } },
	{ { EPERM, EPERM }, {
		SYS_setns, SYS_unshare, SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2,
		SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
		SYS_mount_setattr, NR_OPEN_TREE_ATTR, SYS_pidfd_getfd, SYS_process_vm_readv,
		SYS_process_vm_writev, SYS_kcmp, SYS_move_pages, SYS_migrate_pages, SYS_bpf,
		SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
		SYS_io_uring_register, SYS_keyctl, SYS_add_key, SYS_request_key,
		SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fanotify_init, SYS_reboot,
		SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_swapon,
		SYS_acct, SYS_quotactl, SYS_syslog, SYS_settimeofday, SYS_clock_settime,
		SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_vhangup,
#ifdef __x86_64__
		SYS_modify_ldt, SYS_iopl, SYS_ioperm,
#endif
		-1 } },
};
/* clang-format on */

static void test_plain_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		for (const long *nr = plain[i].calls; *nr != -1; nr++)
			for (int f = 0; f < FILTERS; f++)
				want(plain[i].expected[profile_of(f)], f, *nr, UINT32_MAX, 0, 1,
				     UINT32_MAX);
}

static void test_unknown_calls_are_not_there(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++) {
		for (long nr = 480; nr < NUMBERS; nr++)
			want(ENOSYS, f, nr, 0, 0, 0, 0);
		want(ENOSYS, f, -1, 0, 0, 0, 0);
		want(ENOSYS, f, INT32_MAX, 0, 0, 0, 0);
		want(ENOSYS, f, INT32_MIN, 0, 0, 0, 0);
		/* The x32 bit: on x86-64 the same calls by other numbers. */
		for (long nr = 0; nr < NUMBERS; nr++)
			want(ENOSYS, f, nr | 0x40000000, 0, 0, 0, 0);
	}
}

static void test_other_machines_are_killed(void **state)
{
	static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, FOREIGN_ARCH, 0, ~0u };

	(void)state;
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++)
		for (int f = 0; f < FILTERS; f++)
			for (int nr = -1; nr < NUMBERS; nr++) {
				struct seccomp_data data = { .nr = nr, .arch = arches[i] };

				assert_int_equal(ask_data(f, &data), KILLED);
			}
}

/* Every call that takes a mode, and where; `flags` is the argument that makes it count, or -1. */
static const struct {
	long nr;
	int mode, flags;
} roads[] = {
	{ SYS_fchmod, 1, -1 },  { SYS_fchmodat, 2, -1 },
	{ SYS_mknodat, 2, -1 }, { SYS_openat, 3, 2 },
#ifdef __x86_64__
	{ SYS_chmod, 1, -1 },   { SYS_creat, 1, -1 },
	{ SYS_mknod, 1, -1 },   { SYS_open, 2, 1 },
#endif
};

static void want_mode(int expected, int f, size_t road, uint32_t mode, uint32_t flags)
{
	uint32_t args[4] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };

	if (roads[road].flags >= 0)
		args[roads[road].flags] = flags;
	args[roads[road].mode] = mode;
	want(expected, f, roads[road].nr, args[0], args[1], args[2], args[3]);
}

static void test_setid_bits_by_every_road(void **state)
{
	static const uint32_t creating[] = { O_CREAT | O_WRONLY, O_TMPFILE | O_RDWR, 020000000,
					     UINT32_MAX };
	/* The kernel cuts a mode to 16 bits: what is above them may hide nothing. */
	static const uint32_t above[] = { 0, 0x10000, 0xffff0000 };

	(void)state;
	for (size_t road = 0; road < sizeof(roads) / sizeof(*roads); road++)
		for (int f = 0; f < FILTERS; f++)
			for (size_t i = 0; i < 12; i++) {
				uint32_t flags = creating[i % 4], high = above[i / 4];

				for (uint32_t mode = 0; mode <= 07777; mode++)
					want_mode(mode & 06000 ? EPERM : PASS, f, road,
						  high | S_IFREG | mode, flags);
			}
}

static void test_mode_is_ignored_where_nothing_is_made(void **state)
{
	(void)state;
	for (size_t road = 0; road < sizeof(roads) / sizeof(*roads); road++)
		if (roads[road].flags >= 0)
			for (int f = 0; f < FILTERS; f++) {
				want_mode(PASS, f, road, UINT32_MAX, O_RDONLY);
				want_mode(PASS, f, road, 06000, O_DIRECTORY | O_CLOEXEC | O_PATH);
			}
}

static void test_clone_makes_no_namespaces(void **state)
{
	static const uint32_t namespaces[] = {
		CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, CLONE_NEWTIME,
	};
	/* As glibc makes threads, forks and spawns. */
	static const uint32_t honest[] = { 0x3d0f00, 0x1200011, CLONE_VM | CLONE_VFORK | SIGCHLD,
					   CLONE_PIDFD | CLONE_PARENT_SETTID | 64 };

	(void)state;
	for (int f = 0; f < FILTERS; f++)
		for (size_t i = 0; i < sizeof(honest) / sizeof(*honest); i++) {
			want(PASS, f, SYS_clone, honest[i], 0, 0, 0);
			for (size_t j = 0; j < sizeof(namespaces) / sizeof(*namespaces); j++)
				want(EPERM, f, SYS_clone, honest[i] | namespaces[j], 0, 0, 0);
		}
}

static void test_socket_families(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++)
		for (uint32_t family = 0; family <= 46; family++) {
			bool local = family == AF_UNIX && sockets_of(f) & VT_SOCKETS_UNIX;
			bool inet = (family == AF_INET || family == AF_INET6) &&
				    sockets_of(f) & VT_SOCKETS_INET;
			bool brokered = family == AF_UNIX && !local &&
					sockets_of(f) & VT_SOCKETS_BROKERED;
			int expected = local || inet ? PASS : EAFNOSUPPORT;

			want(brokered ? PASS : expected, f, SYS_socket, family,
			     SOCK_STREAM | SOCK_CLOEXEC, 0, 0);
			want(brokered ? PASS : expected, f, SYS_socket, family,
			     SOCK_SEQPACKET | SOCK_NONBLOCK, 0, 0);
			want(brokered ? ESOCKTNOSUPPORT : expected, f, SYS_socket, family,
			     SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);
			want(brokered ? ESOCKTNOSUPPORT : expected, f, SYS_socket, family, SOCK_RAW,
			     0, 0);
			if (!brokered)
				want(expected, f, SYS_socket, family, SOCK_DGRAM, IPPROTO_UDP, 0);
			/* An int to the kernel, so a wide value is another family. */
			want(EAFNOSUPPORT, f, SYS_socket, family | 0x10000, SOCK_STREAM, 0, 0);
		}
}

static void test_socket_protocols(void **state)
{
	static const uint32_t rare[] = { IPPROTO_SCTP, IPPROTO_DCCP, 115 /* L2TP */,
					 256 /* SMC */ };
	static const uint32_t common[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6,
					   262 /* MPTCP, the default of Go's listeners */ };

	(void)state;
	for (int f = 0; f < FILTERS; f++) {
		if (!(sockets_of(f) & VT_SOCKETS_INET))
			continue;
		for (size_t i = 0; i < sizeof(rare) / sizeof(*rare); i++)
			want(EPROTONOSUPPORT, f, SYS_socket, AF_INET, SOCK_STREAM, rare[i], 0);
		for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
			want(PASS, f, SYS_socket, AF_INET6, SOCK_STREAM, common[i], 0);
	}
}

static void test_socketpair(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++) {
		for (uint32_t family = 0; family <= 46; family++)
			want(family == AF_UNIX ? PASS : EAFNOSUPPORT, f, SYS_socketpair, family,
			     SOCK_STREAM, 0, 0);
		for (uint32_t type = 0; type < 16; type++) {
			bool fine = type == SOCK_STREAM || type == SOCK_SEQPACKET ||
				    (type == SOCK_DGRAM && sockets_of(f) & VT_SOCKETS_UNIX);
			uint32_t flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

			want(fine ? PASS : ESOCKTNOSUPPORT, f, SYS_socketpair, AF_UNIX,
			     type | flags, 0, 0);
		}
	}
}

static void test_socket_names(void **state)
{
	static const long calls[] = { SYS_bind, SYS_listen, SYS_accept, SYS_accept4 };

	(void)state;
	for (int f = 0; f < FILTERS; f++)
		want(sockets_of(f) & VT_SOCKETS_BROKERED ? ASKED
		     : sockets_of(f)                     ? PASS
							 : EPERM,
		     f, SYS_connect, 3, 0, 0, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (int f = 0; f < FILTERS; f++)
			want(sockets_of(f) ? PASS : EPERM, f, calls[i], 3, 0, 0, 0);
}

static void test_arguments(void **state)
{
	static const struct {
		long nr;
		uint32_t a, b;
		int expected[VT_SECCOMP_PROFILES];
	} rows[] = {
		{ SYS_ioctl, 0, TIOCSTI, { EPERM, EPERM } },
		{ SYS_ioctl, 0, TIOCLINUX, { EPERM, EPERM } },
		{ SYS_ioctl, 0, TIOCSETD, { EPERM, EPERM } },
		{ SYS_ioctl, TIOCSTI, TCGETS, { PASS, PASS } },
		{ SYS_ioctl, 3, FS_IOC_ADD_ENCRYPTION_KEY, { EPERM, EPERM } },
		{ SYS_ioctl, 3, FS_IOC_REMOVE_ENCRYPTION_KEY, { EPERM, EPERM } },
		{ SYS_ioctl, 3, FS_IOC_GET_ENCRYPTION_KEY_STATUS, { PASS, PASS } },
		{ SYS_ioctl, 0, TIOCGWINSZ, { PASS, PASS } },
		{ SYS_ioctl, 0, FIONREAD, { PASS, PASS } },
		{ SYS_personality, 0xffffffff, 0, { PASS, PASS } },
		{ SYS_personality, 0, 0, { PASS, PASS } },
		{ SYS_personality, 0x0040000, 0, { PASS, EPERM } },  /* ADDR_NO_RANDOMIZE */
		{ SYS_personality, 0x0400000, 0, { EPERM, EPERM } }, /* READ_IMPLIES_EXEC */
		{ SYS_personality, 0x0440000, 0, { EPERM, EPERM } },
		{ SYS_personality, 0x0100000, 0, { EPERM, EPERM } }, /* MMAP_PAGE_ZERO */
		{ SYS_personality, 0x0000008, 0, { EPERM, EPERM } }, /* PER_LINUX32 */
		{ SYS_prctl, PR_SET_NAME, 0, { PASS, PASS } },
		{ SYS_sched_setaffinity, 1, 0, { EPERM, EPERM } },
		{ SYS_sched_setaffinity, 2, 0, { PASS, PASS } },
		{ SYS_sched_setscheduler, 1, 0, { EPERM, EPERM } },
		{ SYS_sched_setattr, 1, 0, { EPERM, EPERM } },
		{ SYS_setpriority, PRIO_PROCESS, 1, { EPERM, EPERM } },
		{ SYS_setpriority, PRIO_PROCESS, 2, { PASS, EPERM } },
		{ SYS_setpriority, PRIO_PGRP, 1, { EPERM, EPERM } },
		{ SYS_setpriority, PRIO_USER, 0, { EPERM, EPERM } },
		{ SYS_ioprio_set, 1, 1, { EPERM, EPERM } },
		{ SYS_ioprio_set, 3 /* IOPRIO_WHO_USER */, 0, { EPERM, EPERM } },
		{ SYS_fcntl, 0, F_SETLEASE, { EPERM, EPERM } },
		{ SYS_fcntl, 0, F_SET_RW_HINT, { EPERM, EPERM } },
		{ SYS_fcntl, 0, F_SET_FILE_RW_HINT, { EPERM, EPERM } },
		{ SYS_fcntl, 0, F_SETFL, { PASS, PASS } },
		{ SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, { EPERM, EPERM } },
		{ SYS_clone, CLONE_PARENT | SIGCHLD, 0, { EPERM, EPERM } },
		{ SYS_clone,
		  CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_FILES,
		  0,
		  { PASS, PASS } },
		{ SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, { PASS, PASS } },
		{ SYS_prctl, PR_SET_VMA, 0, { PASS, PASS } },
		{ SYS_prctl, PR_SET_MM, 0, { EPERM, EPERM } },
		{ SYS_prctl, PR_SCHED_CORE, 0, { EPERM, EPERM } },
		{ SYS_ptrace, PTRACE_TRACEME, 0, { PASS, EPERM } },
		{ SYS_ptrace, PTRACE_GETREGSET, 0, { PASS, EPERM } },
	/* Filters see of a first argument what it was before a tracer wrote it. */
#ifdef __aarch64__
		{ SYS_ptrace, PTRACE_SETREGSET, 0, { EPERM, EPERM } },
		{ SYS_ptrace, 0x4212 /* PTRACE_SET_SYSCALL_INFO */, 0, { EPERM, EPERM } },
#else
		{ SYS_ptrace, PTRACE_SETREGSET, 0, { PASS, EPERM } },
		{ SYS_ptrace, 0x4212, 0, { PASS, EPERM } },
#endif
		{ SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, { PASS, PASS } },
		{ SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, { PASS, PASS } },
		{ SYS_seccomp,
		  SECCOMP_SET_MODE_FILTER,
		  1 << 3 /* NEW_LISTENER */,
		  { PASS, EPERM } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int f = 0; f < FILTERS; f++)
			want(rows[i].expected[profile_of(f)], f, rows[i].nr, rows[i].a, rows[i].b,
			     0, 0);
}

/* A tighter filter passes nothing that a wider one refuses. */
static void test_filters_are_nested(void **state)
{
	(void)state;
	for (int f = 0; f < FILTERS; f++)
		for (long nr = 0; nr < NUMBERS; nr++)
			for (uint32_t arg = 0; arg < 16; arg++) {
				if (ask(f, nr, arg, arg, arg, arg) != PASS)
					continue;
				/* The default profile comes first: with these, and with all
				 * families. */
				want(PASS, (int)sockets_of(f), nr, arg, arg, arg, arg);
				want(PASS, VT_SOCKETS_UNIX | VT_SOCKETS_INET, nr, arg, arg, arg,
				     arg);
			}
}

static void test_nonsense_gets_the_tightest(void **state)
{
	const struct sock_fprog *tightest = vt_seccomp_builtin(VT_SECCOMP_STRICT, VT_SOCKETS_NONE);

	(void)state;
	assert_ptr_equal(vt_seccomp_builtin(VT_SECCOMP_PROFILES, VT_SOCKETS_SETS), tightest);
	assert_ptr_equal(vt_seccomp_builtin((enum vt_seccomp_profile) - 1, ~0u), tightest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_calls),
		cmocka_unit_test(test_unknown_calls_are_not_there),
		cmocka_unit_test(test_other_machines_are_killed),
		cmocka_unit_test(test_setid_bits_by_every_road),
		cmocka_unit_test(test_mode_is_ignored_where_nothing_is_made),
		cmocka_unit_test(test_clone_makes_no_namespaces),
		cmocka_unit_test(test_socket_families),
		cmocka_unit_test(test_socket_protocols),
		cmocka_unit_test(test_socketpair),
		cmocka_unit_test(test_socket_names),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_filters_are_nested),
		cmocka_unit_test(test_nonsense_gets_the_tightest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
