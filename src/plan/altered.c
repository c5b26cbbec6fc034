/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/altered.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "host/prefix.h"

struct altering {
	const struct vt_givens *givens;
	char *place; /* of PATH_MAX bytes: what could be changed */
};

/* The name of the folder that a path lies in, so many levels up. */
static void go_up(const char *path, int levels, char ret_folder[PATH_MAX])
{
	/* Longer than a path can only be what could not be looked at for that. */
	(void)snprintf(ret_folder, PATH_MAX, "%.*s", PATH_MAX - 1, path);
	while (levels-- > 0) {
		char *slash = strrchr(ret_folder, '/');

		if (slash)
			*slash = '\0';
	}
}

/* What is there, or a link on the way to it. */
static bool is_file_altered(const struct altering *a, const char *path)
{
	if (access(path, F_OK) < 0 || vt_trust_unwritten(a->givens, path))
		return false;
	go_up(path, 0, a->place);
	return true;
}

static bool is_for_packages(const char *name)
{
	return strcmp(name, "site-packages") == 0 || strcmp(name, "dist-packages") == 0;
}

static bool leads_to_packages(const char *rest)
{
	return strstr(rest, "/site-packages") || strstr(rest, "/dist-packages");
}

/* Whether a grant for writing lies in a folder, which is free of links. */
static bool is_inside_altered(const struct altering *a, const char *folder)
{
	for (size_t i = 0; i < a->givens->count; i++)
		if (a->givens->items[i].writable && realpath(a->givens->items[i].path, a->place) &&
		    vt_path_lies_in(a->place, folder) &&
		    !leads_to_packages(a->place + strlen(folder)))
			return true;
	return false;
}

/* What could not be looked at may have been altered. */
static bool tell_unseen(const struct altering *a, const char *path)
{
	go_up(path, 0, a->place);
	return true;
}

static bool is_entry_altered(const struct altering *a, const FTSENT *entry)
{
	char real[PATH_MAX];

	switch (entry->fts_info) {
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		/* What was removed meanwhile is not imported either. */
		return entry->fts_errno != ENOENT && tell_unseen(a, entry->fts_path);
	case FTS_SL:
		return !is_for_packages(entry->fts_name) &&
		       (is_file_altered(a, entry->fts_path) ||
			(realpath(entry->fts_path, real) && is_inside_altered(a, real)));
	default:
		return false;
	}
}

/* Whether a link in a folder leads to where calls can write. */
static bool is_link_altered(const struct altering *a, char *folder)
{
	char *const roots[] = { folder, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	bool altered = false;
	FTSENT *entry;

	if (!walk)
		return tell_unseen(a, folder);
	while (!altered) {
		errno = 0;
		entry = fts_read(walk);
		if (!entry) {
			altered = errno && tell_unseen(a, folder);
			break;
		}
		if (entry->fts_info == FTS_D && is_for_packages(entry->fts_name))
			(void)fts_set(walk, entry, FTS_SKIP); /* cannot fail: it is known */
		altered = is_entry_altered(a, entry);
	}
	(void)fts_close(walk); /* it was only read */
	return altered;
}

/* A folder of modules, or a zip of them, by whatever links it is reached. */
static bool is_part_altered(const struct altering *a, const char *path)
{
	char real[PATH_MAX];

	return is_file_altered(a, path) ||
	       (realpath(path, real) && (is_inside_altered(a, real) || is_link_altered(a, real)));
}

/* The library below a prefix, in "lib" or "lib64": all that begins as Python's own part does. */
static bool is_library_altered(const struct altering *a, const char *prefix, const char *lib)
{
	char folder[PATH_MAX], path[PATH_MAX];
	const struct dirent *entry;
	bool altered = false;

	/* A path that is too long for us is so for the interpreter. */
	if (snprintf(path, sizeof(path), "%s/%s", prefix, lib) >= PATH_MAX ||
	    !realpath(path, folder))
		return false;
	DIR *dir = opendir(folder);

	if (!dir)
		return tell_unseen(a, folder);
	while (!altered) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			altered = errno && tell_unseen(a, folder);
			break;
		}
		if (strncmp(entry->d_name, "python3", 7) != 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX)
			altered = tell_unseen(a, folder);
		else
			altered = is_part_altered(a, path);
	}
	(void)closedir(dir); /* it was only read */
	return altered;
}

static bool is_prefix_altered(const struct altering *a, const char *prefix)
{
	return is_library_altered(a, prefix, "lib") || is_library_altered(a, prefix, "lib64");
}

static bool is_program_altered(const struct altering *a, const char *path)
{
	char real[PATH_MAX], prefix[PATH_MAX];

	if (is_file_altered(a, path))
		return true;
	if (!realpath(path, real))
		return false;
	go_up(real, 2, prefix);
	return is_prefix_altered(a, prefix);
}

/* One of a venv is led to its library by pyvenv.cfg, beside it or above. */
static bool is_venv_altered(const struct altering *a, const char *prefix)
{
	char home[PATH_MAX], file[PATH_MAX + 16];

	(void)snprintf(file, sizeof(file), "%s/pyvenv.cfg", prefix); /* fits */
	if (is_file_altered(a, file))
		return true;
	if (!vt_prefix_read_venv_home(prefix, home))
		return false;
	(void)snprintf(file, sizeof(file), "%s/python3", home); /* fits */
	if (is_program_altered(a, file))
		return true;
	/* It may have another name there, and the folder may be a link. */
	(void)snprintf(file, sizeof(file), "%s/..", home); /* fits */
	if (is_prefix_altered(a, file))
		return true;
	go_up(home, 1, file);
	return is_prefix_altered(a, file);
}

static bool has_writable(const struct vt_givens *givens)
{
	for (size_t i = 0; i < givens->count; i++)
		if (givens->items[i].writable)
			return true;
	return false;
}

bool vt_altered_interpreter(const struct vt_givens *givens, const char *path,
			    char ret_place[PATH_MAX])
{
	const struct altering a = { givens, ret_place };
	char prefix[PATH_MAX];

	if (!has_writable(givens))
		return false;
	bool altered = is_program_altered(&a, path);

	for (int levels = 1; !altered && levels <= 2; levels++) {
		go_up(path, levels, prefix);
		altered = is_venv_altered(&a, prefix);
	}
	return altered;
}
