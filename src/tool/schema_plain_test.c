/* SPDX-License-Identifier: Apache-2.0 */
/* A quick yes is never one that the whole check would not give. */
#include "tool/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

#define SCHEMA                                                                                 \
	"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\"}, \"n\": "       \
	"{\"type\": [\"integer\", \"null\"]}, \"s\": {\"type\": \"string\", \"description\": " \
	"\"x\"}, \"b\": {\"type\": \"boolean\"}, \"any\": {}}, \"required\": [\"a\"]}"

static struct vt_schema *compile_text(const char *text)
{
	AUTO_JSON json_t *root = json_loads(text, JSON_DECODE_ANY, NULL);
	struct vt_schema *schema;
	struct vt_err err;

	assert_non_null(root);
	assert_int_equal(vt_schema_compile(root, "schema", &schema, NULL, &err), 0);
	return schema;
}

/* As vt_tool_check() does. */
static bool fits(const struct vt_schema *schema, const char *text, size_t len)
{
	AUTO_JSON json_t *value = NULL;
	struct vt_err err;

	return vt_json_load_text(text, len, "value", &value, &err) == 0 && json_is_object(value) &&
	       vt_schema_check(schema, value, "value", &err) == 0;
}

static void test_seen_quickly(void **state)
{
	static const char *const texts[] = {
		"{\"a\":1}",
		" {\n\t\"a\" : -0.5 , \"n\":null,\"s\":\"two words\",\"b\":true}\r\n",
		"{\"n\":-12,\"a\":123456789012345,\"b\":false,\"any\":\"\"}",
		"{\"a\":0,\"any\":1.25}",
		"{\"a\":0,\"c\":2,\"\":\"a\",\"aa\":null}",
	};
	struct vt_schema *schema = compile_text(SCHEMA);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(vt_schema_fits_plainly(schema, texts[i], strlen(texts[i])));
		assert_true(fits(schema, texts[i], strlen(texts[i])));
	}
	vt_schema_free(schema);
	schema = compile_text("{\"type\": \"object\", \"additionalProperties\": false}");
	assert_true(vt_schema_fits_plainly(schema, "{}", 2));
	assert_false(vt_schema_fits_plainly(schema, "{\"c\":2}", 7));
	vt_schema_free(schema);
	schema = compile_text("{\"type\": \"object\"}"); /* that of a tool which has none */
	assert_true(vt_schema_fits_plainly(schema, "{\"c\":2}", 7));
	vt_schema_free(schema);
}

/* Some of them fit, which takes more than a look. */
static void test_left_to_others(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"{}",
		"{}x",
		"[1]",
		"{\"a\":1,}",
		"{,\"a\":1}",
		"{\"a\":1 \"b\":true}",
		"{\"a\":\"1\"}",
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"c\":2,\"c\":3}",
		"{\"a\":1,\"c\":[]}",
		"{\"c\":2}",
		"{\"a\":1,\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1}",
		"{\"a\":1}{}",
		"{\"a\":1e3}",
		"{\"a\":01}",
		"{\"a\":1.}",
		"{\"a\":.5}",
		"{\"a\":-}",
		"{\"a\":+1}",
		"{\"a\":1234567890123456}",
		"{\"a\":nul}",
		"{\"a\":1,\"s\":\"\\n\"}",
		"{\"a\":1,\"s\":\"\xc3\xa9\"}",
		"{\"a\":1,\"s\":\"\n\"}",
		"{\"a\":1,\"s\":\"",
		"{\"a\":1,\"n\":1.0}",
		"{\"a\":1,\"any\":[]}",
		"{\"a\":1,\"any\":{}}",
		"{\"a\":1,\"any\":NaN}",
		"{\"a\":1,\"b\":truefalse}",
		"{\"a\" 1}",
		"{a:1}",
	};
	struct vt_schema *schema = compile_text(SCHEMA);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (vt_schema_fits_plainly(schema, texts[i], strlen(texts[i])))
			fail_msg("%s", texts[i]);
	/* Nor is anything after a NUL overlooked. */
	assert_false(vt_schema_fits_plainly(schema, "{\"a\":1}\0x", 9));
	assert_false(vt_schema_fits_plainly(schema, "{\"a\":1\0}", 8));
	vt_schema_free(schema);
}

/* A schema that says more is for the whole check alone. */
static void test_schemas_that_say_more(void **state)
{
	static const char *const schemas[] = {
		"false",
		"{\"type\": \"array\"}",
		"{\"properties\": {\"a\": false}}",
		"{\"properties\": {\"a\": {\"type\": \"number\", \"minimum\": 5}}}",
		"{\"properties\": {\"a\": {\"enum\": [1, 2]}}}",
		"{\"properties\": {\"a\": {\"$ref\": \"#/$defs/x\"}}, \"$defs\": {\"x\": {}}}",
		"{\"properties\": {\"a\": {}}, \"minProperties\": 2}",
		"{\"properties\": {\"a\": {}}, \"not\": {}}",
		"{\"properties\": {\"a\": {}}, \"required\": [\"c\"]}",
		"{\"properties\": {\"a\": {}}, \"patternProperties\": {\"a\": {}}}",
		"{\"properties\": {\"a\": {}}, \"anyOf\": [true]}",
		"{\"properties\": {\"a\": {}}, \"const\": {\"a\": 2}}",
		"{\"additionalProperties\": {\"type\": \"string\"}}",
		"{\"additionalProperties\": false}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		struct vt_schema *schema = compile_text(schemas[i]);

		if (vt_schema_fits_plainly(schema, "{\"a\":1}", 7))
			fail_msg("%s", schemas[i]);
		vt_schema_free(schema);
	}
}

/* Texts that are nearly right, by the hundred thousand. */
static void test_agrees(void **state)
{
	static const char seed[] =
		"{\"a\":1.5,\"n\":-12, \"s\":\"word\",\"b\":true,\"any\":null,\"c\":1,\"d\":2}";
	static const char bytes[] = "{}[]:,\"\\ab n10.-+eEtrufls\n\t \x7f\x80\xc3\x01";
	struct vt_schema *schema = compile_text(SCHEMA);
	size_t seen = 0;
	char text[sizeof(seed)];

	(void)state;
	srand(1);
	for (int i = 0; i < 200000; i++) {
		size_t len = sizeof(seed) - 1;

		memcpy(text, seed, len);
		for (int j = rand() % 3; j >= 0; j--)
			text[(size_t)rand() % len] = bytes[(size_t)rand() % (sizeof(bytes) - 1)];
		for (int j = rand() % 3; j > 0; j--) {
			size_t at = (size_t)rand() % len;

			memmove(text + at, text + at + 1, --len - at);
		}
		if (!vt_schema_fits_plainly(schema, text, len))
			continue;
		seen++;
		if (!fits(schema, text, len))
			fail_msg("%.*s", (int)len, text);
	}
	assert_true(seen > 1000);
	vt_schema_free(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seen_quickly),
		cmocka_unit_test(test_left_to_others),
		cmocka_unit_test(test_schemas_that_say_more),
		cmocka_unit_test(test_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
