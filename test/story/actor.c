/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro-actor PART [ARGS]: plays one part inside a cell: ends in a certain way, refuses to end, or
 * eats what it can get. Parts that never end by themselves say so.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long argument(int argc, char **argv, int n, long fallback)
{
	return argc > n ? strtol(argv[n], NULL, 0) : fallback;
}

static void sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void say(const char *text)
{
	(void)!write(1, text, strlen(text)); /* a part plays on without an audience */
}

_Noreturn static void forever(void)
{
	for (;;)
		pause();
}

static void ignore_signals(void)
{
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

static int part_exit(int argc, char **argv)
{
	return (int)argument(argc, argv, 1, 0);
}

static int part_kill_self(int argc, char **argv)
{
	raise((int)argument(argc, argv, 1, SIGKILL));
	sleep_ms(1000);
	return 99;
}

static int part_segv(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	volatile int *volatile nowhere = NULL;
	return *nowhere;
}

static int part_sleep_ms(int argc, char **argv)
{
	sleep_ms(argument(argc, argv, 1, 1000));
	return 0;
}

static int part_say_then_sleep(int argc, char **argv)
{
	say("first\n");
	sleep_ms(argument(argc, argv, 1, 1000));
	say("last\n");
	return 0;
}

/* A daemon: its parent ends at once, it never does. */
static int part_double_fork_setsid(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			int null = open("/dev/null", O_RDWR);
			for (int fd = 0; fd < 3; fd++)
				dup2(null, fd);
			ignore_signals();
			forever();
		}
		_exit(0);
	}
	(void)wait(NULL);
	say("parent ends\n");
	return 0;
}

/* Never ends. */
static int part_ignore_term(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	ignore_signals();
	say("ready\n");
	forever();
}

static int part_child_ignores_term(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	ignore_signals();
	if (fork() == 0)
		forever();
	return 0;
}

/* Never ends. */
static int part_stop_self(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	raise(SIGSTOP);
	forever();
}

static int part_stop_child(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	pid_t child = fork();
	if (child == 0) {
		raise(SIGSTOP);
		forever();
	}
	(void)waitpid(child, NULL, WUNTRACED);
	say("child is stopped\n");
	return 0;
}

static int part_hold_stdout(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (fork() == 0)
		forever();
	say("parent ends\n");
	return 0;
}

static int part_print_forever(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (fork() == 0) {
		if (fork() == 0)
			for (;;)
				say("still here still here still here still here still here\n");
		_exit(0);
	}
	(void)wait(NULL);
	sleep_ms(50);
	return 0;
}

/* Never ends: the parent sleeps in vfork, where only SIGKILL wakes it, and the child spins. */
static int part_vfork_spin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say("ready\n");
	if (vfork() == 0)
		for (;;)
			__asm__ volatile("");
	return 0;
}

/* Never ends. */
static int part_fork_bomb(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say("ready\n");
	for (;;)
		if (fork() < 0)
			sleep_ms(1);
	return 0;
}

static int part_fork_many(int argc, char **argv)
{
	long wanted = argument(argc, argv, 1, 50), got = 0;
	for (; got < wanted; got++) {
		pid_t child = fork();
		if (child < 0) {
			printf("%ld of %ld: %s\n", got, wanted, strerror(errno));
			return 1;
		}
		if (child == 0)
			_exit(0);
		(void)waitpid(child, NULL, 0);
	}
	printf("%ld of %ld\n", got, wanted);
	return 0;
}

static int part_close_stdio(int argc, char **argv)
{
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	sleep_ms(argument(argc, argv, 1, 100));
	return (int)argument(argc, argv, 2, 0);
}

/* What follows takes memory until it has all that it wants, and keeps it for a while. */
static int part_eat_heap(int argc, char **argv)
{
	for (long mb = argument(argc, argv, 1, 1024); mb > 0; mb--) {
		char *block = malloc(1 << 20);
		if (!block) {
			say("no memory\n");
			return 1;
		}
		for (size_t i = 0; i < 1 << 20; i += 4096)
			((volatile char *)block)[i] = 1;
	}
	sleep_ms(argument(argc, argv, 2, 1000));
	say("had it all\n");
	return 0;
}

/* As fast as there is memory, in huge pages if there are any. How far it came is in a file. */
static int part_burst(int argc, char **argv)
{
	size_t size = (size_t)argument(argc, argv, 1, 1024) << 20;
	int fd = open(argc > 2 ? argv[2] : "", O_RDWR | O_CLOEXEC);
	volatile long *touched = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      0);
	volatile char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);

	if (touched == MAP_FAILED || block == MAP_FAILED)
		return 1;
	(void)madvise((void *)block, size, MADV_HUGEPAGE);
	for (size_t i = 0; i < size; i += 4096) {
		block[i] = 1;
		*touched = (long)((i + 4096) >> 20);
	}
	say("had it all\n");
	return 0;
}

