/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking more than was given. argv[1] says how much; an act that gets all of it says reached. Where
 * a limit holds by killing, the act ends without a line, and the test looks at the verdict.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void hold(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 300 * 1000 * 1000 }, NULL);
}

/* Fills a descriptor with mb megabytes. 0 or an errno. */
static int fill(int fd, long mb, long *ret_done)
{
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	for (*ret_done = 0; *ret_done < mb; ++*ret_done)
		for (size_t put = 0; put < sizeof(block);) {
			ssize_t got = write(fd, block + put, sizeof(block) - put);
			if (got < 0)
				return errno;
			put += (size_t)got;
		}
	return 0;
}

static int take_heap(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1);
	for (long i = 0; i < mb; i++) {
		char *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (block == MAP_FAILED)
			return denied(errno, "after %ld MB", i);
		memset(block, 1, 1 << 20);
	}
	hold();
	return reached("has %ld MB", mb);
}

/*
 * mb megabytes in memory files of at most 16 MB each, so that no limit of a file's size stands in
 * for memory's. 0 or an errno.
 */
static int fill_memfds(long mb, long *ret_done)
{
	long done;
	signal(SIGXFSZ, SIG_IGN);
	for (*ret_done = 0; *ret_done < mb; *ret_done += 16) {
		int fd = memfd_create("taken", MFD_CLOEXEC);
		int err = fd < 0 ? errno : fill(fd, 16, &done);
		if (err)
			return err;
	}
	return 0;
}

static int take_memfd(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1), done;
	int err = fill_memfds(mb, &done);
	if (err)
		return denied(err, "after %ld MB", done);
	hold();
	return reached("has %ld MB", mb);
}

/* Whoever watches may not list the descriptors of a process that is not dumpable. */
static int take_memfd_undumpable(int argc, char **argv)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return broken("prctl");
	return take_memfd(argc, argv);
}

static int copy_program(const char *path)
{
	static char block[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t got = -1;
	while (from >= 0 && to >= 0 && (got = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)got) != got)
			return -1;
	close(from);
	return got < 0 || close(to) < 0 ? -1 : 0;
}

/* argv: MB, a folder. A program that may be run and not read makes a process that is not dumpable.
 */
static int take_memfd_unreadable(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[2], "unreadable");
	const char *const words[] = { argv[0], "take_memfd", argv[1], NULL };
	if (copy_program(path) < 0)
		return broken("copy the program to %s", path);
	int fd = open(path, O_PATH);
	if (fd < 0 || chmod(path, 0111) < 0)
		return broken("make %s unreadable", path);
	unlink(path);
	syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
	return broken("run a program that cannot be read");
}

struct apart {
	long mb, done;
	int err;
	atomic_bool over;
};

static _Noreturn int fill_apart(void *arg)
{
	struct apart *apart = arg;
	apart->err = fill_memfds(apart->mb, &apart->done);
	atomic_store(&apart->over, true);
	for (;;)
		pause();
}

static void *unshare_and_fill(void *arg)
{
	struct apart *apart = arg;
	/* No such descriptors are there to be closed; the thread has a table of its own after it.
	 */
	if (syscall(SYS_close_range, 1 << 20, 1 << 20, CLOSE_RANGE_UNSHARE) < 0) {
		apart->err = errno;
		atomic_store(&apart->over, true);
		return NULL;
	}
	fill_apart(apart);
}

static int await_apart(struct apart *apart)
{
	while (!atomic_load(&apart->over))
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
	if (apart->err)
		return denied(apart->err, "after %ld MB", apart->done);
	hold();
	return reached("a thread has %ld MB", apart->mb);
}

/* A thread whose descriptors are not in the list of its process. */
static int take_memfd_by_thread(int argc, char **argv)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	struct apart apart = { .mb = number(argv, 1) };
	(void)argc;
	if (clone(fill_apart, stack + sizeof(stack), CLONE_VM | CLONE_SIGHAND | CLONE_THREAD,
		  &apart) < 0)
		return denied(errno, "clone of a thread without the process's descriptors");
	return await_apart(&apart);
}

static int take_memfd_by_unshared(int argc, char **argv)
{
	struct apart apart = { .mb = number(argv, 1) };
	pthread_t thread;
	(void)argc;
	if (pthread_create(&thread, NULL, unshare_and_fill, &apart) != 0)
		return unclear("pthread_create");
	return await_apart(&apart);
}

static int take_shared(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1);
	int id = shmget(IPC_PRIVATE, (size_t)mb << 20, IPC_CREAT | 0600);
	if (id < 0)
		return denied(errno, "shmget");
	char *block = shmat(id, NULL, 0);
	int err = errno;
	(void)shmctl(id, IPC_RMID, NULL); /* gone with the last user */
	if (block == (void *)-1)
		return denied(err, "shmat");
	memset(block, 1, (size_t)mb << 20);
	hold();
	return reached("has %ld MB", mb);
}

