/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/skip_test.h"
#include "watch/audit.h"

static char folder[64], path[96];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/audit-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	return 0;
}

static int remove_folder(void **state)
{
	char other[128];

	(void)state;
	(void)unlink(path); /* some tests have none */
	snprintf(other, sizeof(other), "%s.1", path);
	(void)unlink(other); /* the same */
	return rmdir(folder);
}

static void open_log(struct vt_audit_log *log)
{
	struct vt_err err;

	if (vt_audit_open(log, path, &err) < 0)
		fail_msg("%s", err.what);
}

static void append(const char *json)
{
	struct vt_audit_log log;
	struct vt_err err;

	open_log(&log);
	if (vt_audit_append(&log, json, strlen(json), &err) < 0)
		fail_msg("%s", err.what);
	vt_audit_done(&log);
}

static void put(const char *bytes, size_t len)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
}

static struct vt_chain verify(void)
{
	struct vt_chain chain;
	struct vt_err err;

	if (vt_audit_verify(path, NULL, &chain, &err) < 0)
		fail_msg("%s", err.what);
	return chain;
}

static void expect(enum vt_chain_fault fault, uint64_t lines, uint64_t linked, uint64_t gap_lines)
{
	struct vt_chain chain = verify();

	if (chain.fault != fault)
		fail_msg("line %d %s", (int)chain.fault_line, vt_chain_meaning(chain.fault));
	assert_int_equal(chain.lines, lines);
	assert_int_equal(chain.linked, linked);
	assert_int_equal(chain.gap_lines, gap_lines);
}

static off_t size_of_log(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void test_append(void **state)
{
	struct stat st;

	(void)state;
	append("{\"a\": 1}\n");
	append("{\"a\": 2}");
	expect(VT_CHAIN_WHOLE, 2, 2, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Whatever a crash leaves of a line, or behind it: the next append tells of it and goes on. */
static void test_torn(void **state)
{
	(void)state;
	append("{\"a\": 1}");
	off_t one = size_of_log();

	append("{\"a\": 2}");
	off_t two = size_of_log();

	for (off_t cut = one + 1; cut < two - 1; cut++) {
		assert_int_equal(truncate(path, cut), 0);
		expect(VT_CHAIN_TORN, 2, 1, 0);
		append("{\"a\": 3}");
		/* The first, what is left of the second, what tells of that, and the new one. */
		expect(VT_CHAIN_WHOLE, 4, 3, 1);
		assert_int_equal(truncate(path, one), 0);
		append("{\"a\": 2}");
	}
	/* All but its newline: nothing is lost. */
	assert_int_equal(truncate(path, two - 1), 0);
	expect(VT_CHAIN_WHOLE, 2, 2, 0);
	append("{\"a\": 3}");
	expect(VT_CHAIN_WHOLE, 3, 3, 0);
}

static void test_torn_more_than_once(void **state)
{
	static const char zeros[100000];

	(void)state;
	append("{\"a\": 1}");
	put("{\"a\": 2", 7);
	put("\n{\"time\": \"2026", 15); /* a writer that died while it told of the first */
	expect(VT_CHAIN_FOREIGN, 3, 1, 0);
	append("{\"a\": 3}");
	expect(VT_CHAIN_WHOLE, 5, 3, 2);
	put(zeros, sizeof(zeros)); /* as a file system leaves it after a power loss */
	expect(VT_CHAIN_TORN, 6, 3, 2);
	append("{\"a\": 4}");
	expect(VT_CHAIN_WHOLE, 8, 5, 3);
}

static void test_torn_first_line(void **state)
{
	(void)state;
	put("{\"a\": 1, \"pre", 13);
	expect(VT_CHAIN_TORN, 1, 0, 0);
	append("{\"a\": 2}");
	expect(VT_CHAIN_WHOLE, 2, 1, 0);
	assert_int_equal(verify().unlinked, 1);
}

static void test_old_file(void **state)
{
	static const char line[] = "{\"time\": \"2025-01-01T00:00:00.000Z\", \"status\": \"ok\"}\n";

	(void)state;
	for (int i = 0; i < 1000; i++)
		put(line, sizeof(line) - 1);
	append("{\"a\": 1}");
	append("{\"a\": 2}");
	expect(VT_CHAIN_WHOLE, 1002, 2, 0);
	assert_int_equal(verify().unlinked, 1000);
}

/* Another program's whole line behind the chain's. */
static void test_foreign_line(void **state)
{
	(void)state;
	append("{\"a\": 1}");
	put("{\"mine\": true}\n", 15);
	expect(VT_CHAIN_FOREIGN, 2, 1, 0);
	append("{\"a\": 2}");
	expect(VT_CHAIN_WHOLE, 4, 3, 1);
}

/* The last line begins far before the block that is read first. */
static void test_long_lines(void **state)
{
	size_t len = 3 << 20;
	char *json = malloc(len + 1);

	(void)state;
	assert_non_null(json);
	memset(json, 'x', len);
	memcpy(json, "{\"a\": \"", 7);
	memcpy(json + len - 2, "\"}", 3);
	append(json);
	append(json);
	expect(VT_CHAIN_WHOLE, 2, 2, 0);
	assert_int_equal(truncate(path, size_of_log() - 1000), 0);
	expect(VT_CHAIN_TORN, 2, 1, 0);
	append("{\"a\": 1}");
	expect(VT_CHAIN_WHOLE, 4, 3, 1);
	free(json);
}

static void test_bounds(void **state)
{
	struct vt_audit_log log;
	struct vt_err err;

	(void)state;
	open_log(&log);
	/* Refused before a byte of it is looked at. */
	assert_int_equal(vt_audit_append(&log, "{", VT_AUDIT_LINE + 1, &err), -E2BIG);
	assert_non_null(strstr(err.what, path));
	assert_int_equal(size_of_log(), 0);
	/* So much without a line of the chain: one begins. That the other ended is seen. */
	assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), 0);
	assert_int_equal(ftruncate(log.fd, VT_AUDIT_SCAN + 70000), 0);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 2}", 8, &err), 0);
	struct vt_chain chain = verify();

	assert_int_equal(chain.fault, VT_CHAIN_FOREIGN);
	assert_int_equal(chain.fault_line, 2);
	vt_audit_done(&log);
}

