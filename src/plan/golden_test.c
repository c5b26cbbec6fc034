/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies × invented hosts → plan text and JSON, compared with test/golden. VITRO_GOLDEN=update
 * writes the texts anew, to be read before they are committed.
 */
#include "plan/hosts_test.h"

#include <stdlib.h>

static char given_lang[] = "LANG=C.UTF-8", given_secret[] = "SECRET=1",
	    given_path[] = "PATH=/opt/bin";
static char *environment[] = { given_lang, given_secret, given_path, NULL };

static struct vt_policy *read_policy(const char *json)
{
	struct vt_policy *policy;
	struct vt_err err;

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	if (vt_policy_load_text(policy, json, strlen(json), "/home/ann", "p.json", &err) < 0)
		fail_msg("%s", err.what);
	return policy;
}

/* Plans the policy for the host: its text, or the refusal. */
static char *plan_text(const char *json, const struct vt_host *host)
{
	const struct vt_request request = { .environ = environment };
	struct vt_policy *policy = read_policy(json);
	struct vt_plan *plan;
	struct vt_err err;
	struct vt_str text;

	vt_str_init(&text);
	if (vt_plan_make(policy, host, &request, &plan, &err) < 0) {
		vt_str_addf(&text, "%s\n", err.what);
	} else {
		vt_plan_explain(plan, &text);
		vt_plan_free(plan);
	}
	vt_policy_free(policy);
	assert_true(vt_str_ok(&text));
	return text.text;
}

/* The same as JSON, with the plan of best effort beside a refusal. */
static char *plan_json(const char *json, const struct vt_host *host)
{
	const struct vt_request request = { .environ = environment };
	struct vt_policy *policy = read_policy(json);
	enum vt_require asked = policy->require;
	struct vt_plan *plan;
	struct vt_err refusal, err;
	struct vt_str text;
	int r = vt_plan_foresee(policy, host, &request, &plan, &refusal);

	vt_str_init(&text);
	assert_int_equal(
		vt_plan_explain_json(plan, asked, r < 0 ? refusal.what : NULL, &text, &err), 0);
	vt_plan_free(plan);
	vt_policy_free(policy);
	assert_true(vt_str_ok(&text));
	return text.text;
}

