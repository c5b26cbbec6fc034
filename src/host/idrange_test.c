/* SPDX-License-Identifier: Apache-2.0 */
#include "host/idrange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_pick(void **state)
{
	static const char all[] = "         0          0 4294967295\n";
	static const struct {
		const char *name, *uids, *gids;
		struct vt_idrange want;
	} cases[] = {
		{ "the initial namespace", all, all, { VT_IDRANGE_BASE, VT_IDRANGE_COUNT } },
		{ "root alone", "0 1000 1\n", "0 1000 1\n", { 0, 0 } },
		{ "nothing", "", "", { 0, 0 } },
		{ "garbage", "x y z\n", all, { 0, 0 } },
		{ "a container of 65536", "0 100000 65536\n", "0 100000 65536\n", { 1000, 64534 } },
		{ "rootless, in two lines",
		  "0 1000 1\n1 100000 65536\n",
		  "0 1000 1\n1 100000 65536\n",
		  { 1000, 64534 } },
		{ "lines out of order",
		  "1 100000 65536\n0 1000 1\n",
		  "0 1000 1\n1 100000 65536\n",
		  { 1000, 64534 } },
		{ "gids have fewer", all, "0 100000 2000\n", { 1000, 1000 } },
		{ "one id", "0 0 1001\n", all, { 1000, 1 } },
		{ "nobody and 65535 alone", "65534 5 2\n", all, { 0, 0 } },
		{ "above 65535 is larger", "0 0 200000\n", "0 0 200000\n", { 65536, 134464 } },
		{ "no more than needed, from the top",
		  "100000 0 8388608\n",
		  all,
		  { 100000 + 8388608 - VT_IDRANGE_COUNT, VT_IDRANGE_COUNT } },
		{ "preferred in uids only", all, "0 0 1000\n", { 0, 0 } },
		{ "preferred range in two pieces",
		  "1879048192 0 100\n1879048292 500 4194204\n",
		  all,
		  { VT_IDRANGE_BASE, VT_IDRANGE_COUNT } },
		{ "a last line that is cut", "1000 0 10\n2000 0 99", all, { 1000, 10 } },
		{ "apart", "1000 0 10\n", "2000 0 10\n", { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_idrange got = vt_idrange_pick(cases[i].uids, cases[i].gids);

		if (got.base != cases[i].want.base || got.count != cases[i].want.count)
			fail_msg("%s: %u + %u", cases[i].name, got.base, got.count);
	}
}

/* The kernel never gives more than 340 lines; a text that does must not overflow. */
static void test_too_many_lines(void **state)
{
	static char text[400 * 24];
	size_t len = 0;

	(void)state;
	for (unsigned i = 0; i < 400; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u 0 1\n", 1000 + i * 2);
	struct vt_idrange got = vt_idrange_pick(text, "0 0 4294967295\n");

	assert_int_equal(got.count, 1);
	assert_int_equal(got.base, 1000 + 339 * 2);
}

static void test_ids_of_pools(void **state)
{
	(void)state;
	assert_true(vt_idrange_has_pools("0 0 4294967295\n", "0 0 4294967295\n"));
	assert_true(vt_idrange_has_pools("0 0 2147483648\n", "0 0 2147483648\n"));
	assert_false(vt_idrange_has_pools("0 0 4294967295\n", "0 0 65536\n"));
	assert_false(vt_idrange_has_pools("0 0 2000000000\n", "0 0 4294967295\n"));
	assert_false(vt_idrange_has_pools("", ""));
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_too_many_lines),
		cmocka_unit_test(test_ids_of_pools),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
