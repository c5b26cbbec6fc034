/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A tree of programs below a temporary folder, and one arena for what was found in it. */
struct tree {
	char top[64];
	char home[128];
	struct vt_arena *arena;
	struct vt_command found;
	struct vt_err err;
};

static const char *at(const struct tree *tree, const char *path)
{
	const char *whole = vt_arena_printf(tree->arena, "%s/%s", tree->top, path);

	assert_non_null(whole);
	return whole;
}

static void make_parents(const char *path)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(dir, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static void put(const struct tree *tree, const char *path, const char *text, mode_t mode)
{
	const char *whole = at(tree, path);

	make_parents(whole);
	FILE *file = fopen(whole, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(whole, mode), 0);
}

static void put_program(const struct tree *tree, const char *path)
{
	put(tree, path, "\177ELF", 0755);
}

static void put_folder(const struct tree *tree, const char *path)
{
	make_parents(at(tree, vt_arena_printf(tree->arena, "%s/", path)));
}

static void put_link(const struct tree *tree, const char *path, const char *target)
{
	make_parents(at(tree, path));
	assert_int_equal(symlink(target, at(tree, path)), 0);
}

/* PATH from folders of the tree, separated by ':'; one with a '/' in front is the host's. */
static const char *path_of(const struct tree *tree, const char *dirs)
{
	char text[PATH_MAX] = "", copy[PATH_MAX], *save = NULL;
	size_t len = 0;

	(void)snprintf(copy, sizeof(copy), "%s", dirs);
	for (char *dir = strtok_r(copy, ":", &save); dir != NULL; dir = strtok_r(NULL, ":", &save))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s%s",
					len > 0 ? ":" : "", dir[0] == '/' ? "" : tree->top,
					dir[0] == '/' ? "" : "/", dir);
	return vt_arena_dup(tree->arena, text);
}

struct query {
	const char *name;    /* with a '@' in front: a path in the tree */
	const char *dirs;    /* PATH; NULL: none */
	const char *cwd;     /* in the tree; NULL: its top */
	const char *version; /* PYENV_VERSION */
};

static int find(struct tree *tree, const struct query *query)
{
	memset(&tree->found, 0, sizeof(tree->found));
	memset(&tree->err, 0, sizeof(tree->err));
	return vt_command_find(tree->arena,
			       query->name[0] == '@' ? at(tree, query->name + 1) : query->name,
			       query->dirs ? path_of(tree, query->dirs) : "",
			       query->cwd ? at(tree, query->cwd) : tree->top, tree->home,
			       query->version, &tree->found, &tree->err);
}

/* Compares a list of paths with names in the tree, separated by blanks. */
static void check_list(const struct tree *tree, const char *what, const char *const *list,
		       size_t count, const char *wanted)
{
	char copy[PATH_MAX], *save = NULL;
	size_t i = 0;

	(void)snprintf(copy, sizeof(copy), "%s", wanted);
	for (char *word = strtok_r(copy, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save), i++) {
		if (i >= count)
			fail_msg("%s: %s is missing", what, word);
		assert_string_equal(list[i], word[0] == '/' ? word : at(tree, word));
	}
	if (i < count)
		fail_msg("%s: %s is too much", what, list[i]);
}

static void check(struct tree *tree, const struct query *query, const char *path,
		  const char *prefixes, const char *bin_dirs)
{
	int r = find(tree, query);

	if (r < 0)
		fail_msg("%s: %s", query->name, tree->err.what);
	assert_string_equal(tree->found.path, path[0] == '/' ? path : at(tree, path));
	check_list(tree, "prefixes", tree->found.prefixes, tree->found.prefix_count, prefixes);
	check_list(tree, "bin_dirs", tree->found.bin_dirs, tree->found.bin_dir_count, bin_dirs);
}

static void check_fails(struct tree *tree, const struct query *query, int num, const char *text)
{
	int r = find(tree, query);

	assert_int_equal(r, -num);
	assert_int_equal(tree->err.step, VT_STEP_COMMAND);
	assert_int_equal(tree->err.num, num);
	if (strstr(tree->err.what, text) == NULL)
		fail_msg("'%s' is not in: %s", text, tree->err.what);
	assert_null(tree->found.path);
}

