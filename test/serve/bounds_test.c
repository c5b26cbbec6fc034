/* SPDX-License-Identifier: Apache-2.0 */
/* What one client cannot take from the others, whatever it asks for. argv: vitro. */
#include "by_hand.h"

#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

static int wait_a_while(vitro_task *task)
{
	sleep_ms(100);
	return vitro_task_return(task, "1");
}

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "wait", .function = wait_a_while },
	{ 0 },
};

/* ---- paths that do not answer --------------------------------------------------------------- */

/*
 * A file system whose server has stopped answering: whoever looks into it waits. It is there for
 * this program and what it starts, and ends with it. -1: there is none to be had.
 */
static int mount_dead(const char *path)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		       (unsigned)geteuid(), (unsigned)getegid());
	if (fd >= 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("dead", path, "fuse", 0, options) == 0)
		return fd;
	print_message("skipped: no FUSE to be had: %s\n", strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* Makes one at path, or skips the test. */
static int begin_dead(char path[64])
{
	(void)snprintf(path, 64, "%s/dead", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	int fuse_fd = mount_dead(path);

	if (fuse_fd < 0) {
		(void)rmdir(path);
		SKIP("no FUSE can be mounted here");
	}
	return fuse_fd;
}

static void end_dead(const char *path)
{
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	assert_int_equal(rmdir(path), 0);
}

/* Asks for a pool of a command under one source of a policy, which may be none. */
static void ask_for_pool(int fd, const char *command, const char *key, const char *value)
{
	char head[256], body[256];
	int len = key ? snprintf(body, sizeof(body), "[{\"key\":\"%s\",\"value\":\"%s\"}]", key,
				 value)
		      : 0;

	if (key && strcmp(key, "load") == 0)
		len = snprintf(body, sizeof(body), "[{\"load\":\"%s\"}]", value);
	(void)snprintf(head, sizeof(head), "{\"do\":\"pool\",\"pool\":1,\"command\":\"%s\"}",
		       command);
	assert_true(send_frame(fd, head, body, (size_t)len));
}

/* Whatever a client names that does not answer, it alone waits for it, and not for ever. */
static void test_dead_paths(void **state)
{
	char path[64], within[80], head[4096];
	int fds[4];

	(void)state;
	int fuse_fd = begin_dead(path);

	(void)snprintf(within, sizeof(within), "%s/x", path);
	begin_good(NULL, tools);
	connect_apart(greet, fds, 4);
	ask_for_pool(fds[0], "true", "files.read", within);
	ask_for_pool(fds[1], "true", "load", within);
	ask_for_pool(fds[2], within, NULL, NULL);
	ask_for_pool(fds[3], "true", "files.write", path);
	sleep_ms(300);
	int64_t begun = now_ms();

	assert_good();
	int other = greet_with_pool(); /* others have their pools meanwhile */

	assert_true(now_ms() - begun < 5000);
	(void)close(fds[3]); /* who goes is not waited for either */
	for (int i = 0; i < 3; i++) {
		assert_true(receive_frame(fds[i], head));
		assert_non_null(strstr(head, "\"ok\":false"));
		if (!strstr(head, "did not answer within 10 s"))
			fail_msg("%d: %s", i, head);
		/* And it is served on. */
		assert_true(send_frame(fds[i], "{\"do\":\"pool\",\"pool\":1}", NULL, 0));
		assert_true(receive_frame(fds[i], head));
		assert_non_null(strstr(head, "\"ok\":true"));
		(void)close(fds[i]);
	}
	assert_true(now_ms() - begun < 20000);
	(void)close(other);
	end_good();
	(void)close(fuse_fd);
	end_dead(path);
}

/* However many paths one process names that do not answer, on as many connections, others have
 * theirs looked at. */
static void test_many_dead_paths(void **state)
{
	enum { MANY = 100 };
	char path[64], within[96];
	int fds[MANY];

	(void)state;
	int fuse_fd = begin_dead(path);

	begin_good(NULL, tools);
	connect_apart(greet, fds, MANY);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(within, sizeof(within), "%s/%d", path, i);
		ask_for_pool(fds[i], "true", "files.read", within);
	}
	sleep_ms(500);
	int64_t begun = now_ms();
	int other = greet_with_pool();

	assert_true(now_ms() - begun < 5000);
	for (int i = 0; i < MANY; i++)
		(void)close(fds[i]);
	(void)close(other);
	end_good();
	(void)close(fuse_fd);
	end_dead(path);
}

/* Goes on with what mount_dead() has begun: what is asked of it is heard, and never answered, so
 * that whoever waits cannot even be killed. */
static pid_t hear_in_vain(int fuse_fd)
{
	static char request[FUSE_MIN_READ_BUFFER * 4];
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} answer = { .init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 } };

	assert_true(read(fuse_fd, request, sizeof(request)) > 0);
	answer.head.len = sizeof(answer);
	answer.head.unique = ((struct fuse_in_header *)request)->unique;
	assert_int_equal(write(fuse_fd, &answer, sizeof(answer)), sizeof(answer));
	pid_t pid = fork();

	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse_fd, request, sizeof(request)) > 0)
		;
	_exit(0);
}

