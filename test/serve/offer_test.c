/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that a server has of its own, from a manifest: for clients of the library and on the
 * command line. argv: vitro. */
#include "by_hand.h"

#include <sys/stat.h>

static char manifest[80], changed[96];

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

/* As an editor does it. */
static void put_manifest(const char *text)
{
	write_file(changed, text);
	assert_int_equal(rename(changed, manifest), 0);
}

#define SAY                                                                                    \
	"{\"name\": \"say\", \"description\": \"Says a word.\", \"input_schema\": {\"type\": " \
	"\"object\", \"properties\": {\"word\": {\"type\": \"string\"}}, \"required\": "       \
	"[\"word\"]}, \"command\": [\"printf\", \"%s\", \"{-word}\"]}"
#define COUNT_WORDS                                                                             \
	"{\"name\": \"words\", \"input_schema\": {\"type\": \"object\", \"properties\": "       \
	"{\"text\": {\"type\": \"string\"}}, \"required\": [\"text\"]}, \"command\": [\"wc\", " \
	"\"-w\"], \"stdin\": \"{text}\"}"
#define FAIL "{\"name\": \"fail\", \"command\": [\"sh\", \"-c\", \"echo why >&2; exit 3\"]}"

static void begin(void)
{
	(void)snprintf(manifest, sizeof(manifest), "%s/tools.json", folder);
	(void)snprintf(changed, sizeof(changed), "%s.new", manifest);
	put_manifest("{\"tools\": [" SAY ", " COUNT_WORDS ", " FAIL "]}");
	start_server(&server, (const char *const[]){ "--tools", manifest, NULL });
}

static void end(void)
{
	stop_server(&server);
	assert_int_equal(unlink(manifest), 0);
}

struct events {
	int added, removed, changes;
	char last[64];
};

static void on_change(void *user, int event, const char *tool)
{
	struct events *events = user;

	events->added += event == VITRO_TOOL_ADDED;
	events->removed += event == VITRO_TOOL_REMOVED;
	events->changes += event == VITRO_TOOL_CHANGED;
	(void)snprintf(events->last, sizeof(events->last), "%s", tool);
}

static vitro_toolhost *join(const struct vitro_tool *tools, struct events *events)
{
	return host_of(tools, &(struct vitro_options){ .socket = socket_path,
						       .server_tools = 1,
						       .watch = on_change,
						       .user = events });
}

static void test_calls(void **state)
{
	struct events events = { 0 };

	(void)state;
	begin();
	vitro_toolhost *host = join(NULL, &events);
	char *list = vitro_toolhost_list(host, NULL);

	assert_non_null(strstr(list, "Says a word."));
	free(list);
	assert_value(host, "say", "{\"word\": \"hello\"}", "\"hello\"");
	assert_value(host, "say", "{\"word\": \"--help\"}", "\"--help\"");
	assert_value(host, "words", "{\"text\": \"one two three\"}", "3");
	assert_error(host, "fail", "{}", "ExitCode", "why");
	vitro_result *result = call(host, "say", "{}");

	assert_status(result, VITRO_REFUSED);
	assert_string_equal(vitro_result_error_type(result), "InvalidArguments");
	vitro_result_free(result);
	assert_int_equal(events.added, 0); /* they were there */
	vitro_toolhost_free(host);
	end();
}

/* The head of the `done` that a call of "fail" with these arguments has. */
static void call_by_hand(int fd, const char *arguments, size_t len, char head[4096])
{
	assert_true(send_frame(fd, "{\"do\":\"tool\",\"call\":1,\"tool\":\"fail\",\"id\":\"x\"}",
			       arguments, len));
	do
		assert_true(receive_frame(fd, head));
	while (!strstr(head, "\"is\":\"done\""));
}

enum { LARGE = 1 << 20, MANY = 16 << 10 };

/* {"":[[],[],...]}, with so many in all; text has room for 4 bytes each. */
static size_t list_values(char *text, int count)
{
	size_t len = (size_t)sprintf(text, "{\"\":[[]");

	for (int i = 3; i < count; i++)
		len += (size_t)sprintf(text + len, ",1");
	return len + (size_t)sprintf(text + len, "]}");
}

