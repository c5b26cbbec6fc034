/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

struct measuring {
	struct vt_folder_size size;
	int64_t most, until;
	unsigned entries;
};

static bool is_enough(const struct measuring *m)
{
	return m->size.bytes > m->most || m->size.odd == VT_FOLDER_DEEP ||
	       m->size.odd == VT_FOLDER_MANY || m->size.odd == VT_FOLDER_SLOW;
}

/* What is removed meanwhile is no longer there, and what cannot be seen into is not nothing. */
static int judge(struct measuring *m, int num)
{
	if (num == EACCES)
		m->size.odd = VT_FOLDER_CLOSED;
	return num == ENOENT || num == ENOTDIR || num == ELOOP || num == EACCES ? 0 : -num;
}

static int measure(struct measuring *m, int at, const char *name, unsigned depth);

static int measure_entry(struct measuring *m, int at, const char *name, unsigned depth)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return judge(m, errno);
	m->size.bytes += (int64_t)st.st_blocks * 512;
	if (++m->entries > VT_FOLDER_MAX_ENTRIES)
		m->size.odd = VT_FOLDER_MANY;
	else if (depth > VT_FOLDER_MAX_DEPTH)
		m->size.odd = VT_FOLDER_DEEP;
	else if (m->entries % 256 == 0 && vt_clock_now() > m->until)
		m->size.odd = VT_FOLDER_SLOW;
	return S_ISDIR(st.st_mode) && !is_enough(m) ? measure(m, at, name, depth + 1) : 0;
}

static int measure(struct measuring *m, int at, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!stream)
		return judge(m, errno);
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

int vt_folder_measure(int fd, int64_t most, struct vt_folder_size *ret_size)
{
	struct measuring m = { .most = most, .until = vt_clock_now() + VT_NS_PER_S };
	int r = measure(&m, fd, ".", 0);

	if (r == 0)
		*ret_size = m.size;
	return r;
}