static const struct golden {
	const char *name;
	const struct vt_host *host;
	const char *policy;
} goldens[] = {
	{ "default-root", &root_v1, "{}" },
	{ "default-user-v2", &user_v2, "{}" },
	{ "tool-host-limits", &user_v2, "{\"limits\": {\"queue_ms\": 5, \"result_mb\": 1}}" },
	{ "default-user-plain", &user_plain, "{}" },
	{ "default-user-old", &user_old, "{}" },
	{ "bare-user", &bare_user, "{}" },
	{ "bare-user-grants", &bare_user,
	  "{\"files\": {\"read\": [\"to-data\"], \"write\": [\"/home/ann/ws\"], \"cwd\": "
	  "\"/home/ann/ws\"}, \"network\": \"host\"}" },
	{ "bare-user-place-refused", &bare_user, "{\"files\": {\"write\": [\"/tmp\"]}}" },
	{ "bare-user-place-best-effort", &bare_user,
	  "{\"files\": {\"write\": [\"/tmp\"]}, \"require\": \"best-effort\"}" },
	{ "bare-user-place-read", &bare_user, "{\"files\": {\"read\": [\"/tmp\"]}}" },
	{ "bare-root-place", &bare_root_old, "{\"files\": {\"write\": [\"/tmp\"]}}" },
	{ "bare-user-strict-refused", &bare_user, "{\"require\": \"strict\"}" },
	{ "bare-user-old-refused", &bare_user_old, "{}" },
	{ "bare-user-old-best-effort", &bare_user_old, "{\"require\": \"best-effort\"}" },
	{ "bare-root-old", &bare_root_old, "{}" },
	{ "bare-root-grants", &bare_root_old,
	  "{\"files\": {\"read\": [\"/home/ann/ws\"], \"write\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data\"}}" },
	{ "bare-root-closed-refused", &bare_root_old,
	  "{\"files\": {\"read\": [\"/vault/open\"]}}" },
	{ "bare-root-secret-refused", &bare_root_old,
	  "{\"files\": {\"read\": [\"/srv/secret\"]}}" },
	{ "bare-root-powerless-refused", &bare_root_powerless, "{\"require\": \"best-effort\"}" },
	{ "bare-nothing-refused", &bare_nothing, "{}" },
	{ "bare-nothing-best-effort", &bare_nothing, "{\"require\": \"best-effort\"}" },
	{ "bare-nothing-write-refused", &bare_nothing,
	  "{\"require\": \"best-effort\", \"files\": {\"write\": [\"/srv/data\"]}}" },
	{ "bare-blind-refused", &bare_blind, "{\"require\": \"best-effort\"}" },
	{ "bare-homeless-refused", &bare_homeless, "{\"require\": \"best-effort\"}" },
	{ "bare-loopback-refused", &bare_user, "{\"network\": \"loopback\"}" },
	{ "bare-moved-refused", &bare_user,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/s\"}]}}" },
	{ "bare-deny-refused", &bare_user,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data\"]}}" },
	{ "masked-proc", &masked_proc, "{}" },
	{ "no-seccomp-refused", &no_seccomp, "{}" },
	{ "no-seccomp-best-effort", &no_seccomp, "{\"require\": \"best-effort\"}" },
	{ "no-seccomp-host-network", &no_seccomp,
	  "{\"require\": \"best-effort\", \"network\": \"host\", "
	  "\"files\": {\"read\": [\"/srv/data\"]}}" },
	{ "no-seccomp-sockets-refused", &no_seccomp,
	  "{\"require\": \"best-effort\", \"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "no-seccomp-write-refused", &no_seccomp,
	  "{\"require\": \"best-effort\", \"files\": {\"write\": [\"/srv/data\"]}}" },
	{ "default-root-without-ids", &root_without_ids, "{}" },
	{ "grants-root", &root_v1,
	  "{\"files\": {\"read\": [\"/srv/data\", \"/etc\", {\"from\": \"ws\", \"to\": \"/in\"}],"
	  " \"write\": [\"/srv/data/out\"], \"cwd\": \"/in\"}}" },
	{ "grants-nested-user", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data/note.txt\", \"/srv\"], \"write\": "
	  "[\"/srv/data\"]}}" },
	{ "whole-root-user", &user_plain, "{\"files\": {\"read\": [\"/\"]}}" },
	{ "network-host-user", &user_v2, "{\"network\": \"host\"}" },
	{ "network-host-old", &user_old, "{\"network\": \"host\"}" },
	{ "network-loopback", &user_v2, "{\"network\": \"loopback\"}" },
	{ "network-loopback-v1", &root_v1, "{\"network\": \"loopback\"}" },
	{ "limits-root", &root_v1,
	  "{\"limits\": {\"cpus\": 0.5, \"cpu_ms\": 1500, \"grace_ms\": 100, \"memory_mb\": 64,"
	  " \"tmp_mb\": 8}, \"env\": {\"pass\": [\"*\"], \"set\": {\"HOME\": \"/in\"}}}" },
	{ "limits-cpus-refused", &user_plain, "{\"limits\": {\"cpus\": 2}}" },
	{ "limits-cpus-best-effort", &user_plain,
	  "{\"limits\": {\"cpus\": 2}, \"require\": \"best-effort\"}" },
	{ "strict-refused", &user_plain, "{\"extends\": \"strict\"}" },
	{ "strict-user-v2", &user_v2, "{\"extends\": \"strict\"}" },
	{ "deny-outside", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/etc/x\"]}}" },
	{ "deny-inside", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data/out\"]}}" },
	{ "deny-inside-old-refused", &user_old,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data/out\"]}}" },
	{ "deny-write-root", &root_v1,
	  "{\"files\": {\"write\": [\"/srv/data\"], \"deny\": [\"/srv/data/.env\", "
	  "\"/srv/data/new/key\"]}}" },
	{ "deny-moved", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/mnt/s\"}], \"deny\": "
	  "[\"/srv/data\"]}}" },
	{ "deny-unordered", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/secret\", "
	  "\"/srv/data/note.txt\"]}}" },
	{ "deny-around", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/srv\"]}}" },
	{ "deny-runtime", &user_v2, "{\"files\": {\"deny\": [\"/usr/share/doc\"]}}" },
	{ "deny-link", &user_v2, "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"to-data\"]}}" },
	{ "link-planted-refused", &user_v2,
	  "{\"files\": {\"write\": [\"ws\"], \"read\": [\"ws/out\"]}}" },
	{ "link-planted-bare-refused", &bare_user,
	  "{\"files\": {\"write\": [\"ws\"], \"read\": [\"ws/out\"]}}" },
	{ "link-planted-moved-refused", &root_v1,
	  "{\"files\": {\"write\": [\"ws\", {\"from\": \"ws/out\", \"to\": \"/x\"}]}}" },
	{ "link-planted-socket-refused", &user_v2,
	  "{\"files\": {\"write\": [\"ws\"], \"sockets\": [\"ws/socket\"]}}" },
	{ "link-planted-before", &user_v2,
	  "{\"files\": {\"read\": [\"ws/out\"], \"sockets\": [\"ws/socket\"]}}" },
	{ "link-to-etc-root", &root_v1, "{\"files\": {\"read\": [\"to-etc\"]}}" },
	{ "link-to-proc-refused", &root_v1, "{\"files\": {\"read\": [\"to-proc\"]}}" },
	{ "missing-refused", &user_v2, "{\"files\": {\"read\": [\"/nowhere\"]}}" },
	{ "socket-refused", &user_v2, "{\"files\": {\"read\": [\"/srv/socket\"]}}" },
	{ "sockets-alone", &user_v2, "{\"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "sockets-and-grants-root", &root_v1,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"read\": [\"/srv\"]}}" },
	{ "sockets-network-host", &user_v2,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"read\": [\"/srv/data\"]}, "
	  "\"network\": \"host\"}" },
	{ "sockets-listened-alone", &user_listened,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "sockets-listened-refused", &user_listened,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"write\": [\"/srv/data\"]}}" },
	{ "grants-listened", &user_listened, "{\"files\": {\"read\": [\"/srv/data\"]}}" },
	{ "grants-network-host", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"]}, \"network\": \"host\"}" },
	{ "sockets-missing-refused", &user_v2, "{\"files\": {\"sockets\": [\"/srv/nowhere\"]}}" },
	{ "sockets-file-refused", &user_v2,
	  "{\"files\": {\"sockets\": [\"/srv/data/note.txt\"]}}" },
	{ "sockets-folder-refused", &root_v1, "{\"files\": {\"sockets\": [\"/srv\"]}}" },
	{ "sockets-device-refused", &root_v1, "{\"files\": {\"sockets\": [\"/dev/null\"]}}" },
	{ "device-refused", &root_v1, "{\"files\": {\"write\": [\"/dev/sda\"]}}" },
	{ "moved-device-refused", &root_v1,
	  "{\"files\": {\"write\": [{\"from\": \"/dev/sda\", \"to\": \"/disk\"}]}}" },
	{ "proc-refused", &user_v2, "{\"files\": {\"read\": [\"/proc\"]}}" },
	{ "moved-proc-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/proc\", \"to\": \"/p\"}]}}" },
	{ "moved-root-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/\", \"to\": \"/h\"}]}}" },
	{ "write-root-refused", &root_v1, "{\"files\": {\"write\": [\"/\"]}}" },
	{ "two-at-one-place-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/x\"},"
	  " {\"from\": \"/etc\", \"to\": \"/x\"}]}}" },
	{ "no-place-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\", {\"from\": \"/etc\", \"to\": \"/srv/new\"}]}}" },
	{ "cwd-file-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"cwd\": \"/srv/data/note.txt\"}}" },
	{ "cwd-denied-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data\"}}" },
	{ "cwd-closed-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data/out\"}}" },
	{ "write-missing-refused", &user_v2, "{\"files\": {\"write\": [\"/nowhere\"]}}" },
	{ "cwd-own-refused", &user_v2, "{\"files\": {\"cwd\": \"/dev/shm/x\"}}" },
	{ "cwd-moved-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv/data\", \"to\": \"/project\"}], \"cwd\": "
	  "\"/srv/data/out\"}}" },
	{ "cwd-var-tmp-refused", &user_v2, "{\"files\": {\"cwd\": \"/var/tmp/x\"}}" },
	{ "cwd-var-tmp", &user_v2,
	  "{\"files\": {\"read\": [\"/var/tmp/x\"], \"cwd\": \"/var/tmp/x\"}}" },
	{ "cwd-behind-link", &user_v2, "{\"files\": {\"cwd\": \"/bin/x\"}}" },
	{ "colon-refused", &user_v2, "{\"files\": {\"read\": [\"/srv/data:/project\"]}}" },
	{ "cwd-refused", &user_v2, "{\"files\": {\"cwd\": \"/srv/data\"}}" },
	{ "lower-limits", &poor_user, "{}" },
	{ "lower-limits-asked", &poor_user,
	  "{\"limits\": {\"open_files\": 1048576, \"file_mb\": 1}}" },
};

