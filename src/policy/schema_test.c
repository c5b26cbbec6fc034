/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "policy/policy.h"

static json_t *schema(void)
{
	struct vt_str text;
	struct vt_err err;
	json_t *root = NULL;

	vt_str_init(&text);
	vt_policy_schema(&text);
	assert_true(vt_str_ok(&text));
	assert_int_equal(vt_json_load_text(text.text, text.len, "schema", &root, &err), 0);
	vt_str_done(&text);
	return root;
}

/* The schema of "limits.wall_ms", found as a validator finds it. */
static json_t *schema_of(json_t *root, const char *key)
{
	char part[64];
	const char *at = key;

	for (json_t *node = root;;) {
		size_t len = strcspn(at, ".");

		memcpy(part, at, len);
		part[len] = '\0';
		assert_true(json_is_false(json_object_get(node, "additionalProperties")));
		node = json_object_get(json_object_get(node, "properties"), part);
		if (!at[len] || !node)
			return node;
		at += len + 1;
	}
}

static void test_every_field_is_there(void **state)
{
	AUTO_JSON json_t *root = schema();

	(void)state;
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const struct vt_field_info *info = vt_field_info(field);
		json_t *node = schema_of(root, info->key);

		assert_non_null(node);
		assert_string_equal(json_string_value(json_object_get(node, "description")),
				    info->sentence);
	}
	assert_non_null(schema_of(root, "extends"));
	assert_null(schema_of(root, "nothing"));
}

static void check_is(json_t *root, const char *key, const char *member, const char *text)
{
	struct vt_err err;
	AUTO_JSON json_t *want = NULL;

	assert_int_equal(vt_json_load_text(text, strlen(text), "want", &want, &err), 0);
	assert_true(json_equal(json_object_get(schema_of(root, key), member), want));
}

static void test_types_and_ranges(void **state)
{
	AUTO_JSON json_t *root = schema();

	(void)state;
	check_is(root, "limits.wall_ms", "type", "[\"number\", \"string\"]");
	check_is(root, "limits.wall_ms", "exclusiveMinimum", "0");
	check_is(root, "limits.wall_ms", "maximum", "86400000");
	check_is(root, "limits.wall_ms", "default", "30000");
	check_is(root, "limits.wall_ms", "pattern", "\"^[0-9]+([.][0-9]+)?(ms|s|m)$\"");
	check_is(root, "limits.cpu_ms", "type", "[\"number\", \"string\", \"null\"]");
	check_is(root, "limits.cpu_ms", "default", "null");
	check_is(root, "limits.pids", "type", "[\"integer\"]");
	check_is(root, "limits.pids", "minimum", "1");
	check_is(root, "limits.cpus", "minimum", "0.01");
	check_is(root, "network", "enum", "[\"none\", \"loopback\", \"host\"]");
	check_is(root, "network", "default", "\"none\"");
	check_is(root, "files.deny", "items", "{\"type\": \"string\", \"minLength\": 1}");
	check_is(root, "env.set", "additionalProperties", "{\"type\": \"string\"}");
	json_t *items = json_object_get(schema_of(root, "files.read"), "items");

	assert_int_equal(json_array_size(json_object_get(items, "anyOf")), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_is_there),
		cmocka_unit_test(test_types_and_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
