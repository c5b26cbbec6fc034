/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/value.h"

static struct vt_policy *fresh(void)
{
	struct vt_policy *policy = NULL;
	struct vt_err err;

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	return policy;
}

static void must_load(struct vt_policy *policy, const char *text)
{
	struct vt_err err = { 0 };
	int status = vt_policy_load_text(policy, text, strlen(text), "/base", "p.json", &err);

	if (status < 0)
		fail_msg("%s", err.what);
}

static void must_set(struct vt_policy *policy, const char *key, const char *text)
{
	struct vt_err err = { 0 };

	if (vt_policy_set(policy, key, text, "/cwd", "--flag", &err) < 0)
		fail_msg("%s", err.what);
}

static void check_message(const struct vt_err *err, int status, const char *what)
{
	assert_int_equal(status, -err->num);
	assert_int_equal(err->step, VT_STEP_POLICY);
	assert_string_equal(err->what, what);
}

static void check_bad_text(const char *text, const char *what)
{
	struct vt_policy *policy = fresh();
	struct vt_err err = { 0 };
	int status = vt_policy_load_text(policy, text, strlen(text), "/base", "p.json", &err);

	assert_true(status < 0);
	check_message(&err, status, what);
	vt_policy_free(policy);
}

static void check_bad_flag(const char *key, const char *text, const char *what)
{
	struct vt_policy *policy = fresh();
	struct vt_err err = { 0 };
	int status = vt_policy_set(policy, key, text, "/cwd", "--flag", &err);

	assert_true(status < 0);
	check_message(&err, status, what);
	vt_policy_free(policy);
}

static void check_strings(const struct vt_strings *list, const char *joined)
{
	char text[400] = "";

	for (size_t i = 0; i < list->count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, list->items[i]);
	}
	assert_string_equal(text, joined);
}

static void test_defaults(void **state)
{
	struct vt_policy *policy = fresh();

	(void)state;
	assert_int_equal(policy->limits.wall_ms, 30000);
	assert_int_equal(policy->limits.grace_ms, 0);
	assert_int_equal(policy->limits.cpu_ms, -1);
	assert_true(policy->limits.cpus == -1);
	assert_int_equal(policy->limits.memory_mb, 512);
	assert_int_equal(policy->limits.pids, 256);
	assert_int_equal(policy->limits.stderr_kb, 1024);
	assert_int_equal(policy->limits.queue_ms, 30000);
	assert_int_equal(policy->limits.result_mb, 64);
	assert_int_equal(policy->files.read.count, 0);
	assert_int_equal(policy->files.write.count, 0);
	assert_int_equal(policy->files.deny.count, 0);
	assert_int_equal(policy->files.sockets.count, 0);
	assert_string_equal(policy->files.cwd, "/tmp");
	assert_int_equal(policy->network, VT_NETWORK_NONE);
	check_strings(&policy->env.pass, "LANG LC_ALL TZ");
	assert_int_equal(policy->env.set.count, 0);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_DEFAULT);
	assert_int_equal(policy->require, VT_REQUIRE_FULL);
	assert_int_equal(policy->given, 0);
	vt_policy_free(policy);
	vt_policy_free(NULL);
}

