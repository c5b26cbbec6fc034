/* SPDX-License-Identifier: Apache-2.0 */
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TALK_FD = 3 };

static long long of(json_t *input, const char *name)
{
	return json_integer_value(json_object_get(input, name));
}

static const char *text_of(json_t *input, const char *name)
{
	const char *text = json_string_value(json_object_get(input, name));

	return text ? text : "";
}

static void sleep_ms(long long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- looking ------------------------------------------------------------------------------- */

static json_t *search(json_t *input, vitro_task *task)
{
	(void)task;
	return json_integer(count_in_memory(text_of(input, "needle")));
}

/* The numbers of those that are open. */
static json_t *descriptors(json_t *input, vitro_task *task)
{
	json_t *open = json_array();

	(void)input;
	(void)task;
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			json_array_append_new(open, json_integer(fd));
	return open;
}

/* Runs a command. A tool's program is all that a tool is: what it starts is as free as it is. */
static json_t *run(json_t *input, vitro_task *task)
{
	static char out[1 << 18];
	json_t *words = json_object_get(input, "words");
	char *argv[32] = { 0 };
	int pair[2], status;
	size_t len = 0;

	(void)task;
	for (size_t i = 0; i < json_array_size(words) && i < 31; i++)
		argv[i] = (char *)json_string_value(json_array_get(words, i));
	if (pipe2(pair, O_CLOEXEC) < 0)
		return json_string("no pipe");
	pid_t pid = fork();

	if (pid == 0) {
		dup2(pair[1], 1);
		dup2(pair[1], 2);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	close(pair[1]);
	for (ssize_t got; (got = read(pair[0], out + len, sizeof(out) - len)) > 0;)
		len += (size_t)got;
	waitpid(pid, &status, 0);
	json_t *said = json_stringn(out, len);

	return json_pack("{s:i, s:o}", "code", WIFEXITED(status) ? WEXITSTATUS(status) : -1, "out",
			 said ? said : json_string("not UTF-8"));
}

/* Becomes a command, which is the occupant then. */
static json_t *become(json_t *input, vitro_task *task)
{
	json_t *words = json_object_get(input, "words");
	char *argv[32] = { 0 };

	(void)task;
	for (size_t i = 0; i < json_array_size(words) && i < 31; i++)
		argv[i] = (char *)json_string_value(json_array_get(words, i));
	execv(argv[0], argv);
	return json_string(strerror(errno));
}

/* A name in the folder that a cell has for itself. */
static const char *own(const char *name)
{
	static char path[512];
	const char *place = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/%s", place ? place : "/tmp", name);
	return path;
}

static int can_open(const char *place, const char *name, int flags)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", place, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What can be done to a cell without namespaces, of which the pid and the private folder are known:
 * to read, write, list and make files, to see a process's memory, and to signal it. */
static json_t *reach(json_t *input, vitro_task *task)
{
	const char *place = text_of(input, "place");
	pid_t pid = (pid_t)of(input, "pid");
	char proc[64];

	(void)task;
	snprintf(proc, sizeof(proc), "/proc/%d", pid);
	return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b}", "read",
			 can_open(place, "shown", O_RDONLY), "write",
			 can_open(place, "shown", O_WRONLY), "list",
			 can_open(place, ".", O_RDONLY | O_DIRECTORY), "make",
			 can_open(place, "made", O_WRONLY | O_CREAT | O_EXCL), "maps",
			 can_open(proc, "maps", O_RDONLY), "signal", kill(pid, SIGCONT) == 0);
}

/* Tells where it is, and stays for a while. Returns what it can do to itself. */
static json_t *show(json_t *input, vitro_task *task)
{
	char text[600];
	int file = open(own("shown"), O_CREAT | O_WRONLY, 0666);
	json_t *self = json_pack("{s:i, s:s}", "pid", getpid(), "place", getenv("TMPDIR"));

	snprintf(text, sizeof(text), "%d %s", getpid(), getenv("TMPDIR"));
	if (file < 0 || vitro_task_log(task, "info", text) < 0)
		return json_string("nothing can be shown");
	sleep_ms(of(input, "ms"));
	return reach(self, task);
}