static int part_eat_many(int argc, char **argv)
{
	long processes = argument(argc, argv, 2, 8);
	for (long i = 0; i < processes; i++)
		if (fork() == 0)
			_exit(part_eat_heap(argc - (argc > 2), argv));
	int all = 0, status;
	while (wait(&status) > 0)
		all |= status;
	return all ? 1 : 0;
}

static int eat_file(int fd, long mb)
{
	static char block[1 << 20];
	memset(block, 'x', sizeof(block));
	for (long left = mb << 20; left > 0;) {
		ssize_t put = write(fd, block, sizeof(block));
		if (put < 0) {
			printf("%s\n", strerror(errno));
			return 1;
		}
		left -= put;
	}
	sleep_ms(1000);
	say("had it all\n");
	return 0;
}

static int part_eat_tmpfs(int argc, char **argv)
{
	return eat_file(open("/tmp/eaten", O_CREAT | O_WRONLY, 0600),
			argument(argc, argv, 1, 1024));
}

static int part_eat_memfd(int argc, char **argv)
{
	return eat_file(memfd_create("eaten", 0), argument(argc, argv, 1, 1024));
}

static void *spin(void *nothing)
{
	for (;;)
		__asm__ volatile("");
	return nothing;
}

/* Never ends. */
static int part_burn_cpu(int argc, char **argv)
{
	pthread_t thread;
	for (long n = argument(argc, argv, 1, 1); n > 1; n--)
		(void)pthread_create(&thread, NULL, spin, NULL);
	spin(NULL);
	return 0;
}

/* Never ends: no process burns for long, but all of them together do. */
static int part_burn_children(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;) {
		if (fork() == 0) {
			while (clock() < CLOCKS_PER_SEC / 50)
				;
			_exit(0);
		}
		(void)wait(NULL);
	}
}

/* Burns for so many ms of wall time, then says how much CPU time it got. */
static int part_burn_for(int argc, char **argv)
{
	struct timespec now, start;
	long ms = argument(argc, argv, 1, 1000);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
	printf("%ld\n", (long)(clock() * 1000 / CLOCKS_PER_SEC));
	return 0;
}

static int part_big_output(int argc, char **argv)
{
	static char block[1 << 16];
	long left = argument(argc, argv, 1, 1 << 20);
	memset(block, 'x', sizeof(block));
	say("HEAD");
	for (left -= 8; left > 0;) {
		size_t some = left < (long)sizeof(block) ? (size_t)left : sizeof(block);
		ssize_t put = write(1, block, some);
		if (put < 0)
			return 1;
		left -= put;
	}
	say("TAIL");
	return 0;
}

static volatile sig_atomic_t asked;

static void ask(int number)
{
	asked = number;
}

static int part_end_on_term(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	signal(SIGTERM, ask);
	say("ready\n");
	while (!asked)
		sleep_ms(5);
	say("asked to end\n");
	return 0;
}

/* Which signals are blocked or ignored at the start. */
static int part_signals(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	sigset_t blocked;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;
		if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			printf("ignored %d\n", number);
		if (sigismember(&blocked, number) == 1)
			printf("blocked %d\n", number);
	}
	printf("done\n");
	return 0;
}

static int part_write_file(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	int fd = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0644);
	if (fd < 0) {
		printf("%s\n", strerror(errno));
		return 1;
	}
	return write(fd, "written\n", 8) == 8 ? 0 : 1;
}

/* Sets the flag on the description of standard input, which its other holders share. */
static int part_nonblock_stdin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK) < 0;
}

static void *pin(void *ret_error)
{
	cpu_set_t set;
	*(int *)ret_error = pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
	if (*(int *)ret_error == 0)
		*(int *)ret_error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	return NULL;
}

