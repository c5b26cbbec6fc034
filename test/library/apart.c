/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose tools attack: the cells beside them, vitro's own processes, and the program
 *itself.
 *
 *	vitro-apart POLICY      what to call comes on standard input, what happens goes to standard
 *output vitro-apart --do TOOL ARGUMENTS the same act outside of any cell: its control
 *
 * Lines that it reads: "call ID TOOL ARGUMENTS", "cancel ID", "inherited NEEDLE", "count". It
 *plants VITRO_APART_SECRET wherever a program may have one. Lines that it writes: "ready
 *MECHANISM", that which parts its processes from others, "result ID {...}", "log ID TEXT",
 *"inherited N", "count READY MADE".
 */
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- outside of cells ---------------------------------------------------------------------- */

static char planted[128];

/* Wherever a program may have one: in its memory, in a file that it has open, and in its keyring.
 */
static void plant(const char *secret)
{
	char *copy = strdup(secret);
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600); /* not close-on-exec */

	snprintf(planted, sizeof(planted), "%s", secret);
	if (!copy || fd < 0 || write(fd, secret, strlen(secret)) < 0)
		exit(1);
	/* Not everybody has keys; who has finds it. */
	(void)syscall(SYS_add_key, "user", "vitro-apart", secret, strlen(secret), -3);
}

/* What a child of this program's own finds: the control of what a tool finds. */
static void search_in_child(const char *needle)
{
	int pair[2], found = -1;

	if (pipe(pair) < 0)
		exit(1);
	pid_t pid = fork();

	if (pid == 0) {
		found = count_in_memory(needle);
		_exit(write(pair[1], &found, sizeof(found)) != sizeof(found));
	}
	if (pid < 0 || read(pair[0], &found, sizeof(found)) != sizeof(found))
		exit(1);
	waitpid(pid, NULL, 0);
	close(pair[0]);
	close(pair[1]);
	printf("inherited %d\n", found);
}

struct pending {
	vitro_toolhost *host;
	char id[64];
};

static void on_log(void *user, const char *level, const char *text)
{
	const struct pending *pending = user;

	(void)level;
	if (strncmp(text, "flood", 5) != 0)
		printf("log %s %s\n", pending->id, text);
}

static void on_call(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	(void)user;
	(void)arguments;
	vitro_question_answer(question, strcmp(tool, "outer") == 0 ? "\"answer\"" : NULL, "no");
}

static void on_done(void *user, vitro_result *result)
{
	struct pending *pending = user;

	printf("result %s %s", pending->id, vitro_result_json(result));
	vitro_result_free(result);
	free(pending);
}

static void submit(vitro_toolhost *host, char *line)
{
	struct pending *pending = calloc(1, sizeof(*pending));
	char *id = strtok(line, " "), *tool = strtok(NULL, " "), *arguments = strtok(NULL, "");

	if (!pending || !id || !tool || !arguments)
		exit(1);
	pending->host = host;
	snprintf(pending->id, sizeof(pending->id), "%s", id);
	const struct vitro_request request = {
		.tool = tool,
		.arguments = arguments,
		.call_id = pending->id,
		.user = pending,
		.on_log = on_log,
		.on_call = on_call,
	};

	if (vitro_submit(host, &request, on_done) < 0)
		exit(1);
}

static void obey(vitro_toolhost *host, char *line)
{
	struct vitro_counts counts;

	if (strncmp(line, "call ", 5) == 0)
		submit(host, line + 5);
	else if (strncmp(line, "cancel ", 7) == 0)
		(void)vitro_cancel(host, line + 7);
	else if (strncmp(line, "inherited ", 10) == 0)
		search_in_child(line + 10);
	else if (strcmp(line, "count") == 0) {
		vitro_toolhost_count(host, &counts);
		printf("count %u %llu\n", counts.ready, (unsigned long long)counts.cells_made);
	} else
		exit(1);
}

/* Lines of standard input until its end. */
static void serve(vitro_toolhost *host)
{
	static char text[1 << 20];
	size_t len = 0;

	for (;;) {
		struct pollfd fds[] = { { .fd = 0, .events = POLLIN },
					{ .fd = vitro_toolhost_fd(host), .events = POLLIN } };

		if (poll(fds, 2, -1) < 0)
			exit(1);
		if (fds[0].revents) {
			ssize_t got = read(0, text + len, sizeof(text) - 1 - len);

			if (got <= 0)
				return;
			len += (size_t)got;
		}
		for (char *end; (end = memchr(text, '\n', len));) {
			size_t size = (size_t)(end + 1 - text);

			*end = '\0';
			obey(host, text);
			memmove(text, end + 1, len -= size);
		}
		vitro_dispatch(host);
		fflush(stdout);
	}
}

static int act_outside(const char *name, const char *arguments)
{
	json_t *input = json_loads(arguments, 0, NULL);
	act_function *act = act_of(name);

	if (!input || !act)
		return 64;
	puts(json_dumps(act(input, NULL), JSON_ENCODE_ANY));
	return 0;
}

static void tell_ready(vitro_toolhost *host)
{
	char *text = vitro_toolhost_capabilities(host, NULL);
	json_t *held = text ? json_loads(text, 0, NULL) : NULL;
	const char *processes = json_string_value(json_object_get(held, "processes"));

	printf("ready %s\n", processes ? processes : "none");
	fflush(stdout);
	json_decref(held);
	free(text);
}

int main(int argc, char **argv)
{
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error;
	vitro_toolhost *host;

	vitro_host_main(argc, argv, tools);
	if (argc == 4 && strcmp(argv[1], "--do") == 0)
		return act_outside(argv[2], argv[3]);
	const char *secret = getenv("VITRO_APART_SECRET");

	if (secret)
		plant(secret);
	const struct vitro_options options = { .policy = policy, .ready_min = 2, .ready_max = 8 };

	if (argc != 2 || vitro_policy_load_json(policy, argv[1], &error) < 0 ||
	    vitro_toolhost_new(&host, tools, &options, &error) < 0)
		return fprintf(stderr, "%s\n", error.text), 1;
	vitro_policy_free(policy);
	tell_ready(host);
	serve(host);
	vitro_toolhost_free(host);
	return 0;
}
