/* SPDX-License-Identifier: Apache-2.0 */
/* Root of a user namespace gives everything up, and then tries to get some of it back. */
#include "kernel/child_test.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "kernel/caps.h"

struct sets {
	unsigned long long inheritable, permitted, effective, bounding, ambient;
};

static struct sets read_sets(void)
{
	char status[8192];
	struct sets sets;
	const char *at;

	read_own("/proc/self/status", status, sizeof(status));
	at = strstr(status, "CapInh:");
	MUST(at && sscanf(at, "CapInh: %llx CapPrm: %llx CapEff: %llx CapBnd: %llx CapAmb: %llx",
			  &sets.inheritable, &sets.permitted, &sets.effective, &sets.bounding,
			  &sets.ambient) == 5);
	return sets;
}

static void drop(void)
{
	struct vt_err err;

	MUST(vt_caps_drop(&err) == 0);
}

static void drops_all(void *arg)
{
	(void)arg;
	become_inner_root(0);
	/* An ambient one too, which would survive an exec. */
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	MUST(syscall(SYS_capget, &header, data) == 0);
	data[0].inheritable |= 1U << CAP_SYS_ADMIN;
	MUST(syscall(SYS_capset, &header, data) == 0);
	MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0);
	struct sets sets = read_sets();

	MUST(sets.effective && sets.bounding && sets.ambient && sets.inheritable);
	MUST(mount("none", "/tmp", "tmpfs", 0, NULL) == 0);
	drop();
	sets = read_sets();
	MUST(!sets.inheritable && !sets.permitted && !sets.effective);
	MUST(!sets.bounding);
	MUST(!sets.ambient);
	MUST_FAIL(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM);
}

static void test_drop_all(void **state)
{
	(void)state;
	run_child(drops_all, NULL);
}

static void empties_its_own(void *arg)
{
	struct vt_err err;

	(void)arg;
	become_inner_root(0);
	MUST(vt_caps_empty(&err) == 0);
	struct sets sets = read_sets();

	MUST(!sets.inheritable && !sets.permitted && !sets.effective);
	MUST_FAIL(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM);
	MUST(vt_caps_empty(&err) == 0); /* nothing to give up is fine */
}

static void test_empty(void **state)
{
	(void)state;
	run_child(empties_its_own, NULL);
}

static void cannot_regain(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct one[2] = { { .effective = 1, .permitted = 1 } };

	(void)arg;
	become_inner_root(0);
	drop();
	MUST_FAIL(syscall(SYS_capset, &header, one), EPERM);
	MUST_FAIL(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0), EPERM);
	MUST_FAIL(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
	MUST_FAIL(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), EPERM);
	MUST(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT_LOCKED);
	/* uid 0 to uid 0 is what setuid() would give root's powers back for. */
	MUST(setresuid(0, 0, 0) == 0);
	MUST(read_sets().permitted == 0);
}

static void test_nothing_comes_back(void **state)
{
	(void)state;
	run_child(cannot_regain, NULL);
}

/* Exec as uid 0 gives root's powers, but for SECBIT_NOROOT; the program's own sets tell. */
static void exec_shows_sets(void *arg)
{
	int pair[2], status;
	char out[512] = "";
	size_t len = 0;
	ssize_t n;

	become_inner_root(0);
	MUST(pipe(pair) == 0);
	pid_t pid = fork();

	if (pid == 0) {
		if (arg)
			drop();
		MUST(dup2(pair[1], 1) == 1);
		(void)execl("/bin/grep", "grep", "-E", "Cap(Prm|Eff|Bnd)", "/proc/self/status",
			    NULL);
		MUST(!"exec");
	}
	(void)close(pair[1]);
	while (len < sizeof(out) - 1 && (n = read(pair[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += (size_t)n;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	unsigned long long permitted, effective, bounding;

	MUST(sscanf(out, "CapPrm: %llx CapEff: %llx CapBnd: %llx", &permitted, &effective,
		    &bounding) == 3);
	if (arg)
		MUST(!permitted && !effective && !bounding);
	else
		MUST(permitted && effective && bounding);
}

static void test_nothing_comes_by_exec(void **state)
{
	int after_drop;

	(void)state;
	run_child(exec_shows_sets, NULL);
	run_child(exec_shows_sets, &after_drop);
}

static void drop_without_privilege(void *arg)
{
	struct vt_err err = { 0 };

	(void)arg;
	if (geteuid() == 0)
		drop();
	MUST(vt_caps_drop(&err) == -EPERM);
	MUST(err.step == VT_STEP_CAPS && err.num == EPERM);
}

/* Whoever cannot empty the bounding set is told, and does not go on with half a seal. */
static void test_drop_refused(void **state)
{
	(void)state;
	run_child(drop_without_privilege, NULL);
}

/* The bounding set and the bits go, and the own sets stay, for the steps that are to come. */
static void bounds_as_root(void *arg)
{
	struct vt_err err;

	(void)arg;
	become_inner_root(0);
	struct sets before = read_sets();

	MUST(before.bounding && before.permitted);
	MUST(vt_caps_bound(&err) == 0);
	struct sets sets = read_sets();

	MUST(sets.bounding == 0 && sets.ambient == 0);
	MUST(sets.permitted == before.permitted && sets.effective == before.effective);
	MUST(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT_LOCKED);
	MUST_FAIL(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM);
	MUST(mount("none", "/tmp", "tmpfs", 0, NULL) == 0);
	MUST(vt_caps_empty(&err) == 0);
	MUST_FAIL(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM);
}

/* Whoever has no say in it keeps the set, which is of no use to him, and goes on. */
static void bounds_as_user(void *arg)
{
	struct vt_err err;

	(void)arg;
	if (geteuid() == 0)
		MUST(vt_caps_empty(&err) == 0);
	struct sets before = read_sets();

	MUST(vt_caps_bound(&err) == 0);
	struct sets sets = read_sets();

	MUST(sets.bounding == before.bounding && !sets.permitted && !sets.ambient);
}

/* An ambient set would survive the exec of an ordinary user, no_new_privs or not. */
static void bounds_ambient(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct one[2] = {
		{ .effective = 1, .permitted = 1, .inheritable = 1 } /* CAP_CHOWN alone */
	};
	struct vt_err err;

	(void)arg;
	become_inner_root(0);
	MUST(syscall(SYS_capset, &header, one) == 0);
	MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
	MUST(read_sets().ambient == 1);
	MUST(vt_caps_bound(&err) == 0);
	MUST(read_sets().ambient == 0);
}

/* A bounding set that stays for another reason than want of power is no seal. */
static void bounds_in_vain(void *arg)
{
	struct sock_filter deny[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_CAPBSET_DROP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(deny) / sizeof(deny[0]), deny };
	struct vt_err err;

	(void)arg;
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
	MUST(vt_caps_bound(&err) == -EINVAL);
}

static void test_bound(void **state)
{
	(void)state;
	run_child(bounds_as_root, NULL);
	run_child(bounds_as_user, NULL);
	run_child(bounds_ambient, NULL);
	run_child(bounds_in_vain, NULL);
}

static void sets_no_new_privs(void *arg)
{
	struct vt_err err;

	(void)arg;
	MUST(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	MUST(vt_caps_no_new_privs(&err) == 0);
	MUST(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static void test_no_new_privs(void **state)
{
	(void)state;
	run_child(sets_no_new_privs, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_all),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_nothing_comes_back),
		cmocka_unit_test(test_nothing_comes_by_exec),
		cmocka_unit_test(test_drop_refused),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_no_new_privs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
