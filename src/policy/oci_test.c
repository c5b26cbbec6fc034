/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as text: what is read from them, and what is said about those that are wrong. */
#include "policy/oci.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "policy/policy.h"

static struct vt_arena *arena;

static int parse(const char *text, const struct vt_oci_profile **ret_profile, struct vt_err *err)
{
	AUTO_JSON json_t *root = NULL;
	int status = vt_json_load_text(text, strlen(text), "p.json", &root, err);

	return status < 0 ? status : vt_oci_parse(arena, root, "p.json", ret_profile, err);
}

static const struct vt_oci_profile *parsed(const char *text)
{
	const struct vt_oci_profile *profile = NULL;
	struct vt_err err = { 0 };

	if (parse(text, &profile, &err) < 0)
		fail_msg("%s", err.what);
	return profile;
}

static void test_a_whole_profile(void **state)
{
	const struct vt_oci_profile *profile = parsed(
		"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38,"
		" \"architectures\": [\"SCMP_ARCH_X86_64\"], \"flags\": "
		"[\"SECCOMP_FILTER_FLAG_LOG\"],"
		" \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\", \"subArchitectures\": "
		"[]}],"
		" \"listenerPath\": \"\", \"syscalls\": [{\"names\": [\"read\", \"write\"],"
		" \"action\": \"SCMP_ACT_ALLOW\", \"args\": null, \"comment\": \"\","
		" \"includes\": {}, \"excludes\": {\"caps\": [\"CAP_X\"]}},"
		" {\"name\": \"clone\", \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 0,"
		" \"args\": [{\"index\": 5, \"value\": 4294967295, \"valueTwo\": 7,"
		" \"op\": \"SCMP_CMP_MASKED_EQ\"}],"
		" \"includes\": {\"caps\": [], \"arches\": [\"amd64\"], \"minKernel\": "
		"\"4.8\"}}]}");
	const struct vt_oci_rule *rules = profile->rules;

	(void)state;
	assert_string_equal(profile->path, "p.json");
	assert_int_equal(profile->fallback.action, VT_OCI_ERRNO);
	assert_int_equal(profile->fallback.num, 38);
	assert_int_equal(profile->rule_count, 2);
	assert_int_equal(rules[0].name_count, 2);
	assert_string_equal(rules[0].names[1], "write");
	assert_int_equal(rules[0].verdict.action, VT_OCI_ALLOW);
	assert_int_equal(rules[0].arg_count, 0);
	assert_true(rules[0].excludes.caps && !rules[0].includes.caps);
	assert_string_equal(rules[1].names[0], "clone");
	assert_int_equal(rules[1].verdict.num, 0);
	assert_int_equal(rules[1].args[0].index, 5);
	assert_int_equal(rules[1].args[0].op, VT_OCI_MASKED_EQ);
	assert_int_equal(rules[1].args[0].value, 4294967295);
	assert_int_equal(rules[1].args[0].value_two, 7);
	assert_false(rules[1].includes.caps);
	assert_string_equal(rules[1].includes.arches[0], "amd64");
	assert_true(rules[1].includes.kernel);
	assert_int_equal(rules[1].includes.major, 4);
	assert_int_equal(rules[1].includes.minor, 8);
}

static void test_errnos(void **state)
{
	const struct vt_oci_profile *profile;

	(void)state;
	assert_int_equal(parsed("{\"defaultAction\": \"SCMP_ACT_ERRNO\"}")->fallback.num, EPERM);
	/* Podman's, by name, which is the stronger. */
	profile = parsed("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 1,"
			 " \"defaultErrno\": \"ENOSYS\", \"syscalls\": [{\"names\": [\"read\"],"
			 " \"action\": \"SCMP_ACT_ERRNO\", \"errno\": \"EINVAL\"}]}");
	assert_int_equal(profile->fallback.num, ENOSYS);
	assert_int_equal(profile->rules[0].verdict.num, EINVAL);
}