static void test_a_whole_policy(void **state)
{
	struct vt_policy *policy = fresh();

	(void)state;
	must_load(policy,
		  "{\"$schema\": \"x\","
		  " \"limits\": {\"wall_ms\": 500, \"grace_ms\": \"0.5s\", \"cpu_ms\": 1.5,"
		  "  \"cpus\": 2, \"memory_mb\": \"1.5G\", \"pids\": 7.0, \"stdout_kb\": 0},"
		  " \"files\": {\"read\": [\"a\", {\"from\": \"../b\", \"to\": \"/data/\"}],"
		  "  \"write\": [\"/w\", \"/w\"], \"deny\": [\"a/.env\"], \"cwd\": \"a\","
		  "  \"sockets\": [\"/run/s\", \"a/s\"]},"
		  " \"network\": \"host\", \"syscalls\": \"strict\","
		  " \"env\": {\"pass\": [\"HOME\"], \"set\": {\"A\": \"x=y\\nz\", \"B\": \"\"}},"
		  " \"require\": \"best-effort\"}");
	assert_int_equal(policy->limits.wall_ms, 500);
	assert_int_equal(policy->limits.grace_ms, 500);
	assert_int_equal(policy->limits.cpu_ms, 2);
	assert_true(policy->limits.cpus == 2);
	assert_int_equal(policy->limits.memory_mb, 1536);
	assert_int_equal(policy->limits.pids, 7);
	assert_int_equal(policy->limits.stdout_kb, 0);
	assert_int_equal(policy->files.read.count, 2);
	assert_string_equal(policy->files.read.items[0].from, "/base/a");
	assert_string_equal(policy->files.read.items[0].to, "/base/a");
	assert_string_equal(policy->files.read.items[0].origin, "files.read[0] of p.json");
	assert_string_equal(policy->files.read.items[1].from, "/b");
	assert_string_equal(policy->files.read.items[1].to, "/data");
	assert_int_equal(policy->files.write.count, 2);
	assert_string_equal(policy->files.deny.items[0].from, "/base/a/.env");
	assert_string_equal(policy->files.deny.items[0].to, "/base/a/.env");
	assert_int_equal(policy->files.sockets.count, 2);
	assert_string_equal(policy->files.sockets.items[1].from, "/base/a/s");
	assert_string_equal(policy->files.sockets.items[1].to, "/base/a/s");
	assert_string_equal(policy->files.sockets.items[1].origin, "files.sockets[1] of p.json");
	assert_string_equal(policy->files.cwd, "/base/a");
	assert_int_equal(policy->network, VT_NETWORK_HOST);
	assert_int_equal(policy->syscalls, VT_SYSCALLS_STRICT);
	assert_int_equal(policy->require, VT_REQUIRE_BEST_EFFORT);
	check_strings(&policy->env.pass, "HOME");
	check_strings(&policy->env.set, "A=x=y\nz B=");
	assert_true(vt_policy_gave(policy, VT_FIELD_LIMITS_STDOUT_KB));
	assert_false(vt_policy_gave(policy, VT_FIELD_LIMITS_STDERR_KB));
	vt_policy_free(policy);
}

static void test_merging(void **state)
{
	struct vt_policy *policy = fresh();

	(void)state;
	must_load(policy,
		  "{\"limits\": {\"pids\": 5, \"cpu_ms\": 9}, \"files\": {\"read\": [\"/a\"]},"
		  " \"env\": {\"pass\": [], \"set\": {\"A\": \"1\", \"B\": \"1\"}}}");
	assert_true(vt_policy_gave(policy, VT_FIELD_ENV_PASS));
	check_strings(&policy->env.pass, "");
	must_load(policy,
		  "{\"limits\": {\"cpu_ms\": null}, \"files\": {\"read\": [\"/b\", \"/c\"]},"
		  " \"env\": {\"pass\": [\"X\"], \"set\": {\"A\": \"2\"}}}");
	must_set(policy, "limits.pids", "6");
	must_set(policy, "files.read", "d");
	must_set(policy, "files.read", "[\"/e\", {\"from\": \"/f\", \"to\": \"/g\"}]");
	must_set(policy, "files.read", "{\"from\": \"h\", \"to\": \"/i\"}");
	must_set(policy, "env.set", "C=3");
	must_set(policy, "env.set", "{\"B\": \"4\"}");
	assert_int_equal(policy->limits.pids, 6);
	assert_int_equal(policy->limits.cpu_ms, -1);
	assert_true(vt_policy_gave(policy, VT_FIELD_LIMITS_CPU_MS));
	assert_int_equal(policy->files.read.count, 7);
	assert_string_equal(policy->files.read.items[2].from, "/c");
	assert_string_equal(policy->files.read.items[3].from, "/cwd/d");
	assert_string_equal(policy->files.read.items[3].origin, "--flag");
	assert_string_equal(policy->files.read.items[5].to, "/g");
	assert_string_equal(policy->files.read.items[6].from, "/cwd/h");
	check_strings(&policy->env.pass, "X");
	check_strings(&policy->env.set, "A=2 B=4 C=3");
	vt_policy_free(policy);
}