/* What a program may do to itself and to its children: CPUs, scheduler, priorities. */
static int part_own_priority(int argc, char **argv)
{
	const struct sched_param param = { 0 };
	const int idle = 3 << 13;
	pthread_t thread;
	int error = -1;
	(void)argc;
	(void)argv;
	pid_t child = fork();
	if (child == 0)
		forever();
	if (pthread_create(&thread, NULL, pin, &error) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	const pid_t whose[] = { 0, getpid(), child };
	printf("thread: %s\n", strerror(error));
	for (int i = 0; i < 3; i++) {
		cpu_set_t set;
		if (sched_getaffinity(whose[i], sizeof(set), &set) < 0 ||
		    sched_setaffinity(whose[i], sizeof(set), &set) < 0)
			printf("affinity of %d: %s\n", i, strerror(errno));
		if (sched_setscheduler(whose[i], SCHED_IDLE, &param) < 0)
			printf("scheduler of %d: %s\n", i, strerror(errno));
		if (setpriority(PRIO_PROCESS, (id_t)whose[i], 19) < 0)
			printf("priority of %d: %s\n", i, strerror(errno));
		if (syscall(SYS_ioprio_set, 1, whose[i], idle) < 0)
			printf("io priority of %d: %s\n", i, strerror(errno));
	}
	(void)kill(child, SIGKILL); /* the cell's end takes it anyway */
	printf("done\n");
	return 0;
}

/* Changes its map without a pause, so that whoever looks at it waits for the lock of it. */
static void *churn(void *nothing)
{
	const size_t size = 256 << 20;
	for (;;) {
		char *block = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			continue;
		(void)madvise(block, size, MADV_NOHUGEPAGE); /* or its pages are had at once */
		(void)madvise(block, size, MADV_POPULATE_READ);
		(void)munmap(block, size);
	}
	return nothing;
}

/*
 * argv: processes, MB that they have together. Each of them seems to have all of it, so whoever
 * counts has to look closely. Never ends.
 */
static int part_hog(int argc, char **argv)
{
	long processes = argument(argc, argv, 1, 10);
	size_t size = (size_t)argument(argc, argv, 2, 1) << 20;
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return 1;
	memset(block, 1, size);
	ignore_signals();
	for (long i = 1; i < processes; i++)
		if (fork() == 0)
			break;
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		(void)pthread_create(&thread, NULL, churn, NULL); /* the others churn on */
	}
	churn(NULL);
	return 0;
}

/* As many inotify instances as there are. Never ends. */
static int part_hold_watchers(int argc, char **argv)
{
	int got = 0;
	(void)argc;
	(void)argv;
	while (got < 100000 && inotify_init() >= 0)
		got++;
	printf("%d\n", got);
	fflush(stdout);
	forever();
}

/* As many descriptors on their way through a socket as it may have. Never ends. */
static int part_hold_rights(int argc, char **argv)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int got = 0, ends[2] = { -1, -1 };
	(void)argc;
	(void)argv;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int)); /* the descriptor is 0 */
	do {
		if (got % 100 == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
			return 1;
		if (sendmsg(ends[0], &message, MSG_DONTWAIT) < 0)
			break;
	} while (++got < 100000);
	printf("%d %s\n", got, strerrorname_np(errno));
	fflush(stdout);
	forever();
}

/*
 * argv: two names, the most microseconds that they stay. They change places without a moment in
 * which one is missing. Never ends.
 */
static int part_swap(int argc, char **argv)
{
	const long most = argument(argc, argv, 3, 40);
	unsigned seed = 1;

	if (argc < 3)
		return 64;
	for (long i = 0;; i++) {
		if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) < 0)
			return 1;
		if (i == 0)
			say("swapping\n");
		const clock_t end = clock() + (clock_t)(rand_r(&seed) % (most + 1));
		while (clock() < end)
			;
	}
}

static const struct {
	const char *name;
	int (*play)(int argc, char **argv);
} parts[] = {
	{ "exit", part_exit },
	{ "kill_self", part_kill_self },
	{ "segv", part_segv },
	{ "sleep_ms", part_sleep_ms },
	{ "say_then_sleep", part_say_then_sleep },
	{ "double_fork_setsid", part_double_fork_setsid },
	{ "ignore_term", part_ignore_term },
	{ "child_ignores_term", part_child_ignores_term },
	{ "stop_self", part_stop_self },
	{ "stop_child", part_stop_child },
	{ "hold_stdout", part_hold_stdout },
	{ "print_forever", part_print_forever },
	{ "vfork_spin", part_vfork_spin },
	{ "fork_bomb", part_fork_bomb },
	{ "fork_many", part_fork_many },
	{ "close_stdio", part_close_stdio },
	{ "eat_heap", part_eat_heap },
	{ "burst", part_burst },
	{ "eat_many", part_eat_many },
	{ "eat_tmpfs", part_eat_tmpfs },
	{ "eat_memfd", part_eat_memfd },
	{ "burn_cpu", part_burn_cpu },
	{ "burn_children", part_burn_children },
	{ "burn_for", part_burn_for },
	{ "big_output", part_big_output },
	{ "end_on_term", part_end_on_term },
	{ "signals", part_signals },
	{ "write_file", part_write_file },
	{ "nonblock_stdin", part_nonblock_stdin },
	{ "own_priority", part_own_priority },
	{ "hog", part_hog },
	{ "hold_watchers", part_hold_watchers },
	{ "hold_rights", part_hold_rights },
	{ "swap", part_swap },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(argv[1], parts[i].name) == 0)
			return parts[i].play(argc - 1, argv + 1);
	fprintf(stderr, "vitro-actor: no part '%s'\n", argc > 1 ? argv[1] : "");
	return 64;
}
