/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pyenv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

enum { MAX_VERSION_FILE = 4096 };

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       vt_file_access(AT_FDCWD, path, X_OK) == 0;
}

bool vt_pyenv_is_shims(const char *dir)
{
	static const char shims[] = "/shims";
	size_t len = strlen(dir), tail = sizeof(shims) - 1;
	char versions[PATH_MAX];

	if (len <= tail || strcmp(dir + len - tail, shims) != 0)
		return false;
	int n = snprintf(versions, sizeof(versions), "%.*s/versions", (int)(len - tail), dir);

	return n > 0 && (size_t)n < sizeof(versions) && is_folder(versions);
}

/* Its beginning: nobody lists more versions than fit. An empty or missing file says nothing. */
static bool read_start(const char *path, char buf[MAX_VERSION_FILE])
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	ssize_t len = read(fd, buf, MAX_VERSION_FILE - 1);

	if (len <= 0)
		return false;
	buf[len] = '\0';
	return true;
}

/* Comments become blanks, so that what is left is words. */
static void drop_comments(char *text)
{
	for (char *at = strchr(text, '#'); at != NULL; at = strchr(at, '#'))
		while (*at != '\0' && *at != '\n')
			*at++ = ' ';
}

static bool read_versions(const char *root, const char *cwd, char buf[MAX_VERSION_FILE])
{
	char path[PATH_MAX + 16]; /* with room for the name below root */
	size_t len = strlen(cwd);

	for (;;) {
		int n = snprintf(path, sizeof(path), "%.*s/.python-version", (int)len, cwd);

		if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0)
			break;
		if (len == 0) {
			(void)snprintf(path, sizeof(path), "%s/version", root); /* fits */
			break;
		}
		while (len > 0 && cwd[len - 1] != '/')
			len--;
		if (len > 0)
			len--;
	}
	if (!read_start(path, buf))
		return false;
	drop_comments(buf);
	return true;
}

/* 3.13.0a1, 3.14-dev: chosen only by their full names. */
static bool is_unfinished(const char *name)
{
	size_t len = strlen(name), end = len;

	if ((len > 4 && strcmp(name + len - 4, "-dev") == 0) ||
	    (len > 4 && strcmp(name + len - 4, "-src") == 0))
		return true;
	while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	return end > 0 && end < len && strchr("abc", name[end - 1]) != NULL;
}

/* "3.12" stands for the newest 3.12.x that is installed. */
static bool find_latest(const char *versions, const char *prefix, char best[NAME_MAX + 1])
{
	size_t len = strlen(prefix);
	DIR *dir = opendir(versions);
	const struct dirent *entry;

	best[0] = '\0';
	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (strncmp(name, prefix, len) == 0 && (name[len] == '.' || name[len] == '-') &&
		    !is_unfinished(name) && strverscmp(name, best) > 0)
			(void)snprintf(best, NAME_MAX + 1, "%s", name); /* a name fits */
	}
	(void)closedir(dir); /* only read from */
	return best[0] != '\0';
}

/* A version file is anybody's: a name that leads out of the folder of versions is none. */
static bool is_safe(const char *version)
{
	return strchr(version, '/') == NULL && strcmp(version, "..") != 0 &&
	       strcmp(version, ".") != 0;
}

static bool find_in(const char *versions, const char *version, const char *name,
		    char path[PATH_MAX])
{
	char latest[NAME_MAX + 1];

	if (!is_safe(version))
		return false;
	int n = snprintf(path, PATH_MAX, "%s/%s", versions, version);

	if (n < 0 || n >= PATH_MAX)
		return false;
	if (!is_folder(path)) {
		if (strncmp(version, "python-", 7) == 0)
			return find_in(versions, version + 7, name, path);
		if (!find_latest(versions, version, latest))
			return false;
		version = latest;
	}
	n = snprintf(path, PATH_MAX, "%s/%s/bin/%s", versions, version, name);
	return n > 0 && n < PATH_MAX && is_program(path);
}

int vt_pyenv_find(struct vt_arena *arena, const char *shims, const char *name, const char *version,
		  const char *cwd, const char **ret_path)
{
	char root[PATH_MAX], versions[PATH_MAX + 16], words[MAX_VERSION_FILE], path[PATH_MAX];
	char *save = NULL;

	*ret_path = NULL;
	(void)snprintf(root, sizeof(root), "%.*s", (int)(strlen(shims) - strlen("/shims")), shims);
	(void)snprintf(versions, sizeof(versions), "%s/versions", root); /* fits */
	if (version != NULL && version[0] != '\0')
		(void)snprintf(words, sizeof(words), "%s", version); /* cut: too many to matter */
	else if (!read_versions(root, cwd, words))
		return 0;

	for (char *word = strtok_r(words, ": \t\r\n", &save); word != NULL;
	     word = strtok_r(NULL, ": \t\r\n", &save)) {
		if (strcmp(word, "system") == 0)
			return 0;
		if (!find_in(versions, word, name, path))
			continue;
		*ret_path = vt_arena_dup(arena, path);
		return *ret_path == NULL ? -ENOMEM : 0;
	}
	return 0;
}
