/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/vectors/commands.json and words.json, which every implementation of templates has to pass,
 * and what is this one's own: its messages and its bounds.
 */
#include "tool/command.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"
#include "tool/schema_test.h"

/* ---- the vectors --------------------------------------------------------------------------- */

struct tally {
	size_t words, refusals, errors, failed;
};

static void note(struct tally *tally, const json_t *group, const json_t *test, const char *what)
{
	print_case(group, test, "the command", what);
	tally->failed++;
}

static bool is_same(char *const *argv, const json_t *want)
{
	size_t count = 0;

	for (; argv[count]; count++) {
		const char *word = json_string_value(json_array_get(want, count));

		if (!word || strcmp(word, argv[count]) != 0)
			return false;
	}
	return count == json_array_size(want);
}

static void run_call(struct tally *tally, const struct vt_template *command, const json_t *group,
		     const json_t *test)
{
	const json_t *want = json_object_get(test, "argv");
	struct vt_err err = { 0 };
	char **argv = NULL;
	int status = vt_template_expand(command, json_object_get(test, "arguments"), &argv, &err);

	if (want && (status < 0 || !is_same(argv, want)))
		note(tally, group, test, status ? err.what : "other words");
	if (!want && (status != -EINVAL || !begins_with_place(err.what, text_of(test, "where"))))
		note(tally, group, test, status ? err.what : "it passes");
	tally->words += json_array_size(want);
	tally->refusals += !want;
	free(argv);
}

/* The words as C has them; the JSON owns them. */
static const char **words_of(const json_t *array)
{
	size_t count = json_array_size(array);
	const char **words = calloc(count + 1, sizeof(*words));

	assert_non_null(words);
	for (size_t i = 0; i < count; i++)
		words[i] = json_string_value(json_array_get(array, i));
	return words;
}

static void run_group(struct tally *tally, const json_t *group)
{
	const json_t *error = json_object_get(group, "error"), *test;
	json_t *schema_text = json_object_get(group, "schema");
	const char **words = words_of(json_object_get(group, "command"));
	struct vt_schema *schema = NULL;
	struct vt_template *command = NULL;
	struct vt_err err = { 0 };
	size_t i;

	if (schema_text)
		assert_int_equal(vt_schema_compile(schema_text, "schema", &schema, NULL, &err), 0);
	int status = vt_template_compile(words, schema, "command", &command, &err);

	tally->errors += error != NULL;
	if (error && (status != -EINVAL || !begins_with_place(err.what, json_string_value(error))))
		note(tally, group, NULL, status ? err.what : "it is accepted");
	if (!error && status < 0)
		note(tally, group, NULL, err.what);
	vt_schema_free(schema);
	free(words);
	if (status == 0)
		json_array_foreach((json_t *)json_object_get(group, "tests"), i, test)
			run_call(tally, command, group, test);
	vt_template_free(command);
}

static void test_vectors(void **state)
{
	AUTO_JSON json_t *groups = load_vectors("commands.json");
	struct tally tally = { 0 };
	json_t *group;
	size_t i;

	(void)state;
	json_array_foreach(groups, i, group) run_group(&tally, group);
	assert_int_equal(tally.failed, 0);
	/* A file that lost its tests would pass. */
	assert_true(tally.words >= 170 && tally.refusals >= 22 && tally.errors >= 42);
}

/* A text of the vectors is a list of [text, times]; what came from a command is in hexadecimal
 * digits. */
static void add_pieces(struct vt_str *out, const json_t *pieces, bool hex)
{
	const json_t *piece;
	size_t i;

	json_array_foreach((json_t *)pieces, i, piece)
	{
		const char *text = json_string_value(json_array_get(piece, 0));
		json_int_t times = json_integer_value(json_array_get(piece, 1));

		for (assert_true(text && times > 0); times > 0; times--) {
			for (const char *at = text; hex && *at; at += 2) {
				unsigned byte;

				assert_int_equal(sscanf(at, "%2x", &byte), 1);
				vt_str_addn(out, (const char[]){ (char)byte }, 1);
			}
			vt_str_add(out, hex ? "" : text);
		}
	}
	assert_true(vt_str_ok(out));
}