/* A process that names paths that do not answer, on as many connections, until no more of them are
 * looked at. It says so, and stays. */
static pid_t lose_looks(const char *path, int told)
{
	enum { MANY = 5 };
	char within[96], head[4096];
	int fds[MANY];
	pid_t pid = fork();

	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(within, sizeof(within), "%s/%d-%d", path, (int)getpid(), i);
		fds[i] = greet();
		ask_for_pool(fds[i], "true", "files.read", within);
	}
	bool heard = true;

	for (int i = 0; i < MANY; i++)
		heard = heard && receive_frame(fds[i], head);
	if (write(told, heard && strstr(head, "hang already") ? "y" : "n", 1) == 1)
		(void)pause(); /* until it is killed */
	_exit(0);
}

/* Whoever names what hangs for good, in so many processes, leaves looks for the next. The few that
 * this server has descriptors for come to their end soon. */
static void test_greedy_lookers(void **state)
{
	enum { PROCESSES = 5 };
	char path[64], byte;
	pid_t pids[PROCESSES];
	int told[2];

	(void)state;
	int fuse_fd = begin_dead(path);

	server_files = 1200;
	begin_good(NULL, tools);
	pid_t hearing = hear_in_vain(fuse_fd);

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = lose_looks(path, told[1]);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(read(told[0], &byte, 1), 1);
		assert_int_equal(byte, 'y');
	}
	int other;

	connect_apart(greet_with_pool, &other, 1);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(kill(pids[i], SIGKILL), 0);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
	(void)close(other);
	(void)close(told[0]);
	(void)close(told[1]);
	assert_int_equal(kill(hearing, SIGKILL), 0);
	assert_int_equal(waitpid(hearing, NULL, 0), hearing);
	(void)close(fuse_fd);
	end_good();
	end_dead(path);
}

/* ---- work ----------------------------------------------------------------------------------- */

enum { LINKS = 38, LINK_LEN = 4000 };

/* Links that lead through each other, by long ways: each look at the last takes a millisecond. */
static void make_links(const char *path)
{
	char name[80], target[LINK_LEN + 16];

	assert_int_equal(mkdir(path, 0755), 0);
	for (int i = 0; i < LINKS; i++) {
		for (int at = 0; at < LINK_LEN; at += 2)
			memcpy(target + at, "./", 2);
		(void)snprintf(target + LINK_LEN, 16, i ? "l%d" : "..", i - 1);
		(void)snprintf(name, sizeof(name), "%s/l%d", path, i);
		assert_int_equal(symlink(target, name), 0);
	}
}

static void remove_links(const char *path)
{
	char name[80];

	for (int i = 0; i < LINKS; i++) {
		(void)snprintf(name, sizeof(name), "%s/l%d", path, i);
		assert_int_equal(unlink(name), 0);
	}
	assert_int_equal(rmdir(path), 0);
}

