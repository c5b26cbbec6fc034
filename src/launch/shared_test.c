/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { LEN = 1 << 16 };

struct found {
	const void *at;
	char name[96];
	int count; /* of those that begin there */
};

static int find(void *user, const struct vt_shared *piece)
{
	struct found *found = user;

	if (piece->from == (uintptr_t)found->at && piece->to == piece->from + LEN) {
		found->count++;
		memcpy(found->name, piece->name, sizeof(found->name));
	}
	return 0;
}

/* Whether what lies there is found, and then by that name. */
static bool is_found(const void *at, const char *name)
{
	AUTO_CLOSE int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct found found = { .at = at };

	assert_true(vt_shared_each(proc, find, &found) >= found.count);
	assert_true(found.count <= 1);
	if (found.count)
		assert_string_equal(found.name, name);
	return found.count;
}

static void *map(int prot, int flags, int fd)
{
	void *at = mmap(NULL, LEN, prot, flags, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static void unmap(void *at)
{
	assert_int_equal(munmap(at, LEN), 0);
}

static void what_is_of_no_file(void **state)
{
	(void)state;
	const int both = PROT_READ | PROT_WRITE;
	void *own = map(both, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	void *shared = map(both, MAP_SHARED | MAP_ANONYMOUS, -1);

	assert_false(is_found(own, ""));
	assert_true(is_found(shared, "/dev/zero (deleted)"));
	assert_int_equal(madvise(shared, LEN, MADV_DONTFORK), 0);
	assert_false(is_found(shared, ""));
	unmap(own);
	unmap(shared);
}

/* What is for reading is found exactly where it could be made writable. */
static void what_is_for_reading_now(void **state)
{
	(void)state;
	char path[32];
	AUTO_CLOSE int fd = memfd_create("tool", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, LEN), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	AUTO_CLOSE int reading = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(reading >= 0);
	void *hidden = map(PROT_READ, MAP_SHARED, fd),
	     *harmless = map(PROT_READ, MAP_SHARED, reading);

	assert_true(is_found(hidden, "/memfd:tool (deleted)"));
	assert_false(is_found(harmless, ""));
	assert_int_equal(mprotect(harmless, LEN, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(mprotect(hidden, LEN, PROT_READ | PROT_WRITE), 0);
	assert_true(is_found(hidden, "/memfd:tool (deleted)"));
	unmap(hidden);
	unmap(harmless);
}

static int refuse(void *user, const struct vt_shared *piece)
{
	(void)piece;
	*(int *)user += 1;
	return -EPERM;
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name); /* fits */
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#define OWN    "10000-20000 rw-p 00000000 00:00 0 \n"
#define SHARED "20000-30000 r--s 00000000 00:01 1024      /a name\n"
#define FLAGS  "Size: 64 kB\nVmFlags: rd mr mw me sh \n"

static const struct {
	const char *maps, *smaps;
	int wanted, calls;
} lists[] = {
	{ OWN, NULL, 0, 0 }, /* the other is not looked at */
	{ OWN SHARED, NULL, -ENOENT, 0 },
	{ OWN SHARED, OWN FLAGS SHARED FLAGS, -EPERM, 1 },
	{ OWN SHARED, OWN FLAGS SHARED "VmFlags: rd mr me sh \n", 0, 0 }, /* it was sealed */
	{ OWN SHARED, OWN FLAGS SHARED "VmFlags: rd mr mw me \n", 0, 0 },
	{ OWN SHARED, OWN SHARED, -EBADMSG, 0 }, /* a kernel that does not tell */
	{ OWN SHARED, SHARED OWN FLAGS, -EBADMSG, 0 },
};

static void what_lists_say(void **state)
{
	(void)state;
	char folder[] = "/tmp/shared-test-XXXXXX";

	assert_non_null(mkdtemp(folder));
	AUTO_CLOSE int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int calls = 0;

	assert_int_equal(vt_shared_each(fd, refuse, &calls), -ENOENT);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		calls = 0;
		put(folder, "maps", lists[i].maps);
		(void)unlinkat(fd, "smaps", 0); /* or it is not there */
		if (lists[i].smaps)
			put(folder, "smaps", lists[i].smaps);
		assert_int_equal(vt_shared_each(fd, refuse, &calls), lists[i].wanted);
		assert_int_equal(calls, lists[i].calls);
	}
	assert_int_equal(unlinkat(fd, "maps", 0), 0);
	assert_int_equal(unlinkat(fd, "smaps", 0), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(what_is_of_no_file),
		cmocka_unit_test(what_is_for_reading_now),
		cmocka_unit_test(what_lists_say),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
