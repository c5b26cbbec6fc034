/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that would hold up their supervisor, or fill it. Other calls do not notice. argv: vitro. */
#include "library_test.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

enum { ANSWER = 64 << 10, ANSWERS = 6000, AHEAD = 14, MEMORY = 320 << 20 };

/* ---- the tools ----------------------------------------------------------------------------- */

/* Ends while a child traces it: whoever waits for it is told when that child has been. */
static int end_traced(vitro_task *task)
{
	char byte;
	int pair[2];

	if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) < 0 && errno != EINVAL)
		return -errno;
	if (pipe(pair) < 0)
		return -errno;
	pid_t pid = fork();

	if (pid == 0) {
		byte = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0 ? 'n' : 'y';
		while (write(pair[1], &byte, 1) == 1 && byte == 'y')
			(void)pause();
		_exit(0);
	}
	if (pid < 0 || read(pair[0], &byte, 1) != 1 || byte != 'y')
		return vitro_task_return(task, "\"cannot be traced\"");
	_exit(3);
}

/* Asks ahead of what it reads, so that something is always waiting for it. */
static int read_slowly(vitro_task *task)
{
	uint64_t tickets[ANSWERS];
	size_t bytes = 0;
	char text[32];
	int r = 0;

	for (int i = 0; r == 0 && i < ANSWERS + AHEAD; i++) {
		char *value = NULL;

		if (i < ANSWERS)
			r = vitro_task_submit(task, "mine", NULL, &tickets[i]);
		if (r == 0 && i >= AHEAD)
			r = vitro_task_await(task, tickets[i - AHEAD], NULL, &value);
		(void)usleep(200); /* all that it asked for is there */
		bytes += value ? strlen(value) : 0;
		free(value);
	}
	(void)snprintf(text, sizeof(text), "%zu", bytes);
	return r < 0 ? r : vitro_task_return(task, text);
}

static int answer(vitro_task *task)
{
	return vitro_task_return(task, "1");
}

static const struct vitro_tool tools[] = {
	{ .name = "traced", .function = end_traced },
	{ .name = "slow", .function = read_slowly },
	{ .name = "answer", .function = answer },
	{ 0 },
};

/* ---- the tests ----------------------------------------------------------------------------- */

static void test_traced_end(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);

	for (int i = 0; i < 3; i++) {
		vitro_result *result = call(host, "traced", NULL);

		if (vitro_result_status(result) == VITRO_OK) {
			vitro_result_free(result);
			vitro_toolhost_free(host);
			SKIP("nobody may trace here");
		}
		assert_status(result, VITRO_ERROR);
		assert_int_equal(vitro_result_exit_code(result), 3);
		vitro_result_free(result);
		assert_value(host, "answer", NULL, "1");
	}
	vitro_toolhost_free(host);
}

static void give_much(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	static char value[ANSWER + 1];

	(void)user, (void)tool, (void)arguments;
	memset(value, ' ', ANSWER);
	value[0] = '1';
	vitro_question_answer(question, value, NULL);
}

/* The supervisor has the limits of whoever starts it, and may not hold all that passes through it.
 */
static void test_answers_do_not_pile_up(void **state)
{
	struct rlimit usual, less;
	char wanted[32];

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	SKIP("with the sanitizer it takes more memory than there is");
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &usual), 0);
	less = (struct rlimit){ MEMORY, usual.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	vitro_toolhost *host = host_of(tools, NULL);

	assert_int_equal(setrlimit(RLIMIT_AS, &usual), 0);
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "slow", .on_call = give_much });

	assert_status(result, VITRO_OK);
	(void)snprintf(wanted, sizeof(wanted), "%lld", (long long)ANSWER * ANSWERS);
	assert_string_equal(vitro_result_value(result, NULL), wanted);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, tools);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traced_end),
		cmocka_unit_test(test_answers_do_not_pile_up),
	};

	if (argc < 2 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
