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
	      "copies py/3.12/lib py/3.12/bin/python3 py/3.12/bin/python3.12", "");

	put(tree, "system/pyvenv.cfg", "home = /usr/bin\n", 0644);
	put_link(tree, "system/bin/python3", "/usr/bin/env");
	check(tree, &(struct query){ "@system/bin/python3" }, "system/bin/python3", "system", "");

	/* A script of the venv, as pip writes them. */
	put(tree, "venv/bin/tool",
	    vt_arena_printf(tree->arena, "#!%s/venv/bin/python3\n", tree->top), 0755);
	check(tree, &(struct query){ "@venv/bin/tool" }, "venv/bin/tool",
	      "venv py/3.12/lib py/3.12/bin/python3 py/3.12/bin/python3.12", "");
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

/* It comes along for nobody but the caller, by any road. */
static void check_refused(struct tree *tree, const char *name, const char *text)
{
	const char *typed = vt_arena_printf(tree->arena, "@%s", name);

	check_fails(tree, &(struct query){ typed }, EPERM, text);
}

static const char *with(const struct tree *tree, const char *some, const char *more)
{
	return vt_arena_printf(tree->arena, "%s %s", some, more);
}

static void put_script(const struct tree *tree, const char *path, const char *interpreter)
{
	put(tree, path, vt_arena_printf(tree->arena, "#!%s\n", at(tree, interpreter)), 0755);
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

	/* Through one script to another: only where the cell can read that anyway. */
	put(tree, "ws/second", vt_arena_printf(tree->arena, "#!%s/ws/direct\n", tree->top), 0755);
	check_refused(tree, "ws/second", "ws/direct', which is no native program");
	check(tree, &(struct query){ "@ws/second", .read = "ws" }, "ws/second", "proj/bin/tool",
	      "");
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

/* An interpreter comes along by every road, with its library. */
static void test_interpreters(void **state)
{
	static const char python[] = "py/3.12.1/lib py/3.12.1/bin/python3 py/3.12.1/bin/python3.12";
	struct tree *tree = *state;

	put_python(tree, "py/3.12.1", "3.12");
	put(tree, "py/3.12.1/secret", "x", 0644);
	put_venv(tree, "ws/.venv", "py/3.12.1");
	check_named(tree, "ws/.venv/bin/python", with(tree, "ws/.venv", python));
	check_named(tree, "ws/.venv/bin/python3.12", with(tree, "ws/.venv", python));
	put_link(tree, "ws/python", at(tree, "py/3.12.1/bin/python"));
	check_named(tree, "ws/python",
		    "ws/python py/3.12.1/lib py/3.12.1/bin/python py/3.12.1/bin/python3 "
		    "py/3.12.1/bin/python3.12");
	check(tree, &(struct query){ "@ws/.venv/bin/python", .write = "ws" }, "ws/.venv/bin/python",
	      python, "");

	/* A venv at the other end brings its packages and its own Python. */
	put_venv(tree, "pipx/tool", "py/3.12.1");
	put_script(tree, "ws/script", "pipx/tool/bin/python");
	check_named(tree, "ws/script",
		    with(tree, "ws/script pipx/tool/lib pipx/tool/pyvenv.cfg pipx/tool/bin/python",
			 python));
	put(tree, "ws/env", "#!/usr/bin/env python3\n", 0755);
	check(tree, &(struct query){ "@ws/env", "py/3.12.1/bin" }, "ws/env",
	      with(tree, "ws/env", python), "py/3.12.1/bin");
	put_link(tree, "py/3.12", "3.12.1");
	put_link(tree, "ws/alias", at(tree, "py/3.12/bin/python3"));
	check_named(tree, "ws/alias",
		    with(tree, "ws/alias py/3.12/lib py/3.12/bin/python3", python));
}

static void test_other_interpreters(void **state)
{
	static const struct {
		const char *program, *sign;
		bool comes;
	} cases[] = {
		{ "node", "node_modules", true }, { "nodejs", "node_modules", true },
		{ "ruby", "ruby", true },         { "ruby3.2", "ruby", true },
		{ "perl", "perl5", true },        { "perl5.36.0", "site_perl", true },
		{ "pypy3.10", "pypy3.10", true }, { "python3.13t", "python3.13t", true },
		{ "anything", "node_modules" },   { "node", "ruby" },
		{ "node-gyp", "node_modules" },   { "python", "python" },
		{ "python3.12", "python3.11" },   { "ruby-build", "ruby" },
		{ "anything", "python3.12" },     { "nodes", "node_modules" },
	};
	struct tree *tree = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *prefix = vt_arena_printf(tree->arena, "opt/%zu", i);
		const char *script = vt_arena_printf(tree->arena, "ws/%zu", i);
		const char *program = vt_arena_printf(tree->arena, "%s/bin/%s", prefix,
						      cases[i].program);
		const char *lib = vt_arena_printf(tree->arena, "%s %s/lib", script, prefix);

		put_program(tree, program);
		put(tree, vt_arena_printf(tree->arena, "%s/lib/%s/os.py", prefix, cases[i].sign),
		    "", 0644);
		put_script(tree, script, program);
		check_named(tree, script, with(tree, cases[i].comes ? lib : script, program));
	}
}

