/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The supervisor's loop watches the listener until the first call, then opens
 * the folders and starts the thread, whose the listener is from then on. What a call names is read
 * once, and opened as the cell would. Where that lies is only a hint: it is opened again from the
 * folder that it seems to lie in, with the kernel's word that nothing on the way led out, and what
 * was opened so is changed. Whatever the cell renames or links meanwhile, it lies in that folder.
 */
#include "watch/modes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "base/file.h"
#include "base/path.h"
#include "kernel/caps.h"
#include "kernel/notify.h"

enum {
	STACK = 256 << 10,
	LOOKS = 4,         /* at where a file lies that is being moved */
	PATIENCE_MS = 1000 /* how long the supervisor waits for the thread to end */
};

/* The thread's own, but for its number. It outlives the plan where the thread does not end. */
struct vt_modes_work {
	pthread_t thread;
	int listener_fd;
	int leash_fd, end_fd; /* to be ended, and to say so */
	size_t count;
	int folders[]; /* the first is the private one */
};

/* ---- the thread ---------------------------------------------------------------------------- */

/* What one call asks for, as it was when it was read. */
struct request {
	int at;          /* a descriptor of the caller's, or AT_FDCWD */
	bool named;      /* a path from there; else what the descriptor shows */
	bool keeps_link; /* a link at the path's end is meant itself */
	bool times;      /* are changed; else the mode */
	bool now;        /* to the current time */
	struct timespec when[2];
	mode_t mode;
	char path[PATH_MAX];
};

/* libc's way to change the mode of a descriptor without rights: "/proc/self/fd/7". */
static void see_through_proc(struct request *r)
{
	const size_t folder = strlen(VT_FDLINK_FOLDER);
	const char *number = r->path + folder;
	size_t len;

	if (r->keeps_link || strncmp(r->path, VT_FDLINK_FOLDER, folder) != 0)
		return;
	len = strspn(number, "0123456789");
	if (len == 0 || len > 9 || number[len] != '\0')
		return;
	r->at = (int)strtol(number, NULL, 10);
	r->named = false;
}

static int read_path(const struct vt_notice *notice, uint64_t address, int flags, struct request *r)
{
	int status = vt_notify_read_text(notice->tid, address, r->path, sizeof(r->path));

	if (status < 0)
		return status;
	r->keeps_link = flags & AT_SYMLINK_NOFOLLOW;
	r->named = r->path[0] != '\0';
	if (!r->named)
		return flags & AT_EMPTY_PATH ? 0 : -ENOENT;
	see_through_proc(r);
	return 0;
}

static int read_times(const struct vt_notice *notice, struct request *r)
{
	const int flags = (int)notice->args[3];
	int status = 0;

	r->times = true;
	r->now = notice->args[2] == 0;
	r->at = (int)notice->args[0];
	if (!r->now)
		status = vt_notify_read(notice->tid, notice->args[2], r->when, sizeof(r->when));
	if (status < 0)
		return status;
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (notice->args[1] || r->at == AT_FDCWD)
		return read_path(notice, notice->args[1], flags, r);
	return flags ? -EINVAL : 0;
}

static int read_request(const struct vt_notice *notice, struct request *r)
{
	*r = (struct request){ .at = AT_FDCWD };
	switch (notice->nr) {
#ifdef SYS_chmod
	case SYS_chmod:
		r->mode = (mode_t)notice->args[1];
		return read_path(notice, notice->args[0], 0, r);
#endif
	case SYS_fchmodat:
		r->at = (int)notice->args[0];
		r->mode = (mode_t)notice->args[2];
		return read_path(notice, notice->args[1], 0, r);
	case SYS_fchmod:
		r->at = (int)notice->args[0];
		r->mode = (mode_t)notice->args[1];
		return r->at < 0 ? -EBADF : 0;
	case SYS_utimensat:
		return read_times(notice, r);
	}
	return -ENOSYS;
}

/* Opens what is named, wherever it is. */
static int find(pid_t tid, const struct request *r)
{
	if (r->named && r->path[0] == '/')
		return vt_notify_open_at(AT_FDCWD, r->path, !r->keeps_link);
	AUTO_CLOSE int at = vt_notify_open_fd(tid, r->at);

	if (at < 0 || !r->named)
		return vt_fd_take(&at);
	return vt_notify_open_at(at, r->path, !r->keeps_link);
}

