/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders, while somebody else renames around them. */
#include "kernel/moment_test.h"
#include "kernel/scratch_test.h"

#include <ftw.h>
#include <signal.h>

#include "base/skip_test.h"
#include "kernel/landlock.h"
#include "uapi/landlock.h"

/* A folder with a file that must stay, which is a neighbour of the private one. */
struct race {
	struct place place;
	int fd, result;
	char other[64], file[80], kept[64];
	int when; /* before which call something is swapped */
};

static void prepare_race(struct race *race)
{
	step_down();
	find_place(&race->place);
	(void)snprintf(race->other, sizeof(race->other), "%s/x", race->place.top); /* fits */
	MUST(mkdir(race->other, 0700) == 0);
	(void)snprintf(race->other, sizeof(race->other), "%s/x/other", race->place.top); /* fits */
	(void)snprintf(race->file, sizeof(race->file), "%s/file", race->other);          /* fits */
	(void)snprintf(race->kept, sizeof(race->kept), "%s/kept", race->place.top);      /* fits */
	MUST(mkdir(race->other, 0700) == 0);
	put(AT_FDCWD, race->file, "text");
}

static void check_file(const struct race *race)
{
	struct stat st;

	MUST(lstat(race->file, &st) == 0 && st.st_size == 4 && st.st_mode == (S_IFREG | 0600));
}

static void clear_race(const struct race *race)
{
	char x[64];

	(void)snprintf(x, sizeof(x), "%s/x", race->place.top); /* fits */
	MUST(unlink(race->file) == 0 && rmdir(race->other) == 0 && rmdir(x) == 0);
	MUST(rmdir(race->place.top) == 0);
}

static void make_in_race(void *arg)
{
	struct race *race = arg;
	struct place *place = &race->place;

	race->result = vt_scratch_make(place->path, geteuid(), getegid(), &place->around,
				       &place->err);
}

/* After the folder was made, and before it is opened. */
static void put_link(void *arg, int nth)
{
	struct race *race = arg;
	struct stat st;

	(void)nth;
	if (lstat(race->place.path, &st) == 0 && S_ISDIR(st.st_mode))
		MUST(rename(race->place.path, race->kept) == 0 &&
		     symlink(race->other, race->place.path) == 0);
}

static void put_folder(void *arg, int nth)
{
	struct race *race = arg;
	struct stat st;

	(void)nth;
	if (lstat(race->place.path, &st) == 0 && lstat(race->kept, &st) < 0)
		MUST(rename(race->place.path, race->kept) == 0 &&
		     rename(race->other, race->place.path) == 0);
}

static void opens_what_it_made(void *arg)
{
	struct race race = { .fd = -1 };
	struct stat st;

	(void)arg;
	prepare_race(&race);
	MUST(meet_moments(SYS_openat, make_in_race, put_link, &race) > 0);
	MUST(race.result == -ENOTDIR || race.result == -ELOOP);
	MUST(lstat(race.place.path, &st) == 0 &&
	     S_ISLNK(st.st_mode)); /* the control: it was there */
	check_file(&race);
	MUST(unlink(race.place.path) == 0 && rmdir(race.kept) == 0);

	MUST(meet_moments(SYS_openat, make_in_race, put_folder, &race) > 0);
	MUST(race.result == -ESTALE && strstr(race.place.err.what, race.place.path));
	MUST(rename(race.place.path, race.other) == 0 && rmdir(race.kept) == 0);
	check_file(&race);
	clear_race(&race);
}

static void remove_in_race(void *arg)
{
	struct race *race = arg;

	vt_scratch_remove(race->fd, race->place.around, race->place.path);
}

/* The folder that is being emptied, when one of its files is gone. */
static void move_folder(void *arg, int nth)
{
	struct race *race = arg;
	char to[80];

	if (nth != race->when)
		return;
	(void)snprintf(to, sizeof(to), "%s/moved", race->other); /* fits */
	MUST(renameat(race->fd, "a/b", AT_FDCWD, to) == 0);
}

