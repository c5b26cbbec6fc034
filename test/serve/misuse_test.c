/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that no library is: what they send is refused, or slows them alone. While each of them is
 * at it, and after it, a client that behaves has its calls as ever. argv: vitro.
 */
#include "by_hand.h"

#include <poll.h>
#include <sys/resource.h>

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

/* So many bytes. */
static int give(vitro_task *task)
{
	size_t len = (size_t)atoi(strchr(vitro_task_arguments(task, NULL), ':') + 1);
	char *value = malloc(len);

	if (!value)
		return -ENOMEM;
	memset(value, ' ', len);
	value[0] = '1';
	return vitro_task_return_bytes(task, value, len);
}

static int wait_long(vitro_task *task)
{
	sleep_ms(20000);
	return vitro_task_return(task, "1");
}

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "give", .function = give },
	{ .name = "wait", .function = wait_long },
	{ 0 },
};

/* ---- what is wrong at once ------------------------------------------------------------------ */

#define TEXT(text) text, sizeof(text) - 1

static const struct {
	const char *name;
	const char *bytes;
	size_t len;
	const char *said; /* in what it is told; NULL: anything */
} wrongs[] = {
	{ "text", TEXT("GET / HTTP/1.0\r\n\r\n"), NULL },
	{ "zeros", TEXT("\0\0\0\0\0\0\0\0"), NULL },
	{ "ones", TEXT("\xff\xff\xff\xff\xff\xff\xff\xff"), "is the most" },
	{ "4 GB", TEXT("\xff\xff\xff\xff\x02\0\0\0{}"), "is the most" },
	{ "above the limit", TEXT("\x01\0\0\x04\x02\0\0\0{}"), "is the most" },
	{ "a head beyond its frame", TEXT("\x02\0\0\0\x03\0\0\0{}"), NULL },
	{ "no JSON", TEXT("\x02\0\0\0\x02\0\0\0}{"), NULL },
	{ "deep JSON", TEXT("\x10\0\0\0\x10\0\0\0{\"do\":[[[[[[[[[["), NULL },
	{ "no hello", TEXT("\x0e\0\0\0\x0e\0\0\0{\"do\":\"count\"}"), "hello" },
	{ "another version", TEXT("\x1a\0\0\0\x1a\0\0\0{\"do\":\"hello\",\"version\":2}"),
	  "version" },
	{ "no UTF-8", TEXT("\x0a\0\0\0\x0a\0\0\0{\"do\":\"\xff\"}"), NULL },
};

static void test_wrong_bytes(void **state)
{
	char text[8192];

	(void)state;
	begin_good(NULL, tools);
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		int fd = connect_raw();

		assert_true(fd >= 0);
		(void)send_all(fd, wrongs[i].bytes, wrongs[i].len);
		assert_closed(fd, text, sizeof(text));
		(void)close(fd);
		if (wrongs[i].said && !strstr(text, wrongs[i].said))
			fail_msg("%s: it is told '%s'", wrongs[i].name, text);
	}
	end_good();
}

/* After a hello, what is no request, or asks for what there is not. */
static void test_wrong_requests(void **state)
{
	static const char *const heads[] = {
		"{}",
		"{\"do\":\"nothing\"}",
		"{\"do\":\"call\",\"call\":1,\"pool\":7,\"tool\":\"x\",\"id\":\"y\"}",
		"{\"do\":\"call\",\"call\":-1,\"pool\":1}",
		"{\"do\":\"drop\",\"pool\":9}",
		"{\"do\":\"pool\",\"pool\":-1}",
	};
	char text[8192];

	(void)state;
	begin_good(NULL, tools);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		int fd = greet();

		assert_true(send_frame(fd, heads[i], NULL, 0));
		assert_closed(fd, text, sizeof(text));
		assert_true(strstr(text, "understand the client") ||
			    strstr(text, "the head of a message: "));
		(void)close(fd);
	}
	end_good();
}

