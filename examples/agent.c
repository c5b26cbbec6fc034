/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's loop. A model asks for tools by name, with arguments that nobody has looked at, and is
 * told what came of it. The model is a fixed list here; what it asks for is not always right.
 *
 * `weekday` is a command. `research` calls two of the others, many at once, and asks this program
 * for what only it has. All of that is JSON, for which a program should have a library: the shapes
 * of this one are so simple that their text can be searched, and pasted together.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vitro.h>

/* The number of that name, in an object that has nothing but numbers. Whether there is one. */
static int find_number(const char *json, const char *name, double *ret_number)
{
	const char *at = strstr(json, name);

	return at && sscanf(at + strlen(name), " : %lf", ret_number) == 1;
}

/* ---- the tools: every call of one runs in a sealed process of its own ----------------------- */

static int add(vitro_task *task)
{
	const char *arguments = vitro_task_arguments(task, NULL);
	double a, b;
	char sum[32];

	if (!find_number(arguments, "\"a\"", &a) || !find_number(arguments, "\"b\"", &b))
		return vitro_task_fail(task, "ValueError", "a and b must be plain numbers");
	snprintf(sum, sizeof(sum), "%.15g", a + b);
	return vitro_task_return(task, sum);
}

/* The schema allows letters and spaces, so that the text ends with the next quotation mark. */
static int word_count(vitro_task *task)
{
	const char *at = strchr(vitro_task_arguments(task, NULL), ':');
	char count[32];
	int words = 0;

	for (at += strcspn(at, "\"") + 1, at += strspn(at, " "); *at && *at != '"'; words++) {
		at += strcspn(at, " \"");
		at += strspn(at, " ");
	}
	snprintf(count, sizeof(count), "%d", words);
	return vitro_task_return(task, count);
}

enum { NOTES_MAX = 8, TEXT = 256 };

/* What a call gave, into text: its value, or, with -EREMOTEIO, what went wrong in it. */
static int take(int status, char **value, char text[TEXT])
{
	if (*value)
		snprintf(text, TEXT, "%s", *value);
	free(*value);
	*value = NULL;
	return status;
}

/* How many words the first notes have: all are read and counted at once, and then added up. */
static int research(vitro_task *task)
{
	char text[TEXT] = "", total[TEXT] = "0", json[2 * TEXT + 32];
	uint64_t reads[NOTES_MAX], counts[NOTES_MAX];
	char *value = NULL;
	double notes = 0;
	int i, status = 0;

	find_number(vitro_task_arguments(task, NULL), "\"notes\"", &notes);
	for (i = 0; status == 0 && i < notes; i++) {
		snprintf(json, sizeof(json), "{\"number\": %d}", i);
		status = vitro_task_submit(task, "read_note", json, &reads[i]);
	}
	for (i = 0; status == 0 && i < notes; i++) {
		status = take(vitro_task_await(task, reads[i], NULL, &value), &value, text);
		snprintf(json, sizeof(json), "{\"text\": %s}", text);
		if (status == 0)
			status = vitro_task_submit(task, "word_count", json, &counts[i]);
	}
	for (i = 0; status == 0 && i < notes; i++) {
		status = take(vitro_task_await(task, counts[i], NULL, &value), &value, text);
		snprintf(json, sizeof(json), "{\"a\": %s, \"b\": %s}", total, text);
		if (status == 0)
			status = take(vitro_task_call(task, "add", json, &value), &value, text);
		memcpy(total, text, sizeof(total));
	}
	if (status < 0)
		return vitro_task_fail(task, "ResearchError",
				       status == -EREMOTEIO ? text : strerror(-status));
	snprintf(json, sizeof(json), "{\"words\": %s}", total);
	return vitro_task_return(task, json);
}

/* A model chooses the day, and no more than that: it is one word, and no shell reads it. */
static const char *const weekday[] = { "date", "--utc", "--date={day}", "+%A", NULL };

