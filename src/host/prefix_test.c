/* SPDX-License-Identifier: Apache-2.0 */
#include "host/prefix.h"

#include "host/tree_test.h"

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
	check(tree, &(struct query){ "jq", "current/bin" }, "current/bin/jq", "current brew",
	      "current/bin");
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

	put_python(tree, "py/3.12", "3.12");
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
	check(tree, &(struct query){ "python3", "a/bin" }, "a/bin/python3", "a b", "a/bin");
	check(tree, &(struct query){ "@a/bin/python3" }, "a/bin/python3", "a b/bin/python3", "");

	put(tree, "c/pyvenv.cfg",
	    vt_arena_printf(tree->arena, "home = %s/home/u/secrets\n", tree->top), 0644);
	put(tree, "home/u/secrets/key", "x", 0600);
	put_program(tree, "c/bin/python3");
	check(tree, &(struct query){ "@c/bin/python3" }, "c/bin/python3", "c", "");
	put(tree, "d/pyvenv.cfg", "home = relative\nhome\nhome =\n", 0644);
	put_program(tree, "d/bin/python3");
	check(tree, &(struct query){ "@d/bin/python3" }, "d/bin/python3", "d", "");
	put_program(tree, "e/bin/python3");
	assert_int_equal(mkfifo(at(tree, "e/pyvenv.cfg"), 0644), 0);
	check(tree, &(struct query){ "@e/bin/python3" }, "e/bin/python3", "e", "");
}

/*
 * An earlier call wrote what is in ws, and would like a later one to bring proj along, which looks
 * like an installation and is none: nor does a lib/tool for its bin/tool, or lib/python for its
 * bin/python, make it one.
 */
static void put_project(const struct tree *tree)
{
	put_program(tree, "proj/bin/tool");
	put_program(tree, "proj/bin/python");
	put_program(tree, "proj/bin/python3");
	put_folder(tree, "proj/lib/tool");
	put_folder(tree, "proj/lib/python");
	put_folder(tree, "proj/lib64");
	put_folder(tree, "ws");
}

static void check_named(struct tree *tree, const char *name, const char *prefixes)
{
	const char *typed = vt_arena_printf(tree->arena, "@%s", name);

	check(tree, &(struct query){ typed }, name, prefixes, "");
}

static void test_chosen_by_link(void **state)
{
	struct tree *tree = *state;

	put_project(tree);
	put(tree, "ws/.venv/pyvenv.cfg", "", 0644);
	put_link(tree, "ws/.venv/bin/python", at(tree, "proj/bin/tool"));
	put_link(tree, "ws/.venv/bin/python3", "python");
	check_named(tree, "ws/.venv/bin/python", "ws/.venv proj/bin/tool");
	check_named(tree, "ws/.venv/bin/python3", "ws/.venv proj/bin/tool");
	check(tree, &(struct query){ ".venv/bin/python", NULL, "ws" }, "ws/.venv/bin/python",
	      "ws/.venv proj/bin/tool", "");

	/* A folder that is a link leads as far. */
	put_link(tree, "ws/venv", at(tree, "proj"));
	check_named(tree, "ws/venv/bin/tool", "ws/venv/bin/tool proj/bin/tool");
	put(tree, "ws/half/pyvenv.cfg", "", 0644);
	put_link(tree, "ws/half/bin", at(tree, "proj/bin"));
	check_named(tree, "ws/half/bin/tool", "ws/half/bin/tool proj/bin/tool");
	put_link(tree, "ws/deep", at(tree, "proj/lib"));
	check(tree, &(struct query){ "ws/deep/../bin/tool" }, "proj/bin/tool", "proj/bin/tool", "");
	put_folder(tree, "ws/versions");
	put_program(tree, "ws/shims/tool");
	put_link(tree, "ws/versions/1", at(tree, "proj"));
	check(tree, &(struct query){ "@ws/shims/tool", NULL, NULL, "1" }, "ws/versions/1/bin/tool",
	      "ws/versions/1/bin/tool proj/bin/tool", "ws/versions/1/bin");

	/* Who names the project means it, and PATH is the caller's own. */
	check_named(tree, "proj/bin/tool", "proj");
	check(tree, &(struct query){ "bin/tool", NULL, "proj" }, "proj/bin/tool", "proj", "");
	check(tree, &(struct query){ "tool", "ws/venv/bin" }, "ws/venv/bin/tool", "ws/venv proj",
	      "ws/venv/bin");
}

/* However a link in front of it is called, a home is a home. */
static void test_link_to_home(void **state)
{
	struct tree *tree = *state;

	put_program(tree, "home/u/bin/tool");
	put_folder(tree, "home/u/lib/node_modules");
	put_link(tree, "ws/venv", at(tree, "home/u"));
	check_named(tree, "ws/venv/bin/tool", "ws/venv/bin/tool home/u/bin/tool");
	check(tree, &(struct query){ "tool", "ws/venv/bin" }, "ws/venv/bin/tool",
	      "ws/venv/bin/tool home/u/bin/tool", "ws/venv/bin");
	/* And one that is reached by a link is still the caller's. */
	put_link(tree, "homes", "home");
	(void)snprintf(tree->home, sizeof(tree->home), "%s/homes/u", tree->top);
	put_program(tree, "home/u/proj/bin/tool");
	put_folder(tree, "home/u/proj/lib");
	check_named(tree, "homes/u/proj/bin/tool", "homes/u/proj home/u/proj");
}

