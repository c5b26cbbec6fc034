/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs short, at each place where some is asked for: every call has one result all the
 * same, nothing crashes, nothing hangs, nothing is left.
 */
#include "base/skip_test.h"
#include "client/fake_test.h"

#ifdef __SANITIZE_ADDRESS__
#define OWN_MALLOC 0
#else
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static long countdown = -1; /* allocations until one fails; -1: none does */
static bool for_good;       /* and all after it */

static bool fails(void)
{
	if (countdown < 0)
		return false;
	if (countdown > 0) {
		countdown--;
		return false;
	}
	if (!for_good)
		countdown = -1;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

struct told {
	int begun, over, ok, asked;
};

static void on_done(void *user, vitro_result *result)
{
	struct told *told = user;

	told->over++;
	told->ok += vitro_result_status(result) == VITRO_OK;
	(void)vitro_result_json(result); /* or NULL */
	(void)vitro_result_error(result);
	vitro_result_free(result);
}

static void on_log(void *user, const char *level, const char *text)
{
	(void)user;
	(void)level;
	(void)text;
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	(void)user;
	(void)stream;
	(void)bytes;
	(void)len;
}

static void on_call(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	struct told *told = user;

	(void)tool;
	(void)arguments;
	told->asked++;
	vitro_question_answer(question, "1", NULL);
}

static const char *const cases[][2] = {
	{ "echo", "{\"a\":[1,2,3]}" },
	{ "none", "{}" },
	{ "print", "{}" },
	{ "ask", "{\"ask\":\"echo\"}" },
	{ "ask", "{\"ask\":\"mine\"}" },
	{ "words", "{\"file\":\"a\"}" },
};

static vitro_toolhost *make_host(void)
{
	static const char *const words[] = { "wc", "{file}", NULL };
	struct vitro_tool tool = { .name = "words", .command = words };
	vitro_toolhost *host = FAKE_HOST("echo", "print", "ask");

	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	(void)vitro_dispatch(host); /* the log line of its start */
	return host;
}

/* Whether memory ran short at all. */
static bool try_calls(long after, bool good, const char *const *what)
{
	vitro_toolhost *host = make_host();
	struct told told = { 0 };
	struct vitro_request request = {
		.tool = what[0],
		.arguments = what[1],
		.user = &told,
		.on_output = on_output,
		.on_log = on_log,
		.on_call = on_call,
	};

	for_good = good;
	countdown = after;
	told.begun = vitro_submit(host, &request, on_done) == 0;
	vitro_result *result = vitro_call(host, &request);

	while (told.over < told.begun)
		(void)fake_turn(host);
	bool short_of_it = good ? countdown == 0 : countdown == -1;

	countdown = -1;
	assert_non_null(result);
	assert_int_equal(told.over, told.begun);
	assert_true(vitro_result_status(result) == VITRO_OK || vitro_result_error(result));
	if (!short_of_it && strcmp(what[0], "none") != 0) {
		assert_int_equal(vitro_result_status(result), VITRO_OK);
		assert_int_equal(told.ok, 1);
	}
	vitro_result_free(result);
	vitro_toolhost_free(host);
	return short_of_it;
}

static void test_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int good = 0; good < 2; good++) {
			long after = 0;

			while (try_calls(after, good, cases[i]))
				after++;
			assert_true(after > 3);
		}
	}
}

/* jansson takes a text that there is no memory for as wrong here and there. It is refused either
 * way. */
static bool is_shortage(int status)
{
	return status == -ENOMEM || status == -EINVAL;
}

static void test_start(void **state)
{
	(void)state;
	struct vitro_tool tools[] = {
		{ .name = "echo", .function = fake_function, .description = "It says it again." },
		{ 0 },
	};
	struct vitro_options options = { 0 };
	long failures = 0;

	for (long after = 0;; after++) {
		vitro_toolhost *host = NULL;
		struct vitro_error error = { 0 };

		for_good = false;
		countdown = after;
		int status = vitro_toolhost_new(&host, tools, &options, &error);
		bool short_of_it = countdown == -1;

		countdown = -1;
		/* What is only for a message, or for later, can do without. */
		assert_true(status == 0 || is_shortage(status));
		assert_true((status == 0) == (host != NULL));
		failures += status < 0;
		vitro_toolhost_free(host);
		if (!short_of_it)
			break;
	}
	assert_true(failures > 20);
}

static void test_policy(void **state)
{
	(void)state;
	for (long after = 0;; after++) {
		struct vitro_error error = { 0 };

		countdown = -1;
		vitro_policy *policy = vitro_policy_new();

		countdown = after;
		int status = vitro_policy_load_json(policy, "{\"limits\":{\"pids\":3}}", &error);
		bool short_of_it = countdown == -1;

		countdown = -1;
		assert_true(status == 0 || is_shortage(status));
		vitro_policy_free(policy);
		if (!short_of_it)
			break;
	}
}
#else
static void test_calls(void **state)
{
	(void)state;
	SKIP("the sanitizer has the allocator");
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_calls),
#if OWN_MALLOC
		FAKE_TEST(test_start),
		FAKE_TEST(test_policy),
#endif
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