/* Where an open file or folder is by now; false for what has no path. */
static bool path_of(int fd, char path[PATH_MAX])
{
	char link[VT_FDLINK];
	ssize_t len;

	(void)vt_fdlink(link, fd);
	len = readlink(link, path, PATH_MAX);
	if (len <= 0 || len == PATH_MAX || path[0] != '/')
		return false;
	path[len] = '\0';
	return true;
}

/*
 * Opens what was found once more, from one of the folders: -EPERM where it lies inside of none,
 * -EAGAIN where it is no longer what has its name.
 */
static int find_inside(const struct vt_modes_work *work, int found, size_t *ret_folder)
{
	char path[PATH_MAX], folder[PATH_MAX];
	int result = -EPERM;

	if (!path_of(found, path))
		return -EPERM;
	for (size_t i = 0; i < work->count; i++) {
		if (!path_of(work->folders[i], folder) || !vt_path_lies_in(path, folder))
			continue;
		const char *rest = path + strlen(folder);

		while (*rest == '/')
			rest++;
		if (!*rest)
			continue;
		AUTO_CLOSE int fd = vt_notify_open_beneath(work->folders[i], rest);

		result = -EAGAIN;
		if (fd < 0 || !vt_file_is_same(fd, found))
			continue;
		*ret_folder = i;
		return vt_fd_take(&fd);
	}
	return result;
}

/* Setuid bits are denied by a filter too. The private folder is measured, so it stays open to us.
 */
static int change_mode(int fd, mode_t mode, bool is_private)
{
	const mode_t seen = S_IRUSR | S_IXUSR;
	char link[VT_FDLINK];
	struct stat st;

	if (mode & (S_ISUID | S_ISGID))
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (is_private && S_ISDIR(st.st_mode) && (mode & seen) != seen)
		return -EPERM;
	(void)vt_fdlink(link, fd);
	return chmod(link, mode & ALLPERMS) < 0 ? -errno : 0;
}

static int change(int fd, const struct request *r, bool is_private)
{
	if (!r->times)
		return change_mode(fd, r->mode, is_private);
	return utimensat(fd, "", r->now ? NULL : r->when, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static void answer(const struct vt_modes_work *work, const struct vt_notice *notice)
{
	struct request r;
	size_t folder = 0;
	int result = read_request(notice, &r);
	AUTO_CLOSE int found = result < 0 ? -1 : find(notice->tid, &r);
	AUTO_CLOSE int inside = -1;

	if (result == 0 && found < 0)
		result = found;
	/* It still waits: then all that was read is its own. */
	if (!vt_notify_waits(work->listener_fd, notice->id))
		return;
	for (int looks = 0; result == 0 && (looks == 0 || inside == -EAGAIN) && looks < LOOKS;
	     looks++)
		inside = find_inside(work, found, &folder);
	if (result == 0)
		result = inside < 0 ? -EPERM : change(inside, &r, folder == 0);
	(void)vt_notify_answer(work->listener_fd, notice->id, result); /* gone: nobody cares */
}

/* With the listener goes the wait of those that wait. */
static void *serve(void *arg)
{
	struct vt_modes_work *work = arg;
	struct vt_notice notice;
	struct vt_err err;
	struct pollfd fds[] = { { .fd = work->listener_fd, .events = POLLIN },
				{ .fd = work->leash_fd, .events = POLLIN } };

	for (int r = vt_caps_empty(&err); r == 0;) {
		if (poll(fds, 2, -1) < 0)
			continue; /* out of memory passes */
		if (fds[1].revents || fds[0].revents & (POLLHUP | POLLERR))
			break;
		/* One that was killed meanwhile waits no longer. */
		if (vt_notify_receive(work->listener_fd, &notice) == 0)
			answer(work, &notice);
	}
	vt_fd_close(&work->listener_fd);
	(void)eventfd_write(work->end_fd, 1); /* cannot fail: it is at 0 */
	return NULL;
}

/* ---- the supervisor ------------------------------------------------------------------------ */

static void free_work(struct vt_modes_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		vt_fd_close(&work->folders[i]);
	vt_fd_close(&work->listener_fd);
	vt_fd_close(&work->leash_fd);
	vt_fd_close(&work->end_fd);
	free(work);
}

/* A folder that was granted for writing, if it is still the one that the plan saw; else -1. */
static int open_folder(const struct vt_build *build)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (build->act != VT_ACT_BIND || !build->writable || build->device)
		return -1;
	fd = open(build->from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != build->dev || st.st_ino != build->ino)
		return -1;
	return vt_fd_take(&fd);
}

static struct vt_modes_work *new_work(const struct vt_modes *modes)
{
	const struct vt_plan *plan = modes->plan;
	struct vt_modes_work *work = calloc(1, sizeof(*work) + (plan->build_count + 1) *
								       sizeof(work->folders[0]));

	if (!work)
		return NULL;
	work->listener_fd = -1;
	work->leash_fd = eventfd(0, EFD_CLOEXEC);
	work->end_fd = eventfd(0, EFD_CLOEXEC);
	work->folders[work->count++] = fcntl(modes->scratch_fd, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < plan->build_count; i++) {
		int fd = open_folder(&plan->builds[i]);

		if (fd >= 0)
			work->folders[work->count++] = fd;
	}
	if (work->leash_fd >= 0 && work->end_fd >= 0 && work->folders[0] >= 0)
		return work;
	free_work(work);
	return NULL;
}

/* No signal of the supervisor's goes to the thread. */
static bool start_thread(struct vt_modes_work *work)
{
	pthread_attr_t attr;
	sigset_t all, old;
	bool started;

	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)sigfillset(&all);                         /* cannot fail */
	(void)pthread_sigmask(SIG_SETMASK, &all, &old); /* cannot fail: both sets are valid */
	started = pthread_attr_setstacksize(&attr, STACK) == 0 &&
		  pthread_create(&work->thread, &attr, serve, work) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: the set is valid */
	(void)pthread_attr_destroy(&attr);              /* cannot fail */
	return started;
}

