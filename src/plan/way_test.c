/* SPDX-License-Identifier: Apache-2.0 */
/* Where names lead on an invented host, and that no change of it in the middle leads astray. */
#include "plan/invented_test.h"

#include "base/str.h"
#include "plan/way.h"

static const struct invented paths[] = {
	{ "/bin", 0, 0, "usr/bin" },
	{ "/usr/bin", S_IFDIR | 0755 },
	{ "/usr/bin/sh", S_IFREG | 0755 },
	{ "/srv/root", 0, 0, "/" },
	{ "/srv/mine", 0, 1000, "/home/ann" },
	{ "/home/ann", S_IFDIR | 0755, 1000 },
	{ "/home/ann/up", 0, 1000, "../../srv/./mine//x" },
	{ "/home/ann/x", 0, 1000, "y" },
	{ "/home/ann/y", S_IFDIR | 0700, 1000 },
	{ "/home/ann/gone", 0, 1000, "/no/../where" },
	{ "/home/ann/back", 0, 1000, "y/.." },
	{ "/round", 0, 0, "round" },
};

static const struct vt_host host = { .context = MACHINE(paths), .look = look, .step = step };

/* The way of path: its own name, where it leads, the errno there, and the links that it passes. */
static void leads(const char *path, const char *wanted)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_str text;
	struct vt_way way;
	struct vt_err err;

	assert_non_null(arena);
	vt_str_init(&text);
	assert_int_equal(vt_way_find(&host, arena, path, "--read", &way, &err), 0);
	vt_str_addf(&text, "%s -> %s %d", way.name, way.real, way.err);
	for (size_t i = 0; i < way.link_count; i++)
		vt_str_addf(&text, " %s", way.links[i].path);
	assert_string_equal(text.text, wanted);
	assert_true(way.err || !way.seen.link);
	assert_string_equal(way.path, path);
	vt_str_done(&text);
	vt_arena_free(arena);
}

static void every_link_is_met_where_it_is(void **state)
{
	(void)state;
	leads("/", "/ -> / 0");
	leads("/usr/bin/sh", "/usr/bin/sh -> /usr/bin/sh 0");
	leads("/bin", "/bin -> /usr/bin 0 /bin");
	leads("/bin/sh", "/usr/bin/sh -> /usr/bin/sh 0 /bin");
	leads("/srv/root/bin/sh", "/usr/bin/sh -> /usr/bin/sh 0 /srv/root /bin");
	leads("/srv/root", "/srv/root -> / 0 /srv/root");
	leads("/srv/mine/x", "/home/ann/x -> /home/ann/y 0 /srv/mine /home/ann/x");
	leads("/home/ann/up", "/home/ann/up -> /home/ann/y 0 /home/ann/up /srv/mine /home/ann/x");
	leads("/home/ann/back", "/home/ann/back -> /home/ann 0 /home/ann/back");
}

static void what_is_not_there_follows_as_it_was_written(void **state)
{
	(void)state;
	leads("/srv/new/one", "/srv/new/one -> /srv/new/one 2");
	leads("/bin/no/such", "/usr/bin/no/such -> /usr/bin/no/such 2 /bin");
	leads("/home/ann/gone/on", "/where/on -> /where/on 2 /home/ann/gone");
	leads("/home/ann/gone", "/home/ann/gone -> /where 2 /home/ann/gone");
}

static void a_circle_is_an_error(void **state)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_way way;
	struct vt_err err;

	(void)state;
	assert_non_null(arena);
	assert_int_equal(vt_way_find(&host, arena, "/round/x", "--read", &way, &err), -ELOOP);
	vt_arena_free(arena);
}

static void only_the_systems_own_are_trusted(void **state)
{
	const struct vt_host of_user = { .uid = 1000 }, of_root = { .uid = 0 };

	(void)state;
	assert_true(vt_link_is_trusted(&of_user, &(struct vt_link){ "/bin", 0 }));
	assert_true(vt_link_is_trusted(&of_user, &(struct vt_link){ "/srv/root", 0 }));
	assert_false(vt_link_is_trusted(&of_user, &(struct vt_link){ "/srv/mine", 1000 }));
	/* What a root's cell makes in a granted folder is root's. */
	assert_true(vt_link_is_trusted(&of_root, &(struct vt_link){ "/bin", 0 }));
	assert_true(vt_link_is_trusted(&of_root, &(struct vt_link){ "/var/run", 0 }));
	assert_true(vt_link_is_trusted(&of_root, &(struct vt_link){ "/etc/mtab", 0 }));
	assert_false(vt_link_is_trusted(&of_root, &(struct vt_link){ "/srv/root", 0 }));
	assert_false(vt_link_is_trusted(&of_root, &(struct vt_link){ "/srv/mine", 1000 }));
}

/* ---- a name that changes ------------------------------------------------------------------- */

