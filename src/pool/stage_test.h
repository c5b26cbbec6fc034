/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of pools: tools, a zygote that is the test itself started afresh, and calls of them.
 * And what holds for cells of either kind, bare ones and those of a hull.
 */
#pragma once

#include "launch/stage_test.h"

#include <poll.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/skip_test.h"
#include "launch/spawner.h"
#include "launch/talk.h"
#include "launch/zygote.h"
#include "plan/pooled.h"
#include "pool/pool.h"
#include "pool/warm.h"

/* ---- the tools, in an occupant ------------------------------------------------------------- */

static struct vt_talk_in heard;

static void say(uint32_t kind, uint64_t id, const char *name, const char *body, size_t len)
{
	const struct vt_talk talk = { .kind = kind,
				      .id = id,
				      .name = (char *)name,
				      .name_len = strlen(name),
				      .body = (char *)body,
				      .body_len = len };
	struct vt_err err;
	size_t at = 0;

	if (vt_talk_send(VT_OCCUPANT_CALL_FD, 0, &talk, &at, &err) < 0)
		_exit(9);
}

static void hear(struct vt_talk *talk)
{
	struct vt_err err;

	if (vt_talk_next(&heard, VT_OCCUPANT_CALL_FD, 0, talk, &err) != 1)
		_exit(8);
}

static void be_big(const char *size)
{
	size_t len = strtoul(size, NULL, 10);
	char *bytes = malloc(len);

	if (!bytes)
		_exit(7);
	memset(bytes, 'x', len);
	say(VT_TALK_RESULT, 0, "", bytes, len);
}

/* More than the limit, and not all that there is. */
static void eat(void)
{
	for (int i = 0; i < 300; i++) {
		char *bytes = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes != MAP_FAILED)
			memset(bytes, 1, 1 << 20);
	}
}

/* Goes on in a child of nobody's, in a session of its own, and returns that one's pid to the tool.
 */
static pid_t start_daemon(void)
{
	int ends[2];
	pid_t pid = -1;

	if (pipe(ends) < 0)
		_exit(6);
	if (fork() == 0) {
		if (fork() == 0) {
			(void)setsid();
			pid = getpid();
			(void)!write(ends[1], &pid, sizeof(pid));
			for (;;)
				(void)pause();
		}
		_exit(0);
	}
	if (read(ends[0], &pid, sizeof(pid)) != sizeof(pid))
		_exit(6);
	return pid;
}

/* Ends, while a child of it never stops talking. */
static _Noreturn void leave_talker(void)
{
	static struct {
		struct vt_talk_head head;
		char level[4];
	} __attribute__((packed)) lines[1024];
	int ends[2];

	for (size_t i = 0; i < 1024; i++) {
		lines[i].head = (struct vt_talk_head){ .kind = VT_TALK_LOG, .name_len = 4 };
		memcpy(lines[i].level, "info", 4);
	}
	if (pipe(ends) < 0)
		_exit(6);
	if (fork() != 0) {
		(void)!read(ends[0], lines, 1);
		_exit(3);
	}
	for (;;) {
		(void)!write(VT_OCCUPANT_CALL_FD, lines, sizeof(lines));
		(void)!write(ends[1], "x", 1);
		ends[1] = -1;
	}
}

static void leave(void)
{
	char path[PATH_MAX];
	const char *home = getenv("HOME");

	(void)snprintf(path, sizeof(path), "%s/left", home ? home : "nowhere"); /* fits */
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	say(VT_TALK_RESULT, 0, "", fd < 0 ? "old" : "new", 3);
}

/* Who it is: its init, a process that it leaves behind, and its folder. */
static void tell_self(uint32_t kind)
{
	char text[256], cwd[128];
	const char *home = getenv("HOME");

	if (!getcwd(cwd, sizeof(cwd)))
		_exit(6);
	int len = snprintf(text, sizeof(text), "%d %d %u %s %s", getppid(), start_daemon(),
			   getuid(), home ? home : "nowhere", cwd); /* fits */

	say(kind, 0, kind == VT_TALK_LOG ? "info" : "", text, (size_t)len);
}

