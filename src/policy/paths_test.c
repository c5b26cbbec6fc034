/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/paths.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct vt_source at_base = { "p.json", "files.read[0]", "/base/dir" };
static const struct vt_source nowhere = { "p.json", "files.read[0]", NULL };

static void test_normal_forms(void **state)
{
	static const struct {
		const char *text, *path;
	} cases[] = {
		{ "/", "/" },
		{ "///", "/" },
		{ "/.", "/" },
		{ "/srv/data", "/srv/data" },
		{ "//srv/./data///", "/srv/data" },
		{ "/srv/.hidden/..x/...", "/srv/.hidden/..x/..." },
		{ ".", "/base/dir" },
		{ "a", "/base/dir/a" },
		{ "./a/", "/base/dir/a" },
		{ "..", "/base" },
		{ "../x", "/base/x" },
		{ "./.././x", "/base/x" },
		{ "../../../../x", "/x" },
		{ "../..", "/" },
		{ "~x", "/base/dir/~x" },
		{ "a~/b", "/base/dir/a~/b" },
		{ "d\xc3\xa9j\xff", "/base/dir/d\xc3\xa9j\xff" },
	};
	struct vt_arena *arena = vt_arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_err err;
		const char *path = NULL;

		assert_int_equal(vt_path_resolve(arena, &at_base, cases[i].text, &path, &err), 0);
		assert_string_equal(path, cases[i].path);
	}
	vt_arena_free(arena);
}

static void check_refused(const struct vt_source *source, const char *text, int num,
			  const char *part)
{
	struct vt_arena *arena = vt_arena_new();
	const char *path = "untouched";
	struct vt_err err;

	assert_int_equal(vt_path_resolve(arena, source, text, &path, &err), -num);
	assert_string_equal(path, "untouched");
	assert_ptr_equal(strstr(err.what, "p.json: files.read[0]: "), err.what);
	assert_non_null(strstr(err.what, part));
	assert_null(strpbrk(err.what, "\n\x1b\x7f"));
	vt_arena_free(arena);
}

static void test_refusals(void **state)
{
	(void)state;
	check_refused(&at_base, "", EINVAL, "the path is empty");
	check_refused(&at_base, "/a\nb", EINVAL, "'/a\\nb' has a control character");
	check_refused(&at_base, "/a\x1b[2J", EINVAL, "'/a\\u001b[2J' has a control character");
	check_refused(&at_base, "/a\x7f", EINVAL, "control character");
	check_refused(&at_base, "~", EINVAL, "the shell knows what ~ is");
	check_refused(&at_base, "~/data", EINVAL, "the shell knows what ~ is");
	check_refused(&at_base, "/a/../b", EINVAL, "'..' can only begin");
	check_refused(&at_base, "/..", EINVAL, "'..' can only begin");
	check_refused(&at_base, "a/..", EINVAL, "'..' can only begin");
	check_refused(&at_base, "../a/../b", EINVAL, "'..' can only begin");
	check_refused(&nowhere, "a", EINVAL, "'a' is relative");
	check_refused(&(struct vt_source){ "p.json", "files.read[0]", "base" }, "a", EINVAL,
		      "'a' is relative");
}

/* 4095 bytes are the longest that the kernel takes, and count after the folder was put before. */
static void test_length(void **state)
{
	struct vt_arena *arena = vt_arena_new();
	char text[PATH_MAX + 1];
	const char *path;
	struct vt_err err;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '/';
	text[PATH_MAX] = '\0';
	check_refused(&at_base, text, ENAMETOOLONG, "longer than 4095 bytes");
	text[PATH_MAX - 1] = '\0';
	assert_int_equal(vt_path_resolve(arena, &at_base, text, &path, &err), 0);
	assert_string_equal(path, text);
	check_refused(&at_base, text + 1, ENAMETOOLONG, "longer than 4095 bytes");
	text[PATH_MAX - sizeof("/base/dir")] = '\0';
	assert_int_equal(vt_path_resolve(arena, &at_base, text + 1, &path, &err), 0);
	assert_int_equal(strlen(path), PATH_MAX - 1);
	vt_arena_free(arena);
}

static void test_places(void **state)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{ "", "the path is empty" },          { "data", "'data' is relative" },
		{ "/", "nothing can be moved to" },   { "//.//", "nothing can be moved to" },
		{ "/a/../b", "'..' can only begin" }, { "~/a", "the shell knows" },
		{ "/a\nb", "control character" },
	};
	struct vt_arena *arena = vt_arena_new();
	const char *path = NULL;
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(vt_path_place(arena, &at_base, bad[i].text, &path, &err), -EINVAL);
		assert_non_null(strstr(err.what, bad[i].part));
	}
	assert_null(path);
	assert_int_equal(vt_path_place(arena, &at_base, "/data//in/", &path, &err), 0);
	assert_string_equal(path, "/data/in");
	vt_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_forms),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
