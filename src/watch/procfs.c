/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

void vt_proc_add(int64_t *sum, int64_t more)
{
	if (more > 0 && __builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

void vt_proc_add_scaled(int64_t *sum, int64_t count, int64_t unit)
{
	int64_t more;

	if (count > 0)
		vt_proc_add(sum, __builtin_mul_overflow(count, unit, &more) ? INT64_MAX : more);
}

bool vt_proc_vanished(int num)
{
	return num == ENOENT || num == ESRCH;
}

bool vt_proc_refused(int num)
{
	return num == EACCES || num == EPERM;
}

/* 0: it was reaped, or is not to be seen from here; -1: nobody can tell. */
static int64_t pid_of(int pidfd)
{
	char path[64], text[1024];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd); /* fits */
	if (vt_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	return vt_proc_number_of(text, "Pid");
}

bool vt_proc_is(int pidfd, pid_t pid)
{
	AUTO_CLOSE int other = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	int64_t shown = other < 0 ? 0 : pid_of(other);

	return shown > 0 && shown == pid_of(pidfd);
}

bool vt_proc_is_exiting(int pidfd)
{
	enum { FLAGS = 9, EXITING = 4 }; /* a field of `stat`; the kernel's PF_EXITING */
	char path[64], text[1024];

	int64_t pid = pid_of(pidfd);

	if (pid <= 0)
		return pid == 0; /* it says -1, and was reaped */
	(void)snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid); /* fits */
	if (vt_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	return vt_proc_stat_number(text, FLAGS) & EXITING;
}

int64_t vt_proc_number_at(const char *text, unsigned n)
{
	while (n-- > 0) {
		text += strspn(text, " \t");
		text += strcspn(text, " \t\n");
	}

	long long number = strtoll(text, NULL, 10);
	return number > 0 ? number : 0;
}

/* The second is a name in parentheses, which may have these, and spaces, in it. */
int64_t vt_proc_stat_number(const char *text, unsigned field)
{
	const char *name_end = strrchr(text, ')');

	return name_end ? vt_proc_number_at(name_end + 1, field - 3) : 0;
}

int64_t vt_proc_number_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return vt_proc_number_at(line + len + 1, 0);
	}
	return -1;
}

int vt_proc_walk(int at, const char *folder, unsigned *left, vt_proc_visit *visit, void *arg)
{
	AUTO_CLOSE int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	int r = 0;

	if (fd < 0)
		return -errno;

	DIR *stream = fdopendir(fd);
	if (!stream)
		return -errno;
	(void)vt_fd_take(&fd); /* the stream's from here on */
	while (r == 0) {
		errno = 0;
		entry = readdir(stream);
		if (!entry) {
			r = -errno;
			break;
		}
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (*left == 0) {
			r = -E2BIG;
			break;
		}
		(*left)--;
		r = visit(dirfd(stream), entry->d_name, arg);
	}
	(void)closedir(stream); /* nothing was written */
	return r;
}