static void test_last_words(void **state)
{
	AUTO_JSON json_t *cases = load_vectors("words.json");
	json_t *one;
	size_t i;

	(void)state;
	json_array_foreach(cases, i, one)
	{
		struct vt_str output, want;

		vt_str_init(&output);
		vt_str_init(&want);
		add_pieces(&output, json_object_get(one, "stderr"), true);
		add_pieces(&want, json_object_get(one, "words"), false);
		AUTO_JSON json_t *words = vt_command_words(output.text, output.len);

		assert_non_null(words);
		assert_string_equal(json_string_value(words), want.text);
		vt_str_done(&want);
		vt_str_done(&output);
	}
	assert_true(i >= 15);
}

/* ---- messages ------------------------------------------------------------------------------ */

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void assert_wrong(const char *const *words, const char *schema_text, const char *message)
{
	struct vt_schema *schema = compiled(schema_text);
	struct vt_template *command = NULL;
	struct vt_err err = { 0 };

	assert_int_equal(vt_template_compile(words, schema, "command", &command, &err), -EINVAL);
	assert_string_equal(err.what, message);
	assert_null(command);
	vt_schema_free(schema);
}

static void test_a_wrong_template_says_what_to_do(void **state)
{
	(void)state;
	assert_wrong(WORDS("cat", "{fiel}"),
		     "{\"properties\": {\"file\": {}, \"x\": {}}, \"additionalProperties\": false}",
		     "command[1]: the schema has no argument 'fiel'; did you mean 'file'?");
	assert_wrong(WORDS("cat", "{x\x1b:5}"), "{}",
		     "command[1]: there is no form '{x\\u001b:5}'; want {name}, {name?}, {name...} "
		     "or {-name}, or {{ and }} for braces");
	assert_wrong(
		WORDS("cat", "-n", "{x?}"), "{}",
		"command[2]: this word can be left out, and an option before it would then take "
		"the next one; put '--' right before it, or make it one word with its option");
	assert_wrong(WORDS("cat", "{"), "{}",
		     "command[1]: there is a '{' without a '}'; write '{{' for a brace");
	assert_wrong(WORDS("sh", "-c", "cat {x}"), "{}",
		     "command[2]: an argument inside a script would be code; write \"$1\" for it "
		     "there, and add the words 'sh' and the argument");
	static const char own_word[] =
		"command[2]: an argument inside a script would be code; make it a word of its own, "
		"after the script, which takes it from there";

	assert_wrong(WORDS("/usr/bin/python3.11", "-c", "print({x})"), "{}", own_word);
	assert_wrong(WORDS("perl", "-ne", "print {x}"), "{}", own_word);
	static const char program[] = "command[1]: the argument would be the program to run; write "
				      "a program out before it";

	assert_wrong(WORDS("env", "{x}"), "{}", program);
	assert_wrong(WORDS("/usr/bin/xargs", "{x...}"), "{}", program);
	assert_wrong(WORDS("nice", "./{x}"), "{}", program);
}

