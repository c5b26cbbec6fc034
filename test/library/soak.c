/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in a row, of tools that behave in every way: each has one result, with the right status,
 * and when all are over nothing has grown: no descriptor, process, mount, cgroup or memory of the
 * client's or the supervisor's. Speaks TAP.
 *
 *	soak CALLS [SEED]
 *	soak --obey [SOCKET]     a client of test/soak, by a server's socket or a supervisor of its
 *own
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vitro.h>

enum {
	AT_ONCE = 24,
	WARM_UP = 1000, /* the calls before anything is counted */
	SLOTS = 65536,  /* calls that are remembered, one after the other, where they have no end */
	TIMES_MAX = 1 << 20,
	BIG = 300000, /* bytes of a result */
	PATIENCE_S = 30,
	/* How much memory may come to lie in a heap for good, by chance. */
	GROWTH_KB = 3000,
	GROWTH_SANITIZED_KB = 300000, /* as much of what is freed is kept for a while */
};

/* ---- the tools, in a cell ------------------------------------------------------------------ */

static int quick(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

static int big(vitro_task *task)
{
	static char text[BIG];

	memset(text, 'x', sizeof(text));
	text[0] = text[BIG - 1] = '"';
	return vitro_task_return_bytes(task, text, sizeof(text));
}

static int fail(vitro_task *task)
{
	return vitro_task_fail(task, "ValueError", "as it should");
}

static int crash(vitro_task *task)
{
	(void)task;
	(void)signal(SIGILL, SIG_DFL); /* a sanitizer may have its own */
	__builtin_trap();              /* signals may be denied, even to oneself */
	return 0;
}

static int leave(vitro_task *task)
{
	(void)task;
	_exit(0);
}

static int leave_in_anger(vitro_task *task)
{
	(void)task;
	_exit(7);
}

static int wait_on(vitro_task *task)
{
	(void)task;
	for (;;)
		(void)pause();
	return 0;
}

/* More than is kept, while somebody reads and somebody does not. */
static int flood(vitro_task *task)
{
	static char text[65536];

	memset(text, 'y', sizeof(text));
	for (int i = 0; i < 64; i++)
		if (write(1 + i % 2, text, sizeof(text)) < 0)
			return vitro_task_fail(task, "Unheard", "nobody reads");
	return vitro_task_return(task, "1");
}

/* Descendants that leave the group, stop, and flood: none may stay. */
static int family(vitro_task *task)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return vitro_task_fail(task, "NoFork", strerror(errno));
		if (pid > 0)
			continue;
		(void)setsid(); /* a child leads no group */
		if (i == 1)
			(void)raise(SIGSTOP);
		while (i == 2 && write(1, "still here\n", 11) > 0)
			;
		for (;;)
			(void)pause();
	}
	return vitro_task_return(task, "1");
}

static int eat(vitro_task *task)
{
	(void)task;
	for (;;) {
		char *bytes = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes != MAP_FAILED)
			memset(bytes, 1, 1 << 20);
	}
	return 0;
}

/* In the place that is the call's own. */
static int litter(vitro_task *task)
{
	char path[PATH_MAX];
	const char *place = getenv("TMPDIR");

	for (int i = 0; place && i < 20; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", place, i);
		int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

		if (fd < 0)
			return vitro_task_fail(task, "Old", path);
		(void)close(fd);
	}
	return vitro_task_return(task, "1");
}

static int garbage(vitro_task *task)
{
	(void)task;
	(void)!write(3, "garbage garbage garbage garbage garbage garbage", 48);
	for (;;)
		(void)pause();
	return 0;
}

static const struct vitro_tool tools[] = {
	{ .name = "quick", .function = quick },
	{ .name = "big", .function = big },
	{ .name = "fail", .function = fail },
	{ .name = "crash", .function = crash },
	{ .name = "leave", .function = leave },
	{ .name = "leave_in_anger", .function = leave_in_anger },
	{ .name = "wait", .function = wait_on },
	{ .name = "flood", .function = flood },
	{ .name = "family", .function = family },
	{ .name = "eat", .function = eat },
	{ .name = "litter", .function = litter },
	{ .name = "garbage", .function = garbage },
	{ 0 },
};

