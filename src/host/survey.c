/* SPDX-License-Identifier: Apache-2.0 */
#include "host/survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "base/file.h"
#include "uapi/dirent.h"

int vt_survey_entries(const struct vt_host *host, const char *path, uint64_t dev,
		      void (*each)(void *arg, const char *name, unsigned char type), void *arg)
{
	_Alignas(struct linux_dirent64) char buffer[32 << 10];
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	long got;

	(void)host;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != dev)
		return -EXDEV;
	while ((got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
		for (long i = 0; i < got;) {
			const struct linux_dirent64 *entry =
				(const struct linux_dirent64 *)(buffer + i);

			/* Not every file system says what they are. */
			unsigned char type = entry->type;

			if (type == DT_UNKNOWN &&
			    fstatat(fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				type = (unsigned char)IFTODT(st.st_mode);
			each(arg, entry->name, type);
			i += entry->size;
		}
	}
	return got < 0 ? -errno : 0;
}

ssize_t vt_survey_read(const struct vt_host *host, const char *path, char *buf, size_t size)
{
	AUTO_CLOSE int at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[VT_FDLINK];
	struct stat st;
	size_t have = 0;
	ssize_t len = 1;

	(void)host;
	if (at < 0 || fstat(at, &st) < 0)
		return -errno;
	/*
	 * Not even opened: to a device or a pipe that is an event, and a call may have chosen the
	 * path. Files that the kernel makes as they are read, which may be an event too, are empty.
	 */
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size == 0)
		return 0;
	(void)vt_fdlink(link, at);
	AUTO_CLOSE int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (len > 0 && have < size) {
		len = read(fd, buf + have, size - have);
		if (len < 0 && errno != EINTR)
			return -errno;
		have += len > 0 ? (size_t)len : 0;
		len = len < 0 ? 1 : len;
	}
	return have < size ? (ssize_t)have : -EFBIG;
}
