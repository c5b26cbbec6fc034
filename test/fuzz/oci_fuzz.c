/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of OCI seccomp profiles under any input, and the compiler under whatever the parser
 * takes: the code that comes out must be such that a kernel can run it. libFuzzer drives it, or
 * replay.c.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "policy/oci.h"

/* A message is one line that a terminal shows as it is. */
static void check_failure(int status, const struct vt_err *err, enum vt_step step)
{
	REQUIRE(status == -err->num && err->num > 0 && err->step == step && *err->what);
	for (const char *at = err->what; *at; at++)
		REQUIRE(!iscntrl((unsigned char)*at));
}

static void check_profile(const struct vt_oci_profile *profile)
{
	REQUIRE(profile->fallback.num <= 4095);
	for (size_t i = 0; i < profile->rule_count; i++) {
		const struct vt_oci_rule *rule = &profile->rules[i];

		REQUIRE(rule->verdict.num <= 4095 && rule->arg_count <= VT_OCI_ARGS);
		for (size_t j = 0; j < rule->arg_count; j++)
			REQUIRE(rule->args[j].index <= 5);
		for (size_t j = 0; j < rule->name_count; j++)
			REQUIRE(*rule->names[j] && strlen(rule->names[j]) <= 64);
	}
}

/* Every jump stays inside, and the last instruction returns. */
static void check_code(const struct sock_fprog *filter)
{
	REQUIRE(filter->len > 0 && filter->len <= BPF_MAXINSNS);
	for (size_t at = 0; at < filter->len; at++) {
		const struct sock_filter *ins = &filter->filter[at];

		if (ins->code == (BPF_JMP | BPF_JA))
			REQUIRE(at + 1 + ins->k < filter->len);
		else if (BPF_CLASS(ins->code) == BPF_JMP)
			REQUIRE(at + 1 + (ins->jt > ins->jf ? ins->jt : ins->jf) < filter->len);
	}
	REQUIRE(BPF_CLASS(filter->filter[filter->len - 1].code) == BPF_RET);
}

static void read_and_compile(const json_t *root, struct vt_arena *arena)
{
	const struct vt_oci_profile *profile = NULL;
	struct vt_err err = { 0 };
	struct sock_fprog filter;
	int status = vt_oci_parse(arena, root, "fuzz.json", &profile, &err);

	if (status < 0) {
		check_failure(status, &err, VT_STEP_POLICY);
		return;
	}
	check_profile(profile);
	status = vt_oci_compile(profile, 6, 1, arena, &filter, &err);
	if (status < 0)
		check_failure(status, &err, VT_STEP_PLAN);
	else
		check_code(&filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_err err = { 0 };
	json_t *root = NULL;
	int status = vt_json_load_text((const char *)data, size, "fuzz.json", &root, &err);

	REQUIRE(arena);
	if (status == 0)
		read_and_compile(root, arena);
	else
		check_failure(status, &err, VT_STEP_POLICY);
	json_decref(root);
	vt_arena_free(arena);
	return 0;
}
