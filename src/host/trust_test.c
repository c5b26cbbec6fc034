/* SPDX-License-Identifier: Apache-2.0 */
#include "host/trust.h"

#include <fcntl.h>

#include "base/fd.h"
#include "host/tree_test.h"

static void test_given(void **state)
{
	struct tree *tree = *state;

	put(tree, "real/file", "", 0644);
	put_link(tree, "link", "real");
	const struct vt_given items[] = {
		{ at(tree, "link"), false, true },
		{ at(tree, "moved"), true, false },
	};
	const struct vt_givens givens = { items, 2 };

	/* By name, and only where it stays in its place. */
	assert_true(vt_trust_is_shown(&givens, at(tree, "link/file")));
	assert_false(vt_trust_is_shown(&givens, at(tree, "linked/file")));
	assert_false(vt_trust_is_shown(&givens, at(tree, "real/file")));
	assert_false(vt_trust_is_shown(&givens, at(tree, "moved/file")));
	/* By what it is; what does not exist gives nothing. */
	assert_true(vt_trust_is_given(&givens, at(tree, "real/file")));
	assert_false(vt_trust_is_given(&givens, at(tree, "realm/file")));
	assert_false(vt_trust_is_given(&givens, at(tree, "moved/file")));
	put(tree, "moved/file", "", 0644);
	assert_true(vt_trust_is_given(&givens, at(tree, "moved/file")));
}

static void check_links(const struct tree *tree, const struct vt_givens *givens, const char *path,
			const char *wanted)
{
	char real[PATH_MAX] = "untouched";
	struct stat st, there;
	bool trusted = vt_trust_links(givens, at(tree, path), real, &st);

	if (trusted != (wanted != NULL))
		fail_msg("%s: %s", path, trusted ? real : "not trusted");
	assert_string_equal(real, wanted ? at(tree, wanted) : "untouched");
	if (wanted) {
		assert_int_equal(stat(at(tree, wanted), &there), 0);
		assert_true(st.st_ino == there.st_ino && st.st_dev == there.st_dev);
	}
}

static void test_links(void **state)
{
	struct tree *tree = *state;
	const struct vt_givens none = { NULL, 0 };

	put(tree, "me/bin/prog", "", 0755);
	put_link(tree, "me/one", "bin/prog");
	put_link(tree, "me/two", "../me/./one");
	put_link(tree, "ws/three", at(tree, "me//two"));
	put_link(tree, "me/four", "../ws/three");
	put_link(tree, "ws/dir", "../me/bin");
	put_link(tree, "me/up", "../ws/dir/../one");
	put_link(tree, "me/loop", "loop");
	put_link(tree, "me/gone", "nothing");
	static const char *const sound[] = { "me/bin/prog", "me/one",      "me/two", "ws/three",
					     "me/four",     "ws/dir/prog", "me/up",  NULL };

	for (size_t i = 0; sound[i]; i++)
		check_links(tree, &none, sound[i], "me/bin/prog");
	check_links(tree, &none, "me/loop", NULL);
	check_links(tree, &none, "me/gone", NULL);
	check_links(tree, &none, "me/bin", NULL);
	check_links(tree, &none, "me/bin/prog/x", NULL);

	/* One link on the way that a cell may have written is enough. */
	const struct vt_given ws = { at(tree, "ws"), true, false };
	const struct vt_givens givens = { &ws, 1 };

	for (size_t i = 0; sound[i]; i++)
		check_links(tree, &givens, sound[i], i < 3 ? "me/bin/prog" : NULL);
}

static void test_files(void **state)
{
	static const struct {
		mode_t folder, file;
		bool own;
	} cases[] = {
		{ 0755, 0755, true },   { 0700, 0600, true },  { 0757, 0755, false },
		{ 01777, 0755, false }, { 0755, 0757, false }, { 0755, 0775, true },
	};
	struct tree *tree = *state;
	const struct vt_given given = { at(tree, "d/prog"), false, true };
	struct vt_given writable = { at(tree, "d"), true, true };
	const char *path = at(tree, "d/prog");
	struct stat st;

	put_program(tree, "d/prog");
	/* In a tree of the caller's own, the group is the caller's own too. */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(chmod(at(tree, "d"), cases[i].folder), 0);
		assert_int_equal(chmod(path, cases[i].file), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(vt_trust_file(&(struct vt_givens){ &given, 1 }, path, &st),
				 cases[i].own);
	}
	st.st_gid = getegid() + 1;
	assert_false(vt_trust_file(&(struct vt_givens){ NULL, 0 }, path, &st));
	st.st_mode &= ~(mode_t)S_IWGRP;
	assert_true(vt_trust_file(&(struct vt_givens){ NULL, 0 }, path, &st));
	assert_false(vt_trust_file(&(struct vt_givens){ &writable, 1 }, path, &st));
	st.st_uid = geteuid() + 1;
	assert_false(vt_trust_file(&(struct vt_givens){ NULL, 0 }, path, &st));
}

static void test_open(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "real/prog");
	put_link(tree, "real/link", "prog");
	put_link(tree, "folder", "real");
	AUTO_CLOSE int fd = vt_trust_open(AT_FDCWD, at(tree, "real/prog"), O_RDONLY);
	AUTO_CLOSE int link = vt_trust_open(AT_FDCWD, at(tree, "real/link"), O_PATH);
	AUTO_CLOSE int way = vt_trust_open(AT_FDCWD, at(tree, "folder/prog"), O_PATH);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(link, -1);
	assert_int_equal(way, -1);

	/* From a folder; through "..", which is no link; a folder itself; and what is not there. */
	static const struct {
		const char *path;
		bool there;
	} cases[] = {
		{ "prog", true },
		{ "./prog", true },
		{ "../real//prog", true },
		{ ".", true },
		{ "/", true },
		{ "../real/", true },
		{ "link", false },
		{ "../folder/prog", false },
		{ "gone", false },
		{ "prog/x", false },
		{ "../folder", false },
	};
	AUTO_CLOSE int dir = open(at(tree, "folder"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_CLOSE int found = vt_trust_open(dir, cases[i].path, O_PATH);

		if ((found >= 0) != cases[i].there)
			fail_msg("%s: %d", cases[i].path, found);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		TREE_TEST(test_given),
		TREE_TEST(test_links),
		TREE_TEST(test_files),
		TREE_TEST(test_open),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
