/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct vt_room wanted = {
	.clients = 512, .live = 256, .sets = 256, .spare = 16384, .looks = 64, .burst = 8192
};

/* There is one of each at the least, and no more than there are descriptors for. */
static void test_few(void **state)
{
	(void)state;
	for (uint64_t files = VT_ROOM_FILES_MIN; files < 100000; files += 37) {
		struct vt_room room;

		vt_room_find(files, &wanted, &room);
		assert_true(room.clients && room.live && room.sets && room.spare && room.looks);
		assert_true(room.burst >= 64);
		assert_true(room.clients * 3 + room.live * 24 + room.sets * 16 + room.spare * 16 +
				    room.looks + room.burst + 64 <=
			    files);
	}
}

static void test_many(void **state)
{
	struct vt_room room;

	(void)state;
	vt_room_find(1 << 20, &wanted, &room);
	assert_memory_equal(&room, &wanted, sizeof(room));
	vt_room_find(UINT64_MAX, &wanted, &room); /* RLIM_INFINITY */
	assert_memory_equal(&room, &wanted, sizeof(room));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_few),
					    cmocka_unit_test(test_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
