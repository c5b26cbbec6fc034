/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/policy.h"

/* Each test runs in a folder of its own, and names files relative to it. */
static char folder[] = "/tmp/vitro-load-XXXXXX";
static char home[4096];

static int enter(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	return !getcwd(home, sizeof(home)) || !mkdtemp(folder) || chdir(folder) < 0 ||
	       mkdir("sub", 0700) < 0;
}

static int leave(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return chdir(home) < 0 || system(command) != 0;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct vt_policy *loaded(const char *name)
{
	struct vt_policy *policy = NULL;
	struct vt_err err = { 0 };

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	if (vt_policy_load(policy, name, "--policy", &err) < 0)
		fail_msg("%s", err.what);
	return policy;
}

static void check_bad(const char *name, int num, const char *what)
{
	struct vt_policy *policy = NULL;
	struct vt_err err = { 0 };

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_policy_load(policy, name, "--policy", &err), -num);
	assert_string_equal(err.what, what);
	vt_policy_free(policy);
}

static void test_built_ins(void **state)
{
	struct vt_policy *policy = loaded("default");

	(void)state;
	assert_int_equal(policy->given, 0);
	vt_policy_free(policy);
	policy = loaded("strict");
	assert_int_equal(policy->syscalls, VT_SYSCALLS_STRICT);
	assert_int_equal(policy->require, VT_REQUIRE_STRICT);
	assert_int_equal(policy->env.pass.count, 0);
	vt_policy_free(policy);
	policy = loaded("compute");
	assert_int_equal(policy->network, VT_NETWORK_NONE);
	assert_int_equal(policy->files.read.count, 0);
	assert_int_equal(policy->files.write.count, 0);
	vt_policy_free(policy);
	/* A file does not shadow a built-in unless it is named as a file. */
	put("strict", "{\"limits\": {\"pids\": 3}}");
	policy = loaded("strict");
	assert_int_equal(policy->limits.pids, 256);
	vt_policy_free(policy);
	policy = loaded("./strict");
	assert_int_equal(policy->limits.pids, 3);
	vt_policy_free(policy);
}

static void test_extends_comes_first(void **state)
{
	char path[64];

	(void)state;
	put("base.json", "{\"extends\": \"strict\", \"limits\": {\"pids\": 5, \"wall_ms\": 5},"
			 " \"files\": {\"read\": [\"r\"]}}");
	put("sub/p.json",
	    "{\"limits\": {\"pids\": 6}, \"extends\": \"../base.json\","
	    " \"files\": {\"read\": [\"r\", \"../s\"]}, \"env\": {\"pass\": [\"A\"]}}");
	struct vt_policy *policy = loaded("sub/p.json");

	assert_int_equal(policy->limits.pids, 6);
	assert_int_equal(policy->limits.wall_ms, 5);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_STRICT);
	assert_int_equal(policy->env.pass.count, 1);
	assert_int_equal(policy->files.read.count, 3);
	snprintf(path, sizeof(path), "%s/r", folder);
	assert_string_equal(policy->files.read.items[0].from, path);
	assert_string_equal(policy->files.read.items[0].origin,
			    "files.read[0] of sub/../base.json");
	snprintf(path, sizeof(path), "%s/sub/r", folder);
	assert_string_equal(policy->files.read.items[1].from, path);
	snprintf(path, sizeof(path), "%s/s", folder);
	assert_string_equal(policy->files.read.items[2].from, path);
	vt_policy_free(policy);
}

/* Through a linked folder, ".." of a path is that of the folder itself. */
static void test_paths_follow_the_real_folder(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(mkdir("sub/deep", 0700), 0);
	assert_int_equal(symlink("sub/deep", "link"), 0);
	put("sub/deep/p.json", "{\"files\": {\"read\": [\"../x\"]}}");
	struct vt_policy *policy = loaded("link/p.json");

	snprintf(path, sizeof(path), "%s/sub/x", folder);
	assert_string_equal(policy->files.read.items[0].from, path);
	vt_policy_free(policy);
}

static void test_text_extends_too(void **state)
{
	struct vt_policy *policy = NULL;
	struct vt_err err;
	const char *text = "{\"extends\": \"a.json\"}";

	(void)state;
	put("a.json", "{\"limits\": {\"pids\": 9}}");
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_policy_load_text(policy, text, strlen(text), folder, "text", &err), 0);
	assert_int_equal(policy->limits.pids, 9);
	assert_int_equal(vt_policy_load_text(policy, text, strlen(text), NULL, "text", &err),
			 -EINVAL);
	assert_string_equal(err.what, "text: extends: 'a.json' is relative, and there is no folder "
				      "it could be relative to");
	vt_policy_free(policy);
}

