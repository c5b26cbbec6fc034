/* SPDX-License-Identifier: Apache-2.0 */
#include "base/closest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *closest_to(const char *typed)
{
	static const char *const known[] = { "run", "explain", "doctor", "timeout", "raw", "read" };
	struct vt_closest closest;

	vt_closest_init(&closest, typed);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		vt_closest_try(&closest, known[i], known[i]);
	return closest.best;
}

static void the_nearest_is_meant(void **state)
{
	(void)state;
	assert_string_equal(closest_to("rnu"), "run");
	assert_string_equal(closest_to("explian"), "explain");
	assert_string_equal(closest_to("docter"), "doctor");
	assert_string_equal(closest_to("tiemout"), "timeout");
	assert_string_equal(closest_to("raed"), "read");
	assert_string_equal(closest_to("run"), "run");
}

static void what_is_far_from_all_is_nobody(void **state)
{
	char longest[2 * VT_CLOSEST_LONGEST];

	(void)state;
	assert_null(closest_to("ls"));
	assert_null(closest_to("python3"));
	assert_null(closest_to(""));
	memset(longest, 'r', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(closest_to(longest));
	assert_null(closest_to(longest + VT_CLOSEST_LONGEST - 1));
}

/* The first of two that are equally near stays; a known word that is too long is left out. */
static void ties_and_long_words(void **state)
{
	char longest[2 * VT_CLOSEST_LONGEST];
	struct vt_closest closest;

	(void)state;
	memset(longest, 'r', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	vt_closest_init(&closest, longest + VT_CLOSEST_LONGEST - 1);
	vt_closest_try(&closest, longest + VT_CLOSEST_LONGEST - 2, "too long");
	assert_null(closest.best);
	vt_closest_init(&closest, "ab");
	vt_closest_try(&closest, "ac", "first");
	vt_closest_try(&closest, "ad", "second");
	assert_string_equal(closest.best, "first");
	vt_closest_init(&closest, "a");
	vt_closest_try(&closest, "b", "any other letter");
	assert_null(closest.best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_is_meant),
		cmocka_unit_test(what_is_far_from_all_is_nobody),
		cmocka_unit_test(ties_and_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
