/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums are tested exactly on invented procs of plain files; what the kernel's proc says, in a pid
 * namespace with a few processes whose memory is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/skip_test.h"
#include "watch/glance.h"
#include "watch/usage.h"

enum { KB = 1024, MB = 1024 * 1024 };

static const struct vt_usage_limits cpu_only = { .memory_bytes = -1, .cpu_ns = -1, .cpus = 1 };

static int make_top(void **state)
{
	char *top = strdup("/tmp/vitro-usage-test-XXXXXX");

	*state = top;
	return top && mkdtemp(top) ? 0 : -1;
}

static int drop_top(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	free(*state);
	return system(command);
}

/* Writes a file of an invented proc: "2/statm". */
static void put(const char *top, const char *path, const char *text)
{
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[128];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		assert_true(mkdirat(dir, part, 0755) == 0 || errno == EEXIST);
	}
	AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* utime, stime, cutime and cstime are 1, 20, 300 and 4000 ticks. */
#define STAT_AFTER_NAME                                                       \
	" S 1 2 2 0 -1 4194560 100 0 0 0 1 20 300 4000 20 0 1 0 900 1000 50 " \
	"18446744073709551615\n"

static void put_process(const char *top, const char *pid, const char *name, const char *statm)
{
	char path[64], text[512];

	(void)snprintf(path, sizeof(path), "%s/stat", pid);
	(void)snprintf(text, sizeof(text), "%s (%s)" STAT_AFTER_NAME, pid, name);
	put(top, path, text);
	(void)snprintf(path, sizeof(path), "%s/statm", pid);
	put(top, path, statm);
}

static struct vt_usage look(const char *top, int64_t memory_limit)
{
	AUTO_CLOSE int proc = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct vt_usage_limits limits = {
		.memory_bytes = memory_limit, .cpu_ns = -1, .cpus = 1, .inherited = -1
	};
	struct vt_usage usage;

	assert_int_equal(vt_usage_look(proc, -1, &limits, &usage), 0);
	return usage;
}

static int64_t ticks(int64_t count)
{
	return count * (VT_NS_PER_S / sysconf(_SC_CLK_TCK));
}

static int64_t pages(int64_t count)
{
	return count * sysconf(_SC_PAGESIZE);
}

static void test_cheap_sum(void **state)
{
	const char *top = *state;

	put_process(top, "1", "init", "100 77 0 0 0 0 0\n");
	put_process(top, "2", "sh", "100 10 0 0 0 0 0\n");
	put_process(top, "17", "a) (b) S 1 ) 9", "200 20 0 0 0 0 0\n");
	put(top, "self/statm", "1000 1000 0 0 0 0 0\n");
	put(top, "meminfo", "MemTotal: 1 kB\n");
	put(top, "3/stat", "3 (gone) S"); /* ended while it was read */

	struct vt_usage usage = look(top, -1);
	assert_int_equal(usage.memory_bytes, pages(30));
	assert_int_equal(usage.processes, 3);
	/* of init only what it waited for */
	assert_int_equal(usage.cpu_ns, ticks(2 * 4321 + 4300));
	/* no dear look below the limit: there is nothing to be read for it */
	assert_int_equal(look(top, pages(30)).memory_bytes, pages(30));
}

static const char rollup[] = "55d000-7ff000 ---p 00000000 00:00 0      [rollup]\n"
			     "Rss:               9000 kB\n"
			     "Pss:               8000 kB\n"
			     "Pss_Dirty:         7777 kB\n"
			     "Pss_Anon:          1000 kB\n"
			     "Pss_File:          4000 kB\n"
			     "Pss_Shmem:         3000 kB\n"
			     "Swap:                90 kB\n"
			     "SwapPss:             50 kB\n";

