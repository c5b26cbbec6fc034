/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/world.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/attempt.h"
#include "cli/unique.h"
#include "kernel/scratch.h"

enum listener { TCP4, TCP6, UDP4, ABSTRACT, PATH, DATAGRAMS, PIPE, LISTENERS };

enum { PATIENCE_MS = 1000 };

static void make_file(const char *base, const char *name, const char *text)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name); /* fits: base is half as long */
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	/* An act that misses it finds no control. */
	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}

/* The control's is not the cell's to open, where the two are not of one user. */
static void remove_lock(const struct vt_world *world)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/write/lock", world->base); /* fits */
	(void)unlink(path); /* mostly it is not there */
}

void vt_world_refresh(const struct vt_world *world)
{
	if (!*world->base)
		return;
	make_file(world->base, "secret/file", "vitro-secret\n");
	make_file(world->base, "read/file", "read me\n");
	make_file(world->base, "read/spare", "spare\n");
	remove_lock(world);
}

/*
 * Whether nobody but root and the caller can put another folder in this one's place, at any step of
 * the way. The paths in it are used by name.
 */
static bool is_ours(const char *path)
{
	char at[PATH_MAX];
	struct stat st;

	(void)snprintf(at, sizeof(at), "%s", path); /* fits: it is a real path */
	for (;;) {
		if (stat(at, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid()))
			return false;
		if (!(st.st_mode & S_ISVTX) && st.st_mode & (S_IWGRP | S_IWOTH))
			return false;
		if (strcmp(at, "/") == 0)
			return true;
		(void)dirname(at);
	}
}

/* Others may pass through the folder, as a cell of another user must, but not list it. */
static int make_folder_in(struct vt_world *world, const char *parent, bool shared)
{
	static const char *const names[] = { "secret", "read", "write" };
	char real[PATH_MAX], path[PATH_MAX];

	if (!parent || *parent != '/')
		return -ENOENT;
	if (!realpath(parent, real))
		return -errno;
	if (!is_ours(real))
		return -EPERM;
	if ((size_t)snprintf(world->base, sizeof(world->base), "%s/vitro-self-%d-XXXXXX",
			     strcmp(real, "/") == 0 ? "" : real,
			     (int)getpid()) >= sizeof(world->base))
		return -ENAMETOOLONG;
	if (!mkdtemp(world->base))
		return -errno;
	if (chmod(world->base, 0711) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", world->base, names[i]); /* fits */
		if (mkdir(path, 0755) < 0)
			return -errno;
	}
	/* path is the last one's. Sticky: the kernel lets nobody follow a link that others put
	 * there. */
	return shared && chmod(path, 01777) < 0 ? -errno : 0;
}

/* A named pipe that is read from, as the keeper's descriptor of it shows. */
static int open_pipe(const struct vt_world *world)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/read/pipe", world->base); /* fits */
	if (!*world->base || mkfifo(path, 0666) < 0)
		return -1;
	(void)chmod(path, 0666); /* a cell may be another user */
	return open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

/* /var/tmp before /tmp: a cell has a /tmp of its own, and what is granted below it tells less. */
static void make_folder(struct vt_world *world, bool shared)
{
	const char *const parents[] = { getenv("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm" };
	size_t count = sizeof(parents) / sizeof(parents[0]);
	int r = -ENOENT;

	for (size_t i = 0; i < count && r < 0; i++) {
		r = make_folder_in(world, parents[i], shared);
		if (r < 0 && *world->base)
			(void)rmdir(world->base); /* it may be half-made */
		if (r < 0)
			(void)snprintf(world->why, sizeof(world->why),
				       "no folder can be made that others cannot take away, in "
				       "/var/tmp, /tmp, /dev/shm or TMPDIR: %s",
				       strerror(-r));
	}
	if (r < 0)
		*world->base = '\0';
}

static int bind_socket(int family, int type, const void *address, socklen_t len)
{
	AUTO_CLOSE int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, address, len) < 0 || (type == SOCK_STREAM && listen(fd, 16) < 0))
		return -1;
	return vt_fd_take(&fd);
}

static int bind_inet(int type, int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = bind_socket(AF_INET, type, &at, len);

	if (fd >= 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0)
		*ret_port = ntohs(at.sin_port);
	return fd;
}

