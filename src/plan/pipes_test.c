/* SPDX-License-Identifier: Apache-2.0 */
/* Folders for reading on an invented host: which of them are veiled for the pipes in them. */
#include "plan/invented_test.h"

static const struct invented machine[] = {
	{ "/dev/full", S_IFCHR | 0666 },   { "/dev/null", S_IFCHR | 0666 },
	{ "/dev/random", S_IFCHR | 0666 }, { "/dev/urandom", S_IFCHR | 0666 },
	{ "/dev/zero", S_IFCHR | 0666 },   { "/usr", S_IFDIR | 0755 },
	{ "/tmp", S_IFDIR | 01777 },       { "/tmp/a", S_IFDIR | 0750 },
	{ "/tmp/a/b", S_IFDIR | 0750 },    { "/tmp/a/key", S_IFREG | 0600 },
	{ "/tmp/file", S_IFREG | 0644 },   { "/tmp/mounts", S_IFDIR | 0755 },
	{ "/tmp/none", S_IFDIR | 0755 },   { "/p", S_IFDIR | 0755 },
	{ "/p/sub", S_IFDIR | 0755 },      { "/q", S_IFDIR | 0755 },
};

static int layer(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer *ret_layer)
{
	(void)host;
	(void)seen;
	*ret_layer = (struct vt_layer){
		.overlay = { strcmp(path, "/tmp/none") == 0 ? EINVAL : 0, "a trial" },
		.submounts = strcmp(path, "/tmp/mounts") == 0,
	};
	return 0;
}

#define HOST                                                                                       \
	.uid = 1000, .gid = 1000, .seccomp = { 0, "a trial" }, .cpus = 4, .proc = true,            \
	.scratch = "/tmp", .cgroup = { .why = "none" }, .context = MACHINE(machine), .look = look, \
	.step = step

static const struct vt_host works = { HOST, .layer = layer, .userns = { 0, "a trial" },
				      .landlock_abi = 7 };
static const struct vt_host no_landlock = { HOST, .layer = layer, .userns = { 0, "a trial" },
					    .landlock_err = ENOSYS };
static const struct vt_host no_overlay = { HOST, .userns = { 0, "a trial" }, .landlock_abi = 7 };
static const struct vt_host bare = { HOST, .layer = layer, .userns = { EPERM, "a trial" },
				     .landlock_abi = 7 };

static struct vt_plan *plan(const struct vt_host *host, const char *files)
{
	struct vt_plan *made;
	struct vt_err err;

	if (plan_files(host, files, &made, &err) < 0)
		fail_msg("%s", err.what);
	return made;
}

static bool notes(const struct vt_plan *made, const char *text)
{
	for (size_t i = 0; i < made->note_count; i++)
		if (strstr(made->notes[i], text))
			return true;
	return false;
}

/* The places of veils, each after a space; and what the plan says of pipes that nothing keeps
 * apart. */
static void check_veils(const struct vt_host *host, const char *files, const char *wanted,
			const char *open)
{
	struct vt_plan *made = plan(host, files);
	const char *note = made->holdings[VT_PROPERTY_FILES].note;
	char text[512] = "";
	size_t count = 0;

	for (size_t i = 0; i < made->build_count; i++) {
		if (!made->builds[i].veil)
			continue;
		strcat(strcat(text, " "), made->builds[i].to);
		assert_int_equal(made->builds[i].veil->work, -1);
		count++;
	}
	assert_string_equal(text, wanted);
	assert_int_equal(made->veil_count, count);
	assert_int_equal(made->holdings[VT_PROPERTY_FILES].grade, VT_GRADE_KERNEL);
	assert_int_equal(notes(made, "keeps the host's named pipes apart"), made->veiled_pipes);
	assert_int_equal(strstr(note, "named pipes") != NULL, open != NULL);
	if (open)
		assert_non_null(strstr(note, open));
	vt_plan_free(made);
}

