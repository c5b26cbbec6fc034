/* SPDX-License-Identifier: Apache-2.0 */
/* Who descends from whom: in invented procs of plain files, and among real processes. */
#include "kernel/child_test.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "watch/family.h"

static int make_top(void **state)
{
	char *top = strdup("/tmp/vitro-family-XXXXXX");

	*state = top;
	return top && mkdtemp(top) ? 0 : -1;
}

static int drop_top(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state); /* fits */
	free(*state);
	return system(command);
}

static void put_text(const char *top, int pid, const char *text)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/%d", top, pid); /* fits */
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/%d/stat", top, pid); /* fits */
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void put_process(const char *top, int pid, const char *name, int parent)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%d (%s) S %d 7 7 0 -1 0 0\n", pid, name,
		       parent); /* fits */
	put_text(top, pid, text);
}

static void check_family(const char *top, pid_t init, const pid_t *wanted, size_t count)
{
	AUTO_CLOSE int proc = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vt_family family;
	int fds = count_fds();

	assert_true(proc >= 0);
	assert_int_equal(vt_family_find(&family, proc, init), 0);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(family.init, init);
	assert_int_equal(family.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(family.pids[i], wanted[i]);
		assert_true(vt_family_has(&family, wanted[i]));
	}
	assert_false(vt_family_has(&family, 1));
	assert_false(vt_family_has(&family, init));
	assert_false(vt_family_has(&family, 0));
	vt_family_done(&family);
	assert_false(vt_family_has(&family, count ? wanted[0] : 2));
	vt_family_done(&family);
}

/* Of all generations, however the numbers lie; not those beside it, nor its own parents. */
static void test_generations(void **state)
{
	static const pid_t wanted[] = { 12, 30, 31, 400, 5000 };

	put_process(*state, 1, "systemd", 0);
	put_process(*state, 10, "vitro", 1);
	put_process(*state, 20, "init", 10);
	put_process(*state, 30, "child", 20);
	put_process(*state, 31, "child", 20);
	put_process(*state, 5000, "grandchild", 30);
	put_process(*state, 12, "a smaller number", 5000);
	put_process(*state, 400, "fifth generation", 12);
	put_process(*state, 21, "brother", 10);
	put_process(*state, 22, "nephew", 21);
	check_family(*state, 20, wanted, 5);
	check_family(*state, 22, NULL, 0);
	check_family(*state, 999, NULL, 0);
}

/* The name is the cell's own choice: it neither makes nor denies a relation. */
static void test_names(void **state)
{
	static const pid_t wanted[] = { 30, 32, 33, 34 };

	put_process(*state, 20, "init", 10);
	put_process(*state, 30, ") R 1", 20);
	put_process(*state, 31, ") S 20 (", 10);
	put_process(*state, 32, "a) S 1 2 3\n) R 1 (b", 20);
	put_process(*state, 33, "", 30);
	put_process(*state, 34, "))))", 32);
	check_family(*state, 20, wanted, 4);
}

/* What is no process, or gone halfway, or makes no sense: passed over, without an end. */
static void test_nonsense(void **state)
{
	static const pid_t wanted[] = { 30 };
	char path[96];

	put_process(*state, 20, "init", 10);
	put_process(*state, 30, "child", 20);
	put_text(*state, 40, "");
	put_text(*state, 41, "41 (x");
	put_text(*state, 42, "42 (x)");
	put_text(*state, 43, "43 (x) S");
	put_text(*state, 44, "44 (x) S twenty");
	put_process(*state, 50, "its own parent", 50);
	put_process(*state, 51, "a circle", 52);
	put_process(*state, 52, "a circle", 51);
	put_process(*state, 53, "negative", -20);
	(void)snprintf(path, sizeof(path), "%s/60", (char *)*state); /* fits */
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/self", (char *)*state); /* fits */
	assert_int_equal(mkdir(path, 0755), 0);
	check_family(*state, 20, wanted, 1);
}

static void test_no_proc(void **state)
{
	struct vt_family family = { 0 };

	(void)state;
	assert_int_equal(vt_family_find(&family, -1, 20), -EBADF);
	assert_int_equal(family.count, 0);
	vt_family_done(&family);
}

/* ---- real ones ----------------------------------------------------------------------------- */

/* Says its number on the pipe, and stays. */
static _Noreturn void stay(int out)
{
	pid_t self = getpid();

	MUST(write(out, &self, sizeof(self)) == sizeof(self));
	for (;;)
		(void)pause(); /* until killed */
}

/* A child with an odd name, its child, and an orphan. */
static void start_family(int out)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	pid_t child = fork();

	MUST(child >= 0);
	if (child == 0) {
		MUST(prctl(PR_SET_NAME, ") R 1 (", 0, 0, 0) == 0);
		if (fork() == 0)
			stay(out);
		stay(out);
	}
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		if (fork() == 0) {
			(void)setsid(); /* it leads no group: cannot fail */
			stay(out);
		}
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0) == child);
}

static void finds_its_own(void *arg)
{
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vt_family family;
	pid_t pids[3];
	int ends[2];

	(void)arg;
	MUST(proc >= 0 && pipe2(ends, O_CLOEXEC) == 0);
	start_family(ends[1]);
	for (int i = 0; i < 3; i++)
		MUST(read(ends[0], &pids[i], sizeof(pids[i])) == sizeof(pids[i]));
	MUST(vt_family_find(&family, proc, getpid()) == 0);
	bool all = family.count == 3;

	for (int i = 0; i < 3; i++) {
		all = all && vt_family_has(&family, pids[i]);
		MUST(kill(pids[i], SIGKILL) == 0);
	}
	MUST(all);
	MUST(!vt_family_has(&family, getpid()) && !vt_family_has(&family, getppid()));
	vt_family_done(&family);
	while (wait(NULL) > 0)
		;
	MUST(errno == ECHILD);
	MUST(vt_family_find(&family, proc, getpid()) == 0 && family.count == 0);
	vt_family_done(&family);
}

static void test_real_processes(void **state)
{
	(void)state;
	run_child(finds_its_own, NULL);
}

#define TOP_TEST(name) cmocka_unit_test_setup_teardown(name, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOP_TEST(test_generations),
		TOP_TEST(test_names),
		TOP_TEST(test_nonsense),
		cmocka_unit_test(test_no_proc),
		cmocka_unit_test(test_real_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
