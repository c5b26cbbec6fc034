/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define REPLACED "\xef\xbf\xbd"

static void test_bad_texts_say_where(void **state)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{ "", "p:1:1: the text ends too early" },
		{ "{\n  \"a\": tru\n}", "p:2:10: invalid token near 'tru'" },
		{ "{\n\n\"a\" 5}", "p:3:5: ':' expected near '5'" },
		{ "{\"a\": 5,}",
		  "p:1:9: string or '}' expected near '}'; JSON has no comma after the last item" },
		{ "[5,]",
		  "p:1:4: unexpected token near ']'; JSON has no comma after the last item" },
		{ "{\"a\":1,\n\"a\":2}", "p:2:3: duplicate object key near '\"a\"'" },
		{ "{} {}", "p:1:4: there is more text after the end of the value" },
		{ "[\"a\\u0000b\"]", "p:1:11: the escape \\u0000 is not allowed" },
		{ "{\"a\\u0000b\":1}", "p:1:11: the escape \\u0000 is not allowed" },
		{ "[9999999999999999999999]", "p:1:23: the number is too big" },
		{ "[1e999]", "p:1:6: the number is too big" },
		{ "[\"\x1b[2J\"]", "p:1:2: control character 0x1b near '\"'" },
		{ "\x1b[2J", "p:1:1: invalid token near '\\u001b'; want a JSON object: {...}" },
		{ "limits:\n  pids: 5\n",
		  "p:1:6: invalid token near 'limits'; want a JSON object: {...}" },
		{ "[limits]\npids = 5\n",
		  "p:1:7: invalid token near 'limits'; want a JSON object: {...}" },
		{ "# five\nlimits:", "p:1:1: invalid token near '#'; want a JSON object: {...}" },
		{ "// five\n{}", "p:1:1: invalid token near '/'; JSON has no comments" },
		{ "{\"a\": 5 # five\n}", "p:1:9: '}' expected near '#'; JSON has no comments" },
		{ "{\"a\": 5 /* five */}", "p:1:9: '}' expected near '/'; JSON has no comments" },
		{ " [x]", "p:1:3: invalid token near 'x'; want a JSON object: {...}" },
		{ "[5, x]", "p:1:5: invalid token near 'x'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_err err = { 0 };
		json_t *root = (json_t *)&err;

		assert_int_equal(
			vt_json_load_text(cases[i].text, strlen(cases[i].text), "p", &root, &err),
			-EINVAL);
		assert_string_equal(err.what, cases[i].what);
		assert_int_equal(err.step, VT_STEP_POLICY);
		assert_ptr_equal(root, &err);
	}
}

static void test_nul_bytes_and_bad_utf8(void **state)
{
	struct vt_err err;
	json_t *root;

	(void)state;
	assert_int_equal(vt_json_load_text("{\n\0}", 4, "p", &root, &err), -EINVAL);
	assert_string_equal(err.what, "p:2:1: there is a NUL byte");
	assert_int_equal(vt_json_load_text("[\"\xff\"]", 5, "p\n", &root, &err), -EINVAL);
	assert_non_null(strstr(err.what, "p\\n:1:"));
	assert_non_null(strstr(err.what, "UTF-8"));
	assert_null(strchr(err.what, '\n'));
	assert_int_equal(vt_json_load_text("\xef\xbb\xbf{}", 5, "p", &root, &err), -EINVAL);
	assert_string_equal(err.what,
			    "p:1:1: the text begins with a byte order mark; save it without one");
}

static void test_too_deep_and_too_big(void **state)
{
	size_t size = VT_JSON_MAX_BYTES + 1;
	char *text = malloc(size);
	struct vt_err err;
	json_t *root;

	(void)state;
	assert_non_null(text);
	memset(text, '[', size);
	assert_int_equal(vt_json_load_text(text, 100000, "p", &root, &err), -EINVAL);
	assert_non_null(strstr(err.what, "nested too deeply"));
	memset(text, ' ', size);
	memcpy(text, "[]", 2);
	assert_int_equal(vt_json_load_text(text, size, "p", &root, &err), -EFBIG);
	assert_string_equal(err.what, "p: too big: more than 4 MB of JSON");
	assert_int_equal(vt_json_load_text(text, size - 1, "p", &root, &err), 0);
	json_decref(root);
	free(text);
}

static void test_values(void **state)
{
	AUTO_JSON json_t *root = NULL;
	struct vt_err err;
	static const char text[] = "{\"a\": [9007199254740993, \"\\u00e9\"]}";

	(void)state;
	assert_int_equal(vt_json_load_text(text, sizeof(text) - 1, "p", &root, &err), 0);
	json_t *list = json_object_get(root, "a");

	assert_int_equal(json_integer_value(json_array_get(list, 0)), 9007199254740993);
	assert_string_equal(json_string_value(json_array_get(list, 1)), "\xc3\xa9");
}

