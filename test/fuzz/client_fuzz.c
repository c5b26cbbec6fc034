/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client under whatever a supervisor says, while calls are under way. Whatever that is, each
 * call has one result, whose JSON is JSON, and nothing waits for ever. Input: test/fuzz/frames.h;
 * FRAMES_GREETED: the counts are asked for too, FRAMES_MORE: a tool is added.
 */
#include <errno.h>
#include <sys/socket.h>

#include "../wire/fed.h"
#include "base/json_scan.h"
#include "frames.h"
#include <vitro.h>

enum { CALLS = 4 };

/* What is known of the calls. */
struct told {
	vitro_toolhost *host;
	int over;
	vitro_question *kept; /* to be answered when all is over */
};

static void on_done(void *user, vitro_result *result)
{
	struct told *told = user;
	const char *json = vitro_result_json(result);

	REQUIRE(json && vt_json_is_valid(json, strlen(json)));
	REQUIRE(!vitro_result_error(result) == (vitro_result_status(result) == VITRO_OK));
	vitro_result_free(result);
	told->over++;
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	struct told *told = user;

	REQUIRE((stream == VITRO_STDOUT || stream == VITRO_STDERR) && bytes[len] == '\0');
	if (len && *bytes == 'c')
		(void)vitro_cancel(told->host, "c1"); /* it may be over */
}

static void on_log(void *user, const char *level, const char *text)
{
	(void)user;
	REQUIRE(level && text);
}

static void on_call(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	struct told *told = user;

	REQUIRE(tool && vt_json_is_valid(arguments, strlen(arguments)));
	if (*tool == 'k' && !told->kept)
		told->kept = question;
	else
		vitro_question_answer(question, *tool == 'x' ? NULL : "1", "no");
}

static int unused(vitro_task *task)
{
	(void)task;
	return 0;
}

static void begin_calls(struct told *told)
{
	struct vitro_request request = { .tool = "f",
					 .user = told,
					 .on_output = on_output,
					 .on_log = on_log,
					 .on_call = on_call };

	for (int i = 0; i < CALLS; i++) {
		request.tool = i == 2 ? "c" : "f";
		if (i == 3)
			request.on_call = NULL;
		REQUIRE(vitro_submit(told->host, &request, on_done) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const all[] = { "*", NULL }, *const cat[] = { "cat", NULL },
				 *const right[] = { "true", NULL };
	const struct vitro_tool tools[] = {
		{ .name = "f", .function = unused, .may_call = all },
		{ .name = "c", .command = cat },
		{ 0 },
	};
	struct told told = { 0 };
	struct vitro_counts counts;
	struct vt_str stream;

	if (size < 1)
		return 0;
	fed_pools = 2;
	REQUIRE(vitro_toolhost_new(&told.host, tools, NULL, NULL) == 0);
	begin_calls(&told);
	vt_str_init(&stream);
	frames_of(&stream, data, size);
	REQUIRE(!stream.len || fed_say(stream.text, stream.len));
	REQUIRE(shutdown(fed_fd, SHUT_WR) == 0);
	if (data[0] & FRAMES_GREETED)
		vitro_toolhost_count(told.host, &counts);
	if (data[0] & FRAMES_MORE)
		(void)vitro_toolhost_add(
			told.host, &(struct vitro_tool){ .name = "d", .command = right }, NULL);
	for (int turns = 0; told.over < CALLS; turns++) {
		REQUIRE(turns < 1000);
		(void)vitro_dispatch(told.host);
	}
	REQUIRE(told.over == CALLS && !vitro_is_running(told.host, NULL));
	vitro_toolhost_free(told.host);
	vitro_question_answer(told.kept, "1", NULL);
	REQUIRE(told.over == CALLS);
	vt_str_done(&stream);
	return 0;
}
