/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders: made for one user alone, and removed whatever a cell left in them. */
#include "kernel/scratch_test.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { DEEP = 5000, MANY = 5000, SUBFOLDERS = 300, WIDE = 1000 };

/* ---- making -------------------------------------------------------------------------------- */

static void makes_for_itself(void *arg)
{
	static const mode_t masks[] = { 0, 022, 0777 };
	struct place place;
	struct stat st;

	(void)arg;
	step_down();
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		(void)umask(077); /* for the place; returns the old one, cannot fail */
		find_place(&place);
		(void)umask(masks[i]);
		int fd = make(&place);

		MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		MUST(lstat(place.path, &st) == 0 && st.st_mode == (S_IFDIR | 0700));
		MUST(st.st_uid == geteuid() && st.st_gid == getegid());
		remove_all(&place, fd);
	}
}

static void test_make(void **state)
{
	(void)state;
	run_child(makes_for_itself, NULL);
}

static void makes_for_another(void *arg)
{
	struct place place;
	struct stat st;

	(void)arg;
	find_place(&place);
	AUTO_CLOSE int fd = vt_scratch_make(place.path, OTHER_ID, OTHER_ID + 1, &place.around,
					    &place.err);

	MUST(fd >= 0 && fstat(fd, &st) == 0);
	MUST(st.st_uid == OTHER_ID && st.st_gid == OTHER_ID + 1);
	MUST(st.st_mode == (S_IFDIR | 0700));
	vt_scratch_remove(fd, place.around, place.path);
	MUST(rmdir(place.top) == 0);
}

static void test_make_for_another(void **state)
{
	(void)state;
	NEEDS_ROOT();
	run_child(makes_for_another, NULL);
}

/* A name that somebody else has taken meanwhile is not what is looked for. */
static void finds_its_own(void *arg)
{
	struct place place;

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place), around;
	int found = vt_scratch_find(place.path, geteuid(), &around);

	MUST(found >= 0 && close(found) == 0 && close(around) == 0);
	MUST(vt_scratch_find(place.path, geteuid() + 1, &around) == -EPERM);
	remove_all(&place, fd);
	MUST(vt_scratch_find(place.path, geteuid(), &around) == -ENOENT);
}

static void test_find(void **state)
{
	(void)state;
	run_child(finds_its_own, NULL);
}

/* Whoever cannot give it away has made nothing. */
static void cannot_give_away(void *arg)
{
	struct place place;

	(void)arg;
	step_down();
	find_place(&place);
	int fds = count_fds();

	MUST(vt_scratch_make(place.path, geteuid() + 1, getegid(), &place.around, &place.err) ==
	     -EPERM);
	MUST(place.err.step == VT_STEP_MOUNTS && strstr(place.err.what, place.path));
	MUST(count_fds() == fds);
	MUST(rmdir(place.top) == 0);
}

static void test_make_fails(void **state)
{
	(void)state;
	run_child(cannot_give_away, NULL);
}

/* A name that is taken, by whatever: it may be somebody else's. */
static void refuses_what_is_there(void *arg)
{
	struct place place;
	struct stat st;
	char target[64];

	(void)arg;
	step_down();
	find_place(&place);
	(void)snprintf(target, sizeof(target), "%s/target", place.top); /* fits */
	MUST(mkdir(place.path, 0755) == 0);
	MUST(vt_scratch_make(place.path, geteuid(), getegid(), &place.around, &place.err) ==
	     -EEXIST);
	MUST(stat(place.path, &st) == 0 && st.st_mode == (S_IFDIR | 0755));
	MUST(rmdir(place.path) == 0);

	MUST(symlink(target, place.path) == 0); /* to nowhere: mkdir must not follow it */
	MUST(vt_scratch_make(place.path, geteuid(), getegid(), &place.around, &place.err) ==
	     -EEXIST);
	MUST_FAIL(lstat(target, &st), ENOENT);
	(void)umask(022); /* a tight one was left; cannot fail */
	MUST(mkdir(target, 0755) == 0);
	MUST(vt_scratch_make(place.path, geteuid(), getegid(), &place.around, &place.err) ==
	     -EEXIST);
	MUST(stat(target, &st) == 0 && st.st_mode == (S_IFDIR | 0755));
	MUST(rmdir(target) == 0 && unlink(place.path) == 0 && rmdir(place.top) == 0);
}

static void test_make_refused(void **state)
{
	(void)state;
	run_child(refuses_what_is_there, NULL);
}

/* ---- removing ------------------------------------------------------------------------------ */

static void removes_deep(void *arg)
{
	struct place place;

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);
	int at = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	for (int depth = 0; depth < DEEP; depth++) {
		MUST(mkdirat(at, "folder", 0700) == 0);
		int next = openat(at, "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		MUST(next >= 0);
		if (depth % 100 == 0)
			put(at, "file", "text");
		(void)close(at); /* only looked through */
		at = next;
	}
	(void)close(at);
	remove_all(&place, fd);
}

