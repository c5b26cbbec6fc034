/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

ssize_t vt_file_read(int dir, const char *name, char *buf, size_t size)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t got = read(fd, buf + len, size - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

bool vt_file_is_same(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

void vt_file_stamp(const struct stat *st, char text[static VT_FILE_STAMP])
{
	(void)snprintf(text, VT_FILE_STAMP, "%llx:%llx:%llx:%lld.%09ld",
		       (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
		       (unsigned long long)st->st_size, (long long)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec); /* fits */
}
