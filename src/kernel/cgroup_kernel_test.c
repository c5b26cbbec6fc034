/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel makes of it: the cgroups of this machine, where the caller may make some.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/skip_test.h"
#include "kernel/cgroup_private.h"

static int write_text(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];
	int r = vt_cgroup_path(path, folder, name);
	int fd = r < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	vt_fd_close(&fd);
	return written ? 0 : -1;
}

/*
 * A site of the test's own, in a folder per hierarchy below the real one: other tests and other
 * vitros make and sweep theirs at the same time. NULL where there is none to use.
 */
static int make_site(void **state)
{
	struct vt_cgroup_site *site = malloc(sizeof(*site));

	*state = NULL;
	if (!site)
		return -1;
	vt_cgroup_find(site);
	if (!site->memory[0] || !site->pids[0] || !site->cpu[0] || !site->cpuacct[0]) {
		print_message("no cgroups with all controllers here: %s\n", site->why);
		free(site);
		return 0;
	}
	/* the first cgroup on v2 has its site hand down controllers */
	if (site->version == VT_CGROUP_V2) {
		const struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20,
							 .pids = 4,
							 .cpu_quota_us = 50000 };
		struct vt_cgroup first;
		struct vt_err err;

		if (vt_cgroup_make(site, &limits, &first, &err) < 0 ||
		    vt_cgroup_remove(&first, &err) < 0)
			return -1;
	}

	char *const folders[] = { site->memory, site->pids, site->cpu, site->cpuacct };
	for (int i = 0; i < VT_CGROUP_HIERARCHIES; i++) {
		size_t len = strlen(folders[i]);
		int more = snprintf(folders[i] + len, PATH_MAX - len, "/vitro-test-%d", getpid());

		if (more < 0 || (size_t)more >= PATH_MAX - len ||
		    (mkdir(folders[i], 0755) < 0 && errno != EEXIST))
			return -1;
	}
	if (site->version == VT_CGROUP_V2 &&
	    write_text(site->memory, "cgroup.subtree_control", "+memory +pids +cpu") < 0)
		return -1;
	*state = site;
	return 0;
}

/* The same, for what v1 alone has. */
static int make_v1_site(void **state)
{
	struct vt_cgroup_site site;

	vt_cgroup_find(&site);
	if (site.version == VT_CGROUP_V1)
		return make_site(state);
	print_message("no cgroup v1 here\n");
	*state = NULL;
	return 0;
}

static int drop_site(void **state)
{
	struct vt_cgroup_site *site = *state;

	if (!site)
		return 0;
	(void)vt_cgroup_sweep(site);

	char *const folders[] = { site->memory, site->pids, site->cpu, site->cpuacct };
	int r = 0;
	for (int i = 0; i < VT_CGROUP_HIERARCHIES; i++)
		if (rmdir(folders[i]) < 0 && errno != ENOENT)
			r = -1;
	free(site);
	return r;
}

static int folders_of(const char *folder)
{
	struct stat st;

	assert_int_equal(stat(folder, &st), 0);
	return (int)st.st_nlink - 2;
}

/* A fork that is in the cgroup from its first instruction on, or has joined it; 0 in the child. */
static pid_t fork_into(const struct vt_cgroup *cgroup)
{
	int fd = vt_cgroup_clone_fd(cgroup);
	struct clone_args args = { .flags = fd < 0 ? 0 : CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = fd < 0 ? 0 : (uint64_t)fd };
	struct vt_err err;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	assert_true(pid >= 0);
	if (pid == 0 && vt_cgroup_join(cgroup, &err) < 0)
		_exit(99);
	return pid;
}

/* Runs act in a child that is in the cgroup; its wait status. */
static int run_in(const struct vt_cgroup *cgroup, void (*act)(void))
{
	int status;
	pid_t pid = fork_into(cgroup);

	if (pid == 0) {
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void touch_memory(void)
{
	size_t size = (size_t)64 << 20;
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		_exit(98);
	memset(bytes, 1, size);
}

/* Exits with how many forks worked. */
static void fork_often(void)
{
	int made = 0;

	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		made += pid > 0;
	}
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM); /* the children share the group that run_joined's child leads */
	while (wait(NULL) > 0)
		;
	_exit(made);
}