/* Policies that cannot be read are refused, each by itself, and the client goes on. */
static void test_wrong_policies(void **state)
{
	char *deep = malloc(200000), *large = malloc(1 << 20), head[4096];
	char pipe_path[128], pipe_source[192];
	int pipe_len;

	(void)snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	pipe_len = snprintf(pipe_source, sizeof(pipe_source), "[{\"load\":\"%s\"}]", pipe_path);
	assert_int_equal(mkfifo(pipe_path, 0600), 0); /* nobody writes to it */
	const struct {
		const char *text;
		size_t len;
	} bodies[] = { { "[{", 2 },
		       { "{}", 2 },
		       { "[{\"load\":\"/dev/zero\"}]", 22 },
		       { "[{\"load\":\"no-such-file\"}]", 25 },
		       { pipe_source, (size_t)pipe_len },
		       { "[{\"load\":\"../etc/passwd\"}]", 26 },
		       { deep, 200000 },
		       { large, 1 << 20 } };

	(void)state;
	memset(deep, '[', 200000);
	memset(large, ' ', 1 << 20);
	begin_good(NULL, tools);
	int fd = greet();

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		int64_t begun = now_ms();

		assert_true(send_frame(fd, "{\"do\":\"pool\",\"pool\":1}", bodies[i].text,
				       bodies[i].len));
		assert_true(receive_frame(fd, head));
		assert_non_null(strstr(head, "\"ok\":false"));
		assert_true(now_ms() - begun < 5000);
	}
	assert_good();
	(void)close(fd);
	assert_int_equal(unlink(pipe_path), 0);
	free(deep);
	free(large);
	end_good();
}

/* Pools of what is none, each told what is wrong with it. */
static void test_wrong_pools(void **state)
{
	char pipe_path[128], of_pipe[256], head[4096];

	(void)snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	(void)snprintf(of_pipe, sizeof(of_pipe), "\"program\":\"%s\"", pipe_path);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	const struct {
		const char *members, *said;
	} pools[] = {
		{ of_pipe, "/pipe' is not a file" },
		{ "\"program\":\"/dev/null\"", "'/dev/null' is not a file" },
		{ "\"program\":\"/usr\"", "'/usr' is not a file" },
		{ "\"program\":\"x\"",
		  "'program' of a pool is 'x', and goes by its absolute path" },
		{ "\"object\":\"/x.so\",\"command\":\"true\"",
		  "a pool has 'command' and 'object': it is of one of them" },
		{ "\"python\":\"python3\"", "'python' of a pool comes with 'setup'" },
	};

	(void)state;
	begin_good(NULL, tools);
	int fd = greet();

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
		(void)snprintf(head, sizeof(head), "{\"do\":\"pool\",\"pool\":1,%s}",
			       pools[i].members);
		assert_true(send_frame(fd, head, NULL, 0));
		assert_true(receive_frame(fd, head));
		if (!strstr(head, "\"ok\":false") || !strstr(head, pools[i].said) ||
		    strstr(head, "understand the client"))
			fail_msg("%s: it is told '%s'", pools[i].members, head);
	}
	(void)close(fd);
	assert_int_equal(unlink(pipe_path), 0);
	end_good();
}

/* Whatever one process asks for, again and again on many connections, is not taken ahead of others.
 */
static void test_many_requests(void **state)
{
	enum { CONNECTIONS = 60, COUNTS = 4096 };
	static const char head[] = "{\"do\":\"count\"}";
	const uint32_t prefix[2] = { sizeof(head) - 1, sizeof(head) - 1 };
	static char frames[COUNTS * (sizeof(prefix) + sizeof(head) - 1)];
	int fds[CONNECTIONS];

	(void)state;
	for (char *at = frames; at < frames + sizeof(frames); at += sizeof(head) - 1) {
		memcpy(at, prefix, sizeof(prefix));
		memcpy(at += sizeof(prefix), head, sizeof(head) - 1);
	}
	begin_good(NULL, tools);
	connect_apart(greet, fds, CONNECTIONS);
	int fd = greet();

	assert_flood(fd, fds, CONNECTIONS, frames, sizeof(frames), 20);
	for (int i = 0; i < CONNECTIONS; i++)
		(void)close(fds[i]);
	(void)close(fd);
	end_good();
}

/* ---- what takes its time -------------------------------------------------------------------- */