static _Noreturn void be_tool(const char *name, char *arguments, size_t len)
{
	struct vt_talk answer;

	if (strcmp(name, "echo") == 0) {
		say(VT_TALK_RESULT, 0, "", arguments, len);
	} else if (strcmp(name, "big") == 0) {
		be_big(arguments);
	} else if (strcmp(name, "fail") == 0) {
		say(VT_TALK_ERROR, 0, "ValueError", arguments, len);
	} else if (strcmp(name, "print") == 0) {
		(void)!write(1, "out", 3);
		(void)!write(2, "err", 3);
		say(VT_TALK_LOG, 0, "info", "logged", 6);
		say(VT_TALK_RESULT, 0, "", "1", 1);
	} else if (strcmp(name, "ask") == 0) {
		say(VT_TALK_ASK, 7, "other", arguments, len);
		hear(&answer);
		say(VT_TALK_RESULT, 0, "", answer.body, answer.body_len);
	} else if (strcmp(name, "ask and hang up") == 0) {
		say(VT_TALK_ASK, 7, "other", arguments, len);
		(void)!read(VT_OCCUPANT_CALL_FD, &answer, 1);
		(void)close(VT_OCCUPANT_CALL_FD);
	} else if (strcmp(name, "crash") == 0) {
		(void)raise(SIGSEGV);
	} else if (strcmp(name, "exit") == 0) {
		_exit(atoi(arguments));
	} else if (strcmp(name, "garbage") == 0) {
		(void)!write(VT_OCCUPANT_CALL_FD, "garbage garbage garbage garbage garbage", 40);
	} else if (strcmp(name, "eat") == 0) {
		eat();
	} else if (strcmp(name, "canary") == 0) {
		/* what the kernel gave the program when it was executed */
		say(VT_TALK_RESULT, 0, "", (const char *)getauxval(AT_RANDOM), 16);
	} else if (strcmp(name, "leave talker") == 0) {
		leave_talker();
	} else if (strcmp(name, "leave") == 0) {
		leave();
	} else if (strcmp(name, "self") == 0) {
		tell_self(VT_TALK_RESULT);
	} else if (strcmp(name, "self and wait") == 0) {
		tell_self(VT_TALK_LOG);
	}
	/* what is left of it never ends by itself */
	for (;;)
		(void)pause();
}

/* mode is the program's first word; "": it has none. */
static _Noreturn void be_zygote(const char *mode)
{
	struct vt_zygote zygote;
	struct vt_talk talk;
	struct vt_err err;

	if (strcmp(mode, "hang") == 0) {
		(void)!write(2, "waiting", 7);
		(void)pause();
	}
	if (strcmp(mode, "fail") == 0 && vt_zygote_join(&zygote, 3, &err) == 0) {
		(void)vt_fail(&err, VT_STEP_COMMAND, ENOEXEC, "red \033[31m");
		vt_zygote_fail(&zygote, &err);
		_exit(4);
	}
	if (strncmp(mode, "map ", 4) == 0 &&
	    mmap(NULL, 4096, PROT_READ,
		 MAP_ANONYMOUS | (strcmp(mode, "map shared") == 0 ? MAP_SHARED : MAP_PRIVATE), -1,
		 0) == MAP_FAILED)
		_exit(6);
	if (vt_zygote_join(&zygote, 3, &err) < 0 || vt_zygote_serve(&zygote, &err) < 0)
		_exit(4);
	vt_talk_in_init(&heard, 256 << 20);
	if (vt_zygote_park(&err) < 0)
		_exit(5);
	hear(&talk);
	be_tool(talk.name, talk.body, talk.body_len);
}

/* ---- the supervisor ------------------------------------------------------------------------ */

static bool bare;                  /* whether the cells of the next pool are, */
static enum vt_sweep sweep;        /* and how those are ended */
static struct vt_cgroup_site site; /* where they have cgroups; zeroed: nowhere */

struct watched {
	struct vt_loop loop;
	struct stage stage;
	struct vt_pool *pool;
	struct vt_children children;
	int fds_before;
	int self;      /* this program */
	unsigned over; /* calls */
	struct vt_timer patience;
};

struct made {
	struct vt_pool_call call; /* first: it is found by it */
	struct watched *watched;
	char name[32], arguments[64];
	struct vt_verdict verdict;
	char value[256], out[64], err[64], log[256];
	size_t value_len;
	bool unreaped;
	void (*at_log)(struct made *made); /* NULL: it is not waited for */
	bool over;
};