/* What looks like it, and is none. */
static void test_templates_that_will_do(void **state)
{
	const char *const *const good[] = {
		WORDS("python3", "-c", "import sys; print(sys.argv[1])", "{x}"),
		WORDS("python3", "-c", "{x}"), /* meant to be one */
		WORDS("pythonic", "-c", "a{x}"),
		WORDS("env", "A={x}", "B=1", "cat", "{x}"),
		WORDS("xargs", "-0", "cat", "{x}"),
		WORDS("cat", "env", "{x}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct vt_template *command = NULL;
		struct vt_err err = { 0 };

		if (vt_template_compile(good[i], NULL, "command", &command, &err) < 0)
			fail_msg("%zu: %s", i, err.what);
		vt_template_free(command);
	}
}

static int expand(const char *const *words, json_t *arguments, char ***ret_argv, struct vt_err *err)
{
	struct vt_template *command = NULL;
	struct vt_err compiling = { 0 };

	if (vt_template_compile(words, NULL, "command", &command, &compiling) < 0)
		fail_msg("%s", compiling.what);
	int status = vt_template_expand(command, arguments, ret_argv, err);

	vt_template_free(command);
	return status;
}

static void assert_refused(const char *const *words, const char *text, const char *message)
{
	AUTO_JSON json_t *arguments = parsed(text);
	struct vt_err err = { 0 };
	char **argv = NULL;

	assert_int_equal(expand(words, arguments, &argv, &err), -EINVAL);
	assert_string_equal(err.what, message);
	assert_null(argv);
}

static void test_a_refusal_says_what_to_change(void **state)
{
	(void)state;
	assert_refused(WORDS("cat", "{x}"), "{}", "arguments: \"x\" is missing");
	assert_refused(WORDS("cat", "{x}"), "{\"x\": null}",
		       "arguments.x: want a value, found null");
	assert_refused(WORDS("cat", "{x...}"), "{\"x\": 1}", "arguments.x: want an array, found 1");
	assert_refused(
		WORDS("cat", "{x}.c"), "{\"x\": \"-\\u001b[2J\"}",
		"arguments.x: this gives a word that begins with '-', \"-\\u001b[2J\", which "
		"could be taken for an option");
}

static void test_nul(void **state)
{
	AUTO_JSON json_t *arguments = json_object();
	struct vt_err err = { 0 };
	char **argv = NULL;

	(void)state;
	json_object_set_new(arguments, "x", json_stringn("a\0b", 3));
	assert_int_equal(expand(WORDS("say", "{x}"), arguments, &argv, &err), -EINVAL);
	assert_string_equal(err.what, "arguments.x: there is a NUL in the text");
	json_object_set_new(arguments, "x", json_pack("[o]", json_stringn("a\0b", 3)));
	assert_int_equal(expand(WORDS("say", "{x...}"), arguments, &argv, &err), -EINVAL);
	assert_string_equal(err.what, "arguments.x[0]: there is a NUL in the text");
	/* Within JSON it is escaped, and no byte. */
	assert_int_equal(expand(WORDS("say", "{x}"), arguments, &argv, &err), 0);
	assert_string_equal(argv[1], "[\"a\\u0000b\"]");
	free(argv);
}

/* ---- bounds -------------------------------------------------------------------------------- */

static char *filled(size_t len)
{
	char *text = malloc(len + 1);

	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

static int expand_text(const char *const *words, size_t len)
{
	AUTO_JSON json_t *arguments = json_object();
	struct vt_err err = { 0 };
	char **argv = NULL, *text = filled(len);

	json_object_set_new(arguments, "x", json_string(text));
	free(text);
	int status = expand(words, arguments, &argv, &err);

	if (status < 0)
		assert_non_null(strstr(err.what, ": this is too long for a command line"));
	free(argv);
	return status;
}

static void test_long_words(void **state)
{
	const char *words[11] = { "say" };

	(void)state;
	assert_int_equal(expand_text(WORDS("say", "{x}"), VT_COMMAND_MAX_WORD), 0);
	assert_int_equal(expand_text(WORDS("say", "{x}"), VT_COMMAND_MAX_WORD + 1), -E2BIG);
	assert_int_equal(expand_text(WORDS("say", "a{x}"), VT_COMMAND_MAX_WORD), -E2BIG);
	assert_int_equal(expand_text(WORDS("say", "{x}a"), VT_COMMAND_MAX_WORD), -E2BIG);
	assert_int_equal(expand_text(WORDS("say", "{x}{x}"), VT_COMMAND_MAX_WORD / 2 + 1), -E2BIG);
	for (size_t i = 1; i < 9; i++)
		words[i] = "{x}";
	/* Eight words and "say": the bound of all of them. */
	size_t most = (VT_COMMAND_MAX_BYTES - 4 - 8) / 8;

	assert_int_equal(expand_text(words, most), 0);
	assert_int_equal(expand_text(words, most + 1), -E2BIG);
	/* Four bytes are left. */
	words[9] = "abc";
	assert_int_equal(expand_text(words, most), 0);
	words[9] = "abcd";
	assert_int_equal(expand_text(words, most), -E2BIG);
}

static void test_many_words(void **state)
{
	AUTO_JSON json_t *arguments = json_object();
	json_t *list = json_array();
	struct vt_err err = { 0 };
	char **argv = NULL;

	(void)state;
	json_object_set_new(arguments, "x", list);
	while (json_array_size(list) < VT_COMMAND_MAX_WORDS - 1)
		json_array_append_new(list, json_string(""));
	assert_int_equal(expand(WORDS("say", "{x...}"), arguments, &argv, &err), 0);
	assert_null(argv[VT_COMMAND_MAX_WORDS]);
	assert_string_equal(argv[VT_COMMAND_MAX_WORDS - 1], "");
	free(argv);
	json_array_append_new(list, json_string(""));
	assert_int_equal(expand(WORDS("say", "{x...}"), arguments, &argv, &err), -E2BIG);
	assert_string_equal(err.what, "arguments.x[4095]: this is too long for a command line");
}

static void test_large_and_deep_json(void **state)
{
	AUTO_JSON json_t *arguments = json_object(), *deep = json_array();
	json_t *list = json_array();
	struct vt_err err = { 0 };
	char **argv = NULL;

	(void)state;
	json_object_set_new(arguments, "x", list);
	for (int i = 0; i < 100000; i++)
		json_array_append_new(list, json_integer(i));
	assert_int_equal(expand(WORDS("say", "{x}"), arguments, &argv, &err), -E2BIG);
	for (int i = 0; i < 2048; i++)
		deep = json_pack("[o]", deep);
	json_object_set(arguments, "x", deep);
	assert_int_equal(expand(WORDS("say", "{x}"), arguments, &argv, &err), 0);
	assert_int_equal(strlen(argv[1]), 2 * 2049);
	free(argv);
	json_object_set_new(arguments, "x", json_pack("[O]", deep));
	assert_int_equal(expand(WORDS("say", "{x}"), arguments, &argv, &err), -E2BIG);
	assert_string_equal(err.what, "arguments.x: this is nested too deeply");
}

static void test_long_templates(void **state)
{
	static const char *words[VT_COMMAND_MAX_WORDS + 2];
	struct vt_template *command = NULL;
	struct vt_err err = { 0 };
	char *text = filled(VT_COMMAND_MAX_TEMPLATE - 2), name[VT_COMMAND_MAX_NAME + 4];

	(void)state;
	assert_int_equal(vt_template_compile(WORDS("a", text), NULL, "command", &command, &err),
			 -E2BIG);
	assert_string_equal(err.what, "command[1]: the command is too long");
	/* Nothing but names, as many as fit. */
	for (size_t i = 0; i < VT_COMMAND_MAX_TEMPLATE - 6; i += 3)
		memcpy(text + i, "{x}", 4);
	assert_int_equal(vt_template_compile(WORDS("a", text), NULL, "command", &command, &err), 0);
	vt_template_free(command);
	free(text);
	for (size_t i = 0; i <= VT_COMMAND_MAX_WORDS; i++)
		words[i] = "a";
	assert_int_equal(vt_template_compile(words, NULL, "command", &command, &err), -E2BIG);
	words[VT_COMMAND_MAX_WORDS] = NULL;
	assert_int_equal(vt_template_compile(words, NULL, "command", &command, &err), 0);
	vt_template_free(command);
	memset(name, 'n', sizeof(name));
	name[0] = '{';
	memcpy(name + VT_COMMAND_MAX_NAME + 1, "}", 2);
	assert_int_equal(vt_template_compile(WORDS("a", name), NULL, "command", &command, &err), 0);
	vt_template_free(command);
	memcpy(name + VT_COMMAND_MAX_NAME + 1, "n}", 3);
	assert_int_equal(vt_template_compile(WORDS("a", name), NULL, "command", &command, &err),
			 -EINVAL);
}

/* ---- output -------------------------------------------------------------------------------- */

static void test_output(void **state)
{
	static const struct {
		const char *output, *json;
	} cases[] = {
		{ "", "\"\"" },
		{ "hello\n", "\"hello\\n\"" },
		{ "  \n", "\"  \\n\"" },
		{ " {\"a\": [1.50, \"\\u0000\"]} \r\n", "{\"a\": [1.50, \"\\u0000\"]}" },
		{ "123456789012345678901234567890\n", "123456789012345678901234567890" },
		{ "null", "null" },
		{ "\"text\"\n", "\"text\"" },
		{ "{}{}", "\"{}{}\"" },
		{ "{\"a\":1}\n{\"a\":2}\n", "\"{\\\"a\\\":1}\\n{\\\"a\\\":2}\\n\"" },
		{ "007", "\"007\"" },
		{ "NaN", "\"NaN\"" },
		{ "[1,", "\"[1,\"" },
		{ "\"\xff\"", "\"\\\"\xef\xbf\xbd\\\"\"" },
	};
	size_t len;
	char *json;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			vt_command_value(cases[i].output, strlen(cases[i].output), &json, &len), 0);
		assert_string_equal(json, cases[i].json);
		assert_int_equal(len, strlen(cases[i].json));
		free(json);
	}
	assert_int_equal(vt_command_value("a\0b", 3, &json, NULL), 0);
	assert_string_equal(json, "\"a\\u0000b\"");
	free(json);
	assert_int_equal(vt_command_value(NULL, 0, &json, NULL), 0);
	assert_string_equal(json, "\"\"");
	free(json);
	/* What comes after its end is not looked at. */
	assert_int_equal(vt_command_value(" 12", 2, &json, NULL), 0);
	assert_string_equal(json, "1");
	free(json);
}