static void test_dear_sum(void **state)
{
	const char *top = *state;

	put_process(top, "2", "sh", "9000 2250 0 0 0 0 0\n");
	put_process(top, "3", "sh", "9000 2250 0 0 0 0 0\n");
	put_process(top, "4", "gone", "9000 2250 0 0 0 0 0\n");
	put(top, "2/smaps_rollup", rollup);
	/* an old kernel, that has one sum only */
	put(top, "3/smaps_rollup", "Rss: 9000 kB\nPss:  700 kB\nSwapPss: 0 kB\n");
	struct vt_usage usage = look(top, 5 * MB);
	assert_int_equal(usage.memory_bytes, (1000 + 50 + 3000 + 700) * KB);
	assert_int_equal(usage.processes, 3);
}

/* Above the limit with shared memory: only what is not tmpfs or an open memfd is counted twice. */
static void test_exact_sum(void **state)
{
	const char *top = *state;

	put_process(top, "2", "sh", "9000 2250 0 0 0 0 0\n");
	put(top, "2/smaps_rollup", rollup);
	put(top, "2/smaps",
	    "7f0000-7f1000 rw-s 00000000 00:01 1026                  /dev/zero (deleted)\n"
	    "Size:                 900 kB\n"
	    "Pss:                  400 kB\n"
	    "Pss_Dirty:            400 kB\n"
	    "VmFlags: rd wr sh mr mw me ms sd\n"
	    "7f1000-7f2000 rw-s 00000000 00:2a 7                     /tmp/file with /dev/zero\n"
	    "Pss:                 1000 kB\n"
	    "7f2000-7f3000 rw-s 00000000 00:01 12                    /memfd:x y (deleted)\n"
	    "Pss:                   30 kB\n"
	    "7f3000-7f4000 rw-p 00000000 00:00 0 \n"
	    "Pss:                 5000 kB\n"
	    "a13000-a14000 rw-s 00000000 00:01 13                    [anon_shmem:/tmp/x]\n"
	    "Pss:                    2 kB\n"
	    "a13000-a14000 rw-s 00000000 00:01 32769                 /SYSV00000000 (deleted)\n"
	    "Pss:                    1 kB\n");
	assert_int_equal(look(top, 2 * MB).memory_bytes, (1000 + 50 + 433) * KB);
	/* where the sum that may count twice is below the limit, it is enough */
	assert_int_equal(look(top, 4050 * KB).memory_bytes, 4050 * KB);
	/* and where the mappings cannot be read, it stands */
	put(top, "3/smaps", "");
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(unlinkat(dir, "2/smaps", 0), 0);
	assert_int_equal(look(top, 2 * MB).memory_bytes, 4050 * KB);
}

/* A process whose first thread has ended shows no memory but through its other threads. */
static void test_first_thread_gone(void **state)
{
	const char *top = *state;

	put_process(top, "2", "sh", "0 0 0 0 0 0 0\n");
	put(top, "2/task/2/statm", "0 0 0 0 0 0 0\n");
	assert_int_equal(look(top, -1).memory_bytes, 0); /* a zombie */
	/* nor through those that ended, and stay for their tracer */
	for (int thread = 10; thread < 40; thread++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "2/task/%d/statm", thread);
		put(top, path, "0 0 0 0 0 0 0\n");
	}
	assert_int_equal(look(top, -1).memory_bytes, 0);
	put(top, "2/task/9/statm", "9000 2250 0 0 0 0 0\n");
	put(top, "2/task/9/smaps_rollup", rollup);
	assert_int_equal(look(top, -1).memory_bytes, pages(2250));
	assert_int_equal(look(top, 5 * MB).memory_bytes, 4050 * KB);
}

