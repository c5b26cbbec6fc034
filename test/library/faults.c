/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client for test/library/faults: calls tools as standard input says, and tells what comes of it.
 *
 *	faults FOLDER READY          ready MECHANISM, that which parts its processes from others
 *	                             (the folder may be written by the tools)
 *
 *	call ID TOOL                 done ID STATUS TYPE: MESSAGE
 *	cancel ID
 *	count                        count READY REFILLING LIVE WAITING
 *	free                         freed; and it ends
 *
 * Started as a zygote, it looks for files beside the program: with "die" there it ends at once,
 *with "slow" it waits until that is gone.
 */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vitro.h>

/* ---- the tools, in a cell ------------------------------------------------------------------ */

/* Leaves the call's id in a file of the host's: so often it ran. */
static int leave_mark(vitro_task *task)
{
	char path[PATH_MAX], line[80];
	const char *arguments = vitro_task_arguments(task, NULL);

	/* {"file": "PATH"} */
	if (sscanf(arguments, "{\"file\": \"%4000[^\"]", path) != 1)
		return -1;
	int fd = open(path, O_WRONLY | O_APPEND);
	int len = snprintf(line, sizeof(line), "%s\n", vitro_task_call_id(task));

	if (fd < 0 || write(fd, line, (size_t)len) != len)
		return -1;
	return close(fd);
}

static int mark(vitro_task *task)
{
	if (leave_mark(task) < 0)
		return vitro_task_fail(task, "NoMark", "the mark could not be left");
	return vitro_task_return(task, "1");
}

/* With a child that would stay, if anything could. */
static int hold(vitro_task *task)
{
	if (leave_mark(task) < 0)
		return vitro_task_fail(task, "NoMark", "the mark could not be left");
	(void)fork(); /* with or without it, the rest is the same */
	for (;;)
		(void)pause();
}

static const struct vitro_tool tools[] = {
	{ .name = "mark", .function = mark },
	{ .name = "hold", .function = hold },
	{ 0 },
};

/* ---- the zygote ---------------------------------------------------------------------------- */

static int is_beside(const char *program, const char *name)
{
	char copy[PATH_MAX], path[PATH_MAX + 16];
	struct stat st;

	(void)snprintf(copy, sizeof(copy), "%s", program);
	(void)snprintf(path, sizeof(path), "%s/%s", dirname(copy), name);
	return stat(path, &st) == 0;
}

static void be_difficult(const char *program)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	if (is_beside(program, "die"))
		_exit(3);
	while (is_beside(program, "slow"))
		(void)nanosleep(&pause, NULL);
}

/* ---- the client ---------------------------------------------------------------------------- */

static void done(void *user, vitro_result *result)
{
	const char *type = vitro_result_error_type(result), *error = vitro_result_error(result);

	(void)user;
	printf("done %s %s %s: %s\n", vitro_result_call_id(result),
	       vitro_status_name(vitro_result_status(result)), type ? type : "-",
	       error ? error : "-");
	vitro_result_free(result);
}

static void obey(vitro_toolhost *host, const char *folder, char *line)
{
	char id[64], tool[64], arguments[PATH_MAX + 32];
	struct vitro_counts counts;

	if (sscanf(line, "call %63s %63s", id, tool) == 2) {
		(void)snprintf(arguments, sizeof(arguments), "{\"file\": \"%s/marks\"}", folder);
		const struct vitro_request request = { .tool = tool,
						       .call_id = id,
						       .arguments = arguments };

		if (vitro_submit(host, &request, done) < 0)
			puts("out of memory");
	} else if (sscanf(line, "cancel %63s", id) == 1) {
		(void)vitro_cancel(host, id); /* it may be over */
	} else if (strncmp(line, "count", 5) == 0) {
		vitro_toolhost_count(host, &counts);
		printf("count %u %u %u %u\n", counts.ready, counts.refilling, counts.live,
		       counts.waiting);
	}
}

static int serve(vitro_toolhost *host, const char *folder)
{
	struct pollfd fds[] = { { .fd = 0, .events = POLLIN },
				{ .fd = vitro_toolhost_fd(host), .events = POLLIN } };
	char text[4096], *line, *rest;

	for (;;) {
		(void)vitro_dispatch(host);
		if (poll(fds, 2, -1) < 0 || !fds[0].revents)
			continue;
		ssize_t len = read(0, text, sizeof(text) - 1);

		if (len <= 0)
			return 1;
		text[len] = '\0';
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			if (strcmp(line, "free") == 0)
				return 0;
			obey(host, folder, line);
		}
	}
}

static void log_line(void *user, int level, const char *text)
{
	(void)user;
	fprintf(stderr, "%d: %s\n", level, text);
}

/* What a machine cannot hold is asked for nevertheless, where the environment says so. */
static int ask_what_can_be_had(vitro_policy *policy, struct vitro_error *error)
{
	const char *flags = getenv("VITRO_TEST_FLAGS");

	if (!flags || !strstr(flags, "require=best-effort"))
		return 0;
	return vitro_policy_set(policy, "require", "best-effort", error);
}

static void tell_ready(vitro_toolhost *host)
{
	char *text = vitro_toolhost_capabilities(host, NULL), mechanism[32] = "?";
	const char *at = text ? strstr(text, "\"processes\": ") : NULL;

	if (at)
		(void)sscanf(at, "\"processes\": \"%31[^\"]", mechanism);
	printf("ready %s\n", mechanism);
	free(text);
}

int main(int argc, char **argv)
{
	struct vitro_options options = { .log = log_line };
	struct vitro_error error;
	vitro_toolhost *host;

	if (getenv("VITRO_ZYGOTE"))
		be_difficult(argv[0]);
	vitro_host_main(argc, argv, tools);
	if (argc != 3)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	vitro_policy *policy = vitro_policy_new();

	options.policy = policy;
	options.ready_min = options.ready_max = (uint32_t)atoi(argv[2]);
	/* Nothing in it is protected: calls would wait for the spawner, which is stopped at times.
	 */
	if (vitro_policy_set(policy, "files.write", argv[1], &error) < 0 ||
	    vitro_policy_set(policy, "files.protect", "[]", &error) < 0 ||
	    vitro_policy_set(policy, "limits.wall_ms", "60s", &error) < 0 ||
	    ask_what_can_be_had(policy, &error) < 0 ||
	    vitro_toolhost_new(&host, tools, &options, &error) < 0) {
		printf("%s\n", error.text);
		vitro_policy_free(policy);
		return 1;
	}
	vitro_policy_free(policy);
	tell_ready(host);
	int r = serve(host, argv[1]);

	vitro_toolhost_free(host);
	puts("freed");
	return r;
}