/* What it takes for a prefix to be the interpreter's own. */
static void test_false_prefixes(void **state)
{
	struct tree *tree = *state;

	put_python(tree, "py", "3.12");
	/* The Python is elsewhere, and no venv is here. */
	put_link(tree, "a/bin/python3.12", at(tree, "py/bin/python3.12"));
	put_folder(tree, "a/lib/python3.12");
	put_script(tree, "ws/a", "a/bin/python3.12");
	check_named(tree, "ws/a", "ws/a a/bin/python3.12 py/lib py/bin/python3.12");
	/* bin or lib are links, which whoever may write here could point anywhere. */
	put_link(tree, "b/bin", at(tree, "py/bin"));
	put_folder(tree, "b/lib/python3.12");
	put_script(tree, "ws/b", "b/bin/python3.12");
	check_named(tree, "ws/b", "ws/b b/bin/python3.12 py/lib py/bin/python3.12");
	put_program(tree, "c/bin/python3.12");
	put_link(tree, "c/lib", at(tree, "py/lib"));
	put_script(tree, "ws/c", "c/bin/python3.12");
	check_named(tree, "ws/c", "ws/c c/bin/python3.12");
	/* lib64 may be another name of lib, and of nothing else. */
	put_program(tree, "d/bin/python3.12");
	put(tree, "d/lib/python3.12/os.py", "", 0644);
	put_link(tree, "d/lib64", "lib");
	put_script(tree, "ws/d", "d/bin/python3.12");
	check_named(tree, "ws/d", "ws/d d/lib d/lib64 d/bin/python3.12");
	put_program(tree, "e/bin/python3.12");
	put(tree, "e/lib/python3.12/os.py", "", 0644);
	put_link(tree, "e/lib64", "../home");
	put_script(tree, "ws/e", "e/bin/python3.12");
	check_named(tree, "ws/e", "ws/e e/lib e/bin/python3.12");
	/* Of a venv, no program but Python; and its pyvenv.cfg is a file. */
	put_venv(tree, "f", "py");
	put_program(tree, "f/bin/tool");
	put_script(tree, "ws/f", "f/bin/tool");
	check_named(tree, "ws/f", "ws/f f/bin/tool");
	put_link(tree, "g/pyvenv.cfg", at(tree, "f/pyvenv.cfg"));
	put_link(tree, "g/bin/python", at(tree, "py/bin/python3.12"));
	put_folder(tree, "g/lib/python3.12");
	put_script(tree, "ws/g", "g/bin/python");
	check_named(tree, "ws/g", "ws/g g/bin/python py/lib py/bin/python3.12");
	/* A copy of Python beside a folder of that name, in which no library of Python's is. */
	put_program(tree, "h/bin/python3.12");
	put(tree, "h/lib/python3.12/secret.txt", "x", 0600);
	put_script(tree, "ws/h", "h/bin/python3.12");
	check_named(tree, "ws/h", "ws/h h/bin/python3.12");
	put(tree, "h/lib64/python3.12/os.py", "", 0644);
	check_named(tree, "ws/h", "ws/h h/lib h/lib64 h/bin/python3.12");
	/* A home is too wide for any of it. */
	put_program(tree, "home/u/bin/node");
	put_folder(tree, "home/u/lib/node_modules");
	put_script(tree, "ws/home", "home/u/bin/node");
	check_named(tree, "ws/home", "ws/home home/u/bin/node");
}