static void removes_many(void *arg)
{
	struct place place;
	char name[32];

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "a-file-with-a-name-%d", i); /* fits */
		MUST(mknodat(fd, name, S_IFREG | 0600, 0) == 0);
	}
	for (int i = 0; i < SUBFOLDERS; i++) {
		(void)snprintf(name, sizeof(name), "folder-%d", i); /* fits */
		put_closed(fd, name, 0700);
	}
	remove_all(&place, fd);
}

static double cpu_seconds(void)
{
	struct timespec now;

	MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One more name of a file, which a disk is sooner done with than with one more file. */
static void put_link(int fd, const char *name)
{
	if (linkat(fd, "file", fd, name, 0) < 0)
		MUST(mknodat(fd, name, S_IFREG | 0600, 0) == 0);
}

/* Long names, so that reading what was removed already takes its time on a disk. */
static void fill_wide(int fd, int files, int folders)
{
	char name[256];

	put(fd, "file", "text");
	for (int i = 0; i < files + folders; i++) {
		(void)snprintf(name, sizeof(name), "%0200d", i); /* fits */
		if (i >= files) {
			MUST(mkdirat(fd, name, 0700) == 0);
			memcpy(name + 200, "/x", 3);
		}
		put_link(fd, name);
	}
}

static double seconds_to_remove(int files, int folders)
{
	struct place place = { .top = "/tmp/vitro-scratch-XXXXXX" };

	MUST(mkdtemp(place.top) != NULL);
	(void)snprintf(place.path, sizeof(place.path), "%s/private", place.top); /* fits */
	int fd = make(&place);

	fill_wide(fd, files, folders);
	double start = cpu_seconds();

	remove_all(&place, fd);
	return cpu_seconds() - start;
}

/* Folders among many files take no longer than both apart: nothing is read twice. */
static void goes_on_where_it_was(void *arg)
{
	(void)arg;
	step_down();
	double apart = seconds_to_remove(MANY, 0) + seconds_to_remove(0, WIDE);
	double together = seconds_to_remove(MANY, WIDE);

	if (together > 1.6 * apart + 0.1)
		child_fail(__FILE__, __LINE__, "reads again and again", 0);
}

/* Deeper than what is remembered on the way down, with folders on either side of it. */
static void removes_deep_and_wide(void *arg)
{
	struct place place;

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);
	int at = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	for (int depth = 0; depth < 2500; depth++) {
		MUST(mkdirat(at, "a", 0700) == 0 && mkdirat(at, "b", 0700) == 0);
		MUST(mkdirat(at, "c", 0700) == 0);
		put(at, "a/file", "text");
		put(at, "c/file", "text");
		int next = openat(at, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		MUST(next >= 0);
		(void)close(at); /* only looked through */
		at = next;
	}
	(void)close(at);
	remove_all(&place, fd);
}

/* What a cell closed to itself, its own private folder included. */
static void removes_closed(void *arg)
{
	static const mode_t modes[] = { 0, 0100, 0200, 0300, 0400, 0500, 0600 };
	char name[16];

	(void)arg;
	step_down();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct place place;

		find_place(&place);
		int fd = make(&place);

		for (size_t j = 0; j < sizeof(modes) / sizeof(modes[0]); j++) {
			(void)snprintf(name, sizeof(name), "%o", modes[j]); /* fits */
			put_closed(fd, name, modes[j]);
		}
		put(fd, "file", "text");
		MUST(fchmod(fd, modes[i]) == 0);
		remove_all(&place, fd);
	}
}

/* Links are removed, and never gone through, neither to files nor to folders. */
static void removes_links(void *arg)
{
	struct place place;
	struct stat st;
	char outside[64], file[80];

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);

	(void)snprintf(outside, sizeof(outside), "%s/outside", place.top); /* fits */
	(void)snprintf(file, sizeof(file), "%s/file", outside);            /* fits */
	MUST(mkdir(outside, 0500) == 0);
	MUST(chmod(outside, 0700) == 0);
	put(AT_FDCWD, file, "text");
	MUST(chmod(file, 0400) == 0 && chmod(outside, 0500) == 0);
	MUST(mkdirat(fd, "folder", 0700) == 0);
	MUST(symlinkat(outside, fd, "out") == 0 && symlinkat(file, fd, "folder/file") == 0);
	MUST(symlinkat("..", fd, "folder/up") == 0 && symlinkat("/", fd, "root") == 0);
	MUST(symlinkat("loop", fd, "loop") == 0 && symlinkat("/no/such", fd, "nowhere") == 0);
	MUST(linkat(AT_FDCWD, file, fd, "hard", 0) == 0);
	vt_scratch_remove(fd, place.around, place.path);
	(void)close(fd); /* only looked through */
	MUST_FAIL(lstat(place.path, &st), ENOENT);
	MUST(stat(outside, &st) == 0 && st.st_mode == (S_IFDIR | 0500));
	MUST(stat(file, &st) == 0 && st.st_mode == (S_IFREG | 0400) && st.st_size == 4);
	MUST(chmod(outside, 0700) == 0 && unlink(file) == 0 && rmdir(outside) == 0);
	MUST(rmdir(place.top) == 0);
}

