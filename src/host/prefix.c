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
#include "base/file.h"
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
		if (vt_file_access(dir, names[i], F_OK) == 0)
			return true;
	return false;
}

bool vt_prefix_is_installation(const char *prefix)
{
	static const char *const signs[] = { "lib", "lib64", "libexec", "pyvenv.cfg" };
	AUTO_CLOSE int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && has_any(dir, signs, sizeof(signs) / sizeof(signs[0]));
}

static bool is_python(const char *name)
{
	return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* python3.12, pypy3.10: what the folder of its library is called as well. */
static bool is_versioned_python(const char *name)
{
	return is_python(name) && isdigit((unsigned char)name[strcspn(name, "0123456789")]);
}

/* Whether name is that of a program, or that with a version behind it: ruby, ruby3.2. */
static bool is_called(const char *name, const char *program)
{
	size_t len = strlen(program);

	return strncmp(name, program, len) == 0 &&
	       name[len + strspn(name + len, "0123456789.")] == '\0';
}

static bool is_folder(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Where Python looks for its library is where this file is, and so it is in every installation. */
static bool has_standard_library(int dir, const char *name)
{
	static const char *const libs[] = { "lib", "lib64" };
	char path[NAME_MAX + 16];
	struct stat st;

	for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/os.py", libs[i], name); /* fits */
		if (fstatat(dir, path, &st, 0) == 0)
			return true;
	}
	return false;
}

/* The folder of lib that only an interpreter of this name puts there. NULL: there is none. */
static const char *find_library(int dir, int lib, const char *name)
{
	static const struct {
		const char *program, *sign;
	} signs[] = {
		{ "node", "node_modules" }, { "nodejs", "node_modules" }, { "ruby", "ruby" },
		{ "perl", "perl5" },        { "perl", "site_perl" },
	};

	if (is_versioned_python(name))
		return is_folder(lib, name) && has_standard_library(dir, name) ? name : NULL;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (is_called(name, signs[i].program) && is_folder(lib, signs[i].sign))
			return signs[i].sign;
	return NULL;
}

/* The same, if the program is the one in bin. */
static const char *find_own_library(int dir, int lib, const struct vt_prefix_program *program)
{
	AUTO_CLOSE int bin = openat(dir, "bin", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (bin < 0 || fstatat(bin, program->real_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_dev != program->dev || st.st_ino != program->ino)
		return NULL;
	return find_library(dir, lib, program->real_name);
}

/* Takes lib. */
static bool list_python(int lib, char ret_name[NAME_MAX + 1])
{
	DIR *list = fdopendir(lib);
	const struct dirent *entry;
	bool found = false;

	if (list == NULL) {
		vt_fd_close(&lib);
		return false;
	}
	while (!found && (entry = readdir(list)) != NULL) {
		found = is_versioned_python(entry->d_name);
		if (found)
			(void)snprintf(ret_name, NAME_MAX + 1, "%s", entry->d_name); /* fits */
	}
	(void)closedir(list); /* only read from */
	return found;
}

static bool is_venv_of(int dir, int lib, const struct vt_prefix_program *program,
		       char ret_library[NAME_MAX + 1])
{
	struct stat st;

	if (!is_python(program->name) || !is_python(program->real_name) ||
	    fstatat(dir, "pyvenv.cfg", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	return list_python(openat(lib, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret_library);
}

static bool is_for_everyone(const struct stat *st)
{
	mode_t everyone = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

	return (st->st_mode & everyone) == everyone;
}

/* A folder or a file of the prefix itself; a link, only lib64 as a second name of lib. */
static size_t add_part(int dir, const char *name, mode_t kind, const char *library,
		       struct vt_prefix_part *part)
{
	char target[8], path[sizeof(part->closed)];
	struct stat st, inner;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode) && strcmp(name, "lib64") == 0) {
		if (readlinkat(dir, name, target, sizeof(target)) != 3 ||
		    memcmp(target, "lib", 3) != 0 ||
		    fstatat(dir, "lib", &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
	}
	if ((st.st_mode & S_IFMT) != kind)
		return 0;
	*part = (struct vt_prefix_part){ .name = name, .dev = st.st_dev, .ino = st.st_ino };
	(void)snprintf(path, sizeof(path), "%s/%s", name, library); /* fits */
	if (!is_for_everyone(&st))
		(void)snprintf(part->closed, sizeof(part->closed), "%s", name); /* fits */
	else if (kind == S_IFDIR && fstatat(dir, path, &inner, AT_SYMLINK_NOFOLLOW) == 0 &&
		 !is_for_everyone(&inner))
		memcpy(part->closed, path, sizeof(path));
	return 1;
}

size_t vt_prefix_find_parts(int dir, const struct vt_prefix_program *program,
			    struct vt_prefix_part parts[VT_PREFIX_PARTS])
{
	AUTO_CLOSE int lib = openat(dir, "lib", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char listed[NAME_MAX + 1];
	size_t count = 0;

	if (lib < 0)
		return 0;
	bool venv = is_venv_of(dir, lib, program, listed);
	const char *library = venv ? listed : find_own_library(dir, lib, program);

	if (library == NULL)
		return 0;
	count += add_part(dir, "lib", S_IFDIR, library, &parts[count]);
	count += add_part(dir, "lib64", S_IFDIR, library, &parts[count]);
	if (venv)
		count += add_part(dir, "pyvenv.cfg", S_IFREG, library, &parts[count]);
	return count;
}

bool vt_prefix_read_venv_home(const char *prefix, char home[PATH_MAX])
{
	enum { MOST_LINES = 256 };
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
	/* And one without an end neither. */
	for (int i = 0; !found && i < MOST_LINES && fgets(line, sizeof(line), file) != NULL; i++)
		found = sscanf(line, "home = %4095[^\r\n]", home) == 1 && home[0] == '/';
	(void)fclose(file); /* only read from */
	return found;
}