/* Half a frame, and nothing more: it holds up nobody, and its memory is bounded. */
static void test_half_frames(void **state)
{
	const uint32_t large[2] = { 60 << 20, 2 };
	char *bytes = calloc(1, 40 << 20), text[8192];
	int fds[32], closed = 0;

	(void)state;
	begin_good(NULL, tools);
	for (int i = 0; i < 16; i++) {
		fds[i] = greet();
		assert_true(send_all(fds[i], large, i % 2 ? 4 : sizeof(large)));
	}
	assert_good();
	/* So much is not held for all of them together. */
	for (int i = 16; i < 32; i++) {
		fds[i] = greet();
		if (!send_all(fds[i], large, sizeof(large)) || !send_all(fds[i], bytes, 40 << 20)) {
			assert_closed(fds[i], text, sizeof(text));
			assert_non_null(strstr(
				text, "those that have not come whole are too large in all"));
			closed++;
		}
	}
	assert_true(closed > 0);
	assert_good();
	for (int i = 0; i < 32; i++)
		(void)close(fds[i]);
	free(bytes);
	end_good();
}

/* Who never says hello is not waited for. */
static void test_silence(void **state)
{
	char text[8192];

	(void)state;
	begin_good(NULL, tools);
	int fd = connect_raw();

	assert_closed(fd, text, sizeof(text));
	assert_non_null(strstr(text, "hello"));
	(void)close(fd);
	end_good();
}

static bool send_call(int fd, int number, const char *tool, const char *body, size_t len)
{
	char head[256];

	(void)snprintf(head, sizeof(head),
		       "{\"do\":\"call\",\"call\":%d,\"pool\":1,\"tool\":\"%s\",\"id\":\"c%d\"}",
		       number, tool, number);
	return send_frame(fd, head, body, len);
}

enum { CALLS = 10000, CALLS_MAX = 4096 };

/* Another process calls so often, and then counts. */
static pid_t call_often(int fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (int i = 0; i < CALLS; i++)
		if (!send_call(fd, i, "wait", "{}", 2))
			_exit(1);
	_exit(send_frame(fd, "{\"do\":\"count\"}", NULL, 0) ? 0 : 1);
}

/* Another process cancels each call that has no answer. */
static pid_t cancel_rest(int fd, const bool answered[CALLS])
{
	pid_t pid = fork();
	char head[64];

	if (pid != 0)
		return pid;
	for (int i = 0; i < CALLS; i++) {
		(void)snprintf(head, sizeof(head), "{\"do\":\"cancel\",\"call\":%d}", i);
		if (!answered[i] && !send_frame(fd, head, NULL, 0))
			_exit(1);
	}
	_exit(0);
}

/* Takes so many answers, or those up to a count's, and notes whose they are; how many have this
 * status. */
static int take_answers(int fd, int most, bool answered[CALLS], const char *status)
{
	char head[4096], wanted[64];
	int found = 0;

	(void)snprintf(wanted, sizeof(wanted), "\"status\":\"%s\"", status);
	while (most-- > 0 && receive_frame(fd, head) && !strstr(head, "\"is\":\"count\"")) {
		const char *at = strstr(head, "\"call\":");
		int call = at ? atoi(at + strlen("\"call\":")) : -1;

		assert_in_range(call, 0, CALLS - 1);
		assert_false(answered[call]); /* each has one */
		answered[call] = true;
		found += strstr(head, wanted) != NULL;
	}
	return found;
}

/* As many calls at once as nobody needs: those that are too many are refused, the others wait until
 * they are cancelled, each has its one answer, and another client is served all the while. */
