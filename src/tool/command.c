/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/closest.h"
#include "base/utf8.h"
#include "tool/command_private.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define SHOWN   64

struct compiling {
	struct vt_template *command;
	const char *const *source;
	const json_t *schema;
	const char *name;
	struct vt_err *err;
	size_t at;         /* the word's index */
	bool covered;      /* by a "--" */
	bool option;       /* a word before began with '-' */
	bool shell;        /* a word before is the name of one */
	const char *codes; /* of an interpreter before: last letters of options before code */
	bool launches;     /* what comes next that is no option is a program to run */
	bool input;        /* it is no word at all, but what the command reads */
};

int vt_template_no_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
}

int vt_template_fail(struct vt_err *err, const char *name, const struct vt_schema_place *at,
		     int num, const char *fmt, ...)
{
	char place[VT_PLACE_SIZE], what[VT_MESSAGE_SIZE];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* fits */
	va_end(args);
	return vt_fail(err, VT_STEP_POLICY, num, "%s: %s", vt_schema_place_show(place, name, at),
		       what);
}

#define FAIL(c, num, ...)                                                                         \
	vt_template_fail((c)->err, (c)->name, (c)->input ? NULL : VT_ELEMENT(NULL, (c)->at), num, \
			 __VA_ARGS__)

/* Whether a call can have such an argument at all. */
static int check_name(struct compiling *c, const struct vt_piece *piece)
{
	const json_t *properties = json_object_get(c->schema, "properties");
	char typed[SHOWN], best[SHOWN];
	struct vt_closest closest;
	int guesses = VT_GUESSES_MOST;

	if (!json_is_false(json_object_get(c->schema, "additionalProperties")) ||
	    json_object_get(properties, piece->text) ||
	    json_object_size(json_object_get(c->schema, "patternProperties")) > 0)
		return 0;
	vt_closest_init(&closest, piece->text);
	for (void *i = json_object_iter((json_t *)properties); i && guesses-- > 0;
	     i = json_object_iter_next((json_t *)properties, i))
		vt_closest_try(&closest, json_object_iter_key(i), json_object_iter_key(i));
	vt_utf8_show_text(typed, sizeof(typed), piece->text, piece->len);
	if (!closest.best)
		return FAIL(c, EINVAL, "the schema has no argument '%s'", typed);
	return FAIL(c, EINVAL, "the schema has no argument '%s'; did you mean '%s'?", typed,
		    vt_utf8_show_text(best, sizeof(best), closest.best, strlen(closest.best)));
}

/* Reads what stands between braces. */
static int read_name(struct compiling *c, const char *text, size_t len, struct vt_piece *piece)
{
	char shown[SHOWN];
	const char *at = text, *end = text + len;

	piece->is_name = true;
	piece->may_dash = at < end && *at == '-';
	at += piece->may_dash;
	if (end - at > 3 && memcmp(end - 3, "...", 3) == 0) {
		piece->is_list = true;
		end -= 3;
	} else if (end > at && end[-1] == '?') {
		piece->is_optional = true;
		end--;
	}
	piece->len = (size_t)(end - at);
	piece->text = vt_arena_dupn(c->command->arena, at, piece->len);
	if (!piece->text)
		return vt_template_no_memory(c->err);
	if (piece->len == 0 || piece->len > VT_COMMAND_MAX_NAME || !strchr(LETTERS, *at) ||
	    end[-1] == '.' || strspn(piece->text, LETTERS "0123456789-.") < piece->len)
		return FAIL(
			c, EINVAL,
			"there is no form '{%s}'; want {name}, {name?}, {name...} or {-name}, or "
			"{{ and }} for braces",
			vt_utf8_show_text(shown, sizeof(shown), text, len));
	return check_name(c, piece);
}

/* How far text goes, up to the next name. */
static size_t span_text(const char *text)
{
	size_t len = 0;

	while (text[len]) {
		bool is_brace = text[len] == '{' || text[len] == '}';

		if (is_brace && text[len + 1] != text[len])
			break;
		len += 1 + is_brace;
	}
	return len;
}

/* Takes text up to the next name, with the braces that are doubled made single. */
static int read_text(struct compiling *c, const char **at, struct vt_piece *piece)
{
	size_t span = span_text(*at);
	char *text = vt_arena_alloc(c->command->arena, span + 1);

	if (!text)
		return vt_template_no_memory(c->err);
	piece->text = text;
	for (const char *end = *at + span; *at < end; ++*at) {
		*at += **at == '{' || **at == '}';
		*text++ = **at;
	}
	piece->len = (size_t)(text - piece->text);
	return 0;
}

