/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "value.h"

enum { SOURCES = 16, SOURCE_MAX = 1 << 20 };

static struct {
	struct source {
		char name[NAME_MAX + 1];
		char *text;
		size_t len;
	} list[SOURCES];
	size_t count;
} sources;

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	return len > end && strcmp(name + len - end, ending) == 0;
}

static int read_source(int folder, const char *name, struct source *ret_source)
{
	AUTO_CLOSE int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX)
		return -EFBIG;
	char *text = malloc((size_t)st.st_size + 1);

	if (!text)
		return -ENOMEM;
	ssize_t got = read(fd, text, (size_t)st.st_size);

	if (got != st.st_size) {
		free(text);
		return -EIO;
	}
	(void)snprintf(ret_source->name, sizeof(ret_source->name), "%s", name); /* it is one */
	ret_source->text = text;
	ret_source->len = (size_t)got;
	return 0;
}

int vt_node_source_read_all(const char *library)
{
	char folder[PATH_MAX];
	const struct dirent *entry;
	const char *slash = strrchr(library, '/');
	int r = 0;

	if (!slash || slash - library >= PATH_MAX)
		return -EINVAL;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - library), library); /* fits */
	DIR *dir = opendir(folder);

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (!has_ending(entry->d_name, ".cjs") && !has_ending(entry->d_name, ".mjs"))
			continue;
		r = sources.count == SOURCES
			    ? -E2BIG
			    : read_source(dirfd(dir), entry->d_name, &sources.list[sources.count]);
		sources.count += r == 0;
	}
	(void)closedir(dir); /* it was only read */
	return r;
}

napi_value vt_node_source_tell_all(napi_env env, napi_callback_info info)
{
	napi_value all;

	(void)info;
	if (napi_create_object(env, &all) != napi_ok)
		return NULL;
	for (size_t i = 0; i < sources.count; i++)
		if (!vt_value_set(env, all, sources.list[i].name,
				  vt_value_text(env, sources.list[i].text, sources.list[i].len)))
			return vt_value_throw(env, "a script is no UTF-8");
	return all;
}