static void test_nonsense(void **state)
{
	const char *top = *state;

	put(top, "2/stat", "no end of a name (");
	put(top, "2/statm", "");
	put(top, "3/stat", "3 (x) S 1");
	put(top, "3/statm", "5 -7 x");
	put(top, "4/stat", ")");
	put(top, "4/statm", "9223372036854775807 9223372036854775807 99999999999999999999");
	put(top, "4/smaps_rollup", "Pss_Anon: 99999999999999999999 kB\nPss_Anon: 1 kB\nPss");
	put(top, "5/stat",
	    "5 (x) S 1 2 2 0 -1 0 0 0 0 0 9223372036854775807 9223372036854775807 -3");
	put(top, "5/statm", "1 1");
	put(top, "5/smaps_rollup", "Pss_Shmem: 5 kB\n");
	put(top, "5/smaps", "\n\nPss: 4 kB\nzz\n/dev/zero\n00:01 5 /dev/zero");

	struct vt_usage usage = look(top, -1);
	assert_int_equal(usage.memory_bytes, INT64_MAX);
	assert_int_equal(usage.cpu_ns, INT64_MAX);
	assert_int_equal(usage.processes, 4);
	assert_int_equal(look(top, 0).memory_bytes, INT64_MAX);
}

/* smaps_rollup of a program that may be run and not read is closed; statm is not. */
static void test_unreadable(void **state)
{
	const char *top = *state;
	char path[128];
	int status;

	put_process(top, "2", "sh", "9000 2250 0 0 0 0 0\n");
	put(top, "2/smaps_rollup", rollup);
	(void)snprintf(path, sizeof(path), "%s/2/smaps_rollup", top);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(chmod(top, 0755), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(look(top, 5 * MB).memory_bytes != pages(2250));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What an ordinary user sees of an invented proc. */
static int look_as_user(const char *top, int64_t memory_limit)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		AUTO_CLOSE int proc = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct vt_usage_limits limits = cpu_only;
		struct vt_usage usage;

		limits.memory_bytes = memory_limit;
		_exit(-vt_usage_look(proc, -1, &limits, &usage));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void put_mode(const char *top, const char *path, mode_t mode)
{
	char whole[128];

	(void)snprintf(whole, sizeof(whole), "%s/%s", top, path);
	assert_int_equal(chmod(whole, mode), 0);
}

/* A process that is not dumpable: its descriptors are closed to us, what kind they are is not. */
static void test_hidden_descriptors(void **state)
{
	const char *top = *state;
	AUTO_CLOSE int memfd = memfd_create("x", MFD_CLOEXEC);
	char path[64], memfds[256] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", memfd);
	AUTO_CLOSE int info = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(info, memfds, sizeof(memfds) - 1) > 0);
	put_process(top, "2", "sh", "100 10 0 0 0 0 0\n");
	put(top, "2/fd/0", "");
	put(top, "2/fdinfo/0", "pos:\t0\nflags:\t0100002\nmnt_id:\t987654\nino:\t1\n");
	put_mode(top, "", 0755);
	put_mode(top, "2/fd", 0);
	assert_int_equal(look_as_user(top, MB), 0);
	put(top, "2/fdinfo/1", memfds);
	assert_int_equal(look_as_user(top, MB), -EACCES);
	assert_int_equal(look_as_user(top, -1), 0); /* memory is not watched */
	put(top, "2/statm", "0 0 0 0 0 0 0\n");
	assert_int_equal(look_as_user(top, MB), 0); /* a zombie, which has none */
	put(top, "2/statm", "100 10 0 0 0 0 0\n");
	put(top, "2/fdinfo/1", "pos:\t0\n");
	assert_int_equal(look_as_user(top, MB), 0);
	put_mode(top, "2/fdinfo", 0);
	assert_int_equal(look_as_user(top, MB), -EACCES);
	put_mode(top, "2/fdinfo", 0755);
	put_mode(top, "2/fd", 0755);
}

static void test_too_many(void **state)
{
	const char *top = *state;
	AUTO_CLOSE int proc = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct vt_usage usage = { .processes = 77 };
	char name[16];

	for (int pid = 1; pid <= 4097; pid++) {
		(void)snprintf(name, sizeof(name), "%d", pid);
		assert_int_equal(mkdirat(proc, name, 0755), 0);
	}
	assert_int_equal(vt_usage_look(proc, -1, &cpu_only, &usage), 0);
	assert_int_equal(usage.processes, 4096);
	assert_int_equal(mkdirat(proc, "5000", 0755), 0);
	usage.processes = 77;
	assert_int_equal(vt_usage_look(proc, -1, &cpu_only, &usage), -E2BIG);
	assert_int_equal(usage.processes, 77);
}

static void test_no_proc(void **state)
{
	struct vt_usage usage = { .processes = 77 };

	(void)state;
	assert_int_equal(vt_usage_look(-1, -1, &cpu_only, &usage), -EBADF);
	assert_int_equal(usage.processes, 77);
}

static void test_next_look(void **state)
{
	const int64_t ms = VT_NS_PER_MS;
	struct vt_usage usage = { 0 };
	struct vt_usage_limits limits = cpu_only;

	(void)state;
	assert_int_equal(vt_usage_next_look(&usage, &limits), 50 * ms);
	limits.cpu_ns = 30 * ms;
	assert_int_equal(vt_usage_next_look(&usage, &limits), 30 * ms);
	limits.cpus = 2;
	assert_int_equal(vt_usage_next_look(&usage, &limits), 15 * ms);
	usage.cpu_ns = 27 * ms;
	assert_int_equal(vt_usage_next_look(&usage, &limits), 2 * ms);
	usage.cpu_ns = INT64_MAX;
	assert_int_equal(vt_usage_next_look(&usage, &limits), 2 * ms);

	/* never later than the memory that is left can be filled, sooner the less there is */
	int64_t before = 51 * ms;
	limits = (struct vt_usage_limits){
		.memory_bytes = 400 * MB, .cpu_ns = -1, .cpus = 1, .touch_us = 8000
	};
	for (int64_t used = 0; used <= 500; used += 100) {
		usage = (struct vt_usage){ .memory_bytes = used * MB };
		int64_t next = vt_usage_next_look(&usage, &limits);

		assert_in_range(next, 2 * ms, 50 * ms);
		assert_true(next < before || next == 2 * ms || next == 50 * ms);
		before = next;
	}
	assert_int_equal(before, 2 * ms);
	limits.cpus = 0;
	assert_in_range(vt_usage_next_look(&usage, &limits), 2 * ms, 50 * ms);
}

/* Hardly later than what is left can be touched, and never much later. */
static void test_next_glance(void **state)
{
	const struct vt_usage_limits limits = { .cpus = 2, .touch_us = 20000 };
	const int64_t ms = VT_NS_PER_MS;

	(void)state;
	assert_int_equal(vt_usage_next_glance(40000000, &limits), ms + ms / 4);
	assert_int_equal(vt_usage_next_glance(400000000, &limits), 12 * ms);
	assert_int_equal(vt_usage_next_glance(0, &limits), ms / 2);
	assert_int_equal(vt_usage_next_glance(-1, &limits), ms / 2);
}

/* The kernel's own proc. The processes below stay until their namespace's init ends. */

static char *fill(void *at, size_t size)
{
	if (at == MAP_FAILED)
		_exit(90);
	memset(at, 1, size);
	return at;
}

static char *grab(size_t size, int flags, int fd)
{
	return fill(mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0), size);
}