/* From the first call for the folder itself to that for the last file in it. */
static void leaves_new_neighbours(void *arg)
{
	enum { FIRST = 2, LAST = 6 };
	struct race race = { .fd = -1 };
	char moved[80], path[96];
	struct stat st;

	(void)arg;
	prepare_race(&race);
	(void)snprintf(moved, sizeof(moved), "%s/moved", race.other); /* fits */
	for (race.when = FIRST; race.when <= LAST; race.when++) {
		race.fd = make(&race.place);
		MUST(mkdirat(race.fd, "a", 0700) == 0 && mkdirat(race.fd, "a/b", 0700) == 0);
		for (char name[] = "a/b/1"; name[4] <= '3'; name[4]++)
			put(race.fd, name, "text");
		MUST(meet_moments(SYS_unlinkat, remove_in_race, move_folder, &race) > race.when);
		check_file(&race);
		MUST_FAIL(lstat(race.place.path, &st), ENOENT);
		(void)close(race.fd); /* only looked through */
		(void)close(race.place.around);
		for (int left = 1; left <= 3; left++) {
			(void)snprintf(path, sizeof(path), "%s/%d", moved, left); /* fits */
			MUST(unlink(path) == 0 || errno == ENOENT);
		}
		MUST(rmdir(moved) == 0); /* the control: it was moved */
	}
	clear_race(&race);
}

/* A closed folder, once its mode is to be changed by whatever call does it. */
static void swap_closed(void *arg, int nth)
{
	struct race *race = arg;

	if (nth == 0)
		MUST(renameat(race->fd, "z", race->fd, "z.kept") == 0 &&
		     symlinkat(race->file, race->fd, "z") == 0);
}

static void opens_up_what_it_opened(void *arg)
{
#ifdef SYS_chmod
	static const int calls[] = { SYS_chmod, SYS_fchmodat };
#else
	static const int calls[] = { SYS_fchmodat, SYS_fchmodat };
#endif
	struct race race = { .fd = -1 };
	struct stat st;
	int swaps = 0;

	(void)arg;
	prepare_race(&race);
	for (size_t i = 0; i < 2; i++) {
		race.fd = make(&race.place);
		put_closed(race.fd, "z", 0);
		swaps += meet_moments(calls[i], remove_in_race, swap_closed, &race);
		check_file(&race);
		MUST_FAIL(lstat(race.place.path, &st), ENOENT);
		(void)close(race.fd); /* only looked through */
		(void)close(race.place.around);
	}
	MUST(swaps > 0); /* the control: there was a moment */
	clear_race(&race);
}

