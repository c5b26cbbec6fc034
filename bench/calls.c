/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pools.h"

enum { SETTLING_MS = 5, PATIENCE_S = 60 };

/* As many bytes as go through the bare socket. */
static const char message[MESSAGE_BYTES + 1] =
	"{\"text\": \"the quick brown fox jumps over the lazy dog, and on.\"}";

static void log_line(void *user, int level, const char *text)
{
	(void)user;
	if (level <= 4)
		fprintf(stderr, "vitro: %s\n", text);
}

static void set(vitro_policy *policy, const char *key, unsigned value)
{
	struct vitro_error error;
	char text[32];

	(void)snprintf(text, sizeof(text), "%u", value);
	if (vitro_policy_set(policy, key, text, &error) < 0)
		die("%s: %s", key, error.text);
}

vitro_toolhost *host_open(unsigned ready, unsigned result_mb)
{
	return host_open_at(ready, result_mb, NULL);
}

vitro_toolhost *host_open_at(unsigned ready, unsigned result_mb, const char *socket)
{
	vitro_policy *policy = need(vitro_policy_new());
	const struct vitro_options options = { .policy = policy,
					       .ready_min = ready,
					       .ready_max = ready,
					       .log = log_line,
					       .socket = socket };
	struct vitro_error error;
	vitro_toolhost *host;

	set(policy, "limits.wall_ms", 600000);
	if (result_mb)
		set(policy, "limits.result_mb", result_mb);
	if (vitro_toolhost_new(&host, bench_tools, &options, &error) < 0)
		die("start a tool host: %s", error.text);
	vitro_policy_free(policy);
	return host;
}

void host_settle(vitro_toolhost *host, unsigned ready)
{
	int64_t until = vt_clock_now() + PATIENCE_S * VT_NS_PER_S;
	struct vitro_counts counts;

	for (;;) {
		vitro_toolhost_count(host, &counts);
		if (counts.ready >= ready && counts.refilling == 0)
			break;
		if (vt_clock_now() > until)
			die("%u cells are ready after %d s, not %u", counts.ready, PATIENCE_S,
			    ready);
		pause_ms(1);
	}
	pause_ms(SETTLING_MS); /* those that are over are killed */
}

/* Dies unless it is there. */
static vitro_result *insist(vitro_result *result)
{
	if (vitro_result_status(result) != VITRO_OK)
		die("a call ended as %s: %s", vitro_status_name(vitro_result_status(result)),
		    vitro_result_error(result));
	return result;
}

static void answer(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	(void)user;
	(void)tool;
	vitro_question_answer(question, arguments, NULL);
}

vitro_result *host_call(vitro_toolhost *host, const char *tool, const char *arguments)
{
	const struct vitro_request request = { .tool = tool,
					       .arguments = arguments ? arguments : message,
					       .on_call = answer };

	return insist(vitro_call(host, &request));
}

char *host_output(vitro_toolhost *host, const char *tool, const char *arguments)
{
	vitro_result *result = host_call(host, tool, arguments);
	char *text = need(strdup(vitro_result_output(result, VITRO_STDOUT, NULL)));

	vitro_result_free(result);
	return text;
}

int64_t host_time(vitro_toolhost *host)
{
	const struct vitro_request request = { .tool = "echo", .arguments = message };
	int64_t begin = vt_clock_now();
	vitro_result *result = vitro_call(host, &request);
	int64_t end = vt_clock_now();
	size_t len;
	const char *value = vitro_result_value(insist(result), &len);

	if (len != MESSAGE_BYTES || memcmp(value, message, len) != 0)
		die("a call gave another value back: %s", value);
	vitro_result_free(result);
	return end - begin;
}

static void count_done(void *user, vitro_result *result)
{
	unsigned *done = user;

	(*done)++;
	vitro_result_free(insist(result));
}

static void submit(vitro_toolhost *host, const struct vitro_request *request)
{
	if (vitro_submit(host, request, count_done) < 0)
		die("out of memory");
}

static void dispatch(vitro_toolhost *host)
{
	struct pollfd poller = { .fd = vitro_toolhost_fd(host), .events = POLLIN };

	if (poll(&poller, 1, PATIENCE_S * 1000) == 0)
		die("nothing happens for %d s", PATIENCE_S);
	(void)vitro_dispatch(host); /* what is over counts itself */
}

int64_t host_burst(vitro_toolhost *host, unsigned count)
{
	unsigned done = 0;
	const struct vitro_request request = { .tool = "echo",
					       .arguments = message,
					       .user = &done };
	int64_t begin = vt_clock_now();

	for (unsigned i = 0; i < count; i++)
		submit(host, &request);
	while (done < count)
		dispatch(host);
	return vt_clock_now() - begin;
}

static void keep(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	unsigned *held = user;

	(void)question; /* it ends with the tool host, and a few bytes stay */
	(void)tool;
	(void)arguments;
	(*held)++;
}

void host_hold(vitro_toolhost *host, unsigned count)
{
	unsigned held = 0;
	const struct vitro_request request = { .tool = "hold", .on_call = keep, .user = &held };

	for (unsigned i = 0; i < count; i++)
		if (vitro_submit(host, &request, NULL) < 0)
			die("out of memory");
	while (held < count)
		dispatch(host);
}

unsigned host_work(vitro_toolhost *host, unsigned at_once, int64_t ns)
{
	int64_t until = vt_clock_now() + ns;
	unsigned begun = 0, done = 0;
	const struct vitro_request request = { .tool = "echo",
					       .arguments = message,
					       .user = &done };

	while (vt_clock_now() < until) {
		for (; begun - done < at_once; begun++)
			submit(host, &request);
		dispatch(host);
	}
	unsigned counted = done;

	while (done < begun)
		dispatch(host);
	return counted;
}
