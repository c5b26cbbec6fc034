/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include "host/tree_test.h"

static void test_system(void **state)
{
	struct tree *tree = *state;

	check(tree, &(struct query){ "sh", "nowhere:/usr/bin:/bin" }, "/usr/bin/sh", "", "");
	check(tree, &(struct query){ "/usr/bin/env" }, "/usr/bin/env", "", "");
	assert_int_equal(vt_command_find(tree->arena, "sh", &(struct vt_lookup){ .cwd = "/" },
					 &tree->found, &tree->err),
			 0);
}

static void test_not_found(void **state)
{
	struct tree *tree = *state;

	put(tree, "bin/data", "text", 0644);
	put_folder(tree, "bin/folder");
	put_link(tree, "bin/dangling", "gone");
	put_link(tree, "bin/loop", "loop");
	put_program(tree, "other/data");
	check_fails(tree, &(struct query){ "none", "bin" }, ENOENT, "'none' is not on PATH");
	check_fails(tree, &(struct query){ "" }, ENOENT, "empty");
	check_fails(tree, &(struct query){ "./none" }, ENOENT, "does not exist");
	check_fails(tree, &(struct query){ "@bin/data/x" }, ENOENT, "does not exist");
	check_fails(tree, &(struct query){ "@bin/dangling" }, ENOENT, "does not exist");
	check_fails(tree, &(struct query){ "@bin/loop" }, ELOOP, "cannot be executed");
	check_fails(tree, &(struct query){ "@bin/data" }, EACCES, "is not executable");
	put(tree, "bin/script", "#!/bin/sh\n", 0644);
	check_fails(tree, &(struct query){ "@bin/script" }, EACCES, "not executable; chmod +x");
	check_fails(tree, &(struct query){ "@bin/folder" }, EACCES, "is not a file");
	check_fails(tree, &(struct query){ ".." }, ENOENT, "is not on PATH");
	check_fails(tree, &(struct query){ "../" }, EACCES, "is not a file");
	/* On PATH: one that cannot run is the reason only where no other can. */
	check_fails(tree, &(struct query){ "data", "bin" }, EACCES, "is not executable");
	check_fails(tree, &(struct query){ "folder", "bin" }, ENOENT, "is not on PATH");
	check_fails(tree, &(struct query){ "echo hello", "bin" }, ENOENT, "a line for a shell is");
	check(tree, &(struct query){ "data", "bin:other" }, "other/data", "other/data", "other");
}

static void test_relative(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "work/tool");
	put_program(tree, "tool");
	check(tree, &(struct query){ "./tool", NULL, "work" }, "work/tool", "work/tool", "");
	check(tree, &(struct query){ "../tool", NULL, "work" }, "tool", "tool", "");
	check(tree, &(struct query){ "work//./tool" }, "work/tool", "work/tool", "");
	/* An empty part of PATH is the working directory. */
	check(tree, &(struct query){ "tool", NULL, "work" }, "work/tool", "work/tool", "work");
}

/* So many folders are looked into, and who has more of them is told so. */
static void test_long_path(void **state)
{
	enum { MOST = 1024 };
	struct tree *tree = *state;
	char dirs[MOST * 2 + 16];

	put_program(tree, "bin/tool");
	for (int i = 0; i < MOST; i++)
		memcpy(dirs + 2 * i, "/:", 2);
	memcpy(dirs + 2 * MOST, "bin", 4);
	check_fails(tree, &(struct query){ "tool", dirs }, ENOENT,
		    "'tool' is in none of the first 1024 folders of PATH");
	check(tree, &(struct query){ "tool", dirs + 2 }, "bin/tool", "bin/tool", "bin");
}