static void take_output(struct vt_pool_call *call, int stream, const char *bytes, size_t len)
{
	struct made *made = (struct made *)call;

	strncat(stream == 1 ? made->out : made->err, bytes, len);
}

static void take_log(struct vt_pool_call *call, const char *level, const char *text, size_t len)
{
	struct made *made = (struct made *)call;

	assert_string_equal(level, "info");
	strncat(made->log, text, len);
	if (made->at_log)
		made->at_log(made);
}

static void answer(struct vt_pool_call *call, uint64_t id, const char *tool, const char *arguments,
		   size_t len)
{
	assert_int_equal(id, 7);
	assert_string_equal(tool, "other");
	vt_pool_answer(call, id, true, arguments, len);
}

static void take_done(struct vt_pool_call *call, const struct vt_outcome *outcome)
{
	struct made *made = (struct made *)call;

	assert_false(made->over);
	made->over = true;
	made->verdict = outcome->result.verdict;
	made->value_len = outcome->value_len;
	if (outcome->value)
		memcpy(made->value, outcome->value,
		       outcome->value_len < 255 ? outcome->value_len : 255);
	made->unreaped = outcome->result.unreaped;
	made->watched->over++;
	made->watched->loop.over = true;
}

static const struct vt_pool_events events = {
	.output = take_output, .log = take_log, .ask = answer, .done = take_done
};

static void out_of_patience(struct vt_timer *timer)
{
	(void)timer;
	fail_msg("nothing happens");
}

static unsigned logged;        /* lines, of any pool */
static const char *to_be_told; /* in one of them; NULL: nothing is looked for */
static unsigned told;          /* so many had it */
static int64_t start_ms;       /* of the next pool; 0: the usual */
static const char *advice;     /* the same: its zygote is an interpreter; NULL: it is not */

static void log_to_test(void *user, int level, const char *text)
{
	(void)user;
	logged++;
	told += to_be_told && strstr(text, to_be_told);
	print_message("log %d: %s\n", level, text);
}

static void plan_pooled(struct stage *stage)
{
	struct vt_err err;

	stage->plan.pooled = true;
	stage->plan.arena = vt_arena_new();
	stage->plan.can_look = true;
	if (site.version != VT_CGROUP_NONE) {
		stage->plan.cgroup_site = site;
		stage->plan.cgroup.memory_bytes = stage->plan.memory_bytes;
		stage->plan.watched_memory_bytes = -1;
	}
	if (!bare) {
		stage->plan.own_proc = true;
		assert_int_equal(vt_pooled_divide(&stage->plan, &err), 0);
		return;
	}
	strcat(stage->scratch, "-000000000000");
	(void)snprintf(stage->home, sizeof(stage->home), "HOME=%.58s", stage->scratch); /* fits */
}

static void start_watched_as(struct watched *w, const char *mode)
{
	static char program[PATH_MAX];
	static char *argv[3];
	struct vt_err err;

	*w = (struct watched){ .fds_before = count_fds() };
	argv[0] = program;
	argv[1] = (char *)mode;
	w->self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	assert_int_equal(vt_loop_init(&w->loop, &err), 0);
	if (bare)
		plan_bare(&w->stage, sweep, "");
	else
		plan(&w->stage, "");
	w->stage.plan.wall_ms = 10000;
	w->stage.plan.cpu_ms = w->stage.plan.watched_tmp_bytes = -1;
	w->stage.plan.watched_memory_bytes = 64 << 20;
	w->stage.plan.cpus = 2;
	w->stage.plan.memory_bytes = 64 << 20;
	w->stage.plan.result_bytes = 8 << 20;
	w->stage.plan.stdout_bytes = w->stage.plan.stderr_bytes = 1 << 20;
	plan_pooled(&w->stage);
	w->children.loop = &w->loop;
	const struct vt_pool_options options = {
		.plan = &w->stage.plan,
		.program = program,
		.argv = argv,
		.program_fd = -1,
		.spawner_fd = w->self,
		.children = &w->children,
		.ready_min = 2,
		.ready_max = 8,
		.live_max = 16,
		.queue_ms = 10000,
		.forks_max = 6,
		.start_ms = start_ms,
		.advice = advice,
		.preloads = mode && strcmp(mode, "learner") == 0,
		.learns = mode && strcmp(mode, "learner") == 0,
		.log = log_to_test,
	};

	if (vt_pool_new(&w->loop, &options, &w->pool, &err) < 0)
		fail_msg("%s", err.what);
	w->patience = (struct vt_timer){ .fire = out_of_patience };
	vt_loop_add_timer(&w->loop, &w->patience);
}

