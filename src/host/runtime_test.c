/* SPDX-License-Identifier: Apache-2.0 */
#include "host/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_covers(void **state)
{
	(void)state;
	assert_true(vt_runtime_covers("/usr"));
	assert_true(vt_runtime_covers("/usr/local/bin/tool"));
	assert_true(vt_runtime_covers("/bin/sh"));
	assert_true(vt_runtime_covers("/nix/store/abc/bin/x"));
	assert_true(vt_runtime_covers("/etc/java-17-openjdk/security/java.security"));
	assert_false(vt_runtime_covers("/usrlocal/bin/tool"));
	assert_false(vt_runtime_covers("/opt/bin/tool"));
	assert_false(vt_runtime_covers("/nix"));
	assert_false(vt_runtime_covers("/"));
	assert_false(vt_runtime_covers(""));
}

static void test_has(void **state)
{
	(void)state;
	assert_true(vt_runtime_has("/usr"));
	assert_true(vt_runtime_has("/etc/ssl/certs"));
	assert_true(vt_runtime_has("/etc/java-21-openjdk"));
	assert_false(vt_runtime_has("/usr/local"));
	assert_false(vt_runtime_has("/etc/ssl"));
	assert_false(vt_runtime_has("/etc/java-21-openjdk/security"));
}

/* What must never be in a cell by default, whoever extends the table. */
static void test_no_secrets(void **state)
{
	static const char *const never[] = {
		"/etc/shadow",
		"/etc/ssl/private/key.pem",
		"/etc/pki/tls/private/key.pem",
		"/etc/gitconfig",
		"/etc/npmrc",
		"/etc/pip.conf",
		"/etc/environment",
		"/etc/machine-id",
		"/etc/profile.d/proxy.sh",
		"/etc/ssh/key",
		"/etc/sudoers",
		"/etc/wgetrc",
		"/etc/passwd",
		"/etc/resolv.conf",
		"/root/.ssh/id_rsa",
		"/home/u/.netrc",
		"/var/lib/secret",
		"/run/secrets/token",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (vt_runtime_covers(never[i]))
			fail_msg("%s is in every cell", never[i]);
}

static int list_javas(const struct vt_host *host, const char *path,
		      void (*each)(void *arg, const char *name), void *arg)
{
	static const char *const names[] = {
		"java-17-openjdk-amd64",
		".java-1.17.0-openjdk-amd64.jinfo",
		"default-java",
		"java-11-openjdk-arm64",
		"java-17-openjdk-amd64",
		"openjdk-17",
		"java-",
	};

	(void)host;
	assert_string_equal(path, "/usr/lib/jvm");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		each(arg, names[i]);
	return 0;
}

static int list_too_many(const struct vt_host *host, const char *path,
			 void (*each)(void *arg, const char *name), void *arg)
{
	char name[] = "java-A-openjdk";

	(void)host;
	(void)path;
	for (name[5] = 'A'; name[5] <= 'Z'; name[5]++)
		each(arg, name);
	return 0;
}

static int list_nothing(const struct vt_host *host, const char *path,
			void (*each)(void *arg, const char *name), void *arg)
{
	(void)host;
	(void)path;
	(void)each;
	(void)arg;
	return -ENOENT;
}

static void test_expand(void **state)
{
	struct vt_host host = { .list = list_javas }, nothing = { .list = list_nothing };
	struct vt_arena *arena = vt_arena_new();
	struct vt_runtime_path *paths = NULL;
	size_t count = 0, table_count = 0;
	struct vt_err err;

	(void)state;
	assert_non_null(arena);
	assert_int_equal(vt_runtime_expand(arena, &nothing, &paths, &table_count, &err), 0);
	assert_int_equal(vt_runtime_expand(arena, &host, &paths, &count, &err), 0);
	assert_int_equal(count, table_count + 2);
	assert_string_equal(paths[0].path, "/usr");
	assert_false(paths[0].optional);
	assert_string_equal(paths[count - 2].path, "/etc/java-11-openjdk");
	assert_string_equal(paths[count - 1].path, "/etc/java-17-openjdk");
	assert_true(paths[count - 1].optional);

	host.list = NULL;
	assert_int_equal(vt_runtime_expand(arena, &host, &paths, &count, &err), 0);
	assert_int_equal(count, table_count);
	host.list = list_too_many;
	assert_int_equal(vt_runtime_expand(arena, &host, &paths, &count, &err), 0);
	assert_int_equal(count, table_count + 16);
	vt_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_covers),
		cmocka_unit_test(test_has),
		cmocka_unit_test(test_no_secrets),
		cmocka_unit_test(test_expand),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