static void test_scripts(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "node/bin/node");
	put_folder(tree, "node/lib/node_modules");
	put(tree, "s/plain", "#!/bin/sh\nexit\n", 0755);
	put(tree, "s/env", "#! /usr/bin/env node \nx\n", 0755);
	put(tree, "s/split", "#!/usr/bin/env -S A=1 -u B node --flag\n", 0755);
	put(tree, "s/long", "#!/usr/bin/env --split-string=node --flag\n", 0755);
	put(tree, "s/words", "#!/usr/bin/env node --flag\n", 0755);
	put(tree, "s/none", "#!/usr/bin/env missing\n", 0755);
	put(tree, "s/bare", "#!/usr/bin/env\n", 0755);
	put(tree, "s/gone", "#!/nowhere/python\n", 0755);
	put(tree, "s/empty", "#!\n", 0755);
	put(tree, "s/direct", vt_arena_printf(tree->arena, "#!%s/node/bin/node\n", tree->top),
	    0755);

	check(tree, &(struct query){ "@s/plain" }, "s/plain", "s/plain", "");
	check(tree, &(struct query){ "@s/env", "node/bin" }, "s/env",
	      "s/env node/lib node/bin/node", "node/bin");
	check(tree, &(struct query){ "@s/split", "node/bin" }, "s/split",
	      "s/split node/lib node/bin/node", "node/bin");
	check(tree, &(struct query){ "@s/long", "node/bin" }, "s/long",
	      "s/long node/lib node/bin/node", "node/bin");
	check(tree, &(struct query){ "@s/direct" }, "s/direct", "s/direct node/lib node/bin/node",
	      "");
	check(tree, &(struct query){ "@s/bare" }, "s/bare", "s/bare", "");
	check(tree, &(struct query){ "@s/empty" }, "s/empty", "s/empty", "");
	check_fails(tree, &(struct query){ "@s/words", "node/bin" }, ENOENT, "'node --flag'");
	check_fails(tree, &(struct query){ "@s/none", "node/bin" }, ENOENT,
		    "'missing', the interpreter");
	check_fails(tree, &(struct query){ "@s/gone" }, ENOENT, "does not exist");
	/* The order of PATH holds inside as well. */
	check(tree, &(struct query){ "env", "node/bin:s" }, "s/env", "s/env node", "node/bin s");
	check(tree, &(struct query){ "plain", "/usr/bin:s" }, "s/plain", "s/plain", "s");
}

/* env finds the system's program before the one beside the script: so it must inside. */
static void test_system_before(void **state)
{
	struct tree *tree = *state;

	put(tree, "venv/pyvenv.cfg", "", 0644);
	put_program(tree, "venv/bin/sh");
	put(tree, "venv/bin/tool", "#!/usr/bin/env sh\n", 0755);
	check(tree, &(struct query){ "tool", "/usr/bin:venv/bin" }, "venv/bin/tool", "venv",
	      "/usr/bin venv/bin");
}

static void test_script_loops(void **state)
{
	struct tree *tree = *state;
	char name[16], text[128];

	put(tree, "l/self", vt_arena_printf(tree->arena, "#!%s/l/self\n", tree->top), 0755);
	check_fails(tree, &(struct query){ "self", "l" }, ELOOP, "too many scripts");
	put(tree, "e/env", "#!/usr/bin/env env\n", 0755);
	check_fails(tree, &(struct query){ "env", "e" }, ELOOP, "too many scripts");

	/* As deep as the kernel goes. */
	put(tree, "l/s0", "#!/bin/sh\n", 0755);
	for (int i = 1; i <= 5; i++) {
		(void)snprintf(name, sizeof(name), "l/s%d", i);
		(void)snprintf(text, sizeof(text), "#!%s/l/s%d\n", tree->top, i - 1);
		put(tree, name, text, 0755);
	}
	check(tree, &(struct query){ "s4", "l" }, "l/s4", "l/s4 l/s3 l/s2 l/s1 l/s0", "l");
	check_fails(tree, &(struct query){ "s5", "l" }, ELOOP, "too many scripts");
	check(tree, &(struct query){ "@l/s4", .read = "l" }, "l/s4", "", "");
	check_fails(tree, &(struct query){ "@l/s5", .read = "l" }, ELOOP, "too many scripts");
}

static void test_unreadable(void **state)
{
	struct tree *tree = *state;

	/* It can be executed though nobody can see what it is. */
	put(tree, "hidden", "#!/nowhere\n", 0111);
	if (geteuid() == 0)
		put_program(tree, "hidden");
	check(tree, &(struct query){ "@hidden" }, "hidden", "hidden", "");
}

static void put_pyenv(const struct tree *tree)
{
	static const char *const versions[] = { "3.10.2", "3.12.1", "3.12.10", "3.12.11rc1" };

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const char *version = versions[i];

		put_python(tree, vt_arena_printf(tree->arena, "pyenv/versions/%s", version),
			   vt_arena_printf(tree->arena, "%.4s", version));
	}
	put_program(tree, "pyenv/versions/3.10.2/bin/only310");
	put(tree, "pyenv/shims/python3", "#!/usr/bin/env bash\n", 0755);
	put(tree, "pyenv/shims/only310", "#!/usr/bin/env bash\n", 0755);
	put_program(tree, "sys/python3");
}

static void check_python(struct tree *tree, const char *cwd, const char *version,
			 const char *wanted)
{
	const struct query query = { "python3", "pyenv/shims:sys", cwd, version };
	const char *prefix = vt_arena_printf(tree->arena, "pyenv/versions/%s", wanted);
	const char *bin = vt_arena_printf(tree->arena, "%s/bin", prefix);

	if (strcmp(wanted, "system") == 0)
		check(tree, &query, "sys/python3", "sys/python3", "sys");
	else
		check(tree, &query, vt_arena_printf(tree->arena, "%s/python3", bin), prefix, bin);
}