static void *stay(void *arg)
{
	while (pause() < 0)
		;
	return arg;
}

static void twin(void)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(95);
	if (pid == 0)
		(void)stay(NULL);
}

/* More than the tick of 10 ms that is the least `stat` shows. */
static void spend(void)
{
	while (clock() < 3 * CLOCKS_PER_SEC / 100)
		;
}

static void hold_anonymous(const char *root)
{
	(void)root;
	(void)grab(24 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	spend();
	twin(); /* two processes that share the pages */
}

static void hold_shared(const char *root)
{
	(void)root;
	(void)grab(6 * MB, MAP_SHARED | MAP_ANONYMOUS, -1);
}

/* Written and never mapped, and open twice. */
static void fill_memfd(void)
{
	static char bytes[MB];
	int fd = memfd_create("x", 0);

	for (int i = 0; i < 10; i++)
		if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
			_exit(91);
	if (dup(fd) < 0)
		_exit(92);
}

static void hold_memfd(const char *root)
{
	(void)root;
	fill_memfd();
	twin();
}

static void hold_mapped_file(const char *root)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/file", root);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 12 * MB) < 0)
		_exit(93);
	(void)grab(12 * MB, MAP_SHARED, fd);
}

static void hold_in_a_thread(const char *root)
{
	pthread_t thread;

	(void)root;
	(void)grab(16 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		_exit(94);
	(void)syscall(SYS_exit, 0); /* this thread alone */
}

static void start(void (*hold)(const char *), const char *root)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		_exit(80);
	pid_t pid = fork();
	if (pid < 0)
		_exit(81);
	if (pid == 0) {
		(void)close(ready[0]);
		hold(root);
		if (write(ready[1], "1", 1) != 1)
			_exit(83);
		(void)stay(NULL);
	}
	(void)close(ready[1]);
	/* One that ends its first thread never comes to say so. */
	if (hold != hold_in_a_thread && read(ready[0], &byte, 1) != 1)
		_exit(82);
	(void)close(ready[0]);
}

