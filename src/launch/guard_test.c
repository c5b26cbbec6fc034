/* SPDX-License-Identifier: Apache-2.0 */
/* Guards of builds made by hand: what is mounted holds, and what appears is set apart. */
#include "kernel/child_test.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "kernel/mount.h"
#include "launch/guard.h"

static char place[64];

static int setup(void **state)
{
	(void)state;
	strcpy(place, "/tmp/vitro-test-guard-XXXXXX");
	assert_non_null(mkdtemp(place));
	assert_int_equal(chdir(place), 0);
	assert_int_equal(mkdir("w", 0755) + mkdir("w/sub", 0755) + mkdir("outside", 0755), 0);
	return 0;
}

static int teardown(void **state)
{
	char command[192];

	(void)state;
	assert_int_equal(chdir("/"), 0);
	(void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", place, place);
	return system(command);
}

static void put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static const struct vt_guard guards[] = {
	{ VT_GUARD_NAME, ".envrc" },
	{ VT_GUARD_FOLDER, "sub" },
	{ VT_GUARD_NAME, "sub/config" },
	{ VT_GUARD_NAME, "sub/missing" },
	{ VT_GUARD_WORKTREES, "sub/worktrees" },
	{ VT_GUARD_NAME, "sub/worktrees/known/commondir" },
};

enum { GUARDS = sizeof(guards) / sizeof(guards[0]) };

static struct vt_build build = {
	.act = VT_ACT_BIND, .to = "w", .writable = true, .guards = guards, .guard_count = GUARDS
};

/* What was told, as a text. */
struct told {
	char text[1024];
};

static void tell(void *user, enum vt_guard_event event, const char *path, const char *to, int num)
{
	static const char *const words[] = { "apart", "stuck", "unseen", "replaced" };
	struct told *told = user;
	size_t len = strlen(told->text);

	(void)num;
	(void)snprintf(told->text + len, sizeof(told->text) - len, "%s%s %s%s%s", len ? ", " : "",
		       words[event], path, to ? " " : "", to ? to : "");
}

static void judge(const struct vt_inode *seen, const char *call, const char *wanted)
{
	struct told told = { "" };
	const struct vt_guard_teller teller = { tell, &told };
	AUTO_CLOSE int fd = open("w", O_PATH | O_DIRECTORY | O_CLOEXEC);

	build.from = place;
	assert_true(fd >= 0);
	vt_guard_judge(&build, fd, seen, call, &teller);
	/* A number that nobody can guess is none to compare. */
	if (*wanted && wanted[strlen(wanted) - 1] == '*')
		(void)strcpy(told.text + strlen(wanted) - 1, "*"); /* it is longer */
	assert_string_equal(told.text, wanted);
}

static void note(struct vt_inode *ret_seen)
{
	AUTO_CLOSE int fd = open("w", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	vt_guard_note(&build, fd, ret_seen);
}

static void what_appears_is_set_apart(void **state)
{
	struct vt_inode seen[GUARDS];

	(void)state;
	put("w/sub/config", "a");
	note(seen);
	judge(seen, "c1", "");
	put("w/.envrc", "x");
	assert_int_equal(mkdir("w/sub/missing", 0755), 0);
	judge(seen, "c1", "apart .envrc .envrc.vitro-c1, apart sub/missing missing.vitro-c1");
	assert_false(is_there("w/.envrc"));
	assert_true(is_there("w/.envrc.vitro-c1") && is_there("w/sub/missing.vitro-c1"));
	judge(seen, "c1", "");
	/* A name that is taken is not written over, and a call's name stays in the folder. */
	assert_int_equal(symlink("/nowhere", "w/.envrc"), 0);
	judge(seen, "c1", "apart .envrc .envrc.vitro-c1-*");
	put("w/.envrc", "x");
	judge(seen, "../x/\n", "apart .envrc .envrc.vitro-___x__");
	/* What was there and is another is the host's as well. */
	put("w/sub/other", "b");
	assert_int_equal(rename("w/sub/other", "w/sub/config"), 0);
	judge(seen, "c2", "replaced sub/config");
}

static void what_is_closed_is_opened(void **state)
{
	struct vt_inode seen[GUARDS];

	(void)state;
	if (geteuid() == 0)
		return; /* to whom nothing is closed; the tests run as a user, too */
	put("w/sub/config", "a");
	assert_int_equal(chmod("w/sub", 0), 0);
	note(seen);
	assert_int_equal(chmod("w/sub", 0755), 0);
	judge(seen, "c1", "");
	assert_int_equal(mkdir("w/sub/worktrees", 0755) + mkdir("w/sub/worktrees/x", 0755), 0);
	put("w/sub/missing", "x");
	put("w/.envrc", "x");
	assert_int_equal(chmod("w/sub", 0) + chmod("w", 0555), 0);
	judge(seen, "c1", "apart .envrc .envrc.vitro-c1, apart sub/missing missing.vitro-c1");
	/* The grant's root itself. */
	put("w/.envrc", "x");
	put("w/sub/missing", "x");
	assert_int_equal(chmod("w/sub", 0) + chmod("w", 0), 0);
	judge(seen, "c2", "apart .envrc .envrc.vitro-c2, apart sub/missing missing.vitro-c2");
	/* Folders of work trees: neither read, nor searched, nor both. */
	for (mode_t mode = 0; mode <= 0400; mode += 0400) {
		put("w/sub/worktrees/x/config", "x");
		assert_int_equal(chmod("w/sub/worktrees/x", 0) + chmod("w/sub/worktrees", mode), 0);
		judge(seen, mode ? "c3" : "c2",
		      mode ? "apart sub/worktrees/x/config config.vitro-c3"
			   : "apart sub/worktrees/x/config config.vitro-c2");
	}
}

/* Neither before nor afterwards is it taken for what is in order. */
static void what_cannot_be_seen_is_told(void **state)
{
	struct vt_inode seen[GUARDS];

	(void)state;
	assert_int_equal(rename("w/sub", "w/other") + symlink("other", "w/sub"), 0);
	note(seen);
	judge(seen, "c1",
	      "unseen sub/config, unseen sub/missing, unseen sub/worktrees, "
	      "unseen sub/worktrees/known/commondir");
	assert_int_equal(unlink("w/sub") + rename("w/other", "w/sub"), 0);
	put("w/sub/config", "a");
	judge(seen, "c1", "replaced sub, unseen sub/config");
	note(seen);
	assert_int_equal(rename("w/sub", "w/other") + symlink("other", "w/sub"), 0);
	judge(seen, "c1",
	      "replaced sub, unseen sub/config, unseen sub/missing, unseen sub/worktrees, "
	      "unseen sub/worktrees/known/commondir");
}

static void work_trees_are_judged(void **state)
{
	struct vt_inode seen[GUARDS];
	char text[128];

	(void)state;
	assert_int_equal(mkdir("w/sub/worktrees", 0755) + mkdir("w/sub/worktrees/known", 0755), 0);
	put("w/sub/worktrees/known/commondir", "../..\n");
	note(seen);
	assert_int_equal(mkdir("w/sub/worktrees/good", 0755) + mkdir("w/sub/worktrees/bad", 0755),
			 0);
	put("w/sub/worktrees/good/commondir", "../..\n");
	put("w/sub/worktrees/good/gitdir", "/w/tree/.git\n");
	judge(seen, "c1", "");
	(void)snprintf(text, sizeof(text), "%s/tree/.git\n", place);
	put("w/sub/worktrees/good/gitdir", text);
	judge(seen, "c1", "");
	put("w/sub/worktrees/bad/commondir", "/tmp/evil\n");
	judge(seen, "c1", "apart sub/worktrees/bad/commondir commondir.vitro-c1");
	put("w/sub/worktrees/bad/config", "x");
	put("w/sub/worktrees/bad/gitdir", "/w/../../home/ann/.git\n");
	judge(seen, "c2",
	      "apart sub/worktrees/bad/config config.vitro-c2, "
	      "apart sub/worktrees/bad/gitdir gitdir.vitro-c2");
	assert_int_equal(symlink("/tmp", "w/sub/worktrees/link"), 0);
	judge(seen, "c3", "");
}

/* Somebody who swaps a folder with a link to one outside, all the while. */
static volatile bool over;

static void *swap(void *arg)
{
	(void)arg;
	while (!over)
		(void)syscall(SYS_renameat2, AT_FDCWD, "w/sub", AT_FDCWD, "w/link",
			      2 /* RENAME_EXCHANGE */);
	return NULL;
}

static void nothing_outside_is_touched(void **state)
{
	const char *rounds = getenv("VITRO_ROUNDS");
	struct vt_inode seen[GUARDS];
	struct told told;
	const struct vt_guard_teller teller = { tell, &told };
	AUTO_CLOSE int fd = open("w", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t apart = 0;
	pthread_t thread;

	(void)state;
	note(seen);
	assert_int_equal(mkdir("outside/worktrees", 0755) + mkdir("outside/worktrees/t", 0755), 0);
	put("outside/missing", "x");
	put("outside/config", "x");
	put("outside/worktrees/t/commondir", "/evil\n");
	assert_int_equal(symlink("../outside", "w/link"), 0);
	over = false;
	assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
	for (int i = 0, most = rounds ? atoi(rounds) : 300; i < most || (!apart && i < 1000000);
	     i++) {
		told.text[0] = '\0';
		/* In the folder that is meant it is found in some rounds: that is the control. */
		(void)close(open("w/sub/missing", O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, 0666));
		vt_guard_judge(&build, fd, seen, "c1", &teller);
		apart += strstr(told.text, "missing.vitro") != NULL;
		assert_true(is_there("outside/missing") && is_there("outside/config") &&
			    is_there("outside/worktrees/t/commondir"));
	}
	over = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(apart > 0);
}

/* The host, which somebody has in other namespaces: takes a file away, and puts it back. */
static void replace(int orders, int answers)
{
	char order;

	MUST(read(orders, &order, 1) == 1);
	MUST(link("w/sub/config", "w/sub/keep") == 0 && unlink("w/sub/config") == 0);
	MUST(write(answers, &order, 1) == 1 && read(orders, &order, 1) == 1);
	MUST(rename("w/sub/keep", "w/sub/config") == 0);
	MUST(write(answers, &order, 1) == 1);
	_exit(0);
}

static void have_replaced(int orders, int answers)
{
	char order = 'x';

	MUST(write(orders, &order, 1) == 1 && read(answers, &order, 1) == 1);
}

/* In namespaces of its own, with w at /w. */
static void hold(void *arg)
{
	const struct vt_mount_traits traits = { .writable = true, .idmap_fd = -1 };
	struct vt_inode seen[GUARDS];
	struct vt_err err;
	int orders[2], answers[2];

	(void)arg;
	MUST(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	pid_t host = fork();

	if (host == 0)
		replace(orders[0], answers[1]);
	become_inner_root(0);
	int mount_fd = vt_mount_copy(AT_FDCWD, "w", &err);
	int root = vt_mount_new_root(1 << 20, 64, &err);

	MUST(host > 0 && mount_fd >= 0 && root >= 0 && mkdirat(root, "w", 0755) == 0);
	MUST(vt_mount_restrict(mount_fd, &traits, "w", &err) == 0);
	MUST(vt_mount_attach(mount_fd, root, "w", &err) == 0);
	MUST(vt_guard_bind(&build, root, &err) == 0);
	MUST(fchdir(root) == 0);
	MUST_FAIL(open("w/sub/config", O_WRONLY | O_CLOEXEC), EROFS);
	MUST_FAIL(unlink("w/sub/config"), EBUSY);
	MUST_FAIL(rename("w/sub", "w/s"), EBUSY);
	MUST_FAIL(rename("w/sub/new", "w/sub/config"), EBUSY);
	MUST(rename("w/sub/new", "w/sub/newer") == 0);
	int folder = open("w", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(folder >= 0);
	vt_guard_note(&build, folder, seen);
	MUST(vt_guard_stands(&build, folder, seen));
	/* The host's rename drops what is mounted, also if the same file comes back. */
	have_replaced(orders[1], answers[0]);
	MUST(!vt_guard_stands(&build, folder, seen));
	have_replaced(orders[1], answers[0]);
	MUST(!vt_guard_stands(&build, folder, seen));
	MUST(close(open("w/sub/config", O_WRONLY | O_CLOEXEC)) == 0);
}

static void what_is_there_cannot_be_changed(void **state)
{
	(void)state;
	put("w/sub/config", "a");
	put("w/sub/new", "b");
	run_child(hold, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_appears_is_set_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_closed_is_opened, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_seen_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(work_trees_are_judged, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_outside_is_touched, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_there_cannot_be_changed, setup, teardown),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