static void start_watched(struct watched *w)
{
	start_watched_as(w, NULL);
}

static void end_watched(struct watched *w)
{
	vt_pool_free(w->pool);
	vt_arena_free(w->stage.plan.arena);
	vt_children_done(&w->children, 10 * VT_NS_PER_S);
	vt_loop_done(&w->loop);
	vt_fd_close(&w->self);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count_fds(), w->fds_before);
}

static void submit(struct watched *w, struct made *made, const char *tool, const char *arguments)
{
	*made = (struct made){ .watched = w };
	strcpy(made->name, tool);
	strcpy(made->arguments, arguments);
	made->call = (struct vt_pool_call){ .events = &events,
					    .name = made->name,
					    .name_len = strlen(tool),
					    .arguments = made->arguments,
					    .arguments_len = strlen(arguments) };
	vt_pool_submit(w->pool, &made->call);
}

static void run_until(struct watched *w, unsigned over)
{
	struct vt_err err;

	while (w->over < over) {
		w->loop.over = false;
		vt_timer_set(&w->patience, vt_clock_now() + 15 * VT_NS_PER_S);
		assert_int_equal(vt_loop_run(&w->loop, &err), 0);
	}
}

static struct made *call_one(struct watched *w, const char *tool, const char *arguments)
{
	static struct made made;

	submit(w, &made, tool, arguments);
	run_until(w, w->over + 1);
	return &made;
}

static void end_loop(struct vt_timer *timer)
{
	struct vt_loop *loop = timer->owner;

	loop->over = true;
}

static void run_for(struct watched *w, int64_t ms)
{
	struct vt_timer timer = { .fire = end_loop, .owner = &w->loop };
	struct vt_err err;

	vt_loop_add_timer(&w->loop, &timer);
	vt_timer_set(&timer, vt_clock_now() + ms * VT_NS_PER_MS);
	vt_timer_set(&w->patience, INT64_MAX);
	w->loop.over = false;
	assert_int_equal(vt_loop_run(&w->loop, &err), 0);
	vt_loop_remove_timer(&w->loop, &timer);
}

/* Until the log has told of something. */
static void run_until_told(struct watched *w, unsigned times)
{
	for (int ms = 0; told < times; ms += 5) {
		if (ms > PATIENCE_MS)
			fail_msg("nobody tells that '%s'", to_be_told);
		run_for(w, 5);
	}
}

static void test_results(void **state)
{
	struct watched w;
	struct made *made;

	(void)state;
	start_watched(&w);
	made = call_one(&w, "echo", "hello");
	assert_int_equal(made->verdict.status, VT_STATUS_OK);
	assert_string_equal(made->value, "hello");
	made = call_one(&w, "fail", "no such thing");
	assert_int_equal(made->verdict.status, VT_STATUS_ERROR);
	assert_string_equal(made->verdict.type, "ValueError");
	assert_string_equal(made->verdict.message, "no such thing");
	made = call_one(&w, "print", "");
	assert_string_equal(made->out, "out");
	assert_string_equal(made->err, "err");
	assert_string_equal(made->log, "logged");
	made = call_one(&w, "ask", "me");
	assert_string_equal(made->value, "me");
	made = call_one(&w, "big", "5000000");
	assert_int_equal(made->verdict.status, VT_STATUS_OK);
	assert_int_equal(made->value_len, 5000000);
	end_watched(&w);
}

static bool is_held;

static void answer_much(struct vt_pool_call *call, uint64_t id, const char *tool,
			const char *arguments, size_t len)
{
	static char much[4 << 20];

	(void)tool, (void)arguments, (void)len;
	is_held = true;
	vt_pool_answer(call, id, true, much, sizeof(much));
}