/* What would keep the server busy for seconds is refused, and it was not the server that found
 * out. */
static void test_much_work(void **state)
{
	static char policy[1 << 18];
	char path[64], head[4096];
	size_t len = 0;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/links", folder);
	make_links(path);
	begin_good(NULL, tools);
	len += (size_t)sprintf(policy, "[{\"key\":\"files.read\",\"value\":\"%s/l%d\"}", path,
			       LINKS - 1);
	for (int i = 0; i < 1500; i++)
		len += (size_t)sprintf(policy + len,
				       ",{\"key\":\"files.read\",\"value\":\"%s/l%d/%d\"}", path,
				       LINKS - 1, i);
	policy[len++] = ']';
	int fd = greet();

	assert_true(
		send_frame(fd, "{\"do\":\"pool\",\"pool\":1,\"command\":\"true\"}", policy, len));
	assert_good();
	assert_true(receive_frame(fd, head));
	if (!strstr(head, "more than 1 s of work"))
		fail_msg("it is told '%s'", head);
	(void)close(fd);
	end_good();
	remove_links(path);
}

/* ---- connections ---------------------------------------------------------------------------- */

/* As many as one process may have, and then it is told so; others come in. */
static void test_many_connections(void **state)
{
	enum { MOST = 64 };
	char head[4096];
	int fds[MOST];

	(void)state;
	begin_good((const char *const[]){ "--clients", "100", NULL }, tools);
	for (int i = 1; i < MOST; i++) /* and the good one's */
		fds[i] = greet();
	fds[0] = connect_raw();
	assert_true(receive_frame(fds[0], head));
	if (!strstr(head, "your process has 64 connections"))
		fail_msg("it is told '%s'", head);
	(void)close(fds[0]);
	connect_apart(greet, &fds[0], 1);
	for (int i = 0; i < MOST; i++)
		(void)close(fds[i]);
	end_good();
}

/* Whether it is let in or not. */
static int try_greet(void)
{
	int fd = connect_raw();
	char head[4096];

	(void)send_frame(fd, "{\"do\":\"hello\",\"version\":1}", NULL, 0);
	(void)receive_frame(fd, head);
	return fd;
}

/* Processes that take all connections that they can have leave some for the next. */
static void test_greedy_connections(void **state)
{
	enum { PROCESSES = 3, EACH = 64 };
	int fds[PROCESSES][EACH], other;

	(void)state;
	begin_good((const char *const[]){ "--clients", "80", NULL }, tools);
	for (int i = 0; i < PROCESSES; i++)
		connect_apart(try_greet, fds[i], EACH);
	connect_apart(greet, &other, 1);
	(void)close(other);
	for (int i = 0; i < PROCESSES * EACH; i++)
		(void)close(fds[i / EACH][i % EACH]);
	end_good();
}

/* Half frames that one process has sent, as large as they can be, leave room for those of others.
 */
static void test_greedy_frames(void **state)
{
	enum { COUNT = 5, LEN = 63 << 20 };
	const uint32_t prefix[2] = { LEN, 2 };
	char *bytes = calloc(1, LEN), head[4096];
	int fds[COUNT];

	(void)state;
	begin_good(NULL, tools);
	connect_apart(greet, fds, COUNT);
	for (int i = 0; i < COUNT; i++)
		if (send_all(fds[i], prefix, sizeof(prefix)))
			(void)send_all(fds[i], bytes, LEN - 1); /* or it is closed */
	int fd = greet_with_pool();

	memset(bytes, ' ', 4 << 20);
	memcpy(bytes, "{}", 2);
	assert_true(send_frame(fd,
			       "{\"do\":\"call\",\"call\":1,\"pool\":1,\"tool\":\"wait\","
			       "\"id\":\"x\"}",
			       bytes, 4 << 20));
	assert_true(receive_frame(fd, head));
	if (!strstr(head, "\"status\":\"ok\""))
		fail_msg("it is told '%s'", head);
	for (int i = 0; i < COUNT; i++)
		(void)close(fds[i]);
	(void)close(fd);
	free(bytes);
	end_good();
}