static int set_up(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	strcpy(tree->top, "/tmp/vitro-command-XXXXXX");
	assert_non_null(mkdtemp(tree->top));
	(void)snprintf(tree->home, sizeof(tree->home), "%s/home/u", tree->top);
	tree->arena = vt_arena_new();
	assert_non_null(tree->arena);
	put_folder(tree, "home/u");
	*state = tree;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct tree *tree = *state;

	assert_int_equal(nftw(tree->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	vt_arena_free(tree->arena);
	free(tree);
	return 0;
}

static void test_system(void **state)
{
	struct tree *tree = *state;

	check(tree, &(struct query){ "sh", "nowhere:/usr/bin:/bin" }, "/usr/bin/sh", "", "");
	check(tree, &(struct query){ "/usr/bin/env" }, "/usr/bin/env", "", "");
	assert_int_equal(
		vt_command_find(tree->arena, "sh", NULL, "/", NULL, NULL, &tree->found, &tree->err),
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
	check_fails(tree, &(struct query){ "@bin/folder" }, EACCES, "is not a file");
	check_fails(tree, &(struct query){ ".." }, ENOENT, "is not on PATH");
	check_fails(tree, &(struct query){ "../" }, EACCES, "is not a file");
	/* On PATH: one that cannot run is the reason only where no other can. */
	check_fails(tree, &(struct query){ "data", "bin" }, EACCES, "is not executable");
	check_fails(tree, &(struct query){ "folder", "bin" }, ENOENT, "is not on PATH");
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

static void test_prefixes(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "node/v20/bin/node");
	put_folder(tree, "node/v20/lib");
	check(tree, &(struct query){ "node", "node/v20/bin" }, "node/v20/bin/node", "node/v20",
	      "node/v20/bin");
	check(tree, &(struct query){ "@node/v20/bin/node" }, "node/v20/bin/node", "node/v20", "");

	put_program(tree, "go/bin/gopls");
	check(tree, &(struct query){ "gopls", "go/bin" }, "go/bin/gopls", "go/bin/gopls", "go/bin");

	/* A home is no installation, however much it looks like one; nor is what lies around it. */
	put_program(tree, "home/u/bin/tool");
	put_folder(tree, "home/u/lib");
	check(tree, &(struct query){ "tool", "home/u/bin" }, "home/u/bin/tool", "home/u/bin/tool",
	      "home/u/bin");
	put_program(tree, "home/u/.local/bin/tool");
	put_folder(tree, "home/u/.local/lib");
	check(tree, &(struct query){ "@home/u/.local/bin/tool" }, "home/u/.local/bin/tool",
	      "home/u/.local/bin/tool", "");
	put_program(tree, "home/bin/tool");
	put_folder(tree, "home/lib");
	check(tree, &(struct query){ "@home/bin/tool" }, "home/bin/tool", "home/bin/tool", "");
	put_program(tree, "home/u/.nvm/v20/bin/node");
	put_folder(tree, "home/u/.nvm/v20/lib");
	check(tree, &(struct query){ "@home/u/.nvm/v20/bin/node" }, "home/u/.nvm/v20/bin/node",
	      "home/u/.nvm/v20", "");
}

/* The home may be known by a link: what it really is, is as private. */
static void test_linked_home(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "disk/u/bin/tool");
	put_folder(tree, "disk/u/lib");
	put_link(tree, "homes/u", "../disk/u");
	(void)snprintf(tree->home, sizeof(tree->home), "%s/homes/u", tree->top);
	check(tree, &(struct query){ "@disk/u/bin/tool" }, "disk/u/bin/tool", "disk/u/bin/tool",
	      "");
	check(tree, &(struct query){ "@homes/u/bin/tool" }, "homes/u/bin/tool",
	      "homes/u/bin/tool disk/u/bin/tool", "");
}

static void test_links(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "brew/Cellar/jq/1.7/bin/jq");
	put_folder(tree, "brew/Cellar/jq/1.7/lib");
	put_folder(tree, "brew/lib");
	put_link(tree, "brew/bin/jq", "../Cellar/jq/1.7/bin/jq");
	put_link(tree, "home/u/bin/jq", at(tree, "brew/bin/jq"));
	check(tree, &(struct query){ "jq", "home/u/bin" }, "home/u/bin/jq", "home/u/bin/jq brew",
	      "home/u/bin");
	/* A folder on the way that is a link: by both names. */
	put_link(tree, "current", "brew");
	check(tree, &(struct query){ "@current/bin/jq" }, "current/bin/jq", "current brew", "");
	/* Out of the system and into it. */
	put_link(tree, "home/u/bin/sh", "/usr/bin/sh");
	check(tree, &(struct query){ "sh", "home/u/bin" }, "home/u/bin/sh", "home/u/bin/sh",
	      "home/u/bin");
}

static void test_venv(void **state)
{
	struct tree *tree = *state;
	const char *config = vt_arena_printf(
		tree->arena, "include-system-site-packages = false\nhome = %s/py/3.12/bin\n",
		tree->top);

	put_program(tree, "py/3.12/bin/python3");
	put_folder(tree, "py/3.12/lib");
	put(tree, "venv/pyvenv.cfg", config, 0644);
	put_link(tree, "venv/bin/python3", at(tree, "py/3.12/bin/python3"));
	put_link(tree, "venv/bin/python", "python3");
	check(tree, &(struct query){ "python", "venv/bin" }, "venv/bin/python", "venv py/3.12",
	      "venv/bin");

	/* Copied, not linked: only pyvenv.cfg knows. */
	put(tree, "copies/pyvenv.cfg", config, 0644);
	put_program(tree, "copies/bin/python3");
	check(tree, &(struct query){ "@copies/bin/python3" }, "copies/bin/python3",
	      "copies py/3.12", "");

	put(tree, "system/pyvenv.cfg", "home = /usr/bin\n", 0644);
	put_link(tree, "system/bin/python3", "/usr/bin/env");
	check(tree, &(struct query){ "@system/bin/python3" }, "system/bin/python3", "system", "");

	/* A script of the venv, as pip writes them. */
	put(tree, "venv/bin/tool",
	    vt_arena_printf(tree->arena, "#!%s/venv/bin/python3\n", tree->top), 0755);
	check(tree, &(struct query){ "@venv/bin/tool" }, "venv/bin/tool", "venv py/3.12", "");
}

/* Whoever wrote a pyvenv.cfg must not hang us, nor lead us to what is no Python. */
static void test_bad_venv(void **state)
{
	struct tree *tree = *state;

	put(tree, "a/pyvenv.cfg", vt_arena_printf(tree->arena, "home = %s/b/bin\n", tree->top),
	    0644);
	put(tree, "b/pyvenv.cfg", vt_arena_printf(tree->arena, "home = %s/a/bin\n", tree->top),
	    0644);
	put_program(tree, "a/bin/python3");
	put_program(tree, "b/bin/python3");
	check(tree, &(struct query){ "@a/bin/python3" }, "a/bin/python3", "a b", "");

	put(tree, "c/pyvenv.cfg",
	    vt_arena_printf(tree->arena, "home = %s/home/u/secrets\n", tree->top), 0644);
	put(tree, "home/u/secrets/key", "x", 0600);
	put_program(tree, "c/bin/python3");
	check(tree, &(struct query){ "@c/bin/python3" }, "c/bin/python3", "c", "");
	put(tree, "d/pyvenv.cfg", "home = relative\nhome\nhome =\n", 0644);
	put_program(tree, "d/bin/python3");
	check(tree, &(struct query){ "@d/bin/python3" }, "d/bin/python3", "d", "");
}

static void test_scripts(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "node/bin/node");
	put_folder(tree, "node/lib");
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
	check(tree, &(struct query){ "@s/env", "node/bin" }, "s/env", "s/env node", "node/bin");
	check(tree, &(struct query){ "@s/split", "node/bin" }, "s/split", "s/split node",
	      "node/bin");
	check(tree, &(struct query){ "@s/long", "node/bin" }, "s/long", "s/long node", "node/bin");
	check(tree, &(struct query){ "@s/direct" }, "s/direct", "s/direct node", "");
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

	put(tree, "self", vt_arena_printf(tree->arena, "#!%s/self\n", tree->top), 0755);
	check_fails(tree, &(struct query){ "@self" }, ELOOP, "too many scripts");
	put(tree, "e/env", "#!/usr/bin/env env\n", 0755);
	check_fails(tree, &(struct query){ "env", "e" }, ELOOP, "too many scripts");

	/* As deep as the kernel goes. */
	put(tree, "s0", "#!/bin/sh\n", 0755);
	for (int i = 1; i <= 5; i++) {
		(void)snprintf(name, sizeof(name), "s%d", i);
		(void)snprintf(text, sizeof(text), "#!%s/s%d\n", tree->top, i - 1);
		put(tree, name, text, 0755);
	}
	check(tree, &(struct query){ "@s4" }, "s4", "s4 s3 s2 s1 s0", "");
	check_fails(tree, &(struct query){ "@s5" }, ELOOP, "too many scripts");
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
		put_program(tree, vt_arena_printf(tree->arena, "pyenv/versions/%s/bin/python3",
						  versions[i]));
		put_folder(tree,
			   vt_arena_printf(tree->arena, "pyenv/versions/%s/lib", versions[i]));
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
	put(tree, "script", "#!/usr/bin/env python3\n", 0755);
	check(tree, &(struct query){ "@script", "pyenv/shims:sys", NULL, "3.12.1" }, "script",
	      "script pyenv/versions/3.12.1", "pyenv/versions/3.12.1/bin");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest all[] = {
		TEST(test_system),        TEST(test_not_found),    TEST(test_relative),
		TEST(test_prefixes),      TEST(test_linked_home),  TEST(test_links),
		TEST(test_venv),          TEST(test_bad_venv),     TEST(test_scripts),
		TEST(test_system_before), TEST(test_script_loops), TEST(test_unreadable),
		TEST(test_pyenv),
	};
#undef TEST

	return cmocka_run_group_tests(all, NULL, NULL);
}