/* What takes long to check is refused by its size alone. */
static void test_large_arguments(void **state)
{
	static char text[LARGE + 16];
	char head[4096];

	(void)state;
	begin();
	int fd = greet();

	call_by_hand(fd, text, list_values(text, MANY - 1), head);
	assert_non_null(strstr(head, "\"status\":\"error\""));
	call_by_hand(fd, text, list_values(text, MANY + 1), head);
	assert_non_null(strstr(head, "more than 16384 values"));
	memset(text, ' ', sizeof(text));
	memcpy(text, "{}", 2);
	call_by_hand(fd, text, LARGE, head);
	assert_non_null(strstr(head, "\"status\":\"error\""));
	call_by_hand(fd, text, LARGE + 1, head);
	assert_non_null(strstr(head, "more than 1 MiB"));
	(void)close(fd);
	end();
}

/* A process that has as much checked as it can, on many connections, has a share of the server's
 * time, and no more. */
static void test_many_large_arguments(void **state)
{
	enum { CONNECTIONS = 32 };
	static const char head[] = "{\"do\":\"tool\",\"call\":1,\"tool\":\"fail\",\"id\":\"x\"}";
	static char frame[LARGE];
	const uint32_t prefix[2] = { sizeof(frame) - sizeof(prefix), sizeof(head) - 1 };
	int fds[CONNECTIONS];

	(void)state;
	memset(frame, 'x', sizeof(frame));
	memcpy(frame, prefix, sizeof(prefix));
	memcpy(frame + sizeof(prefix), head, sizeof(head) - 1);
	memcpy(frame + sizeof(prefix) + sizeof(head) - 1, "{\"", 2); /* and no end */
	begin();
	connect_apart(greet, fds, CONNECTIONS);
	int fd = greet();

	assert_flood(fd, fds, CONNECTIONS, frame, sizeof(frame), 20);
	for (int i = 0; i < CONNECTIONS; i++)
		(void)close(fds[i]);
	(void)close(fd);
	end();
}

/* What the program has itself stands before it. */
static void test_own_tool(void **state)
{
	static const char *const other[] = { "printf", "other", NULL };
	static const struct vitro_tool own[] = { { .name = "say", .command = other }, { 0 } };
	struct events events = { 0 };

	(void)state;
	begin();
	vitro_toolhost *host = join(own, &events);

	assert_value(host, "say", "{}", "\"other\"");
	assert_value(host, "words", "{\"text\": \"one\"}", "1");
	vitro_toolhost_free(host);
	end();
}

static void await_events(vitro_toolhost *host, const struct events *events, int wanted)
{
	for (int i = 0; i < 500 && events->added + events->removed + events->changes < wanted;
	     i++) {
		(void)vitro_dispatch(host);
		sleep_ms(20);
	}
	assert_int_equal(events->added + events->removed + events->changes, wanted);
}

/* Changes of the file reach whoever watches; what is wrong changes nothing. */
static void test_changes(void **state)
{
	struct events events = { 0 };
	char text[4096];

	(void)state;
	begin();
	vitro_toolhost *host = join(NULL, &events);

	put_manifest("{\"tools\": [" SAY
		     ", {\"name\": \"words\", \"command\": [\"printf\", \"changed\"]}, "
		     "{\"name\": \"new\", \"command\": [\"printf\", \"new\"]}]}");
	await_events(host, &events, 3);
	assert_int_equal(events.added, 1);
	assert_int_equal(events.removed, 1);
	assert_int_equal(events.changes, 1);
	assert_value(host, "new", "{}", "\"new\"");
	assert_value(host, "words", "{}", "\"changed\"");
	vitro_result *result = call(host, "fail", "{}");

	assert_status(result, VITRO_REFUSED);
	vitro_result_free(result);
	put_manifest("{\"tools\": [");
	for (int i = 0; i < 500; i++) {
		read_log(&server, text, sizeof(text));
		if (strstr(text, "the tools stay as they were"))
			break;
		sleep_ms(20);
	}
	assert_non_null(strstr(text, "the tools stay as they were"));
	assert_value(host, "new", "{}", "\"new\"");
	put_manifest("{\"tools\": [" SAY
		     ", {\"name\": \"no\", \"command\": [\"no-such-program\"]}]}");
	sleep_ms(300);
	assert_value(host, "new", "{}", "\"new\"");
	await_events(host, &events, 3);
	vitro_toolhost_free(host);
	end();
}

