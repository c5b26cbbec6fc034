/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that are called: what runs in cells. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "pools.h"

enum { ASKS = 16 };

/* JSON strings of these sizes, one behind the other. */
static const size_t sizes[] = { 1 * MB, 50 * MB, 100 * MB };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const char *values[SIZES];

/*
 * Shared, so that a fork copies no page tables: what is timed is the way of a value, and neither
 * how it is made nor a zygote that is heavy with it. Opened anew for reading alone: a zygote that
 * had it writable would be refused.
 */
void tools_prepare(void)
{
	int fd = memfd_create("values", MFD_CLOEXEC);
	char again[32];
	size_t all = 0;

	for (size_t i = 0; i < SIZES; i++)
		all += sizes[i];
	if (fd < 0 || ftruncate(fd, (off_t)all) < 0)
		die("make large values");
	char *text = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (text == MAP_FAILED)
		die("map large values");
	memset(text, 'x', all);
	for (size_t i = 0, at = 0; i < SIZES; at += sizes[i++])
		text[at] = text[at + sizes[i] - 1] = '"';
	(void)munmap(text, all); /* cannot fail: it is one whole mapping */
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	int read_fd = open(again, O_RDONLY | O_CLOEXEC);

	text = read_fd < 0 ? MAP_FAILED : mmap(NULL, all, PROT_READ, MAP_SHARED, read_fd, 0);
	if (text == MAP_FAILED)
		die("map large values for reading");
	for (size_t i = 0, at = 0; i < SIZES; at += sizes[i++])
		values[i] = text + at;
	(void)close(read_fd); /* they are mapped */
	(void)close(fd);
}

/* Gives back what it is given. */
static int echo(vitro_task *task)
{
	size_t len;
	const char *text = vitro_task_arguments(task, &len);

	return vitro_task_return_bytes(task, text, len);
}

static long number_of(vitro_task *task)
{
	const char *colon = strchr(vitro_task_arguments(task, NULL), ':');

	return colon ? strtol(colon + 1, NULL, 10) : 0;
}

/* {"mb": N} */
static int value(vitro_task *task)
{
	size_t bytes = (size_t)number_of(task) * MB;

	for (size_t i = 0; i < SIZES; i++)
		if (sizes[i] == bytes && values[i])
			return vitro_task_return_bytes(task, values[i], bytes);
	return vitro_task_fail(task, "ValueError", "there is no value of that size");
}

/* What a call-back takes, seen from within: so many samples in ns. */
static int ask(vitro_task *task)
{
	char text[ASKS * 21 + 3] = "[", *answer;
	size_t len = 1;

	for (int i = 0; i < ASKS; i++) {
		int64_t begin = vt_clock_now();
		int r = vitro_task_call(task, "outside", vitro_task_arguments(task, NULL), &answer);
		int64_t end = vt_clock_now();

		free(answer);
		if (r < 0)
			return vitro_task_fail(task, "Error", "nobody answers");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%lld", i ? "," : "",
					(long long)(end - begin));
	}
	(void)snprintf(text + len, sizeof(text) - len, "]");
	return vitro_task_return(task, text);
}

/* Waits for an answer that does not come. */
static int hold(vitro_task *task)
{
	char *answer;
	int r = vitro_task_call(task, "outside", "{}", &answer);

	return r < 0 ? r : vitro_task_return(task, "null");
}

/* {"path": P}: prints the file, or where the link leads. */
static int look(vitro_task *task)
{
	char path[256], bytes[4096];

	if (sscanf(vitro_task_arguments(task, NULL), "{\"path\": \"%255[^\"]", path) != 1)
		return vitro_task_fail(task, "ValueError", "no path");
	ssize_t len = readlink(path, bytes, sizeof(bytes));

	if (len >= 0)
		(void)fwrite(bytes, 1, (size_t)len, stdout); /* seen when it is missing */
	int fd = len < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	while (fd >= 0 && (len = read(fd, bytes, sizeof(bytes))) > 0)
		(void)fwrite(bytes, 1, (size_t)len, stdout); /* seen when it is missing */
	return vitro_task_return(task, "null");
}

/* {"port": N, "secret": P}. */
static int try_holes(vitro_task *task)
{
	char path[256];
	int port;

	if (sscanf(vitro_task_arguments(task, NULL), "{\"port\": %d, \"secret\": \"%255[^\"]",
		   &port, path) != 2)
		return vitro_task_fail(task, "ValueError", "no port and secret");
	probe(port, path);
	return vitro_task_return(task, "null");
}

const struct vitro_tool bench_tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "value", .function = value },
	{ .name = "ask", .function = ask },
	{ .name = "hold", .function = hold },
	{ .name = "look", .function = look },
	{ .name = "probe", .function = try_holes },
	{ 0 },
};
