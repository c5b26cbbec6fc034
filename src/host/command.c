/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "host/finder.h"
#include "host/prefix.h"
#include "host/runtime.h"
#include "host/script.h"
#include "host/trust.h"

enum {
	MAX_HOPS = 40,   /* links on one way; the kernel's own bound */
	MAX_SCRIPTS = 5, /* scripts that are each other's interpreters; the kernel's too */
	MAX_NEEDS = 256, /* both for each hop of each script, and some */
};

struct search {
	struct vt_arena *arena;
	struct vt_finder finder;
	const char *home;
	struct vt_givens givens;
	char real_home[PATH_MAX]; /* "" where there is none */
	struct vt_need needs[MAX_NEEDS];
	size_t need_count;
	bool by_path;      /* how the program was named */
	int plain_dir;     /* then its folder, if no link is on the way there; else -1 */
	const char *asker; /* the script or venv that leads to what is looked at; NULL: none */
	struct vt_err *err;
};

/* The way from a name to the file that it stands for, and whether the caller chose it. */
struct way {
	bool first; /* the prefix around the name is the caller's choice */
	bool rest;  /* so are those that its links lead to, and what the file itself leads to */
	const char *real;
	uint64_t dev, ino;
};

static int no_memory(const struct search *search)
{
	return vt_fail(search->err, VT_STEP_COMMAND, ENOMEM, "find the program");
}

static bool is_needed(const struct search *search, const char *path)
{
	for (size_t i = 0; i < search->need_count; i++)
		if (vt_path_lies_in(path, search->needs[i].path))
			return true;
	return false;
}

/* 1 where it is new, 0 where it is there already. */
static int add_need(struct search *search, const char *path, uint64_t dev, uint64_t ino)
{
	if (is_needed(search, path))
		return 0;
	if (search->need_count == MAX_NEEDS)
		return vt_fail(search->err, VT_STEP_COMMAND, ELOOP, "'%s': too many links", path);
	search->needs[search->need_count++] = (struct vt_need){ path, dev, ino };
	return 1;
}

/*
 * What nobody whose word counts has named comes along if the cell has it anyway, or if it is a
 * program like the system's own. It is opened through no link: what is judged is what the plan is
 * told to expect.
 */
static int judge(struct search *search, const char *path, struct way *way)
{
	const char *why = "cannot be looked at", *asker = search->asker;
	char real[PATH_MAX];
	struct stat st;

	if (realpath(path, real) == NULL)
		return vt_fail(search->err, VT_STEP_COMMAND, errno, "follow '%s'", path);
	bool has = vt_runtime_covers(real) || vt_trust_is_given(&search->givens, real);
	AUTO_CLOSE int fd = vt_trust_open(AT_FDCWD, real,
					  has ? O_PATH : O_RDONLY | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0 || (!has && !vt_trust_is_program(fd, &st, &why)))
		return vt_fail(search->err, VT_STEP_PLAN, EPERM,
			       "refused: '%s' leads to '%s', which %s, so it does not come along "
			       "by itself; grant it with --read, or name it as the command",
			       asker != NULL ? asker : path, real, why);
	way->real = vt_arena_dup(search->arena, real);
	way->dev = st.st_dev;
	way->ino = st.st_ino;
	return way->real == NULL ? no_memory(search) : 0;
}

/* named: by the caller, or by something of the caller's own. */
static int find_way(struct search *search, const char *path, bool named, struct way *ret_way)
{
	struct way way = { 0 };
	char real[PATH_MAX];
	struct stat st;
	bool known = false;
	int r = 0;

	if (named && !search->by_path) {
		known = vt_trust_links(&search->givens, path, real, &st);
		way.first = way.rest = known && vt_trust_file(&search->givens, real, &st);
	} else if (named && search->plain_dir >= 0) {
		way.first = true;
		known = fstatat(search->plain_dir, vt_finder_base(path), &st,
				AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode);
	}
	if (known) {
		way.real = search->by_path ? path : vt_arena_dup(search->arena, real);
		way.dev = st.st_dev;
		way.ino = st.st_ino;
		r = way.real == NULL ? no_memory(search) : 0;
	} else {
		r = judge(search, path, &way);
	}
	if (r == 0)
		*ret_way = way;
	return r;
}