/* argv: MB in all, processes */
static int take_together(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1), processes = number(argv, 2);
	int ready[2];
	if (pipe(ready) < 0)
		return broken("pipe");
	for (long i = 0; i < processes; i++) {
		pid_t child = fork();
		if (child < 0)
			return denied(errno, "fork %ld", i);
		if (child > 0)
			continue;
		char *block = mmap(NULL, (size_t)(mb / processes) << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			_exit(1);
		memset(block, 1, (size_t)(mb / processes) << 20);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	char word;
	for (long i = 0; i < processes; i++)
		if (read(ready[0], &word, 1) != 1)
			return denied(0, "%ld of %ld processes got their share", i, processes);
	hold();
	signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
	return reached("%ld processes have %ld MB", processes, mb);
}

static int take_processes(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1), got;
	int err = 0;
	for (got = 0; got < wanted; got++) {
		pid_t child = fork();
		if (child < 0) {
			err = errno;
			break;
		}
		if (child == 0) {
			pause();
			_exit(0);
		}
	}
	signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM); /* its own children: it is started as leader of its group */
	return err ? denied(err, "after %ld processes", got) : reached("has %ld processes", got);
}

static void *idle(void *nothing)
{
	pause();
	return nothing;
}

static int take_threads(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	for (long got = 0; got < wanted; got++) {
		pthread_t thread;
		int err = pthread_create(&thread, &small, idle, NULL);
		if (err)
			return denied(err, "after %ld threads", got);
	}
	return reached("has %ld threads", wanted);
}

static int take_descriptors(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1);
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* as far as it goes */
	}
	for (long got = 0; got < wanted; got++)
		if (dup(1) < 0)
			return denied(errno, "after %ld descriptors", got);
	return reached("has %ld descriptors", wanted);
}

static int take_watchers(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1);
	for (long got = 0; got < wanted; got++)
		if (inotify_init1(IN_CLOEXEC) < 0)
			return denied(errno, "after %ld inotify instances", got);
	return reached("has %ld inotify instances", wanted);
}

static int take_timers(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1);
	for (long got = 0; got < wanted; got++) {
		timer_t timer;
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
			return denied(errno, "after %ld timers", got);
	}
	return reached("has %ld timers", wanted);
}

static int take_signals(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1);
	sigset_t all;
	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return broken("sigprocmask");
	for (long got = 0; got < wanted; got++)
		if (sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) < 0)
			return denied(errno, "after %ld signals", got);
	return reached("has %ld pending signals", wanted);
}

static int take_semaphores(int argc, char **argv)
{
	(void)argc;
	int id = semget(IPC_PRIVATE, (int)number(argv, 1), IPC_CREAT | 0600);
	if (id < 0)
		return denied(errno, "semget");
	(void)semctl(id, 0, IPC_RMID); /* nobody else knows it */
	return reached("has %s semaphores", argv[1]);
}

static int take_messages(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	if (id < 0)
		return denied(errno, "msgget");
	(void)msgctl(id, IPC_RMID, NULL); /* nobody else knows it */
	return reached("has a message queue");
}

static int take_queues(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1), got;
	int err = 0;
	for (got = 0; got < wanted && !err; got++) {
		char name[32];
		struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
		snprintf(name, sizeof(name), "/taken-%ld", got);
		if (mq_open(name, O_RDONLY | O_CREAT, 0600, &attr) == (mqd_t)-1)
			err = errno;
		else
			(void)mq_unlink(name); /* it stays as long as it is open */
	}
	return err ? denied(err, "after %ld queues", got - 1) : reached("has %ld queues", got);
}

static int take_locked(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1);
	void *block = mmap(NULL, (size_t)mb << 20, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return broken("mmap");
	if (mlock(block, (size_t)mb << 20) < 0)
		return denied(errno, "mlock");
	return reached("has %ld MB that cannot be swapped", mb);
}

/* In buffers of one MB, as large as a pipe's can be for everybody. */
static int take_pipes(int argc, char **argv)
{
	(void)argc;
	long mb = number(argv, 1);
	for (long got = 0; got < mb; got++) {
		static char block[1 << 20];
		int ends[2];
		if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
			return denied(errno, "after %ld pipes", got);
		if (fcntl(ends[1], F_SETPIPE_SZ, sizeof(block)) < 0)
			return denied(errno, "F_SETPIPE_SZ after %ld pipes", got);
		if (write(ends[1], block, sizeof(block)) != (ssize_t)sizeof(block))
			return broken("fill a pipe");
	}
	hold();
	return reached("has %ld MB in pipes", mb);
}

/* argv: MB, a folder */
static int take_file(int argc, char **argv)
{
	(void)argc;
	long done;
	const char *path = join(argv[2], "large");
	signal(SIGXFSZ, SIG_IGN);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return broken("create %s", path);
	int err = fill(fd, number(argv, 1), &done);
	unlink(path);
	return err ? denied(err, "after %ld MB", done) : reached("wrote %ld MB", done);
}