/* What its owner keeps to himself, and every script, comes along only if the caller says so. */
static void test_private(void **state)
{
	static const char *const roads[] = { "ws/script", "ws/env", "ws/link", "ws/dir/prog" };
	static const struct {
		const char *text;
		mode_t mode;
		const char *why;
	} cases[] = {
		{ "#!/bin/sh\necho secret\n", 0755, "is no native program" },
		{ "\177ELF", 0750, "is not for everyone" },
		{ "\177ELF", 0711, "is not for everyone" },
		{ "\177ELF", 0754, "is not for everyone" },
		{ "\177EL", 0755, "is no native program" },
	};
	struct tree *tree = *state;

	put_script(tree, "ws/script", "me/prog");
	put(tree, "ws/env",
	    vt_arena_printf(tree->arena, "#!/usr/bin/env %s\n", at(tree, "me/prog")), 0755);
	put_link(tree, "ws/link", at(tree, "me/prog"));
	put_link(tree, "ws/dir", at(tree, "me"));
	put(tree, "ws/.venv/pyvenv.cfg",
	    vt_arena_printf(tree->arena, "home = %s\n", at(tree, "me")), 0644);
	put_program(tree, "ws/.venv/bin/python");
	put_link(tree, "me/python3", "prog");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(tree, "me/prog", cases[i].text, cases[i].mode);
		for (size_t j = 0; j < sizeof(roads) / sizeof(roads[0]); j++)
			check_refused(tree, roads[j], cases[i].why);
		check_refused(tree, "ws/.venv/bin/python", "pyvenv.cfg' leads to");
		check_refused(tree, "ws/link", "grant it with --read, or name it as the command");
		/* As the message says, and with what can be read anyway. */
		check_named(tree, "me/prog", "me/prog");
		check(tree, &(struct query){ "@ws/link", .read = "me" }, "ws/link", "ws/link", "");
		check(tree, &(struct query){ "@ws/script", .read = "me/prog", .write = "ws" },
		      "ws/script", "", "");
		assert_int_equal(chmod(at(tree, "me/prog"), 0644), 0);
	}
	/* A native program for everyone comes along alone. */
	put_program(tree, "me/prog");
	check_named(tree, "ws/link", "ws/link me/prog");
	check_named(tree, "ws/script", "ws/script me/prog");
}

/* A library that its owner keeps to himself is not for an earlier call to choose. */
static void test_closed_libraries(void **state)
{
	static const char python[] = "py/lib py/bin/python3 py/bin/python3.12";
	static const struct {
		const char *path;
		mode_t closed, open;
	} cases[] = {
		{ "py/lib", 0700, 0755 },
		{ "py/lib", 0754, 0755 },
		{ "py/lib/python3.12", 0750, 0755 },
		{ "py/lib/python3.12", 0751, 0755 },
		{ "venv/lib", 0700, 0755 },
		{ "venv/lib/python3.12", 0700, 0755 },
		{ "venv/pyvenv.cfg", 0600, 0644 },
	};
	struct tree *tree = *state;

	put_python(tree, "py", "3.12");
	put_venv(tree, "venv", "py");
	put_script(tree, "ws/script", "venv/bin/python");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = vt_arena_printf(tree->arena, "needs '%s', which is not for",
						  at(tree, cases[i].path));
		const char *read = cases[i].path[0] == 'p' ? "py/lib" : "venv";

		assert_int_equal(chmod(at(tree, cases[i].path), cases[i].closed), 0);
		check_refused(tree, "ws/script", why);
		/* Granted, or in the prefix of what the caller names. */
		assert_int_equal(find(tree, &(struct query){ "@ws/script", .read = read }), 0);
		check(tree, &(struct query){ "python3", "py/bin" }, "py/bin/python3", "py",
		      "py/bin");
		check(tree, &(struct query){ "python", "venv/bin" }, "venv/bin/python", "venv py",
		      "venv/bin");
		assert_int_equal(chmod(at(tree, cases[i].path), cases[i].open), 0);
	}
	/* The folders around do not count: homes are closed. */
	assert_int_equal(chmod(at(tree, "py"), 0700), 0);
	assert_int_equal(chmod(at(tree, "py/bin"), 0700), 0);
	check_named(tree, "ws/script",
		    with(tree, "ws/script venv/lib venv/pyvenv.cfg venv/bin/python", python));
}

