/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tool/command_private.h"

/* As deep as JSON is read. */
#define MAX_DEPTH 2048

struct expanding {
	struct vt_err *err;
	struct vt_str bytes; /* all words, each with its NUL */
	size_t start;        /* of the word that is being made */
	size_t count;        /* of those that are done */
	bool input;          /* it is no word, but what the command reads */
};

#define FAIL(x, at, num, ...) vt_template_fail((x)->err, "arguments", at, num, __VA_ARGS__)

static int fail_long(struct expanding *x, const struct vt_schema_place *at)
{
	return FAIL(x, at, E2BIG, "this is too long for a %s",
		    x->input ? "command to read" : "command line");
}

static int add(struct expanding *x, const char *bytes, size_t len, const struct vt_schema_place *at)
{
	size_t used = x->bytes.len;
	size_t most = x->input ? VT_COMMAND_MAX_INPUT : VT_COMMAND_MAX_WORD;
	size_t all = x->input ? VT_COMMAND_MAX_INPUT + 1 : VT_COMMAND_MAX_BYTES;

	/* NULs are left room for: this word's, and an empty one for each that may come. */
	if (len > most || used - x->start + len > most || used + len >= all)
		return fail_long(x, at);
	vt_str_addn(&x->bytes, bytes, len);
	return vt_str_ok(&x->bytes) ? 0 : vt_template_no_memory(x->err);
}

static int add_text(struct expanding *x, const char *text, const struct vt_schema_place *at)
{
	return add(x, text, strlen(text), at);
}

/* What needs the library, and no more than a few digits or one string of memory. */
static int add_dumped(struct expanding *x, const json_t *value, size_t flags,
		      const struct vt_schema_place *at)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | flags);
	int status = text ? add_text(x, text, at) : vt_template_no_memory(x->err);

	free(text);
	return status;
}

/* In the fewest digits that read back as the same. */
static int add_real(struct expanding *x, const json_t *value, const struct vt_schema_place *at)
{
	for (size_t digits = 15; digits < 17; digits++) {
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
		AUTO_JSON json_t *again = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

		free(text);
		if (again && json_real_value(again) == json_real_value(value))
			return add_dumped(x, value, JSON_REAL_PRECISION(digits), at);
	}
	return add_dumped(x, value, JSON_REAL_PRECISION(17), at);
}

static int add_json(struct expanding *x, const json_t *value, const struct vt_schema_place *at,
		    unsigned depth);

static int add_members(struct expanding *x, const json_t *object, const struct vt_schema_place *at,
		       unsigned depth)
{
	int status = add_text(x, "{", at);
	const char *before = "";

	for (void *i = json_object_iter((json_t *)object); i && status == 0;
	     i = json_object_iter_next((json_t *)object, i)) {
		AUTO_JSON json_t *key = json_stringn(json_object_iter_key(i),
						     json_object_iter_key_len(i));

		status = add_text(x, before, at);
		if (status == 0)
			status = key ? add_dumped(x, key, 0, at) : vt_template_no_memory(x->err);
		if (status == 0)
			status = add_text(x, ":", at);
		if (status == 0)
			status = add_json(x, json_object_iter_value(i), at, depth + 1);
		before = ",";
	}
	return status < 0 ? status : add_text(x, "}", at);
}

static int add_items(struct expanding *x, const json_t *array, const struct vt_schema_place *at,
		     unsigned depth)
{
	int status = add_text(x, "[", at);

	for (size_t i = 0; i < json_array_size(array) && status == 0; i++) {
		status = add_text(x, i ? "," : "", at);
		if (status == 0)
			status = add_json(x, json_array_get(array, i), at, depth + 1);
	}
	return status < 0 ? status : add_text(x, "]", at);
}

/* By itself, since jansson writes 0.1 as 0.10000000000000001, and would have no bound. */
static int add_json(struct expanding *x, const json_t *value, const struct vt_schema_place *at,
		    unsigned depth)
{
	if (depth > MAX_DEPTH)
		return FAIL(x, at, E2BIG, "this is nested too deeply");
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return add_members(x, value, at, depth);
	case JSON_ARRAY:
		return add_items(x, value, at, depth);
	case JSON_REAL:
		return add_real(x, value, at);
	default:
		return add_dumped(x, value, 0, at);
	}
}

