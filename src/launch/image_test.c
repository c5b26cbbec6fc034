/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static void test_has_what_cells_need(void **state)
{
	char *envp[] = { (char *)"A=1", NULL };
	const struct vt_build builds[] = { { .act = VT_ACT_SCRATCH, .to = "/tmp" } };
	const struct vt_plan plan = {
		.envp = envp, .cwd = "/home", .builds = builds, .build_count = 1, .result_bytes = 7
	};
	const struct vt_plan *opened;
	struct vt_err err;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make(&plan, &err);

	assert_true(fd >= 0);
	assert_int_equal(vt_image_open(fd, &opened, &err), 0);
	assert_string_equal(opened->envp[0], "A=1");
	assert_null(opened->envp[1]);
	assert_string_equal(opened->cwd, "/home");
	assert_int_equal(opened->builds[0].act, VT_ACT_SCRATCH);
	assert_string_equal(opened->builds[0].to, "/tmp");
	assert_int_equal(opened->result_bytes, 7);
}

/* It is in the memory of every tool. */
static void test_has_nothing_of_the_supervisors(void **state)
{
	static const char secret[] = "/only/the/supervisor's";
	const char *const notes[] = { secret };
	char *argv[] = { (char *)secret, NULL }, *envp[] = { NULL };
	struct vt_plan plan = { .exec_path = secret,
				.argv = argv,
				.envp = envp,
				.cwd = "/home",
				.open_pipes = secret,
				.notes = notes,
				.note_count = 1,
				.ids_note = secret,
				.warnings = { secret },
				.warning_count = 1,
				.cgroup_site.version = VT_CGROUP_V1 };
	struct vt_err err;
	struct stat st;

	(void)state;
	strcpy(plan.cgroup_site.memory, secret);
	strcpy(plan.cgroup_site.pids, secret);
	strcpy(plan.cgroup_site.cpu, secret);
	strcpy(plan.cgroup_site.cpuacct, secret);
	AUTO_CLOSE int fd = vt_image_make(&plan, &err);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(bytes, MAP_FAILED);
	assert_non_null(memmem(bytes, (size_t)st.st_size, "/home", 5));
	assert_null(memmem(bytes, (size_t)st.st_size, secret, sizeof(secret) - 1));
	assert_int_equal(munmap(bytes, (size_t)st.st_size), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_has_what_cells_need),
		cmocka_unit_test(test_has_nothing_of_the_supervisors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
