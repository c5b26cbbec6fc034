/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

static FILE *open_list(int proc_fd, const char *name)
{
	int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file) {
		int num = errno;

		vt_fd_close(&fd);
		errno = num;
	}
	return file;
}

/* Returns r; or a failure, where not all was read that had to be. */
static int close_list(FILE *file, char *line, bool whole, int r)
{
	if (whole && !feof(file))
		r = -EIO;
	free(line);
	(void)fclose(file); /* it was only read */
	return r;
}

/* "7f00-7f01 rw-s 00000000 00:01 1024 /a name", and of no other line of the two files true. */
static bool read_head(const char *line, struct vt_shared *ret_piece, bool *ret_shared)
{
	unsigned long from, to;
	char modes[5];
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u %n", &from, &to, modes, &at) < 3 || at == 0)
		return false;
	*ret_piece = (struct vt_shared){ .from = from, .to = to };
	(void)snprintf(ret_piece->name, sizeof(ret_piece->name), "%.*s",
		       (int)strcspn(line + at, "\n"), line + at); /* cut, at worst */
	*ret_shared = modes[3] == 's';
	return true;
}

/* This file costs little, and mostly says that there is nothing to look at in the other. */
static int has_any(int proc_fd)
{
	FILE *file = open_list(proc_fd, "maps");
	struct vt_shared piece;
	char *line = NULL;
	size_t size = 0;
	bool any = false, known = true;

	if (!file)
		return -errno;
	while (known && !any && getline(&line, &size, file) >= 0)
		known = read_head(line, &piece, &any);
	return close_list(file, line, known && !any, known ? any : -EBADMSG);
}

/* "VmFlags: rd mr mw me sh ". Of a file that was opened for reading the kernel clears "sh". */
static bool is_meant(const char *line)
{
	return strstr(line, " sh ") && strstr(line, " mw ") && !strstr(line, " dc ");
}

int vt_shared_each(int proc_fd, int (*act)(void *user, const struct vt_shared *piece), void *user)
{
	int r = has_any(proc_fd), count = 0;

	if (r <= 0)
		return r;
	FILE *file = open_list(proc_fd, "smaps");
	struct vt_shared piece;
	char *line = NULL;
	size_t size = 0;
	bool shared = false, owed = false; /* the flags of what is shared */

	if (!file)
		return -errno;
	for (r = 0; r >= 0 && getline(&line, &size, file) >= 0;) {
		if (strncmp(line, "VmFlags:", 8) == 0) {
			if (owed && is_meant(line)) {
				count++;
				r = act(user, &piece);
			}
			owed = false;
		} else if (read_head(line, &piece, &shared)) {
			r = owed ? -EBADMSG : 0;
			owed = shared;
		}
	}
	return close_list(file, line, r >= 0, r < 0 ? r : owed ? -EBADMSG : count);
}