static int add_value(struct expanding *x, const json_t *value, const struct vt_schema_place *at)
{
	if (!json_is_string(value))
		return add_json(x, value, at, 0);
	if (memchr(json_string_value(value), '\0', json_string_length(value)))
		return FAIL(x, at, EINVAL, "there is a NUL in the text");
	return add(x, json_string_value(value), json_string_length(value), at);
}

static int end_word(struct expanding *x, const struct vt_schema_place *at)
{
	if (x->count == VT_COMMAND_MAX_WORDS || x->bytes.len + 1 > VT_COMMAND_MAX_BYTES)
		return fail_long(x, at);
	vt_str_addn(&x->bytes, "", 1);
	x->start = x->bytes.len;
	x->count++;
	return vt_str_ok(&x->bytes) ? 0 : vt_template_no_memory(x->err);
}

static int fail_dash(struct expanding *x, const struct vt_schema_place *at)
{
	char shown[VT_SHOWN_SIZE];

	return FAIL(x, at, EINVAL,
		    "this gives a word that begins with '-', \"%s\", which could be taken "
		    "for an option",
		    vt_utf8_show_text(shown, sizeof(shown), x->bytes.text + x->start,
				      x->bytes.len - x->start));
}

static bool begins_with_dash(const struct expanding *x)
{
	return x->bytes.len > x->start && x->bytes.text[x->start] == '-';
}

static int expand_list(struct expanding *x, const struct vt_template_word *word, const json_t *list)
{
	const struct vt_piece *piece = &word->pieces[0];
	const struct vt_schema_place *up = VT_MEMBER(NULL, piece->text, piece->len);
	char shown[VT_SHOWN_SIZE];
	int status = 0;

	if (!json_is_array(list))
		return FAIL(x, up, EINVAL, "want an array, found %s", vt_data_show(shown, list));
	for (size_t i = 0; i < json_array_size(list) && status == 0; i++) {
		const struct vt_schema_place *at = VT_ELEMENT(up, i);

		status = add_value(x, json_array_get(list, i), at);
		if (status == 0 && begins_with_dash(x) && !word->may_dash && !piece->may_dash)
			status = fail_dash(x, at);
		if (status == 0)
			status = end_word(x, at);
	}
	return status;
}

static int fail_missing(struct expanding *x, const struct vt_piece *piece, const json_t *value)
{
	if (value)
		return FAIL(x, VT_MEMBER(NULL, piece->text, piece->len), EINVAL,
			    "want a value, found null");
	return FAIL(x, NULL, EINVAL, "\"%s\" is missing", piece->text);
}

/* The word's pieces, one after the other. */
static int expand_pieces(struct expanding *x, const struct vt_template_word *word,
			 const json_t *arguments)
{
	const struct vt_schema_place *at = NULL;
	struct vt_schema_place place;
	bool may_dash = word->may_dash;
	int status = 0;

	for (size_t i = 0; i < word->count && status == 0; i++) {
		const struct vt_piece *piece = &word->pieces[i];
		bool is_first = x->bytes.len == x->start;

		if (piece->is_name) {
			const json_t *value = json_object_get(arguments, piece->text);

			place = *VT_MEMBER(NULL, piece->text, piece->len);
			at = &place;
			status = add_value(x, value, at);
		} else {
			status = add(x, piece->text, piece->len, at);
		}
		/* An empty argument can uncover a '-' of the text, and what comes after it. */
		if (status == 0 && is_first && begins_with_dash(x) && !may_dash && !piece->may_dash)
			status = fail_dash(x, at);
	}
	return status < 0 ? status : end_word(x, at);
}

