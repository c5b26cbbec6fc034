/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bulk.h"

enum { MB = 1 << 20 };

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(vt_bulk_next(0, 100, 1000), 100);
	assert_int_equal(vt_bulk_next(100, 100, 1000), 200);
	assert_int_equal(vt_bulk_next(100, 100, 150), 150);
	assert_int_equal(vt_bulk_size(1000), 1000);
	for (size_t need = 4 * MB - 100; need < 4 * MB + 100; need++) {
		assert_true(vt_bulk_size(need) >= need);
		assert_true(vt_bulk_size(need) < need + 2 * MB);
	}
}

static char *make(size_t cap, char with)
{
	char *memory = vt_bulk_resize(NULL, cap);

	assert_non_null(memory);
	memset(memory, with, cap);
	return memory;
}

static void test_spare_is_used_again(void **state)
{
	struct vt_bulk_spare spare = { 0 };
	char *first = make(8 * MB, 'a'), *memory = make(2 * MB, 'b');
	size_t cap = 2 * MB;

	(void)state;
	vt_bulk_keep(&spare, first, 8 * MB);
	assert_ptr_equal(spare.memory, first);
	assert_true(vt_bulk_move(&spare, &memory, &cap, 6 * MB, false));
	assert_ptr_equal(memory, first);
	assert_int_equal(cap, 8 * MB);
	assert_int_equal(memory[0], 'b');
	assert_int_equal(memory[2 * MB - 1], 'b');
	assert_null(spare.memory);
	assert_int_equal(spare.cap, 0);
	/* There is one at the most. */
	assert_false(vt_bulk_move(&spare, &memory, &cap, 6 * MB, false));
	free(memory);
}

static void test_spare_for_who_is_trusted(void **state)
{
	struct vt_bulk_spare spare = { 0 };
	char *first = make(8 * MB, 'a'), *memory = make(MB, 'b');
	size_t cap = MB;

	(void)state;
	vt_bulk_keep(&spare, first, 8 * MB);
	assert_true(vt_bulk_move(&spare, &memory, &cap, 6 * MB, true));
	assert_ptr_equal(memory, first);
	assert_int_equal(memory[MB - 1], 'b');
	free(memory);
}

static void test_spare_that_does_not_fit(void **state)
{
	struct vt_bulk_spare spare = { 0 };
	char *first = make(8 * MB, 'a'), *memory = make(2 * MB, 'b');
	size_t cap = 2 * MB, little = MB;

	(void)state;
	vt_bulk_keep(&spare, first, 8 * MB);
	assert_false(vt_bulk_move(&spare, &memory, &cap, 8 * MB + 1, false));
	/* Who has got little has it for little. */
	assert_false(vt_bulk_move(&spare, &memory, &little, 6 * MB, false));
	assert_false(vt_bulk_move(NULL, &memory, &cap, 6 * MB, false));
	assert_false(vt_bulk_move(&spare, &memory, &cap, 3 * MB, true));
	assert_int_equal(cap, 2 * MB);
	assert_ptr_equal(spare.memory, first);
	free(memory);
	vt_bulk_drop(&spare);
	assert_null(spare.memory);
}

static void test_what_is_kept(void **state)
{
	struct vt_bulk_spare spare = { 0 };

	(void)state;
	vt_bulk_keep(&spare, NULL, 0);
	vt_bulk_keep(&spare, make(MB, 'a'), MB);
	assert_null(spare.memory);
	vt_bulk_keep(&spare, malloc(VT_BULK_SPARE_MAX + 1), VT_BULK_SPARE_MAX + 1);
	assert_null(spare.memory);
	vt_bulk_keep(&spare, make(8 * MB, 'a'), 8 * MB);
	vt_bulk_keep(&spare, make(5 * MB, 'b'), 5 * MB); /* the larger one stays */
	assert_int_equal(spare.cap, 8 * MB);
	assert_int_equal(spare.memory[0], 'a');
	vt_bulk_keep(&spare, make(9 * MB, 'c'), 9 * MB);
	assert_int_equal(spare.cap, 9 * MB);
	assert_int_equal(spare.memory[0], 'c');
	vt_bulk_drop(&spare);
	vt_bulk_keep(NULL, make(8 * MB, 'a'), 8 * MB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_spare_is_used_again),
		cmocka_unit_test(test_spare_for_who_is_trusted),
		cmocka_unit_test(test_spare_that_does_not_fit),
		cmocka_unit_test(test_what_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