static void test_ten_thousand_calls(void **state)
{
	bool answered[CALLS] = { false };
	int fd, status;

	(void)state;
	begin_good(NULL, tools);
	connect_apart(greet_with_pool, &fd, 1);
	pid_t caller = call_often(fd);

	assert_good();
	int refused = take_answers(fd, CALLS, answered, "refused");

	assert_int_equal(waitpid(caller, &status, 0), caller);
	assert_int_equal(status, 0);
	assert_int_equal(refused, CALLS - CALLS_MAX);
	assert_good();
	pid_t canceller = cancel_rest(fd, answered);
	int cancelled = take_answers(fd, CALLS - refused, answered, "cancelled");

	assert_int_equal(waitpid(canceller, &status, 0), canceller);
	assert_int_equal(status, 0);
	for (int i = 0; i < CALLS; i++)
		if (!answered[i])
			fail_msg("call %d has no answer", i);
	print_message("of %d calls at once %d were refused, %d cancelled\n", CALLS, refused,
		      cancelled);
	assert_true(cancelled > CALLS_MAX / 2); /* on a slow machine some are over by then */
	(void)close(fd);
	end_good();
}

static long memory_kb(pid_t pid)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	int fd = open(path, O_RDONLY);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	(void)close(fd);
	text[len > 0 ? len : 0] = '\0';
	const char *at = strstr(text, "VmRSS:");

	return at ? atol(at + 6) : 0;
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		(void)close(fds[i]);
}

/* Who does not read its answers has no more of them, and the server does not grow, however many
 * connections it has. */
