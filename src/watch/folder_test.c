/* SPDX-License-Identifier: Apache-2.0 */
/* How much a folder holds, with all that a cell can make of it. */
#include "kernel/child_test.h"

#include <signal.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "watch/folder.h"

enum { KB = 1024, MB = 1024 * KB, OTHER_ID = 0x6f000003 };

/* Children of this test are no root: closed is closed. */
struct place {
	char path[40];
	int fd;
};

static void find_place(struct place *place)
{
	const char *parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";

	if (geteuid() == 0)
		MUST(setresuid(OTHER_ID, OTHER_ID, OTHER_ID) == 0);
	(void)snprintf(place->path, sizeof(place->path), "%s/vitro-folder-XXXXXX", parent);
	MUST(mkdtemp(place->path) != NULL);
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(place->fd >= 0);
}

static void drop_place(const struct place *place)
{
	char command[80];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", place->path); /* fits */
	MUST(system(command) == 0);
}

/* A file that has blocks for all of its bytes. */
static void put(int at, const char *name, size_t size)
{
	static const char block[64 * KB];
	AUTO_CLOSE int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	for (; size > 0; size -= sizeof(block))
		MUST(write(fd, block, sizeof(block)) == sizeof(block));
}

/* Where the CPUs are busy, a look may run out of its time: another one does not. */
static struct vt_folder_size measure_odd(const struct place *place, int64_t most)
{
	struct vt_folder_size size = { .bytes = -1 };
	int fds = count_fds();
	int r = vt_folder_measure(place->fd, most, &size);

	for (int tries = 1; r == 0 && size.odd == VT_FOLDER_SLOW && tries < 20; tries++)
		r = vt_folder_measure(place->fd, most, &size);
	errno = -r;
	MUST(r == 0);
	MUST(count_fds() == fds);
	return size;
}

static int64_t measure(const struct place *place, int64_t most)
{
	struct vt_folder_size size = measure_odd(place, most);

	MUST(size.odd == VT_FOLDER_PLAIN);
	return size.bytes;
}