static const char *const of_research[] = { "add", "word_count", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "add",
	  .description = "Adds a and b.",
	  .schema = "{\"required\": [\"a\", \"b\"],"
		    " \"additionalProperties\": {\"type\": \"number\"}}",
	  .function = add },
	{ .name = "word_count",
	  .description = "Counts the words of a text.",
	  .schema = "{\"required\": [\"text\"], \"additionalProperties\": false, \"properties\":"
		    " {\"text\": {\"type\": \"string\", \"pattern\": \"^[A-Za-z ]*$\"}}}",
	  .function = word_count },
	{ .name = "weekday",
	  .description = "Tells which day of the week a day is, such as 2024-02-29.",
	  .schema = "{\"required\": [\"day\"], \"additionalProperties\": false, \"properties\":"
		    " {\"day\": {\"type\": \"string\", \"pattern\": \"^[0-9-]{10}$\"}}}",
	  .command = weekday },
	{ .name = "research",
	  .description = "Counts the words of the first notes.",
	  .schema = "{\"required\": [\"notes\"], \"additionalProperties\":"
		    " {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 8}}",
	  .function = research,
	  .may_call = of_research },
	{ 0 },
};

/* ---- the program ---------------------------------------------------------------------------- */

/* A tool asks for a note. The last one is still being written: its question is kept. */
static void read_note(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	static const char *const notes[] = { "\"tea is made of leaves\"",
					     "\"coffee is made of beans\"", "\"both wake\"" };
	vitro_question **kept = user;
	double number = -1;

	if (strcmp(tool, "read_note") != 0 || !find_number(arguments, "\"number\"", &number))
		vitro_question_answer(question, NULL, "there is no such tool");
	else if (number >= 0 && number < 3)
		vitro_question_answer(question, notes[(int)number], NULL);
	else if (number == 3 && !*kept)
		*kept = question;
	else
		vitro_question_answer(question, NULL, "there is no such note");
}

/* What the model is told. */
static void tell(const struct vitro_request *request, const vitro_result *result)
{
	enum vitro_status status = vitro_result_status(result);

	printf("%s %s\n  ", request->tool, request->arguments);
	if (status == VITRO_OK)
		puts(vitro_result_value(result, NULL));
	else if (status == VITRO_REFUSED) /* nothing ran: it may ask in another way */
		printf("not done: %s\n", vitro_result_error(result));
	else
		printf("%s: %s\n", vitro_status_name(status), vitro_result_error(result));
}

int main(int argc, char **argv)
{
	static const struct vitro_request wishes[] = {
		{ .tool = "add", .arguments = "{\"a\": 2, \"b\": 3.5}" },
		{ .tool = "word_count", .arguments = "{\"text\": \"the quick brown fox\"}" },
		{ .tool = "weekday", .arguments = "{\"day\": \"2024-02-29\"}" },
		{ .tool = "weekday", .arguments = "{\"day\": \"2023-02-29\"}" },
		{ .tool = "research", .arguments = "{\"notes\": 3}" },
		{ .tool = "add", .arguments = "{\"a\": 2, \"b\": \"three\"}" },
		{ .tool = "research", .arguments = "{\"notes\": 4}", .wall_ms = 300 },
	};
	enum vitro_status status = VITRO_OK;
	vitro_toolhost *host;
	struct vitro_error error;

	vitro_host_main(argc, argv, tools);
	if (vitro_toolhost_new(&host, tools, NULL, &error) < 0)
		return fprintf(stderr, "%s\n", error.text), 1;
	/* Where the supervisor is lost, no call of this tool host will work any more. */
	for (size_t i = 0; status != VITRO_LOST && i < sizeof(wishes) / sizeof(*wishes); i++) {
		struct vitro_request request = wishes[i];
		vitro_question *kept = NULL;

		request.on_call = read_note;
		request.user = &kept;
		vitro_result *result = vitro_call(host, &request);

		tell(&request, result);
		status = vitro_result_status(result);
		vitro_result_free(result);
		if (kept) /* its call is over, and nobody hears it; but each is answered once */
			vitro_question_answer(kept, NULL, "too late");
	}
	vitro_toolhost_free(host);
	return status == VITRO_LOST;
}