/* mb files of one MB each, which are there for some seconds. */
static int take_folder(const char *folder, long mb, long seconds)
{
	long have = 0, done;
	char name[32];
	int err = 0;
	signal(SIGXFSZ, SIG_IGN);
	for (; have < mb && !err; have++) {
		snprintf(name, sizeof(name), "part%ld", have);
		int fd = open(join(folder, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0) {
			err = errno;
			break;
		}
		err = fill(fd, 1, &done);
		close(fd);
	}
	if (!err)
		(void)nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
	for (long i = 0; i <= have; i++) {
		snprintf(name, sizeof(name), "part%ld", i);
		unlink(join(folder, name));
	}
	if (err && have == 0)
		return unclear("nothing can be written to %s: %s", folder, strerrorname_np(err));
	return err ? denied(err, "after %ld MB", have) : reached("wrote %ld MB", have);
}

/* argv: MB, a folder */
static int take_disk(int argc, char **argv)
{
	(void)argc;
	return take_folder(argv[2], number(argv, 1), 0);
}

/* argv: MB, seconds, a folder */
static int hold_disk(int argc, char **argv)
{
	(void)argc;
	return take_folder(argv[3], number(argv, 1), number(argv, 2));
}

/* argv: how many, a folder */
static int take_inodes(int argc, char **argv)
{
	(void)argc;
	long wanted = number(argv, 1), made = 0;
	char name[32];
	int err = 0;
	for (; made < wanted; made++) {
		snprintf(name, sizeof(name), "i%ld", made);
		int fd = open(join(argv[2], name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0) {
			err = errno;
			break;
		}
		close(fd);
	}
	for (long i = 0; i < made; i++) {
		snprintf(name, sizeof(name), "i%ld", i);
		unlink(join(argv[2], name));
	}
	if (err && made == 0)
		return unclear("no file can be made in %s: %s", argv[2], strerrorname_np(err));
	return err ? denied(err, "after %ld files", made) : reached("made %ld files", made);
}

static long elapsed_ms(clockid_t clock, const struct timespec *since)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
}

/* argv: CPU time in ms, and the time in ms within which it wants to have it */
static int burn(int argc, char **argv)
{
	struct timespec start,
		before; /* what it took to get here counts neither as time nor as CPU time */
	long wanted = number(argv, 1), within = number(argv, 2), used = 0, passed = 0;
	(void)argc;
	clock_gettime(CLOCK_MONOTONIC, &start);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	while (used < wanted && passed < within) {
		used = elapsed_ms(CLOCK_PROCESS_CPUTIME_ID, &before);
		passed = elapsed_ms(CLOCK_MONOTONIC, &start);
	}
	return used < wanted ? denied(0, "got %ld ms of CPU time in %ld ms", used, passed)
			     : reached("got %ld ms of CPU time in %ld ms", used, passed);
}

/* argv: ms */
static int outstay(int argc, char **argv)
{
	long ms = number(argv, 1);
	(void)argc;
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_IGN);
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	return reached("is still here after %ld ms", ms);
}

const struct act limit_acts[] = {
	{ "take_heap", "anonymous memory", "takes the machine's memory", take_heap },
	{ "take_memfd", "memory files", "takes memory that no process is charged for", take_memfd },
	{ "take_memfd_undumpable", "memory files of a process that is not dumpable",
	  "takes memory that it hides", take_memfd_undumpable },
	{ "take_memfd_unreadable", "memory files of a program that cannot be read",
	  "takes memory that it hides", take_memfd_unreadable },
	{ "take_memfd_by_thread", "memory files of a thread cloned apart",
	  "takes memory where nobody looks", take_memfd_by_thread },
	{ "take_memfd_by_unshared", "memory files of a thread by close_range",
	  "takes memory where nobody looks", take_memfd_by_unshared },
	{ "take_shared", "SysV shared memory", "takes memory that outlives its process",
	  take_shared },
	{ "take_together", "memory of many processes", "takes as much again per process",
	  take_together },
	{ "take_processes", "fork bomb", "takes the machine's pids", take_processes },
	{ "take_threads", "threads", "takes pids as threads", take_threads },
	{ "take_descriptors", "descriptors", "takes the machine's open files", take_descriptors },
	{ "take_watchers", "inotify instances", "takes what the caller has of them",
	  take_watchers },
	{ "take_timers", "timers", "takes kernel memory as timers", take_timers },
	{ "take_signals", "pending signals", "takes kernel memory as signals", take_signals },
	{ "take_semaphores", "SysV semaphores", "takes memory that outlives its process",
	  take_semaphores },
	{ "take_messages", "SysV message queues", "takes memory that outlives its process",
	  take_messages },
	{ "take_queues", "POSIX message queues", "takes kernel memory as messages", take_queues },
	{ "take_locked", "mlock", "takes memory that cannot be swapped", take_locked },
	{ "take_pipes", "pipe buffers", "takes memory that no process is charged for", take_pipes },
	{ "take_file", "one large file", "fills the disk with a file", take_file },
	{ "take_disk", "many files' bytes", "fills the private /tmp", take_disk },
	{ "hold_disk", "many files' bytes that stay", "fills the private /tmp for long",
	  hold_disk },
	{ "burn", "a busy loop", "takes the CPU", burn },
	{ "outstay", "ignoring every signal", "takes longer than it may", outstay },
	{ "take_inodes", "many empty files", "takes memory as inodes", take_inodes },
	{ NULL }
};