/* All files in all folders; twice the same. A little more for the folders themselves is fine. */
static void counts_all(void *arg)
{
	struct place place;

	(void)arg;
	find_place(&place);
	MUST(measure(&place, 64 * MB) < 64 * KB);
	put(place.fd, "one", MB);
	MUST(mkdirat(place.fd, "a", 0700) == 0 && mkdirat(place.fd, "a/b", 0700) == 0);
	put(place.fd, "a/two", 2 * MB);
	put(place.fd, "a/b/three", 3 * MB);
	put(place.fd, ".hidden", MB);
	int64_t bytes = measure(&place, 64 * MB);

	MUST(bytes >= 7 * MB && bytes < 7 * MB + 128 * KB);
	MUST(measure(&place, 64 * MB) == bytes);
	/* Beyond what is asked for it may stop, but says more than that. */
	bytes = measure(&place, 2 * MB);
	MUST(bytes > 2 * MB);
	MUST(unlinkat(place.fd, "a/b/three", 0) == 0);
	bytes = measure(&place, 64 * MB);
	MUST(bytes >= 4 * MB && bytes < 4 * MB + 128 * KB);
	/* What has a size but no blocks takes no room. */
	AUTO_CLOSE int hole = openat(place.fd, "hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	MUST(hole >= 0 && ftruncate(hole, (off_t)MB * KB) == 0);
	MUST(measure(&place, 64 * MB) < 5 * MB);
	drop_place(&place);
}

static void test_counts_all(void **state)
{
	(void)state;
	run_child(counts_all, NULL);
}

/* A link takes what a link takes; where it leads is nobody's business. */
static void follows_no_link(void *arg)
{
	struct place place, other;

	(void)arg;
	find_place(&place);
	find_place(&other);
	put(other.fd, "big", 8 * MB);
	MUST(symlinkat(other.path, place.fd, "out") == 0);
	MUST(symlinkat("..", place.fd, "up") == 0 && symlinkat("/", place.fd, "root") == 0);
	MUST(symlinkat("loop", place.fd, "loop") == 0);
	MUST(mknodat(place.fd, "fifo", S_IFIFO | 0600, 0) == 0); /* opening it would wait */
	(void)alarm(20);                                         /* returns the old one: none */
	MUST(measure(&place, 64 * MB) < 128 * KB);
	drop_place(&place);
	drop_place(&other);
}

static void test_follows_no_link(void **state)
{
	(void)state;
	run_child(follows_no_link, NULL);
}

/* Deeper than anybody needs: that is said, and there is not one descriptor or stack frame each. */
static void bounds_depth(void *arg)
{
	struct place place;
	int at;

	(void)arg;
	find_place(&place);
	at = fcntl(place.fd, F_DUPFD_CLOEXEC, 3);
	for (int depth = 1; depth <= 2000; depth++) {
		MUST(mkdirat(at, "d", 0700) == 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		MUST(next >= 0);
		(void)close(at); /* only looked through */
		at = next;
		/* the control: what honest programs make is measured */
		if (depth == 40)
			MUST(measure(&place, 64 * MB) < MB);
	}
	(void)close(at);
	MUST(measure_odd(&place, 64 * MB).odd == VT_FOLDER_DEEP);
	drop_place(&place);
}

static void test_bounds_depth(void **state)
{
	(void)state;
	run_child(bounds_depth, NULL);
}

/* So many entries that looking at them all would take too long, though they hold nothing. */
static void bounds_entries(void *arg)
{
	struct place place;
	char name[32];

	(void)arg;
	find_place(&place);
	put(place.fd, "f", 0);
	for (int i = 0; i < 200100; i++) {
		(void)snprintf(name, sizeof(name), "link-%d", i); /* fits */
		if (linkat(place.fd, "f", place.fd, name, 0) < 0)
			MUST(mknodat(place.fd, name, S_IFREG | 0600, 0) == 0);
		if (i == 100000)
			MUST(measure(&place, 64 * MB) < 64 * MB);
	}
	const enum vt_folder_odd odd = measure_odd(&place, 64 * MB).odd;

	MUST(odd == VT_FOLDER_MANY ||
	     odd == VT_FOLDER_SLOW); /* on a machine that is busy, a second is over before */
	drop_place(&place);
}

static void test_bounds_entries(void **state)
{
	(void)state;
	run_child(bounds_entries, NULL);
}

/* What cannot be seen into is not taken for empty, and the rest is measured. */
static void reports_closed(void *arg)
{
	static const mode_t modes[] = { 0, 0100, 0300, 0400 };
	struct vt_folder_size size;
	struct place place;

	(void)arg;
	find_place(&place);
	MUST(mkdirat(place.fd, "closed", 0700) == 0);
	put(place.fd, "closed/file", MB);
	put(place.fd, "other", 2 * MB);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		MUST(fchmodat(place.fd, "closed", modes[i], 0) == 0);
		size = measure_odd(&place, 64 * MB);
		MUST(size.odd == VT_FOLDER_CLOSED && size.bytes >= 2 * MB);
		MUST(measure_odd(&place, MB).bytes > MB);
		/* the private folder itself */
		MUST(fchmod(place.fd, modes[i]) == 0);
		MUST(measure_odd(&place, 64 * MB).odd == VT_FOLDER_CLOSED);
		MUST(fchmod(place.fd, 0700) == 0);
	}
	MUST(fchmodat(place.fd, "closed", 0700, 0) == 0);
	MUST(measure(&place, 64 * MB) >= MB);
	drop_place(&place);
}

static void test_reports_closed(void **state)
{
	(void)state;
	run_child(reports_closed, NULL);
}

/* Entries that come and go meanwhile are no error. */
static void stands_changes(void *arg)
{
	struct place place;

	(void)arg;
	find_place(&place);
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		for (;;) {
			if (mkdirat(place.fd, "a", 0700) < 0 || mkdirat(place.fd, "a/b", 0700) < 0)
				_exit(1);
			put(place.fd, "a/b/file", 64 * KB);
			if (unlinkat(place.fd, "a/b/file", 0) < 0 ||
			    unlinkat(place.fd, "a/b", AT_REMOVEDIR) < 0 ||
			    unlinkat(place.fd, "a", AT_REMOVEDIR) < 0)
				_exit(1);
		}
	}
	for (int i = 0; i < 3000; i++)
		(void)measure(&place, 64 * MB); /* which must succeed */
	MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	drop_place(&place);
}

static void test_stands_changes(void **state)
{
	(void)state;
	run_child(stands_changes, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_all),     cmocka_unit_test(test_follows_no_link),
		cmocka_unit_test(test_bounds_depth),   cmocka_unit_test(test_bounds_entries),
		cmocka_unit_test(test_reports_closed), cmocka_unit_test(test_stands_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
