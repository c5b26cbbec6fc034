/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { MAX_DEPTH = 64, MAX_ENTRIES = 200000 };

struct measuring {
	int64_t bytes, most;
	unsigned entries;
};

static bool is_enough(const struct measuring *m)
{
	return m->bytes > m->most;
}

static int measure(struct measuring *m, int at, const char *name, unsigned depth);

static int measure_entry(struct measuring *m, int at, const char *name, unsigned depth)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	m->bytes += (int64_t)st.st_blocks * 512;
	if (++m->entries > MAX_ENTRIES || depth > MAX_DEPTH)
		m->bytes = m->most + 1;
	return S_ISDIR(st.st_mode) && !is_enough(m) ? measure(m, at, name, depth + 1) : 0;
}

/* What is removed meanwhile is no longer there. What cannot be seen into is an error, not nothing.
 */
static int measure(struct measuring *m, int at, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!stream)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	int dir = vt_fd_take(&fd); /* the stream's from here on */

	while (r == 0 && !is_enough(m)) {
		errno = 0;
		entry = readdir(stream);
		if (!entry) {
			r = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = measure_entry(m, dir, entry->d_name, depth);
	}
	(void)closedir(stream); /* only read from */
	return r;
}

int vt_folder_measure(int fd, int64_t most, int64_t *ret_bytes)
{
	struct measuring m = { .most = most };
	int r = measure(&m, fd, ".", 0);

	if (r == 0)
		*ret_bytes = m.bytes;
	return r;
}