static void test_passing_variables(void **state)
{
	struct vt_policy *policy = fresh();

	(void)state;
	must_set(policy, "env.set", "TOKEN");
	check_strings(&policy->env.pass, "LANG LC_ALL TZ TOKEN");
	assert_true(vt_policy_gave(policy, VT_FIELD_ENV_PASS));
	assert_false(vt_policy_gave(policy, VT_FIELD_ENV_SET));
	must_set(policy, "env.pass", "*");
	check_strings(&policy->env.pass, "*");
	must_set(policy, "env.pass", "MORE");
	check_strings(&policy->env.pass, "*");
	vt_policy_free(policy);
	policy = fresh();
	must_set(policy, "env.pass", "ONLY");
	check_strings(&policy->env.pass, "ONLY");
	vt_policy_free(policy);
}

static void test_flags(void **state)
{
	struct vt_policy *policy = fresh();

	(void)state;
	must_set(policy, "limits.wall_ms", "5s");
	must_set(policy, "limits.cpu_ms", "2m");
	must_set(policy, "limits.cpus", "0.5");
	must_set(policy, "limits.memory_mb", "256M");
	must_set(policy, "limits.stdout_kb", "1M");
	must_set(policy, "files.cwd", ".");
	must_set(policy, "network", "loopback");
	assert_int_equal(policy->limits.wall_ms, 5000);
	assert_int_equal(policy->limits.cpu_ms, 120000);
	assert_true(policy->limits.cpus == 0.5);
	assert_int_equal(policy->limits.memory_mb, 256);
	assert_int_equal(policy->limits.stdout_kb, 1024);
	assert_string_equal(policy->files.cwd, "/cwd");
	assert_int_equal(policy->network, VT_NETWORK_LOOPBACK);
	must_set(policy, "limits.cpu_ms", "none");
	must_set(policy, "limits.cpus", "none");
	assert_int_equal(policy->limits.cpu_ms, -1);
	assert_true(policy->limits.cpus == -1);
	vt_policy_free(policy);
}

static void test_variables_out_of_place(void **state)
{
	(void)state;
	check_bad_text("{\"env\": {\"A\": \"1\"}}",
		       "p.json: unknown key 'env.A'; variables stand in 'env.set', as in "
		       "{\"env\": {\"set\": {\"NAME\": \"value\"}}}");
	check_bad_flag("env.PASS", "1",
		       "--flag: unknown key 'env.PASS'; variables stand in 'env.set', as in "
		       "{\"env\": {\"set\": {\"NAME\": \"value\"}}}");
}

