/* SPDX-License-Identifier: Apache-2.0 */
/* Files that only descriptors hold: found, and counted once, however many hold them. */
#include "kernel/child_test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/skip_test.h"
#include "watch/held.h"

enum { KB = 1024, MB = 1024 * KB, PLENTY = 10000 };

struct place {
	char path[40];
	int fd;
};

static void find_place(struct place *place, const char *parent)
{
	(void)snprintf(place->path, sizeof(place->path), "%s/vitro-held-XXXXXX", parent);
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

static void grow(int fd, size_t size)
{
	static const char block[64 * KB];

	for (; size > 0; size -= sizeof(block))
		MUST(write(fd, block, sizeof(block)) == sizeof(block));
	MUST(fsync(fd) == 0); /* a disk gives blocks when it writes */
}

/* Left open for the rest of this process. */
static int put(int at, const char *name, size_t size)
{
	int fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	grow(fd, size);
	return fd;
}

static void look(struct vt_held *held, pid_t pid)
{
	unsigned left = PLENTY;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid); /* fits */
	AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(dir >= 0 && vt_held_look(held, dir, &left) == 0 && left < PLENTY);
}

static bool is_about(int64_t bytes, int64_t wanted)
{
	return bytes >= wanted && bytes < wanted + 256 * KB;
}

static int64_t nameless_of(const struct place *place, pid_t one, pid_t other)
{
	struct vt_held held = { .memfds = false };

	vt_held_want_nameless(&held, place->fd);
	look(&held, one);
	if (other)
		look(&held, other);
	MUST(held.memfd_bytes == 0);
	return held.nameless_bytes;
}

static void finds_nameless(void *arg)
{
	struct place place, other;

	(void)arg;
	find_place(&place, "/tmp");
	find_place(&other, "/dev/shm");
	(void)put(place.fd, "named", MB);
	MUST(nameless_of(&place, getpid(), 0) == 0);
	int gone = put(place.fd, "gone", 2 * MB);

	MUST(nameless_of(&place, getpid(), 0) == 0);
	/* A name of its own that says so is not believed, nor one that is left elsewhere. */
	(void)put(place.fd, "file (deleted)", MB);
	(void)put(place.fd, "twice", MB);
	MUST(linkat(place.fd, "twice", place.fd, "again", 0) == 0);
	MUST(unlinkat(place.fd, "twice", 0) == 0);
	MUST(nameless_of(&place, getpid(), 0) == 0);
	MUST(unlinkat(place.fd, "gone", 0) == 0 && dup(gone) >= 0);
	MUST(is_about(nameless_of(&place, getpid(), 0), 2 * MB));
	int never = open(place.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	MUST(never >= 0);
	grow(never, MB);
	MUST(is_about(nameless_of(&place, getpid(), 0), 3 * MB));
	/* Another file system is another's business. */
	(void)put(other.fd, "elsewhere", MB);
	MUST(unlinkat(other.fd, "elsewhere", 0) == 0);
	MUST(is_about(nameless_of(&place, getpid(), 0), 3 * MB));
	pid_t child = fork();

	MUST(child >= 0);
	if (child == 0)
		for (;;)
			(void)pause();                                /* until killed */
	MUST(is_about(nameless_of(&place, getpid(), child), 3 * MB)); /* each once */
	MUST(close(never) == 0);
	MUST(is_about(nameless_of(&place, getpid(), 0), 2 * MB));
	MUST(is_about(nameless_of(&place, child, 0), 3 * MB));
	MUST(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	drop_place(&place);
	drop_place(&other);
}

static void test_finds_nameless(void **state)
{
	struct stat disk, memory;

	(void)state;
	assert_int_equal(stat("/tmp", &disk), 0);
	if (stat("/dev/shm", &memory) < 0 || disk.st_dev == memory.st_dev)
		SKIP("/tmp and /dev/shm are one file system");
	run_child(finds_nameless, NULL);
}

/* Below more folders than a link can name. */
static void finds_deep(void *arg)
{
	struct place place;
	char name[201];

	(void)arg;
	find_place(&place, "/tmp");
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	int at = fcntl(place.fd, F_DUPFD_CLOEXEC, 3);

	for (int depth = 0; depth < 30; depth++) {
		MUST(mkdirat(at, name, 0700) == 0);
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		MUST(next >= 0);
		(void)close(at); /* only looked through */
		at = next;
	}
	(void)put(at, "file", 2 * MB);
	MUST(unlinkat(at, "file", 0) == 0);
	MUST(is_about(nameless_of(&place, getpid(), 0), 2 * MB));
	drop_place(&place);
}

static void test_finds_deep(void **state)
{
	(void)state;
	run_child(finds_deep, NULL);
}

/* Each kind by itself, and both at once. */
static void tells_kinds_apart(void *arg)
{
	struct vt_held none = { .memfds = false }, memfds = { .memfds = true };
	struct vt_held both = { .memfds = true };
	struct place place;
	unsigned left = PLENTY;

	(void)arg;
	find_place(&place, "/tmp");
	(void)put(place.fd, "gone", 2 * MB);
	MUST(unlinkat(place.fd, "gone", 0) == 0);
	int memfd = memfd_create("memory", MFD_CLOEXEC);
	struct stat st;

	MUST(memfd >= 0 && ftruncate(memfd, 5 * MB) == 0);
	grow(memfd, MB);
	look(&memfds, getpid());
	MUST(memfds.memfd_bytes == MB && memfds.nameless_bytes == 0);
	vt_held_want_nameless(&both, place.fd);
	look(&both, getpid());
	MUST(both.memfd_bytes == MB && is_about(both.nameless_bytes, 2 * MB));
	MUST(fstat(memfd, &st) == 0);
	MUST(vt_held_knows(&both, major(st.st_dev), minor(st.st_dev), st.st_ino));
	MUST(!vt_held_knows(&both, major(st.st_dev), minor(st.st_dev), st.st_ino + 1));
	/* Nothing is wanted: nothing is opened. */
	MUST(vt_held_look(&none, -1, &left) == 0 && left == PLENTY);
	left = 1;
	MUST(vt_held_look(&both, open("/proc/self", O_PATH | O_CLOEXEC), &left) == -E2BIG);
	drop_place(&place);
}

static void test_tells_kinds_apart(void **state)
{
	(void)state;
	run_child(tells_kinds_apart, NULL);
}

/* A filter that does not know statx(): what libc asks in its stead tells as much. */
static void finds_without_statx(void *arg)
{
	deny_call(SYS_statx, ENOSYS);
	tells_kinds_apart(arg);
}

static void test_finds_without_statx(void **state)
{
	(void)state;
	run_child(finds_without_statx, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_nameless),
		cmocka_unit_test(test_finds_deep),
		cmocka_unit_test(test_tells_kinds_apart),
		cmocka_unit_test(test_finds_without_statx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