static bool is_too_wide(const struct search *search, const char *prefix)
{
	return vt_prefix_is_too_wide(prefix, search->home) ||
	       vt_prefix_is_too_wide(prefix,
				     search->real_home[0] != '\0' ? search->real_home : NULL);
}

static int follow_links(struct search *search, const char *path, bool named, const char **ret_final,
			bool *ret_trusted);

static int add_venv_home(struct search *search, const char *prefix, bool trusted)
{
	static const char *const names[] = { "python3", "python" };
	const char *config = vt_finder_join(&search->finder, prefix, "pyvenv.cfg");
	const char *asker = search->asker;
	char home[PATH_MAX], real[PATH_MAX];
	struct stat st;

	if (config == NULL)
		return no_memory(search);
	if (!vt_prefix_read_venv_home(prefix, home))
		return 0;
	trusted = trusted && vt_trust_links(&search->givens, config, real, &st) &&
		  vt_trust_file(&search->givens, real, &st);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path, *final;
		int r = vt_finder_absolute(&search->finder, home, names[i], &path);

		if (r == -ENOMEM)
			return no_memory(search);
		if (r < 0 || vt_finder_check(path) < 0)
			continue;
		search->asker = config;
		r = follow_links(search, path, trusted, &final, &trusted);
		search->asker = asker;
		return r;
	}
	return 0;
}

/* Of a prefix that the caller chose: all of it. 1 where it is new, 0 where it is there already. */
static int add_whole(struct search *search, const char *prefix)
{
	struct stat st;
	int r = search->by_path ? fstatat(search->plain_dir, "..", &st, 0) : stat(prefix, &st);

	if (r < 0)
		return vt_fail(search->err, VT_STEP_COMMAND, errno, "look at '%s'", prefix);
	return add_need(search, prefix, st.st_dev, st.st_ino);
}

/* What its owner keeps to himself comes along only if the cell has it anyway. */
static int judge_part(struct search *search, const char *path, const char *name, const char *prefix,
		      const struct vt_prefix_part *part)
{
	const char *real = vt_finder_join(&search->finder, prefix, part->name);

	if (real == NULL)
		return no_memory(search);
	if (part->closed[0] == '\0' || is_needed(search, name) ||
	    vt_trust_is_given(&search->givens, real))
		return 0;
	return vt_fail(
		search->err, VT_STEP_PLAN, EPERM,
		"refused: '%s' leads to '%s', which needs '%s/%s', which is not for everyone "
		"to read, so it does not come along by itself; grant it with --read, or "
		"name the program as the command",
		search->asker != NULL ? search->asker : path, path, prefix, part->closed);
}

/* Of one that somebody else chose: what an interpreter needs of it. As above. */
static int add_parts(struct search *search, const char *path, const char *prefix, const char *real,
		     const struct way *way)
{
	const struct vt_prefix_program program = { vt_finder_base(path), vt_finder_base(way->real),
						   way->dev, way->ino };
	struct vt_prefix_part parts[VT_PREFIX_PARTS];
	AUTO_CLOSE int dir = vt_trust_open(AT_FDCWD, real, O_PATH | O_DIRECTORY);
	size_t count = dir < 0 ? 0 : vt_prefix_find_parts(dir, &program, parts);
	int added = 0;

	for (size_t i = 0; i < count; i++) {
		const char *part = vt_finder_join(&search->finder, prefix, parts[i].name);
		int r = part == NULL ? no_memory(search)
				     : judge_part(search, path, part, real, &parts[i]);

		if (r == 0)
			r = add_need(search, part, parts[i].dev, parts[i].ino);

		if (r < 0)
			return r;
		added |= r;
	}
	return added;
}

