/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as data, compiled for this machine and run by an interpreter. */
#include "kernel/seccomp_oci.h"

#include <errno.h>
#include <sys/syscall.h>

#include "kernel/bpf_test.h"

#ifdef __x86_64__
#define HERE      "amd64"
#define ELSEWHERE "arm64"
#else
#define HERE      "arm64"
#define ELSEWHERE "amd64"
#endif

#define LIST(...)             \
	(const char *const[]) \
	{                     \
		__VA_ARGS__   \
	}
#define NAMES(...) \
	.names = LIST(__VA_ARGS__), .name_count = sizeof(LIST(__VA_ARGS__)) / sizeof(char *)
#define ARGS(...)                                                         \
	.args = (const struct vt_oci_arg[]){ __VA_ARGS__ },               \
	.arg_count = sizeof((const struct vt_oci_arg[]){ __VA_ARGS__ }) / \
		     sizeof(struct vt_oci_arg)
#define ALLOWS    .verdict = { VT_OCI_ALLOW, 0 }
#define DENIES(n) .verdict = { VT_OCI_ERRNO, (n) }
#define LETS_RUN                        \
	{                               \
		NAMES("execve"), ALLOWS \
	}

/* The kernel of these tests. */
enum { MAJOR = 5, MINOR = 10 };

static struct vt_arena *arena;
static struct sock_fprog filter;

static int compile(struct vt_oci_verdict fallback, const struct vt_oci_rule *rules, size_t count,
		   struct vt_err *err)
{
	const struct vt_oci_profile profile = { "/p.json", fallback, rules, count };

	return vt_oci_compile(&profile, MAJOR, MINOR, arena, &filter, err);
}

#define COMPILE(fallback, ...)                                         \
	do {                                                           \
		const struct vt_oci_rule rules[] = { __VA_ARGS__ };    \
		struct vt_err err = { 0 };                             \
                                                                       \
		if (compile((struct vt_oci_verdict)fallback, rules,    \
			    sizeof(rules) / sizeof(*rules), &err) < 0) \
			fail_msg("%s", err.what);                      \
	} while (0)

#define REFUSES(text, fallback, ...)                                                     \
	do {                                                                             \
		const struct vt_oci_rule rules[] = { __VA_ARGS__ };                      \
		struct vt_err err = { 0 };                                               \
                                                                                         \
		assert_true(compile((struct vt_oci_verdict)fallback, rules,              \
				    sizeof(rules) / sizeof(*rules), &err) < 0);          \
		assert_int_equal(err.step, VT_STEP_PLAN);                                \
		assert_true(strncmp(err.what, "refused: syscalls: /p.json: ", 28) == 0); \
		if (!strstr(err.what, text))                                             \
			fail_msg("'%s' is not in: %s", text, err.what);                  \
	} while (0)

static int ask(long nr, uint64_t a, uint64_t b)
{
	const struct seccomp_data data = { (int)nr, NATIVE_ARCH, 0, { a, b, 0, 0, 0, 0 } };

	return bpf_answer(&filter, &data);
}

static uint32_t ask_raw(long nr)
{
	const struct seccomp_data data = { (int)nr, NATIVE_ARCH, 0, { 0 } };

	return bpf_run(&filter, &data);
}

#define WITH_ERRNO(n)             \
	{                         \
		VT_OCI_ERRNO, (n) \
	}
#define WITH(action)        \
	{                   \
		(action), 0 \
	}

static void test_fallback_and_names(void **state)
{
	(void)state;
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN, { NAMES("read", "write", "no_such_call"), ALLOWS },
		{ NAMES("getpid"), DENIES(EBUSY) });
	assert_int_equal(ask(SYS_read, 0, 0), PASS);
	assert_int_equal(ask(SYS_write, 0, 0), PASS);
	assert_int_equal(ask(SYS_getpid, 0, 0), EBUSY);
	assert_int_equal(ask(SYS_close, 0, 0), EPERM);
}