/* Leaves all that it can for whoever comes next, and says what it found of those before. */
static json_t *leave(void)
{
	static int calls;
	static char *kept;
	struct stat st;
	json_t *found = json_pack("{s:i, s:b, s:b, s:b, s:b}", "calls", calls, "memory",
				  kept != NULL, "file", stat(own("left"), &st) == 0, "shm",
				  stat("/dev/shm/left", &st) == 0, "variable",
				  getenv("VITRO_LEFT") != NULL);
	char here[512];

	calls++;
	kept = strdup("left");
	json_object_set_new(found, "here", json_string(getcwd(here, sizeof(here))));
	json_object_set_new(found, "pid", json_integer(getpid()));
	int file = open(own("left"), O_CREAT | O_WRONLY, 0666);
	int shm = open("/dev/shm/left", O_CREAT | O_WRONLY, 0666);

	json_object_set_new(found, "left", json_boolean(file >= 0));
	json_object_set_new(found, "left_shm", json_boolean(shm >= 0));
	setenv("VITRO_LEFT", "1", 1);
	(void)!chdir("/");
	umask(0);
	if (fork() == 0) {
		setsid();
		for (;;)
			pause();
	}
	return found;
}

static json_t *linger(json_t *input, vitro_task *task)
{
	(void)task;
	if (of(input, "twice"))
		json_decref(leave());
	return leave();
}

static json_t *nap(json_t *input, vitro_task *task)
{
	(void)task;
	sleep_ms(of(input, "ms"));
	return json_true();
}

static json_t *spin(json_t *input, vitro_task *task)
{
	const clock_t end = clock() + of(input, "ms") * (CLOCKS_PER_SEC / 1000);

	(void)task;
	while (clock() < end)
		;
	return json_true();
}

/* ---- what the supervisor hears ------------------------------------------------------------- */

/* As src/launch/talk.h has it. An attacker knows it too. */
struct head {
	uint32_t kind, flags, name_len, reserved;
	uint64_t id, body_len;
};

enum { EXECUTE = 1, ANSWER, ASK, LOG, RESULT, ERROR };

static int say(uint32_t kind, uint64_t id, const char *name, const char *body, size_t len)
{
	char all[70000];
	const struct head head = {
		.kind = kind, .name_len = (uint32_t)strlen(name), .id = id, .body_len = len
	};
	size_t size = sizeof(head) + head.name_len + len, at = 0;

	memcpy(all, &head, sizeof(head));
	memcpy(all + sizeof(head), name, head.name_len);
	memcpy(all + sizeof(head) + head.name_len, body, len);
	while (at < size) {
		ssize_t sent = send(TALK_FD, all + at, size - at, MSG_NOSIGNAL);

		if (sent < 0)
			return -1;
		at += (size_t)sent;
	}
	return 0;
}

static void say_head(struct head head)
{
	(void)!write(TALK_FD, &head, sizeof(head));
}

static void send_descriptors(void)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(200 * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(200 * sizeof(int)) } };
	const struct head head = { .kind = LOG, .body_len = 5 };
	struct iovec parts[] = { { (void *)&head, sizeof(head) }, { (void *)"flood", 5 } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int fds[200];

	for (size_t i = 0; i < 200; i++)
		fds[i] = 1;
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	for (int i = 0; i < 100; i++)
		if (sendmsg(TALK_FD, &message, MSG_NOSIGNAL) < 0)
			return;
}

static _Noreturn void flood(uint32_t kind, const char *name, const char *body, size_t len)
{
	for (uint64_t id = 1;; id++)
		if (say(kind, id, name, body, len) < 0)
			for (;;)
				pause();
}

static void print_for_ever(void)
{
	static char bytes[1 << 16];

	memset(bytes, 'x', sizeof(bytes));
	while (write(1, bytes, sizeof(bytes)) > 0)
		;
}

static void read_nothing_but_ask(void)
{
	for (uint64_t id = 1; id < 2000000; id++)
		if (say(ASK, id, "outer", "{}", 2) < 0)
			break;
}

