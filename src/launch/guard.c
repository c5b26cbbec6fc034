/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/fd.h"
#include "base/fdlink.h"
#include "base/path.h"
#include "kernel/beneath.h"
#include "kernel/mount.h"
#include "uapi/dirent.h"

enum {
	CALL_MOST = 40,   /* bytes of a call's name that are in a file's */
	TREES_MOST = 256, /* new work trees that are judged at once */
	TRIES = 16,       /* names for one that is set apart */
};

static const char mark[] = ".vitro-";

/* A path in a folder, through no link. */
static int open_in(int folder_fd, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, folder_fd, path, &how, sizeof(how));
}

/* ---- mounts -------------------------------------------------------------------------------- */

/* What is not there, or is a link, is looked at afterwards; what is closed, is so to the cell too.
 */
static bool is_passed_over(int num)
{
	return num == ENOENT || num == ENOTDIR || num == ELOOP || num == EACCES;
}

static int bind_guard(const struct vt_guard *guard, int folder_fd, struct vt_err *err)
{
	const bool name = guard->kind == VT_GUARD_NAME;
	AUTO_CLOSE int fd = guard->closed ? -1
					  : open_in(folder_fd, guard->path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (guard->closed)
		return 0;
	if (fd < 0)
		return is_passed_over(errno) ? 0
					     : vt_fail_at(err, VT_STEP_MOUNTS, errno,
							  "open what is protected:", guard->path);
	if (fstat(fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "look at", guard->path);
	if (!name && !S_ISDIR(st.st_mode))
		return 0;
	int r = vt_mount_on_itself(fd, name, guard->path, err);

	/* Not every kernel mounts on a link: then it is looked at afterwards. */
	return S_ISLNK(st.st_mode) && r < 0 ? 0 : r;
}

int vt_guard_bind(const struct vt_build *build, int root_fd, struct vt_err *err)
{
	AUTO_CLOSE int folder = vt_beneath_open(root_fd, build->to);
	int r = 0;

	if (folder < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the grant", build->to);
	for (size_t i = 0; r == 0 && i < build->guard_count; i++)
		r = bind_guard(&build->guards[i], folder, err);
	return r;
}

/* ---- looking ------------------------------------------------------------------------------- */

/* The folder around one name after the other, of which many have the same. */
struct place {
	int root_fd;
	int fd;  /* -1: it cannot be had */
	int num; /* then: why */
	const char *path;
	size_t len;
};

/* What could not be seen, and why. */
static struct vt_inode make_unknown(int num)
{
	return (struct vt_inode){ .dev = (uint64_t)num, .ino = UINT64_MAX };
}

static bool is_unknown(const struct vt_inode *inode)
{
	return inode->ino == UINT64_MAX;
}

/* By its descriptor. Somebody else's stays as it is: the kernel says no. */
static bool open_up(int folder_fd)
{
	char link[VT_FDLINK];
	struct stat st;

	(void)vt_fdlink(link, folder_fd);
	return fstat(folder_fd, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_mode & S_IRWXU) != S_IRWXU &&
	       chmod(link, (st.st_mode & 07777) | S_IRWXU) == 0;
}

/* A folder in one that a call may have closed. */
static int open_folder_in(int around_fd, const char *name)
{
	int fd = open_in(around_fd, name, O_PATH | O_DIRECTORY);

	if (fd < 0 && errno == EACCES && open_up(around_fd))
		fd = open_in(around_fd, name, O_PATH | O_DIRECTORY);
	return fd;
}

/* The folder itself, which it takes no right to search: "." in it would. */
static int open_itself(int folder_fd)
{
	return fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
}

/* Part by part, since each may be closed. */
static int open_slowly(int root_fd, const char *path, size_t len)
{
	AUTO_CLOSE int fd = open_itself(root_fd);
	char part[NAME_MAX + 1];

	while (fd >= 0 && len) {
		size_t size = strcspn(path, "/");

		size = size < len ? size : len;
		if (size > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, size);
		part[size] = '\0';
		int next = open_folder_in(fd, part), num = errno;

		vt_fd_close(&fd);
		fd = next;
		errno = num;
		path += size;
		len -= size;
		if (len) {
			path++;
			len--;
		}
	}
	return vt_fd_take(&fd);
}

static void place_done(struct place *place)
{
	vt_fd_close(&place->fd);
}

#define AUTO_PLACE __attribute__((cleanup(place_done)))

/* Returns the last part of a path, and has the folder around it open, or not. */
static const char *go_to(struct place *place, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	char folder[PATH_MAX];

	if (place->path && place->len == len && strncmp(place->path, path, len) == 0)
		return slash ? slash + 1 : path;
	vt_fd_close(&place->fd);
	place->path = path;
	place->len = len;
	place->num = ENAMETOOLONG;
	if (len < sizeof(folder)) {
		memcpy(folder, path, len);
		folder[len] = '\0';
		place->fd = len ? open_in(place->root_fd, folder, O_PATH | O_DIRECTORY)
				: open_itself(place->root_fd);
		if (place->fd < 0 && errno == EACCES)
			place->fd = open_slowly(place->root_fd, path, len);
		place->num = errno;
	}
	return slash ? slash + 1 : path;
}

/* What is at a name, itself and not where it leads: ino 0 is nothing. */
static struct vt_inode see(const struct place *place, const char *name, struct statx *ret_st)
{
	const unsigned wanted = STATX_INO | STATX_TYPE;
	int r = place->fd < 0 ? -1 : statx(place->fd, name, AT_SYMLINK_NOFOLLOW, wanted, ret_st);
	int num = place->fd < 0 ? place->num : errno;

	if (r < 0 && num == EACCES && place->fd >= 0 && open_up(place->fd)) {
		r = statx(place->fd, name, AT_SYMLINK_NOFOLLOW, wanted, ret_st);
		num = errno;
	}
	if (r < 0)
		return num == ENOENT || num == ENOTDIR ? (struct vt_inode){ 0, 0 }
						       : make_unknown(num);
	return (struct vt_inode){ makedev(ret_st->stx_dev_major, ret_st->stx_dev_minor),
				  ret_st->stx_ino };
}

void vt_guard_note(const struct vt_build *build, int folder_fd, struct vt_inode *ret_seen)
{
	AUTO_PLACE struct place place = { .root_fd = folder_fd, .fd = -1 };
	struct statx st;

	for (size_t i = 0; i < build->guard_count; i++) {
		const char *name = go_to(&place, build->guards[i].path);

		ret_seen[i] = see(&place, name, &st);
	}
}

bool vt_guard_stands(const struct vt_build *build, int folder_fd, const struct vt_inode *seen)
{
	AUTO_PLACE struct place place = { .root_fd = folder_fd, .fd = -1 };

	for (size_t i = 0; i < build->guard_count; i++) {
		struct statx st = { .stx_ino = 0 };
		const char *name = go_to(&place, build->guards[i].path);
		struct vt_inode now = see(&place, name, &st);

		if (now.dev != seen[i].dev || now.ino != seen[i].ino)
			return false;
		/* A name that went and came back is the same file, and nothing is mounted on it. */
		if (now.ino && !is_unknown(&now) && !S_ISLNK(st.stx_mode) &&
		    !build->guards[i].closed && (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
		    !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
			return false;
	}
	return true;
}

/* ---- setting apart ------------------------------------------------------------------------- */

struct judging {
	const struct vt_build *build;
	const struct vt_guard_teller *teller;
	char call[CALL_MOST + 1];
};

static void take_call(struct judging *j, const char *call)
{
	size_t len = 0;

	for (; *call && len < CALL_MOST; call++, len++) {
		bool plain = (*call >= 'a' && *call <= 'z') || (*call >= 'A' && *call <= 'Z') ||
			     (*call >= '0' && *call <= '9') || *call == '-';

		j->call[len] = plain ? *call : '_';
	}
	j->call[len] = '\0';
}

/* NAME.vitro-CALL, and from the second try on a number behind it that no call can have guessed. */
static void make_name(const struct judging *j, const char *name, unsigned number,
		      char ret_name[NAME_MAX + 1])
{
	char digits[VT_DECIMAL];
	size_t digit_count = number ? vt_decimal(digits, number) : 0;
	size_t tail = sizeof(mark) - 1 + strlen(j->call) + (number ? 1 + digit_count : 0);
	size_t len = strlen(name);
	char *at = ret_name;

	len = len > NAME_MAX - tail ? NAME_MAX - tail : len;
	at = (char *)memcpy(at, name, len) + len;
	at = (char *)memcpy(at, mark, sizeof(mark) - 1) + sizeof(mark) - 1;
	at = (char *)memcpy(at, j->call, strlen(j->call)) + strlen(j->call);
	if (number) {
		*at++ = '-';
		at = (char *)memcpy(at, digits, digit_count) + digit_count;
	}
	*at = '\0';
}

/* Not over anything. A file system that cannot say so is asked first. 0 or an errno. */
static int rename_in(int folder_fd, const char *name, const char *to)
{
	struct stat st;

	if (syscall(SYS_renameat2, folder_fd, name, folder_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	if (fstatat(folder_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return EEXIST;
	return renameat(folder_fd, name, folder_fd, to) == 0 ? 0 : errno;
}

static void set_apart(const struct judging *j, int folder_fd, const char *name, const char *path)
{
	char to[NAME_MAX + 1];
	bool opened = false;
	int num = EEXIST;

	for (unsigned tries = 0; num && tries < TRIES; tries++) {
		uint32_t number = 0;

		if (tries && (syscall(SYS_getrandom, &number, sizeof(number), 0) < 0 || !number))
			number = tries;
		make_name(j, name, number, to);
		num = rename_in(folder_fd, name, to);
		if ((num == EACCES || num == EPERM) && !opened && open_up(folder_fd)) {
			opened = true;
			num = rename_in(folder_fd, name, to);
		}
		if (num && num != EEXIST)
			break;
	}
	if (num != ENOENT) /* else it went by itself */
		j->teller->tell(j->teller->user, num ? VT_GUARD_STUCK : VT_GUARD_APART, path,
				num ? NULL : to, num);
}

/* ---- git's work trees ---------------------------------------------------------------------- */

/* A line of a file that git makes. -1: it is no such file. */
static ssize_t read_line(int folder_fd, const char *name, char *buf, size_t size)
{
	AUTO_CLOSE int fd = open_in(folder_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	ssize_t len = read(fd, buf, size - 1);

	if (len <= 0 || len == (ssize_t)size - 1)
		return -1;
	len -= buf[len - 1] == '\n';
	buf[len] = '\0';
	return strlen(buf) == (size_t)len ? len : -1;
}

/* Whether it leads into the repository that it is in: that is all which git makes of it. */
static bool is_plain(const struct judging *j, int tree_fd, const char *name)
{
	char text[PATH_MAX] = "";
	const char *inside = text + 1;

	if (strcmp(name, "commondir") == 0)
		return read_line(tree_fd, name, text, sizeof(text)) > 0 &&
		       strcmp(text, "../..") == 0;
	if (strcmp(name, "gitdir") != 0 || read_line(tree_fd, name, text, sizeof(text)) < 0 ||
	    strstr(text, "/../"))
		return strcmp(name, "gitdir") == 0 && strncmp(text, "../", 3) == 0;
	return *text == '/' &&
	       (vt_path_lies_in(inside, j->build->to) || vt_path_lies_in(text, j->build->from));
}

static void judge_tree(const struct judging *j, int trees_fd, const char *trees, const char *tree)
{
	static const char *const names[] = { "commondir", "config", "config.worktree", "gitdir",
					     "hooks" };
	char path[PATH_MAX];
	struct place place = { .fd = open_folder_in(trees_fd, tree) };
	int num = errno;
	size_t len = strlen(trees), size = strlen(tree);
	struct vt_inode now;
	struct statx st;

	/* A link is no work tree, and a file none either. */
	if (place.fd < 0 && num != ENOENT && num != ENOTDIR && num != ELOOP)
		j->teller->tell(j->teller->user, VT_GUARD_UNSEEN, trees, NULL, num);
	for (size_t i = 0; place.fd >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		size_t rest = strlen(names[i]);

		now = see(&place, names[i], &st);
		if (len + size + rest + 3 > sizeof(path))
			now = make_unknown(ENAMETOOLONG);
		if (is_unknown(&now))
			j->teller->tell(j->teller->user, VT_GUARD_UNSEEN, trees, NULL,
					(int)now.dev);
		if (!now.ino || is_unknown(&now) || is_plain(j, place.fd, names[i]))
			continue;
		memcpy(path, trees, len);
		path[len] = '/';
		memcpy(path + len + 1, tree, size);
		path[len + 1 + size] = '/';
		memcpy(path + len + size + 2, names[i], rest + 1);
		set_apart(j, place.fd, names[i], path);
	}
	place_done(&place);
}

/* Those that are guarded were there before. */
static bool is_known(const struct vt_build *build, const char *trees, const char *tree)
{
	size_t len = strlen(trees), size = strlen(tree);

	for (size_t i = 0; i < build->guard_count; i++) {
		const char *path = build->guards[i].path;

		if (strncmp(path, trees, len) == 0 && path[len] == '/' &&
		    strncmp(path + len + 1, tree, size) == 0 && path[len + 1 + size] == '/')
			return true;
	}
	return false;
}

static void judge_trees(const struct judging *j, int around_fd, const char *name, const char *trees)
{
	_Alignas(struct linux_dirent64) char buffer[8 << 10];
	AUTO_CLOSE int fd = open_in(around_fd, name, O_RDONLY | O_DIRECTORY);
	size_t count = 0;
	long got = fd < 0 ? -1 : 0;

	if (fd < 0 && errno == EACCES) {
		AUTO_CLOSE int closed = open_folder_in(around_fd, name);

		if (closed >= 0 && open_up(closed))
			fd = open_in(around_fd, name, O_RDONLY | O_DIRECTORY);
	}
	while (fd >= 0 && (got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
		for (long i = 0; i < got;) {
			const struct linux_dirent64 *entry =
				(const struct linux_dirent64 *)(buffer + i);

			i += entry->size;
			if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0 ||
			    is_known(j->build, trees, entry->name))
				continue;
			if (count++ == TREES_MOST) {
				j->teller->tell(j->teller->user, VT_GUARD_UNSEEN, trees, NULL,
						EOVERFLOW);
				return;
			}
			judge_tree(j, fd, trees, entry->name);
		}
	}
	if (got < 0 && errno != ENOENT && errno != ENOTDIR)
		j->teller->tell(j->teller->user, VT_GUARD_UNSEEN, trees, NULL, errno);
}

void vt_guard_judge(const struct vt_build *build, int folder_fd, const struct vt_inode *seen,
		    const char *call, const struct vt_guard_teller *teller)
{
	AUTO_PLACE struct place place = { .root_fd = folder_fd, .fd = -1 };
	struct judging j = { .build = build, .teller = teller };
	struct statx st;

	take_call(&j, call);
	for (size_t i = 0; i < build->guard_count; i++) {
		const struct vt_guard *guard = &build->guards[i];
		const char *name = go_to(&place, guard->path);

		struct vt_inode now = see(&place, name, &st);

		if (guard->closed || !now.ino)
			continue;
		if (is_unknown(&now) || is_unknown(&seen[i])) {
			int num = (int)(is_unknown(&now) ? now.dev : seen[i].dev);

			teller->tell(teller->user, VT_GUARD_UNSEEN, guard->path, NULL, num);
			continue;
		}
		if (guard->kind == VT_GUARD_NAME && !seen[i].ino)
			set_apart(&j, place.fd, name, guard->path);
		else if (seen[i].ino && (now.ino != seen[i].ino || now.dev != seen[i].dev))
			teller->tell(teller->user, VT_GUARD_REPLACED, guard->path, NULL, 0);
		if (guard->kind == VT_GUARD_WORKTREES)
			judge_trees(&j, place.fd, name, guard->path);
	}
}