static void test_unknown_keys(void **state)
{
	(void)state;
	check_bad_text("{\"limits\": {\"wal_ms\": 5}}",
		       "p.json: unknown key 'limits.wal_ms'; did you mean 'limits.wall_ms'?");
	check_bad_text("{\"wall_ms\": 5}",
		       "p.json: unknown key 'wall_ms'; did you mean 'limits.wall_ms'?");
	check_bad_text("{\"limit\": {}}", "p.json: unknown key 'limit'; did you mean 'limits'?");
	check_bad_text("{\"zzzzzzzz\": 1}", "p.json: unknown key 'zzzzzzzz'; see vitro-policy(5)");
	check_bad_text("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": []}",
		       "p.json: this is a seccomp profile, and not a policy: --set "
		       "syscalls=p.json, or \"syscalls\" in a policy, takes it");
	check_bad_text("{\"\": 1}", "p.json: unknown key ''; see vitro-policy(5)");
	check_bad_text("{\"\\u001b[2J\": 1}",
		       "p.json: unknown key '\\u001b[2J'; see vitro-policy(5)");
	check_bad_text("{\"limits.pids\": 5}",
		       "p.json: write 'limits.pids' nested, as {\"limits\": {\"pids\": ...}}");
	check_bad_text("{\"limits\": {\"extends\": \"strict\"}}",
		       "p.json: 'extends' stands at the top of a policy, not in 'limits'");
	check_bad_text(
		"{\"network\": {\"allow\": []}}",
		"p.json: network: found an object, want \"none\", \"loopback\" or \"host\"; "
		"there is no list of hosts yet, so give the code a tool that makes the requests");
	check_bad_flag("limits.wal_ms", "5",
		       "--flag: unknown key 'limits.wal_ms'; did you mean 'limits.wall_ms'?");
	check_bad_text("{\"env\": {\"sett\": {}}}",
		       "p.json: unknown key 'env.sett'; did you mean 'env.set'?");
	check_bad_flag("limits", "5", "--flag: 'limits' is a group of keys, not a key");
	check_bad_flag(
		"extends", "strict",
		"--flag: 'extends' can only stand in a policy file; name the policy with -p");
}

static void test_wrong_types(void **state)
{
	(void)state;
	check_bad_text("[]", "p.json: found a list, want a policy, which is an object: {...}");
	check_bad_text("5", "p.json: found the number 5, want a policy, which is an object: {...}");
	check_bad_text("{\"limits\": 5}",
		       "p.json: limits: found the number 5, want an object of keys");
	check_bad_text("{\"limits\": {\"wall_ms\": []}}",
		       "p.json: limits.wall_ms: found a list, want a number of milliseconds or a "
		       "string such as \"5s\"");
	check_bad_text("{\"limits\": {\"wall_ms\": null}}",
		       "p.json: limits.wall_ms: found null, want a number of milliseconds or a "
		       "string such as \"5s\"");
	check_bad_text("{\"limits\": {\"cpus\": true}}",
		       "p.json: limits.cpus: found true, want a number, or null");
	check_bad_text("{\"limits\": {\"pids\": \"5\"}}",
		       "p.json: limits.pids: found the string \"5\", want a whole number");
	check_bad_text("{\"files\": {\"read\": \"/a\"}}",
		       "p.json: files.read: found the string \"/a\", want a list of paths or "
		       "{\"from\": path, \"to\": path}");
	check_bad_text("{\"files\": {\"read\": [\"/a\", false]}}",
		       "p.json: files.read[1]: found false, want a path or {\"from\": path, "
		       "\"to\": path}");
	check_bad_text("{\"files\": {\"deny\": [{\"from\": \"/a\", \"to\": \"/b\"}]}}",
		       "p.json: files.deny[0]: found an object, want a path as a string");
	check_bad_text("{\"files\": {\"cwd\": 5}}",
		       "p.json: files.cwd: found the number 5, want a path as a string");
	check_bad_text("{\"env\": {\"set\": [\"A=1\"]}}",
		       "p.json: env.set: found a list, want an object of strings");
	check_bad_text("{\"env\": {\"set\": {\"A\": 5}}}",
		       "p.json: env.set: found the number 5, want a string for 'A'");
	check_bad_text("{\"env\": {\"pass\": [5]}}",
		       "p.json: env.pass[0]: found the number 5, want a name as a string");
	check_bad_text("{\"extends\": [\"a\", \"b\"]}",
		       "p.json: extends: found a list, want the name of one policy as a string");
	check_bad_text("{\"network\": \"hots\"}",
		       "p.json: network: 'hots' is not known, want \"none\", \"loopback\" or "
		       "\"host\"; there is no list of hosts yet, so give the code a tool that "
		       "makes the requests");
}