static void test_actions(void **state)
{
	static const struct {
		const char *word;
		enum vt_oci_action action;
	} rows[] = {
		{ "ALLOW", VT_OCI_ALLOW },
		{ "LOG", VT_OCI_LOG },
		{ "ERRNO", VT_OCI_ERRNO },
		{ "TRAP", VT_OCI_TRAP },
		{ "KILL", VT_OCI_KILL_THREAD },
		{ "KILL_THREAD", VT_OCI_KILL_THREAD },
		{ "KILL_PROCESS", VT_OCI_KILL_PROCESS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[100];

		(void)snprintf(text, sizeof(text), "{\"defaultAction\": \"SCMP_ACT_%s\"}",
			       rows[i].word);
		assert_int_equal(parsed(text)->fallback.action, rows[i].action);
	}
}

#define BEGIN         "{\"defaultAction\": \"SCMP_ACT_ALLOW\", "
#define RULE(members) BEGIN "\"syscalls\": [{\"names\": [\"read\"], " members "}]}"
#define ARG(members)  RULE("\"action\": \"SCMP_ACT_TRAP\", \"args\": [{" members "}]")

static const struct {
	const char *text, *says;
} wrongs[] = {
	{ "[]", "p.json: found a list" },
	{ "{}", "p.json: defaultAction: is missing" },
	{ "{\"defaultAction\": \"ALLOW\"}", "p.json: defaultAction: 'ALLOW' is not known" },
	{ "{\"defaultAction\": 1}", "defaultAction: found the number 1" },
	{ "{\"defaultAction\": \"SCMP_ACT_NOTIFY\"}", "defaultAction: SCMP_ACT_NOTIFY needs" },
	{ "{\"defaultAction\": \"SCMP_ACT_TRACE\"}", "defaultAction: SCMP_ACT_TRACE needs" },
	{ BEGIN "\"defaultErrnoRet\": 1}", "defaultErrnoRet: only SCMP_ACT_ERRNO" },
	{ BEGIN "\"listenerPath\": \"/x\"}", "listenerPath: vitro has no listener" },
	{ BEGIN "\"flags\": [\"X\"]}", "flags: 'X' is not known" },
	{ BEGIN "\"architectures\": [\"x86\"]}", "architectures: 'x86' is not known" },
	{ BEGIN "\"archMap\": {}}", "archMap: found an object" },
	{ BEGIN "\"syscals\": []}", "p.json: unknown key 'syscals'" },
	{ BEGIN "\"syscalls\": {}}", "syscalls: found an object" },
	{ BEGIN "\"syscalls\": [1]}", "syscalls[0]: found the number 1" },
	{ BEGIN "\"syscalls\": [], \"syscalls\": []}", "duplicate" },
	{ BEGIN "\"syscalls\": [{\"action\": \"SCMP_ACT_TRAP\"}]}",
	  "syscalls[0]: has no \"names\"" },
	{ RULE("\"name\": \"read\", \"action\": \"SCMP_ACT_TRAP\""),
	  "both \"name\" and \"names\"" },
	{ BEGIN "\"syscalls\": [{\"names\": [\"a b\"], \"action\": \"SCMP_ACT_TRAP\"}]}",
	  "syscalls[0].names: 'a b' cannot be" },
	{ BEGIN "\"syscalls\": [{\"names\": [\"a\", 1], \"action\": \"SCMP_ACT_TRAP\"}]}",
	  "syscalls[0].names[1]: found the number 1" },
	{ RULE("\"comment\": \"\""), "syscalls[0].action: is missing" },
	{ RULE("\"action\": \"SCMP_ACT_NOTIFY\""), "syscalls[0].action: SCMP_ACT_NOTIFY needs" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"errnoRet\": 1"), "syscalls[0].errnoRet: only" },
	{ RULE("\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 4096"), "from 0 to 4095" },
	{ RULE("\"action\": \"SCMP_ACT_ERRNO\", \"errno\": \"EFOO\""), "'EFOO' is no errno" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"arg\": []"), "syscalls[0]: unknown key 'arg'" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"args\": {}"),
	  "syscalls[0].args: found an object" },
	{ ARG("\"index\": 0"), "syscalls[0].args[0].value: is missing" },
	{ ARG("\"index\": 6, \"value\": 0, \"op\": \"SCMP_CMP_EQ\""),
	  "syscalls[0].args[0].index: found the number 6" },
	{ ARG("\"index\": 0, \"value\": -1, \"op\": \"SCMP_CMP_EQ\""), "args[0].value: found" },
	{ ARG("\"index\": 0, \"value\": 0.5, \"op\": \"SCMP_CMP_EQ\""), "args[0].value: found" },
	{ ARG("\"index\": 0, \"value\": 0, \"op\": \"EQ\""), "args[0].op: 'EQ' is not known" },
	{ ARG("\"index\": 0, \"value\": 0, \"op\": \"SCMP_CMP_EQ\", \"x\": 1"), "unknown key 'x'" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"includes\": {\"minKernel\": \"4\"}"),
	  "syscalls[0].includes.minKernel: found the string \"4\"" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"includes\": {\"minKernel\": \"4.8-rc1\"}"),
	  "minKernel: found" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"excludes\": {\"cap\": []}"),
	  "syscalls[0].excludes: unknown key 'cap'" },
	{ RULE("\"action\": \"SCMP_ACT_TRAP\", \"excludes\": {\"arches\": [1]}"),
	  "syscalls[0].excludes.arches[0]: found the number 1" },
};