static void fork_often_in_a_group(void)
{
	if (setpgid(0, 0) < 0)
		_exit(97);
	fork_often();
}

static void burn(void)
{
	int64_t end = vt_clock_now() + 30 * VT_NS_PER_MS;

	while (vt_clock_now() < end)
		;
}

static void test_v1_memory(void **state)
{
	const struct vt_cgroup_site *site = *state;
	struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20 };
	struct vt_cgroup_usage usage;
	struct vt_cgroup cgroup;
	struct vt_err err;
	struct stat st;

	if (!site)
		skip();
	assert_int_equal(vt_cgroup_make(site, &limits, &cgroup, &err), 0);
	assert_int_equal(cgroup.count, 1);
	assert_int_equal(folders_of(site->pids), 0);
	assert_int_equal(vt_cgroup_clone_fd(&cgroup), -1);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.cpu_ns, -1);

	int status = run_in(&cgroup, touch_memory);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_int_equal(usage.oom_kills, 1);
	assert_in_range(usage.memory_peak_bytes, 8 << 20, 16 << 20);

	char path[PATH_MAX];
	memcpy(path, cgroup.paths[0], PATH_MAX);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
	assert_int_equal(cgroup.count, 0);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);

	limits.memory_bytes = 512 << 20;
	assert_int_equal(vt_cgroup_make(site, &limits, &cgroup, &err), 0);
	assert_int_equal(run_in(&cgroup, touch_memory), 0);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
}

static void test_v1_pids_and_cpu(void **state)
{
	const struct vt_cgroup_site *site = *state;
	const struct vt_cgroup_limits limits = { .pids = 4,
						 .cpu_quota_us = 20000,
						 .count_cpu = true };
	struct vt_cgroup_usage usage;
	struct vt_cgroup cgroup;
	struct vt_err err;

	if (!site)
		skip();
	assert_int_equal(vt_cgroup_make(site, &limits, &cgroup, &err), 0);
	assert_int_equal(cgroup.count, strcmp(site->cpu, site->cpuacct) == 0 ? 2 : 3);

	int status = run_in(&cgroup, fork_often_in_a_group);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3); /* and the one that forks */

	/* 20 of each 100 ms: 30 ms of wall time in which at most 20, and a slice more, are spent */
	assert_int_equal(run_in(&cgroup, burn), 0);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_in_range(usage.cpu_ns, 1 * VT_NS_PER_MS, 60 * VT_NS_PER_MS);
	assert_int_equal(usage.memory_bytes, -1);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
	assert_int_equal(folders_of(site->cpu), 0);
}

/* v1 refuses a quota above the parent's; the parent's holds, so that is no failure. */
static void test_v1_quota_of_an_ancestor(void **state)
{
	const struct vt_cgroup_site *site = *state;
	struct vt_cgroup_site below;
	struct vt_cgroup_limits limits = { .cpu_quota_us = 20000 };
	struct vt_cgroup outer, inner;
	struct vt_err err;

	if (!site)
		skip();
	assert_int_equal(vt_cgroup_make(site, &limits, &outer, &err), 0);
	below = *site;
	memcpy(below.cpu, outer.paths[0], PATH_MAX);
	limits.cpu_quota_us = 90000;
	int r = vt_cgroup_make(&below, &limits, &inner, &err);
	if (r == 0)
		r = vt_cgroup_remove(&inner, &err);
	limits.cpu_quota_us = 1; /* below what any cgroup may have */
	int too_small = vt_cgroup_make(&below, &limits, &inner, &err);
	assert_int_equal(vt_cgroup_remove(&outer, &err), 0);
	assert_int_equal(r, 0);
	assert_int_equal(too_small, -EINVAL);
}

