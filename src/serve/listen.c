/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { LOCK_TRIES = 8, NAME_TRIES = 8, ACTIVATED_MAX = 64 };

/* How long what a killed server was forking may listen in its stead, until it runs and ends. */
#define PATIENCE (2 * VT_NS_PER_S)
#define LOOK_NS  (5 * VT_NS_PER_MS)

static int fail(const char *what, const char *path, struct vt_err *err)
{
	int num = errno;

	return vt_fail(err, VT_STEP_POLICY, num, "%s '%s': %s", what, path, strerror(num));
}

/* ---- a socket of our own -------------------------------------------------------------------- */

/* Whether the lock is of the file that is there now: who had it before may have removed it. */
static bool is_current(int fd, const char *path)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

/* What stands there under the lock's name may be somebody's file: ours has nothing in it. */
static int check_lock(int fd, const char *path, struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail("cannot lock", path, err);
	if (!S_ISREG(st.st_mode) || st.st_size)
		return vt_fail(err, VT_STEP_POLICY, EEXIST,
			       "'%s' is there, and is no lock of a server: it is left alone; give "
			       "the socket another name",
			       path);
	return 0;
}

/* The lock is the process's, and ends with it: one of flock() would be held by what it forked. */
static int take_lock(struct vt_listener *listener, struct vt_err *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s.lock", listener->path) >= (int)sizeof(path))
		return vt_fail(err, VT_STEP_POLICY, ENAMETOOLONG, "lock '%s'", listener->path);
	for (int i = 0; i < LOCK_TRIES; i++) {
		AUTO_CLOSE int fd = open(
			path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

		if (fd < 0 && errno == ENOENT)
			return vt_fail(err, VT_STEP_POLICY, ENOENT,
				       "cannot listen at '%s': its folder is not there; make it "
				       "first",
				       listener->path);
		if (fd < 0)
			return fail("cannot lock", path, err);
		int r = check_lock(fd, path, err);

		if (r < 0)
			return r;
		int locked = fcntl(fd, F_SETLK, &whole);

		if (locked < 0 && (errno == EAGAIN || errno == EACCES))
			return vt_fail(err, VT_STEP_POLICY, EADDRINUSE,
				       "another server has '%s' already; end that one, or give "
				       "this one another path by --socket",
				       listener->path);
		if (locked < 0)
			return fail("cannot lock", path, err);
		if (is_current(fd, path)) {
			listener->lock_fd = vt_fd_take(&fd);
			return 0;
		}
	}
	return vt_fail(err, VT_STEP_POLICY, EBUSY, "cannot lock '%s': others are at it", path);
}

static int make_address(const char *path, struct sockaddr_un *ret_address, struct vt_err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return vt_fail(err, VT_STEP_POLICY, ENAMETOOLONG,
			       "'%s': the path of a socket has 1 to %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	*ret_address = address;
	return 0;
}

/* 1: somebody listens; 0: nobody does. */
static int is_listened_at(const struct sockaddr_un *address, struct vt_err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return fail("make a socket for", address->sun_path, err);
	/* EAGAIN: many wait for him. */
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	       errno == EAGAIN;
}

/* What a server that was killed left. Nobody else makes one here: we have the lock. */
static int remove_stale(const struct sockaddr_un *address, struct vt_err *err)
{
	const char *path = address->sun_path;
	const int64_t until = vt_clock_now() + PATIENCE;
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fail("cannot look at", path, err);
	if (!S_ISSOCK(st.st_mode))
		return vt_fail(err, VT_STEP_POLICY, EEXIST,
			       "'%s' is there, and is no socket: it is left alone", path);
	while ((r = is_listened_at(address, err)) > 0 && vt_clock_now() < until)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL); /* or less */
	if (r < 0)
		return r;
	if (r > 0)
		return vt_fail(err, VT_STEP_POLICY, EADDRINUSE,
			       "somebody else listens at '%s' already", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return fail("cannot remove the socket that nobody listens at:", path, err);
	return 0;
}

/* There is one thread, so the mask is nobody else's. */
static int bind_closed(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t before;
	int r;

	memcpy(address.sun_path, path, strlen(path) + 1);
	before = umask(0177);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	(void)umask(before); /* cannot fail */
	return r;
}

/* What somebody has put there meanwhile stays. */
static int give_name(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* A file system that cannot do that. */
	return errno == EINVAL && rename(from, to) == 0 ? 0 : -errno;
}

/*
 * Who finds it is heard: it gets its name when it is listened at already. Until then it has
 * another, that nobody has: bind() fails where something is. A path that is too long for that is
 * found a moment before.
 */
static int bind_and_listen(int fd, const char *path)
{
	char first[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int r = -EADDRINUSE;
	bool fits = true;

	for (int i = 0; r == -EADDRINUSE && i < NAME_TRIES; i++) {
		uint32_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		fits = snprintf(first, sizeof(first), "%s.%08x", path, number) < (int)sizeof(first);
		if (!fits)
			(void)snprintf(first, sizeof(first), "%s", path); /* fits */
		r = bind_closed(fd, first);
	}
	if (r == 0)
		r = listen(fd, SOMAXCONN) < 0 ? -errno : fits ? give_name(first, path) : 0;
	else
		return r;
	if (r < 0)
		(void)unlink(first); /* it is of no use */
	return r;
}

static int listen_at(struct vt_listener *listener, struct vt_err *err)
{
	struct sockaddr_un address;
	struct stat st;
	int r = make_address(listener->path, &address, err);

	if (r == 0)
		r = remove_stale(&address, err);
	if (r < 0)
		return r;
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return fail("make a socket for", listener->path, err);
	r = bind_and_listen(listener->fd, listener->path);
	if (r < 0) {
		errno = -r;
		return fail("cannot make a socket at", listener->path, err);
	}
	if (lstat(listener->path, &st) < 0)
		return fail("cannot listen at", listener->path, err);
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	return 0;
}

int vt_listener_open(struct vt_listener *listener, const char *path, struct vt_err *err)
{
	*listener = (struct vt_listener)VT_LISTENER_NONE;
	listener->path = strdup(path);
	if (!listener->path)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "listen");
	struct sockaddr_un address;
	int r = make_address(path, &address, err);

	if (r == 0)
		r = take_lock(listener, err);
	return r < 0 ? r : listen_at(listener, err);
}

void vt_listener_done(struct vt_listener *listener)
{
	char lock[PATH_MAX];
	struct stat st;

	/* Whoever comes next finds nothing, or what is his. */
	if (listener->ino && lstat(listener->path, &st) == 0 && st.st_dev == listener->dev &&
	    st.st_ino == listener->ino)
		(void)unlink(listener->path); /* what stays is stale, and replaced */
	if (listener->lock_fd >= 0 && snprintf(lock, sizeof(lock), "%s.lock", listener->path) > 0)
		(void)unlink(lock); /* while it is held; what stays is locked by nobody */
	vt_fd_close(&listener->fd);
	vt_fd_close(&listener->lock_fd);
	free(listener->path);
	*listener = (struct vt_listener)VT_LISTENER_NONE;
}

int vt_listen_usual(char *path, size_t size, bool make, struct vt_err *err)
{
	const char *folder = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");

	if (!folder || *folder != '/')
		return vt_fail(err, VT_STEP_POLICY, ENOENT,
			       "XDG_RUNTIME_DIR is not set: say where, by --socket PATH");
	if (snprintf(path, size, "%s/vitro", folder) >= (int)size)
		return vt_fail(err, VT_STEP_POLICY, ENAMETOOLONG, "XDG_RUNTIME_DIR is too long");
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail("cannot make", path, err);
	if (snprintf(path, size, "%s/vitro/socket", folder) >= (int)size)
		return vt_fail(err, VT_STEP_POLICY, ENAMETOOLONG, "XDG_RUNTIME_DIR is too long");
	return 0;
}

/* ---- sockets that were given ---------------------------------------------------------------- */

static int socket_option(int fd, int option, int *ret_value)
{
	socklen_t len = sizeof(*ret_value);

	return getsockopt(fd, SOL_SOCKET, option, ret_value, &len);
}

int vt_listen_inherited(int fd, enum vt_inherited *ret_kind, struct vt_err *err)
{
	int domain, type, listens;

	if (fcntl(fd, F_GETFD) < 0)
		return vt_fail(err, VT_STEP_POLICY, errno,
			       "descriptor %d is not open: whoever starts the server opens it, and "
			       "leaves it open across exec",
			       fd);
	if (socket_option(fd, SO_DOMAIN, &domain) < 0 || socket_option(fd, SO_TYPE, &type) < 0 ||
	    socket_option(fd, SO_ACCEPTCONN, &listens) < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "descriptor %d is no socket: %s", fd,
			       strerror(errno));
	if (domain != AF_UNIX || type != SOCK_STREAM)
		return vt_fail(err, VT_STEP_POLICY, EPROTOTYPE,
			       "descriptor %d is no Unix stream socket", fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || (listens && fcntl(fd, F_SETFL, O_NONBLOCK) < 0))
		return vt_fail(err, VT_STEP_POLICY, errno, "prepare descriptor %d: %s", fd,
			       strerror(errno));
	*ret_kind = listens ? VT_INHERITED_LISTENS : VT_INHERITED_CONNECTED;
	return 0;
}

static long read_number(const char *name, long most)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text)
		return -1;
	errno = 0;
	long value = strtol(text, &end, 10);

	return errno || *end || value < 0 || value > most ? -1 : value;
}

int vt_listen_activated(void)
{
	long pid = read_number("LISTEN_PID", LONG_MAX);
	long count = read_number("LISTEN_FDS", ACTIVATED_MAX);

	(void)unsetenv("LISTEN_PID"); /* fails for wrong names alone, as the two others */
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return pid == (long)getpid() && count > 0 ? (int)count : 0;
}