/* Breaks a rule of the call's socket, and gives no result. */
static json_t *talk(json_t *input, vitro_task *task)
{
	static char large[65536];
	const char *how = text_of(input, "how");

	(void)task;
	memset(large, 'f', sizeof(large));
	memcpy(large, "flood", 5);
	if (strcmp(how, "half a head") == 0)
		(void)!write(TALK_FD, "\4\0\0", 3);
	else if (strcmp(how, "half a body") == 0)
		say_head((struct head){ .kind = RESULT, .body_len = 100 });
	else if (strcmp(how, "a huge length") == 0)
		say_head((struct head){ .kind = RESULT, .body_len = 1ULL << 62 });
	else if (strcmp(how, "a huge name") == 0)
		say_head((struct head){ .kind = RESULT, .name_len = UINT32_MAX });
	else if (strcmp(how, "a huge log line") == 0)
		say_head((struct head){ .kind = LOG, .body_len = 1 << 20 });
	else if (strcmp(how, "no kind") == 0)
		say_head((struct head){ .kind = 77 });
	else if (strcmp(how, "what only the supervisor says") == 0)
		(void)say(EXECUTE, 0, "nap", "{}", 2);
	else if (strcmp(how, "an answer") == 0)
		(void)say(ANSWER, 4711, "", "1", 1);
	else if (strcmp(how, "a question of a negative number") == 0)
		(void)say(ASK, UINT64_MAX, "outer", "{}", 2);
	else if (strcmp(how, "a question of no name") == 0)
		(void)say(ASK, 1, "\377\1\"", "\377", 1);
	else if (strcmp(how, "a level of no name") == 0)
		(void)say(LOG, 1, "\377\1\"", "\377", 1);
	else if (strcmp(how, "descriptors") == 0)
		send_descriptors();
	else if (strcmp(how, "lines for ever") == 0)
		flood(LOG, "info", "flood", 5);
	else if (strcmp(how, "long lines for ever") == 0)
		flood(LOG, "info", large, sizeof(large));
	else if (strcmp(how, "questions for ever") == 0)
		flood(ASK, "nobody", "{}", 2);
	else if (strcmp(how, "questions whose answers nobody reads") == 0)
		read_nothing_but_ask();
	else if (strcmp(how, "output for ever") == 0)
		print_for_ever();
	else if (strcmp(how, "nothing, stopped") == 0)
		kill(getpid(), SIGSTOP);
	else
		return json_string("what?");
	for (;;)
		pause();
}

/* Two results, and more from a grandchild after them, while it spins. */
static json_t *outlive(json_t *input, vitro_task *task)
{
	const char *more = "999";

	(void)input;
	(void)task;
	if (fork() == 0) {
		setsid();
		for (;;) {
			(void)say(RESULT, 0, "", more, 3);
			(void)say(LOG, 0, "info", "late", 4);
		}
	}
	(void)say(RESULT, 0, "", "\"first\"", 7);
	(void)say(RESULT, 0, "", more, 3);
	(void)say(ERROR, 0, "Late", more, 3);
	while (getppid() >= 0)
		;
	return NULL;
}

/* ---- what others would like to have -------------------------------------------------------- */

/* A child that is not ours, but our parent's: 0, or why there is none. */
static json_t *adopt_out(json_t *input, vitro_task *task)
{
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);

	(void)input;
	(void)task;
	if (pid == 0)
		_exit(0);
	return json_integer(pid < 0 ? errno : 0);
}

