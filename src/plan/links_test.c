/* SPDX-License-Identifier: Apache-2.0 */
/* Links on an invented host: which ones a path leads through, and whose they are. */
#include "plan/invented_test.h"

#include "base/str.h"
#include "plan/links.h"

static const struct invented links[] = {
	{ "/bin", 0, 0, "usr/bin" },           { "/var/run", 0, 0, "/run" },
	{ "/etc/mtab", 0, 0, "/proc/mounts" }, { "/srv/root", 0, 0, "/" },
	{ "/srv/mine", 0, 1000, "/home/ann" }, { "/home/ann/up", 0, 1000, "../../srv/./mine//x" },
	{ "/home/ann/x", 0, 1000, "y" },       { "/home/ann/gone", 0, 1000, "/no/where" },
	{ "/round", 0, 0, "round" },
};

#define QUESTIONS .context = MACHINE(links), .read_link = read_link

static const struct vt_host of_user = { QUESTIONS, .uid = 1000, .link_owner = link_owner };
static const struct vt_host of_root = { QUESTIONS, .link_owner = link_owner };

static int note(void *arg, const char *link, struct vt_err *err)
{
	(void)err;
	vt_str_addf(arg, "%s ", link);
	return 0;
}

static int stop(void *arg, const char *link, struct vt_err *err)
{
	vt_str_addf(arg, "%s ", link);
	return vt_fail(err, VT_STEP_PLAN, EPERM, "no");
}

/* Follows path: the links on its way, each with a space. */
static void follow(const char *path, int (*each)(void *, const char *, struct vt_err *), int result,
		   const char *passed)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_str text;
	struct vt_err err;

	assert_non_null(arena);
	vt_str_init(&text);
	vt_str_add(&text, "");
	assert_int_equal(vt_links_follow(&of_user, arena, path, "--read", each, &text, &err),
			 result);
	assert_string_equal(text.len ? text.text : "", passed);
	vt_str_done(&text);
	vt_arena_free(arena);
}

static void names_each_link_where_it_is(void **state)
{
	(void)state;
	follow("/", note, 0, "");
	follow("/usr/bin/sh", note, 0, "");
	follow("/bin", note, 0, "/bin ");
	follow("/bin/sh", note, 0, "/bin ");
	follow("/srv/root/bin/sh", note, 0, "/srv/root /bin ");
	follow("/srv/mine/x", note, 0, "/srv/mine /home/ann/x ");
	follow("/home/ann/up", note, 0, "/home/ann/up /srv/mine /home/ann/x ");
	follow("/home/ann/gone/on", note, 0, "/home/ann/gone ");
	follow("/home/ann/x/../gone", note, 0, "/home/ann/x /home/ann/gone ");
}

static void ends_where_it_is_told_to(void **state)
{
	(void)state;
	follow("/srv/mine/x", stop, -EPERM, "/srv/mine ");
}

static void a_circle_is_an_error(void **state)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_str text;
	struct vt_err err;

	(void)state;
	assert_non_null(arena);
	vt_str_init(&text);
	assert_int_equal(vt_links_follow(&of_user, arena, "/round/x", "--read", note, &text, &err),
			 -ELOOP);
	vt_str_done(&text);
	vt_arena_free(arena);
}

static void only_the_systems_own_are_trusted(void **state)
{
	const struct vt_host unknown = { QUESTIONS, .uid = 1000 };

	(void)state;
	assert_true(vt_links_trusted(&of_user, "/bin"));
	assert_true(vt_links_trusted(&of_user, "/srv/root"));
	assert_false(vt_links_trusted(&of_user, "/srv/mine"));
	assert_false(vt_links_trusted(&of_user, "/not/there"));
	/* What a root's cell makes in a granted folder is root's. */
	assert_true(vt_links_trusted(&of_root, "/bin"));
	assert_true(vt_links_trusted(&of_root, "/var/run"));
	assert_true(vt_links_trusted(&of_root, "/etc/mtab"));
	assert_false(vt_links_trusted(&of_root, "/srv/root"));
	assert_false(vt_links_trusted(&of_root, "/srv/mine"));
	assert_true(vt_links_trusted(&unknown, "/srv/mine"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_each_link_where_it_is),
		cmocka_unit_test(ends_where_it_is_told_to),
		cmocka_unit_test(a_circle_is_an_error),
		cmocka_unit_test(only_the_systems_own_are_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
