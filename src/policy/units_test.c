/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_values(void **state)
{
	static const struct {
		enum vt_type type;
		const char *text;
		int64_t value;
	} cases[] = {
		{ VT_TYPE_MS, "5", 5 },
		{ VT_TYPE_MS, "5s", 5000 },
		{ VT_TYPE_MS, "500ms", 500 },
		{ VT_TYPE_MS, "2m", 120000 },
		{ VT_TYPE_MS, "0.5s", 500 },
		/* In binary 1.1 * 1000 is a little more than 1100. */
		{ VT_TYPE_MS, "1.1s", 1100 },
		{ VT_TYPE_MS, "2.3s", 2300 },
		{ VT_TYPE_MS, "0.1ms", 1 },
		{ VT_TYPE_MS, "0", 0 },
		{ VT_TYPE_MS, "0.000000000000000001s", 1 },
		{ VT_TYPE_MS, "00000000000000000000005s", 5000 },
		{ VT_TYPE_KB, "64K", 64 },
		{ VT_TYPE_KB, "64", 64 },
		{ VT_TYPE_KB, "1M", 1024 },
		{ VT_TYPE_KB, "1G", 1048576 },
		{ VT_TYPE_MB, "1", 1 },
		{ VT_TYPE_MB, "256M", 256 },
		{ VT_TYPE_MB, "1.5G", 1536 },
		{ VT_TYPE_MB, "64K", 1 },
		{ VT_TYPE_MB, "1024K", 1 },
		{ VT_TYPE_MB, "1025K", 2 },
		{ VT_TYPE_MB, "0K", 0 },
		{ VT_TYPE_COUNT, "12", 12 },
		{ VT_TYPE_COUNT, "12.0", 12 },
		{ VT_TYPE_COUNT, "999999999999999999", 999999999999999999 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = -7;

		assert_int_equal(vt_units_whole(cases[i].type, cases[i].text, &value), 0);
		assert_int_equal(value, cases[i].value);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		enum vt_type type;
		const char *text;
		int status;
	} cases[] = {
		{ VT_TYPE_MS, "", -EINVAL },
		{ VT_TYPE_MS, "s", -EINVAL },
		{ VT_TYPE_MS, "-", -EINVAL },
		{ VT_TYPE_MS, "+5", -EINVAL },
		{ VT_TYPE_MS, " 5", -EINVAL },
		{ VT_TYPE_MS, ".5s", -EINVAL },
		{ VT_TYPE_MS, "nan", -EINVAL },
		{ VT_TYPE_MS, "inf", -EINVAL },
		{ VT_TYPE_MS, "5 s", -ENOTSUP },
		{ VT_TYPE_MS, "5h", -ENOTSUP },
		{ VT_TYPE_MS, "5S", -ENOTSUP },
		{ VT_TYPE_MS, "5M", -ENOTSUP },
		{ VT_TYPE_MS, "5.", -ENOTSUP },
		{ VT_TYPE_MS, "1.2.3s", -ENOTSUP },
		{ VT_TYPE_MS, "1,5s", -ENOTSUP },
		{ VT_TYPE_MS, "1e3", -ENOTSUP },
		{ VT_TYPE_MS, "0x10", -ENOTSUP },
		{ VT_TYPE_MB, "5s", -ENOTSUP },
		{ VT_TYPE_MB, "5T", -ENOTSUP },
		{ VT_TYPE_MB, "5MB", -ENOTSUP },
		{ VT_TYPE_MS, "-5s", -ERANGE },
		{ VT_TYPE_MS, "99999999999999999999", -ERANGE },
		{ VT_TYPE_MS, "999999999999999999m", -ERANGE },
		{ VT_TYPE_KB, "999999999999999999G", -ERANGE },
		{ VT_TYPE_MS, "1.0000000000000000000001s", -E2BIG },
		{ VT_TYPE_COUNT, "1.5", -EDOM },
		{ VT_TYPE_COUNT, "5K", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = -7;

		assert_int_equal(vt_units_whole(cases[i].type, cases[i].text, &value),
				 cases[i].status);
		assert_int_equal(value, -7);
	}
}

static void test_numbers(void **state)
{
	double value = -7;

	(void)state;
	assert_int_equal(vt_units_number("nan", &value), -EINVAL);
	assert_int_equal(vt_units_number("1e3", &value), -EINVAL);
	assert_int_equal(vt_units_number("2x", &value), -EINVAL);
	assert_int_equal(vt_units_number("-1", &value), -ERANGE);
	assert_true(value == -7);
	assert_int_equal(vt_units_number("0.5", &value), 0);
	assert_true(value == 0.5);
	assert_int_equal(vt_units_number("0.1", &value), 0);
	assert_true(value == 0.1);
	assert_int_equal(vt_units_number("4096", &value), 0);
	assert_true(value == 4096);
}

static void test_show(void **state)
{
	static const struct {
		enum vt_type type;
		int64_t value;
		const char *shown;
	} cases[] = {
		{ VT_TYPE_MS, 0, "0" },          { VT_TYPE_MS, 1, "1ms" },
		{ VT_TYPE_MS, 1500, "1500ms" },  { VT_TYPE_MS, 90000, "90s" },
		{ VT_TYPE_MS, 600000, "10m" },   { VT_TYPE_MB, 1, "1M" },
		{ VT_TYPE_MB, 1536, "1536M" },   { VT_TYPE_MB, 16777216, "16384G" },
		{ VT_TYPE_KB, 1048576, "1G" },   { VT_TYPE_KB, 3, "3K" },
		{ VT_TYPE_COUNT, 1024, "1024" },
	};
	char shown[VT_UNITS_SHOWN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		vt_units_show(cases[i].type, cases[i].value, shown);
		assert_string_equal(shown, cases[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