static void forget_listener(struct vt_modes *modes)
{
	if (!modes->loop)
		return;
	vt_loop_remove(modes->loop, &modes->listener);
	vt_fd_close(&modes->listener.fd);
	modes->loop = NULL;
}

/* Where there can be no thread, nobody has the listener any more, and the kernel says ENOSYS. */
static void listener_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_modes *modes = source->owner;
	struct vt_modes_work *work = events & EPOLLIN ? new_work(modes) : NULL;

	vt_loop_remove(modes->loop, source);
	if (work) {
		work->listener_fd = vt_fd_take(&source->fd);
		if (start_thread(work))
			modes->work = work;
		else
			free_work(work);
	}
	forget_listener(modes);
}

int vt_modes_listen(struct vt_modes *modes, struct vt_loop *loop, const struct vt_plan *plan,
		    int listener_fd, int scratch_fd, struct vt_err *err)
{
	modes->loop = loop;
	modes->plan = plan;
	modes->scratch_fd = scratch_fd;
	modes->listener = (struct vt_watch){ .fd = listener_fd,
					     .ready = listener_ready,
					     .owner = modes };
	int r = vt_loop_add(loop, &modes->listener, EPOLLIN, err);

	if (r < 0)
		forget_listener(modes);
	return r;
}

void vt_modes_stop(struct vt_modes *modes)
{
	forget_listener(modes);
	if (modes->work)
		(void)eventfd_write(modes->work->leash_fd, 1); /* told twice is as good */
}

/* One that a file system does not let go keeps what is its own, and ends with the supervisor. */
void vt_modes_done(struct vt_modes *modes)
{
	struct vt_modes_work *work = modes->work;

	vt_modes_stop(modes);
	modes->work = NULL;
	if (!work)
		return;
	struct pollfd end = { .fd = work->end_fd, .events = POLLIN };

	while (poll(&end, 1, PATIENCE_MS) < 0 && errno == EINTR)
		;
	if (!end.revents) {
		(void)pthread_detach(work->thread); /* cannot fail: it is there, and ours */
		return;
	}
	(void)pthread_join(work->thread, NULL); /* cannot fail, nor wait: it has said goodbye */
	free_work(work);
}