static void test_numbers_out_of_range(void **state)
{
	(void)state;
	check_bad_text("{\"limits\": {\"wall_ms\": 0}}",
		       "p.json: limits.wall_ms: 0 is out of range (1ms to 1440m)");
	check_bad_text("{\"limits\": {\"wall_ms\": -5}}",
		       "p.json: limits.wall_ms: -5 is out of range (1ms to 1440m)");
	check_bad_text("{\"limits\": {\"grace_ms\": -0.5}}",
		       "p.json: limits.grace_ms: -0.5 is out of range (0 to 10m)");
	check_bad_text("{\"limits\": {\"wall_ms\": 1e300}}",
		       "p.json: limits.wall_ms: 1e+300 is out of range (1ms to 1440m)");
	check_bad_text(
		"{\"limits\": {\"wall_ms\": 9223372036854775807}}",
		"p.json: limits.wall_ms: 9223372036854775807 is out of range (1ms to 1440m)");
	check_bad_text("{\"limits\": {\"wall_ms\": \"86400001ms\"}}",
		       "p.json: limits.wall_ms: 86400001ms is out of range (1ms to 1440m)");
	check_bad_text("{\"limits\": {\"cpus\": 0}}",
		       "p.json: limits.cpus: 0 is out of range (0.01 to 4096)");
	check_bad_text("{\"limits\": {\"cpus\": -1}}",
		       "p.json: limits.cpus: -1 is out of range (0.01 to 4096)");
	check_bad_text("{\"limits\": {\"pids\": 1.5}}",
		       "p.json: limits.pids: 1.5 is not a whole number");
	check_bad_text("{\"limits\": {\"pids\": -1e300}}",
		       "p.json: limits.pids: -1e+300 is out of range (1 to 4000000)");
	check_bad_text("{\"limits\": {\"cpu_ms\": -1}}",
		       "p.json: limits.cpu_ms: -1 is out of range (1ms to 1440m)");
	check_bad_flag(
		"limits.memory_mb", "99999999999999999999G",
		"--flag: limits.memory_mb: 99999999999999999999G is out of range (1M to 16384G)");
	check_bad_flag("limits.wall_ms", "1441m",
		       "--flag: limits.wall_ms: 1441m is out of range (1ms to 1440m)");
	check_bad_flag("limits.wall_ms", "-5s",
		       "--flag: limits.wall_ms: -5s is out of range (1ms to 1440m)");
}

static void test_texts_without_a_unit(void **state)
{
	(void)state;
	check_bad_text("{\"limits\": {\"wall_ms\": \"5\"}}",
		       "p.json: limits.wall_ms: \"5\" has no unit (ms, s or m); without quotes it "
		       "is a number of milliseconds");
	check_bad_text("{\"limits\": {\"memory_mb\": \"1.5\"}}",
		       "p.json: limits.memory_mb: \"1.5\" has no unit (K, M or G); without quotes "
		       "it is a number of megabytes");
}