/* What a program at this path, or a link to it, has to bring along to be found and to run there. */
static int add_needs_of(struct search *search, const char *path, bool trusted,
			const struct way *way)
{
	char real[PATH_MAX];

	if (vt_runtime_covers(path))
		return 0;
	const char *dir = vt_finder_dir(&search->finder, path);
	const char *prefix = dir == NULL ? NULL : vt_finder_dir(&search->finder, dir);
	int r = 0;

	if (prefix == NULL)
		return no_memory(search);
	/* A link is judged by what it leads to as well. */
	if ((strcmp(vt_finder_base(dir), "bin") == 0 || strcmp(vt_finder_base(dir), "sbin") == 0) &&
	    realpath(prefix, real) != NULL && !is_too_wide(search, prefix) &&
	    !is_too_wide(search, real)) {
		if (!trusted)
			r = add_parts(search, path, prefix, real, way);
		else if (vt_prefix_is_installation(prefix))
			r = add_whole(search, prefix);
	}
	bool added = r > 0;

	if (r >= 0)
		r = add_need(search, path, way->dev, way->ino);
	if (r < 0)
		return r;
	/* Only once per venv: two that name each other as home must not go round. */
	return added ? add_venv_home(search, prefix, trusted && way->rest) : 0;
}

/*
 * Goes to the end of a chain of links; every stop on the way must exist inside. A folder that is a
 * link itself makes two of a stop: by the name that was used, and by the real one, which is what
 * relative links go on from.
 */
static int follow_links(struct search *search, const char *path, bool named, const char **ret_final,
			bool *ret_trusted)
{
	struct way way;
	int r = find_way(search, path, named, &way);
	bool trusted = r == 0 && way.first;

	for (int hop = 0; r == 0 && hop < MAX_HOPS; hop++) {
		char real[PATH_MAX], target[PATH_MAX];
		const char *dir = vt_finder_dir(&search->finder, path);

		r = add_needs_of(search, path, trusted, &way);
		if (r < 0)
			return r;
		if (dir == NULL)
			return no_memory(search);
		if (realpath(dir, real) == NULL)
			return vt_fail(search->err, VT_STEP_COMMAND, errno, "follow '%s'", path);
		if (strcmp(real, dir) != 0) {
			path = vt_finder_join(&search->finder, real, vt_finder_base(path));
			if (path == NULL)
				return no_memory(search);
			r = add_needs_of(search, path, trusted, &way);
			if (r < 0)
				return r;
		}
		ssize_t len = readlink(path, target, sizeof(target) - 1);

		if (len < 0 && errno == EINVAL) {
			*ret_final = path;
			*ret_trusted = way.rest;
			return 0;
		}
		if (len < 0)
			return vt_fail(search->err, VT_STEP_COMMAND, errno, "follow '%s'", path);
		target[len] = '\0';
		const char *next = vt_arena_dup(search->arena, target);

		r = next == NULL ? -ENOMEM : vt_finder_absolute(&search->finder, real, next, &next);
		if (r < 0)
			return vt_fail(search->err, VT_STEP_COMMAND, -r, "follow '%s'", path);
		path = next;
		trusted = way.rest;
	}
	return r < 0 ? r
		     : vt_fail(search->err, VT_STEP_COMMAND, ELOOP, "'%s': too many links", path);
}

