/* SPDX-License-Identifier: Apache-2.0 */
#include "base/skip_test.h"
#include "host/host.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	assert_int_equal(closedir(dir), 0);
	return count;
}

static volatile sig_atomic_t child_signals;

static void on_child(int signal)
{
	(void)signal;
	child_signals++;
}

static void probe(struct vt_host *ret_host)
{
	struct vt_err err;

	assert_int_equal(vt_host_probe(ret_host, &err), 0);
}

/* No child, no descriptor, no signal, no changed mask: the caller is somebody's program. */
static void test_leaves_nothing(void **state)
{
	static struct vt_host host;
	unsigned fds = count_fds();
	struct sigaction action = { .sa_handler = on_child }, old_action;
	sigset_t before, after;
	struct vt_path seen;

	(void)state;
	assert_int_equal(sigaction(SIGCHLD, &action, &old_action), 0);
	memset(&before, 0, sizeof(before)); /* the kernel fills only the part that it knows */
	memset(&after, 0, sizeof(after));
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	probe(&host);
	assert_int_equal(child_signals, 0);
	assert_int_equal(host.look(&host, "/tmp", &seen), 0);
	vt_host_done(&host);
	vt_host_done(&host);
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(sigaction(SIGCHLD, &old_action, NULL), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count_fds(), fds);
}

/* A caller that ignores SIGCHLD has its children reaped by the kernel; the probe still works. */
static void test_ignored_sigchld(void **state)
{
	static struct vt_host plain, ignoring;
	struct sigaction action = { .sa_handler = SIG_IGN }, old_action;

	(void)state;
	probe(&plain);
	assert_int_equal(sigaction(SIGCHLD, &action, &old_action), 0);
	probe(&ignoring);
	assert_int_equal(sigaction(SIGCHLD, &old_action, NULL), 0);
	assert_int_equal(ignoring.userns.err, plain.userns.err);
	vt_host_done(&plain);
	vt_host_done(&ignoring);
}

/* Of all filters around a process one can have a listener: its child sees that it cannot. */
static void test_listeners(void **state)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = { 1, &pass };
	static struct vt_host host;
	int status;

	(void)state;
	probe(&host);
	assert_int_equal(host.notify.err, 0);
	vt_host_done(&host);
	for (unsigned flag = 0; flag <= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	     flag += SECCOMP_FILTER_FLAG_NEW_LISTENER) {
		pid_t pid = fork();

		if (pid == 0) {
			struct vt_err err;

			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, &filter) < 0 ||
			    vt_host_probe(&host, &err) < 0)
				_exit(1);
			_exit(host.notify.err == (flag ? EBUSY : 0) ? 0 : 2);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void test_facts(void **state)
{
	static struct vt_host host;

	(void)state;
	probe(&host);
	assert_int_equal(host.uid, geteuid());
	assert_int_equal(host.gid, getegid());
	assert_in_range(host.cpus, 1, 8192);
	assert_true(host.landlock_abi > 0 || host.landlock_err > 0);
	if (!host.privileged)
		assert_int_equal(host.id_count, 0);
	if (host.id_count > 0)
		assert_true(host.id_base >= 1000);
	if (geteuid() != 0)
		assert_false(host.privileged);
	vt_host_done(&host);
}

static void test_affinity(void **state)
{
	static struct vt_host host;
	cpu_set_t old, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &old))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	probe(&host);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
	assert_int_equal(host.cpus, 1);
	vt_host_done(&host);
}

static void test_look(void **state)
{
	static struct vt_host host;
	char dir[] = "/tmp/vitro-host-XXXXXX", target[64], link[64], text[64];
	struct vt_path seen, through_link;
	struct stat st;

	(void)state;
	probe(&host);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(target, sizeof(target), "%s/file", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	FILE *file = fopen(target, "w");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(symlink("file", link), 0);

	assert_int_equal(host.look(&host, target, &seen), 0);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(seen.dev, st.st_dev);
	assert_int_equal(seen.ino, st.st_ino);
	assert_int_equal(seen.uid, geteuid());
	assert_true(S_ISREG(seen.mode));
	assert_int_equal(host.look(&host, link, &through_link), 0);
	assert_int_equal(through_link.ino, seen.ino);
	assert_int_equal(through_link.idmap, seen.idmap);
	if (!host.privileged)
		assert_false(seen.idmap);

	assert_int_equal(host.step(&host, link, &through_link, text, sizeof(text)), 0);
	assert_true(through_link.link && S_ISLNK(through_link.mode));
	assert_string_equal(text, "file");
	assert_int_equal(host.step(&host, link, &through_link, text, 4), -ENAMETOOLONG);
	assert_int_equal(host.step(&host, target, &through_link, text, sizeof(text)), 0);
	assert_int_equal(through_link.ino, seen.ino);
	assert_false(through_link.link);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(target), 0);
	assert_int_equal(host.look(&host, target, &seen), -ENOENT);
	assert_int_equal(host.step(&host, link, &seen, text, sizeof(text)), -ENOENT);
	assert_int_equal(rmdir(dir), 0);
	vt_host_done(&host);
}

/* proc and devices never take an id map; the runtime paths are not even asked. */
static void test_idmap(void **state)
{
	static struct vt_host host;
	struct vt_path seen;

	(void)state;
	probe(&host);
	assert_int_equal(host.look(&host, "/proc", &seen), 0);
	assert_false(seen.idmap);
	assert_int_equal(host.look(&host, "/dev/null", &seen), 0);
	assert_false(seen.idmap);
	assert_int_equal(host.look(&host, "/usr", &seen), 0);
	assert_false(seen.idmap);
	vt_host_done(&host);
}

