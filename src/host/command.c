/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "host/prefix.h"
#include "host/pyenv.h"
#include "host/runtime.h"

enum {
	MAX_HOPS = 40,   /* links on one way; the kernel's own bound */
	MAX_SCRIPTS = 5, /* scripts that are each other's interpreters; the kernel's too */
	MAX_NEEDS = 256, /* both for each hop of each script, and some */
	MAX_BIN_DIRS = 1 + 2 * MAX_SCRIPTS, /* one for each program that is looked for */
	SCRIPT_HEAD = 256, /* as much as the kernel reads of a script to find its interpreter */
};

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct bin_dir {
	const char *path;
	size_t order; /* its place on search_path */
};

struct search {
	struct vt_arena *arena;
	const char *search_path, *cwd, *home, *pyenv_version;
	char real_home[PATH_MAX]; /* "" where there is none */
	const char *needs[MAX_NEEDS];
	size_t need_count;
	struct bin_dir bin_dirs[MAX_BIN_DIRS];
	size_t bin_dir_count;
	/*
	 * Whether a prefix that only looks like an installation comes along: that of the program,
	 * where the caller's own words lead to it; and those that its links, "#!" line and
	 * pyvenv.cfg lead to, where it was found on PATH, which is the caller's own. What is named
	 * by a path is often the work of an earlier call, which must not choose what a later one
	 * can read.
	 */
	bool trusts_first, trusts_rest;
	struct vt_err *err;
};

static int no_memory(const struct search *search)
{
	return vt_fail(search->err, VT_STEP_COMMAND, ENOMEM, "find the program");
}

/* dirname and basename of an absolute path without a '/' at its end, in the arena. NULL: no memory.
 */
static const char *dir_of(const struct search *search, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);

	return vt_arena_dupn(search->arena, path, len == 0 ? 1 : len);
}

static const char *base_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