static void test_actions(void **state)
{
	(void)state;
	COMPILE(WITH(VT_OCI_LOG), { NAMES("read"), .verdict = WITH(VT_OCI_KILL_THREAD) },
		{ NAMES("write"), .verdict = WITH(VT_OCI_KILL_PROCESS) },
		{ NAMES("close"), .verdict = WITH(VT_OCI_TRAP) }, { NAMES("lseek"), ALLOWS },
		{ NAMES("dup"), DENIES(0) });
	assert_int_equal(ask_raw(SYS_read), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(ask_raw(SYS_write), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask_raw(SYS_close) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_TRAP);
	assert_int_equal(ask_raw(SYS_lseek), SECCOMP_RET_ALLOW);
	assert_int_equal(ask_raw(SYS_dup), SECCOMP_RET_ERRNO);
	assert_int_equal(ask_raw(SYS_fsync), SECCOMP_RET_LOG);
}

static void test_comparisons(void **state)
{
	static const struct {
		enum vt_oci_op op;
		uint64_t value, two, yes, no;
	} rows[] = {
		{ VT_OCI_EQ, 7, 0, 7, 8 },
		{ VT_OCI_NE, 7, 0, 8, 7 },
		{ VT_OCI_LT, 7, 0, 6, 7 },
		{ VT_OCI_LE, 7, 0, 7, 8 },
		{ VT_OCI_GT, 7, 0, 8, 7 },
		{ VT_OCI_GE, 7, 0, 7, 6 },
		{ VT_OCI_MASKED_EQ, 0xf0, 0x30, 0x13f, 0x14f },
		{ VT_OCI_EQ, 0x100000007, 0, 0x100000007, 7 },
		{ VT_OCI_GT, 0x100000000, 0, 0x100000001, 0xffffffff },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		COMPILE(WITH_ERRNO(EPERM), LETS_RUN,
			{ NAMES("dup3"), ALLOWS,
			  ARGS({ 1, rows[i].op, rows[i].value, rows[i].two }) });
		assert_int_equal(ask(SYS_dup3, 0, rows[i].yes), PASS);
		assert_int_equal(ask(SYS_dup3, 0, rows[i].no), EPERM);
	}
}

static void test_arguments_combine(void **state)
{
	(void)state;
	/* Two arguments: both. */
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN,
		{ NAMES("dup3"), ALLOWS, ARGS({ 0, VT_OCI_EQ, 1, 0 }, { 1, VT_OCI_EQ, 2, 0 }) });
	assert_int_equal(ask(SYS_dup3, 1, 2), PASS);
	assert_int_equal(ask(SYS_dup3, 1, 1), EPERM);
	assert_int_equal(ask(SYS_dup3, 2, 2), EPERM);
	/* One argument twice: either, as runc has it. */
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN,
		{ NAMES("dup3"), ALLOWS, ARGS({ 0, VT_OCI_EQ, 1, 0 }, { 0, VT_OCI_EQ, 2, 0 }) });
	assert_int_equal(ask(SYS_dup3, 1, 0), PASS);
	assert_int_equal(ask(SYS_dup3, 2, 0), PASS);
	assert_int_equal(ask(SYS_dup3, 3, 0), EPERM);
}

/* As under runc: a rule without conditions stands above those with, wherever it is. */
static void test_rules_combine(void **state)
{
	(void)state;
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN,
		{ NAMES("dup3"), ALLOWS, ARGS({ 0, VT_OCI_EQ, 1, 0 }) },
		{ NAMES("dup3"), DENIES(EBUSY), ARGS({ 0, VT_OCI_EQ, 2, 0 }) });
	assert_int_equal(ask(SYS_dup3, 1, 0), PASS);
	assert_int_equal(ask(SYS_dup3, 2, 0), EBUSY);
	assert_int_equal(ask(SYS_dup3, 3, 0), EPERM);
	COMPILE(WITH(VT_OCI_ALLOW), { NAMES("dup3"), DENIES(EBUSY), ARGS({ 0, VT_OCI_EQ, 1, 0 }) },
		{ NAMES("dup3"), DENIES(EINVAL) });
	assert_int_equal(ask(SYS_dup3, 1, 0), EINVAL);
	/* A rule that says what the fallback says is none. */
	COMPILE(WITH(VT_OCI_ALLOW), { NAMES("dup3"), ALLOWS }, { NAMES("dup3"), DENIES(EBUSY) });
	assert_int_equal(ask(SYS_dup3, 1, 0), EBUSY);
}

