/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in a program that has a loop of its own: ten are under way, the loop waits for them and for
 * a timer at once, and when the timer fires, the one that would take a minute is cancelled.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <vitro.h>

/* Sleeps for so many ms, and returns that. The schema allows this one number, and nothing else. */
static int nap(vitro_task *task)
{
	long ms = strtol(strchr(vitro_task_arguments(task, NULL), ':') + 1, NULL, 10);
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	char value[32];

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	snprintf(value, sizeof(value), "%ld", ms);
	return vitro_task_return(task, value);
}

static const struct vitro_tool tools[] = {
	{ .name = "nap",
	  .schema = "{\"type\": \"object\", \"required\": [\"ms\"], \"properties\": {"
		    "\"ms\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 60000}},"
		    "\"additionalProperties\": false}",
	  .function = nap },
	{ 0 },
};

enum { CALLS = 10, SLOW = 9 };

/* What the program knows of a call. */
struct call {
	char id[32];
	vitro_result *result; /* once it is over */
	int *left;            /* how many are not */
};

static void call_done(void *user, vitro_result *result)
{
	struct call *call = user;

	call->result = result;
	(*call->left)--;
}

/* The request is copied; what its `user` points to must be there until the call is over. */
static int begin(vitro_toolhost *host, struct call *call, int number)
{
	char arguments[32];
	const struct vitro_request request = {
		.tool = "nap", .arguments = arguments, .call_id = call->id, .user = call
	};

	snprintf(call->id, sizeof(call->id), "call-%d", number);
	snprintf(arguments, sizeof(arguments), "{\"ms\": %d}",
		 number == SLOW ? 60000 : number * 10);
	return vitro_submit(host, &request, call_done);
}

static int watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The program's loop. It ends when no call is left. */
static int loop(vitro_toolhost *host, int epoll, int timer, const struct call *slow,
		const int *left)
{
	struct epoll_event events[4];
	uint64_t fired;

	while (*left > 0) {
		int count = epoll_wait(epoll, events, 4, -1);

		if (count < 0 && errno != EINTR)
			return -1;
		for (int i = 0; i < count; i++)
			if (events[i].data.fd != timer)
				vitro_dispatch(host);
			else if (read(timer, &fired, sizeof(fired)) > 0)
				vitro_cancel(host, slow->id); /* its result comes as ever */
	}
	return 0;
}

static void show(const struct call *call)
{
	const char *value = vitro_result_value(call->result, NULL);

	printf("%s %s: %s\n", call->id, vitro_status_name(vitro_result_status(call->result)),
	       value ? value : vitro_result_error(call->result));
}

int main(int argc, char **argv)
{
	const struct itimerspec once = { .it_value = { .tv_nsec = 500000000 } };
	struct call calls[CALLS] = { 0 };
	vitro_toolhost *host;
	struct vitro_error error;
	int epoll, timer, left = 0;

	vitro_host_main(argc, argv, tools);
	if (vitro_toolhost_new(&host, tools, NULL, &error) < 0)
		return fprintf(stderr, "%s\n", error.text), 1;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (epoll < 0 || timer < 0 || timerfd_settime(timer, 0, &once, NULL) < 0 ||
	    watch(epoll, timer) < 0 || watch(epoll, vitro_toolhost_fd(host)) < 0)
		return perror("epoll"), 1;
	for (; left < CALLS; left++) {
		calls[left].left = &left;
		if (begin(host, &calls[left], left) < 0)
			return fputs("out of memory\n", stderr), 1;
	}
	if (loop(host, epoll, timer, &calls[SLOW], &left) < 0)
		return perror("epoll_wait"), 1;
	for (int i = 0; i < CALLS; i++) {
		show(&calls[i]);
		vitro_result_free(calls[i].result);
	}
	vitro_toolhost_free(host);
	close(timer);
	close(epoll);
	return 0;
}