/* ---- descriptors ---------------------------------------------------------------------------- */

struct batch {
	int total, ok;
	char error[256]; /* of one that was not */
};

static void count_one(void *user, vitro_result *result)
{
	struct batch *batch = user;
	bool ok = vitro_result_status(result) == VITRO_OK;

	batch->total++;
	batch->ok += ok;
	if (!ok)
		(void)snprintf(batch->error, sizeof(batch->error), "%s",
			       vitro_result_error(result));
	vitro_result_free(result);
}

/* Clients until one is refused: how many there are. They say why in the end. */
static int crowd_in(int *fds, int most, char *text, size_t size)
{
	char head[4096];

	for (int i = 0; i < most; i++) {
		fds[i] = connect_raw();
		assert_true(fds[i] >= 0);
		/* Who is refused at once cannot send it any more, and is told why all the same. */
		(void)send_frame(fds[i], "{\"do\":\"hello\",\"version\":1}", NULL, 0);
		if (!receive_frame(fds[i], head))
			fail_msg("client %d is told nothing", i);
		if (strstr(head, "\"is\":\"refused\"")) {
			(void)snprintf(text, size, "%s", head);
			(void)close(fds[i]);
			return i;
		}
	}
	fail_msg("all %d are let in", most);
	return 0;
}

/* Pools of their own until one is refused. */
static int crowd_pools(int fd, int most, char *text, size_t size)
{
	char head[4096], body[128];

	for (int i = 0; i < most; i++) {
		int len = snprintf(body, sizeof(body),
				   "[{\"key\":\"limits.wall_ms\",\"value\":\"%d\"}]",
				   1000 + (int)getpid() % 10000 * 1000 + fd * 30 + i);

		(void)snprintf(head, sizeof(head),
			       "{\"do\":\"pool\",\"pool\":%d,\"command\":\"true\"}", i);
		assert_true(send_frame(fd, head, body, (size_t)len));
		assert_true(receive_frame(fd, head));
		if (strstr(head, "\"ok\":false")) {
			(void)snprintf(text, size, "%s", head);
			return i;
		}
	}
	return most;
}

/* How many calls of anybody found no cell ready. */
static int count_cold(int fd)
{
	char head[4096];

	assert_true(send_frame(fd, "{\"do\":\"count\"}", NULL, 0));
	assert_true(receive_frame(fd, head));
	const char *at = strstr(head, "\"cold_calls\":");

	assert_non_null(at);
	return atoi(at + strlen("\"cold_calls\":"));
}

/* Whoever has as many cells waiting as he can leaves some that wait for others. */
static void test_greedy_ready(void **state)
{
	enum { POOLS = 8 };
	char head[4096], body[128];
	int fd, other;

	(void)state;
	server_files = 3000;
	begin_good(NULL, tools);
	connect_apart(greet, &fd, 1);
	for (int i = 0; i < POOLS; i++) {
		int len = snprintf(body, sizeof(body),
				   "[{\"key\":\"limits.wall_ms\",\"value\":\"%ds\"}]", 100 + i);

		(void)snprintf(head, sizeof(head),
			       "{\"do\":\"pool\",\"pool\":%d,\"command\":\"true\","
			       "\"ready_min\":64}",
			       i);
		assert_true(send_frame(fd, head, body, (size_t)len));
		assert_true(receive_frame(fd, head));
		assert_non_null(strstr(head, "\"ok\":true"));
	}
	sleep_ms(1000); /* he has them all */
	connect_apart(greet_with_pool, &other, 1);
	sleep_ms(1000);
	int before = count_cold(other);

	assert_true(send_frame(other,
			       "{\"do\":\"call\",\"call\":1,\"pool\":1,\"tool\":\"echo\","
			       "\"id\":\"x\"}",
			       "{}", 2));
	assert_true(receive_frame(other, head));
	assert_non_null(strstr(head, "\"status\":\"ok\""));
	assert_int_equal(count_cold(other), before);
	(void)close(fd);
	(void)close(other);
	end_good();
}