static bool near(int64_t bytes, int64_t expected)
{
	/* besides, each process has some pages of its own: stacks, libc's data */
	return bytes >= expected && bytes < expected + 5 * MB;
}

/* Whether the last process that was started looks like a zombie by now. */
static bool first_thread_is_gone(int proc)
{
	AUTO_CLOSE int fd = -1;
	char text[8] = "";

	for (int tries = 0; tries < 500; tries++) {
		vt_fd_close(&fd);
		fd = openat(proc, "8/statm", O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			return false;
		if (strncmp(text, "0 ", 2) == 0)
			return true;
		(void)usleep(10000);
	}
	return false;
}

static void hold_some_shared(const char *root)
{
	(void)root;
	(void)grab(80 * MB, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static bool is_certain(int proc, int root, int64_t limit, int64_t inherited)
{
	const struct vt_usage_limits limits = {
		.memory_bytes = limit, .cpu_ns = -1, .cpus = 1, .inherited = inherited
	};
	struct vt_usage usage;

	return vt_usage_look(proc, root, &limits, &usage) == 0 && usage.certain &&
	       usage.memory_bytes > limit;
}

/* What those hold that are there by now, 24 MB of it one of them alone, beside tmpfs and memfd. */
static int watch_closely(int proc, int root, const char *root_path)
{
	const struct vt_usage_limits limits = { .memory_bytes = 0 };
	struct vt_glance glance;
	int64_t grown;
	char path[160];

	if (!is_certain(proc, root, 40 * MB, 0) || is_certain(proc, root, 60 * MB, 0))
		return 20;
	/* As it may be a zygote's, or is not known yet. */
	if (is_certain(proc, root, 40 * MB, 20 * MB) || is_certain(proc, root, 0, -1))
		return 21;

	vt_glance_init(&glance, proc, root, 0);
	if (vt_glance(&glance, &grown) != -EAGAIN)
		return 22;
	vt_glance_prepare(&glance);
	if (vt_glance(&glance, &grown) != 0 || grown != 0 || !vt_glance_is_idle(&glance))
		return 23;
	(void)snprintf(path, sizeof(path), "%s/more", root_path);
	AUTO_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || posix_fallocate(file, 0, 4 * MB) != 0)
		return 24;
	if (vt_glance(&glance, &grown) != 0 || grown < 4 * MB || vt_glance_is_idle(&glance))
		return 25;
	start(hold_some_shared, NULL);
	if (vt_glance(&glance, &grown) != -EAGAIN)
		return 26;
	vt_glance_prepare(&glance);
	if (vt_glance(&glance, &grown) != 0 || grown != 0)
		return 27;
	vt_glance_done(&glance);
	/* Shared memory that no file has is told from what others map, by the list of mappings. */
	if (!is_certain(proc, root, 70 * MB, 0) || is_certain(proc, root, 130 * MB, 0))
		return 28;

	vt_usage_kill(proc, &limits);
	for (int i = 0; waitpid(-1, NULL, WNOHANG) >= 0; i++) {
		if (i == 1000)
			return 29;
		(void)usleep(10000);
	}
	return 0;
}

/* Runs as pid 1; ends with 0, 77 where no proc can be had, or the number of the check that fails.
 */
static int watch_holders(const char *top)
{
	char proc_path[128], root_path[128];
	struct vt_usage_limits limits = {
		.memory_bytes = 0, .cpu_ns = -1, .cpus = 1, .inherited = -1
	};
	struct vt_usage usage;

	(void)snprintf(proc_path, sizeof(proc_path), "%s/proc", top);
	(void)snprintf(root_path, sizeof(root_path), "%s/root", top);
	if (mkdir(proc_path, 0755) < 0 || mkdir(root_path, 0755) < 0)
		return 70;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", proc_path, "proc", 0, NULL) < 0 ||
	    mount("tmpfs", root_path, "tmpfs", 0, "size=32m") < 0)
		return 77;
	int proc = open(proc_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (vt_usage_look(proc, root, &limits, &usage) < 0 || usage.processes != 0 ||
	    usage.memory_bytes != 0)
		return 1;
	start(hold_anonymous, NULL);
	limits.memory_bytes = -1;
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || usage.processes != 2 ||
	    usage.memory_bytes < 48 * MB)
		return 2;
	limits.memory_bytes = 0;
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || !near(usage.memory_bytes, 24 * MB))
		return 3;
	start(hold_shared, NULL);
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || !near(usage.memory_bytes, 30 * MB))
		return 4;
	start(hold_memfd, NULL);
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || !near(usage.memory_bytes, 40 * MB))
		return 5;
	start(hold_mapped_file, root_path);
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || !near(usage.memory_bytes, 52 * MB))
		return 6;
	start(hold_in_a_thread, NULL);
	if (!first_thread_is_gone(proc))
		return 7;
	if (vt_usage_look(proc, root, &limits, &usage) < 0 || !near(usage.memory_bytes, 68 * MB))
		return 9;
	if (usage.processes != 7 || usage.cpu_ns == 0)
		return 8;
	return watch_closely(proc, root, root_path);
}