static bool tell_held(struct vt_pool_call *call)
{
	(void)call;
	return is_held;
}

/* Nor is there anything to hear: its maker has no room for it. */
static void test_one_that_hung_up_costs_nothing(void **state)
{
	const struct vt_pool_events held = { .ask = answer_much,
					     .done = take_done,
					     .full = tell_held };
	struct timespec before, after;
	struct made made;
	struct watched w;

	(void)state;
	start_watched(&w);
	submit(&w, &made, "ask and hang up", "");
	made.call.events = &held;
	for (int ms = 0; !is_held && ms < PATIENCE_MS; ms += 20)
		run_for(&w, 20);
	run_for(&w, 200); /* in which it hangs up, and cells are made */
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before), 0);
	run_for(&w, 500);
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after), 0);
	assert_true((after.tv_sec - before.tv_sec) * 1000 +
			    (after.tv_nsec - before.tv_nsec) / 1000000 <
		    100);
	assert_false(made.over);
	vt_pool_cancel(&made.call);
	run_until(&w, 1);
	assert_int_equal(made.verdict.status, VT_STATUS_CANCELLED);
	is_held = false;
	end_watched(&w);
}

static void test_endings(void **state)
{
	struct watched w;
	struct made *made;

	(void)state;
	start_watched(&w);
	made = call_one(&w, "crash", "");
	assert_int_equal(made->verdict.status, VT_STATUS_CRASHED);
	assert_int_equal(made->verdict.signal, SIGSEGV);
	made = call_one(&w, "exit", "3");
	assert_int_equal(made->verdict.status, VT_STATUS_ERROR);
	assert_int_equal(made->verdict.exit_code, 3);
	made = call_one(&w, "exit", "0");
	assert_int_equal(made->verdict.status, VT_STATUS_NO_RESULT);
	made = call_one(&w, "garbage", "");
	assert_int_equal(made->verdict.status, VT_STATUS_CRASHED);
	made = call_one(&w, "big", "9000000");
	assert_int_equal(made->verdict.status, VT_STATUS_RESULT_LIMIT);
	made = call_one(&w, "eat", "");
	assert_int_equal(made->verdict.status, VT_STATUS_MEMORY_LIMIT);
	w.stage.plan.wall_ms = 100;
	made = call_one(&w, "wait", "");
	assert_int_equal(made->verdict.status, VT_STATUS_TIMEOUT);
	end_watched(&w);
}

static unsigned lines_heard;

static void count_line(struct made *made)
{
	const int64_t until = vt_clock_now() + 2000; /* whoever talks is faster */

	(void)made;
	lines_heard++;
	while (vt_clock_now() < until)
		;
}

/* No more is heard than its socket held when it ended, however much comes after. */
static void test_end_is_not_drowned(void **state)
{
	static struct made made;
	struct watched w;

	(void)state;
	start_watched(&w);
	lines_heard = 0;
	submit(&w, &made, "leave talker", "");
	made.at_log = count_line;
	run_until(&w, 1);
	assert_int_equal(made.verdict.exit_code, 3);
	assert_in_range(lines_heard, 1, 100000);
	end_watched(&w);
}

static void test_nothing_of_a_call_is_left_for_the_next(void **state)
{
	struct watched w;

	(void)state;
	start_watched(&w);
	for (int i = 0; i < 10; i++)
		assert_string_equal(call_one(&w, "leave", "")->value, "new");
	end_watched(&w);
}

static void test_many_at_once(void **state)
{
	enum { MANY = 40 };
	static struct made made[MANY];
	struct vt_pool_counts counts;
	struct watched w;
	char text[16];

	(void)state;
	start_watched(&w);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		submit(&w, &made[i], "echo", text);
	}
	run_until(&w, MANY);
	for (int i = 0; i < MANY; i++)
		if (made[i].verdict.status != VT_STATUS_OK || atoi(made[i].value) != i)
			fail_msg("call %d: %s: %s", i, made[i].verdict.type,
				 made[i].verdict.message);
	vt_pool_count(w.pool, &counts);
	assert_int_equal(counts.calls, MANY);
	assert_int_equal(counts.waiting, 0);
	end_watched(&w);
}

