/* SPDX-License-Identifier: Apache-2.0 */
#include "host/trust.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/user.h"

enum { MAX_LINKS = 40 }; /* on one way; the kernel's own bound */

bool vt_trust_is_shown(const struct vt_givens *givens, const char *path)
{
	for (size_t i = 0; i < givens->count; i++)
		if (givens->items[i].in_place && vt_path_lies_in(path, givens->items[i].path))
			return true;
	return false;
}

static bool lies_in(const struct vt_given *given, const char *real)
{
	char folder[PATH_MAX];

	return realpath(given->path, folder) != NULL && vt_path_lies_in(real, folder);
}

bool vt_trust_is_given(const struct vt_givens *givens, const char *real)
{
	for (size_t i = 0; i < givens->count; i++)
		if (lies_in(&givens->items[i], real))
			return true;
	return false;
}

/* The mode of a link says nothing: whoever may write to its folder may replace it. */
static bool is_own(const struct stat *st)
{
	bool others = (st->st_mode & S_IWOTH) != 0 ||
		      ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 && st->st_gid != getegid());

	return (st->st_uid == 0 || st->st_uid == geteuid()) && vt_user_is_known(st->st_uid) &&
	       (S_ISLNK(st->st_mode) || !others);
}

static bool is_unwritten(const struct vt_givens *givens, const char *real, const struct stat *st)
{
	(void)st;
	for (size_t i = 0; i < givens->count; i++)
		if (givens->items[i].writable && lies_in(&givens->items[i], real))
			return false;
	return true;
}

bool vt_trust_file(const struct vt_givens *givens, const char *real, const struct stat *st)
{
	char folder[PATH_MAX];
	struct stat around;
	const char *slash = strrchr(real, '/');
	int len = slash == real ? 1 : (int)(slash - real);

	(void)snprintf(folder, sizeof(folder), "%.*s", len, real); /* fits */
	return is_own(st) && stat(folder, &around) == 0 && is_own(&around) &&
	       is_unwritten(givens, real, st);
}

/* Puts what the link at real, whose name is its last len bytes, leads to in front of rest. */
static bool follow(char real[PATH_MAX], size_t len, char rest[PATH_MAX])
{
	char target[PATH_MAX], whole[PATH_MAX];
	ssize_t n = readlink(real, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	int total = snprintf(whole, sizeof(whole), "%s/%s", target, rest);

	if (total < 0 || (size_t)total >= sizeof(whole))
		return false;
	memcpy(rest, whole, (size_t)total + 1);
	real[target[0] == '/' ? 0 : strlen(real) - len] = '\0';
	return true;
}

typedef bool is_good(const struct vt_givens *givens, const char *real, const struct stat *st);

static bool walk(const struct vt_givens *givens, const char *path, is_good *is_good_link,
		 char ret_real[PATH_MAX], struct stat *ret_st)
{
	char real[PATH_MAX] = "", rest[PATH_MAX];
	struct stat st = { 0 };
	size_t used = strlen(path);

	if (path[0] != '/' || used >= sizeof(rest))
		return false;
	memcpy(rest, path, used + 1);
	for (int links = 0; rest[strspn(rest, "/")] != '\0';) {
		const char *part = rest + strspn(rest, "/");
		size_t len = strcspn(part, "/"), at = strlen(real);

		if (at + 1 + len >= sizeof(real))
			return false;
		if (len == 2 && strncmp(part, "..", 2) == 0) {
			if (at > 0)
				*strrchr(real, '/') = '\0';
		} else if (len != 1 || part[0] != '.') {
			(void)snprintf(real + at, sizeof(real) - at, "/%.*s", (int)len, part);
		}
		memmove(rest, part + len, strlen(part + len) + 1);
		if (lstat(real[0] != '\0' ? real : "/", &st) < 0)
			return false;
		if (S_ISLNK(st.st_mode) &&
		    (++links > MAX_LINKS || !is_good_link(givens, real, &st) ||
		     !follow(real, len + 1, rest)))
			return false;
	}
	memcpy(ret_real, real, sizeof(real));
	*ret_st = st;
	return true;
}

bool vt_trust_links(const struct vt_givens *givens, const char *path, char ret_real[PATH_MAX],
		    struct stat *ret_st)
{
	char real[PATH_MAX];
	struct stat st;

	if (!walk(givens, path, vt_trust_file, real, &st) || !S_ISREG(st.st_mode))
		return false;
	memcpy(ret_real, real, sizeof(real));
	*ret_st = st;
	return true;
}

bool vt_trust_unwritten(const struct vt_givens *givens, const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	return walk(givens, path, is_unwritten, real, &st) && is_unwritten(givens, real, &st);
}

bool vt_trust_is_program(int fd, const struct stat *st, const char **ret_why)
{
	const mode_t everyone = S_IROTH | S_IXOTH;
	char head[SELFMAG];

	*ret_why = "is not for everyone to read and execute";
	if (!S_ISREG(st->st_mode) || (st->st_mode & everyone) != everyone)
		return false;
	*ret_why = "is no native program";
	return pread(fd, head, sizeof(head), 0) == SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0;
}

/* Part by part: openat2, which knows how to, is missing where vitro runs in a cell. */
int vt_trust_open(int dir, const char *path, int flags)
{
	const int way = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	AUTO_CLOSE int at = path[0] == '/' ? open("/", way) : openat(dir, ".", way);
	char part[NAME_MAX + 1];
	struct stat st;

	while (at >= 0) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		bool last = path[len + strspn(path + len, "/")] == '\0';

		if (len > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, path); /* fits */
		int next = openat(at, len > 0 ? part : ".",
				  last ? flags | O_NOFOLLOW | O_CLOEXEC : way);

		vt_fd_close(&at);
		at = next;
		path += len;
		if (last)
			break;
	}
	/* O_PATH alone opens a link itself. */
	if (at >= 0 && (fstat(at, &st) < 0 || S_ISLNK(st.st_mode))) {
		errno = ELOOP;
		return -1;
	}
	return vt_fd_take(&at);
}