static int bind_inet6(int *ret_port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof(at);
	int fd = bind_socket(AF_INET6, SOCK_STREAM, &at, len);

	if (fd >= 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0)
		*ret_port = ntohs(at.sin6_port);
	return fd;
}

static int bind_path(const struct vt_world *world, const char *name, int type)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int len = snprintf(at.sun_path, sizeof(at.sun_path), "%s/read/%s", world->base, name);

	if (!*world->base || len >= (int)sizeof(at.sun_path))
		return -1;
	int fd = bind_socket(AF_UNIX, type, &at, sizeof(at));

	if (fd >= 0)
		(void)chmod(at.sun_path, 0777); /* a cell may be another user */
	return fd;
}

static int bind_abstract(const struct vt_world *world)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(world->abstract);

	memcpy(at.sun_path + 1, world->abstract, len);
	return bind_socket(AF_UNIX, SOCK_STREAM, &at,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
}

static void answer(int fd, enum listener kind)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char byte[16];

	if (kind == PIPE) {
		(void)!read(fd, byte, sizeof(byte)); /* what an act has written */
		return;
	}
	if (kind == UDP4 || kind == DATAGRAMS) {
		ssize_t got = recvfrom(fd, byte, sizeof(byte), 0, (struct sockaddr *)&from, &len);

		if (kind == UDP4 && got >= 0)
			(void)sendto(fd, "hello", 5, 0, (struct sockaddr *)&from, len);
		return;
	}
	AUTO_CLOSE int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (peer >= 0)
		(void)send(peer, "hello", 5, MSG_NOSIGNAL); /* a peer that left misses it */
}

/* Answers until the pipe has no writer left, then removes the folder. In a process of its own. */
static _Noreturn void keep(const struct vt_world *world, const int *listeners, int pipe_fd)
{
	struct pollfd polled[LISTENERS + 1];

	/* Ctrl-C at the terminal is for whoever waits for the report; this one sees it end. */
	if (vt_control_detach() < 0 || chdir("/") < 0)
		_exit(1);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	for (int i = 0; i < LISTENERS; i++)
		polled[i] = (struct pollfd){ .fd = listeners[i], .events = POLLIN };
	polled[LISTENERS] = (struct pollfd){ .fd = pipe_fd, .events = POLLIN };
	while (!polled[LISTENERS].revents) {
		if (poll(polled, LISTENERS + 1, -1) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < LISTENERS; i++)
			if (polled[i].revents)
				answer(polled[i].fd, (enum listener)i);
	}
	/* Others may write to the folder that is shared, at any time. */
	_exit(*world->base ? -vt_scratch_discard(world->base, geteuid(), true, PATIENCE_MS) : 0);
}

static int start_keeper(struct vt_world *world, struct vt_err *err)
{
	int listeners[LISTENERS] = {
		[TCP4] = bind_inet(SOCK_STREAM, &world->tcp4),
		[TCP6] = bind_inet6(&world->tcp6),
		[UDP4] = bind_inet(SOCK_DGRAM, &world->udp4),
		[ABSTRACT] = bind_abstract(world),
		[PATH] = bind_path(world, "socket", SOCK_STREAM),
		[DATAGRAMS] = bind_path(world, "datagrams", SOCK_DGRAM),
		[PIPE] = open_pipe(world),
	};
	int ends[2], num = 0;

	if (pipe2(ends, O_CLOEXEC) < 0 || (world->keeper = fork()) < 0)
		num = errno;
	if (num == 0 && world->keeper == 0) {
		(void)close(ends[1]); /* else the pipe would never end */
		keep(world, listeners, ends[0]);
	}
	for (int i = 0; i < LISTENERS; i++)
		vt_fd_close(&listeners[i]);
	if (num)
		return vt_fail(err, VT_STEP_WATCH, num, "start the self-test's listeners");
	(void)close(ends[0]); /* the keeper's */
	world->keeper_fd = ends[1];
	return 0;
}