/* What is called, how often among all, and what must come of it. */
static const struct kind {
	const char *name, *tool;
	unsigned share;
	enum vitro_status status;
	int64_t wall_ms;
	bool cancel;
	size_t value_len; /* 0: any */
} kinds[] = {
	{ "ok", "quick", 300, VITRO_OK, 0, false, 0 },
	{ "big", "big", 30, VITRO_OK, 0, false, BIG },
	{ "litter", "litter", 30, VITRO_OK, 0, false, 1 },
	{ "error", "fail", 40, VITRO_ERROR, 0, false, 0 },
	{ "crash", "crash", 30, VITRO_CRASHED, 0, false, 0 },
	{ "exit", "leave", 20, VITRO_NO_RESULT, 0, false, 0 },
	{ "exit 7", "leave_in_anger", 20, VITRO_ERROR, 0, false, 0 },
	{ "timeout", "wait", 20, VITRO_TIMEOUT, 20, false, 0 },
	{ "cancel", "wait", 30, VITRO_CANCELLED, 0, true, 0 },
	{ "flood", "flood", 10, VITRO_OK, 0, false, 1 },
	{ "family", "family", 20, VITRO_OK, 0, false, 1 },
	{ "garbage", "garbage", 10, VITRO_CRASHED, 0, false, 0 },
	{ "memory", "eat", 2, VITRO_MEMORY_LIMIT, 0, false, 0 },
	{ "refused", "nobody", 10, VITRO_REFUSED, 0, false, 0 },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- what there is ------------------------------------------------------------------------- */

struct state {
	long client_fds, supervisor_fds, processes, mounts, cgroups, folders, client_kb,
		supervisor_kb;
};

static pid_t supervisor;
static char temporary[] =
	"/tmp/soak-XXXXXX"; /* where cells without namespaces have their folders */
static bool bare;           /* whether these cells are such */

static void die(const char *what)
{
	printf("Bail out! %s\n", what);
	exit(1);
}

static long number_in(const char *path, const char *key)
{
	char line[512];
	long number = -1;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			number = strtol(line + strlen(key), NULL, 10);
	if (file)
		(void)fclose(file);
	return number;
}

static long count_lines(const char *path)
{
	long count = 0;
	FILE *file = fopen(path, "r");
	int c;

	while (file && (c = fgetc(file)) != EOF)
		count += c == '\n';
	if (file)
		(void)fclose(file);
	return count;
}

/* Entries that begin so; below: in folders too. */
static long count_names(const char *folder, const char *start, int below)
{
	char path[PATH_MAX];
	long count = 0;
	DIR *stream = opendir(folder);
	const struct dirent *entry;
	struct stat st;

	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.')
			continue;
		count += strncmp(entry->d_name, start, strlen(start)) == 0;
		if (below &&
		    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
			    (int)sizeof(path) &&
		    lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			count += count_names(path, start, below - 1);
	}
	if (stream)
		(void)closedir(stream);
	return count;
}

static pid_t parent_of(const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%s/status", name);
	return (pid_t)number_in(path, "PPid:");
}

/* Whether it was started with this in its environment. */
static bool has_variable(pid_t pid, const char *variable)
{
	char path[64], text[65536];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	FILE *file = fopen(path, "r");
	size_t len = file ? fread(text, 1, sizeof(text), file) : 0;

	if (file)
		(void)fclose(file);
	return memmem(text, len, variable, strlen(variable) + 1) != NULL;
}

/* It is nobody's child here. What it forks has its environment. */
static pid_t find_supervisor(const char *variable)
{
	DIR *stream = opendir("/proc");
	const struct dirent *entry;
	pid_t found = 0;

	while (stream && !found && (entry = readdir(stream))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && has_variable(pid, variable) &&
		    !has_variable(parent_of(entry->d_name), variable))
			found = pid;
	}
	if (stream)
		(void)closedir(stream);
	return found;
}