static void write_to(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(77);
}

static void enter_namespaces(void)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	if (unshare((uid ? CLONE_NEWUSER : 0) | CLONE_NEWPID | CLONE_NEWNS) < 0)
		_exit(77);
	if (uid == 0)
		return;
	write_to("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	write_to("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	write_to("/proc/self/gid_map", map);
}

static void test_real_processes(void **state)
{
	int status;
	pid_t outer = fork();

	assert_true(outer >= 0);
	if (outer == 0) {
		enter_namespaces();
		pid_t init = fork();

		if (init == 0)
			_exit(watch_holders(*state));
		if (init < 0 || waitpid(init, &status, 0) != init || !WIFEXITED(status))
			_exit(71);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("no namespaces with a proc of their own here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define ON_A_PROC(test) cmocka_unit_test_setup_teardown(test, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_PROC(test_cheap_sum),          ON_A_PROC(test_dear_sum),
		ON_A_PROC(test_exact_sum),          ON_A_PROC(test_first_thread_gone),
		ON_A_PROC(test_nonsense),           ON_A_PROC(test_unreadable),
		ON_A_PROC(test_hidden_descriptors), ON_A_PROC(test_too_many),
		cmocka_unit_test(test_no_proc),     cmocka_unit_test(test_next_look),
		cmocka_unit_test(test_next_glance), ON_A_PROC(test_real_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
