/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what cells can write has names that nobody knows, on invented hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "plan/pooled.h"

/* "/srv/work" is mounted at a second place, of which each host has another. */
static const char *second;

static int aliases(const struct vt_host *host, const char *path,
		   void (*each)(void *arg, const char *alias), void *arg)
{
	(void)host;
	if (!second)
		return -EIO;
	if (strcmp(path, "/srv/work") == 0)
		each(arg, second);
	return 0;
}

static bool loads_ahead(const char *granted, bool writable, const char *place)
{
	const struct vt_build builds[] = {
		{ .act = VT_ACT_DIR, .to = "srv" },
		{ .act = VT_ACT_BIND, .from = "/usr", .to = "usr" },
		{ .act = VT_ACT_BIND,
		  .from = "/srv/work",
		  .to = "srv/work",
		  .writable = true,
		  .mode = S_IFDIR },
		{ .act = VT_ACT_BIND,
		  .from = granted,
		  .to = "granted",
		  .writable = writable,
		  .mode = S_IFDIR },
	};
	const struct vt_plan plan = { .builds = builds,
				      .build_count = sizeof(builds) / sizeof(builds[0]) };
	const struct vt_host host = { .aliases = aliases };

	second = place;
	return vt_pooled_loads_ahead(&plan, &host);
}

static void test_other_names(void **state)
{
	(void)state;
	assert_true(loads_ahead("/data", false, "/mnt/same"));
	assert_false(loads_ahead("/data", false, "/data"));
	assert_false(loads_ahead("/data", false, "/data/deep/same")); /* it is around it */
	assert_false(loads_ahead("/data/part", false, "/data"));      /* it is a part of it */
	/* By its own name it is known wherever it is granted, and what can be written is covered.
	 */
	assert_true(loads_ahead("/srv", false, "/mnt/same"));
	assert_true(loads_ahead("/data", true, "/data/deep/same"));
	/* Whoever cannot tell says no. */
	assert_false(loads_ahead("/data", false, NULL));
}

/* A part of a folder for writing, shown at a place. */
static bool loads_with_file(const char *to, mode_t mode)
{
	const struct vt_build builds[] = {
		{ .act = VT_ACT_BIND,
		  .from = "/srv/desk",
		  .to = "srv/desk",
		  .writable = true,
		  .mode = S_IFDIR },
		{ .act = VT_ACT_BIND, .from = "/srv/desk/file", .to = to, .mode = mode },
	};
	const struct vt_plan plan = { .builds = builds, .build_count = 2 };
	const struct vt_host host = { 0 };

	return vt_pooled_loads_ahead(&plan, &host);
}

static void test_files(void **state)
{
	(void)state;
	assert_true(loads_with_file("srv/desk/file", S_IFREG)); /* the folder's cover is over it */
	assert_false(loads_with_file("lib/file", S_IFREG));
	assert_true(loads_with_file("lib/file", S_IFDIR)); /* without its name it is no folder */
}

static void test_no_mounts(void **state)
{
	const struct vt_build build = {
		.act = VT_ACT_BIND, .from = "/w", .to = "w", .writable = true
	};
	const struct vt_plan plan = { .builds = &build, .build_count = 1 };
	const struct vt_plan bare = { .builds = &build, .build_count = 1, .bare = true };
	const struct vt_plan reading = { .bare = true };
	const struct vt_host none = { 0 };

	(void)state;
	assert_true(vt_pooled_loads_ahead(&plan, &none));
	/* Where nothing can be mounted, nothing can be covered. */
	assert_false(vt_pooled_loads_ahead(&bare, &none));
	assert_true(vt_pooled_loads_ahead(&reading, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_mounts),
	};

	return cmocka_run_group_tests_name("pooled", tests, NULL, NULL);
}
