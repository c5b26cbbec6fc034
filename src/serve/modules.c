/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/modules.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "watch/chain.h"

/* So many names take some 10 ms. */
enum { NAMES_MAX = 4096, DEEPEST = 24 };

struct looking {
	struct vt_str *found;
	unsigned names;
	bool beyond; /* there are more, or they cannot be told */
};

static void add_stamp(struct looking *l, const char *name, const struct stat *st)
{
	char stamp[VT_FILE_STAMP];

	vt_file_stamp(st, stamp);
	vt_str_addf(l->found, "%s %s\n", name, stamp);
}

/* Of what is not there, that it is not. */
static void add_path(struct looking *l, const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) < 0)
		st = (struct stat){ 0 };
	add_stamp(l, path, &st);
}

static bool is_module(const char *name)
{
	static const char *const ends[] = { ".py",   ".pyc",  ".so",  ".pth", ".zip",
					    ".egg",  ".js",   ".cjs", ".mjs", ".json",
					    ".node", ".wasm", ".ts",  ".mts", ".cts" };
	const char *end = strrchr(name, '.');

	for (size_t i = 0; end && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(end, ends[i]) == 0)
			return true;
	return false;
}

static void look_into(struct looking *l, int at, const char *name, unsigned depth);

static void look_at(struct looking *l, int dir_fd, const char *name, unsigned depth)
{
	struct stat st;

	l->beyond |= ++l->names > NAMES_MAX;
	/* Caches of what is there in source; and no module's name begins so. */
	if (l->beyond || *name == '.' || strcmp(name, "__pycache__") == 0 ||
	    fstatat(dir_fd, name, &st, 0) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		vt_str_addf(l->found, "%s/\n", name);
		look_into(l, dir_fd, name, depth + 1);
		vt_str_add(l->found, "..\n");
	} else if (is_module(name)) {
		add_stamp(l, name, &st);
	}
}

/* npm writes that file whenever it installs something. */
static void look_at_packages(struct looking *l, int fd)
{
	struct stat st = { 0 };

	if (fstat(fd, &st) == 0)
		add_stamp(l, "", &st);
	if (fstatat(fd, ".package-lock.json", &st, 0) == 0)
		add_stamp(l, "", &st);
}

static void look_into(struct looking *l, int at, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	l->beyond |= depth > DEEPEST; /* a link to a folder around it goes round */
	if (fd < 0 || l->beyond)
		return;
	if (strcmp(name, "node_modules") == 0) {
		look_at_packages(l, fd);
		return;
	}
	DIR *dir = fdopendir(fd);

	if (!dir) {
		l->beyond = true;
		return;
	}
	int own = vt_fd_take(&fd);

	for (const struct dirent *entry; !l->beyond && (entry = readdir(dir));)
		look_at(l, own, entry->d_name, depth);
	(void)closedir(dir); /* only read from */
}

/* What the cell calls path, on the host. */
static void look_below(struct looking *l, const struct vt_policy *policy, const char *path)
{
	const struct vt_grants *grants[] = { &policy->files.read, &policy->files.write };
	const struct vt_grant *around = NULL;
	char host[PATH_MAX];

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < grants[i]->count; j++) {
			const struct vt_grant *grant = &grants[i]->items[j];

			if (vt_path_lies_in(path, grant->to) &&
			    (!around || strlen(grant->to) >= strlen(around->to)))
				around = grant;
		}
	const char *rest = around ? path + strlen(around->to) : path;

	if (snprintf(host, sizeof(host), "%s/%s", around ? around->from : "", rest) >=
	    (int)sizeof(host)) {
		l->beyond = true;
		return;
	}
	vt_str_addf(l->found, "%s\n", host);
	look_into(l, AT_FDCWD, host, 0);
}

/* A module that is named by its file: what it loads lies around it. */
static void look_around(struct looking *l, const struct vt_policy *policy, const char *name)
{
	char folder[PATH_MAX];

	if (strncmp(name, "file://", 7) == 0)
		name += 7;
	const char *slash = strrchr(name, '/');

	if (*name != '/' || snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name) >=
				    (int)sizeof(folder))
		return;
	look_below(l, policy, *folder ? folder : "/");
}

/* lib/python3.11/site-packages, and Debian's dist-packages: installing changes these folders. */
static void look_at_library(struct looking *l, const char *library)
{
	static const char *const names[] = { "site-packages", "dist-packages" };
	DIR *dir = opendir(library);
	char path[PATH_MAX];

	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		for (size_t i = 0; strncmp(entry->d_name, "python3", 7) == 0 && i < 2; i++)
			if (snprintf(path, sizeof(path), "%s/%s/%s", library, entry->d_name,
				     names[i]) < (int)sizeof(path) &&
			    access(path, F_OK) == 0)
				add_path(l, path);
	if (dir)
		(void)closedir(dir); /* only read from */
}

/* Of prefix/bin/python3. */
static void look_at_prefix(struct looking *l, const char *program)
{
	static const char *const libraries[] = { "lib", "lib64" };
	const char *bin = strrchr(program, '/');
	char path[PATH_MAX];

	while (bin && bin > program && *--bin != '/')
		;
	for (size_t i = 0; bin && i < 2; i++)
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(bin - program), program,
			     libraries[i]) < (int)sizeof(path))
			look_at_library(l, path);
}

void vt_modules_add(struct vt_str *key, const struct vt_interpreter *interpreter, const char *setup,
		    const char *program, const struct vt_policy *policy)
{
	struct vt_str found;
	struct looking l = { .found = &found };
	AUTO_JSON json_t *root = NULL;
	char hash[VT_CHAIN_HEX + 1], real[PATH_MAX];
	const json_t *one;
	struct vt_err err;
	uint64_t number;
	size_t i;

	vt_str_init(&found);
	/* What is wrong with it, the zygote tells. */
	(void)vt_json_load_text(setup, strlen(setup), "setup", &root, &err);
	json_array_foreach(json_object_get(root, "path"), i, one) if (json_is_string(one))
		look_below(&l, policy, json_string_value(one));
	json_array_foreach(json_object_get(root, "preload"), i, one) if (json_is_string(one))
		look_around(&l, policy, json_string_value(one));
	if (interpreter == &vt_interpreters[VT_PYTHON]) {
		look_at_prefix(&l, program);
		look_at_prefix(&l, "/usr/bin/python3");
		look_at_prefix(&l, "/usr/local/bin/python3");
		if (realpath(program, real))
			look_at_prefix(&l, real);
	}
	if (l.beyond || !vt_str_ok(&found)) {
		key->failed |= getrandom(&number, sizeof(number), 0) != sizeof(number);
		vt_str_addf(key, "alone %016llx\n", (unsigned long long)number);
	} else {
		vt_chain_hash(found.text ? found.text : "", found.len, hash);
		vt_str_addf(key, "modules %s\n", hash);
	}
	vt_str_done(&found);
}