static void test_conditions_about_the_machine(void **state)
{
	(void)state;
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN, { NAMES("dup"), ALLOWS, .includes = { .caps = true } },
		{ NAMES("dup3"), ALLOWS, .excludes = { .caps = true } },
		{ NAMES("read"), ALLOWS, .includes = { .arches = LIST(HERE), .arch_count = 1 } },
		{ NAMES("write"), ALLOWS,
		  .includes = { .arches = LIST(ELSEWHERE), .arch_count = 1 } },
		{ NAMES("close"), ALLOWS, .excludes = { .arches = LIST(HERE), .arch_count = 1 } },
		{ NAMES("lseek"), ALLOWS,
		  .excludes = { .arches = LIST(ELSEWHERE), .arch_count = 1 } },
		{ NAMES("fsync"), ALLOWS, .includes = { .kernel = true, .major = 5, .minor = 10 } },
		{ NAMES("flock"), ALLOWS, .includes = { .kernel = true, .major = 5, .minor = 11 } },
		{ NAMES("fchdir"), ALLOWS,
		  .includes = { .kernel = true, .major = 4, .minor = 90 } },
		{ NAMES("getpid"), ALLOWS, .excludes = { .kernel = true, .major = 5, .minor = 9 } },
		{ NAMES("getuid"), ALLOWS,
		  .excludes = { .kernel = true, .major = 6, .minor = 0 } });
	assert_int_equal(ask(SYS_dup, 0, 0), EPERM);
	assert_int_equal(ask(SYS_dup3, 0, 0), PASS);
	assert_int_equal(ask(SYS_read, 0, 0), PASS);
	assert_int_equal(ask(SYS_write, 0, 0), EPERM);
	assert_int_equal(ask(SYS_close, 0, 0), EPERM);
	assert_int_equal(ask(SYS_lseek, 0, 0), PASS);
	assert_int_equal(ask(SYS_fsync, 0, 0), PASS);
	assert_int_equal(ask(SYS_flock, 0, 0), EPERM);
	assert_int_equal(ask(SYS_fchdir, 0, 0), PASS);
	assert_int_equal(ask(SYS_getpid, 0, 0), EPERM);
	assert_int_equal(ask(SYS_getuid, 0, 0), PASS);
}

/* Calls of a later day: libc can fall back on ENOSYS, and on no other errno. */
static void test_newer_calls_are_not_there(void **state)
{
	enum { NR_MSEAL = 462 };

	(void)state;
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN, { NAMES("read", "openat2"), ALLOWS });
	assert_int_equal(ask(SYS_openat2, 0, 0), PASS);
	assert_int_equal(ask(SYS_openat2 + 1, 0, 0), ENOSYS);
	assert_int_equal(ask(NUMBERS, 0, 0), ENOSYS);
	assert_int_equal(ask(-1, 0, 0), ENOSYS);
	assert_int_equal(ask(SYS_clone3, 0, 0), ENOSYS);
	assert_int_equal(ask(SYS_close, 0, 0), EPERM);
	/* A name that libseccomp may be too old for. */
	COMPILE(WITH_ERRNO(EPERM), LETS_RUN, { NAMES("mseal"), ALLOWS });
	assert_int_equal(ask(NR_MSEAL, 0, 0), PASS);
	assert_int_equal(ask(NR_MSEAL - 1, 0, 0), EPERM);
	assert_int_equal(ask(NR_MSEAL + 1, 0, 0), ENOSYS);
	/* Who wants new calls to pass, or to kill, is heard. */
	COMPILE(WITH(VT_OCI_ALLOW), { NAMES("read"), DENIES(EPERM) });
	assert_int_equal(ask(NUMBERS, 0, 0), PASS);
	COMPILE(WITH(VT_OCI_KILL_PROCESS), LETS_RUN);
	assert_int_equal(ask(NUMBERS, 0, 0), KILLED);
}