/* A schema is listed as it was written, whoever asks for it. */
static void test_numbers(void **state)
{
	static const char schema[] = "\"input_schema\":{\"properties\":{\"share\":{\"maximum\":0.1,"
				     "\"multipleOf\":1e-3}}}";
	struct events events = { 0 };
	char text[512];

	(void)state;
	begin();
	vitro_toolhost *host = join(NULL, &events);

	(void)snprintf(text, sizeof(text),
		       "{\"tools\": [{\"name\": \"say\", %s, \"command\": [\"true\"]}]}", schema);
	put_manifest(text);
	await_events(host, &events, 3);
	char *list = vitro_toolhost_list(host, NULL);

	if (!strstr(list, schema))
		fail_msg("%s is not in %s", schema, list);
	free(list);
	vitro_toolhost_free(host);
	end();
}

struct second {
	vitro_toolhost *host; /* NULL: it was changed */
};

/* Changes the file once more, and makes a call, for which the new list comes before its end. */
static void change_again(void *user, int event, const char *tool)
{
	struct second *second = user;
	vitro_toolhost *host = second->host;

	(void)event;
	(void)tool;
	if (!host)
		return;
	second->host = NULL;
	put_manifest("{\"tools\": [" SAY ", {\"name\": \"second\", \"command\": [\"true\"]}]}");
	for (int i = 0; i < 20; i++) {
		assert_value(host, "say", "{\"word\": \"hello\"}", "\"hello\"");
		sleep_ms(20);
	}
}

/* Whoever is told of a change may make a call, and so hear of the next change within it. */
static void test_change_within_a_change(void **state)
{
	struct second second = { 0 };
	const struct vitro_options options = {
		.socket = socket_path, .server_tools = 1, .watch = change_again, .user = &second
	};

	(void)state;
	begin();
	vitro_toolhost *host = host_of(NULL, &options);

	second.host = host;
	put_manifest("{\"tools\": [" SAY ", {\"name\": \"first\", \"command\": [\"true\"]}]}");
	for (int i = 0; i < 500 && second.host; i++) {
		(void)vitro_dispatch(host);
		sleep_ms(20);
	}
	assert_null(second.host);
	char *list = vitro_toolhost_list(host, NULL);

	if (!strstr(list, "\"second\"") || strstr(list, "\"first\""))
		fail_msg("not those of the last change: %s", list);
	free(list);
	vitro_toolhost_free(host);
	end();
}

