/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/policy.h"

static struct vt_manifest *load(const char *file, const char *text)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err = { 0 };

	vt_str_init(&mistakes);
	if (vt_manifest_load_text(text, strlen(text), file, &manifest, NULL, &mistakes, &err) < 0)
		fail_msg("%s", mistakes.text);
	vt_str_done(&mistakes);
	return manifest;
}

/* A function, its folder, and what runs it; the policy that it comes to lets it read that folder.
 */
static void test_python(void **state)
{
	(void)state;
	char folder[] = "/tmp/manifest-table-XXXXXX", file[sizeof(folder) + 8];

	assert_non_null(mkdtemp(folder));
	(void)snprintf(file, sizeof(file), "%s/t.json", folder);
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && close(fd) == 0);
	struct vt_manifest *manifest = load(
		file, "{\"tools\": [{\"name\": \"a\", \"python\": \"pkg.m:f\"}, {\"name\": \"b\", "
		      "\"python\": \"m:C.f\", \"interpreter\": \"venv/bin/python\"}]}");
	struct vitro_tool *tools;
	char want[128], *sources;
	struct vt_err err;

	assert_int_equal(vt_manifest_table(manifest, NULL, &tools, NULL), 0);
	assert_null(tools[0].command);
	assert_string_equal(tools[0].python, "pkg.m:f");
	assert_string_equal(tools[0].folder, folder);
	assert_string_equal(tools[0].interpreter, "python3");
	assert_string_equal(tools[1].python, "m:C.f");
	(void)snprintf(want, sizeof(want), "%s/venv/bin/python", folder);
	assert_string_equal(tools[1].interpreter, want);
	assert_int_equal(vt_policy_sources_reading(tools[0].policy, folder, &sources, &err), 0);
	(void)snprintf(want, sizeof(want),
		       "{\"json\":\"{\\\"files\\\":{\\\"read\\\":[\\\"%s\\\"]}}\"}]", folder);
	assert_non_null(strstr(sources, want));
	free(sources);
	assert_true(vt_policy_sources_reading(NULL, "here", &sources, &err) < 0);
	vt_manifest_table_free(tools);
	vt_manifest_free(manifest);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