static void test_cancel(void **state)
{
	static struct made made[3];
	struct watched w;

	(void)state;
	start_watched(&w);
	(void)call_one(&w, "echo", "warm by now");
	submit(&w, &made[0], "wait", "");
	vt_pool_cancel(&made[0].call);
	run_until(&w, 2);
	assert_int_equal(made[0].verdict.status, VT_STATUS_CANCELLED);
	for (int i = 0; i < 3; i++)
		submit(&w, &made[i], "wait", "");
	end_watched(&w); /* with calls that run, and that wait */
	for (int i = 0; i < 3; i++)
		assert_int_equal(made[i].verdict.status, VT_STATUS_CANCELLED);
}

/* What a limit is told by: the kernel's own hand, which reaches whoever is in the cell's cgroup. */
static void test_cgroup(void **state)
{
	struct watched w;
	struct made *made;

	(void)state;
	vt_cgroup_find(&site);
	/* What makes a hull's processes may not clone them into a cgroup of v2: no plan has it. */
	if (!*site.memory || (!bare && site.version == VT_CGROUP_V2)) {
		site = (struct vt_cgroup_site){ 0 };
		SKIP("no memory cgroup can be made here for such cells");
	}
	/* All of a cgroup of v2 is killed at once, in either order. */
	const int rounds = site.version == VT_CGROUP_V2 ? 200 : 1;

	start_watched(&w);
	site = (struct vt_cgroup_site){ 0 };
	for (int i = 0; i < rounds; i++) {
		made = call_one(&w, "eat", "");
		if (made->verdict.status != VT_STATUS_MEMORY_LIMIT)
			fail_msg("call %d: %s: %s", i, made->verdict.type, made->verdict.message);
	}
	end_watched(&w);
}

/* The folder of a cgroup of v2, as its counters are read, after so many kills. */
static int fake_cgroup(char folder[32], const char *counts)
{
	strcpy(folder, "/tmp/vitro-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	const char *const files[][2] = { { "memory.current", "0\n" }, { "memory.events", counts } };
	for (size_t i = 0; i < 2; i++) {
		AUTO_CLOSE int fd = openat(dir, files[i][0], O_WRONLY | O_CREAT, 0600);

		assert_int_equal(write(fd, files[i][1], strlen(files[i][1])), strlen(files[i][1]));
	}
	return dir;
}

/* All of a cell is killed at once, as memory.oom.group has it: init's end is heard first. */
static enum vt_status status_of_killed(struct watched *w, const char *counts)
{
	static struct made made;
	char folder[32];

	submit(w, &made, "wait", "");
	for (int ms = 0; ms < PATIENCE_MS && !made.call.warm; ms += 5)
		run_for(w, 5);
	struct vt_warm *warm = made.call.warm;

	assert_non_null(warm);
	AUTO_CLOSE int dir = fake_cgroup(folder, counts);
	warm->cell.cgroup.version = VT_CGROUP_V2; /* of which nothing is removed: its count is 0 */
	warm->cell.cgroup.memory = 0;
	warm->cell.cgroup.dirs[0] = dir;
	int init = bare ? warm->occupant.fd : warm->init.fd;
	struct pollfd ended = { .fd = warm->occupant.fd, .events = POLLIN };

	assert_int_equal(syscall(SYS_pidfd_send_signal, init, SIGKILL, NULL, 0), 0);
	assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
	if (bare)
		(void)kill(warm->bare.occupant, SIGKILL); /* or its parent's death has done so */
	run_until(w, w->over + 1);
	assert_int_equal(unlinkat(dir, "memory.current", 0), 0);
	assert_int_equal(unlinkat(dir, "memory.events", 0), 0);
	assert_int_equal(rmdir(folder), 0);
	return made.verdict.status;
}

/* The control is a cell that somebody else killed. */
static void test_kill_of_a_whole_cgroup_is_its_memorys(void **state)
{
	struct watched w;

	(void)state;
	start_watched(&w);
	assert_int_equal(status_of_killed(&w, "max 9\noom 1\noom_kill 0\n"), VT_STATUS_LOST);
	assert_int_equal(status_of_killed(&w, "max 9\noom 1\noom_kill 2\n"),
			 VT_STATUS_MEMORY_LIMIT);
	end_watched(&w);
}
