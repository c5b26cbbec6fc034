/* SPDX-License-Identifier: Apache-2.0 */
/* More than a supervisor passes on at once: whatever cells give, it goes on. argv: vitro. */
#include "library_test.h"

#include <time.h>

enum {
	MB = 1 << 20,
	CALLS = 12,
	EACH = 60 * MB, /* of all of them it is more than may wait for a client */
	ANSWER = 257 * MB,
};

/* ---- the tools ----------------------------------------------------------------------------- */

static char bytes[MB];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int write_all(int fd, size_t len)
{
	while (len > 0) {
		ssize_t done = write(fd, bytes, len < sizeof(bytes) ? len : sizeof(bytes));

		if (done <= 0)
			return -EIO;
		len -= (size_t)done;
	}
	return 0;
}

/* Space before a number; and at the time that all of them have for it, the number and its own end.
 */
static int give_at(vitro_task *task)
{
	/* As a tool can, with what is its own: the call's socket. */
	const struct {
		uint32_t kind, flags, name_len, reserved;
		uint64_t id, body_len;
	} head = { .kind = 5, .body_len = EACH };
	const char *at = strchr(vitro_task_arguments(task, NULL), ':');

	memset(bytes, ' ', sizeof(bytes));
	if (!at || write(3, &head, sizeof(head)) != sizeof(head) || write_all(3, EACH - 4096) < 0)
		return -EPROTO;
	while (now() < strtod(at + 1, NULL))
		(void)usleep(1000);
	bytes[4095] = '7';
	(void)write_all(3, 4096); /* if it is not heard, the call says so */
	_exit(0);
}

static int print_and_wait(vitro_task *task)
{
	memset(bytes, 'p', sizeof(bytes));
	(void)write_all(1, EACH); /* the same */
	while (pause() < 0)
		;
	return vitro_task_return(task, "1");
}

static int measure_answer(vitro_task *task)
{
	char *value = NULL, text[32];
	int r = vitro_task_call(task, "mine", NULL, &value);

	(void)snprintf(text, sizeof(text), "%zu", r == 0 ? strlen(value) : 0);
	free(value);
	return vitro_task_return(task, text);
}

/* {}: many calls of itself, which wait with it; with arguments it is one of those. */
static int call_many(vitro_task *task)
{
	uint64_t ticket;
	int r = 0;

	if (strcmp(vitro_task_arguments(task, NULL), "{}") == 0)
		for (int i = 0; r == 0 && i < 200; i++)
			r = vitro_task_submit(task, "many", "{\"one\": 1}", &ticket);
	while (pause() < 0)
		;
	return r;
}

static int answer(vitro_task *task)
{
	return vitro_task_return(task, "1");
}

static const char *const all[] = { "*", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "give", .function = give_at },
	{ .name = "print", .function = print_and_wait },
	{ .name = "measure", .function = measure_answer },
	{ .name = "answer", .function = answer },
	{ .name = "many", .function = call_many, .may_call = all },
	{ 0 },
};

/* ---- the tests ----------------------------------------------------------------------------- */

struct ends {
	int over, of[VITRO_LOST + 1];
};

static void count(void *user, vitro_result *result)
{
	struct ends *ends = user;

	ends->over++;
	ends->of[vitro_result_status(result)]++;
	vitro_result_free(result);
}

/* Begins them, hears nothing for so long, and then all of them to their end. */
static void call_all(vitro_toolhost *host, const struct vitro_request *request, double until,
		     struct ends *ends)
{
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(vitro_submit(host, request, count), 0);
	while (now() < until)
		(void)usleep(10000);
	while (ends->over < CALLS)
		turn(host);
}

/* All are read to their last bytes before the first is whole: then each is, at the end of its cell.
 */
static void test_results_at_once(void **state)
{
	double at = now() + 8;
	char arguments[64];
	struct ends ends = { 0 };

	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	int waits = has_namespaces(host);

	(void)snprintf(arguments, sizeof(arguments), "{\"at\":%f}", at);
	call_all(host,
		 &(struct vitro_request){ .tool = "give", .arguments = arguments, .user = &ends },
		 at + 2, &ends);
	/* A bare cell's end does not wait until there is room for its result. */
	assert_int_equal(ends.of[VITRO_OK] + (waits ? 0 : ends.of[VITRO_LOST]), CALLS);
	assert_value(host, "answer", NULL, "1");
	vitro_toolhost_free(host);
}

/* Those that are ended do not wait, so that what is too much of them is lost, and nothing else. */
static void test_output_at_once(void **state)
{
	vitro_policy *policy = policy_of("limits.stdout_kb", "64M");
	struct ends ends = { 0 };

	(void)state;
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });

	call_all(host, &(struct vitro_request){ .tool = "print", .wall_ms = 6000, .user = &ends },
		 now() + 9, &ends);
	assert_true(ends.of[VITRO_TIMEOUT] > 0);
	assert_int_equal(ends.of[VITRO_TIMEOUT] + ends.of[VITRO_LOST], CALLS);
	assert_value(host, "answer", NULL, "1");
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
}

static void answer_much(void *user, vitro_question *question, const char *tool,
			const char *arguments)
{
	char *value = malloc(ANSWER + 1);

	(void)user;
	(void)tool;
	(void)arguments;
	assert_non_null(value);
	memset(value, ' ', ANSWER);
	value[0] = '7';
	value[ANSWER] = '\0';
	vitro_question_answer(question, value, NULL);
	free(value);
}

static void test_large_answer(void **state)
{
	vitro_policy *policy = policy_of("limits.memory_mb", "1G");
	char wanted[32];

	(void)state;
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "measure", .on_call = answer_much });

	(void)snprintf(wanted, sizeof(wanted), "%d", ANSWER);
	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), wanted);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
}

/* Its own calls have their turn while those wait, which would be for longer than the call lives. */
static void test_many_calls_within_one(void **state)
{
	struct ends ends = { 0 };

	(void)state;
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .live_max = 32 });

	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){ .tool = "many",
							       .call_id = "many",
							       .wall_ms = 6000,
							       .user = &ends },
				      count),
			 0);
	for (double until = now() + 3; now() < until; (void)usleep(1000))
		(void)vitro_dispatch(host);
	for (int i = 0; i < 3; i++)
		assert_value(host, "answer", NULL, "1");
	assert_true(vitro_is_running(host, "many"));
	while (!ends.over)
		turn(host);
	assert_int_equal(ends.of[VITRO_TIMEOUT], 1);
	vitro_toolhost_free(host);
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, tools);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_at_once),
		cmocka_unit_test(test_output_at_once),
		cmocka_unit_test(test_large_answer),
		cmocka_unit_test(test_many_calls_within_one),
	};

	if (argc < 2 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