static int expand_word(struct expanding *x, const struct vt_template_word *word,
		       const json_t *arguments)
{
	const struct vt_piece *missing = NULL;

	for (size_t i = 0; i < word->count; i++) {
		const struct vt_piece *piece = &word->pieces[i];
		const json_t *value = piece->is_name ? json_object_get(arguments, piece->text)
						     : NULL;

		if (!piece->is_name || (value && !json_is_null(value)))
			continue;
		if (piece->is_optional || piece->is_list)
			return 0;
		missing = missing ? missing : piece;
	}
	if (missing)
		return fail_missing(x, missing, json_object_get(arguments, missing->text));
	if (word->count && word->pieces[0].is_list)
		return expand_list(x, word, json_object_get(arguments, word->pieces[0].text));
	return expand_pieces(x, word, arguments);
}

/* One block: the pointers, then the words. */
static char **make_argv(const struct expanding *x)
{
	size_t head = (x->count + 1) * sizeof(char *);
	char **argv = malloc(head + x->bytes.len);

	if (!argv)
		return NULL;
	char *at = memcpy((char *)argv + head, x->bytes.text, x->bytes.len);

	for (size_t i = 0; i < x->count; i++, at += strlen(at) + 1)
		argv[i] = at;
	argv[x->count] = NULL;
	return argv;
}

int vt_template_expand(const struct vt_template *command, const json_t *arguments, char ***ret_argv,
		       struct vt_err *err)
{
	struct expanding x = { .err = err };
	int status = 0;

	vt_str_init(&x.bytes);
	for (size_t i = 0; i < command->count && status == 0; i++)
		status = expand_word(&x, &command->words[i], arguments);
	char **argv = status == 0 ? make_argv(&x) : NULL;

	vt_str_done(&x.bytes);
	if (status == 0 && !argv)
		status = vt_template_no_memory(err);
	if (status == 0)
		*ret_argv = argv;
	return status;
}

static int expand_input(struct expanding *x, const struct vt_template_word *word,
			const json_t *arguments)
{
	int status = 0;

	for (size_t i = 0; i < word->count && status == 0; i++) {
		const struct vt_piece *piece = &word->pieces[i];
		const json_t *value = piece->is_name ? json_object_get(arguments, piece->text)
						     : NULL;

		if (!piece->is_name)
			status = add(x, piece->text, piece->len, NULL);
		else if (value && !json_is_null(value))
			status = add_value(x, value, VT_MEMBER(NULL, piece->text, piece->len));
		else if (!piece->is_optional)
			status = fail_missing(x, piece, value);
	}
	return status;
}

int vt_template_expand_input(const struct vt_template *input, const json_t *arguments,
			     char **ret_text, size_t *ret_len, struct vt_err *err)
{
	struct expanding x = { .err = err, .input = true };

	vt_str_init(&x.bytes);
	int status = expand_input(&x, &input->words[0], arguments);
	char *text = status == 0 ? strndup(x.bytes.text, x.bytes.len) : NULL;

	if (status == 0 && !text)
		status = vt_template_no_memory(err);
	if (status == 0) {
		*ret_text = text;
		*ret_len = x.bytes.len;
	}
	vt_str_done(&x.bytes);
	return status;
}

int vt_command_value(const char *output, size_t len, char **ret_json, size_t *ret_len)
{
	char *json;

	if (vt_json_is_valid(output, len)) {
		while (strchr(" \t\n\r", output[len - 1]))
			len--;
		size_t start = strspn(output, " \t\n\r");

		json = strndup(output + start, len - start);
	} else {
		AUTO_JSON json_t *text = vt_json_text(output, len);

		json = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
	}
	if (!json)
		return -ENOMEM;
	*ret_json = json;
	if (ret_len)
		*ret_len = strlen(json);
	return 0;
}

json_t *vt_command_words(const char *output, size_t len)
{
	enum { LAST_WORDS = 2000 };
	const char *at = output, *end = at + len;
	char tail[LAST_WORDS];

	while (end > at && strchr(" \t\r\n", end[-1])) /* a NUL is one of them */
		end--;
	if (end - at > LAST_WORDS) {
		const char *line = memchr(end - LAST_WORDS, '\n', LAST_WORDS);

		at = line ? line + 1 : end - LAST_WORDS;
	}
	len = (size_t)(end - at);
	for (size_t i = 0; i < len; i++)
		tail[i] = at[i] ? at[i] : ' ';
	return vt_json_text(tail, len);
}
