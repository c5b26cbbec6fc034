/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of private folders: one in a folder of the test's own. */
#pragma once

#include "kernel/child_test.h"

#include <sys/stat.h>

#include "base/fd.h"
#include "kernel/scratch.h"

enum { OTHER_ID = 0x6f000001 };

/* A folder of the test's own, with the scratch folder in it. */
struct place {
	char top[40], path[64];
	int around; /* the folder that it is in, once it is made */
	struct vt_err err;
};

/* As root everything would go, closed or not: what a cell's own user can do is what counts. */
static inline void step_down(void)
{
	if (geteuid() == 0) {
		MUST(setresgid(OTHER_ID, OTHER_ID, OTHER_ID) == 0);
		MUST(setresuid(OTHER_ID, OTHER_ID, OTHER_ID) == 0);
	}
}

/* In memory where that can be: a disk takes half a minute for what is made here. */
static inline void find_place(struct place *place)
{
	const char *parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";

	(void)snprintf(place->top, sizeof(place->top), "%s/vitro-scratch-XXXXXX", parent);
	MUST(mkdtemp(place->top) != NULL);
	(void)snprintf(place->path, sizeof(place->path), "%s/private", place->top); /* fits */
}

static inline int make(struct place *place)
{
	int fd = vt_scratch_make(place->path, geteuid(), getegid(), &place->around, &place->err);

	MUST(fd >= 0);
	return fd;
}

/* All of it is gone, and nothing else: the folder that it was in is empty. */
static inline void remove_all(struct place *place, int fd)
{
	int fds = count_fds();
	struct stat st;

	vt_scratch_remove(fd, place->around, place->path);
	MUST(count_fds() == fds);
	MUST_FAIL(lstat(place->path, &st), ENOENT);
	MUST(rmdir(place->top) == 0);
	(void)close(fd); /* only looked through */
	(void)close(place->around);
}

static inline void put(int at, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* A folder with a file in it, which is closed at the end. */
static inline void put_closed(int at, const char *name, mode_t mode)
{
	MUST(mkdirat(at, name, 0700) == 0);
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	MUST(fd >= 0);
	put(fd, "file", "text");
	MUST(mkdirat(fd, "empty", 0) == 0);
	MUST(fchmod(fd, mode) == 0);
}
