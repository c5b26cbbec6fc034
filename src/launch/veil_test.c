/* SPDX-License-Identifier: Apache-2.0 */
/* Veils of plans made by hand: what the plan says is closed is, and nothing is left of them. */
#include "launch/stage_test.h"

#include <sys/xattr.h>

static char place[64], folder[80];

static void put(const char *name, const char *text)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

/* A folder that anybody may write, since the cell's user is not its owner, in one of the test's. */
static int setup(void **state)
{
	char path[160];

	(void)state;
	strcpy(place, "/tmp/vitro-test-veil-XXXXXX");
	assert_non_null(mkdtemp(place));
	assert_int_equal(chmod(place, 0755), 0);
	(void)snprintf(folder, sizeof(folder), "%s/folder", place);
	(void)snprintf(path, sizeof(path), "%s/sub", folder);
	assert_int_equal(mkdir(folder, 0777) + chmod(folder, 0777), 0);
	assert_int_equal(mkdir(path, 0777) + chmod(path, 0777), 0);
	put("open", "open\n");
	put("closed", "secret\n");
	put("sub/closed", "secret\n");
	put("sub/open", "open\n");
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "new", "open", "closed", "sub/closed", "sub/open" };
	char path[160];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)unlink(path); /* not all are there in each test */
	}
	(void)snprintf(path, sizeof(path), "%s/sub", folder);
	return rmdir(path) + rmdir(folder) + rmdir(place); /* fails where something was left */
}

static const struct vt_veiled closed[] = {
	{ VT_VEILED_FILE, "closed", 0 },
	{ VT_VEILED_FILE, "later", 0 },
	{ VT_VEILED_WAY, "sub", S_IFDIR | 0777 },
	{ VT_VEILED_FILE, "sub/closed", 0 },
};

/* A small plan with the folder at /g, veiled. */
static void plan_veiled(struct stage *stage, struct vt_veil *veil, bool writable,
			const char *script)
{
	struct stat st;

	plan(stage, script);
	assert_int_equal(stat(place, &st), 0);
	*veil = (struct vt_veil){
		.name = "veil-0",
		.mode = S_IFDIR | 0777,
		.names = closed,
		.count = sizeof(closed) / sizeof(closed[0]),
		.work = writable ? 0 : -1,
		.base = place,
		.base_to_folder = "folder",
		.base_to_work = "",
		.work_parent = place,
		.base_dev = st.st_dev,
		.base_ino = st.st_ino,
	};
	add(stage, VT_ACT_DIR, "g", NULL);
	struct vt_build *build = add(stage, VT_ACT_BIND, "g", folder);

	build->writable = writable;
	build->veil = veil;
	stage->plan.veil_count = 1;
	stage->plan.veiled_count = veil->count;
	stage->plan.work_count = writable;
}

static void check_run(bool writable, const char *script, const char *wanted)
{
	struct stage stage;
	struct vt_veil veil;
	struct vt_note note;

	plan_veiled(&stage, &veil, writable, script);
	if (spawn(&stage) < 0)
		fail_msg("%s", stage.err.what);
	assert_string_equal(output(&stage), wanted);
	assert_int_equal(next_note(&stage, &note), 1);
	if (note.kind == VT_NOTE_FAILED)
		fail_msg("%s: %s", note.err.what, strerror(note.err.num));
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_ENDED);
	finish(&stage);
}

static void test_read(void **state)
{
	(void)state;
	check_run(false,
		  "cd /g; cat open sub/open; cat closed sub/closed 2>/dev/null; ls -A . sub; "
		  "ls -A / | grep -c stage; touch new 2>/dev/null || echo closed",
		  "open\nopen\n.:\nopen\nsub\n\nsub:\nopen\n0\nclosed\n");
}

static void test_write(void **state)
{
	char path[160], list[64];

	(void)state;
	check_run(true,
		  "cd /g; echo mine > new; cat new sub/open; cat closed sub/closed later "
		  "2>/dev/null; "
		  "rm -rf closed sub later 2>/dev/null; ls -A . sub; ls -A / | grep -c stage; :",
		  "mine\nopen\n.:\nclosed\nlater\nnew\nopen\nsub\n\nsub:\nclosed\n0\n");
	(void)snprintf(path, sizeof(path), "%s/new", folder);
	assert_int_equal(access(path, F_OK), 0);
	(void)snprintf(path, sizeof(path), "%s/sub/closed", folder);
	assert_int_equal(access(path, F_OK), 0);
	(void)snprintf(path, sizeof(path), "%s/later", folder);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(listxattr(folder, list, sizeof(list)), 0);
}

/* What is not what the plan saw is not mounted, and the work folder goes all the same. */
static void test_replaced(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		struct stage stage;
		struct vt_veil veil;
		struct vt_note note;

		plan_veiled(&stage, &veil, true, "echo ran");
		veil.base_ino += which == 0;
		stage.builds[stage.plan.build_count - 1].ino += which == 1;
		veil.base_to_folder = which == 2 ? "../tmp" : "folder";
		if (spawn(&stage) < 0)
			fail_msg("%s", stage.err.what);
		assert_string_equal(output(&stage), "");
		assert_int_equal(next_note(&stage, &note), 1);
		assert_int_equal(note.kind, VT_NOTE_FAILED);
		assert_int_equal(note.err.num, which == 2 ? EXDEV : ESTALE);
		finish(&stage);
	}
}

static void test_no_work_folder(void **state)
{
	struct stage stage;
	struct vt_veil veil;

	(void)state;
	plan_veiled(&stage, &veil, true, "echo ran");
	veil.work_parent = "/nowhere";
	assert_int_equal(spawn(&stage), -ENOENT);
	assert_non_null(strstr(stage.err.what, "/nowhere"));
	vt_fd_close(&stage.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_work_folder, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
