/* SPDX-License-Identifier: Apache-2.0 */
/* Which names are guarded on an invented machine, and what is refused where none can be. */
#include "plan/invented_test.h"

#include "base/path.h"
#include "plan/protect.h"

static const struct invented machine[] = {
	{ "/", S_IFDIR | 0755 },
	{ "/dev/full", S_IFCHR | 0666 },
	{ "/dev/null", S_IFCHR | 0666 },
	{ "/dev/random", S_IFCHR | 0666 },
	{ "/dev/urandom", S_IFCHR | 0666 },
	{ "/dev/zero", S_IFCHR | 0666 },
	{ "/usr", S_IFDIR | 0755 },
	{ "/plain", S_IFDIR | 0755 },
	{ "/plain/a", S_IFDIR | 0755 },
	{ "/plain/a/.envrc", S_IFREG | 0644 },
	{ "/plain/a/b", S_IFDIR | 0755 },
	{ "/r", S_IFDIR | 0755 },
	{ "/r/.git", S_IFDIR | 0755 },
	{ "/r/.git/HEAD", S_IFREG | 0644 },
	{ "/r/.git/objects", S_IFDIR | 0755 },
	{ "/r/.git/refs", S_IFDIR | 0755 },
	{ "/r/.git/config", S_IFREG | 0644 },
	{ "/r/.git/hooks", S_IFDIR | 0755 },
	{ "/r/.git/hooks/x", S_IFDIR | 0755 },
	{ "/r/.git/modules", S_IFDIR | 0755 },
	{ "/r/.git/modules/libs", S_IFDIR | 0755 },
	{ "/r/.git/modules/libs/one", S_IFDIR | 0755 },
	{ "/r/.git/modules/libs/one/HEAD", S_IFREG | 0644 },
	{ "/r/.git/modules/libs/one/objects", S_IFDIR | 0755 },
	{ "/r/.git/modules/libs/one/config", S_IFREG | 0644 },
	{ "/r/.git/worktrees", S_IFDIR | 0755 },
	{ "/r/.git/worktrees/wt", S_IFDIR | 0755 },
	{ "/r/.git/worktrees/wt/gitdir", S_IFREG | 0644 },
	{ "/r/.vscode", S_IFDIR | 0755 },
	{ "/r/tools", S_IFDIR | 0755 },
	{ "/r/tools/hooks", S_IFDIR | 0755 },
	{ "/r/tools/more.cfg", S_IFREG | 0644 },
	{ "/r/tools/node_modules", S_IFDIR | 0755 },
	{ "/r/tools/node_modules/.envrc", S_IFREG | 0644 },
	{ "/bare", S_IFDIR | 0755 },
	{ "/bare/HEAD", S_IFREG | 0644 },
	{ "/bare/objects", S_IFDIR | 0755 },
	{ "/bare/refs", S_IFDIR | 0755 },
	{ "/home", S_IFDIR | 0755 },
	{ "/home/ann", S_IFDIR | 0755 },
	{ "/home/ann/.bashrc", S_IFREG | 0644 },
	{ "/home/ann/.local", S_IFDIR | 0755 },
	{ "/home/ann/.local/bin", S_IFDIR | 0755 },
	{ "/link", S_IFDIR | 0755 },
	{ "/link/.idea", S_IFDIR | 0755, 0, "settings" },
	{ "/link/settings", S_IFDIR | 0755 },
	{ "/led", S_IFDIR | 0755 },
	{ "/led/real", S_IFDIR | 0755 },
	{ "/led/real/ci", S_IFREG | 0644 },
	{ "/led/way", S_IFDIR | 0755, 0, "real" },
};

static const struct {
	const char *path, *text;
} texts[] = {
	{ "/r/.git/config",
	  "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/more.cfg\n" },
	{ "/r/tools/more.cfg", "[include]\n\tpath = later.cfg\n\tpath = /etc/gitconfig\n" },
	{ "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nann:x:1:1::/home/ann:/bin/sh\n" },
};