static void test_chosen_by_script(void **state)
{
	struct tree *tree = *state;

	put_project(tree);
	put(tree, "ws/direct", vt_arena_printf(tree->arena, "#!%s/proj/bin/tool\n", tree->top),
	    0755);
	put(tree, "ws/path",
	    vt_arena_printf(tree->arena, "#!/usr/bin/env %s/proj/bin/tool\n", tree->top), 0755);
	put(tree, "ws/env", "#!/usr/bin/env tool\n", 0755);
	check_named(tree, "ws/direct", "ws/direct proj/bin/tool");
	check_named(tree, "ws/path", "ws/path proj/bin/tool");
	check(tree, &(struct query){ "@ws/env", "proj/bin" }, "ws/env", "ws/env proj/bin/tool",
	      "proj/bin");
	check(tree, &(struct query){ "direct", "ws" }, "ws/direct", "ws/direct proj", "ws");
	check(tree, &(struct query){ "env", "ws:proj/bin" }, "ws/env", "ws/env proj",
	      "ws proj/bin");

	/* Through one script to another. */
	put(tree, "ws/second", vt_arena_printf(tree->arena, "#!%s/ws/direct\n", tree->top), 0755);
	check_named(tree, "ws/second", "ws/second ws/direct proj/bin/tool");
}

static void test_chosen_by_venv(void **state)
{
	struct tree *tree = *state;

	put_project(tree);
	put(tree, "ws/.venv/pyvenv.cfg",
	    vt_arena_printf(tree->arena, "home = %s/proj/bin\n", tree->top), 0644);
	put_program(tree, "ws/.venv/bin/python");
	check_named(tree, "ws/.venv/bin/python", "ws/.venv proj/bin/python3");
	check(tree, &(struct query){ "python", "ws/.venv/bin" }, "ws/.venv/bin/python",
	      "ws/.venv proj", "ws/.venv/bin");
}

/* What is plainly an interpreter comes along by every road. */
static void test_interpreters(void **state)
{
	struct tree *tree = *state;

	put_python(tree, "py/3.12.1", "3.12");
	put_venv(tree, "ws/.venv", "py/3.12.1");
	check_named(tree, "ws/.venv/bin/python", "ws/.venv py/3.12.1");
	check_named(tree, "ws/.venv/bin/python3.12", "ws/.venv py/3.12.1");
	put_link(tree, "ws/python", at(tree, "py/3.12.1/bin/python"));
	check_named(tree, "ws/python", "ws/python py/3.12.1");

	/* A venv at the other end, as pipx has them, brings its own Python. */
	put_venv(tree, "pipx/venvs/tool", "py/3.12.1");
	put(tree, "pipx/venvs/tool/bin/tool",
	    vt_arena_printf(tree->arena, "#!%s/pipx/venvs/tool/bin/python\n", tree->top), 0755);
	put_link(tree, "ws/tool", at(tree, "pipx/venvs/tool/bin/tool"));
	check_named(tree, "ws/tool", "ws/tool pipx/venvs/tool py/3.12.1");
	put(tree, "ws/script",
	    vt_arena_printf(tree->arena, "#!%s/pipx/venvs/tool/bin/python\n", tree->top), 0755);
	check_named(tree, "ws/script", "ws/script pipx/venvs/tool py/3.12.1");
	put(tree, "ws/env", "#!/usr/bin/env python3\n", 0755);
	check(tree, &(struct query){ "@ws/env", "py/3.12.1/bin" }, "ws/env", "ws/env py/3.12.1",
	      "py/3.12.1/bin");
	put_link(tree, "py/3.12", "3.12.1");
	put_link(tree, "ws/alias", at(tree, "py/3.12/bin/python3"));
	check_named(tree, "ws/alias", "ws/alias py/3.12 py/3.12.1");

	static const char *const signs[] = { "node_modules", "ruby", "perl5", "site_perl" };

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		const char *prefix = vt_arena_printf(tree->arena, "opt/%s", signs[i]);
		const char *script = vt_arena_printf(tree->arena, "ws/%s", signs[i]);

		put_program(tree, vt_arena_printf(tree->arena, "%s/bin/run", prefix));
		put_folder(tree, vt_arena_printf(tree->arena, "%s/lib/%s", prefix, signs[i]));
		put(tree, script, vt_arena_printf(tree->arena, "#!%s/bin/run\n", at(tree, prefix)),
		    0755);
		check_named(tree, script, vt_arena_printf(tree->arena, "%s %s", script, prefix));
	}
	/* A folder of that name without the program is no Python. */
	put_program(tree, "stray/bin/run");
	put_folder(tree, "stray/lib/python3.12");
	put_link(tree, "ws/run", at(tree, "stray/bin/run"));
	check_named(tree, "ws/run", "ws/run stray/bin/run");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		TREE_TEST(test_prefixes),       TREE_TEST(test_linked_home),
		TREE_TEST(test_links),          TREE_TEST(test_venv),
		TREE_TEST(test_bad_venv),       TREE_TEST(test_chosen_by_link),
		TREE_TEST(test_link_to_home),   TREE_TEST(test_chosen_by_script),
		TREE_TEST(test_chosen_by_venv), TREE_TEST(test_interpreters),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