static int start_victim(struct vt_world *world, const char *program, struct vt_err *err)
{
	char secret[64];
	char *const argv[] = { (char *)program, (char *)"idle", world->word, NULL };
	char *const envp[] = { secret, NULL };

	(void)snprintf(secret, sizeof(secret), "VITRO_TEST_SECRET=%s", world->word); /* fits */
	world->victim = fork();
	if (world->victim < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "start the self-test's victim");
	if (world->victim > 0)
		return 0;
	/* A session of its own: it leads a group that an act can signal without meeting us. */
	if (vt_control_detach() == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
		(void)execve(program, argv, envp);
	_exit(127);
}

static void name_world(struct vt_world *world)
{
	uint64_t number = vt_unique_number();

	(void)snprintf(world->word, sizeof(world->word), "victim-%016llx",
		       (unsigned long long)number); /* fits */
	(void)snprintf(world->abstract, sizeof(world->abstract), "vitro-%016llx",
		       (unsigned long long)number); /* fits */
}

int vt_world_make(struct vt_world *world, const char *program, bool shared, struct vt_err *err)
{
	char secret[PATH_MAX];

	*world = (struct vt_world){ .leak = -1, .keeper_fd = -1, .victim = -1, .keeper = -1 };
	name_world(world);
	make_folder(world, shared);
	int r = start_keeper(world, err);

	if (r < 0) {
		if (*world->base) /* what matters is said already */
			(void)vt_scratch_discard(world->base, geteuid(), false, 0);
		return r;
	}
	vt_world_refresh(world);
	(void)snprintf(secret, sizeof(secret), "%s/secret", world->base); /* fits */
	if (*world->base && chdir(secret) == 0)
		world->leak = open(".", O_RDONLY | O_DIRECTORY); /* inherited: that is its point */
	r = start_victim(world, program, err);
	if (r < 0)
		(void)vt_world_done(world, &(struct vt_err){ 0 }); /* the same */
	return r;
}

static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

int vt_world_done(struct vt_world *world, struct vt_err *err)
{
	int status = 0;

	vt_fd_close(&world->leak);
	if (world->victim > 0) {
		(void)kill(world->victim, SIGKILL); /* a child of ours that is not reaped yet */
		(void)reap(world->victim);
	}
	vt_fd_close(&world->keeper_fd);
	if (world->keeper > 0)
		status = reap(world->keeper);
	if (status != 0)
		return vt_fail(err, VT_STEP_WATCH, WIFEXITED(status) ? WEXITSTATUS(status) : EIO,
			       "remove '%s', which the self-test made", world->base);
	return 0;
}

/* The text for a name. 0, or -ENOENT where this world has nothing by it. */
static int name(const struct vt_world *world, const char *what, size_t len, char *buf, size_t size)
{
	const struct {
		const char *name, *text;
		int number;
	} names[] = {
		{ "word", world->word, 0 },    { "abstract", world->abstract, 0 },
		{ "tcp4", NULL, world->tcp4 }, { "tcp6", NULL, world->tcp6 },
		{ "udp4", NULL, world->udp4 }, { "victim", NULL, (int)world->victim },
		{ "leak", NULL, world->leak },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(names[i].name, what, len) != 0 || names[i].name[len])
			continue;
		if (!names[i].text && names[i].number <= 0)
			return -ENOENT;
		if (names[i].text)
			return snprintf(buf, size, "%s", names[i].text);
		return snprintf(buf, size, "%d", names[i].number);
	}
	if (!*world->base)
		return -ENOENT;
	return snprintf(buf, size, "%s/%.*s", world->base, (int)len, what);
}

const char *vt_world_fill(const struct vt_world *world, const char *words, char *buf, size_t size)
{
	size_t at = 0;

	while (*words && at + 1 < size) {
		if (*words != '{') {
			buf[at++] = *words++;
			continue;
		}
		size_t len = strcspn(words + 1, "}");
		int put = name(world, words + 1, len, buf + at, size - at);

		if (put < 0)
			return *world->base ? "there is no such listener here" : world->why;
		at += (size_t)put;
		words += len + 2;
	}
	if (at >= size)
		return "its path is too long";
	buf[at] = '\0';
	return NULL;
}

/* Who holds it: 0 nobody, -1 somebody whom this process cannot name. */
static pid_t lock_holder(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_GETLK, &whole) < 0 || whole.l_type == F_UNLCK)
		return 0;
	return whole.l_pid > 0 ? whole.l_pid : -1;
}

bool vt_world_is_locked(const struct vt_world *world)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/write/lock", world->base); /* fits */
	AUTO_CLOSE int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	pid_t holder = fd < 0 ? 0 : lock_holder(fd);

	if (holder <= 0)
		return holder != 0;
	AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, holder, 0);

	/* Held still, so the number has not gone to another process in between. */
	if (process >= 0 && lock_holder(fd) == holder)
		(void)syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0);
	return true;
}