static ssize_t read_text(const struct vt_host *host, const char *path, char *buf, size_t size)
{
	(void)host;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].path, path) == 0)
			return snprintf(buf, size, "%s", texts[i].text);
	return -ENOENT;
}

#define INVENTED                                                                              \
	.uid = 1000, .gid = 1000, .seccomp = { 0, "a trial" }, .landlock_abi = 7, .cpus = 4,  \
	.notify = { 0, "a trial" }, .cgroup = { .why = "none" }, .context = MACHINE(machine), \
	.look = look, .step = step, .entries = entries, .read_file = read_text

static const struct vt_host works = { INVENTED, .userns = { 0, "a trial" } };
static const struct vt_host bare = { INVENTED, .userns = { EPERM, "a trial" }, .proc = true,
				     .scratch = "/tmp" };

/* All guards of a plan: "in place" in brackets, what is watched with a '?' before it. */
static void check(const char *files, const char *wanted)
{
	struct vt_plan *made;
	struct vt_err err;
	char text[8192] = "";
	size_t count = 0;

	if (plan_files(&works, files, &made, &err) < 0)
		fail_msg("%s", err.what);
	for (size_t i = 0; i < made->build_count; i++)
		for (size_t j = 0; j < made->builds[i].guard_count; j++, count++) {
			const struct vt_guard *guard = &made->builds[i].guards[j];
			const char *held = vt_guard_held(guard);
			bool plain = guard->kind == VT_GUARD_NAME && !guard->ino;
			size_t len = strlen(text);

			/* Those that every grant has are told by one of them. */
			if (!held ||
			    (plain && !strstr(guard->path, ".envrc") &&
			     !strstr(guard->path, "git") && !strstr(guard->path, "config") &&
			     !strstr(guard->path, "later") && strcmp(guard->path, "ci") != 0))
				continue;
			(void)snprintf(text + len, sizeof(text) - len,
				       guard->kind == VT_GUARD_NAME ? "%s%s%s" : "%s%s[%s]",
				       len ? " " : "", plain ? "?" : "", guard->path);
		}
	assert_int_equal(made->guard_count, count);
	assert_string_equal(text, wanted);
	vt_plan_free(made);
}

static void names_are_found(void **state)
{
	(void)state;
	check("\"read\": [\"/r\"]", "");
	check("\"write\": [\"/plain\"]", "?.envrc ?.git [a] a/.envrc");
	check("\"write\": [\"/plain/a\"]", ".envrc ?.git");
	check("\"write\": [\"/bare\"]", "?.envrc ?.git ?config ?config.worktree ?gitdir");
}

/* With the ways to them, modules, work trees, and where the configuration leads. */
static void of_git_there_are_more(void **state)
{
	(void)state;
	check("\"write\": [\"/r\"]",
	      "?.envrc [.git] ?.git/commondir .git/config ?.git/config.worktree ?.git/gitdir "
	      ".git/hooks "
	      "[.git/modules] [.git/modules/libs] [.git/modules/libs/one] "
	      "?.git/modules/libs/one/commondir .git/modules/libs/one/config "
	      "?.git/modules/libs/one/config.worktree ?.git/modules/libs/one/gitdir "
	      "?.git/modules/libs/one/hooks [.git/worktrees] [.git/worktrees/wt] "
	      "?.git/worktrees/wt/commondir ?.git/worktrees/wt/config "
	      "?.git/worktrees/wt/config.worktree .git/worktrees/wt/gitdir "
	      "?.git/worktrees/wt/hooks "
	      ".vscode [tools] tools/hooks ?tools/later.cfg tools/more.cfg");
}

static void a_policy_may_say_otherwise(void **state)
{
	(void)state;
	check("\"write\": [\"/r\"], \"protect\": []", "");
	check("\"write\": [\"/plain\"], \"protect\": [\"ci/run.sh\", \"b\"]",
	      "?.envrc ?.git [a] a/.envrc a/b ?ci");
	/* what is granted by name */
	check("\"write\": [\"/plain\", \"/plain/a/.envrc\"]", "?.envrc ?.git [a]");
	/* the way to what is for reading stays */
	check("\"write\": [\"/plain\"], \"read\": [\"/plain/a/b\"], \"protect\": []", "[a]");
	check("\"write\": [\"/plain\"], \"read\": [\"/plain/a\"], \"protect\": []", "");
}