static void test_other_machines_are_killed(void **state)
{
	static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, FOREIGN_ARCH, 0 };

	(void)state;
	COMPILE(WITH(VT_OCI_ALLOW), { NAMES("read"), DENIES(EPERM) });
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++) {
		const struct seccomp_data data = { 0, arches[i], 0, { 0 } };

		assert_int_equal(bpf_answer(&filter, &data), KILLED);
	}
}

static void test_profiles_that_run_nothing_are_refused(void **state)
{
	(void)state;
	REFUSES("execve", WITH_ERRNO(EPERM), { NAMES("read"), ALLOWS });
	REFUSES("execve", WITH(VT_OCI_ALLOW), { NAMES("execve"), DENIES(EPERM) });
	REFUSES("execve", WITH(VT_OCI_ALLOW), { NAMES("execve"), ALLOWS },
		{ NAMES("read", "execve"), .verdict = WITH(VT_OCI_KILL_PROCESS) });
	REFUSES("execve", WITH_ERRNO(EPERM),
		{ NAMES("execve"), ALLOWS, .includes = { .caps = true } });
	/* Where the arguments decide, the kernel will. */
	COMPILE(WITH_ERRNO(EPERM), { NAMES("execve"), ALLOWS, ARGS({ 0, VT_OCI_NE, 0, 0 }) });
}

static void test_contradictions_are_refused(void **state)
{
	(void)state;
	REFUSES("syscalls[2]", WITH_ERRNO(EPERM), LETS_RUN,
		{ NAMES("dup3"), ALLOWS, ARGS({ 0, VT_OCI_EQ, 1, 0 }) },
		{ NAMES("dup3"), DENIES(EBUSY), ARGS({ 0, VT_OCI_EQ, 1, 0 }) });
}

/* Beyond what the kernel takes; and beyond what a socket takes at once. */
static void test_profiles_too_long_are_refused(void **state)
{
	enum { MANY = 1200, ALL = 6 };
	static struct vt_oci_rule rules[MANY];
	static struct vt_oci_arg args[MANY][ALL];
	static const char *const names[] = { "dup3" };
	struct vt_err err = { 0 };

	(void)state;
	for (size_t each = 1; each <= ALL; each += ALL - 1) {
		for (size_t i = 0; i < MANY; i++) {
			for (unsigned j = 0; j < each; j++)
				args[i][j] = (struct vt_oci_arg){ j, VT_OCI_EQ, i << 32 | i, 0 };
			rules[i] = (struct vt_oci_rule){ names, 1, WITH_ERRNO(EBUSY), args[i],
							 each };
		}
		assert_int_equal(
			compile((struct vt_oci_verdict)WITH(VT_OCI_ALLOW), rules, MANY, &err),
			-E2BIG);
		assert_non_null(strstr(err.what, "too long for the kernel"));
	}
}

static int set_up(void **state)
{
	(void)state;
	arena = vt_arena_new();
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	vt_arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fallback_and_names),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_arguments_combine),
		cmocka_unit_test(test_rules_combine),
		cmocka_unit_test(test_conditions_about_the_machine),
		cmocka_unit_test(test_newer_calls_are_not_there),
		cmocka_unit_test(test_other_machines_are_killed),
		cmocka_unit_test(test_profiles_that_run_nothing_are_refused),
		cmocka_unit_test(test_contradictions_are_refused),
		cmocka_unit_test(test_profiles_too_long_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