/* The cells' folder, in which d and l change places: a folder, and a link that leads out. */
#define WORLD(d, to_d, l, to_l)                                                                   \
	{                                                                                         \
		{ "/dev/full", S_IFCHR | 0666 }, { "/dev/null", S_IFCHR | 0666 },                 \
			{ "/dev/random", S_IFCHR | 0666 }, { "/dev/urandom", S_IFCHR | 0666 },    \
			{ "/dev/zero", S_IFCHR | 0666 }, { "/usr", S_IFDIR | 0755 },              \
			{ "/", S_IFDIR | 0755 }, { "/w", S_IFDIR | 0755, 1000 },                  \
			{ "/out", S_IFDIR | 0755, 1000 }, { "/out/e", S_IFDIR | 0755, 1000 },     \
			{ "/out/s", S_IFSOCK | 0600, 1000 }, { "/w/d", d, 1000, to_d },           \
			{ "/w/l", l, 1000, to_l }, { "/w/d/e", to_d ? 0 : S_IFDIR | 0755, 1000 }, \
			{ "/w/d/s", to_d ? 0 : S_IFSOCK | 0600, 1000 },                           \
	}

static const struct invented before[] = WORLD(S_IFDIR | 0755, NULL, S_IFDIR | 0755, "../out");
static const struct invented after[] = WORLD(S_IFDIR | 0755, "../out", S_IFDIR | 0755, NULL);

enum { PATHS = sizeof(before) / sizeof(before[0]), OUT = 9, OUT_E, OUT_S };

/* Whether a plan shows what lies outside of the cells' folder, or leaves its own e open. */
static bool leads_out(const struct vt_plan *plan, bool denies)
{
	bool closed = false;

	for (size_t i = 0; i < plan->build_count; i++)
		if ((plan->builds[i].ino >= OUT && plan->builds[i].ino <= OUT_S) ||
		    (plan->builds[i].from && vt_path_lies_in(plan->builds[i].from, "/out")))
			return true;
	for (size_t i = 0; i < plan->denial_count; i++)
		closed |= strcmp(plan->denials[i].path, "/w/d/e") == 0;
	return denies && !closed;
}

static int layer(const struct vt_host *of, const char *path, const struct vt_path *seen,
		 struct vt_layer *ret_layer)
{
	(void)of;
	(void)path;
	(void)seen;
	*ret_layer = (struct vt_layer){ .overlay = { 0, "an overlay" }, .upper = true };
	return 0;
}

static int can_work(const struct vt_host *of, const char *path, const char *folder,
		    const char *base, struct vt_path *ret_base)
{
	(void)path;
	(void)folder;
	return of->look(of, base, ret_base);
}

/*
 * Plans with somebody at work: from each question on, for each number of questions. What is planned
 * is what was judged, or there is no plan.
 */
static void no_change_leads_astray(void **state)
{
	static const struct {
		const char *files;
		bool denies;
	} tries[] = {
		{ "\"write\": [\"/w\"], \"read\": [\"/w/d\"]", false },
		{ "\"write\": [\"/w\", \"/w/d\"]", false },
		{ "\"write\": [\"/w\"], \"read\": [\"/w/d/e\"]", false },
		{ "\"write\": [\"/w\"], \"sockets\": [\"/w/d/s\"]", false },
		{ "\"write\": [\"/w\"], \"deny\": [\"/w/d/e\"]", true },
		{ "\"read\": [\"/w\"], \"write\": [\"/w\"], \"deny\": [\"/w/d/e\"]", true },
	};
	unsigned made = 0, refused = 0;

	(void)state;
	for (size_t t = 0; t < sizeof(tries) / sizeof(tries[0]); t++) {
		unsigned questions = 1;

		for (unsigned from = 0; from < questions; from++) {
			for (unsigned during = 0; during <= questions - from; during++) {
				struct machine machine = { before, PATHS, after, from, during };
				const struct vt_host changing = {
					.uid = 1000,
					.userns = { 0, "a trial" },
					.seccomp = { 0, "a trial" },
					.notify = { 0, "a trial" },
					.landlock_abi = 7,
					.cpus = 4,
					.cgroup = { .why = "none" },
					.context = &machine,
					.look = look,
					.step = step,
					.layer = layer,
					.can_work = can_work,
				};
				struct vt_plan *plan;
				struct vt_err err;
				int r = plan_files(&changing, tries[t].files, &plan, &err);

				if (during == 0)
					questions = machine.asked;
				refused += r < 0;
				made += r == 0;
				if (r == 0 && leads_out(plan, tries[t].denies))
					fail_msg("%s: changed from question %u to %u",
						 tries[t].files, from, from + during);
				if (r == 0)
					vt_plan_free(plan);
			}
		}
	}
	assert_true(made > 100);
	assert_true(refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_link_is_met_where_it_is),
		cmocka_unit_test(what_is_not_there_follows_as_it_was_written),
		cmocka_unit_test(a_circle_is_an_error),
		cmocka_unit_test(only_the_systems_own_are_trusted),
		cmocka_unit_test(no_change_leads_astray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