static void test_texts_that_are_no_numbers(void **state)
{
	(void)state;
	check_bad_flag(
		"limits.wall_ms", "5h",
		"--flag: limits.wall_ms: '5h' has no unit known here (ms, s or m); write 300m");
	check_bad_flag("limits.wall_ms", "1.5hours",
		       "--flag: limits.wall_ms: '1.5hours' has no unit known here (ms, s or m); "
		       "write 90m");
	check_bad_flag(
		"limits.memory_mb", "512Mi",
		"--flag: limits.memory_mb: '512Mi' has no unit known here (K, M or G); write "
		"512M");
	check_bad_flag("limits.memory_mb", "2TiB",
		       "--flag: limits.memory_mb: '2TiB' has no unit known here (K, M or G); write "
		       "2048G");
	check_bad_flag("limits.wall_ms", "5y",
		       "--flag: limits.wall_ms: '5y' has no unit known here (ms, s or m)");
	check_bad_flag("limits.memory_mb", "64MB",
		       "--flag: limits.memory_mb: '64MB' has no unit known here (K, M or G); write "
		       "64M");
	check_bad_flag("limits.stdout_kb", "1.5gib",
		       "--flag: limits.stdout_kb: '1.5gib' has no unit known here (K, M or G); "
		       "write 1.5G");
	check_bad_flag("limits.wall_ms", "5 s",
		       "--flag: limits.wall_ms: '5 s' has no unit known here (ms, s or m); write "
		       "5s");
	check_bad_flag("limits.wall_ms", "5sec",
		       "--flag: limits.wall_ms: '5sec' has no unit known here (ms, s or m); write "
		       "5s");
	check_bad_flag("limits.wall_ms", "5MB",
		       "--flag: limits.wall_ms: '5MB' has no unit known here (ms, s or m)");
	check_bad_flag(
		"limits.wall_ms", "nan",
		"--flag: limits.wall_ms: 'nan' is not a time; write a number and its unit (ms, "
		"s or m)");
	check_bad_flag("limits.wall_ms", "none",
		       "--flag: limits.wall_ms: 'none' is not a time; write a number and its unit "
		       "(ms, s or m)");
	check_bad_flag("limits.memory_mb", "",
		       "--flag: limits.memory_mb: '' is not a size; write a number and its unit "
		       "(K, M or G)");
	check_bad_flag("limits.pids", "5K", "--flag: limits.pids: '5K' is not a number");
	check_bad_flag("limits.pids", "1.5", "--flag: limits.pids: 1.5 is not a whole number");
	check_bad_flag("limits.cpus", "", "--flag: limits.cpus: '' is not a number");
	check_bad_flag("limits.cpus", "0.00000000000000000001",
		       "--flag: limits.cpus: 0.00000000000000000001 has too many digits");
}

static void test_bad_moves(void **state)
{
	(void)state;
	check_bad_text("{\"files\": {\"read\": [{\"from\": \"/a\"}]}}",
		       "p.json: files.read[0]: a move has \"from\" and \"to\"; there is no \"to\"");
	check_bad_text(
		"{\"files\": {\"read\": [{\"to\": \"/a\"}]}}",
		"p.json: files.read[0]: a move has \"from\" and \"to\"; there is no \"from\"");
	check_bad_text(
		"{\"files\": {\"write\": [\"/x\", {\"form\": 1, \"to\": \"/a\"}]}}",
		"p.json: files.write[1]: unknown key 'form'; a move has \"from\" and \"to\"");
	check_bad_text("{\"files\": {\"read\": [{\"from\": 5, \"to\": \"/a\"}]}}",
		       "p.json: files.read[0].from: found the number 5, want a path as a string");
	check_bad_text(
		"{\"files\": {\"read\": [{\"from\": \"/a\", \"to\": \"b\"}]}}",
		"p.json: files.read[0].to: 'b' is relative; a place inside must be absolute");
	check_bad_text("{\"files\": {\"read\": [{\"from\": \"/a\", \"to\": \"/\"}]}}",
		       "p.json: files.read[0].to: nothing can be moved to '/'");
	check_bad_text("{\"files\": {\"read\": [\"/a\\nb\"]}}",
		       "p.json: files.read[0]: '/a\\nb' has a control character in it");
}

static void test_bad_variables(void **state)
{
	(void)state;
	check_bad_text("{\"env\": {\"set\": {\"\": \"x\"}}}",
		       "p.json: env.set: the name of the variable is empty");
	check_bad_text(
		"{\"env\": {\"set\": {\"A=B\": \"x\"}}}",
		"p.json: env.set: 'A=B' cannot be the name of a variable: it has a '=' in it");
	check_bad_text(
		"{\"env\": {\"pass\": [\"A\\nB\"]}}",
		"p.json: env.pass[0]: 'A\\nB' cannot be the name of a variable: it has a control "
		"character in it");
	check_bad_text(
		"{\"env\": {\"pass\": [\"LC_*\"]}}",
		"p.json: env.pass[0]: 'LC_*': there are no patterns; \"*\" alone passes all");
	check_bad_flag("env.set", "=x", "--flag: env.set: the name of the variable is empty");
	check_bad_flag("env.set", "", "--flag: env.set: the name of the variable is empty");
}

