/* SPDX-License-Identifier: Apache-2.0 */
#include "host/finder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "host/pyenv.h"
#include "host/runtime.h"

/* Of PATH: a longer one is a mistake, and keeps others waiting where many share a server. */
#define FOLDERS_MAX     1024
#define TEXT_OF(number) #number
#define TO_TEXT(number) TEXT_OF(number)
#define FOLDERS_PASSED                                                       \
	"is in none of the first " TO_TEXT(                                  \
		FOLDERS_MAX) " folders of PATH, and no more are looked at; " \
			     "shorten PATH, or name it by its path"

static const char default_path[] = VT_RUNTIME_PATH;

static int no_memory(const struct vt_finder *finder)
{
	return vt_fail(finder->err, VT_STEP_COMMAND, ENOMEM, "find the program");
}

const char *vt_finder_dir(const struct vt_finder *finder, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);

	return vt_arena_dupn(finder->arena, path, len == 0 ? 1 : len);
}

const char *vt_finder_base(const char *path)
{
	return strrchr(path, '/') + 1;
}

const char *vt_finder_join(const struct vt_finder *finder, const char *dir, const char *name)
{
	return vt_arena_printf(finder->arena, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
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

int vt_finder_absolute(const struct vt_finder *finder, const char *dir, const char *name,
		       const char **ret_path)
{
	char real[PATH_MAX];

	if (name[0] != '/' && dir == NULL)
		return -ENOENT;
	const char *path = name[0] == '/' ? name : vt_finder_join(finder, dir, name);

	if (path != NULL && is_untidy(path)) {
		const char *base = vt_finder_base(path);
		bool whole = base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
		const char *start = whole ? path : vt_finder_dir(finder, path);

		if (start != NULL && realpath(start, real) == NULL)
			return -errno;
		path = start == NULL ? NULL
		       : whole       ? vt_arena_dup(finder->arena, real)
				     : vt_finder_join(finder, real, base);
	}
	if (path == NULL)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int vt_finder_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOTDIR ? -ENOENT : errno == EACCES ? -EPERM : -errno;
	if (!S_ISREG(st.st_mode))
		return -EISDIR;
	return vt_file_access(AT_FDCWD, path, X_OK) < 0 ? -errno : 0;
}

static void add_bin_dir(struct vt_finder *finder, const char *dir, size_t order)
{
	size_t at = finder->bin_dir_count;

	for (size_t i = 0; i < finder->bin_dir_count; i++)
		if (strcmp(finder->bin_dirs[i].path, dir) == 0)
			return;
	for (; at > 0 && finder->bin_dirs[at - 1].order > order; at--)
		finder->bin_dirs[at] = finder->bin_dirs[at - 1];
	finder->bin_dirs[at] = (struct vt_bin_dir){ dir, order };
	finder->bin_dir_count++;
}

/*
 * A shim's program, and the folder that pyenv would put on PATH for it. *ret_path is NULL where the
 * shim stands for the system's. From here to find_on_path() nobody fills err: vt_finder_find()
 * does, who knows what the name is to the user.
 */
static int resolve_shim(struct vt_finder *finder, const char *shims, const char *name, size_t order,
			const char **ret_path)
{
	const char *path = NULL;
	int r = vt_pyenv_find(finder->arena, shims, name, finder->pyenv_version,
			      finder->cwd != NULL ? finder->cwd : "", &path);

	if (r == 0 && path != NULL) {
		const char *dir = vt_finder_dir(finder, path);

		if (dir == NULL)
			return -ENOMEM;
		add_bin_dir(finder, dir, order);
	}
	if (r < 0)
		return r;
	*ret_path = path;
	return 0;
}

/* One folder of PATH: *ret_path stays NULL where it does not have the program. */
static int look_in(struct vt_finder *finder, const char *dir, const char *name, size_t order,
		   const char **ret_path)
{
	const char *path = vt_finder_join(finder, dir, name);
	int r = path == NULL ? -ENOMEM : vt_finder_check(path);

	/* A folder that may not be looked into has no programs for us, as the shell sees it. */
	if (r < 0)
		return r == -EPERM ? -ENOENT : r;
	if (vt_pyenv_is_shims(dir))
		return resolve_shim(finder, dir, name, order, ret_path);
	add_bin_dir(finder, dir, order);
	*ret_path = path;
	return 0;
}

/*
 * As a shell looks: the first that can be executed. One that is there but cannot be is the reason
 * given if there is no other.
 */
static int find_on_path(struct vt_finder *finder, const char *name, const char **ret_path)
{
	const char *at = finder->search_path != NULL ? finder->search_path : default_path;
	int reason = -ENOENT;

	for (size_t order = 0;; order++) {
		size_t len = strcspn(at, ":");
		const char *dir = vt_arena_dupn(finder->arena, at, len);

		if (dir == NULL)
			return -ENOMEM;
		int r = vt_finder_absolute(finder, finder->cwd, len == 0 ? "." : dir, &dir);
		const char *path = NULL;

		if (r == 0)
			r = look_in(finder, dir, name, order, &path);
		if (r == -ENOMEM || (r == 0 && path != NULL)) {
			if (r == 0)
				*ret_path = path;
			return r;
		}
		if (r < 0 && r != -ENOENT && r != -EISDIR && reason == -ENOENT)
			reason = r;
		if (at[len] == '\0')
			return reason;
		if (order + 1 == FOLDERS_MAX)
			return -E2BIG;
		at += len + 1;
	}
}

/* To the kernel the carriage return belongs to the interpreter's name. */
static int fail_crlf(const struct vt_finder *finder, const char *script)
{
	return vt_fail(finder->err, VT_STEP_COMMAND, ENOENT,
		       "'%s' has Windows line ends (CRLF), so that the interpreter in its first "
		       "line is not found; remove them: sed -i 's/\\r$//' %s",
		       script, script);
}

/* Whether it is the caller's own and looks like a program: others are not made one by a chmod. */
static bool is_unmarked(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[SELFMAG];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    read(fd, head, sizeof(head)) != (ssize_t)sizeof(head))
		return false;
	return memcmp(head, "#!", 2) == 0 || memcmp(head, ELFMAG, SELFMAG) == 0;
}

/* A name that was looked for, and why it was not found. */
struct miss {
	const char *name;
	const char *path;  /* where it is by what was named; NULL: it was looked for on PATH */
	const char *asker; /* the script that names it as its interpreter, or NULL */
	int err;
};

/* What is wrong with it, and the errno that callers get. */
static const char *name_wrong(const struct vt_finder *finder, const struct miss *miss, int *ret_num)
{
	static const struct {
		int err, num;
		const char *by_path, *on_path;
	} wrongs[] = {
		{ EISDIR, EACCES, "is not a file", "is not a file" },
		{ EACCES, EACCES, "is not executable", "is not executable" },
		{ EPERM, EACCES, "lies in, or leads to, a folder that you may not look into",
		  "lies in, or leads to, a folder that you may not look into" },
		{ ENOENT, ENOENT, "does not exist", "is not on PATH" },
		{ ENOTDIR, ENOENT, "does not exist", "is not on PATH" },
		{ E2BIG, ENOENT, FOLDERS_PASSED, FOLDERS_PASSED },
	};
	const bool by_path = strchr(miss->name, '/') != NULL;
	const bool adrift = by_path && miss->name[0] != '/' && finder->cwd == NULL;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		if (wrongs[i].err != miss->err)
			continue;
		*ret_num = wrongs[i].num;
		if (adrift && wrongs[i].num == ENOENT)
			break;
		return by_path ? wrongs[i].by_path : wrongs[i].on_path;
	}
	return adrift ? "is relative to the working directory, which is gone"
		      : "cannot be executed";
}

