/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Small and larger than a chunk, in turn: all zeroed, aligned, and none over another. */
static void test_allocations_stand_apart(void **state)
{
	static const size_t sizes[] = { 1, 7, 16, 100000, 0, 3, 16384, 1 };
	struct vt_arena *arena = vt_arena_new();
	unsigned char *blocks[64];

	(void)state;
	assert_non_null(arena);
	for (size_t i = 0; i < 64; i++) {
		size_t size = sizes[i % 8];

		blocks[i] = vt_arena_alloc(arena, size);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		for (size_t at = 0; at < size; at++)
			assert_int_equal(blocks[i][at], 0);
		memset(blocks[i], (int)i + 1, size);
	}
	for (size_t i = 0; i < 64; i++) {
		for (size_t at = 0; at < sizes[i % 8]; at++)
			assert_int_equal(blocks[i][at], i + 1);
	}
	vt_arena_free(arena);
}

static void test_huge_sizes_are_refused(void **state)
{
	struct vt_arena *arena = vt_arena_new();

	(void)state;
	assert_null(vt_arena_alloc(arena, SIZE_MAX));
	assert_null(vt_arena_alloc(arena, SIZE_MAX / 2 + 1));
	assert_null(vt_arena_array(arena, SIZE_MAX / 8, 16));
	assert_non_null(vt_arena_array(arena, 3, 16));
	vt_arena_free(arena);
	vt_arena_free(NULL);
}

static void test_texts(void **state)
{
	struct vt_arena *arena = vt_arena_new();

	(void)state;
	assert_string_equal(vt_arena_dup(arena, "glass"), "glass");
	assert_string_equal(vt_arena_dupn(arena, "glass", 2), "gl");
	assert_string_equal(vt_arena_printf(arena, "%s-%0300d", "x", 7) + 300, "07");
	assert_string_equal(vt_arena_printf(arena, "%s", ""), "");
	vt_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocations_stand_apart),
		cmocka_unit_test(test_huge_sizes_are_refused),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
