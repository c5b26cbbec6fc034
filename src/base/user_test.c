/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static void test_maps(void **state)
{
	static const struct {
		uid_t uid;
		const char *overflow, *map;
		bool is_one;
	} rows[] = {
		{ 1000, "65534\n", "", true },
		{ 65534, "65534\n", "         0          0 4294967295\n", true },
		{ 65534, "65534\n", "", false },
		{ 65534, "65534\n", "         0       1000          1\n", false },
		{ 65534, "65534\n", "     65534       1000          1\n", false },
		{ 65534, "65534\n", "0 100000 65536\n", false },
		/* In pieces, as some write it. */
		{ 65534, "65534\n", "0 0 1000\n1000 1000 4294966295\n", true },
		{ 65534, "65534\n", "0 0 1000\n1000 1000 4294966294\n", false },
		{ 65534, "65534\n", "0 0 4294967295", false }, /* cut off */
		{ 65534, "", "0 0 1\n", false },
		{ 65534, "99\n", "0 0 1\n", true },
		{ 99, "99\n", "0 0 1\n", false },
		{ 0, "0\n", "0 0 1\n", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (vt_user_is_one(rows[i].uid, rows[i].overflow, rows[i].map) != rows[i].is_one)
			fail_msg("%u of '%s' in '%s'", (unsigned)rows[i].uid, rows[i].overflow,
				 rows[i].map);
}

/* Whoever runs the tests is somebody. */
static void test_here(void **state)
{
	(void)state;
	assert_true(vt_user_is_known(0) || access("/proc/self/uid_map", R_OK) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_maps),
					    cmocka_unit_test(test_here) };

	return cmocka_run_group_tests_name("user", tests, NULL, NULL);
}
