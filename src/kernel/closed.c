/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/closed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "uapi/fchmodat2.h"

/* By the descriptor, which is not for reading, as fchmod() wants it. */
static int open_up(int fd)
{
	char link[VT_FDLINK];

	(void)vt_fdlink(link, fd);
	if (chmod(link, 0700) == 0)
		return 0;
	/* No /proc. */
	return sys_fchmodat2(fd, "", 0700, AT_EMPTY_PATH);
}

int vt_closed_open(int parent, const char *name)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	AUTO_CLOSE int at = openat(parent, name, O_PATH | flags);
	struct stat st, around;

	if (at < 0 || fstat(at, &st) < 0 || fstat(parent, &around) < 0)
		return -1;
	if (st.st_dev != around.st_dev) {
		errno = EXDEV;
		return -1;
	}
	if ((st.st_mode & S_IRWXU) != S_IRWXU && open_up(at) < 0)
		return -1;
	return openat(at, ".", O_RDONLY | flags);
}
