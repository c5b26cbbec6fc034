/* SPDX-License-Identifier: Apache-2.0 */
#include "host/prefix.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

bool vt_prefix_is_too_wide(const char *prefix, const char *home)
{
	static const char homes[] = "/home/";
	size_t len = sizeof(homes) - 1;
	const char *last = strrchr(prefix, '/') + 1;

	return last == prefix + 1 || (last == prefix + len && strncmp(prefix, homes, len) == 0) ||
	       strcmp(last, ".local") == 0 || (home != NULL && vt_path_lies_in(home, prefix));
}

static bool has_any(int dir, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (faccessat(dir, names[i], F_OK, 0) == 0)
			return true;
	return false;
}

bool vt_prefix_is_installation(const char *prefix)
{
	static const char *const signs[] = { "lib", "lib64", "libexec", "pyvenv.cfg" };
	AUTO_CLOSE int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && has_any(dir, signs, sizeof(signs) / sizeof(signs[0]));
}

/* A program and a folder of the same name with a version in it: python3.11. */
static bool has_python(int bin, DIR *lib)
{
	static const char python[] = "python";
	size_t len = sizeof(python) - 1;
	const struct dirent *entry;

	while ((entry = readdir(lib)) != NULL)
		if (strncmp(entry->d_name, python, len) == 0 &&
		    isdigit((unsigned char)entry->d_name[len]) &&
		    faccessat(bin, entry->d_name, X_OK, AT_EACCESS) == 0)
			return true;
	return false;
}

bool vt_prefix_is_interpreter(const char *prefix)
{
	static const char *const signs[] = { "node_modules", "ruby", "perl5", "site_perl" };
	AUTO_CLOSE int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int bin = openat(dir, "bin", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int lib = openat(dir, "lib", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || lib < 0)
		return false;
	if (has_any(lib, signs, sizeof(signs) / sizeof(signs[0])))
		return true;
	DIR *list = bin < 0 ? NULL : fdopendir(lib);

	if (list == NULL)
		return false;
	(void)vt_fd_take(&lib); /* the list's now */
	bool found = has_python(bin, list);

	(void)closedir(list); /* only read from */
	return found;
}

bool vt_prefix_read_venv_home(const char *prefix, char home[PATH_MAX])
{
	AUTO_CLOSE int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* It is anybody's file: a pipe must not keep us waiting. */
	AUTO_CLOSE int fd = openat(dir, "pyvenv.cfg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[PATH_MAX + 16];
	bool found = false;
	struct stat st;

	if (dir < 0 || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	FILE *file = fdopen(fd, "r");

	if (file == NULL)
		return false;
	(void)vt_fd_take(&fd); /* the file's now */
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, "home = %4095[^\r\n]", home) == 1 && home[0] == '/';
	(void)fclose(file); /* only read from */
	return found;
}
