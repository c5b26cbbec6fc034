/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools that tell what a cell is like from within, and that leave something behind:
 * weak TOOL ARGUMENTS [KEY=VALUE]... makes one call, and prints its result.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vitro.h>

/* Two facts. */
static int give(vitro_task *task, const char *text, long number)
{
	char json[1024];

	(void)snprintf(json, sizeof(json), "[\"%s\", %ld]", text, number); /* it is short */
	return vitro_task_return(task, json);
}

/* What most programs ask for when they want a place to write to. */
static int places(vitro_task *task)
{
	char json[1024], cwd[256];
	const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
	FILE *file = fopen("here", "w");

	if (!getcwd(cwd, sizeof(cwd)) || !file || fclose(file) != 0)
		return vitro_task_fail(task, "OSError", strerror(errno));
	(void)snprintf(json, sizeof(json), "[\"%s\", \"%s\", \"%s\", \"%u\"]", home ? home : "",
		       temporary ? temporary : "", cwd, getuid());
	return vitro_task_return(task, json);
}

/* A child of nobody's, in a session of its own; its pid. */
static pid_t start_daemon(void)
{
	pid_t pid = -1;
	int ends[2];

	if (pipe(ends) < 0)
		return -1;
	if (fork() == 0) {
		if (fork() != 0)
			_exit(0);
		pid = setsid();
		if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			(void)pause();
	}
	return read(ends[0], &pid, sizeof(pid)) == sizeof(pid) ? pid : -1;
}

static int leave(vitro_task *task)
{
	return give(task, getenv("HOME"), (long)start_daemon());
}

/* The same, and whatever the arguments say instead of a result. */
static int leave_and(vitro_task *task)
{
	const char *how = vitro_task_arguments(task, NULL);

	printf("%s %ld\n", getenv("HOME"), (long)start_daemon());
	fflush(stdout);
	if (strstr(how, "crash"))
		abort();
	if (strstr(how, "exit"))
		_exit(3);
	for (size_t size = 1 << 20; strstr(how, "eat");) {
		char *bytes = malloc(size);

		if (bytes)
			memset(bytes, 1, size);
	}
	for (int fd = open("large", O_CREAT | O_WRONLY, 0600); strstr(how, "fill");)
		if (write(fd, how, strlen(how)) < 0)
			(void)pause();
	for (;;)
		(void)pause();
}

/* In the cell's own place, and of a file of the host's. */
static int modes(vitro_task *task)
{
	char json[128];
	struct stat st;
	int fd = open("tool", O_CREAT | O_WRONLY, 0600);
	int own = fd < 0 || fchmod(fd, 0750) < 0 || fstat(fd, &st) < 0 ? errno : 0;
	int other = chmod("/etc/passwd", 0644) < 0 ? errno : 0;

	(void)snprintf(json, sizeof(json), "[%d, %o, %d]", own, own ? 0 : st.st_mode & 0777, other);
	return vitro_task_return(task, json);
}

/* Whether a path, the argument, can be read. */
static int look(vitro_task *task)
{
	char path[256] = "";
	int fd = sscanf(vitro_task_arguments(task, NULL), "{\"path\":\"%255[^\"]", path) == 1
			 ? open(path, O_RDONLY)
			 : -1;

	return give(task, path, fd < 0 ? (long)errno : 0);
}

static const struct vitro_tool tools[] = {
	{ .name = "places", .function = places },       { .name = "leave", .function = leave },
	{ .name = "leave_and", .function = leave_and }, { .name = "modes", .function = modes },
	{ .name = "look", .function = look },           { 0 },
};

int main(int argc, char **argv)
{
	struct vitro_error error;
	vitro_toolhost *host;

	vitro_host_main(argc, argv, tools);
	vitro_policy *policy = vitro_policy_new();
	const struct vitro_options options = { .policy = policy };

	for (int i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return 2;
		*value++ = '\0';
		if (vitro_policy_set(policy, argv[i], value, &error) < 0)
			return fprintf(stderr, "%s\n", error.text), 1;
	}
	if (argc < 3 || vitro_toolhost_new(&host, tools, &options, &error) < 0)
		return fprintf(stderr, "%s\n", argc < 3 ? "no tool" : error.text), 1;
	for (int i = 0; i < 2; i++) {
		const struct vitro_request request = { .tool = argv[1], .arguments = argv[2] };
		vitro_result *result = vitro_call(host, &request);

		fputs(vitro_result_json(result), stdout);
		vitro_result_free(result);
	}
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
	return 0;
}