/* Fills a pipe up, so that who writes to it would wait. */
static void fill(int fd)
{
	char bytes[4096];

	memset(bytes, '.', sizeof(bytes));
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	while (write(fd, bytes, 1) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

/* What came since, without the dots; until it has these words. */
static void await_words(int fd, const char *words)
{
	static char text[1 << 20];
	size_t len = 0;

	for (int64_t until = now_ms() + 10000; now_ms() < until; sleep_ms(10)) {
		ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);

		len += got > 0 ? (size_t)got : 0;
		text[len] = '\0';
		if (strstr(text + strspn(text, "."), words))
			return;
	}
	fail_msg("'%s' is not in: %s", words, text + strspn(text, "."));
}

/* A log that nobody reads keeps no client waiting; what was dropped is counted, and told. */
static void test_log_that_nobody_reads(void **state)
{
	struct events events = { 0 };
	char path[80];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/log", folder);
	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	assert_true(fd >= 0);
	begin();
	vitro_toolhost *host = join(NULL, &events);

	fill(fd);
	put_manifest("{\"tools\": [1, 2, 3]}");
	sleep_ms(200);
	for (int i = 0; i < 5; i++)
		assert_value(host, "say", "{\"word\": \"hello\"}", "\"hello\"");
	await_words(fd, "");
	put_manifest("{\"tools\": [1]}");
	await_words(fd, "vitro: 4 lines before this one had no room here, and were dropped\n");
	vitro_toolhost_free(host);
	end();
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
}

/* Who has asked for tools of a server that has none is told. */
static void test_none(void **state)
{
	vitro_toolhost *host;
	struct vitro_error error;

	(void)state;
	start_server(&server, NULL);
	assert_true(vitro_toolhost_new(
			    &host, NULL,
			    &(struct vitro_options){ .socket = socket_path, .server_tools = 1 },
			    &error) < 0);
	assert_non_null(strstr(error.text, "no tools of its own"));
	assert_true(vitro_toolhost_new(&host, NULL, &(struct vitro_options){ .server_tools = 1 },
				       &error) == -EINVAL);
	stop_server(&server);
}

static int output_of(const char *arguments, char *text, size_t size)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "%s %s 2>&1", vitro, arguments);
	FILE *pipe = popen(command, "re");
	size_t len = pipe ? fread(text, 1, size - 1, pipe) : 0;

	text[len] = '\0';
	int status = pipe ? pclose(pipe) : -1;

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_command_line(void **state)
{
	char line[256], text[4096];

	(void)state;
	begin();
	(void)snprintf(line, sizeof(line), "tools --socket %s", socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 0);
	assert_string_equal(text, "fail\nsay word\n    Says a word.\nwords text\n");
	(void)snprintf(line, sizeof(line), "call --socket %s say '{\"word\": \"hello\"}'",
		       socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 0);
	assert_string_equal(text, "hello");
	(void)snprintf(line, sizeof(line), "call --socket %s fail", socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 3);
	assert_string_equal(text, "why\nvitro: fail: exited with code 3\n");
	(void)snprintf(line, sizeof(line), "call --socket %s nothing", socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 125);
	assert_non_null(strstr(text, "there is no tool 'nothing'\n"));
	(void)snprintf(line, sizeof(line), "call --socket %s wrods", socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 125);
	assert_non_null(strstr(text, "there is no tool 'wrods'; did you mean 'words'?"));
	read_log(&server, text, sizeof(text));
	(void)snprintf(line, sizeof(line), "vitro: serving at %s\n", socket_path);
	assert_non_null(strstr(text, line));
	(void)snprintf(line, sizeof(line), "call --socket %s say", folder);
	assert_int_equal(output_of(line, text, sizeof(text)), 125);
	assert_non_null(strstr(text, "it is a folder; name the socket in it"));
	(void)snprintf(line, sizeof(line), "call --socket %s say", manifest);
	assert_int_equal(output_of(line, text, sizeof(text)), 125);
	assert_non_null(strstr(text, "it is no socket"));
	end();
	(void)snprintf(line, sizeof(line), "call --socket %s say", socket_path);
	assert_int_equal(output_of(line, text, sizeof(text)), 125);
	assert_non_null(strstr(text, "no server can be reached"));
}

/* A server that does not answer keeps nobody from ending his call. */
static void test_call_of_a_silent_server(void **state)
{
	(void)state;
	begin();
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	struct server call = { .pid = fork() }; /* it is awaited as one */

	if (call.pid == 0) {
		(void)execl(vitro, vitro, "call", "--socket", socket_path, "fail", NULL);
		_exit(4);
	}
	sleep_ms(500);
	assert_int_equal(kill(call.pid, SIGTERM), 0);
	int status = await_server(&call, 5000);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = { TEST(test_calls),
					  TEST(test_large_arguments),
					  TEST(test_many_large_arguments),
					  TEST(test_own_tool),
					  TEST(test_changes),
					  TEST(test_log_that_nobody_reads),
					  TEST(test_numbers),
					  TEST(test_change_within_a_change),
					  TEST(test_none),
					  TEST(test_command_line),
					  TEST(test_call_of_a_silent_server) };

	return RUN_TESTS(argc, argv, NULL, all);
}
