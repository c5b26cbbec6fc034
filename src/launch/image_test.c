/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
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

static struct vt_image_whole whole_plan(void)
{
	static char *envp[] = { (char *)"A=1", NULL };
	static const char *const notes[] = { "one", "two" };
	static const struct vt_veiled names[] = { { .path = "sub/.env" } };
	static const struct vt_veil veil = {
		.name = "v", .names = names, .count = 1, .work = 0, .work_parent = "/srv"
	};
	static const struct vt_build builds[] = {
		{ .act = VT_ACT_BIND, .to = "srv", .from = "/srv", .idmap = 0, .veil = &veil }
	};
	static const struct vt_idmap idmaps[] = { { 7, 8 } };
	static const struct vt_denial denials[] = { { .path = "/srv/.env" } };

	return (struct vt_image_whole){ .plan = { .envp = envp,
						  .cwd = "/home",
						  .builds = builds,
						  .build_count = 1,
						  .idmaps = idmaps,
						  .idmap_count = 1,
						  .work_count = 1,
						  .denials = denials,
						  .denial_count = 1,
						  .notes = notes,
						  .note_count = 2,
						  .level = "full",
						  .holdings[1] = { .name = "files" } },
					.texts = { [1] = "/bin/true" },
					.bytes = "a\0b",
					.bytes_len = 3 };
}

/* For a supervisor that had it made elsewhere. */
static void test_has_all_of_a_whole_one(void **state)
{
	const struct vt_image_whole whole = whole_plan();
	struct vt_image_whole *opened;
	struct vt_err err;
	size_t len;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);

	assert_true(fd >= 0);
	assert_int_equal(vt_image_open_whole(fd, &opened, &len, &err), 0);
	const struct vt_plan *plan = &opened->plan;

	assert_string_equal(plan->envp[0], "A=1");
	assert_string_equal(plan->builds[0].veil->names[0].path, "sub/.env");
	assert_string_equal(plan->builds[0].veil->work_parent, "/srv");
	assert_int_equal(plan->idmaps[0].gid, 8);
	assert_string_equal(plan->denials[0].path, "/srv/.env");
	assert_null(plan->denials[0].closed);
	assert_string_equal(plan->notes[1], "two");
	assert_string_equal(plan->level, "full");
	assert_string_equal(plan->holdings[1].name, "files");
	assert_null(opened->texts[0]);
	assert_string_equal(opened->texts[1], "/bin/true");
	assert_memory_equal(opened->bytes, "a\0b", 3);
	vt_image_close(opened, len);
}

/* A text of a fixed room ends somewhere in it; what is behind its end means nothing. */
static void test_fixed_texts_end(void **state)
{
	struct vt_image_whole whole = whole_plan();
	struct vt_cgroup_site *site = &whole.plan.cgroup_site;
	struct vt_image_whole *opened;
	struct vt_err err;
	size_t len;

	(void)state;
	memset(site->memory, 'x', sizeof(site->memory));
	assert_int_equal(vt_image_make_whole(&whole, &err), -E2BIG);
	strcpy(site->memory, "/cgroup");
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);

	assert_true(fd >= 0);
	assert_int_equal(vt_image_open_whole(fd, &opened, &len, &err), 0);
	assert_string_equal(opened->plan.cgroup_site.memory, "/cgroup");
	vt_image_close(opened, len);
}

/* A copy of an image that is sealed too, but for one number at that place of it. */
static int forge(int fd, size_t at, uint64_t number)
{
	static char bytes[1 << 20];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	int forged = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(len > 0 && forged >= 0);
	memcpy(bytes + at, &number, sizeof(number));
	assert_int_equal(write(forged, bytes, (size_t)len), len);
	assert_int_equal(fcntl(forged, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
	return forged;
}

/* Whatever one number of it is, nothing outside of it is led to, and no count passes its end. */
static void test_forged_numbers(void **state)
{
	static const uint64_t numbers[] = { 1, 8, 1 << 16, 1 << 30, UINT64_MAX, UINT64_MAX / 2 };
	enum { HEAD = 64 + 8 };
	const struct vt_image_whole whole = whole_plan();
	struct vt_image_whole *opened;
	struct vt_err err;
	struct vt_str text;
	size_t len, refused = 0;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);

	assert_true(fd >= 0);
	for (size_t at = 0; at < HEAD + sizeof(whole); at += 8)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			AUTO_CLOSE int forged = forge(fd, at, numbers[i]);

			if (vt_image_open_whole(forged, &opened, &len, &err) < 0) {
				refused++;
				continue;
			}
			vt_str_init(&text);
			for (size_t n = 0; n < opened->plan.note_count; n++)
				vt_str_add(&text, opened->plan.notes[n]);
			for (size_t n = 0; n < opened->plan.build_count; n++)
				vt_str_add(&text, opened->plan.builds[n].from);
			vt_str_done(&text);
			vt_image_close(opened, len);
		}
	assert_true(refused > 100);
}

/* One that is neither true nor false. */
static void test_forged_flags(void **state)
{
	enum { HEAD = 64 + 8, PLAN = HEAD + offsetof(struct vt_image_whole, plan) };
	static const size_t flags[] = { offsetof(struct vt_plan, cgroup.has_network),
					offsetof(struct vt_plan, cgroup.count_cpu) };
	const struct vt_image_whole whole = whole_plan();
	struct vt_image_whole *opened;
	struct vt_err err;
	size_t len;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		AUTO_CLOSE int forged = forge(fd, PLAN + flags[i], 2);

		assert_int_equal(vt_image_open_whole(forged, &opened, &len, &err), -EBADMSG);
	}
}

/* Of two things in one place, turning one into pointers would change what was checked of the other.
 */
static void test_shared_place(void **state)
{
	enum { HEAD = 64 + 8, TEXTS = HEAD + offsetof(struct vt_image_whole, texts) };
	const struct vt_image_whole whole = whole_plan();
	struct vt_image_whole *opened;
	uint64_t place;
	struct vt_err err;
	size_t len;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);

	assert_int_equal(pread(fd, &place, sizeof(place), TEXTS + 8), sizeof(place));
	AUTO_CLOSE int same = forge(fd, TEXTS + 8, place);
	AUTO_CLOSE int shared = forge(fd, TEXTS + 16, place);

	assert_int_equal(vt_image_open_whole(same, &opened, &len, &err), 0);
	vt_image_close(opened, len);
	assert_int_equal(vt_image_open_whole(shared, &opened, &len, &err), -EBADMSG);
}

/* What could still be changed is not believed. */
static void test_unsealed(void **state)
{
	const struct vt_image_whole whole = whole_plan();
	struct vt_image_whole *opened;
	char bytes[4096];
	struct vt_err err;
	ssize_t got;
	size_t len;

	(void)state;
	AUTO_CLOSE int fd = vt_image_make_whole(&whole, &err);
	AUTO_CLOSE int copy = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(copy, bytes, (size_t)got), got);
	assert_int_equal(vt_image_open_whole(copy, &opened, &len, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_has_what_cells_need),
		cmocka_unit_test(test_has_nothing_of_the_supervisors),
		cmocka_unit_test(test_has_all_of_a_whole_one),
		cmocka_unit_test(test_fixed_texts_end),
		cmocka_unit_test(test_forged_numbers),
		cmocka_unit_test(test_forged_flags),
		cmocka_unit_test(test_shared_place),
		cmocka_unit_test(test_unsealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
