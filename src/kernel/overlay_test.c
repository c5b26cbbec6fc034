/* SPDX-License-Identifier: Apache-2.0 */
/* Each body is root of its own user and mount namespaces, on a tmpfs of its own: all undone by
 * exit. */
#include "kernel/child_test.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "kernel/mount.h"
#include "kernel/overlay.h"

static int dir(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd); /* what was written is looked at later */
}

static bool reads(const char *path, const char *text)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	(void)close(fd); /* only read from, or none */
	return len >= 0 && strcmp(buf, text) == 0;
}

/* A folder with two files and a folder, marks for one file in each, and a place to mount on. */
static void enter_scratch(void)
{
	become_inner_root(0);
	MUST(mount("none", "/tmp", "tmpfs", 0, NULL) == 0);
	MUST(chdir("/tmp") == 0);
	MUST(mkdir("host", 0755) == 0 && mkdir("host/sub", 0755) == 0);
	MUST(mkdir("marks", 0755) == 0 && mkdir("marks/sub", 0755) == 0);
	MUST(mkdir("at", 0755) == 0 && mkdir("work", 0700) == 0);
	put("host/open", "open");
	put("host/closed", "closed");
	put("host/sub/open", "open");
	put("host/sub/closed", "closed");
}

static void whiteouts_hide(void *arg)
{
	struct vt_err err;
	struct statvfs fs;

	(void)arg;
	enter_scratch();
	MUST(mknod("marks/closed", S_IFCHR, 0) == 0 && mknod("marks/sub/closed", S_IFCHR, 0) == 0);
	MUST(mknod("marks/later", S_IFCHR, 0) == 0);
	int fd = vt_overlay_read(dir("marks"), dir("host"), "host", &err);

	MUST(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(vt_mount_attach(fd, dir("."), "at", &err) == 0);
	MUST(statvfs("at", &fs) == 0);
	MUST((fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV)) ==
	     (ST_RDONLY | ST_NOSUID | ST_NODEV));
	MUST(reads("at/open", "open") && reads("at/sub/open", "open"));
	MUST_FAIL(open("at/closed", O_RDONLY), ENOENT);
	MUST_FAIL(open("at/sub/closed", O_RDONLY), ENOENT);
	put("host/later", "later");
	put("host/new", "new");
	MUST(rename("host/new", "host/closed") == 0);
	MUST(rename("host/sub/open", "host/sub/closed") == 0);
	MUST_FAIL(open("at/later", O_RDONLY), ENOENT);
	MUST_FAIL(open("at/closed", O_RDONLY), ENOENT);
	MUST_FAIL(open("at/sub/closed", O_RDONLY), ENOENT);
	MUST_FAIL(mkdir("at/dir", 0755), EROFS);
}

/* Neither what the host writes to a pipe nor who reads from it is met by the other way. */
static void pipes_are_apart(void *arg)
{
	struct vt_err err;
	struct stat own, shown;
	char text[8];

	(void)arg;
	enter_scratch();
	MUST(mkfifo("host/pipe", 0666) == 0 && chmod("host", 0750) == 0);
	int fd = vt_overlay_read(dir("host"), dir("marks"), "host", &err);

	MUST(fd >= 0 && vt_mount_attach(fd, dir("."), "at", &err) == 0);
	int host = open("host/pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	MUST(host >= 0 && write(host, "host", 4) == 4);
	MUST_FAIL(open("at/pipe", O_WRONLY | O_NONBLOCK | O_CLOEXEC), ENXIO);
	int cell = open("at/pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	MUST(cell >= 0);
	MUST_FAIL(read(cell, text, sizeof(text)), EAGAIN);
	MUST(write(cell, "cell", 4) == 4);
	MUST(read(host, text, sizeof(text)) == 4 && memcmp(text, "host", 4) == 0);
	/* And the folder is as it was. */
	MUST(stat("host", &own) == 0 && stat("at", &shown) == 0 && own.st_mode == shown.st_mode);
	MUST(reads("at/sub/open", "open"));
}

/* What somebody left on the host's files means nothing: they cannot hide anything either. */
static void attributes_are_not_read(void *arg)
{
	struct vt_err err;

	(void)arg;
	enter_scratch();
	/* tmpfs has these from 6.6 on only */
	if (setxattr("host/sub", "user.overlay.opaque", "y", 1, 0) < 0)
		return;
	MUST(mknod("marks/sub/kept", S_IFREG | 0644, 0) == 0);
	int fd = vt_overlay_write(dir("marks"), dir("host"), dir("work"), "host", &err);

	MUST(fd >= 0 && vt_mount_attach(fd, dir("."), "at", &err) == 0);
	MUST(access("at/sub/kept", F_OK) == 0);
	MUST_FAIL(rename("at/sub", "at/sub2"), EXDEV);
}

static void writes_go_through(void *arg)
{
	struct vt_err err;
	char list[256];

	(void)arg;
	enter_scratch();
	MUST(mknod("marks/sub/closed", S_IFREG, 0) == 0);
	int fd = vt_overlay_write(dir("marks"), dir("host"), dir("work"), "host", &err);

	MUST(fd >= 0 && vt_mount_attach(fd, dir("."), "at", &err) == 0);
	put("at/new", "new");
	MUST(reads("host/new", "new") && rename("at/new", "at/sub/new") == 0);
	MUST(reads("host/sub/new", "new") && mkdir("at/d", 0755) == 0);
	MUST(mkdir("at/d/e", 0755) == 0 && rename("at/d/e", "at/d/f") == 0);
	MUST_FAIL(rename("at/sub", "at/sub2"), EXDEV);
	MUST_FAIL(rename("at/sub", "at/d/sub"), EXDEV);
	/* The price of leaving no marks: no folder is renamed into one that is in both. */
	MUST_FAIL(rename("at/d", "at/sub/d"), EXDEV);
	MUST_FAIL(rename("at/d", "at/d2"), EXDEV);
	MUST(unlink("at/open") == 0 && access("host/open", F_OK) < 0);
	MUST(listxattr("host", list, sizeof(list)) == 0);
	MUST(listxattr("host/sub", list, sizeof(list)) == 0);
	MUST(listxattr("host/d", list, sizeof(list)) == 0);
	MUST(listxattr("host/d/f", list, sizeof(list)) == 0);
}

static void layers_are_checked(void *arg)
{
	struct vt_err err;

	(void)arg;
	enter_scratch();
	MUST(vt_overlay_read(dir("marks"), 9999, "host", &err) < 0 && err.step == VT_STEP_MOUNTS);
	MUST(strstr(err.what, "host"));
	/* a work folder inside the folder itself */
	MUST(vt_overlay_write(dir("marks"), dir("host"), dir("host/sub"), "host", &err) < 0);
	/* and one on another mount */
	MUST(mount("none", "work", "tmpfs", 0, NULL) == 0);
	MUST(vt_overlay_write(dir("marks"), dir("host"), dir("work"), "host", &err) < 0);
}

static void test_read(void **state)
{
	(void)state;
	run_child(whiteouts_hide, NULL);
	run_child(pipes_are_apart, NULL);
}

static void test_write(void **state)
{
	(void)state;
	run_child(writes_go_through, NULL);
	run_child(attributes_are_not_read, NULL);
}

static void test_layers(void **state)
{
	(void)state;
	run_child(layers_are_checked, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