static void write_file(const char *path, const char *text, size_t times)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < times; i++)
		assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_files(void **state)
{
	char folder[] = "/tmp/vitro-json-XXXXXX", path[64], what[200];
	struct vt_err err;
	json_t *root = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/p.json", folder);
	assert_int_equal(vt_json_load_file(path, &root, &err), -ENOENT);
	snprintf(what, sizeof(what), "%s: No such file or directory", path);
	assert_string_equal(err.what, what);
	write_file(path, "[1]\n", 1);
	assert_int_equal(vt_json_load_file(path, &root, &err), 0);
	assert_int_equal(json_array_size(root), 1);
	json_decref(root);
	write_file(path, "[1,\n]\n", 1);
	assert_int_equal(vt_json_load_file(path, &root, &err), -EINVAL);
	snprintf(what, sizeof(what),
		 "%s:2:1: unexpected token near ']'; JSON has no comma after the last item", path);
	assert_string_equal(err.what, what);
	write_file(path, "[[[[[[[[", VT_JSON_MAX_BYTES / 8 + 1);
	assert_int_equal(vt_json_load_file(path, &root, &err), -EFBIG);
	assert_int_equal(vt_json_load_file(folder, &root, &err), -EISDIR);
	assert_int_equal(vt_json_load_file("/dev/zero", &root, &err), -EINVAL);
	assert_string_equal(err.what, "/dev/zero: is not a file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_a_pipe_is_read_to_its_end(void **state)
{
	char folder[] = "/tmp/vitro-json-XXXXXX", path[64], own[32];
	struct vt_err err;
	json_t *root = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	/* Under a name anybody may have put it there. */
	assert_int_equal(vt_json_load_file(path, &root, &err), -EINVAL);
	assert_non_null(strstr(err.what, "is a pipe, which anybody may have put there"));
	int given = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	assert_true(given >= 0);
	snprintf(own, sizeof(own), "/dev/fd/%d", given);
	assert_int_equal(vt_json_load_plain(own, &root, &err), -EINVAL);
	pid_t writer = fork();

	if (writer == 0) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		_exit(write(fd, "{\"a\"", 4) == 4 && usleep(10000) == 0 && write(fd, ": 1}", 4) == 4
			      ? 0
			      : 1);
	}
	int status = -1, r = vt_json_load_file(own, &root, &err);

	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	assert_int_equal(r, 0);
	assert_int_equal(json_object_size(root), 1);
	json_decref(root);
	assert_int_equal(close(given), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* The examples of the Unicode standard, chapter 3.9, and the edges of each kind of sequence. */
static void test_text_replaces_maximal_subparts(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "a\xf1\x80\x80\xe1\x80\xc2"
		  "b\x80"
		  "c\x80\xbf"
		  "d",
		  "a" REPLACED REPLACED REPLACED "b" REPLACED "c" REPLACED REPLACED "d" },
		{ "\xc0\xaf\xe0\x80\xbf", REPLACED REPLACED REPLACED REPLACED REPLACED },
		{ "\xed\xa0\x80", REPLACED REPLACED REPLACED },
		{ "\xf4\x91\x92\x93\xff"
		  "A",
		  REPLACED REPLACED REPLACED REPLACED REPLACED "A" },
		{ "x\xe2\x82", "x" REPLACED },
		{ "\xf0\x9f\x98", REPLACED },
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_JSON json_t *text = vt_json_text(cases[i].bytes, strlen(cases[i].bytes));

		assert_non_null(text);
		assert_string_equal(json_string_value(text), cases[i].text);
	}
	AUTO_JSON json_t *nul = vt_json_text("a\0\xff", 3);

	assert_int_equal(json_string_length(nul), 5);
	assert_memory_equal(json_string_value(nul), "a\0" REPLACED, 6);
	AUTO_JSON json_t *empty = vt_json_text(NULL, 0);

	assert_string_equal(json_string_value(empty), "");
}

static void test_values_are_counted(void **state)
{
	static const struct {
		const char *text;
		size_t values;
	} cases[] = {
		{ "1", 1 },
		{ "[]", 2 },
		{ "[[],[],1]", 6 },
		{ "{\"a\":1,\"b\":{}}", 4 },
		{ "[\"[,{\\\"[,\", 2]", 3 },
		{ "[\"\\", 2 },
		{ "", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].text);

		assert_true(vt_json_is_within(cases[i].text, len, cases[i].values));
		assert_false(vt_json_is_within(cases[i].text, len, cases[i].values - 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_texts_say_where),
		cmocka_unit_test(test_nul_bytes_and_bad_utf8),
		cmocka_unit_test(test_too_deep_and_too_big),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_a_pipe_is_read_to_its_end),
		cmocka_unit_test(test_text_replaces_maximal_subparts),
		cmocka_unit_test(test_values_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
