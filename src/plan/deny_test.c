/* SPDX-License-Identifier: Apache-2.0 */
/* Denies on an invented host: which names a veil closes, where it works, and what is refused. */
#include "plan/invented_test.h"

#include "base/clock.h"
#include "base/path.h"

static const struct invented machine[] = {
	{ "/", S_IFDIR | 0755 },
	{ "/dev/full", S_IFCHR | 0666 },
	{ "/dev/null", S_IFCHR | 0666 },
	{ "/dev/random", S_IFCHR | 0666 },
	{ "/dev/urandom", S_IFCHR | 0666 },
	{ "/dev/zero", S_IFCHR | 0666 },
	{ "/usr", S_IFDIR | 0755 },
	{ "/usr/bin", S_IFDIR | 0755 },
	{ "/usr/bin/id", S_IFREG | 0755 },
	{ "/tmp", S_IFDIR | 01777 },
	{ "/p", S_IFDIR | 0750 },
	{ "/p/.env", S_IFREG | 0644 },
	{ "/p/.git", S_IFDIR | 0755 },
	{ "/p/a", S_IFDIR | 0700 },
	{ "/p/a/b", S_IFDIR | 0711 },
	{ "/p/a/b/key", S_IFREG | 0644 },
	{ "/p/a/b/other", S_IFREG | 0644 },
	{ "/p/a-b", S_IFREG | 0644 },
	{ "/p/link", S_IFREG | 0644, 0, "/p/.env" },
	{ "/p/dangling", 0, 0, "/gone" },
	{ "/p/shut", S_IFDIR | 0700 },
	{ "/p/to-a", S_IFDIR | 0700, 0, "a" },
	{ "/home", S_IFDIR | 0755 },
	{ "/home/to-p", S_IFDIR | 0755, 0, "../home/../p/to-a" },
	{ "/twin", S_IFDIR | 0755 },
	{ "/twin/b", S_IFDIR | 0755 },
	{ "/twin/b/key", S_IFREG | 0644 },
	{ "/many", S_IFDIR | 0755 },
	{ "/odd", S_IFDIR | 0755 },
	{ "/odd/mounts", S_IFDIR | 0755 },
	{ "/odd/nfs", S_IFDIR | 0755 },
	{ "/odd/none", S_IFDIR | 0755 },
};

/* Nobody may look into "/p/shut". */
static int look_around(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	return strncmp(path, "/p/shut/", 8) == 0 ? -EACCES : look(host, path, ret_path);
}

/* /p/a is mounted at /twin too. */
static int aliases(const struct vt_host *host, const char *path,
		   void (*each)(void *arg, const char *alias), void *arg)
{
	char alias[256];

	(void)host;
	(void)snprintf(alias, sizeof(alias), "/twin%s", path + strlen("/p/a"));
	if (vt_path_lies_in(path, "/p/a"))
		each(arg, alias);
	return 0;
}

static int layer(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer *ret_layer)
{
	(void)host;
	(void)seen;
	*ret_layer = (struct vt_layer){
		.overlay = { strcmp(path, "/odd/none") == 0 ? EINVAL : 0, "a trial" },
		.submounts = strcmp(path, "/odd/mounts") == 0,
		.upper = strcmp(path, "/odd/nfs") != 0,
	};
	return 0;
}

/* Only in "/" and /tmp may folders be made; /many is a mount of its own. */
static int can_work(const struct vt_host *host, const char *path, const char *folder,
		    const char *base, struct vt_path *ret_base)
{
	if (vt_path_lies_in(path, "/many"))
		return -EXDEV;
	if (strcmp(folder, "/") != 0 && strcmp(folder, "/tmp") != 0)
		return -EACCES;
	return host->look(host, base, ret_base);
}

static const struct vt_host works = {
	.uid = 1000,
	.gid = 1000,
	.userns = { 0, "a trial" },
	.seccomp = { 0, "a trial" },
	.landlock_abi = 7,
	.cpus = 4,
	.cgroup = { .why = "none" },
	.context = MACHINE(machine),
	.look = look_around,
	.step = step,
	.aliases = aliases,
	.layer = layer,
	.can_work = can_work,
};

/* The veils as text: "to: names", each with / for a way, - for a folder, nothing for a file. */
static void check_veils(const char *files, const char *wanted)
{
	struct vt_plan *made;
	struct vt_err err;
	char text[4096] = "";
	size_t len = 0, names = 0;

	if (plan_files(&works, files, &made, &err) < 0)
		fail_msg("%s", err.what);
	for (size_t i = 0; i < made->build_count; i++) {
		const struct vt_veil *veil = made->builds[i].veil;

		if (!veil)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s:", made->builds[i].to);
		for (size_t j = 0; j < veil->count; j++)
			if (veil->names[j].kind != VT_VEILED_EMPTY) /* protect_test.c */
				len += (size_t)snprintf(text + len, sizeof(text) - len, " %s%s",
							veil->names[j].path,
							veil->names[j].kind == VT_VEILED_WAY ? "/"
							: veil->names[j].kind == VT_VEILED_FOLDER
								? "-"
								: "");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\n");
		names += veil->count;
		assert_int_equal(veil->work >= 0, made->builds[i].writable);
	}
	assert_string_equal(text, wanted);
	assert_int_equal(made->veiled_count, names);
	vt_plan_free(made);
}