/* Before descriptors run out others are refused, and say why; no call that runs is broken. */
static void test_few_descriptors(void **state)
{
	enum { MOST = 200, CALLS = 60 };
	struct batch batch = { 0 };
	int fds[MOST];
	char text[4096];

	(void)state;
	server_files = 400;
	begin_good(NULL, tools);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(vitro_submit(good,
					      &(struct vitro_request){ .tool = "wait",
								       .arguments = "{}",
								       .user = &batch },
					      count_one),
				 0);
	int clients = crowd_in(fds, MOST, text, sizeof(text));

	assert_true(clients > 2);
	assert_non_null(strstr(text, "RLIMIT_NOFILE"));
	int pools = crowd_pools(fds[0], MOST, text, sizeof(text));

	assert_true(pools > 0 && pools < MOST);
	assert_non_null(strstr(text, "let tools share theirs"));
	for (int64_t until = now_ms() + 60000; batch.total < CALLS && now_ms() < until;)
		turn(good);
	if (batch.ok != CALLS)
		fail_msg("of %d calls %d ended, %d well: %s", CALLS, batch.total, batch.ok,
			 batch.error);
	for (int i = 0; i < clients; i++)
		(void)close(fds[i]);
	read_log(&server, text, sizeof(text));
	assert_non_null(strstr(text, "RLIMIT_NOFILE is 400: there is room for "));
	assert_null(strstr(text, strerror(EMFILE)));
	end_good();
}

/* A process that takes all that it is given, on several connections, and tells how much that is. It
 * stays. */
static pid_t take_all(int told)
{
	char text[4096];
	pid_t pid = fork();

	if (pid)
		return pid;
	uint8_t count = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 3; i++)
		count += (uint8_t)crowd_pools(greet(), 30, text, sizeof(text));
	if (!strstr(text, "let tools share theirs") || write(told, &count, 1) != 1)
		_exit(1);
	(void)pause(); /* until it is killed */
	_exit(0);
}

/* Whoever takes all sets of cells that he can have leaves some for the next. */
static void test_greedy_processes(void **state)
{
	enum { PROCESSES = 6 };
	pid_t pids[PROCESSES];
	int told[2], status;
	uint8_t count, all = 0;
	char text[4096];

	(void)state;
	server_files = 2000;
	begin_good(NULL, tools);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = take_all(told[1]);
		assert_int_equal(read(told[0], &count, 1), 1);
		if (!count)
			fail_msg("process %d has none", i);
		all += count;
	}
	int fd = greet();

	assert_true(crowd_pools(fd, 1, text, sizeof(text)) == 1);
	print_message("%d processes have %d pools, and there is one more\n", PROCESSES, all);
	assert_good();
	(void)close(fd);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(kill(pids[i], SIGKILL), 0);
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
	}
	(void)close(told[0]);
	(void)close(told[1]);
	end_good();
}

/* With less than a server needs for anything, there is none. */
static void test_too_few_descriptors(void **state)
{
	struct server one = { 0 };
	char text[1024];

	(void)state;
	server_files = 100;
	(void)snprintf(one.log, sizeof(one.log), "%s/log", folder);
	one.pid = fork();
	if (one.pid == 0)
		become_server(&one, (const char *const[]){ "--socket", socket_path, NULL });
	int status = await_server(&one, 10000);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 125);
	read_log(&one, text, sizeof(text));
	assert_non_null(strstr(text, "RLIMIT_NOFILE is 100, and a server needs 256 at the least"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		TEST(test_few_descriptors),    TEST(test_too_few_descriptors),
		TEST(test_greedy_processes),   TEST(test_dead_paths),
		TEST(test_many_dead_paths),    TEST(test_greedy_lookers),
		TEST(test_much_work),          TEST(test_many_connections),
		TEST(test_greedy_connections), TEST(test_greedy_frames),
		TEST(test_greedy_ready),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
