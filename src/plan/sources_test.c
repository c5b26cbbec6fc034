/* SPDX-License-Identifier: Apache-2.0 */
/* What no call may change, by whatever name, on an invented host. */
#include "plan/invented_test.h"

#include "plan/sources.h"

static const char *second; /* where "/srv/own" is mounted too */
static int unknown;        /* the mounts cannot be found out: a negative errno */

static int aliases(const struct vt_host *host, const char *path,
		   void (*each)(void *arg, const char *alias), void *arg)
{
	(void)host;
	if (path[0] != '/')
		return -EINVAL;
	if (second && strcmp(path, "/srv/own") == 0)
		each(arg, second);
	return unknown;
}

static const struct invented machine[] = { { "/", S_IFDIR | 0755 } };

static const struct vt_host host = {
	.context = MACHINE(machine), .look = look, .step = step, .aliases = aliases
};
static const struct vt_build builds[] = {
	{ .act = VT_ACT_BIND,
	  .from = "/data",
	  .to = ".vitro-aside/0",
	  .writable = true,
	  .mode = S_IFDIR },
	/* of a pool: the cell's own copy of that */
	{ .act = VT_ACT_BIND,
	  .from = ".vitro-aside/0",
	  .to = "data",
	  .writable = true,
	  .inner = true,
	  .mode = S_IFDIR },
};

enum kind { SOURCE, KEPT, CLOSED, EXECUTED };

/* With "/data" for writing. */
static int check(enum kind kind, enum vt_require require, struct vt_err *err)
{
	const char *own[] = { "/srv/own" };
	const struct vt_strings paths = { own, 1 };
	struct vt_grant grant = { .from = "/data", .to = "/data", .origin = "files.write" };
	struct vt_policy policy = { .files.write = { &grant, 1 }, .require = require };
	struct vt_plan plan = { .arena = vt_arena_new(), .builds = builds, .build_count = 2 };
	struct vt_request request = { 0 };

	assert_non_null(plan.arena);
	if (kind == SOURCE)
		policy.sources = paths;
	else if (kind == KEPT)
		request.kept = paths;
	else if (kind == CLOSED)
		request.closed = paths;
	int r = kind == EXECUTED ? vt_sources_check_run(&plan, &policy, &host, &paths, err)
				 : vt_sources_check(&plan, &policy, &host, &request, err);

	vt_arena_free(plan.arena);
	return r;
}

static void test_other_names(void **state)
{
	struct vt_err err;

	(void)state;
	unknown = 0;
	for (enum kind kind = SOURCE; kind <= EXECUTED; kind++) {
		second = NULL;
		assert_int_equal(check(kind, VT_REQUIRE_FULL, &err), 0);
		second = "/data/own";
		assert_int_equal(check(kind, VT_REQUIRE_FULL, &err), -EPERM);
	}
}

/* A name that could not be found out may be the one that a call has. */
static void test_unknown_names(void **state)
{
	struct vt_err err;

	(void)state;
	second = NULL;
	unknown = -ENOENT;
	for (enum kind kind = SOURCE; kind <= EXECUTED; kind++) {
		assert_int_equal(check(kind, VT_REQUIRE_FULL, &err), -ENOENT);
		assert_non_null(strstr(err.what, "'/srv/own' is mounted cannot be found out"));
		/* What is the server's own is not the caller's to risk. */
		assert_int_equal(check(kind, VT_REQUIRE_BEST_EFFORT, &err),
				 kind == SOURCE ? 0 : -ENOENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_unknown_names),
	};

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