static void test_pyenv(void **state)
{
	struct tree *tree = *state;

	put_pyenv(tree);
	check_python(tree, NULL, NULL, "system");
	put(tree, "pyenv/version", "3.10.2\n", 0644);
	check_python(tree, NULL, NULL, "3.10.2");
	put(tree, "work/.python-version", "# ours\n\n3.12.1 3.10.2\n", 0644);
	put_folder(tree, "work/deep/er");
	check_python(tree, "work", NULL, "3.12.1");
	check_python(tree, "work/deep/er", NULL, "3.12.1");
	check_python(tree, NULL, NULL, "3.10.2");
	put(tree, "work/deep/.python-version", "system\n", 0644);
	check_python(tree, "work/deep/er", NULL, "system");

	check_python(tree, "work", "3.10.2", "3.10.2");
	check_python(tree, "work", "", "3.12.1");
	check_python(tree, NULL, "system", "system");
	check_python(tree, NULL, "9.9:3.12.1", "3.12.1");
	check_python(tree, NULL, "9.9", "system");
	check_python(tree, NULL, "3.12", "3.12.10");
	check_python(tree, NULL, "python-3.10", "3.10.2");
	check_python(tree, NULL, "3.12.11rc1", "3.12.11rc1");
	check_python(tree, NULL, "3.1", "system");
	check_python(tree, NULL, "../versions/3.10.2:..:.", "system");

	/* What the first version lacks, the second may have. */
	check(tree, &(struct query){ "only310", "pyenv/shims", NULL, "3.12.1:3.10.2" },
	      "pyenv/versions/3.10.2/bin/only310", "pyenv/versions/3.10.2",
	      "pyenv/versions/3.10.2/bin");
	check_fails(tree, &(struct query){ "only310", "pyenv/shims:sys", NULL, "3.12.1" }, ENOENT,
		    "is not on PATH");
	/* By its path, and as an interpreter. */
	check(tree, &(struct query){ "@pyenv/shims/python3", "sys", NULL, "3.12.1" },
	      "pyenv/versions/3.12.1/bin/python3", "pyenv/versions/3.12.1",
	      "pyenv/versions/3.12.1/bin");
	check(tree, &(struct query){ "@pyenv/shims/python3", "sys", NULL, "system" }, "sys/python3",
	      "sys/python3", "sys");
	/* What cannot be executed is not the shim, and a chmod of it is no advice. */
	put(tree, "pyenv/shims/closed", "#!/usr/bin/env bash\n", 0755);
	put(tree, "sys/closed", "#!/bin/sh\n", 0644);
	check_fails(tree, &(struct query){ "@pyenv/shims/closed", "sys", NULL, "system" }, EACCES,
		    "pyenv/shims/closed' is not executable");
	assert_null(strstr(tree->err.what, "chmod"));
	put(tree, "script", "#!/usr/bin/env python3\n", 0755);
	check(tree, &(struct query){ "@script", "pyenv/shims:sys", NULL, "3.12.1" }, "script",
	      "script pyenv/versions/3.12.1/lib pyenv/versions/3.12.1/bin/python3 "
	      "pyenv/versions/3.12.1/bin/python3.12",
	      "pyenv/versions/3.12.1/bin");
	/* A pyenv-virtualenv: a link among the versions. */
	put_venv(tree, "pyenv/versions/3.12.1/envs/web", "pyenv/versions/3.12.1");
	put_link(tree, "pyenv/versions/web", "3.12.1/envs/web");
	check(tree, &(struct query){ "@pyenv/shims/python3", "sys", NULL, "web" },
	      "pyenv/versions/web/bin/python3",
	      "pyenv/versions/web/lib pyenv/versions/web/pyvenv.cfg "
	      "pyenv/versions/web/bin/python3 pyenv/versions/3.12.1/lib "
	      "pyenv/versions/3.12.1/bin/python3 pyenv/versions/3.12.1/bin/python3.12 "
	      "pyenv/versions/3.12.1/envs/web/lib pyenv/versions/3.12.1/envs/web/pyvenv.cfg "
	      "pyenv/versions/3.12.1/envs/web/bin/python3 "
	      "pyenv/versions/3.12.1/envs/web/bin/python",
	      "pyenv/versions/web/bin");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		TREE_TEST(test_system),        TREE_TEST(test_not_found),
		TREE_TEST(test_relative),      TREE_TEST(test_scripts),
		TREE_TEST(test_system_before), TREE_TEST(test_script_loops),
		TREE_TEST(test_unreadable),    TREE_TEST(test_pyenv),
		TREE_TEST(test_long_path),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
