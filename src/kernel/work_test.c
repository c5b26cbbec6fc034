/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/moment_test.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "kernel/work.h"

static char place[] = "/tmp/vitro-test-work-XXXXXX";

static int setup(void **state)
{
	(void)state;
	strcpy(place + strlen(place) - 6, "XXXXXX");
	return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(place); /* fails where a test left something */
}

static unsigned count_entries(void)
{
	DIR *stream = opendir(place);
	unsigned count = 0;

	assert_non_null(stream);
	for (const struct dirent *entry; (entry = readdir(stream));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(stream);
	return count;
}

static void make(struct vt_work *work)
{
	struct vt_err err;

	vt_work_init(work);
	if (vt_work_make(place, geteuid(), getegid(), work, &err) < 0)
		fail_msg("%s", err.what);
}

/* As an overlay leaves it: folders of mode 0. */
static void fill(const struct vt_work *work)
{
	static const char *const names[] = { "work", "work/incompat", "work/incompat/volatile",
					     "work/#2a" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(mkdirat(work->fd, names[i], 0700), 0);
	assert_int_equal(mknodat(work->fd, "work/incompat/volatile/dirty", S_IFREG, 0), 0);
	assert_int_equal(mknodat(work->fd, "work/#1f", S_IFREG, 0), 0);
	for (size_t i = sizeof(names) / sizeof(names[0]); i > 0; i--)
		assert_int_equal(fchmodat(work->fd, names[i - 1], 0, 0), 0);
}

static void it_goes_with_what_an_overlay_leaves(void **state)
{
	struct vt_work work;
	struct vt_err err;
	struct stat st;
	int before = count_fds();

	(void)state;
	make(&work);
	assert_int_equal(fstat(work.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(count_entries(), 1);
	fill(&work);
	assert_int_equal(vt_work_remove(&work, &err), 0);
	assert_int_equal(count_entries(), 0);
	assert_int_equal(vt_work_remove(&work, &err), 0); /* again is fine */
	assert_int_equal(count_fds(), before);
}

static void a_sweep_takes_what_nobody_holds(void **state)
{
	struct vt_work held, dead;
	struct vt_err err;

	(void)state;
	make(&held);
	make(&dead);
	fill(&dead);
	vt_fd_close(&dead.fd); /* as its maker's death does */
	vt_fd_close(&dead.parent_fd);
	assert_int_equal(vt_work_sweep(place), 1);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(vt_work_remove(&held, &err), 0);
	assert_int_equal(vt_work_sweep("/nowhere"), 0);
}

static void make_in_race(void *arg)
{
	struct vt_work *work = arg;
	struct vt_err err;

	MUST(vt_work_make(place, geteuid(), getegid(), work, &err) == 0);
}

/* Between the maker's opening of it and its lock. */
static void sweep_once(void *arg, int nth)
{
	(void)arg;
	if (nth == 0)
		MUST(vt_work_sweep(place) == 1);
}

static void be_swept(void *arg)
{
	struct vt_work work;
	struct vt_err err;
	struct stat st;

	(void)arg;
	vt_work_init(&work);
	MUST(meet_moments(SYS_flock, make_in_race, sweep_once, &work) == 2);
	MUST(fstatat(work.parent_fd, work.name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(vt_work_remove(&work, &err) == 0);
}

static void what_is_swept_before_its_lock_is_made_again(void **state)
{
	(void)state;
	run_child(be_swept, NULL);
}

static void what_is_not_an_overlays_stays(void **state)
{
	struct vt_work work;
	struct vt_err err;
	char path[128];

	(void)state;
	make(&work);
	(void)snprintf(path, sizeof(path), "%s/%s", place, work.name);
	assert_int_equal(mkdirat(work.fd, "notes", 0700), 0);
	assert_int_equal(vt_work_remove(&work, &err), -ENOTEMPTY);
	assert_non_null(strstr(err.what, work.name));
	assert_int_equal(vt_work_sweep(place), 0);
	(void)snprintf(path, sizeof(path), "%s/%s/notes", place, work.name);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(vt_work_sweep(place), 1);
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
	struct vt_work work = { .fd = 77 };
	struct vt_err err;
	char path[32];

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
	assert_int_equal(vt_work_make("/nowhere", 0, 0, &work, &err), -ENOENT);
	assert_int_equal(vt_work_make(path, geteuid(), getegid(), &work, &err), -ENOENT);
	/* Through a link, which leads there. */
	assert_int_equal(vt_work_make("/proc/self", geteuid(), getegid(), &work, &err), -ELOOP);
	assert_int_equal(work.fd, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_goes_with_what_an_overlay_leaves, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_sweep_takes_what_nobody_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_swept_before_its_lock_is_made_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_an_overlays_stays, setup, teardown),
		cmocka_unit_test(a_folder_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
