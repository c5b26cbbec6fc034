/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody would write who needs the namespaces and mounts of a pool's cells, with two
 * processes in each, and nothing else: no limits, no filter, no supervisor. What cells share is
 * made once: the keeper is pid 1 of a hull, and makes cells in it when it is told to.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "bench.h"
#include "uapi/mount.h"

enum order_kind { ORDER_MAKE, ORDER_END, ORDER_WORK };

struct order {
	enum order_kind kind;
	uint32_t ms;
};

struct keeper {
	const struct mounts *mounts;
	unsigned long namespaces;
	int fd;
};

/* ---- a cell -------------------------------------------------------------------------------- */

static void attach(int fd, int root, const char *to)
{
	if (sys_move_mount(fd, "", root, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		hand_fail("mount", to);
}

/*
 * One tmpfs for all folders that can be written: the first is its root, the others are folders in
 * it. None is unmounted again, since that waits for the kernel, longer than all else takes.
 */
static void mount_scratch(const struct mounts *mounts, int root)
{
	AUTO_CLOSE int tmpfs = hand_filesystem("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	char name[] = "a";

	for (size_t i = 0; i < mounts->count; i++) {
		if (mounts->items[i].kind != MOUNT_SCRATCH)
			continue;
		if (name[0]++ == 'a') {
			attach(tmpfs, root, mounts->items[i].at + 1);
			continue;
		}
		if (mkdirat(tmpfs, name, 0755) < 0)
			hand_fail("make", name);
		AUTO_CLOSE int folder = hand_copy(tmpfs, name);

		attach(folder, root, mounts->items[i].at + 1);
	}
}

static void mount_own(const struct mounts *mounts)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		hand_fail("open", "the root");
	mount_scratch(mounts, root);
	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->items[i];
		AUTO_CLOSE int fd = -1;

		if (mount->kind == MOUNT_PROC) {
			fd = hand_filesystem("proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
							     MOUNT_ATTR_NOEXEC);
		} else if (mount->kind == MOUNT_MASK) {
			fd = hand_copy(root, mount->folder ? ".folder" : ".file");
			hand_restrict(fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY, 0);
		}
		if (fd >= 0)
			attach(fd, root, mount->at + 1);
	}
}

static _Noreturn void live(const struct keeper *keeper, int go, int answer_fd)
{
	const uint64_t made = 1;
	uint64_t count;

	if (read(go, &count, sizeof(count)) != sizeof(count))
		hand_fail("wait for", "the ids");
	mount_own(keeper->mounts);
	pid_t pid = fork();

	if (pid < 0)
		hand_fail("fork", "the second process");
	if (pid == 0 && write(answer_fd, &made, sizeof(made)) != sizeof(made))
		hand_fail("tell", "that it is there");
	for (;;)
		(void)pause(); /* until the end */
}

static pid_t make(const struct keeper *keeper, int answer_fd)
{
	const uint64_t go = 1;
	AUTO_CLOSE int go_fd = eventfd(0, EFD_CLOEXEC);
	char proc[32];

	if (go_fd < 0)
		hand_fail("make", "an eventfd");
	long pid = syscall(SYS_clone, keeper->namespaces | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		live(keeper, go_fd, answer_fd);
	if (pid < 0)
		hand_fail("clone", "a cell");
	(void)snprintf(proc, sizeof(proc), "/proc/%ld", pid);
	hand_map_ids(proc, 0, 0);
	if (write(go_fd, &go, sizeof(go)) != sizeof(go))
		hand_fail("let", "it go on");
	return (pid_t)pid;
}

static void end(pid_t pid)
{
	if (kill(pid, SIGKILL) < 0 || waitpid(pid, NULL, 0) != pid)
		hand_fail("end", "a cell");
}

/* ---- its keeper ---------------------------------------------------------------------------- */

/* Cells one after the other; the ends of those before are not waited for, but all belong to it. */
static uint32_t work(const struct keeper *keeper, uint32_t ms)
{
	int64_t until = vt_clock_now() + ms * VT_NS_PER_MS;
	AUTO_CLOSE int answer_fd = eventfd(0, EFD_CLOEXEC);
	uint32_t count = 0;

	if (answer_fd < 0)
		hand_fail("make", "an eventfd");
	for (; vt_clock_now() < until; count++) {
		pid_t pid = make(keeper, answer_fd);
		uint64_t made;

		if (read(answer_fd, &made, sizeof(made)) != sizeof(made))
			hand_fail("wait for", "a cell");
		if (kill(pid, SIGKILL) < 0)
			hand_fail("end", "a cell");
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return count;
}

static void obey(const struct keeper *keeper)
{
	struct order order;
	uint64_t answer = 0;
	pid_t pid = 0;

	/* Without anybody who orders, the hull goes. */
	while (recv(keeper->fd, &order, sizeof(order), 0) == sizeof(order)) {
		if (order.kind == ORDER_MAKE) {
			pid = make(keeper, keeper->fd); /* it is the cell that answers */
			continue;
		}
		if (order.kind == ORDER_END)
			end(pid);
		else
			answer = work(keeper, order.ms);
		if (send(keeper->fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
}

static _Noreturn void keep(const struct keeper *keeper, uid_t uid, gid_t gid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		hand_fail("die with", "the benchmark");
	hand_map_ids("/proc/self", uid, gid);
	hand_root(keeper->mounts, true);
	obey(keeper);
	_exit(0);
}

void hand_open(struct hand *hand, const struct mounts *mounts, unsigned long namespaces)
{
	struct keeper child = { .mounts = mounts, .namespaces = namespaces };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("make a socket: %s", strerror(errno));
	long pid = syscall(SYS_clone,
			   (namespaces & ~(unsigned long)CLONE_NEWCGROUP) | CLONE_NEWUSER |
				   CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | SIGCHLD,
			   0, 0, 0, 0);

	if (pid < 0)
		die("clone: %s", strerror(errno));
	if (pid == 0) {
		keep_only(&pair[1]);
		child.fd = pair[1];
		keep(&child, uid, gid);
	}
	(void)close(pair[1]); /* the child's */
	*hand = (struct hand){ .pid = (pid_t)pid, .fd = pair[0] };
}

void hand_close(struct hand *hand)
{
	(void)close(hand->fd);  /* which ends it */
	(void)await(hand->pid); /* with whatever it says */
}

static void tell(const struct hand *hand, enum order_kind kind, uint32_t ms)
{
	const struct order order = { .kind = kind, .ms = ms };

	if (send(hand->fd, &order, sizeof(order), MSG_NOSIGNAL) < 0)
		die("cells by hand: %s", strerror(errno));
}

static uint64_t hear(const struct hand *hand)
{
	uint64_t answer;

	if (recv(hand->fd, &answer, sizeof(answer), 0) != sizeof(answer))
		die("cells by hand: the keeper is gone");
	return answer;
}

int64_t hand_make(struct hand *hand)
{
	int64_t begin = vt_clock_now();

	tell(hand, ORDER_MAKE, 0);
	(void)hear(hand); /* that it is there */
	return vt_clock_now() - begin;
}

void hand_end(struct hand *hand)
{
	tell(hand, ORDER_END, 0);
	(void)hear(hand); /* that it is gone */
}

void hand_work(struct hand *hand, uint32_t ms)
{
	tell(hand, ORDER_WORK, ms);
}

uint32_t hand_worked(struct hand *hand)
{
	return (uint32_t)hear(hand);
}