static void check_refused(const struct vt_host *host, const char *files, const char *says)
{
	struct vt_plan *made;
	struct vt_err err;

	assert_true(plan_files(host, files, &made, &err) < 0);
	assert_non_null(strstr(err.what, "p.json"));
	if (!strstr(err.what, says))
		fail_msg("'%s' does not say '%s'", err.what, says);
}

static void names_are_closed_with_the_ways_to_them(void **state)
{
	(void)state;
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/.env\"]", "p: .env\n");
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/a/b/key\", \"/p/.git\", \"/p/a/b/other\"]",
		    "p: .git- a/ a/b/ a/b/key a/b/other\n");
	/* a folder's own contents come before names that only begin like it */
	check_veils("\"write\": [\"/p\"], \"deny\": [\"/p/a-b\", \"/p/a/b\", \"/p/a/b/key\"]",
		    "p: a/ a/b- a-b\n");
	check_veils("\"deny\": [\"/usr/bin/id\"]", "usr: bin/ bin/id\n");
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/elsewhere/x\", \"/pp\"]", "");
}

static void what_is_not_there_is_closed_from_there_on(void **state)
{
	(void)state;
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/new\", \"/p/a/gone/x\", \"/p/a/gone/y\"]",
		    "p: a/ a/gone new\n");
	check_veils("\"write\": [\"/p\"], \"deny\": [\"/p/gone/x/y/z\"]", "p: gone\n");
	/* nobody can mount in a folder that they cannot look into */
	check_veils("\"write\": [\"/p\"], \"deny\": [\"/p/shut/x\", \"/p/shut/y\"]", "p: shut-\n");
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/shut/x\"]", "p: shut/ shut/x\n");
}

static void every_grant_that_shows_it_is_veiled(void **state)
{
	(void)state;
	check_veils("\"read\": [{\"from\": \"/p\", \"to\": \"/x\"}], \"write\": [\"/p/a\"],"
		    " \"deny\": [\"/p/a/b/key\"]",
		    "p/a: b/ b/key\nx: a/ a/b/ a/b/key\n");
	check_veils("\"read\": [\"/p\", \"/p/a/b/other\"], \"write\": [\"/p/a\"],"
		    " \"deny\": [\"/p/a/b/key\"]",
		    "p: a/ a/b/ a/b/key\np/a: b/ b/key\n");
}

static void other_mounts_of_the_same_are_covered(void **state)
{
	(void)state;
	check_veils("\"read\": [\"/twin\"], \"deny\": [\"/p/a/b/key\"]", "twin: b/ b/key\n");
	check_veils("\"read\": [\"/twin\", \"/p\"], \"deny\": [\"/p/a/b/key\"]",
		    "p: a/ a/b/ a/b/key\ntwin: b/ b/key\n");
}

static void links_mean_both_ends(void **state)
{
	(void)state;
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/link\"]", "p: .env link\n");
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/dangling\"]", "p: dangling\n");
	check_refused(&works, "\"write\": [\"/p\"], \"deny\": [\"/p/link\"]", "symbolic link");
	check_refused(&works, "\"write\": [\"/p\"], \"deny\": [\"/p/dangling\"]", "symbolic link");
	check_veils("\"read\": [\"/p\"], \"deny\": [\"/p/to-a/b\"]", "p: a/ a/b-\n");
	check_veils("\"write\": [\"/p/a\"], \"deny\": [\"/home/to-p/b\"]", "p/a: b-\n");
	/* one that the cell could change, at the end of a chain */
	check_refused(&works, "\"write\": [\"/p\"], \"deny\": [\"/p/to-a/b\"]", "'/p/to-a'");
	check_refused(&works, "\"write\": [\"/p\"], \"deny\": [\"/home/to-p/b\"]", "'/p/to-a'");
}

static void check_shown(const char *files, const char *path, bool shown)
{
	struct vt_plan *made;
	struct vt_err err;

	if (plan_files(&works, files, &made, &err) < 0)
		fail_msg("%s", err.what);
	if (vt_plan_shows(made, path) != shown)
		fail_msg("%s: %s", files, path);
	vt_plan_free(made);
}