static char *read_whole(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 65536);

	assert_non_null(text);
	if (file) {
		assert_true(fread(text, 1, 65535, file) < 65535);
		(void)fclose(file);
	}
	return text;
}

static void check_file(const char *name, const char *ending, const char *text)
{
	const char *folder = getenv("VITRO_TEST_DIR");
	const char *mode = getenv("VITRO_GOLDEN");
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/golden/%s.%s", folder ? folder : TEST_DIR, name,
		       ending);
	if (mode && strcmp(mode, "update") == 0) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		assert_true(fputs(text, file) >= 0);
		assert_int_equal(fclose(file), 0);
	}
	char *wanted = read_whole(path);

	assert_string_equal(text, wanted);
	free(wanted);
}

static void check_golden(void **state)
{
	const struct golden *golden = *state;
	char *text = plan_text(golden->policy, golden->host);

	check_file(golden->name, "txt", text);
	free(text);
}

/* Between them they have all that a plan tells as JSON, and refusals with and without a plan. */
static void check_golden_json(void **state)
{
	static const char *const names[] = {
		"grants-root",         "bare-user-old-refused", "limits-root",
		"sockets-alone",       "deny-write-root",       "lower-limits-asked",
		"limits-cpus-refused", "missing-refused",       "cwd-refused",
		"no-seccomp-refused",  "bare-blind-refused",
	};
	size_t seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			if (strcmp(goldens[i].name, names[n]) != 0)
				continue;
			char *text = plan_json(goldens[i].policy, goldens[i].host);

			check_file(names[n], "json", text);
			free(text);
			seen++;
		}
	}
	assert_int_equal(seen, sizeof(names) / sizeof(names[0]));
}

int main(void)
{
	enum { COUNT = sizeof(goldens) / sizeof(goldens[0]) };
	struct CMUnitTest tests[COUNT + 1] = { [COUNT] = cmocka_unit_test(check_golden_json) };

	for (size_t i = 0; i < COUNT; i++)
		tests[i] = (struct CMUnitTest){
			.name = goldens[i].name,
			.test_func = check_golden,
			.initial_state = (void *)&goldens[i],
		};
	return _cmocka_run_group_tests("golden", tests, COUNT + 1, NULL, NULL);
}
