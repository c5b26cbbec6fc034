/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/fields.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a row promises to --help, the manual and the messages. */
static void test_every_row_is_whole(void **state)
{
	(void)state;
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const struct vt_field_row *row = vt_field_row(field);
		size_t len = strlen(row->info.sentence);

		assert_int_equal(vt_field_find(row->info.key), field);
		assert_true(strlen(row->info.type) > 0);
		assert_true(strlen(row->info.fallback) > 0);
		assert_int_equal(row->info.sentence[len - 1], '.');
		assert_int_equal(!row->info.flag, !row->info.argument);
		assert_int_equal(vt_type_is_numeric(row->type), strlen(row->info.range) > 0);
		assert_true(row->least <= row->most);
		if (vt_type_is_numeric(row->type) && row->number >= 0)
			assert_true(row->number >= row->least && row->number <= row->most);
	}
}

static void test_infos(void **state)
{
	const struct vt_field_info *wall = vt_field_info(VT_FIELD_LIMITS_WALL_MS);
	const struct vt_field_info *cpus = vt_field_info(VT_FIELD_LIMITS_CPUS);

	(void)state;
	assert_string_equal(wall->key, "limits.wall_ms");
	assert_string_equal(wall->type, "milliseconds");
	assert_string_equal(wall->fallback, "30000");
	assert_string_equal(wall->range, "1 to 86400000");
	assert_string_equal(wall->flag, "--timeout");
	assert_string_equal(cpus->fallback, "none");
	assert_string_equal(cpus->range, "0.01 to 4096");
	assert_string_equal(vt_field_info(VT_FIELD_FILES_CWD)->fallback, "/tmp");
	assert_string_equal(vt_field_info(VT_FIELD_FILES_CWD)->range, "");
	assert_null(vt_field_info(VT_FIELD_REQUIRE)->flag);
}

static void test_unknown_keys_are_not_found(void **state)
{
	static const char *const keys[] = {
		"", "limits", "limits.", "limits.wall_m", "limits.wall_msx", "Network"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(vt_field_find(keys[i]), -ENOENT);
	assert_true(vt_field_is_group("limits"));
	assert_true(vt_field_is_group("env"));
	assert_false(vt_field_is_group("limit"));
	assert_false(vt_field_is_group("network"));
	assert_false(vt_field_is_group("limits.wall_ms"));
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(vt_type_words(VT_TYPE_NETWORK)[VT_NETWORK_NONE], "none");
	assert_string_equal(vt_type_words(VT_TYPE_NETWORK)[VT_NETWORK_LOOPBACK], "loopback");
	assert_string_equal(vt_type_words(VT_TYPE_NETWORK)[VT_NETWORK_HOST], "host");
	assert_string_equal(vt_type_words(VT_TYPE_SYSCALLS)[VT_SYSCALLS_DEFAULT], "default");
	assert_string_equal(vt_type_words(VT_TYPE_SYSCALLS)[VT_SYSCALLS_STRICT], "strict");
	assert_string_equal(vt_require_name(VT_REQUIRE_BEST_EFFORT), "best-effort");
	assert_string_equal(vt_require_name(VT_REQUIRE_FULL), "full");
	assert_string_equal(vt_require_name(VT_REQUIRE_STRICT), "strict");
}

static void test_the_closest_key(void **state)
{
	static const struct {
		const char *key, *closest;
	} cases[] = {
		{ "limits.wal_ms", "limits.wall_ms" },
		{ "limits.memory", "limits.memory_mb" },
		{ "wall_ms", "limits.wall_ms" },
		{ "limit", "limits" },
		{ "file", "files" },
		{ "extend", "extends" },
		{ "netwrok", "network" },
		{ "files.reads", "files.read" },
		{ "env.pas", "env.pass" },
		{ "limits.timeout", "limits.wall_ms" },
		{ "limits.cpu_time", "limits.cpu_ms" },
		{ "timeout", "limits.wall_ms" },
		{ "net", "network" },
	};
	char longest[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(vt_field_closest(cases[i].key), cases[i].closest);
	assert_null(vt_field_closest("zzzzzzzzzzzzzz"));
	assert_null(vt_field_closest(""));
	memset(longest, 'l', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(vt_field_closest(longest));
	assert_null(vt_field_closest(longest + sizeof(longest) - 1 - 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_whole),
		cmocka_unit_test(test_infos),
		cmocka_unit_test(test_unknown_keys_are_not_found),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_the_closest_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