static void removes_odd_files(void *arg)
{
	struct place place;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char name[256];

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);
	AUTO_CLOSE int unix_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", place.path);
	MUST(bind(unix_socket, (const struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(mknodat(fd, "fifo", S_IFIFO | 0600, 0) == 0);
	put(fd, "unreadable", "text");
	MUST(fchmodat(fd, "unreadable", 0, 0) == 0);
	put(fd, "...", "text");
	put(fd, ".hidden", "text");
	put(fd, "new\nline \x1b\xff", "text");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	put(fd, name, "text");
	MUST(mkdirat(fd, "..folder", 0700) == 0);
	remove_all(&place, fd);
}

static void test_remove_deep(void **state)
{
	(void)state;
	run_child(removes_deep, NULL);
}

static void test_remove_many(void **state)
{
	(void)state;
	run_child(removes_many, NULL);
}

static void test_remove_goes_on(void **state)
{
	(void)state;
	run_child(removes_deep_and_wide, NULL);
	run_child(goes_on_where_it_was, NULL);
}

static void test_remove_closed(void **state)
{
	(void)state;
	run_child(removes_closed, NULL);
}

static void test_remove_links(void **state)
{
	(void)state;
	run_child(removes_links, NULL);
}

static void test_remove_odd_files(void **state)
{
	(void)state;
	run_child(removes_odd_files, NULL);
}

/* The cell renamed it, and put something else in its place: that was not made by us, and stays. */
static void removes_what_was_moved(void *arg)
{
	struct place place;
	struct stat st;
	char away[64], victim[64];

	(void)arg;
	step_down();
	find_place(&place);
	int fd = make(&place);

	put(fd, "file", "text");
	(void)snprintf(away, sizeof(away), "%s/away", place.top);       /* fits */
	(void)snprintf(victim, sizeof(victim), "%s/victim", place.top); /* fits */
	MUST(mkdir(victim, 0700) == 0 && rename(place.path, away) == 0);
	MUST(symlink(victim, place.path) == 0);
	vt_scratch_remove(fd, place.around, place.path);
	(void)close(fd); /* only looked through */
	MUST(stat(victim, &st) == 0 && lstat(place.path, &st) == 0);
	MUST(unlink(place.path) == 0 && rmdir(victim) == 0);
	MUST(rmdir(away) == 0); /* which is empty */
	MUST(rmdir(place.top) == 0);
}

/* What cannot go stays, with what it lies in; the call returns all the same. */
static void leaves_what_must_stay(void *arg)
{
	struct place place;
	struct stat st;
	char stuck[80], file[96];

	(void)arg;
	find_place(&place);
	MUST(chmod(place.top, 0777) == 0);
	AUTO_CLOSE int fd = vt_scratch_make(place.path, OTHER_ID, OTHER_ID, &place.around,
					    &place.err);

	MUST(fd >= 0);
	(void)snprintf(stuck, sizeof(stuck), "%s/stuck", place.path); /* fits */
	(void)snprintf(file, sizeof(file), "%s/file", stuck);         /* fits */
	MUST(mkdir(stuck, 0755) == 0);
	put(AT_FDCWD, file, "text"); /* root's, in root's folder */
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		step_down();
		(void)alarm(30); /* returns the old one: none */
		int fds = count_fds();

		vt_scratch_remove(fd, place.around, place.path);
		MUST(count_fds() == fds);
		_exit(0);
	}
	int status;

	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	MUST(stat(file, &st) == 0 && st.st_size == 4);
	vt_scratch_remove(fd, place.around, place.path); /* as root it goes */
	MUST(rmdir(place.top) == 0);
}

static void test_remove_moved(void **state)
{
	(void)state;
	run_child(removes_what_was_moved, NULL);
}

static void test_remove_gives_up(void **state)
{
	(void)state;
	NEEDS_ROOT();
	run_child(leaves_what_must_stay, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_make_for_another),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_make_fails),
		cmocka_unit_test(test_make_refused),
		cmocka_unit_test(test_remove_deep),
		cmocka_unit_test(test_remove_many),
		cmocka_unit_test(test_remove_goes_on),
		cmocka_unit_test(test_remove_closed),
		cmocka_unit_test(test_remove_links),
		cmocka_unit_test(test_remove_odd_files),
		cmocka_unit_test(test_remove_moved),
		cmocka_unit_test(test_remove_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