static const char *join(const struct search *search, const char *dir, const char *name)
{
	return vt_arena_printf(search->arena, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

/* Whether a path has an empty part, "." or "..": only the kernel knows where that leads. */
static bool is_untidy(const char *path)
{
	while (*path == '/') {
		size_t len = strcspn(++path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') || strncmp(path, "../", 3) == 0 ||
		    strcmp(path, "..") == 0)
			return true;
		path += len;
	}
	return false;
}

/*
 * name as an absolute path: against dir, and without detours, for inside the cell the folders that
 * a detour passes through may not exist. The last part stays a link if it is one.
 */
static int make_absolute(const struct search *search, const char *dir, const char *name,
			 const char **ret_path)
{
	char real[PATH_MAX];

	if (name[0] != '/' && dir == NULL)
		return -ENOENT;
	const char *path = name[0] == '/' ? name : join(search, dir, name);

	if (path != NULL && is_untidy(path)) {
		const char *base = base_of(path);
		bool whole = base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
		const char *start = whole ? path : dir_of(search, path);

		if (start != NULL && realpath(start, real) == NULL)
			return -errno;
		path = start == NULL ? NULL
		       : whole       ? vt_arena_dup(search->arena, real)
				     : join(search, real, base);
	}
	if (path == NULL)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

/* 0, or why the kernel would not execute it. */
static int check_program(const char *path)
{
	struct stat st;

	/* A folder that may not be looked into has no programs for us, as the shell sees it. */
	if (stat(path, &st) < 0)
		return errno == ENOTDIR || errno == EACCES ? -ENOENT : -errno;
	if (!S_ISREG(st.st_mode))
		return -EISDIR;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* 1 where it is new, 0 where it is there already. */
static int add_need(struct search *search, const char *path)
{
	for (size_t i = 0; i < search->need_count; i++)
		if (vt_path_lies_in(path, search->needs[i]))
			return 0;
	if (search->need_count == MAX_NEEDS)
		return vt_fail(search->err, VT_STEP_COMMAND, ELOOP, "'%s': too many links", path);
	search->needs[search->need_count++] = path;
	return 1;
}

static bool is_too_wide(const struct search *search, const char *prefix)
{
	return vt_prefix_is_too_wide(prefix, search->home) ||
	       vt_prefix_is_too_wide(prefix,
				     search->real_home[0] != '\0' ? search->real_home : NULL);
}

/* Whether a prefix comes along whole. A link is judged by what it leads to as well. */
static bool comes_along(const struct search *search, const char *prefix, bool trusted)
{
	char real[PATH_MAX];

	if (realpath(prefix, real) == NULL || is_too_wide(search, prefix) ||
	    is_too_wide(search, real))
		return false;
	return trusted ? vt_prefix_is_installation(prefix) : vt_prefix_is_interpreter(prefix);
}

static int follow_links(struct search *search, const char *path, bool trusted,
			const char **ret_final);

static int add_venv_home(struct search *search, const char *prefix)
{
	static const char *const names[] = { "python3", "python" };
	char home[PATH_MAX];

	if (!vt_prefix_read_venv_home(prefix, home))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path, *final;
		int r = make_absolute(search, home, names[i], &path);

		if (r == -ENOMEM)
			return no_memory(search);
		if (r == 0 && check_program(path) == 0)
			return follow_links(search, path, search->trusts_rest, &final);
	}
	return 0;
}

/* What a program at this path, or a link to it, has to bring along to be found and to run there. */
static int add_needs_of(struct search *search, const char *path, bool trusted)
{
	if (vt_runtime_covers(path))
		return 0;
	const char *dir = dir_of(search, path);
	const char *prefix = dir == NULL ? NULL : dir_of(search, dir);

	if (prefix == NULL)
		return no_memory(search);
	if ((strcmp(base_of(dir), "bin") != 0 && strcmp(base_of(dir), "sbin") != 0) ||
	    !comes_along(search, prefix, trusted)) {
		int r = add_need(search, path);

		return r < 0 ? r : 0;
	}
	int r = add_need(search, prefix);

	/* Only once per venv: two that name each other as home must not go round. */
	return r <= 0 ? r : add_venv_home(search, prefix);
}

/*
 * Goes to the end of a chain of links; every stop on the way must exist inside. A folder that is a
 * link itself makes two of a stop: by the name that was used, and by the real one, which is what
 * relative links go on from.
 */
static int follow_links(struct search *search, const char *path, bool trusted,
			const char **ret_final)
{
	for (int hop = 0; hop < MAX_HOPS; hop++) {
		char real[PATH_MAX], target[PATH_MAX];
		const char *dir = dir_of(search, path);
		int r = add_needs_of(search, path, trusted);

		if (r < 0)
			return r;
		if (dir == NULL)
			return no_memory(search);
		if (realpath(dir, real) == NULL)
			return vt_fail(search->err, VT_STEP_COMMAND, errno, "follow '%s'", path);
		if (strcmp(real, dir) != 0) {
			path = join(search, real, base_of(path));
			if (path == NULL)
				return no_memory(search);
			r = add_needs_of(search, path, trusted);
			if (r < 0)
				return r;
		}
		ssize_t len = readlink(path, target, sizeof(target) - 1);

		if (len < 0 && errno == EINVAL) {
			*ret_final = path;
			return 0;
		}
		if (len < 0)
			return vt_fail(search->err, VT_STEP_COMMAND, errno, "follow '%s'", path);
		target[len] = '\0';
		const char *next = vt_arena_dup(search->arena, target);

		r = next == NULL ? -ENOMEM : make_absolute(search, real, next, &next);
		if (r < 0)
			return vt_fail(search->err, VT_STEP_COMMAND, -r, "follow '%s'", path);
		path = next;
		trusted = search->trusts_rest;
	}
	return vt_fail(search->err, VT_STEP_COMMAND, ELOOP, "'%s': too many links", path);
}

static void add_bin_dir(struct search *search, const char *dir, size_t order)
{
	size_t at = search->bin_dir_count;

	for (size_t i = 0; i < search->bin_dir_count; i++)
		if (strcmp(search->bin_dirs[i].path, dir) == 0)
			return;
	for (; at > 0 && search->bin_dirs[at - 1].order > order; at--)
		search->bin_dirs[at] = search->bin_dirs[at - 1];
	search->bin_dirs[at] = (struct bin_dir){ dir, order };
	search->bin_dir_count++;
}

/*
 * A shim's program, and the folder that pyenv would put on PATH for it. *ret_path is NULL where the
 * shim stands for the system's. From here to find_on_path() nobody fills err: find_program() does,
 * who knows what the name is to the user.
 */
static int resolve_shim(struct search *search, const char *shims, const char *name, size_t order,
			const char **ret_path)
{
	const char *path = NULL;
	int r = vt_pyenv_find(search->arena, shims, name, search->pyenv_version,
			      search->cwd != NULL ? search->cwd : "", &path);

	if (r == 0 && path != NULL) {
		const char *dir = dir_of(search, path);

		if (dir == NULL)
			return -ENOMEM;
		add_bin_dir(search, dir, order);
	}
	if (r < 0)
		return r;
	*ret_path = path;
	return 0;
}

/* One folder of PATH: *ret_path stays NULL where it does not have the program. */
static int look_in(struct search *search, const char *dir, const char *name, size_t order,
		   const char **ret_path)
{
	const char *path = join(search, dir, name);
	int r = path == NULL ? -ENOMEM : check_program(path);

	if (r < 0)
		return r;
	if (vt_pyenv_is_shims(dir))
		return resolve_shim(search, dir, name, order, ret_path);
	add_bin_dir(search, dir, order);
	*ret_path = path;
	return 0;
}

/*
 * As a shell looks: the first that can be executed. One that is there but cannot be is the reason
 * given if there is no other.
 */
static int find_on_path(struct search *search, const char *name, const char **ret_path)
{
	const char *at = search->search_path;
	int reason = -ENOENT;

	for (size_t order = 0;; order++) {
		size_t len = strcspn(at, ":");
		const char *dir = vt_arena_dupn(search->arena, at, len);

		if (dir == NULL)
			return -ENOMEM;
		int r = make_absolute(search, search->cwd, len == 0 ? "." : dir, &dir);
		const char *path = NULL;

		if (r == 0)
			r = look_in(search, dir, name, order, &path);
		if (r == -ENOMEM || (r == 0 && path != NULL)) {
			if (r == 0)
				*ret_path = path;
			return r;
		}
		if (r < 0 && r != -ENOENT && r != -EISDIR && reason == -ENOENT)
			reason = r;
		if (at[len] == '\0')
			return reason;
		at += len + 1;
	}
}

/* To the kernel the carriage return belongs to the interpreter's name. */
static int fail_crlf(const struct search *search, const char *script)
{
	return vt_fail(search->err, VT_STEP_COMMAND, ENOENT,
		       "'%s' has Windows line ends (CRLF), so that the interpreter in its first "
		       "line is not found; remove them: sed -i 's/\\r$//' %s",
		       script, script);
}

/* By path or on PATH. err is filled; asker is the script that wants it, or NULL. */
static int find_program(struct search *search, const char *name, const char *asker,
			const char **ret_path)
{
	bool by_path = strchr(name, '/') != NULL;
	const char *path = NULL, *dir = NULL;
	int r = by_path ? make_absolute(search, search->cwd, name, &path)
			: find_on_path(search, name, &path);

	if (r == 0 && by_path) {
		r = check_program(path);
		dir = dir_of(search, path);
		if (dir == NULL)
			r = -ENOMEM;
		if (r == 0 && asker == NULL && vt_pyenv_is_shims(dir)) {
			const char *base = base_of(path), *chosen = NULL;

			r = resolve_shim(search, dir, base, 0, &chosen);
			if (r == 0 && chosen == NULL)
				r = find_on_path(search, base, &chosen);
			path = chosen;
		}
	}
	if (r == 0) {
		*ret_path = path;
		return 0;
	}
	if (r == -ENOMEM)
		return no_memory(search);
	if (asker != NULL && name[strlen(name) - 1] == '\r')
		return fail_crlf(search, asker);
	const char *wrong = r == -EISDIR   ? "is not a file"
			    : r == -EACCES ? "is not executable"
			    : by_path && name[0] != '/' && search->cwd == NULL
				    ? "is relative to the working directory, which is gone"
			    : r == -ENOENT || r == -ENOTDIR
				    ? (by_path ? "does not exist" : "is not on PATH")
				    : "cannot be executed";

	if (r == -EACCES && by_path && asker == NULL)
		return vt_fail(search->err, VT_STEP_COMMAND, EACCES,
			       "'%s' is not executable; chmod +x %s", name, name);
	r = r == -EISDIR ? -EACCES : r == -ENOTDIR ? -ENOENT : r;
	if (asker == NULL)
		return vt_fail(search->err, VT_STEP_COMMAND, -r, "'%s' %s", name, wrong);
	return vt_fail(search->err, VT_STEP_COMMAND, -r, "'%s', the interpreter of '%s', %s", name,
		       asker, wrong);
}

struct script {
	char interpreter[SCRIPT_HEAD];
	char argument[SCRIPT_HEAD]; /* all of the rest, as the kernel passes it */
};

/* Whether the file is a script, and whose. What cannot be read is none: the kernel will say. */
static bool read_script(const char *path, struct script *ret_script)
{
	static const char blanks[] = " \t";
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[SCRIPT_HEAD];
	ssize_t len = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

	if (len < 3 || head[0] != '#' || head[1] != '!')
		return false;
	head[len] = '\0';
	head[strcspn(head, "\n")] = '\0';
	char *at = head + 2 + strspn(head + 2, blanks);
	size_t word = strcspn(at, blanks);
	char *rest = at + word + strspn(at + word, blanks);

	for (size_t end = strlen(rest); end > 0 && strchr(blanks, rest[end - 1]) != NULL; end--)
		rest[end - 1] = '\0';
	(void)snprintf(ret_script->interpreter, SCRIPT_HEAD, "%.*s", (int)word, at); /* fits */
	(void)snprintf(ret_script->argument, SCRIPT_HEAD, "%s", rest);               /* fits */
	return word > 0;
}

/*
 * The program that env is to run: the whole argument, or with -S the first word that is neither an
 * option nor an assignment. NULL: none. Changes argument.
 */
static const char *env_program(char *argument)
{
	static const char split_long[] = "--split-string";
	char *save = NULL;
	bool split = strncmp(argument, "-S", 2) == 0 || strncmp(argument, "-vS", 3) == 0 ||
		     strncmp(argument, split_long, sizeof(split_long) - 1) == 0;

	if (!split)
		return argument[0] == '\0' || argument[0] == '-' ? NULL : argument;
	argument += argument[1] == '-' ? sizeof(split_long) - 1 : strcspn(argument, "S") + 1;
	argument += *argument == '=';
	for (char *word = strtok_r(argument, " \t", &save); word != NULL;
	     word = strtok_r(NULL, " \t", &save)) {
		if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0)
			(void)strtok_r(NULL, " \t", &save); /* the option's own argument */
		else if (word[0] != '-' && strchr(word, '=') == NULL)
			return word;
	}
	return NULL;
}

/* The program, its interpreter if it is a script, that one's, and so on. */
static int add_chain(struct search *search, const char *path)
{
	for (int scripts = 0;; scripts++) {
		struct script script;
		const char *final, *asker = path;
		int r = follow_links(search, path,
				     scripts == 0 ? search->trusts_first : search->trusts_rest,
				     &final);

		if (r < 0 || !read_script(final, &script))
			return r;
		if (scripts == MAX_SCRIPTS)
			return vt_fail(search->err, VT_STEP_COMMAND, ELOOP,
				       "'%s': too many scripts that interpret scripts", path);
		const char *name = vt_arena_printf(
			search->arena, "%s%s", strchr(script.interpreter, '/') != NULL ? "" : "./",
			script.interpreter);

		r = name == NULL ? no_memory(search) : find_program(search, name, asker, &path);
		if (r < 0)
			return r;
		const char *wanted = strcmp(base_of(path), "env") == 0
					     ? env_program(script.argument)
					     : NULL;

		if (wanted == NULL)
			continue;
		r = follow_links(search, path, search->trusts_rest, &final);
		name = vt_arena_dup(search->arena, wanted);
		if (r == 0)
			r = name == NULL ? no_memory(search)
					 : find_program(search, name, asker, &path);
		if (r < 0)
			return r;
	}
}

/* What lies in another need is there with it. */
static int list_prefixes(const struct search *search, struct vt_command *command)
{
	command->prefixes = vt_arena_array(search->arena, search->need_count + 1,
					   sizeof(*command->prefixes));
	if (command->prefixes == NULL)
		return no_memory(search);
	for (size_t i = 0; i < search->need_count; i++) {
		bool covered = false;

		for (size_t j = 0; j < search->need_count && !covered; j++)
			covered = i != j && vt_path_lies_in(search->needs[i], search->needs[j]);
		if (!covered)
			command->prefixes[command->prefix_count++] = search->needs[i];
	}
	return 0;
}

static bool is_default_dir(const char *dir)
{
	const char *at = strstr(default_path, dir);
	size_t len = strlen(dir);

	for (; at != NULL; at = strstr(at + 1, dir))
		if ((at == default_path || at[-1] == ':') && (at[len] == ':' || at[len] == '\0'))
			return true;
	return false;
}

static int list_bin_dirs(const struct search *search, struct vt_command *command)
{
	size_t count = search->bin_dir_count;

	/* Those are on every PATH; they count only where they come before another. */
	while (count > 0 && is_default_dir(search->bin_dirs[count - 1].path))
		count--;
	command->bin_dirs = vt_arena_array(search->arena, count + 1, sizeof(*command->bin_dirs));
	if (command->bin_dirs == NULL)
		return no_memory(search);
	for (size_t i = 0; i < count; i++)
		command->bin_dirs[i] = search->bin_dirs[i].path;
	command->bin_dir_count = count;
	return 0;
}

/*
 * Whether no link is on the way to the folder of what was named by a path. The working directory
 * and the home are the caller's, however they are reached.
 */
static bool is_plain(const struct search *search, const char *name)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	const char *start = search->cwd != NULL ? search->cwd : "/";

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

	if (at < 0 || dir == NULL)
		return false;
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, at, dir, &how, sizeof(how));

	return fd >= 0;
}