static void test_what_is_wrong_is_said(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		const struct vt_oci_profile *profile = NULL;
		struct vt_err err = { 0 };

		if (parse(wrongs[i].text, &profile, &err) == 0)
			fail_msg("taken: %s", wrongs[i].text);
		assert_null(profile);
		assert_int_equal(err.step, VT_STEP_POLICY);
		if (!strstr(err.what, wrongs[i].says))
			fail_msg("%s: '%s' is not in: %s", wrongs[i].text, wrongs[i].says,
				 err.what);
	}
}

/* A file beside the policy, by which the field is set. */
static void write_profile(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs("{\"defaultAction\": \"SCMP_ACT_ALLOW\"}", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_a_policy_names_a_profile(void **state)
{
	char folder[] = "/tmp/vitro-oci-test-XXXXXX", path[64];
	const char *by_file = "{\"syscalls\": \"p.json\"}";
	struct vt_policy *policy;
	struct vt_err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/p.json", folder);
	write_profile(path);
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(
		vt_policy_load_text(policy, by_file, strlen(by_file), folder, "x.json", &err), 0);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_PROFILE);
	assert_string_equal(policy->profile->path, path);
	/* A word takes its place again, and a flag's path is relative to the caller's folder. */
	assert_int_equal(vt_policy_set(policy, "syscalls", "strict", "/", "--set", &err), 0);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_STRICT);
	assert_int_equal(vt_policy_set(policy, "syscalls", "./p.json", folder, "--set", &err), 0);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_PROFILE);
	assert_int_equal(vt_policy_set(policy, "syscalls", "q.json", folder, "--set", &err),
			 -ENOENT);
	assert_non_null(strstr(err.what, "q.json"));
	assert_int_equal(vt_policy_set(policy, "syscalls", "lax", folder, "--set", &err), -EINVAL);
	assert_non_null(strstr(err.what, "'lax' is not known"));
	assert_non_null(strstr(err.what, "OCI seccomp profile"));
	vt_policy_free(policy);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Adds so many of an item to a list in text. */
static void repeat(char *text, const char *item, int count)
{
	char *end = text + strlen(text);

	for (int i = 0; i < count; i++)
		end += sprintf(end, "%s%s", i ? ", " : "", item);
}

/* What compiling costs is bounded, whoever wrote the profile. */
static void test_bounds(void **state)
{
	static const struct {
		int rules, names, args;
		const char *says; /* NULL: it is within the bounds */
	} rows[] = {
		{ 1024, 4, 0, NULL },
		{ 1, 1024, 16, NULL },
		{ 1025, 1, 0, "syscalls: more than 1024 rules" },
		{ 1, 1025, 0, "syscalls[0].names: more than 1024 entries" },
		{ 5, 1024, 0, "syscalls[4].names: more than 4096 names in all" },
		{ 1, 1, 17, "syscalls[0].args: more than 16 conditions" },
	};
	char *rule = malloc(1 << 20), *text = malloc(1 << 20);

	(void)state;
	assert_true(rule && text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vt_oci_profile *profile;
		struct vt_err err = { 0 };

		strcpy(rule, "{\"action\": \"SCMP_ACT_ALLOW\", \"names\": [");
		repeat(rule, "\"read\"", rows[i].names);
		strcat(rule, "], \"args\": [");
		repeat(rule, "{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}", rows[i].args);
		strcat(rule, "]}");
		strcpy(text, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [");
		repeat(text, rule, rows[i].rules);
		strcat(text, "]}");
		assert_int_equal(parse(text, &profile, &err), rows[i].says ? -E2BIG : 0);
		if (rows[i].says)
			assert_non_null(strstr(err.what, rows[i].says));
	}
	free(rule);
	free(text);
}

static int set_up(void **state)
{
	(void)state;
	arena = vt_arena_new();
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	vt_arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_profile),
		cmocka_unit_test(test_errnos),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_what_is_wrong_is_said),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_a_policy_names_a_profile),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
