/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a tree of programs in a temporary folder, and what vt_command_find() finds in it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/command.h"

/* A tree of programs below a temporary folder, and one arena for what was found in it. */
struct tree {
	char top[64];
	char home[128];
	struct vt_arena *arena;
	struct vt_command found;
	struct vt_err err;
};

static inline const char *at(const struct tree *tree, const char *path)
{
	const char *whole = vt_arena_printf(tree->arena, "%s/%s", tree->top, path);

	assert_non_null(whole);
	return whole;
}

static inline void make_parents(const char *path)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(dir, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static inline void put(const struct tree *tree, const char *path, const char *text, mode_t mode)
{
	const char *whole = at(tree, path);

	make_parents(whole);
	FILE *file = fopen(whole, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(whole, mode), 0);
}

static inline void put_program(const struct tree *tree, const char *path)
{
	put(tree, path, "\177ELF", 0755);
}

static inline void put_folder(const struct tree *tree, const char *path)
{
	make_parents(at(tree, vt_arena_printf(tree->arena, "%s/", path)));
}

static inline void put_link(const struct tree *tree, const char *path, const char *target)
{
	make_parents(at(tree, path));
	assert_int_equal(symlink(target, at(tree, path)), 0);
}

/* PATH from folders of the tree, separated by ':'; one with a '/' in front is the host's. */
static inline const char *path_of(const struct tree *tree, const char *dirs)
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
	const char *read, *write; /* what the policy gives, in the tree; NULL: nothing */
};

static inline int find(struct tree *tree, const struct query *query)
{
	memset(&tree->found, 0, sizeof(tree->found));
	memset(&tree->err, 0, sizeof(tree->err));

	struct vt_given given[2];
	size_t count = 0;

	if (query->read)
		given[count++] = (struct vt_given){ at(tree, query->read), false, true };
	if (query->write)
		given[count++] = (struct vt_given){ at(tree, query->write), true, true };
	const struct vt_lookup lookup = {
		.search_path = query->dirs ? path_of(tree, query->dirs) : "",
		.cwd = query->cwd ? at(tree, query->cwd) : tree->top,
		.home = tree->home,
		.pyenv_version = query->version,
		.givens = { given, count },
	};

	return vt_command_find(tree->arena,
			       query->name[0] == '@' ? at(tree, query->name + 1) : query->name,
			       &lookup, &tree->found, &tree->err);
}

/* Compares a list of paths with names in the tree, separated by blanks. */
static inline void check_list(const struct tree *tree, const char *what, const char *const *list,
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

static inline void check(struct tree *tree, const struct query *query, const char *path,
			 const char *prefixes, const char *bin_dirs)
{
	int r = find(tree, query);

	if (r < 0)
		fail_msg("%s: %s", query->name, tree->err.what);
	assert_string_equal(tree->found.path, path[0] == '/' ? path : at(tree, path));
	const char *names[64];

	assert_true(tree->found.prefix_count <= 64);
	for (size_t i = 0; i < tree->found.prefix_count; i++) {
		const struct vt_need *need = &tree->found.prefixes[i];
		struct stat st;

		names[i] = need->path;
		assert_int_equal(stat(need->path, &st), 0);
		assert_true(need->dev == st.st_dev && need->ino == st.st_ino);
	}
	check_list(tree, "prefixes", names, tree->found.prefix_count, prefixes);
	check_list(tree, "bin_dirs", tree->found.bin_dirs, tree->found.bin_dir_count, bin_dirs);
}

static inline void check_fails(struct tree *tree, const struct query *query, int num,
			       const char *text)
{
	int r = find(tree, query);

	assert_int_equal(r, -num);
	assert_int_equal(tree->err.step, num == EPERM ? VT_STEP_PLAN : VT_STEP_COMMAND);
	assert_int_equal(tree->err.num, num);
	if (strstr(tree->err.what, text) == NULL)
		fail_msg("'%s' is not in: %s", text, tree->err.what);
	assert_null(tree->found.path);
}

static inline int set_up(void **state)
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

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int tear_down(void **state)
{
	struct tree *tree = *state;

	assert_int_equal(nftw(tree->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	vt_arena_free(tree->arena);
	free(tree);
	return 0;
}

/* As python's own build installs it, and pyenv, conda and uv too. */
static inline void put_python(const struct tree *tree, const char *prefix, const char *version)
{
	put_program(tree, vt_arena_printf(tree->arena, "%s/bin/python%s", prefix, version));
	put_link(tree, vt_arena_printf(tree->arena, "%s/bin/python3", prefix),
		 vt_arena_printf(tree->arena, "python%s", version));
	put_link(tree, vt_arena_printf(tree->arena, "%s/bin/python", prefix), "python3");
	put(tree, vt_arena_printf(tree->arena, "%s/lib/python%s/os.py", prefix, version), "", 0644);
}

/* As `python3.12 -m venv` makes it. */
static inline void put_venv(const struct tree *tree, const char *venv, const char *prefix)
{
	put(tree, vt_arena_printf(tree->arena, "%s/pyvenv.cfg", venv),
	    vt_arena_printf(tree->arena, "home = %s/bin\n", at(tree, prefix)), 0644);
	put_link(tree, vt_arena_printf(tree->arena, "%s/bin/python", venv),
		 vt_arena_printf(tree->arena, "%s/bin/python3", at(tree, prefix)));
	put_link(tree, vt_arena_printf(tree->arena, "%s/bin/python3", venv), "python");
	put_link(tree, vt_arena_printf(tree->arena, "%s/bin/python3.12", venv), "python");
	put_folder(tree, vt_arena_printf(tree->arena, "%s/lib/python3.12/site-packages", venv));
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