static void test_not_read_whole(void **state)
{
	char line[400];
	struct rusage before, after;

	(void)state;
	append("{\"a\": 1}");
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t len = pread(fd, line, sizeof(line), 0);

	/* A hole of a terabyte before the last line costs nothing. */
	assert_true(len > 0);
	if (ftruncate(fd, (off_t)1 << 40) < 0)
		SKIP("a file cannot have a terabyte here");
	assert_int_equal(pwrite(fd, "\n", 1, ((off_t)1 << 40) - 1), 1);
	assert_int_equal(pwrite(fd, line, (size_t)len, (off_t)1 << 40), len);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	append("{\"a\": 2}");
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_true(after.ru_utime.tv_sec + after.ru_stime.tv_sec -
			    (before.ru_utime.tv_sec + before.ru_stime.tv_sec) <
		    2);
	assert_int_equal(size_of_log(), ((off_t)1 << 40) + 2 * len);
}

static void append_many(int who, int count)
{
	struct vt_audit_log log;
	struct vt_err err;
	char json[5000];

	if (vt_audit_open(&log, path, &err) < 0)
		_exit(1);
	log.wait_ns = 60 * VT_NS_PER_S;
	for (int i = 0; i < count; i++) {
		int len = snprintf(json, sizeof(json),
				   "{\"who\": %d, \"line\": %d, \"x\": \"%0*d\"}", who, i,
				   1 + (who * 997 + i * 131) % 4000, 0);

		if (vt_audit_append(&log, json, (size_t)len, &err) < 0) {
			fprintf(stderr, "%s\n", err.what);
			_exit(2);
		}
	}
	_exit(0);
}

static void test_many_at_once(void **state)
{
	enum { WRITERS = 8, EACH = 100 };
	pid_t pids[WRITERS];

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			append_many(i, EACH);
	}
	/* What is read meanwhile is whole too. */
	for (int i = 0; i < 50; i++)
		if (access(path, F_OK) == 0)
			assert_int_equal(verify().fault, VT_CHAIN_WHOLE);
	for (int i = 0; i < WRITERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	expect(VT_CHAIN_WHOLE, WRITERS * EACH, WRITERS * EACH, 0);
}

static void test_writers_that_are_killed(void **state)
{
	enum { WRITERS = 20 };

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			append_many(i, 1000000);
		usleep((useconds_t)(3000 + i * 500));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	append("{\"last\": true}");
	struct vt_chain chain = verify();

	assert_int_equal(chain.fault, VT_CHAIN_WHOLE);
	assert_true(chain.linked > WRITERS);
}

static void test_locked(void **state)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct vt_audit_log log;
	struct vt_err err;

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	open_log(&log);
	log.wait_ns = 50 * VT_NS_PER_MS;
	int64_t begun = vt_clock_now();

	assert_int_equal(vt_audit_try(&log, &err), -EWOULDBLOCK);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), -EWOULDBLOCK);
	assert_true(vt_clock_now() - begun >= 2 * 50 * VT_NS_PER_MS);
	assert_non_null(strstr(err.what, path));
	assert_non_null(strstr(err.what, "locked"));
	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_int_equal(vt_audit_try(&log, &err), 0);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), 0);
	/* Nothing is held between appends. */
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	vt_audit_done(&log);
}

