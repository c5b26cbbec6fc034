/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "watch/report.h"

static struct vt_verdict verdict_of(enum vt_status status, const char *type)
{
	struct vt_verdict verdict = { .status = status };

	strcpy(verdict.type, type);
	return verdict;
}

static void the_value_is_as_it_was_written(void **state)
{
	static const struct {
		const char *text, *value; /* NULL: none */
	} cases[] = {
		{ "{\"value\":[1,{\"a\":0.1}]}", "[1,{\"a\":0.1}]" },
		{ " { \"value\" : 12345678901234567890123 } ", "12345678901234567890123" },
		{ "{\"value\":null}", "null" },
		{ "{\"value\":\"\\u0000\"}", "\"\\u0000\"" },
		{ "{\"value\":1,\"value\":2}", "2" },
		{ "{\"values\":1}", NULL },
		{ "{\"error\":{\"value\":1}}", NULL },
		{ "{\"value\":1}{\"value\":1}", NULL },
		{ "{\"value\":1", NULL },
		{ "{\"value\":NaN}", NULL },
		{ "[\"value\",1]", NULL },
		{ "\"value\"", NULL },
		{ "", NULL },
		{ "\xff", NULL },
	};
	const struct vt_verdict ok = verdict_of(VT_STATUS_OK, "");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_json_span value = vt_report_value(cases[i].text, strlen(cases[i].text),
							    &ok);

		if (!cases[i].value) {
			assert_null(value.at);
			continue;
		}
		assert_non_null(value.at);
		assert_int_equal(value.end - value.at, strlen(cases[i].value));
		assert_memory_equal(value.at, cases[i].value, strlen(cases[i].value));
	}
}

static void what_did_not_end_well_has_no_value(void **state)
{
	static const char text[] = "{\"value\":1}";
	const struct vt_verdict failed = verdict_of(VT_STATUS_ERROR, "ExitCode"),
				late = verdict_of(VT_STATUS_TIMEOUT, "Timeout");

	(void)state;
	assert_null(vt_report_value(text, strlen(text), &failed).at);
	assert_null(vt_report_value(text, strlen(text), &late).at);
}

static void an_error_is_what_it_says(void **state)
{
	static const char text[] = "{\"error\":{\"type\":\"KeyError\",\"message\":\"a\\u0000b\","
				   "\"traceback\":\"\\u001b[31mx\\n\"}}";
	const struct vt_verdict failed = verdict_of(VT_STATUS_ERROR, "ExitCode");
	AUTO_JSON json_t *error = vt_report_error(text, strlen(text), &failed);

	(void)state;
	assert_non_null(error);
	assert_string_equal(json_string_value(json_object_get(error, "type")), "KeyError");
	assert_int_equal(json_string_length(json_object_get(error, "message")), 3);
	assert_string_equal(json_string_value(json_object_get(error, "traceback")), "\033[31mx\n");
	assert_int_equal(json_object_size(error), 3);
}

static void an_error_is_believed_only_of_code_that_exited_for_it(void **state)
{
	static const char whole[] =
		"{\"error\":{\"type\":\"T\",\"message\":\"m\",\"traceback\":\"t\"}}";
	static const char *const others[] = {
		"{\"error\":{\"type\":\"T\",\"message\":\"m\"}}",
		"{\"error\":{\"type\":5,\"message\":\"m\",\"traceback\":\"t\"}}",
		"{\"error\":[\"type\",\"message\",\"traceback\"]}",
		"{\"error\":null}",
		"{\"value\":1}",
	};
	const struct vt_verdict failed = verdict_of(VT_STATUS_ERROR, "ExitCode");
	const struct vt_verdict others_than[] = {
		verdict_of(VT_STATUS_OK, ""),
		verdict_of(VT_STATUS_TIMEOUT, "Timeout"),
		verdict_of(VT_STATUS_ERROR, "NotFound"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others_than) / sizeof(others_than[0]); i++)
		assert_null(vt_report_error(whole, strlen(whole), &others_than[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_null(vt_report_error(others[i], strlen(others[i]), &failed));
	AUTO_JSON json_t *control = vt_report_error(whole, strlen(whole), &failed);

	assert_non_null(control);
}

static void long_texts_are_cut(void **state)
{
	const struct vt_verdict failed = verdict_of(VT_STATUS_ERROR, "ExitCode");
	struct vt_str text;

	(void)state;
	vt_str_init(&text);
	vt_str_add(&text, "{\"error\":{\"type\":\"T");
	for (int i = 0; i < VT_REPORT_TYPE; i++)
		vt_str_add(&text, "é");
	vt_str_add(&text, "\",\"message\":\"m\",\"traceback\":\"t\"}}");
	assert_true(vt_str_ok(&text));
	AUTO_JSON json_t *error = vt_report_error(text.text, text.len, &failed);

	assert_non_null(error);
	/* No character is cut in two. */
	assert_int_equal(json_string_length(json_object_get(error, "type")), VT_REPORT_TYPE - 1);
	vt_str_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_is_as_it_was_written),
		cmocka_unit_test(what_did_not_end_well_has_no_value),
		cmocka_unit_test(an_error_is_what_it_says),
		cmocka_unit_test(an_error_is_believed_only_of_code_that_exited_for_it),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