static void test_deaf_client(void **state)
{
	enum { MOST = 40 };
	/* A sanitizer keeps what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
	enum { KEPT_FREED_MB = 400 };
#else
	enum { KEPT_FREED_MB = 0 };
#endif
	static const struct {
		int connections, calls;
		const char *arguments;
		long most_mb;
	} rows[] = { { 1, 200, "{\"n\":4000000}", 256 }, { MOST, MOST, "{\"n\":12000000}", 360 } };
	int fds[MOST];

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		int count = rows[row].connections;

		begin_good(NULL, tools);
		connect_apart(greet_with_pool, fds, count);
		for (int i = 0; i < rows[row].calls; i++)
			assert_true(send_call(fds[i % count], i, "give", rows[row].arguments,
					      strlen(rows[row].arguments)));
		for (int i = 0; i < 5; i++) {
			assert_good();
			sleep_ms(200);
		}
		long mb = memory_kb(server.pid) / 1024;

		print_message("%d deaf connections: the server has %ld MB\n", count, mb);
		assert_true(mb < rows[row].most_mb + KEPT_FREED_MB);
		close_all(fds, count);
		end_good();
	}
}

/* Whether a call of so many bytes is refused for that reason. */
static bool is_refused(int fd, int number, const char *bytes, size_t len, const char *why)
{
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char head[4096];

	assert_true(send_call(fd, number, "wait", bytes, len));
	if (poll(&answer, 1, 3000) == 0)
		return false;
	assert_true(receive_frame(fd, head));
	return strstr(head, "\"status\":\"refused\"") && strstr(head, why);
}

/* What waits in the server is bounded for a process, over its connections, and for all of them. */
static void test_large_calls(void **state)
{
	enum { LEN = 50 << 20, PROCESSES = 4, EACH = 3 };
	int fds[PROCESSES + 1][EACH];
	char *bytes = malloc(LEN);

	(void)state;
	if (sysconf(_SC_AVPHYS_PAGES) < (3L << 30) / sysconf(_SC_PAGESIZE)) {
		free(bytes);
		SKIP("there are not 3 GB of memory");
	}
	memset(bytes, ' ', LEN);
	bytes[0] = '1';
	begin_good((const char *const[]){ "--cells", "1", NULL }, tools);
	for (int i = 0; i <= PROCESSES; i++)
		connect_apart(greet_with_pool, fds[i], EACH);
	assert_false(is_refused(fds[PROCESSES][0], 1, "{}", 2, "")); /* all others wait */
	for (int i = 0; i < PROCESSES; i++) {
		for (int j = 0; j < 5; j++)
			assert_true(send_call(fds[i][j % EACH], j, "wait", bytes, LEN));
		assert_true(is_refused(fds[i][2], 5, bytes, LEN, "that this client has under way"));
	}
	assert_true(is_refused(fds[PROCESSES][1], 1, bytes, LEN, "that all clients of the server"));
	assert_false(is_refused(fds[PROCESSES][1], 2, bytes, 100, ""));
	for (int i = 0; i <= PROCESSES; i++)
		close_all(fds[i], EACH);
	/* Those that are gone hold nothing. */
	connect_apart(greet_with_pool, fds[0], 1);
	for (int i = 0; i < 100 && is_refused(fds[0][0], i, bytes, LEN, ""); i++)
		sleep_ms(50);
	assert_false(is_refused(fds[0][0], 100, bytes, LEN, ""));
	(void)close(fds[0][0]);
	free(bytes);
	end_good();
}

/* Who has all cells that one may have leaves some for others, by however many connections. */
static void test_greedy_client(void **state)
{
	int fds[2];

	(void)state;
	begin_good((const char *const[]){ "--cells", "8", NULL }, tools);
	connect_apart(greet_with_pool, fds, 2);
	for (int i = 0; i < 100; i++)
		assert_true(send_call(fds[i % 2], i, "wait", "{}", 2));
	struct vitro_counts counts = { 0 };

	for (int i = 0; i < 1000 && counts.live < 6; i++) {
		sleep_ms(10);
		vitro_toolhost_count(good, &counts);
	}
	sleep_ms(200);
	vitro_toolhost_count(good, &counts);
	assert_int_equal(counts.live, 6);
	assert_good();
	close_all(fds, 2);
	/* Without its client a call is of no use to anybody. */
	for (int i = 0; i < 1000 && counts.live; i++) {
		sleep_ms(10);
		vitro_toolhost_count(good, &counts);
	}
	assert_int_equal(counts.live, 0);
	end_good();
}

/*
 * Pools one after the other: each is planned, and others have their turn in between. One client has
 * not all that there can be.
 */
static void test_many_pools(void **state)
{
	char head[4096];
	int ok = 0, refused = 0, fd;

	(void)state;
	begin_good(NULL, tools);
	connect_apart(greet, &fd, 1);

	for (int i = 0; i < 1100; i++) {
		char sources[80];
		int len = snprintf(sources, sizeof(sources),
				   "[{\"key\":\"limits.wall_ms\",\"value\":\"%d\"}]", 1000 + i);

		(void)snprintf(head, sizeof(head),
			       i < 100 ? "{\"do\":\"pool\",\"pool\":%d,\"command\":\"true\"}"
				       : "{\"do\":\"pool\",\"pool\":%d}",
			       i);
		assert_true(send_frame(fd, head, sources, (size_t)len));
	}
	assert_good();
	for (int i = 0; i < 1100; i++) {
		assert_true(receive_frame(fd, head));
		ok += strstr(head, "\"ok\":true") != NULL;
		refused += strstr(head, "\"ok\":false") != NULL;
	}
	assert_int_equal(ok, 256);
	assert_int_equal(refused, 1100 - 256);
	print_message("of 1100 pools %d were had, %d refused\n", ok, refused);
	(void)close(fd);
	end_good();
}

/* Clients that come and go, each in the midst of something. */
static void test_comers_and_goers(void **state)
{
	(void)state;
	begin_good(NULL, tools);
	for (int i = 0; i < 200; i++) {
		int fd = i % 4 ? connect_raw() : greet_with_pool();

		assert_true(fd >= 0);
		if (i % 4 == 0)
			(void)send_frame(fd,
					 "{\"do\":\"call\",\"call\":1,\"pool\":1,\"tool\":\"wait\","
					 "\"id\":\"c\"}",
					 "{}", 2);
		else if (i % 4 == 1)
			(void)send_all(fd, "\x10\0\0", 3);
		(void)close(fd);
	}
	assert_good();
	struct vitro_counts counts = { .live = 1 };

	for (int i = 0; i < 1000 && counts.live; i++) {
		sleep_ms(10);
		vitro_toolhost_count(good, &counts);
	}
	assert_int_equal(counts.live, 0);
	end_good();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		TEST(test_wrong_bytes),      TEST(test_wrong_requests),
		TEST(test_wrong_policies),   TEST(test_wrong_pools),
		TEST(test_many_requests),    TEST(test_half_frames),
		TEST(test_silence),          TEST(test_ten_thousand_calls),
		TEST(test_deaf_client),      TEST(test_greedy_client),
		TEST(test_large_calls),      TEST(test_many_pools),
		TEST(test_comers_and_goers),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