static void test_make_leaves_nothing_behind(void **state)
{
	const struct vt_cgroup_site *site = *state;
	const struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20, .pids = 4 };
	struct vt_cgroup_site half;
	struct vt_cgroup cgroup = { .count = 77 };
	struct vt_err err;

	if (!site)
		skip();
	half = *site;
	(void)snprintf(half.pids, sizeof(half.pids), "/nowhere");
	assert_int_equal(vt_cgroup_make(&half, &limits, &cgroup, &err), -ENOENT);
	assert_non_null(strstr(err.what, "/nowhere"));
	assert_int_equal(err.step, VT_STEP_CGROUP);
	assert_int_equal(cgroup.count, 77);
	assert_int_equal(folders_of(site->memory), 0);
	half.pids[0] = '\0';
	assert_int_equal(vt_cgroup_make(&half, &limits, &cgroup, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.what, "pids"));
}

static pid_t park_in(const struct vt_cgroup *cgroup)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork_into(cgroup);
	if (pid == 0) {
		if (write(ready[1], "1", 1) != 1)
			_exit(99);
		pause();
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_remove_waits_and_gives_up(void **state)
{
	const struct vt_cgroup_site *site = *state;
	const struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20, .pids = 4 };
	struct vt_cgroup cgroup;
	struct vt_err err;

	if (!site)
		skip();
	assert_int_equal(vt_cgroup_make(site, &limits, &cgroup, &err), 0);
	pid_t pid = park_in(&cgroup);
	int64_t start = vt_clock_now();
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), -EBUSY);
	/* one second for all of its folders together */
	assert_in_range(vt_clock_now() - start, VT_NS_PER_S, 3 * VT_NS_PER_S / 2);
	assert_int_equal(cgroup.count, site->version == VT_CGROUP_V1 ? 2 : 1);
	end(pid);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
	assert_int_equal(cgroup.count, 0);
}

/* A maker is killed; what it made goes with the next sweep, unless something lives in it. */
static void test_sweep(void **state)
{
	const struct vt_cgroup_site *site = *state;
	const struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20 };
	struct vt_cgroup live, *shared;
	struct vt_err err;
	struct stat st;

	if (!site)
		skip();
	shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	assert_true(shared != MAP_FAILED);

	pid_t maker = fork();
	assert_true(maker >= 0);
	if (maker == 0)
		_exit(vt_cgroup_make(site, &limits, &shared[0], &err) < 0 ||
		      vt_cgroup_make(site, &limits, &shared[1], &err) < 0);
	int status;
	assert_int_equal(waitpid(maker, &status, 0), maker);
	assert_int_equal(status, 0);
	assert_int_equal(vt_cgroup_make(site, &limits, &live, &err), 0);

	/* one of the dead maker's has a process in it */
	char tasks[PATH_MAX];
	if (site->version == VT_CGROUP_V1) {
		(void)vt_cgroup_path(tasks, shared[0].paths[0], "tasks");
		shared[0].joins[0] = open(tasks, O_WRONLY | O_CLOEXEC);
		assert_true(shared[0].joins[0] >= 0);
	} else {
		shared[0].dirs[0] = open(shared[0].paths[0], O_PATH | O_CLOEXEC);
		assert_true(shared[0].dirs[0] >= 0);
	}
	pid_t pid = park_in(&shared[0]);

	assert_int_equal(vt_cgroup_sweep(site), 1);
	assert_int_equal(stat(shared[0].paths[0], &st), 0);
	assert_int_equal(stat(shared[1].paths[0], &st), -1);
	assert_int_equal(stat(live.paths[0], &st), 0);
	end(pid);
	assert_int_equal(vt_cgroup_sweep(site), 1);
	assert_int_equal(vt_cgroup_sweep(site), 0);
	assert_int_equal(stat(live.paths[0], &st), 0);
	vt_fd_close(site->version == VT_CGROUP_V1 ? &shared[0].joins[0] : &shared[0].dirs[0]);
	assert_int_equal(vt_cgroup_remove(&live, &err), 0);
	assert_int_equal(munmap(shared, 2 * sizeof(*shared)), 0);
}

