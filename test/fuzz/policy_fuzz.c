/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy parser under any input. The bytes are taken twice: whole, as a policy's JSON; and line
 * by line, as "key=text" of flags. libFuzzer drives it, or replay.c.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "policy/policy.h"

static void check_path(const char *path)
{
	size_t len = strlen(path);

	REQUIRE(path[0] == '/' && len < 4096);
	REQUIRE(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
	REQUIRE(len == 1 || path[len - 1] != '/');
	REQUIRE(len < 3 || strcmp(path + len - 3, "/..") != 0);
	for (size_t i = 0; i < len; i++)
		REQUIRE((unsigned char)path[i] >= 0x20 && path[i] != 0x7f);
}

static void check_grants(const struct vt_grants *grants)
{
	for (size_t i = 0; i < grants->count; i++) {
		check_path(grants->items[i].from);
		check_path(grants->items[i].to);
		REQUIRE(*grants->items[i].origin);
	}
}

/* What the plan relies on, whatever was read. */
static void check_policy(const struct vt_policy *policy)
{
	REQUIRE(policy->limits.wall_ms >= 1 && policy->limits.wall_ms <= 86400000);
	REQUIRE(policy->limits.cpu_ms == -1 || policy->limits.cpu_ms >= 1);
	REQUIRE(policy->limits.cpus == -1 ||
		(policy->limits.cpus >= 0.01 && policy->limits.cpus <= 4096));
	REQUIRE(policy->limits.memory_mb >= 1 && policy->limits.pids >= 1);
	check_grants(&policy->files.read);
	check_grants(&policy->files.write);
	check_grants(&policy->files.deny);
	check_path(policy->files.cwd);
	for (size_t i = 0; i < policy->env.set.count; i++)
		REQUIRE(strchr(policy->env.set.items[i], '=') > policy->env.set.items[i]);
	for (size_t i = 0; i < policy->env.pass.count; i++)
		REQUIRE(*policy->env.pass.items[i] && !strchr(policy->env.pass.items[i], '='));
	REQUIRE(policy->network <= VT_NETWORK_HOST && policy->syscalls <= VT_SYSCALLS_STRICT &&
		policy->require <= VT_REQUIRE_STRICT);
}

/* A message is one line that a terminal shows as it is. */
static void check_outcome(const struct vt_policy *policy, int status, const struct vt_err *err)
{
	if (status == 0) {
		check_policy(policy);
		return;
	}
	REQUIRE(status == -err->num && err->num > 0 && err->step == VT_STEP_POLICY);
	REQUIRE(*err->what);
	for (const char *at = err->what; *at; at++)
		REQUIRE(!iscntrl((unsigned char)*at));
}

static void set_line(struct vt_policy *policy, char *line)
{
	struct vt_err err = { 0 };
	char *equals = strchr(line, '=');

	if (!equals)
		return;
	*equals = '\0';
	check_outcome(policy, vt_policy_set(policy, line, equals + 1, "/cwd", "--set", &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_policy *policy = NULL;
	struct vt_err err = { 0 };
	char *text = malloc(size + 1);

	REQUIRE(text && vt_policy_new(&policy, &err) == 0);
	memcpy(text, data, size);
	text[size] = '\0';
	int status = vt_policy_load_text(policy, text, size, "/base/dir", "fuzz.json", &err);

	check_outcome(policy, status, &err);
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		set_line(policy, line);
	}
	vt_policy_free(policy);
	free(text);
	return 0;
}