static int read_piece(struct compiling *c, const char **at, struct vt_piece *piece)
{
	int status = read_text(c, at, piece);

	if (status < 0 || piece->len > 0)
		return status;
	if (**at == '}')
		return FAIL(c, EINVAL, "there is a '}' without a '{'; write '}}' for a brace");
	const char *name = *at + 1, *end = strpbrk(name, "{}");

	if (!end || *end != '}')
		return FAIL(c, EINVAL, "there is a '{' without a '}'; write '{{' for a brace");
	*at = end + 1;
	return read_name(c, name, (size_t)(end - name), piece);
}

static int read_word(struct compiling *c, const char *text, struct vt_template_word *word)
{
	size_t most = 1; /* text and names by turns */

	for (const char *at = text; *at; at++)
		most += *at == '{' ? 2 : 0;
	word->pieces = vt_arena_array(c->command->arena, most, sizeof(*word->pieces));
	if (!word->pieces)
		return vt_template_no_memory(c->err);
	while (*text) {
		int status = read_piece(c, &text, &word->pieces[word->count]);

		if (status < 0)
			return status;
		word->count++;
	}
	return 0;
}

/* The word's text, if it is nothing else; else NULL. */
static const char *text_of(const struct vt_template_word *word)
{
	if (word->count == 0)
		return "";
	return word->count == 1 && !word->pieces[0].is_name ? word->pieces[0].text : NULL;
}

static const char *base_name(const char *program)
{
	const char *slash = strrchr(program, '/');

	return slash ? slash + 1 : program;
}

static bool is_shell(const char *program)
{
	static const char *const shells[] = { "sh",  "bash", "dash", "ash", "ksh",
					      "zsh", "fish", "csh",  "tcsh" };

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(base_name(program), shells[i]) == 0)
			return true;
	return false;
}

/* Which options of an interpreter, by their last letters, come before code; NULL: it is none. */
static const char *find_codes(const char *program)
{
	static const struct {
		const char *name, *codes;
	} known[] = {
		{ "python", "c" }, { "pypy", "c" }, { "perl", "eE" }, { "ruby", "e" },
		{ "node", "ep" },  { "lua", "e" },  { "php", "r" },
	};
	const char *name = base_name(program);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].name);

		/* "python3.11" too */
		if (strncmp(name, known[i].name, len) == 0 &&
		    strspn(name + len, "0123456789.") == strlen(name + len))
			return known[i].codes;
	}
	return NULL;
}

static bool is_launcher(const char *program)
{
	static const char *const launchers[] = { "env", "xargs", "nohup", "setsid", "nice" };

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (strcmp(base_name(program), launchers[i]) == 0)
			return true;
	return false;
}

/* Whether the word is one that an interpreter before it takes for code: after -c, -ec, ... */
static bool is_script(const struct compiling *c)
{
	const char *before = c->at ? text_of(&c->command->words[c->at - 1]) : NULL;

	if (!before || before[0] != '-' || !before[1] || before[1] == '-')
		return false;
	char last = before[strlen(before) - 1];

	return (c->shell && last == 'c') || (c->codes && strchr(c->codes, last));
}

/* The rules that the header argues for. */
static int check_word(struct compiling *c, const struct vt_template_word *word)
{
	const struct vt_piece *first = &word->pieces[0];
	bool may_vanish = false, is_option = !first->is_name && first->text[0] == '-';

	if (c->at == 0)
		return FAIL(c, EINVAL, "the program must not depend on an argument");
	for (size_t i = 0; i < word->count; i++) {
		if (word->pieces[i].is_list && word->count > 1)
			return FAIL(c, EINVAL, "{%s...} must be a word by itself",
				    word->pieces[i].text);
		may_vanish = may_vanish || word->pieces[i].is_list || word->pieces[i].is_optional;
	}
	if (word->count > 1 && is_script(c))
		return FAIL(c, EINVAL,
			    c->shell
				    ? "an argument inside a script would be code; write \"$1\" for "
				      "it there, and add the words 'sh' and the argument"
				    : "an argument inside a script would be code; make it a word "
				      "of its own, after the script, which takes it from there");
	/* env takes NAME=VALUE first. */
	if (c->launches && !is_option && (first->is_name || !strchr(first->text, '=')))
		return FAIL(c, EINVAL,
			    "the argument would be the program to run; write a program out before "
			    "it");
	if (c->covered)
		return 0;
	if (is_option && strspn(first->text, "-") == first->len)
		return FAIL(c, EINVAL,
			    "the argument could be any option; write the option out, or put '--' "
			    "right before this word");
	if (may_vanish && !is_option && c->option)
		return FAIL(c, EINVAL,
			    "this word can be left out, and an option before it would then take "
			    "the next one; put '--' right before it, or make it one word with its "
			    "option");
	return 0;
}