static void landlock_is_enough_elsewhere(void **state)
{
	(void)state;
	check_veils(&works, "", "", NULL);
	check_veils(&works, "\"read\": [\"/p\", \"/q\"], \"write\": [\"/tmp/a\"]", "", NULL);
	/* a place that is not in the private /tmp, though the folder is in the host's */
	check_veils(&works, "\"read\": [{\"from\": \"/tmp/a\", \"to\": \"/project\"}]", "", NULL);
	check_veils(&works, "\"read\": [\"/tmp\"]", "", NULL);
}

static void rights_of_a_parent_reach_down(void **state)
{
	(void)state;
	check_veils(&works, "\"read\": [\"/tmp/a\"]", " tmp/a", NULL);
	check_veils(&works, "\"read\": [{\"from\": \"/p\", \"to\": \"/tmp/deep/p\"}]",
		    " tmp/deep/p", NULL);
	check_veils(&works,
		    "\"write\": [\"/p\"], \"read\": [{\"from\": \"/q\", \"to\": \"/p/sub\"}]",
		    " p/sub", NULL);
	/* in one for reading that lies in one for writing */
	check_veils(
		&works,
		"\"read\": [\"/tmp/a\", {\"from\": \"/q\", \"to\": \"/tmp/a/b\"}, \"/tmp/file\"]",
		" tmp/a tmp/a/b", NULL);
}

/* Of grants inside each other the inner one counts, and rights reach down to it. */
static void the_inner_grant_counts(void **state)
{
	(void)state;
	check_veils(&works, "\"write\": [\"/p\"], \"read\": [\"/p/sub\"]", " p/sub", NULL);
	check_veils(&works, "\"write\": [\"/p\"], \"read\": [\"/p\"]", "", NULL);
	check_veils(&works, "\"read\": [\"/p\"], \"write\": [\"/p/sub\"]", "", NULL);
}

static void a_deny_does_as_well(void **state)
{
	struct vt_plan *made = plan(&works, "\"read\": [\"/tmp/a\"], \"deny\": [\"/tmp/a/key\"]");

	(void)state;
	assert_int_equal(made->veil_count, 1);
	assert_int_equal(made->veiled_count, 1);
	assert_false(made->veiled_pipes);
	vt_plan_free(made);
}

static void without_landlock_all_are(void **state)
{
	(void)state;
	check_veils(&no_landlock, "", " usr", NULL);
	check_veils(&no_landlock,
		    "\"read\": [\"/p\", \"/tmp/a\", \"/tmp/file\"], \"write\": [\"/q\"]",
		    " p tmp/a usr", NULL);
}

static void what_cannot_be_kept_apart_is_said(void **state)
{
	(void)state;
	check_veils(&works, "\"read\": [\"/tmp/a\", \"/tmp/mounts\"]", " tmp/a",
		    "as in '/tmp/mounts', can be written to: no overlay of it can be had (other "
		    "file systems");
	check_veils(&works, "\"read\": [\"/tmp/none\"]", "", "(Invalid argument)");
	check_veils(&no_overlay, "\"read\": [\"/tmp/a\"]", "", "(Function not implemented)");
	check_veils(&no_overlay, "\"read\": [\"/p\"]", "", NULL);
}

/* Its rules are about the host's paths, and none of them lies in its private folder. */
static void a_bare_cell_has_none(void **state)
{
	struct vt_plan *made = plan(&bare, "\"read\": [\"/tmp/a\"]");

	(void)state;
	assert_int_equal(made->veil_count, 0);
	assert_null(made->open_pipes);
	vt_plan_free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(landlock_is_enough_elsewhere),
		cmocka_unit_test(rights_of_a_parent_reach_down),
		cmocka_unit_test(the_inner_grant_counts),
		cmocka_unit_test(a_deny_does_as_well),
		cmocka_unit_test(without_landlock_all_are),
		cmocka_unit_test(what_cannot_be_kept_apart_is_said),
		cmocka_unit_test(a_bare_cell_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