static void homes_have_names_of_their_own(void **state)
{
	(void)state;
	check("\"write\": [\"/home\"]", "?.envrc ?.git [ann] ann/.bashrc ?ann/.config ?ann/.envrc "
					"?ann/.gitconfig [ann/.local] "
					"ann/.local/bin");
	check("\"write\": [\"/home/ann\"]",
	      ".bashrc ?.config ?.envrc ?.git ?.gitconfig [.local] .local/bin");
}

static void links_are_followed(void **state)
{
	(void)state;
	check("\"write\": [\"/link\"]", "?.envrc ?.git .idea settings");
	/* on the way to a name, too */
	check("\"write\": [\"/led\"], \"protect\": [\"way/ci\"]",
	      "?.envrc ?.git [real] real/ci way");
	check("\"write\": [\"/led\"], \"protect\": [\"way/later\"]",
	      "?.envrc ?.git [real] ?real/later way");
}

static void check_refused(const struct vt_host *host, const char *files, const char *says)
{
	struct vt_plan *made;
	struct vt_err err;

	assert_true(plan_files(host, files, &made, &err) < 0);
	if (!strstr(err.what, says))
		fail_msg("'%s' does not say '%s'", err.what, says);
}

static void what_cannot_be_held_is_told(void **state)
{
	struct vt_plan *made;
	struct vt_err err;

	(void)state;
	assert_int_equal(plan_files(&bare, "\"write\": [\"/r\"]", &made, &err), 0);
	assert_non_null(made->protect_note);
	assert_int_equal(made->guard_count, 0);
	vt_plan_free(made);
	assert_int_equal(plan_files(&bare, "\"write\": [\"/r\"], \"protect\": []", &made, &err), 0);
	assert_null(made->protect_note);
	vt_plan_free(made);
	assert_int_equal(plan_files(&bare, "\"read\": [\"/r\"], \"protect\": [\"x\"]", &made, &err),
			 0);
	assert_null(made->protect_note);
	vt_plan_free(made);
	check_refused(&bare, "\"write\": [\"/r\"], \"protect\": [\"x\"]", "files.protect");
	check_refused(&bare, "\"write\": [\"/r\"], \"read\": [\"/r/tools\"]", "/r/tools");
	check_refused(&works, "\"write\": [\"/r\", \"/r/.git/hooks/x\"]", "files.protect");
}

/* In a machine of many folders those beyond a bound are told of. */
static int many(const struct vt_host *host, const char *path, uint64_t dev,
		void (*each)(void *arg, const char *name, unsigned char type), void *arg)
{
	char name[16];

	if (strcmp(path, "/plain") != 0)
		return entries(host, path, dev, each, arg);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "d%d", i); /* fits */
		each(arg, name, DT_DIR);
	}
	return 0;
}

static void there_are_bounds(void **state)
{
	struct vt_host host = works;
	struct vt_plan *made;
	struct vt_err err;

	(void)state;
	host.entries = many;
	assert_int_equal(plan_files(&host, "\"write\": [\"/plain\"]", &made, &err), 0);
	assert_non_null(strstr(made->unlooked, "more folders"));
	vt_plan_free(made);
	host.entries = entries;
	assert_int_equal(plan_files(&host, "\"write\": [\"/plain\"]", &made, &err), 0);
	assert_null(made->unlooked);
	vt_plan_free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(of_git_there_are_more),
		cmocka_unit_test(a_policy_may_say_otherwise),
		cmocka_unit_test(homes_have_names_of_their_own),
		cmocka_unit_test(links_are_followed),
		cmocka_unit_test(what_cannot_be_held_is_told),
		cmocka_unit_test(there_are_bounds),
	};

	return cmocka_run_group_tests_name("protect", tests, NULL, NULL);
}