static int compile_word(struct compiling *c)
{
	struct vt_template_word *word = &c->command->words[c->at];
	int status = read_word(c, c->source[c->at], word);

	if (status < 0)
		return status;
	const char *text = text_of(word);

	if (text && c->at == 0 && !*text)
		return FAIL(c, EINVAL, "the program has no name");
	if (text) {
		c->covered = strcmp(text, "--") == 0;
		c->shell = c->shell || is_shell(text);
		c->codes = find_codes(text) ? find_codes(text) : c->codes;
		c->launches = (c->at == 0 && is_launcher(text)) ||
			      (c->launches && (text[0] == '-' || strchr(text, '=')));
	} else {
		status = check_word(c, word);
	}
	bool begins = word->count && !word->pieces[0].is_name && word->pieces[0].text[0] == '-';

	word->may_dash = begins || c->covered;
	c->option = c->option || (begins && !c->covered);
	return status;
}

/* Bounds what compiling will take. */
static int measure(struct compiling *c)
{
	size_t bytes = 0;

	for (c->at = 0; c->source[c->at]; c->at++) {
		size_t len = strlen(c->source[c->at]);

		bytes += len + 1;
		if (bytes > VT_COMMAND_MAX_TEMPLATE || c->at == VT_COMMAND_MAX_WORDS)
			return FAIL(c, E2BIG, "the command is too long");
	}
	c->command->count = c->at;
	c->at = 0;
	return c->command->count ? 0 : FAIL(c, EINVAL, "there must be a program");
}

static int compile(struct compiling *c)
{
	struct vt_template *command = c->command;
	int status = measure(c);

	if (status < 0)
		return status;
	command->arena = vt_arena_new();
	if (command->arena)
		command->words = vt_arena_array(command->arena, command->count,
						sizeof(*command->words));
	if (!command->words)
		return vt_template_no_memory(c->err);
	for (; c->at < command->count && status == 0; c->at++)
		status = compile_word(c);
	return status;
}

int vt_template_compile(const char *const *words, const struct vt_schema *schema, const char *name,
			struct vt_template **ret_command, struct vt_err *err)
{
	struct compiling c = {
		.command = calloc(1, sizeof(struct vt_template)),
		.source = words,
		.schema = schema ? vt_schema_source(schema) : NULL,
		.name = name,
		.err = err,
	};

	if (!c.command)
		return vt_template_no_memory(err);
	int status = compile(&c);

	if (status < 0)
		vt_template_free(c.command);
	else
		*ret_command = c.command;
	return status;
}

static int compile_input(struct compiling *c)
{
	struct vt_template_word *word;
	int status = measure(c);

	if (status < 0)
		return status;
	c->command->arena = vt_arena_new();
	word = c->command->arena ? vt_arena_alloc(c->command->arena, sizeof(*word)) : NULL;
	if (!word)
		return vt_template_no_memory(c->err);
	c->command->words = word;
	status = read_word(c, c->source[0], word);
	for (size_t i = 0; status == 0 && i < word->count; i++)
		if (word->pieces[i].is_list)
			return FAIL(c, EINVAL, "{%s...} is for words; {%s} gives the list as JSON",
				    word->pieces[i].text, word->pieces[i].text);
	return status;
}

int vt_template_compile_input(const char *text, const struct vt_schema *schema, const char *name,
			      struct vt_template **ret_input, struct vt_err *err)
{
	struct compiling c = {
		.command = calloc(1, sizeof(struct vt_template)),
		.source = (const char *const[]){ text, NULL },
		.schema = schema ? vt_schema_source(schema) : NULL,
		.name = name,
		.err = err,
		.input = true,
	};

	if (!c.command)
		return vt_template_no_memory(err);
	int status = compile_input(&c);

	if (status < 0)
		vt_template_free(c.command);
	else
		*ret_input = c.command;
	return status;
}

void vt_template_free(struct vt_template *command)
{
	if (!command)
		return;
	vt_arena_free(command->arena);
	free(command);
}

static int add_need(const struct vt_piece *piece, json_t *names)
{
	if (!piece->is_name || piece->is_optional || piece->is_list)
		return 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *one = json_array_get(names, i);

		if (json_string_length(one) == piece->len &&
		    memcmp(json_string_value(one), piece->text, piece->len) == 0)
			return 0;
	}
	return json_array_append_new(names, json_stringn(piece->text, piece->len)) < 0 ? -ENOMEM
										       : 0;
}

int vt_template_needs(const struct vt_template *command, json_t *names)
{
	int status = 0;

	for (size_t i = 0; command && i < command->count; i++)
		for (size_t j = 0; status == 0 && j < command->words[i].count; j++)
			status = add_need(&command->words[i].pieces[j], names);
	return status;
}

const char *vt_template_program(const struct vt_template *command)
{
	return text_of(&command->words[0]);
}