/* As a full disk does it: a part of the line fits. */
static void test_no_space(void **state)
{
	struct rlimit old, small;
	struct vt_audit_log log;
	struct vt_err err;

	(void)state;
	open_log(&log);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), 0);
	off_t one = size_of_log();

	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = (rlim_t)one + 40;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int r = vt_audit_append(&log, "{\"a\": 2}", 8, &err);
	int again = vt_audit_append(&log, "{\"a\": 2}", 8, &err);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(again, -EFBIG);
	assert_non_null(strstr(err.what, path));
	assert_int_equal(size_of_log(), one + 40);
	expect(VT_CHAIN_TORN, 2, 1, 0);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 3}", 8, &err), 0);
	expect(VT_CHAIN_WHOLE, 4, 3, 1);
	vt_audit_done(&log);
}

static void test_rotation(void **state)
{
	struct vt_audit_log log;
	struct vt_err err;
	char other[128];

	(void)state;
	snprintf(other, sizeof(other), "%s.1", path);
	open_log(&log);
	assert_false(vt_audit_is_moved(&log));
	assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), 0);
	assert_int_equal(rename(path, other), 0);
	assert_true(vt_audit_is_moved(&log));
	/* Until it is opened anew, lines go to the file that was opened. */
	assert_int_equal(vt_audit_append(&log, "{\"a\": 2}", 8, &err), 0);
	append("{\"a\": 3}");
	assert_true(vt_audit_is_moved(&log));
	vt_audit_done(&log);
	open_log(&log);
	assert_false(vt_audit_is_moved(&log));
	assert_int_equal(vt_audit_append(&log, "{\"a\": 4}", 8, &err), 0);
	expect(VT_CHAIN_WHOLE, 2, 2, 0);
	/* Emptied in place: a chain begins. */
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(vt_audit_append(&log, "{\"a\": 5}", 8, &err), 0);
	expect(VT_CHAIN_WHOLE, 1, 1, 0);
	vt_audit_done(&log);
	assert_int_equal(rename(other, path), 0);
	expect(VT_CHAIN_WHOLE, 2, 2, 0);
}

static void test_pipe(void **state)
{
	struct vt_audit_log log;
	struct vt_chain chain;
	struct vt_err err;
	char text[2000];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(vt_audit_take(&log, fds[1], "a pipe", &err), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vt_audit_append(&log, "{\"a\": 1}", 8, &err), 0);
	vt_audit_done(&log);
	ssize_t len = read(fds[0], text, sizeof(text));

	assert_true(len > 0);
	vt_chain_begin(&chain, NULL);
	vt_chain_walk(&chain, text, (size_t)len);
	vt_chain_end(&chain);
	assert_int_equal(chain.fault, VT_CHAIN_WHOLE);
	assert_int_equal(chain.linked, 3);
	assert_int_equal(close(fds[0]), 0);
}

static void test_what_is_no_log(void **state)
{
	struct vt_audit_log log;
	struct vt_chain chain;
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_audit_open(&log, "/nowhere/log", &err), -ENOENT);
	assert_non_null(strstr(err.what, "/nowhere/log"));
	assert_int_equal(log.fd, -1);
	assert_int_equal(vt_audit_open(&log, "/dev/null", &err), -EINVAL);
	assert_int_equal(log.fd, -1);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(vt_audit_open(&log, path, &err), -ELOOP);
	assert_int_equal(unlink(path), 0);
	put("", 0);
	assert_int_equal(vt_audit_take(&log, open(path, O_WRONLY | O_CLOEXEC), path, &err), -EBADF);
	assert_int_equal(log.fd, -1);
	assert_int_equal(vt_audit_verify("/nowhere/log", NULL, &chain, &err), -ENOENT);
	assert_int_equal(vt_audit_verify(folder, NULL, &chain, &err), -EISDIR);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_append),
		TEST(test_torn),
		TEST(test_torn_more_than_once),
		TEST(test_torn_first_line),
		TEST(test_old_file),
		TEST(test_foreign_line),
		TEST(test_long_lines),
		TEST(test_bounds),
		TEST(test_not_read_whole),
		TEST(test_many_at_once),
		TEST(test_writers_that_are_killed),
		TEST(test_locked),
		TEST(test_no_space),
		TEST(test_rotation),
		TEST(test_pipe),
		TEST(test_what_is_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