/* PATH is the caller's own, but what cells or others may write there is not. */
static void test_writable_path(void **state)
{
	struct tree *tree = *state;

	put_project(tree);
	put(tree, "me/prog", "#!/bin/sh\n", 0755);
	put_link(tree, "ws/link", at(tree, "me/prog"));
	put_script(tree, "ws/script", "me/prog");
	put_script(tree, "ws/tool", "proj/bin/tool");
	put_link(tree, "ws/dir", at(tree, "me"));
	check(tree, &(struct query){ "link", "ws" }, "ws/link", "ws/link me/prog", "ws");
	check(tree, &(struct query){ "tool", "ws" }, "ws/tool", "ws/tool proj", "ws");
	check(tree, &(struct query){ "prog", "ws/dir" }, "ws/dir/prog", "ws/dir/prog me/prog",
	      "ws/dir");
	check_fails(tree, &(struct query){ "link", "ws", .write = "ws" }, EPERM, "no native");
	check_fails(tree, &(struct query){ "script", "ws", .write = "ws" }, EPERM, "no native");
	check_fails(tree, &(struct query){ "prog", "ws/dir", .write = "ws" }, EPERM, "no native");
	check(tree, &(struct query){ "tool", "ws", .write = "ws" }, "ws/tool", "proj/bin/tool",
	      "ws");
	/* A link of the caller's to one of a cell's. */
	put_link(tree, "mine/link", at(tree, "ws/link"));
	check(tree, &(struct query){ "link", "mine" }, "mine/link", "mine/link ws/link me/prog",
	      "mine");
	check_fails(tree, &(struct query){ "link", "mine", .write = "ws" }, EPERM, "no native");
	/* A program that a cell may have put there does not choose its prefix either. */
	check(tree, &(struct query){ "tool", "proj/bin" }, "proj/bin/tool", "proj", "proj/bin");
	check(tree, &(struct query){ "tool", "proj/bin", .write = "proj/bin" }, "proj/bin/tool", "",
	      "proj/bin");
	/* Whoever else may write to the folder is not the caller. */
	assert_int_equal(chmod(at(tree, "ws"), 0777), 0);
	check_fails(tree, &(struct query){ "link", "ws" }, EPERM, "no native");
	check_fails(tree, &(struct query){ "script", "ws" }, EPERM, "no native");
	assert_int_equal(chmod(at(tree, "ws"), 0755), 0);
	assert_int_equal(chmod(at(tree, "ws/script"), 0757), 0);
	check_fails(tree, &(struct query){ "script", "ws" }, EPERM, "no native");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		TREE_TEST(test_prefixes),
		TREE_TEST(test_linked_home),
		TREE_TEST(test_links),
		TREE_TEST(test_venv),
		TREE_TEST(test_bad_venv),
		TREE_TEST(test_chosen_by_link),
		TREE_TEST(test_link_to_home),
		TREE_TEST(test_chosen_by_script),
		TREE_TEST(test_chosen_by_venv),
		TREE_TEST(test_interpreters),
		TREE_TEST(test_other_interpreters),
		TREE_TEST(test_false_prefixes),
		TREE_TEST(test_private),
		TREE_TEST(test_closed_libraries),
		TREE_TEST(test_writable_path),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
