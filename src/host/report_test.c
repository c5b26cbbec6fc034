/* SPDX-License-Identifier: Apache-2.0 */
#include "host/report.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/skip_test.h"
#include "host/advice.h"

enum { CANNOT = 77 }; /* this machine does not let the test be made */

static struct vt_host host;
static struct vt_report report;

static const struct vt_finding *find(const char *name)
{
	for (size_t i = 0; i < report.count; i++)
		if (strcmp(report.findings[i].name, name) == 0)
			return &report.findings[i];
	return NULL;
}

static void probe(void)
{
	struct vt_err err;

	assert_int_equal(vt_host_probe(&host, &err), 0);
}

static unsigned count_entries(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	assert_int_equal(closedir(dir), 0);
	return count;
}

static unsigned count_mounts(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "r");
	unsigned count = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		count += c == '\n';
	assert_int_equal(fclose(file), 0);
	return count;
}

/* Of this process: others make theirs meanwhile. */
static unsigned count_cgroups(void)
{
	char own[32];

	(void)snprintf(own, sizeof(own), "vitro-%d.", (int)getpid());
	return host.cgroup.memory[0] != '\0' ? count_entries(host.cgroup.memory, own) : 0;
}

/* What the cheap probe found, the thorough one must find as well, and nothing may be left. */
static void test_real(void **state)
{
	(void)state;
	probe();
	/* What a try forgot is ours then, and shows below. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	unsigned fds = count_entries("/proc/self/fd", ""), mounts = count_mounts();
	unsigned cgroups = count_cgroups();

	vt_report_make(&host, &report);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count_mounts(), mounts);
	assert_int_equal(count_cgroups(), cgroups);

	const struct vt_finding *userns = find("user namespaces");

	assert_non_null(userns);
	assert_int_equal(userns->state, host.userns.err == 0 ? VT_STATE_WORKS : VT_STATE_NOT);
	assert_int_equal(find("seccomp filters")->state,
			 host.seccomp.err == 0 ? VT_STATE_WORKS : VT_STATE_NOT);
	assert_int_equal(find("seccomp listeners")->state,
			 host.notify.err == 0 ? VT_STATE_WORKS : VT_STATE_NOT);
	assert_int_equal(find("host ids for cells") != NULL, geteuid() == 0);
	for (size_t i = 0; i < report.count; i++) {
		const struct vt_finding *finding = &report.findings[i];

		assert_ptr_equal(find(finding->name), finding); /* no name twice */
		if (finding->state != VT_STATE_WORKS)
			assert_true(finding->why[0] != '\0');
		if (finding->follows)
			assert_int_equal(userns->state, VT_STATE_NOT);
	}
	vt_host_done(&host);
	assert_true(count_entries("/proc/self/fd", "") <= fds);
}

static void check_ok(bool needed, enum vt_state state, bool ok)
{
	struct vt_report one = { .count = 1 };

	one.findings[0].needed = needed;
	one.findings[0].state = state;
	assert_int_equal(vt_report_ok(&one), ok);
}

static void test_ok(void **state)
{
	(void)state;
	check_ok(true, VT_STATE_WORKS, true);
	check_ok(true, VT_STATE_PARTLY, true);
	check_ok(true, VT_STATE_NOT, false);
	check_ok(false, VT_STATE_NOT, true);
	assert_string_equal(vt_state_name(VT_STATE_PARTLY), "partly");
	assert_string_equal(vt_state_name(VT_STATES), "?");
}

/* Older and poorer hosts than this one: what was probed is replaced, what is tried stays real. */
static void test_invented(void **state)
{
	(void)state;
	probe();
	if (host.landlock_abi > 0) {
		host.landlock_abi = 3;
		vt_report_make(&host, &report);
		assert_int_equal(find("Landlock")->state, VT_STATE_PARTLY);
		assert_non_null(strstr(find("Landlock")->why, "ABI 3"));
		assert_non_null(strstr(find("Landlock")->why, ": device controls, signals"));
		/* A cell's network is a namespace of its own: TCP rules are not missed. */
		host.landlock_abi = 4;
		vt_report_make(&host, &report);
		assert_non_null(strstr(find("Landlock")->why, ": device controls, signals"));
		host.landlock_abi = 6;
		vt_report_make(&host, &report);
		assert_int_equal(find("Landlock")->state, VT_STATE_WORKS);
		assert_string_equal(find("Landlock")->why, "ABI 6");
	}
	host.notify.err = EBUSY;
	host.landlock_abi = 0;
	host.landlock_err = EOPNOTSUPP;
	host.cgroup.version = VT_CGROUP_NONE;
	host.cgroup.memory[0] = host.cgroup.pids[0] = host.cgroup.cpu[0] = '\0';
	strcpy(host.cgroup.why, "nothing there");
	bool was_privileged = host.privileged;

	host.privileged = false;
	host.id_count = 0;
	host.supplementary_groups = 2;
	vt_report_make(&host, &report);
	assert_int_equal(find("seccomp listeners")->state, VT_STATE_NOT);
	assert_non_null(strstr(find("seccomp listeners")->advice, "outside of that"));
	assert_int_equal(find("Landlock")->state, VT_STATE_NOT);
	assert_non_null(strstr(find("Landlock")->advice, "lsm="));
	assert_non_null(strstr(find("cgroups")->why, "nothing there"));
	assert_string_not_equal(find("cgroups")->advice, "");
	assert_null(find("cgroup memory"));
	assert_null(find("id-mapped mounts"));
	assert_int_equal(find("dropping groups")->state, VT_STATE_PARTLY);
	if (was_privileged) {
		assert_int_equal(find("host ids for cells")->state, VT_STATE_NOT);
		assert_false(vt_report_ok(&report));
	}
	vt_host_done(&host);
}