/* Into a socket that nobody reads: how many are under way is counted for the user. */
static int send_one(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec part = { (void *)"x", 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

static long send_all(void)
{
	long count = 0;
	int pair[2], err = 0;

	while (err != ETOOMANYREFS && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
		while ((err = send_one(pair[0], 0)) == 0)
			count++;
	return count;
}

static long fork_all(void)
{
	long count = 0;

	for (pid_t pid; (pid = fork()) >= 0; count++)
		if (pid == 0)
			for (;;)
				pause();
	return count;
}

static long watch_all(void)
{
	long count = 0;

	while (inotify_init1(IN_CLOEXEC) >= 0)
		count++;
	return count;
}

static long queue_signals(void)
{
	const union sigval value = { 0 };
	sigset_t all;
	long count = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	while (sigqueue(getpid(), SIGRTMIN, value) == 0)
		count++;
	return count;
}

static long fill_tmp(void)
{
	static char bytes[1 << 16];
	int fd = open(own("full"), O_CREAT | O_WRONLY, 0600);
	long count = 0;

	signal(SIGXFSZ, SIG_IGN);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		count++;
	return count;
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : waitpid(pid, NULL, 0) < 0;
}

static int try_signal(void)
{
	const union sigval value = { 0 };

	return sigqueue(getpid(), SIGRTMIN + 1, value) < 0 ? errno : 0;
}

static int try_space(void)
{
	int file = open(own("have"), O_CREAT | O_WRONLY, 0600);

	return file < 0 || write(file, "x", 1) != 1 ? errno : 0;
}

/* One of each thing: 0, or why it cannot be had. */
static json_t *have(json_t *input, vitro_task *task)
{
	int pair[2] = { -1, -1 }, err = socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ? errno : 0;
	int watcher = inotify_init1(IN_CLOEXEC);
	int watching = watcher < 0 ? errno : 0;
	sigset_t all;

	(void)input;
	(void)task;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return json_pack("{s:i, s:i, s:i, s:i, s:i}", "descriptors",
			 err ? err : send_one(pair[0], 0), "processes", try_fork(), "watchers",
			 watching, "signals", try_signal(), "space", try_space());
}

/* As much as there is of one thing, held for a while. Returns what it cannot have any more. */
static json_t *take(json_t *input, vitro_task *task)
{
	static const struct {
		const char *name;
		long (*take)(void);
	} things[] = { { "descriptors", send_all },
		       { "processes", fork_all },
		       { "watchers", watch_all },
		       { "signals", queue_signals },
		       { "space", fill_tmp } };
	long count = -1;
	char text[64];

	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
		if (strcmp(things[i].name, text_of(input, "what")) == 0)
			count = things[i].take();
	snprintf(text, sizeof(text), "holding %ld", count);
	if (task)
		(void)vitro_task_log(task, "info", text);
	json_t *own = have(input, task);

	sleep_ms(of(input, "ms"));
	return own;
}

/* ---- tools --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	act_function *act;
} acts[] = {
	{ "become", become },   { "search", search }, { "run", run },
	{ "linger", linger },   { "nap", nap },       { "talk", talk },
	{ "outlive", outlive }, { "have", have },     { "adopt_out", adopt_out },
	{ "take", take },       { "spin", spin },     { "descriptors", descriptors },
	{ "show", show },       { "reach", reach },
};

act_function *act_of(const char *name)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(acts[i].name, name) == 0)
			return acts[i].act;
	return NULL;
}

static int call(vitro_task *task, act_function *act)
{
	json_t *output = act(json_loads(vitro_task_arguments(task, NULL), 0, NULL), task);

	return vitro_task_return(task, json_dumps(output, JSON_ENCODE_ANY));
}

#define TOOL(act)                               \
	static int call_##act(vitro_task *task) \
	{                                       \
		return call(task, act);         \
	}
TOOL(become)
TOOL(search)
TOOL(run)
TOOL(linger)
TOOL(nap)
TOOL(spin)
TOOL(talk)
TOOL(outlive)
TOOL(have)
TOOL(adopt_out)
TOOL(take)
TOOL(descriptors)
TOOL(reach)
TOOL(show)

const struct vitro_tool tools[] = {
	{ .name = "become", .function = call_become },
	{ .name = "search", .function = call_search },
	{ .name = "run", .function = call_run },
	{ .name = "linger", .function = call_linger },
	{ .name = "nap", .function = call_nap },
	{ .name = "spin", .function = call_spin },
	{ .name = "talk", .function = call_talk },
	{ .name = "outlive", .function = call_outlive },
	{ .name = "have", .function = call_have },
	{ .name = "adopt_out", .function = call_adopt_out },
	{ .name = "take", .function = call_take },
	{ .name = "reach", .function = call_reach },
	{ .name = "show", .function = call_show },
	{ .name = "descriptors", .function = call_descriptors },
	{ 0 },
};