/* As the kernel sees it: from outside of the folder nothing goes, whatever is tried. */
static void is_confined(void *arg)
{
	const uint64_t rights = vt_landlock_rights(
					sys_landlock_create_ruleset(
						NULL, 0, LANDLOCK_CREATE_RULESET_VERSION))
					.fs;
	struct race race = { .fd = -1 };
	struct stat st;

	(void)arg;
	prepare_race(&race);
	race.fd = make(&race.place);
	put(race.fd, "file", "text");
	MUST(mkdirat(race.fd, "moved", 0700) == 0);
	put(race.fd, "moved/file", "text");
	AUTO_CLOSE int moved = openat(race.fd, "moved", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	MUST(moved >= 0 && renameat(race.fd, "moved", AT_FDCWD, race.kept) == 0);
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (pid == 0) {
		MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		MUST(vt_scratch_confine(race.fd, race.place.around, rights, &race.place.err) == 0);
		MUST_FAIL(unlink(race.file), EACCES);
		MUST_FAIL(unlinkat(moved, "file", 0), EACCES);
		vt_scratch_remove(race.fd, race.place.around, race.place.path);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST_FAIL(lstat(race.place.path, &st), ENOENT);
	MUST(unlinkat(moved, "file", 0) == 0 && rmdir(race.kept) == 0); /* the control */
	clear_race(&race);
}

/* ---- another process, which never rests ------------------------------------------------------ */

enum { SWAP_FILES = 8, PATIENCE_MS = 5000, ROUNDS = 100, CONTROL_ROUNDS = 5000 };

/* A way to remove a folder. */
struct swaps {
	const char *name;
	void (*remove)(const char *path);
	bool is_control;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path); /* what is somewhere else by now */
	return 0;
}

static void remove_by_path(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* the same */
}

static void remove_by_descriptors(const char *path)
{
	MUST(vt_scratch_discard(path, geteuid(), false, PATIENCE_MS) == 0);
}

static void remove_in_a_process(const char *path)
{
	int status;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0)
		_exit(-vt_scratch_discard(path, geteuid(), true, PATIENCE_MS));
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

/*
 * Has two names change places until it is killed. One that sleeps between is woken in the middle of
 * what others do, also where all processors are taken.
 */
static pid_t start_swapping(const char *path)
{
	char folder[96], link[96];
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid > 0)
		return pid;
	(void)snprintf(folder, sizeof(folder), "%s/d", path); /* fits */
	(void)snprintf(link, sizeof(link), "%s/l", path);     /* fits */
	MUST(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	for (;;) {
		(void)renameat2(AT_FDCWD, folder, AT_FDCWD, link, RENAME_EXCHANGE);
		(void)usleep(10);
	}
}

static void fill(int at)
{
	for (char name[] = "0"; name[0] < '0' + SWAP_FILES; name[0]++)
		put(at, name, "text");
}

/* Whether a file is missing, which is put back. */
static bool was_reached(int victim)
{
	bool missing = false;

	for (char name[] = "0"; name[0] < '0' + SWAP_FILES; name[0]++)
		if (faccessat(victim, name, F_OK, 0) < 0) {
			missing = true;
			put(victim, name, "text");
		}
	return missing;
}

static void removes_while_names_swap(void *arg)
{
	const struct swaps *swaps = arg;
	const char *given = getenv("VITRO_TEST_ROUNDS"); /* a campaign */
	unsigned rounds = swaps->is_control ? CONTROL_ROUNDS : ROUNDS, reached = 0, round = 0;
	struct place place;
	char other[64];

	find_place(&place);
	(void)snprintf(other, sizeof(other), "%s/victim", place.top); /* fits */
	MUST(mkdir(other, 0700) == 0);
	AUTO_CLOSE int victim = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (given)
		rounds = (unsigned)strtoul(given, NULL, 10);
	fill(victim);
	pid_t swapper = start_swapping(place.path);

	for (; round < rounds && (given || !reached); round++) {
		int fd = make(&place);

		MUST(mkdirat(fd, "d", 0700) == 0);
		AUTO_CLOSE int folder = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		fill(folder);
		MUST(symlinkat("../victim", fd, "l") == 0);
		swaps->remove(place.path);
		reached += was_reached(victim);
		if (swaps->is_control)
			remove_by_descriptors(place.path); /* what it left */
		(void)close(fd);                           /* only looked through */
		(void)close(place.around);
	}
	MUST(kill(swapper, SIGKILL) == 0 && waitpid(swapper, NULL, 0) == swapper);
	for (char name[] = "0"; name[0] < '0' + SWAP_FILES; name[0]++)
		MUST(unlinkat(victim, name, 0) == 0);
	MUST(rmdir(other) == 0 && rmdir(place.top) == 0);
	if (given)
		(void)fprintf(stderr, "%s: %u of %u removals reached what a link leads to\n",
			      swaps->name, reached, round);
	if (swaps->is_control && !reached) {
		(void)snprintf(child_said, CHILD_SAID_BYTES, "no removal met a swap"); /* fits */
		_exit(CHILD_SKIPS);
	}
	MUST(swaps->is_control || !reached);
}

static void test_swaps(void **state)
{
	static struct swaps all[] = {
		{ "by descriptors", remove_by_descriptors, false },
		{ "by descriptors, confined", remove_in_a_process, false },
		{ "by paths, the control", remove_by_path, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		run_child(removes_while_names_swap, &all[i]);
}

static void test_races(void **state)
{
	(void)state;
	run_child(opens_what_it_made, NULL);
	run_child(leaves_new_neighbours, NULL);
	run_child(opens_up_what_it_opened, NULL);
}

static void test_confine(void **state)
{
	(void)state;
	if (sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 3)
		SKIP("Landlock knows too little here");
	run_child(is_confined, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_confine),
		cmocka_unit_test(test_swaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
