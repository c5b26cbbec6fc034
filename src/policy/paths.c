/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static int fail_long(const struct vt_source *source, struct vt_err *err)
{
	return vt_source_fail(err, source, ENAMETOOLONG, "the path is longer than %d bytes",
			      PATH_MAX - 1);
}

int vt_path_check(const struct vt_source *source, const char *text, struct vt_err *err)
{
	if (!*text)
		return vt_source_fail(err, source, EINVAL, "the path is empty");
	if (strlen(text) > PATH_MAX - 1)
		return fail_long(source, err);
	for (const char *at = text; *at; at++) {
		/* Such a name would forge lines in reports and in /proc/self/mountinfo. */
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return vt_source_fail(err, source, EINVAL,
					      "'%s' has a control character in it",
					      vt_show(text).text);
	}
	if (text[0] == '~' && (text[1] == '/' || !text[1]))
		return vt_source_fail(err, source, EINVAL,
				      "'%s': the shell knows what ~ is, a policy does not; "
				      "write the whole path",
				      vt_show(text).text);
	return 0;
}

/* An absolute path under construction. The root is "", and each name is added as "/name". */
struct walk {
	char path[PATH_MAX];
	size_t len;
};

static void climb(struct walk *walk)
{
	while (walk->len && walk->path[--walk->len] != '/')
		;
	walk->path[walk->len] = '\0';
}

/* Walks text's names; a ".." is only taken where may_climb, and before any name. */
static int descend(struct walk *walk, const struct vt_source *source, const char *text,
		   bool may_climb, struct vt_err *err)
{
	const char *next;

	for (const char *at = text; *at; at = next) {
		size_t len = strcspn(at, "/");

		next = at + len + (at[len] == '/');
		if (len == 0 || (len == 1 && at[0] == '.'))
			continue;
		if (len == 2 && at[0] == '.' && at[1] == '.') {
			if (!may_climb)
				return vt_source_fail(
					err, source, EINVAL,
					"'%s': '..' can only begin a relative path, since after a "
					"symbolic link it means another folder than it seems to",
					vt_show(text).text);
			climb(walk);
			continue;
		}
		may_climb = false;
		if (len + 1 > sizeof(walk->path) - 1 - walk->len)
			return fail_long(source, err);
		walk->path[walk->len++] = '/';
		memcpy(walk->path + walk->len, at, len);
		walk->len += len;
		walk->path[walk->len] = '\0';
	}
	return 0;
}

static int finish(const struct walk *walk, struct vt_arena *arena, const char **ret_path,
		  struct vt_err *err)
{
	const char *path = vt_arena_dup(arena, walk->len ? walk->path : "/");

	if (!path)
		return vt_source_nomem(err);
	*ret_path = path;
	return 0;
}

int vt_path_resolve(struct vt_arena *arena, const struct vt_source *source, const char *text,
		    const char **ret_path, struct vt_err *err)
{
	struct walk walk = { .len = 0 };
	bool relative = text[0] != '/';
	int status = vt_path_check(source, text, err);

	if (status < 0)
		return status;
	if (relative) {
		const char *base = source->base_dir;

		/* Only the command line has a folder of its own, or had one. */
		if (!base && strncmp(source->name, "--", 2) != 0)
			return vt_source_fail(err, source, EINVAL,
					      "'%s' is relative; here a path must be absolute",
					      vt_show(text).text);
		if (!base || base[0] != '/')
			return vt_source_fail(
				err, source, EINVAL,
				"'%s' is relative, and the folder it is relative to is "
				"gone or not known; write the whole path",
				vt_show(text).text);
		status = descend(&walk, source, base, false, err);
	}
	if (status == 0)
		status = descend(&walk, source, text, relative, err);
	return status < 0 ? status : finish(&walk, arena, ret_path, err);
}

int vt_path_place(struct vt_arena *arena, const struct vt_source *source, const char *text,
		  const char **ret_path, struct vt_err *err)
{
	struct walk walk = { .len = 0 };
	int status = vt_path_check(source, text, err);

	if (status < 0)
		return status;
	if (text[0] != '/')
		return vt_source_fail(err, source, EINVAL,
				      "'%s' is relative; a place inside must be absolute",
				      vt_show(text).text);
	status = descend(&walk, source, text, false, err);
	if (status < 0)
		return status;
	if (!walk.len)
		return vt_source_fail(err, source, EINVAL, "nothing can be moved to '/'");
	return finish(&walk, arena, ret_path, err);
}
