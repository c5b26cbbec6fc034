/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "serve/cells.h"

/* Who looks at a client's paths may say anything: no number of an error makes a failure look like
 * success. */
static void test_forged_error(void **state)
{
	const struct vt_cells_wish wish = { .command = "true", .program_fd = -1 };
	static const int numbers[] = { ENOENT, -ENOENT, INT_MIN, INT_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct vt_cells_found found = { .image_fd = -1, .program_fd = -1 };
		struct vt_cells cells = { .program_fd = -1 };
		struct vt_err err = { 0 };

		found.err = (struct vt_err){ (enum vt_step)999, numbers[i], "it is not there" };
		int r = vt_cells_believe(&cells, &wish, &found, &err);

		assert_true(r < 0);
		assert_int_equal(r, -err.num);
		assert_string_equal(err.what, "it is not there");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_forged_error) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