/* What a template of an input comes to, or what is wrong with it. */
static void check_input(const char *text, const char *arguments, const char *want)
{
	json_error_t error;
	AUTO_JSON json_t *values = json_loads(arguments, 0, &error);
	struct vt_template *input = NULL;
	struct vt_err err = { 0 };
	char *filled = NULL;
	size_t len = 0;
	int status = vt_template_compile_input(text, NULL, "stdin", &input, &err);

	assert_non_null(values);
	if (status == 0)
		status = vt_template_expand_input(input, values, &filled, &len, &err);
	assert_string_equal(status < 0 ? err.what : filled, want);
	if (status == 0)
		assert_int_equal(len, strlen(want));
	free(filled);
	vt_template_free(input);
}

static void test_input(void **state)
{
	(void)state;
	check_input("{a}", "{\"a\": \"-rf\\n$(id)\"}", "-rf\n$(id)");
	check_input("scale=4\n{a}\n", "{\"a\": \"1/3\"}", "scale=4\n1/3\n");
	check_input("-{a?}{b?}-", "{\"b\": [1, 0.1]}", "-[1,0.1]-");
	check_input("", "{}", "");
	check_input("{{{a}}}", "{\"a\": 1}", "{1}");
	check_input("{a}", "{}", "arguments: \"a\" is missing");
	check_input("{a}", "{\"a\": null}", "arguments.a: want a value, found null");
	check_input("{a...}", "{}", "stdin: {a...} is for words; {a} gives the list as JSON");
	check_input("{a", "{}", "stdin: there is a '{' without a '}'; write '{{' for a brace");
}

static void test_long_input(void **state)
{
	enum { LONG = 3 << 20 };
	char *text = malloc(LONG + 1);
	struct vt_template *input;
	struct vt_err err;
	char *filled;
	size_t len;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', LONG);
	text[LONG] = '\0';
	AUTO_JSON json_t *values = json_pack("{s:s}", "a", text);

	assert_int_equal(vt_template_compile_input("{a}{a}", NULL, "stdin", &input, &err), 0);
	assert_int_equal(vt_template_expand_input(input, values, &filled, &len, &err), 0);
	assert_int_equal(len, 2 * LONG);
	free(filled);
	vt_template_free(input);
	assert_int_equal(
		vt_template_compile_input("{a}{a}{a}{a}{a}{a}", NULL, "stdin", &input, &err), 0);
	assert_int_equal(vt_template_expand_input(input, values, &filled, &len, &err), -E2BIG);
	assert_string_equal(err.what, "arguments.a: this is too long for a command to read");
	vt_template_free(input);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_a_wrong_template_says_what_to_do),
		cmocka_unit_test(test_templates_that_will_do),
		cmocka_unit_test(test_a_refusal_says_what_to_change),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_long_words),
		cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_large_and_deep_json),
		cmocka_unit_test(test_long_templates),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_long_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