/* What a shortage kept from being tried is tried the next time. */
static void test_idmap_shortage(void **state)
{
	static struct vt_host host;
	struct rlimit old, few = { 0 };
	char dir[] = "/tmp/vitro-host-XXXXXX";
	struct vt_path seen;

	(void)state;
	probe(&host);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(host.look(&host, dir, &seen), 0);
	bool able = seen.idmap;

	vt_host_done(&host);
	if (!able) {
		assert_int_equal(rmdir(dir), 0);
		SKIP("/tmp takes no id map of this user's");
	}
	probe(&host);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = host.look(&host, dir, &seen);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, 0);
	assert_false(seen.idmap);
	assert_int_equal(vt_host_trouble(&host), EMFILE);
	assert_int_equal(host.look(&host, dir, &seen), 0);
	assert_true(seen.idmap);
	assert_int_equal(vt_host_trouble(&host), 0);
	assert_int_equal(rmdir(dir), 0);
	vt_host_done(&host);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		_exit(77);
}

/* Looks in a mount namespace of its own. Exits with the number of the check that failed. */
static void look_at_submounts(const char *dir)
{
	static struct vt_host host;
	static const struct {
		const char *path;
		bool idmap;
	} wanted[] = {
		{ "plain", true },         { "around", false }, { "file", true },
		{ "around/inside", true }, { ".", false },      { "plain", true },
	};
	struct vt_path seen;
	struct vt_err err;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("vitro", dir, "tmpfs", 0, NULL) < 0 || chdir(dir) < 0 ||
	    mkdir("plain", 0755) < 0 || mkdir("around", 0755) < 0 ||
	    mkdir("around/inside", 0755) < 0 || mkdir("around/proc", 0755) < 0 ||
	    mount("proc", "around/proc", "proc", 0, NULL) < 0)
		_exit(77);
	write_file("file", "");
	if (vt_host_probe(&host, &err) < 0)
		_exit(76);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (host.look(&host, wanted[i].path, &seen) < 0 || seen.idmap != wanted[i].idmap)
			_exit(i == 0 ? 77 : (int)i); /* a tmpfs takes a map since Linux 6.3 */
	vt_host_done(&host);
	_exit(0);
}

/* A folder is mapped with all that is mounted in it, and proc takes no map. */
static void test_submounts(void **state)
{
	static struct vt_host host;
	char dir[] = "/tmp/vitro-host-XXXXXX";
	int status;

	(void)state;
	probe(&host);
	bool able = host.privileged && host.id_count > 0;

	vt_host_done(&host);
	if (!able)
		SKIP("only root with ids to give away can do this");
	assert_non_null(mkdtemp(dir));
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		look_at_submounts(dir);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(dir), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("nothing can be mounted here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Through no link, and only absolute paths. */
static void test_step(void **state)
{
	static struct vt_host host;
	char dir[] = "/tmp/vitro-host-XXXXXX", path[4096], target[4096];
	struct vt_path seen;

	(void)state;
	probe(&host);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/usr", path), 0);
	assert_int_equal(host.step(&host, path, &seen, target, sizeof(target)), 0);
	assert_string_equal(target, "/usr");
	assert_int_equal(seen.uid, geteuid());
	(void)snprintf(path, sizeof(path), "%s/link/bin", dir);
	int r = host.step(&host, path, &seen, target, sizeof(target));

	assert_true(r == -ELOOP || r == -ENOTDIR);
	(void)snprintf(path, sizeof(path), "%s/no/such", dir);
	assert_int_equal(host.step(&host, path, &seen, target, sizeof(target)), -ENOENT);
	assert_int_equal(host.step(&host, "/", &seen, target, sizeof(target)), 0);
	assert_true(S_ISDIR(seen.mode));
	assert_int_equal(host.step(&host, "/usr", &seen, target, sizeof(target)), 0);
	assert_int_equal(host.step(&host, "relative", &seen, target, sizeof(target)), -EINVAL);
	(void)snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	vt_host_done(&host);
}

static void count_name(void *arg, const char *name)
{
	unsigned *count = arg;

	assert_string_not_equal(name, ".");
	assert_string_not_equal(name, "..");
	++*count;
}

static void test_list(void **state)
{
	static struct vt_host host;
	char dir[] = "/tmp/vitro-host-XXXXXX", path[64];
	unsigned count = 0;

	(void)state;
	probe(&host);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/one", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(host.list(&host, dir, count_name, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(host.list(&host, dir, count_name, &count), -ENOENT);
	assert_int_equal(count, 1);
	vt_host_done(&host);
}

/* In a user namespace of our own the sysctl is ours: there, none more can be made. */
static void test_no_userns(void **state)
{
	static struct vt_host host;

	(void)state;
	probe(&host);
	int works = host.userns.err == 0;

	vt_host_done(&host);
	if (!works)
		SKIP("there are no user namespaces here");

	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char map[32];
		struct vt_err err;

		(void)snprintf(map, sizeof(map), "0 %u 1\n", geteuid());
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		write_file("/proc/self/uid_map", map);
		write_file("/proc/sys/user/max_user_namespaces", "0\n");
		if (vt_host_probe(&host, &err) < 0)
			_exit(1);
		_exit(host.userns.err == ENOSPC && host.id_count == 0 ? 0 : 2);
	}
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("no user namespace can be made here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_leaves_nothing), cmocka_unit_test(test_ignored_sigchld),
		cmocka_unit_test(test_facts),          cmocka_unit_test(test_listeners),
		cmocka_unit_test(test_affinity),       cmocka_unit_test(test_look),
		cmocka_unit_test(test_idmap),          cmocka_unit_test(test_submounts),
		cmocka_unit_test(test_step),           cmocka_unit_test(test_list),
		cmocka_unit_test(test_idmap_shortage), cmocka_unit_test(test_no_userns),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