/* A part of a file is relative to it, and has it among its sources. */
static void test_part_of_a_file(void **state)
{
	static const char text[] = "{\"extends\": \"a.json\", \"files\": {\"read\": [\"x\"]}}";
	struct vt_policy *policy = NULL;
	struct vt_err err;
	char path[200];

	(void)state;
	put("sub/a.json", "{\"limits\": {\"pids\": 9}}");
	put("sub/tools.json", "no policy, and not looked into");
	snprintf(path, sizeof(path), "%s/sub/tools.json", folder);
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_policy_load_part(policy, text, strlen(text), path, "part", &err), 0);
	assert_int_equal(policy->limits.pids, 9);
	assert_int_equal(policy->sources.count, 2);
	assert_string_equal(policy->sources.items[0], path);
	snprintf(path, sizeof(path), "%s/sub/x", folder);
	assert_string_equal(policy->files.read.items[0].from, path);
	snprintf(path, sizeof(path), "%s/sub/a.json", folder);
	assert_string_equal(policy->sources.items[1], path);
	vt_policy_free(policy);
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_policy_load_part(policy, "{}", 2, "sub/tools.json", "part", &err),
			 -EINVAL);
	assert_string_equal(err.what, "part: 'sub/tools.json' must be an absolute path");
	assert_int_equal(vt_policy_load_part(policy, "{}", 2, "/no/such", "part", &err), -ENOENT);
	vt_policy_free(policy);
}

static void test_circles(void **state)
{
	(void)state;
	put("self.json", "{\"extends\": \"self.json\"}");
	check_bad("self.json", ELOOP,
		  "self.json: extends: goes round in a circle: self.json -> self.json");
	put("a.json", "{\"extends\": \"./b.json\"}");
	put("b.json", "{\"extends\": \"c.json\"}");
	put("c.json", "{\"extends\": \"sub/../a.json\"}");
	check_bad("a.json", ELOOP,
		  "./c.json: extends: goes round in a circle: "
		  "a.json -> ./b.json -> ./c.json -> ./sub/../a.json");
	assert_int_equal(symlink("d.json", "e.json"), 0);
	put("d.json", "{\"extends\": \"e.json\"}");
	check_bad("d.json", ELOOP, "d.json: extends: goes round in a circle: d.json -> e.json");
}

static void test_depth_is_bounded(void **state)
{
	char path[16], text[64];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "p%d", i);
		snprintf(text, sizeof(text), "{\"extends\": \"p%d\"}", i + 1);
		put(path, i == 19 ? "{}" : text);
	}
	vt_policy_free(loaded("p3"));
	check_bad("p2", ELOOP, "p18: extends: more than 16 policies extend one another");
}

static void test_missing_and_unreadable(void **state)
{
	(void)state;
	check_bad("strickt", ENOENT,
		  "--policy: there is no file 'strickt', nor a built-in policy of that name "
		  "(default, strict, compute); did you mean strict?");
	check_bad("{\"network\": \"none\"}", ENOENT,
		  "--policy: JSON is to be in a file, and its name here; for what is piped in: "
		  "/dev/stdin");
	check_bad("-", ENOENT, "--policy: there is no file '-'; standard input is /dev/stdin");
	put("p.json", "{\"extends\": \"gone.json\"}");
	check_bad("p.json", ENOENT,
		  "p.json: extends: there is no file 'gone.json', nor a built-in policy of that "
		  "name (default, strict, compute)");
	check_bad("sub", EISDIR, "--policy: 'sub' is a folder, not a file");
	check_bad("", EINVAL, "--policy: the path is empty");
	check_bad("a\nb", EINVAL, "--policy: 'a\\nb' has a control character in it");
	put("p.json", "{\"extends\": \"~/base.json\"}");
	check_bad("p.json", EINVAL,
		  "p.json: extends: '~/base.json': the shell knows what ~ is, a policy does not; "
		  "write the whole path");
	put("p.json", "{\"extends\": \"\"}");
	check_bad("p.json", EINVAL, "p.json: extends: the path is empty");
	put("p.json", "");
	check_bad("p.json", EINVAL, "p.json: it is empty; the policy of defaults is {}");
	put("p.json", " \r\n\t");
	check_bad("p.json", EINVAL, "p.json: it is empty; the policy of defaults is {}");
	assert_int_equal(symlink("loop", "loop"), 0);
	check_bad("loop", ELOOP, "--policy: 'loop': Too many levels of symbolic links");
}

static void test_errors_name_their_file_and_line(void **state)
{
	char deep[5000];

	(void)state;
	put("base.json", "{\n  \"limits\": {\n    \"pids\": 5,\n  }\n}");
	put("p.json", "{\"extends\": \"base.json\"}");
	check_bad("p.json", EINVAL,
		  "base.json:4:3: string or '}' expected near '}'; JSON has no comma after the "
		  "last item");
	put("base.json", "{\"limits\": {\"pids\": 0}}");
	check_bad("p.json", ERANGE, "base.json: limits.pids: 0 is out of range (1 to 4000000)");
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	put("base.json", deep);
	check_bad("p.json", EINVAL, "base.json:1:2049: nested too deeply");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_built_ins, enter, leave),
		cmocka_unit_test_setup_teardown(test_extends_comes_first, enter, leave),
		cmocka_unit_test_setup_teardown(test_paths_follow_the_real_folder, enter, leave),
		cmocka_unit_test_setup_teardown(test_text_extends_too, enter, leave),
		cmocka_unit_test_setup_teardown(test_part_of_a_file, enter, leave),
		cmocka_unit_test_setup_teardown(test_circles, enter, leave),
		cmocka_unit_test_setup_teardown(test_depth_is_bounded, enter, leave),
		cmocka_unit_test_setup_teardown(test_missing_and_unreadable, enter, leave),
		cmocka_unit_test_setup_teardown(test_errors_name_their_file_and_line, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