/* What could not be tried is not blamed on the folder that it would have been tried with. */
static void test_no_idmap_to_try(void **state)
{
	(void)state;
	probe();
	host.userns.err = EPERM;
	host.userns.tried = "clone(CLONE_NEWUSER)";
	host.privileged = true;
	host.id_base = 1 << 20;
	host.id_count = 1;
	vt_report_make(&host, &report);
	assert_int_equal(find("id-mapped mounts")->state, VT_STATE_NOT);
	assert_true(find("id-mapped mounts")->follows);
	assert_non_null(strstr(find("id-mapped mounts")->why, "for want of user namespaces"));
	assert_string_equal(find("id-mapped mounts")->advice, "");
	vt_host_done(&host);
}

/* A cgroup that is promised and cannot be made. */
static void test_no_cgroup(void **state)
{
	(void)state;
	probe();
	host.cgroup.version = VT_CGROUP_V2;
	strcpy(host.cgroup.memory, "/nowhere/at/all");
	host.cgroup.pids[0] = host.cgroup.cpu[0] = '\0';
	vt_report_make(&host, &report);
	assert_int_equal(find("cgroup memory")->state, VT_STATE_NOT);
	assert_non_null(strstr(find("cgroup memory")->why, "sampling"));
	assert_int_equal(find("cgroup cpu")->state, VT_STATE_NOT);
	vt_host_done(&host);
}

/* Of v1 an ordinary user gets nothing, and is not sent to look for it. */
static void test_cgroup_advice(void **state)
{
	char advice[512];
	bool v1 = access("/sys/fs/cgroup/memory/tasks", F_OK) == 0;

	(void)state;
	if (vt_advice_container() != NULL)
		SKIP("in a container the advice is another");
	probe();
	host.privileged = false;
	vt_advice_cgroup(&host, advice, sizeof(advice));
	assert_non_null(strstr(advice, v1 ? "cgroup v1" : "systemd-run --user"));
	assert_true((strstr(advice, "systemd-run --user") == NULL) == v1);
	vt_host_done(&host);
}

/* Runs check in a child, where it may restrict itself; it exits 0, or with the line that failed. */
static void in_child(void (*check)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		SKIP("it cannot be brought about here");
	if (WEXITSTATUS(status) != 0)
		fail_msg("check %d failed in the child", WEXITSTATUS(status));
}

#define CHECK(number, condition)       \
	do {                           \
		if (!(condition))      \
			_exit(number); \
	} while (0)

static void write_or_give_up(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		_exit(CANNOT);
}

static void make_report(void)
{
	struct vt_err err;

	CHECK(1, vt_host_probe(&host, &err) == 0);
	vt_report_make(&host, &report);
}

static void check_no_userns(void)
{
	char map[32];

	(void)snprintf(map, sizeof(map), "0 %u 1\n", geteuid());
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(CANNOT);
	write_or_give_up("/proc/self/uid_map", map);
	write_or_give_up("/proc/sys/user/max_user_namespaces", "0\n");
	make_report();
	CHECK(2, find("user namespaces")->state == VT_STATE_NOT);
	CHECK(3, strstr(find("user namespaces")->advice, "sysctl -w user.max_user_namespaces") !=
			 NULL);
	CHECK(4, find("pid namespaces")->follows && find("proc in a cell")->follows);
	CHECK(5, !find("seccomp filters")->follows);
	CHECK(6, find("seccomp filters")->state == VT_STATE_WORKS);
	CHECK(7, !vt_report_ok(&report));
}

static void test_no_userns(void **state)
{
	(void)state;
	in_child(check_no_userns);
}

static void check_no_pidns(void)
{
	char uids[32], gids[32];

	(void)snprintf(uids, sizeof(uids), "0 %u 1\n", geteuid());
	(void)snprintf(gids, sizeof(gids), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(CANNOT);
	write_or_give_up("/proc/self/uid_map", uids);
	write_or_give_up("/proc/self/setgroups", "deny");
	write_or_give_up("/proc/self/gid_map", gids);
	write_or_give_up("/proc/sys/user/max_pid_namespaces", "0\n");
	make_report();
	CHECK(2, find("user namespaces")->state == VT_STATE_WORKS);
	CHECK(3, find("pid namespaces")->state == VT_STATE_NOT);
	CHECK(4, strstr(find("pid namespaces")->advice, "user.max_pid_namespaces is 0") != NULL);
	CHECK(5, find("uts namespaces")->state == VT_STATE_WORKS);
	CHECK(6, find("proc in a cell")->follows);
}

static void test_no_pidns(void **state)
{
	(void)state;
	in_child(check_no_pidns);
}

/* As in a container whose filter knows no close_range. */
static void check_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(CANNOT);
	make_report();
	CHECK(2, find("close_range")->state == VT_STATE_NOT);
	CHECK(3, strstr(find("close_range")->advice, "seccomp=unconfined") != NULL);
	CHECK(4, !vt_report_ok(&report));
}

static void test_filtered(void **state)
{
	(void)state;
	in_child(check_filtered);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_invented),
		cmocka_unit_test(test_no_cgroup),
		cmocka_unit_test(test_cgroup_advice),
		cmocka_unit_test(test_no_userns),
		cmocka_unit_test(test_no_pidns),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_no_idmap_to_try),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