/* As an ordinary user nothing may be made in root's cgroups, and the reason says so. */
static void test_find_as_an_ordinary_user(void **state)
{
	struct vt_cgroup_site site;
	int status;

	if (geteuid() != 0)
		SKIP("only root can become another user");
	if (!*state)
		skip();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		vt_cgroup_find(&site);
		_exit(site.version != VT_CGROUP_NONE || !strstr(site.why, "Permission denied"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Where all controllers are v2's: make test-vm has such machines. */
static void test_v2_limits(void **state)
{
	struct vt_cgroup_limits limits = { .memory_bytes = 16 << 20, .pids = 4, .count_cpu = true };
	struct vt_cgroup_site site;
	struct vt_cgroup_usage usage;
	struct vt_cgroup cgroup;
	struct vt_err err;

	(void)state;
	vt_cgroup_find(&site);
	if (site.version != VT_CGROUP_V2 || !site.memory[0] || !site.pids[0])
		SKIP("no cgroup v2 with memory and pids here: %s", site.why);
	assert_int_equal(vt_cgroup_make(&site, &limits, &cgroup, &err), 0);
	assert_int_equal(cgroup.count, 1);

	int status = run_in(&cgroup, fork_often_in_a_group);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3); /* and the one that forks */
	status = run_in(&cgroup, touch_memory);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	/* a cgroup that is killed as one counts who was chosen, and then each of its processes */
	assert_in_range(usage.oom_kills, 1, 2);
	assert_true(usage.cpu_ns > 0);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);

	limits.memory_bytes = 512 << 20;
	assert_int_equal(vt_cgroup_make(&site, &limits, &cgroup, &err), 0);
	assert_int_equal(run_in(&cgroup, touch_memory), 0);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
}

/* A v2 tree without controllers still counts CPU time, and clone goes straight in. */
static void test_v2_clone(void **state)
{
	const struct vt_cgroup_limits limits = { .count_cpu = true };
	struct vt_cgroup_site site;
	struct vt_cgroup_usage usage;
	struct vt_cgroup cgroup;
	struct vt_err err;
	int status;

	(void)state;
	vt_cgroup_site_init(&site);
	site.version = VT_CGROUP_V2;
	(void)snprintf(site.cpuacct, sizeof(site.cpuacct), "/sys/fs/cgroup/unified");
	if (access("/sys/fs/cgroup/unified/cgroup.procs", W_OK) < 0)
		SKIP("no v2 tree that may be written");
	assert_int_equal(vt_cgroup_make(&site, &limits, &cgroup, &err), 0);
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)vt_cgroup_clone_fd(&cgroup) };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid == 0) {
		char text[VT_CGROUP_TEXT_MAX], list[NAME_MAX + 1], path[PATH_MAX];

		burn();
		_exit(vt_cgroup_join(&cgroup, &err) < 0 ||
		      vt_file_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0 ||
		      !vt_cgroup_own(text, "", list, path) ||
		      strcmp(strrchr(path, '/'), strrchr(cgroup.paths[0], '/')) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_in_range(usage.cpu_ns, 1 * VT_NS_PER_MS, VT_NS_PER_S);
	assert_int_equal(usage.memory_bytes, -1);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
}

#define ON_A_SITE(test) cmocka_unit_test_setup_teardown(test, make_site, drop_site)
#define ON_V1(test)     cmocka_unit_test_setup_teardown(test, make_v1_site, drop_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_V1(test_v1_memory),
		ON_V1(test_v1_pids_and_cpu),
		ON_V1(test_v1_quota_of_an_ancestor),
		ON_V1(test_make_leaves_nothing_behind),
		ON_A_SITE(test_remove_waits_and_gives_up),
		ON_A_SITE(test_sweep),
		ON_A_SITE(test_find_as_an_ordinary_user),
		cmocka_unit_test(test_v2_limits),
		cmocka_unit_test(test_v2_clone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