static void test_profile_that_is_not_there(void **state)
{
	(void)state;
	check_bad_text("{\"syscalls\": \"no/foo.json\"}",
		       "p.json: syscalls: /base/no/foo.json: No such file or directory");
}

static void test_flags_that_name_their_key(void **state)
{
	struct vt_policy *policy = fresh();
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_policy_set(policy, "limits.pids", "0", "/", "--set limits.pids", &err),
			 -ERANGE);
	assert_string_equal(err.what, "--set limits.pids: 0 is out of range (1 to 4000000)");
	/* A file may have the name of a key, and the key must still be named. */
	assert_int_equal(
		vt_policy_load_text(policy, "{\"network\": 5}", 14, "/", "network.json", &err),
		-EINVAL);
	assert_ptr_equal(strstr(err.what, "network.json: network: found"), err.what);
	assert_int_equal(vt_policy_set(policy, "files.read", "[\"/a\",\n x]", "/", "--read", &err),
			 -EINVAL);
	assert_string_equal(err.what, "--read:2:2: invalid token near 'x'");
	assert_int_equal(vt_policy_set(policy, "files.read", "[\"/x\"", "/", "--set", &err),
			 -EINVAL);
	assert_string_equal(err.what, "--set files.read:1:5: the text ends too early");
	assert_int_equal(vt_policy_set(policy, "syscalls", "no.json", "/nowhere", "--set", &err),
			 -ENOENT);
	assert_string_equal(err.what,
			    "--set: syscalls: /nowhere/no.json: No such file or directory");
	vt_policy_free(policy);
}

static void test_lists_are_bounded(void **state)
{
	struct vt_policy *policy = fresh();
	struct vt_err err;
	char name[16];

	(void)state;
	for (int i = 0; i < VT_LIST_MOST; i++) {
		snprintf(name, sizeof(name), "V%d=%d", i, i);
		must_set(policy, "env.set", name);
		must_set(policy, "files.read", "/a");
	}
	must_set(policy, "env.set", "V0=again");
	assert_int_equal(vt_policy_set(policy, "env.set", "ONE=more", "/", "--env", &err), -E2BIG);
	assert_string_equal(err.what, "--env: env.set: more than 4096 entries");
	assert_int_equal(vt_policy_set(policy, "files.read", "/a", "/", "--read", &err), -E2BIG);
	assert_string_equal(policy->env.set.items[0], "V0=again");
	assert_string_equal(policy->env.set.items[4095], "V4095=4095");
	vt_policy_free(policy);
}

/* A long name must not push what is wrong out of the message. */
static void test_long_inputs_are_cut(void **state)
{
	struct vt_policy *policy = fresh();
	struct vt_err err;
	char name[5000], text[6000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"network\": \"%s\"}", name);
	assert_int_equal(vt_policy_load_text(policy, text, strlen(text), "/", name, &err), -EINVAL);
	assert_non_null(strstr(err.what, "...: network: 'nnn"));
	assert_non_null(strstr(err.what, "...' is not known, want"));
	snprintf(text, sizeof(text), "{\"files\": {\"read\": [\"/%s\"]}}", name);
	assert_int_equal(vt_policy_load_text(policy, text, strlen(text), "/", "p.json", &err),
			 -ENAMETOOLONG);
	assert_string_equal(err.what, "p.json: files.read[0]: the path is longer than 4095 bytes");
	vt_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_a_whole_policy),
		cmocka_unit_test(test_merging),
		cmocka_unit_test(test_passing_variables),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_variables_out_of_place),
		cmocka_unit_test(test_unknown_keys),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_numbers_out_of_range),
		cmocka_unit_test(test_texts_without_a_unit),
		cmocka_unit_test(test_texts_that_are_no_numbers),
		cmocka_unit_test(test_bad_moves),
		cmocka_unit_test(test_bad_variables),
		cmocka_unit_test(test_profile_that_is_not_there),
		cmocka_unit_test(test_flags_that_name_their_key),
		cmocka_unit_test(test_lists_are_bounded),
		cmocka_unit_test(test_long_inputs_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