static void what_lies_in_a_deny_is_not_there(void **state)
{
	(void)state;
	check_shown("\"read\": [\"/p\"], \"deny\": [\"/p\"]", "/p", false);
	check_shown("\"write\": [\"/p/a\"], \"deny\": [\"/p\"]", "/p/a", false);
	check_shown("\"read\": [\"/p\", \"/p/a/b\"], \"deny\": [\"/p/a\"]", "/p/a/b/key", false);
	check_shown("\"read\": [\"/p\", \"/p/a/b\"], \"deny\": [\"/p/a\"]", "/p/.env", true);
	check_shown("\"deny\": [\"/usr\"]", "/usr/bin/id", false);
	check_shown("\"read\": [{\"from\": \"/p/a\", \"to\": \"/p/.git\"}, \"/p\"],"
		    " \"deny\": [\"/p/.env\"]",
		    "/p/.git/b/key", true);
	check_veils("\"read\": [\"/p\"], \"write\": [\"/p/a\"], \"deny\": [\"/p/a\"]", "p: a-\n");
	/* what is moved into a folder that is denied stays */
	check_shown(
		"\"read\": [\"/p\", {\"from\": \"/odd\", \"to\": \"/p/a\"}], \"deny\": [\"/p\"]",
		"/p/a/nfs", true);
}

static void work_is_done_where_the_cell_cannot_reach(void **state)
{
	struct vt_plan *made;
	struct vt_err err;
	const struct vt_veil *veil = NULL;

	(void)state;
	assert_int_equal(
		plan_files(&works, "\"write\": [\"/p/a\"], \"deny\": [\"/p/a/b\"]", &made, &err),
		0);
	for (size_t i = 0; i < made->build_count; i++)
		veil = made->builds[i].veil ? made->builds[i].veil : veil;
	assert_non_null(veil);
	assert_string_equal(veil->base, "/");
	assert_string_equal(veil->base_to_folder, "p/a");
	assert_string_equal(veil->base_to_work, "");
	assert_string_equal(veil->work_parent, "/");
	assert_int_equal(veil->base_ino, 1);
	assert_int_equal(made->work_count, 1);
	vt_plan_free(made);
	check_refused(&works, "\"write\": [\"/many\"], \"deny\": [\"/many/x\"]", "beside it");
}

static void what_cannot_hold_is_refused(void **state)
{
	struct vt_host none = works;

	(void)state;
	none.layer = NULL;
	check_refused(&none, "\"read\": [\"/p\"], \"deny\": [\"/p/.env\"]", "an overlay");
	check_refused(&works, "\"read\": [\"/odd/none\"], \"deny\": [\"/odd/none/x\"]", "a trial");
	check_refused(&works, "\"read\": [\"/odd/mounts\"], \"deny\": [\"/odd/mounts/x\"]",
		      "mounted in it");
	check_refused(&works, "\"write\": [\"/odd/nfs\"], \"deny\": [\"/odd/nfs/x\"]",
		      "for reading");
	check_veils("\"read\": [\"/odd/nfs\"], \"deny\": [\"/odd/nfs/x\"]", "odd/nfs: x\n");
	check_refused(&works, "\"read\": [\"/p\"], \"deny\": [\"/p/.env/x\"]", "no folder");
	check_refused(&works, "\"deny\": [\"/dev/null\"]", "/dev");
	check_refused(&works,
		      "\"read\": [\"/p\", {\"from\": \"/usr\", \"to\": \"/p/a\"}], \"deny\": "
		      "[\"/p/a\"]",
		      "denied by");
}

static void thousands_are_planned_quickly(void **state)
{
	static char files[1 << 19];
	size_t len = (size_t)snprintf(files, sizeof(files), "\"read\": [\"/many\"], \"deny\": [");
	struct vt_plan *made;
	struct vt_err err;
	int64_t begin = vt_clock_now();

	(void)state;
	for (int i = 0; i < 4000; i++)
		len += (size_t)snprintf(files + len, sizeof(files) - len, "%s\"/many/%d/x\"",
					i ? ", " : "", i);
	(void)snprintf(files + len, sizeof(files) - len, "]");
	assert_int_equal(plan_files(&works, files, &made, &err), 0);
	assert_int_equal(made->veiled_count, 4000);
	vt_plan_free(made);
	assert_true(vt_clock_now() - begin < 5 * VT_NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_closed_with_the_ways_to_them),
		cmocka_unit_test(what_is_not_there_is_closed_from_there_on),
		cmocka_unit_test(every_grant_that_shows_it_is_veiled),
		cmocka_unit_test(other_mounts_of_the_same_are_covered),
		cmocka_unit_test(links_mean_both_ends),
		cmocka_unit_test(what_lies_in_a_deny_is_not_there),
		cmocka_unit_test(work_is_done_where_the_cell_cannot_reach),
		cmocka_unit_test(what_cannot_hold_is_refused),
		cmocka_unit_test(thousands_are_planned_quickly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