/* Its children and theirs: zygote, spawner, inits, occupants, lookers. */
static long count_processes(void)
{
	DIR *stream = opendir("/proc");
	const struct dirent *entry;
	long count = 0;

	while (stream && (entry = readdir(stream))) {
		pid_t parent = atoi(entry->d_name) > 0 ? parent_of(entry->d_name) : 0;

		for (int depth = 0; parent > 1 && depth < 5; depth++) {
			char name[16];

			if (parent == supervisor) {
				count++;
				break;
			}
			(void)snprintf(name, sizeof(name), "%d", parent);
			parent = parent_of(name);
		}
	}
	if (stream)
		(void)closedir(stream);
	return count;
}

static void look(struct state *ret_state)
{
	char path[64], start[32];

	(void)snprintf(start, sizeof(start), "vitro-%d.", supervisor);
	ret_state->client_fds = count_names("/proc/self/fd", "", 0);
	ret_state->mounts = count_lines("/proc/self/mountinfo");
	ret_state->client_kb = number_in("/proc/self/status", "RssAnon:");
	ret_state->cgroups = count_names("/sys/fs/cgroup", start, 6);
	ret_state->folders = count_names(temporary, "", 0);
	ret_state->processes = count_processes();
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", supervisor);
	ret_state->supervisor_fds = count_names(path, "", 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", supervisor);
	ret_state->supervisor_kb = number_in(path, "RssAnon:");
}

/* ---- the calls ----------------------------------------------------------------------------- */

struct call {
	const struct kind *kind;
	char id[32];
	bool over;
	int64_t since; /* microseconds */
};

static vitro_toolhost *host;
static struct call *calls;
static unsigned long slots; /* how many calls there are room for */
static unsigned long begun, over, wrong;
static unsigned long hurt;                    /* whose cell somebody killed */
static bool hurts;                            /* whether somebody does */
static uint32_t times[TIMES_MAX], time_count; /* of plain calls, in microseconds */
static unsigned long of_kind[KINDS];
static unsigned dice;

static unsigned roll(unsigned below)
{
	dice = dice * 1103515245 + 12345;
	return (dice >> 16) % below;
}

static void complain(const struct call *call, const vitro_result *result, const char *what)
{
	const char *error = vitro_result_error(result);

	if (++wrong <= 20)
		printf("# %s, %s: %s: %s, %s\n", call->id, call->kind->name, what,
		       vitro_status_name(vitro_result_status(result)), error ? error : "-");
}

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* of that clock: cannot fail */
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_hurt(const vitro_result *result)
{
	enum vitro_status status = vitro_result_status(result);

	return hurts && (status == VITRO_LOST || status == VITRO_CRASHED);
}

static void done(void *user, vitro_result *result)
{
	struct call *call = user;
	size_t len = 0;

	if (call->kind == &kinds[0] && time_count < TIMES_MAX)
		times[time_count++] = (uint32_t)(now_us() - call->since);

	if (call->over)
		complain(call, result, "a second result");
	call->over = true;
	over++;
	if (vitro_result_status(result) != call->kind->status && is_hurt(result))
		hurt++;
	else if (vitro_result_status(result) != call->kind->status)
		complain(call, result, "the wrong status");
	else if (strcmp(vitro_result_call_id(result), call->id) != 0)
		complain(call, result, "another's result");
	else if (vitro_result_value(result, &len) && call->kind->value_len &&
		 len != call->kind->value_len)
		complain(call, result, "a value of the wrong size");
	vitro_result_free(result);
}

static const struct kind *choose(bool eats)
{
	unsigned all = 0, at;

	for (size_t i = 0; i < KINDS; i++)
		all += kinds[i].share;
	for (;;) {
		at = roll(all);
		for (size_t i = 0; i < KINDS; at -= kinds[i++].share)
			if (at < kinds[i].share) {
				if (kinds[i].status == VITRO_MEMORY_LIMIT && !eats)
					break;
				of_kind[i]++;
				return &kinds[i];
			}
	}
}

static void begin(unsigned long number, bool eats)
{
	struct call *call = &calls[number % slots];

	call->kind = choose(eats);
	call->over = false;
	call->since = now_us();
	(void)snprintf(call->id, sizeof(call->id), "c%lu", number);
	const struct vitro_request request = { .tool = call->kind->tool,
					       .call_id = call->id,
					       .wall_ms = call->kind->wall_ms,
					       .user = call };

	if (vitro_submit(host, &request, done) < 0)
		die("no memory");
	/* At once, or when it has begun. */
	if (call->kind->cancel && roll(2))
		(void)poll(NULL, 0, 1);
	if (call->kind->cancel)
		(void)vitro_cancel(host, call->id); /* its result tells */
}

/* Until something has been heard. */
static void hear(void)
{
	struct pollfd fd = { .fd = vitro_toolhost_fd(host), .events = POLLIN };

	if (poll(&fd, 1, PATIENCE_S * 1000) == 0) {
		for (unsigned long i = 0; i < begun && i < slots; i++)
			if (!calls[i].over)
				printf("# no result of %s, %s\n", calls[i].id, calls[i].kind->name);
		die("nothing happens");
	}
	(void)vitro_dispatch(host);
}

static void run(unsigned long count, bool eats)
{
	unsigned long all = over + count;

	while (over < all) {
		unsigned long at_once = 1 + roll(AT_ONCE), before = over;

		while (begun < all && begun - over < at_once)
			begin(begun++, eats);
		hear();
		if (over / 500 != before / 500)
			printf("# %lu\n", over);
	}
}

/* Until no cell is being made or ended, and no more is there than before; or for as long as that
 * may take. */
static void settle(struct state *ret_state, const struct state *before)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	const time_t end = time(NULL) + PATIENCE_S;
	struct vitro_counts counts;

	while (time(NULL) < end) {
		vitro_toolhost_count(host, &counts);
		look(ret_state);
		/* Zygote, spawner where there are namespaces, and two for each cell. */
		if (!counts.refilling && !counts.live && !counts.waiting &&
		    ret_state->processes == (bare ? 1 : 2) + 2 * (long)counts.ready &&
		    (!before || (ret_state->processes <= before->processes &&
				 ret_state->supervisor_fds <= before->supervisor_fds &&
				 ret_state->supervisor_kb <= before->supervisor_kb + GROWTH_KB &&
				 ret_state->cgroups <= before->cgroups &&
				 ret_state->folders <= before->folders)))
			return;
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int number;
static bool failed;

static void check(const char *what, long before, long after, long slack)
{
	bool ok = before >= 0 && after >= 0 && after <= before + slack;

	printf("%sok %d - %s: %ld, then %ld\n", ok ? "" : "not ", ++number, what, before, after);
	failed |= !ok;
}

static bool is_sanitized(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true;
#else
	return false;
#endif
}

static void compare(const struct state *before, const struct state *after)
{
	long slack = is_sanitized() ? GROWTH_SANITIZED_KB : GROWTH_KB;

	check("calls with a wrong result", 0, (long)wrong, 0);
	check("descriptors of the client", before->client_fds, after->client_fds, 0);
	check("descriptors of the supervisor", before->supervisor_fds, after->supervisor_fds, 0);
	check("processes", before->processes, after->processes, 0);
	check("mounts", before->mounts, after->mounts, 0);
	check("cgroups", before->cgroups, after->cgroups, 0);
	check("private folders", before->folders, after->folders, 0);
	check("KB of the client", before->client_kb, after->client_kb, slack);
	check("KB of the supervisor", before->supervisor_kb, after->supervisor_kb, slack);
}

/* What a machine cannot hold is asked for nevertheless, where the environment says so. */
static void ask_what_can_be_had(vitro_policy *policy)
{
	const char *flags = getenv("VITRO_TEST_FLAGS");
	struct vitro_error error;

	if (flags && strstr(flags, "require=best-effort") &&
	    vitro_policy_set(policy, "require", "best-effort", &error) < 0)
		die(error.text);
}

static bool has_namespaces(void)
{
	char *text = vitro_toolhost_capabilities(host, NULL);
	bool has = text && strstr(text, "\"processes\": \"pidns\"");

	free(text);
	return has;
}

static void refuse(const char *why)
{
	bool refused = strncmp(why, "refused: ", 9) == 0;

	(void)rmdir(temporary); /* empty, or somebody looks at it */
	printf(refused ? "1..0 # SKIP %s\n" : "Bail out! %s\n", why);
	exit(!refused);
}

static void start(const char *socket)
{
	struct vitro_options options = { .ready_min = 4, .ready_max = 4, .socket = socket };
	struct vitro_error error;
	char text[64];
	vitro_policy *policy = vitro_policy_new();

	options.policy = policy;
	ask_what_can_be_had(policy);
	(void)snprintf(text, sizeof(text), "SOAK_CLIENT=%d", getpid());
	/* As open as /tmp: cells may have users of their own. */
	if (!mkdtemp(temporary) || chmod(temporary, 01777) < 0 ||
	    setenv("TMPDIR", temporary, 1) < 0)
		die("no temporary folder");
	/* Its heap gives back what is free at once, so that what it has is what it uses. */
	if (putenv(text) != 0 || setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1) < 0 ||
	    setenv("MALLOC_TRIM_THRESHOLD_", "65536", 1) < 0)
		die("no memory");
	if (vitro_policy_set(policy, "limits.memory_mb", "96", &error) < 0 ||
	    vitro_toolhost_new(&host, tools, &options, &error) < 0)
		refuse(error.text);
	vitro_policy_free(policy);
	bare = !has_namespaces();
	(void)unsetenv("SOAK_CLIENT"); /* of a name without '=': cannot fail */
	supervisor = find_supervisor(text);
}

static int compare_times(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* A line "go SECONDS": calls for so long. What came of them is a line of JSON. */
static int obey(const char *socket)
{
	char line[64];

	hurts = true;
	dice = (unsigned)getpid();
	start(socket);
	while (fgets(line, sizeof(line), stdin)) {
		const int64_t until = now_us() + (int64_t)(strtod(line + 3, NULL) * 1e6);
		const unsigned long first = over;

		wrong = hurt = time_count = 0;
		while (now_us() < until || begun > over) {
			unsigned long at_once = now_us() < until ? 1 + roll(AT_ONCE / 4) : 0;

			while (begun - over < at_once)
				begin(begun++, true);
			hear();
		}
		qsort(times, time_count, sizeof(times[0]), compare_times);
		printf("{\"calls\": %lu, \"wrong\": %lu, \"hurt\": %lu, \"p50_us\": %u, "
		       "\"p99_us\": %u}\n",
		       over - first, wrong, hurt, time_count ? times[time_count / 2] : 0,
		       time_count ? times[time_count - 1 - time_count / 100] : 0);
	}
	vitro_toolhost_free(host);
	(void)rmdir(temporary); /* empty, or test/soak tells */
	return 0;
}

int main(int argc, char **argv)
{
	struct state before, after, end;
	bool eats = !is_sanitized(); /* one has no use for so little memory */

	vitro_host_main(argc, argv, tools);
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;

	dice = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	slots = argc > 1 && strcmp(argv[1], "--obey") == 0 ? SLOTS : count + WARM_UP;
	calls = calloc(slots, sizeof(*calls));
	if (!calls)
		die("no memory");
	for (unsigned long i = 0; i < slots; i++)
		calls[i].id[0] = '?'; /* all of it is there from now on */
	if (argc > 1 && strcmp(argv[1], "--obey") == 0)
		return obey(argv[2]);
	start(NULL);
	printf("1..10\n# %lu calls, seed %u\n", count, dice);
	if (!supervisor)
		die("there is no supervisor to be found");
	run(WARM_UP, eats);
	settle(&before, NULL);
	run(count, eats);
	settle(&after, &before);
	for (size_t i = 0; i < KINDS; i++)
		printf("# %lu %s\n", of_kind[i], kinds[i].name);
	compare(&before, &after);
	vitro_toolhost_free(host);
	free(calls);
	look(&end); /* of one that has ended there are no descriptors */
	check("what is left at the end", 0,
	      end.processes + end.cgroups + end.supervisor_fds + end.folders, 0);
	(void)rmdir(temporary); /* what is in it is told of above */
	return failed;
}