static int fail_to_find(const struct vt_finder *finder, const struct miss *miss)
{
	const char *name = miss->name;
	int num = miss->err;

	if (miss->err == ENOMEM)
		return no_memory(finder);
	if (miss->asker != NULL && name[strlen(name) - 1] == '\r')
		return fail_crlf(finder, miss->asker);
	const char *wrong = name_wrong(finder, miss, &num);

	if (miss->asker != NULL)
		return vt_fail(finder->err, VT_STEP_COMMAND, num,
			       "'%s', the interpreter of '%s', %s", name, miss->asker, wrong);
	if (miss->err == EACCES && miss->path != NULL && is_unmarked(miss->path))
		return vt_fail(finder->err, VT_STEP_COMMAND, EACCES,
			       "'%s' is not executable; chmod +x %s", name, name);
	if (miss->err == ENOENT && !strchr(name, '/') && strchr(name, ' '))
		return vt_fail(
			finder->err, VT_STEP_COMMAND, ENOENT,
			"'%s' is not on PATH; a command and its arguments are words of their "
			"own, and a line for a shell is: sh -c '...'",
			name);
	return vt_fail(finder->err, VT_STEP_COMMAND, num, "'%s' %s", name, wrong);
}

/*
 * What pyenv would run for a shim that was named by its path: that, or the system's. NULL where it
 * fails: it is not the shim that cannot be executed then.
 */
static int follow_shim(struct vt_finder *finder, const char *dir, const char **path)
{
	const char *base = vt_finder_base(*path), *chosen = NULL;
	int r = resolve_shim(finder, dir, base, 0, &chosen);

	if (r == 0 && chosen == NULL)
		r = find_on_path(finder, base, &chosen);
	*path = chosen;
	return r;
}

int vt_finder_find(struct vt_finder *finder, const char *name, const char *asker,
		   const char **ret_path)
{
	bool by_path = strchr(name, '/') != NULL;
	const char *path = NULL;
	int r = by_path ? vt_finder_absolute(finder, finder->cwd, name, &path)
			: find_on_path(finder, name, &path);

	if (r == 0 && by_path) {
		const char *dir = vt_finder_dir(finder, path);

		r = dir == NULL ? -ENOMEM : vt_finder_check(path);
		if (r == 0 && asker == NULL && vt_pyenv_is_shims(dir))
			r = follow_shim(finder, dir, &path);
	}
	if (r < 0)
		return fail_to_find(finder, &(struct miss){ name, path, asker, -r });
	*ret_path = path;
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

int vt_finder_list(const struct vt_finder *finder, const char ***ret_dirs, size_t *ret_count)
{
	size_t count = finder->bin_dir_count;

	/* Those are on every PATH; they count only where they come before another. */
	while (count > 0 && is_default_dir(finder->bin_dirs[count - 1].path))
		count--;
	const char **dirs = vt_arena_array(finder->arena, count + 1, sizeof(*dirs));

	if (dirs == NULL)
		return no_memory(finder);
	for (size_t i = 0; i < count; i++)
		dirs[i] = finder->bin_dirs[i].path;
	*ret_dirs = dirs;
	*ret_count = count;
	return 0;
}