int vt_command_find(struct vt_arena *arena, const char *name, const char *search_path,
		    const char *cwd, const char *home, const char *pyenv_version,
		    struct vt_command *ret_command, struct vt_err *err)
{
	struct vt_command command = { 0 };
	struct search search = {
		.arena = arena,
		.search_path = search_path != NULL ? search_path : default_path,
		.cwd = cwd,
		.home = home != NULL && home[0] == '/' ? home : NULL,
		.pyenv_version = pyenv_version,
		.err = err,
	};

	if (search.home == NULL || realpath(search.home, search.real_home) == NULL)
		search.real_home[0] = '\0';
	if (name[0] == '\0')
		return vt_fail(err, VT_STEP_COMMAND, ENOENT, "the name of the program is empty");
	int r = find_program(&search, name, NULL, &command.path);

	if (r == 0) {
		search.trusts_rest = strchr(name, '/') == NULL;
		/* Both: a pyenv shim stands for a program elsewhere. */
		search.trusts_first = search.trusts_rest ||
				      (is_plain(&search, name) && is_plain(&search, command.path));
		r = add_chain(&search, command.path);
	}
	if (r == 0)
		r = list_prefixes(&search, &command);
	if (r == 0)
		r = list_bin_dirs(&search, &command);
	if (r == 0)
		*ret_command = command;
	return r;
}