/* The program, its interpreter if it is a script, that one's, and so on. */
static int add_chain(struct search *search, const char *path)
{
	bool trusted = true;

	for (int scripts = 0;; scripts++) {
		struct vt_script script;
		const char *final, *asker = path;
		int r = follow_links(search, path, trusted, &final, &trusted);

		if (r < 0 || !vt_script_read(final, &script))
			return r;
		if (scripts == MAX_SCRIPTS)
			return vt_fail(search->err, VT_STEP_COMMAND, ELOOP,
				       "'%s': too many scripts that interpret scripts", path);
		const char *name = vt_arena_printf(
			search->arena, "%s%s", strchr(script.interpreter, '/') != NULL ? "" : "./",
			script.interpreter);

		r = name == NULL ? no_memory(search)
				 : vt_finder_find(&search->finder, name, asker, &path);
		if (r < 0)
			return r;
		search->asker = asker;
		const char *wanted = strcmp(vt_finder_base(path), "env") == 0
					     ? vt_script_env_program(script.argument)
					     : NULL;

		if (wanted == NULL)
			continue;
		bool still = trusted;

		r = follow_links(search, path, trusted, &final, &still);
		name = vt_arena_dup(search->arena, wanted);
		if (r == 0)
			r = name == NULL ? no_memory(search)
					 : vt_finder_find(&search->finder, name, asker, &path);
		if (r < 0)
			return r;
	}
}

/* What lies in another need is there with it, and what the policy gives is there anyway. */
static int list_prefixes(const struct search *search, struct vt_command *command)
{
	command->prefixes = vt_arena_array(search->arena, search->need_count + 1,
					   sizeof(*command->prefixes));
	if (command->prefixes == NULL)
		return no_memory(search);
	for (size_t i = 0; i < search->need_count; i++) {
		bool covered = vt_trust_is_shown(&search->givens, search->needs[i].path);

		for (size_t j = 0; j < search->need_count && !covered; j++)
			covered = i != j &&
				  vt_path_lies_in(search->needs[i].path, search->needs[j].path);
		if (!covered)
			command->prefixes[command->prefix_count++] = search->needs[i];
	}
	return 0;
}

/*
 * The folder of what was named by a path, if no link is on the way there; else -1. The working
 * directory and the home are the caller's, however they are reached.
 */
static int open_plain(const struct search *search, const char *name)
{
	const char *start = search->finder.cwd != NULL ? search->finder.cwd : "/";

	if (search->home != NULL && vt_path_lies_in(name, search->home)) {
		start = search->home;
		name += strlen(start);
		name += strspn(name, "/");
	}
	const char *slash = strrchr(name, '/');
	const char *dir = slash == NULL ? "."
			  : slash == name
				  ? "/"
				  : vt_arena_dupn(search->arena, name, (size_t)(slash - name));
	AUTO_CLOSE int at = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return at < 0 || dir == NULL ? -1 : vt_trust_open(at, dir, O_PATH | O_DIRECTORY);
}

int vt_command_find(struct vt_arena *arena, const char *name, const struct vt_lookup *lookup,
		    struct vt_command *ret_command, struct vt_err *err)
{
	const char *home = lookup->home;
	struct vt_command command = { 0 };
	struct search search = {
		.arena = arena,
		.finder = { .arena = arena,
			    .search_path = lookup->search_path,
			    .cwd = lookup->cwd,
			    .pyenv_version = lookup->pyenv_version,
			    .err = err },
		.home = home != NULL && home[0] == '/' ? home : NULL,
		.givens = lookup->givens,
		.by_path = strchr(name, '/') != NULL,
		.plain_dir = -1,
		.err = err,
	};

	if (search.home == NULL || realpath(search.home, search.real_home) == NULL)
		search.real_home[0] = '\0';
	if (name[0] == '\0')
		return vt_fail(err, VT_STEP_COMMAND, ENOENT, "the name of the program is empty");
	int r = vt_finder_find(&search.finder, name, NULL, &command.path);
	/* Both: a pyenv shim stands for a program elsewhere. */
	AUTO_CLOSE int typed = r == 0 && search.by_path ? open_plain(&search, name) : -1;
	AUTO_CLOSE int found = typed >= 0 ? open_plain(&search, command.path) : -1;

	search.plain_dir = found;
	if (r == 0)
		r = add_chain(&search, command.path);
	if (r == 0)
		r = list_prefixes(&search, &command);
	if (r == 0)
		r = vt_finder_list(&search.finder, &command.bin_dirs, &command.bin_dir_count);
	if (r == 0)
		*ret_command = command;
	return r;
}
