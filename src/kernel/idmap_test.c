/* SPDX-License-Identifier: Apache-2.0 */
/* An id-mapped mount for real: who owns what, seen from both sides of it. Only root can. */
#include "kernel/child_test.h"

#include <grp.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "kernel/idmap.h"
#include "kernel/mount.h"

enum { OWNER = 1234, OWNER_GROUP = 1235, CELL = 0x70000007, OTHER = 77 };

struct owner {
	uid_t uid;
	gid_t gid;
};

static void make_owned(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	MUST(fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, mode) == 0);
	(void)close(fd); /* nothing written */
}

static struct stat look(const char *path)
{
	struct stat st;

	MUST(lstat(path, &st) == 0);
	return st;
}

/* disk/ on a tmpfs, and the same at cell/, with ids mapped. */
static void enter_mapped(uid_t disk_uid, gid_t disk_gid)
{
	struct vt_err err;

	MUST(unshare(CLONE_NEWNS) == 0);
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mount("none", "/tmp", "tmpfs", 0, "mode=0755") == 0 && chdir("/tmp") == 0);
	MUST(mkdir("disk", 0755) == 0 && mkdir("cell", 0755) == 0);
	MUST(chown("disk", disk_uid, disk_gid) == 0);
	make_owned("disk/mine", disk_uid, disk_gid, 0600);
	make_owned("disk/other", OTHER, OTHER, 0600);
	make_owned("disk/high", UINT32_MAX - 1, UINT32_MAX - 1, 0600);
	make_owned("disk/clash", CELL, CELL, 0666);
	AUTO_CLOSE int idmap = vt_idmap_open(disk_uid, CELL, disk_gid, CELL, &err);

	MUST(idmap >= 0 && fcntl(idmap, F_GETFD) & FD_CLOEXEC);
	const struct vt_mount_traits traits = { .writable = true, .idmap_fd = idmap };
	AUTO_CLOSE int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int copy = vt_mount_copy(AT_FDCWD, "disk", &err);

	int r = vt_mount_restrict(copy, &traits, "disk", &err);
	if (r == -EINVAL) {
		(void)snprintf(child_said, CHILD_SAID_BYTES,
			       "a tmpfs takes no id map before Linux 6.3"); /* fits */
		_exit(CHILD_SKIPS);
	}
	MUST(r == 0);
	MUST(vt_mount_attach(copy, here, "cell", &err) == 0);
}

static void both_ways(void *arg)
{
	const struct owner *owner = arg;
	const uid_t uid = owner->uid;
	const gid_t gid = owner->gid;

	enter_mapped(uid, gid);
	/* from disk to cell */
	MUST(look("cell").st_uid == CELL && look("cell").st_gid == CELL);
	MUST(look("cell/mine").st_uid == CELL && look("cell/mine").st_gid == CELL);
	/* everybody else as they are, up to the last id there is */
	MUST(look("cell/other").st_uid == OTHER && look("cell/other").st_gid == OTHER);
	MUST(look("cell/high").st_uid == UINT32_MAX - 1);
	/* the cell's id on disk is somebody else's: nobody's here */
	MUST(look("cell/clash").st_uid == 65534);
	/* from cell to disk, as the cell's user */
	MUST(setgroups(0, NULL) == 0 && setresgid(CELL, CELL, CELL) == 0);
	MUST(setresuid(CELL, CELL, CELL) == 0);
	int fd = open("cell/new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	MUST(look("disk/new").st_uid == uid && look("disk/new").st_gid == gid);
	MUST(look("cell/new").st_uid == CELL && look("cell/new").st_gid == CELL);
	MUST(open("cell/mine", O_RDWR | O_CLOEXEC) >= 0);
	/* the map is the mount's: beside it nothing has changed, and others' files stay theirs */
	MUST_FAIL(open("disk/mine", O_RDONLY), EACCES);
	MUST_FAIL(open("cell/other", O_RDONLY), EACCES);
	MUST_FAIL(open("cell/high", O_RDONLY), EACCES);
	/* what a file that nobody owns here would become on disk is not known: no writing */
	MUST_FAIL(chmod("cell/clash", 0600), EOVERFLOW);
}

static void test_both_ways(void **state)
{
	/* an ordinary owner, root, and the last id below the cell's */
	static const struct owner owners[] = {
		{ OWNER, OWNER_GROUP }, { 0, 0 }, { OWNER, 0 }, { CELL - 1, CELL + 1 }
	};

	(void)state;
	NEEDS_ROOT();
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		run_child(both_ways, (void *)&owners[i]);
}

/* The owner may be the cell's id itself: then the map changes nothing. */
static void test_same_id(void **state)
{
	struct vt_err err;

	(void)state;
	NEEDS_ROOT();
	AUTO_CLOSE int fd = vt_idmap_open(CELL, CELL, OWNER, CELL, &err);

	assert_true(fd >= 0);
}

/* Neither a descriptor nor a process is left, whether it worked or not. */
static void leaves_nothing(void *arg)
{
	struct vt_err err = { 0 };
	int before = count_fds();

	(void)arg;
	if (geteuid() == 0) {
		int fd = vt_idmap_open(OWNER, CELL, OWNER, CELL, &err);

		MUST(fd >= 0 && count_fds() == before + 1);
		(void)close(fd);
		MUST(setresuid(OTHER, OTHER, OTHER) == 0);
	}
	MUST(vt_idmap_open(OWNER, CELL, OWNER, CELL, &err) < 0);
	MUST(err.step == VT_STEP_IDS);
	MUST(count_fds() == before);
	MUST_FAIL(waitpid(-1, NULL, __WALL | WNOHANG), ECHILD);
}

static void test_leaves_nothing(void **state)
{
	(void)state;
	run_child(leaves_nothing, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_same_id),
		cmocka_unit_test(test_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
