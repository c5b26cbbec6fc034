/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool that is a command: words, in which a call's arguments are put. The words go to execve() as
 * they are. No shell reads them, and no argument is ever split.
 *
 *   {name}     the argument of that name: a string as it is, anything else as compact JSON
 *   {name?}    the same; where it is missing, its word is left out, with the text around it
 *   {name...}  stands alone in its word: one word for each item of a list; none if it is missing
 *   {-name}    (and {-name?}, {-name...}) the same, and it may begin with '-'
 *   {{ and }}  a brace
 *
 * A name has letters, digits and "_-.", begins with a letter or "_" and does not end with ".". An
 * argument that is null counts as missing; {name} of a missing one is an error.
 *
 * An argument must not become an option, whatever a model puts in it. So:
 *
 * - The first word, the program, has no argument in it.
 * - A word that does not begin with '-' as it is written must not do so when it is filled in, but
 *   for {-name}, and right after "--". That covers the words up to the next without an argument: in
 *   `timeout 5 -- ls {path}` it is not ls that reads the "--".
 * - "-{name}" and "--{name}" are wrong, except there: an option is written out, with a letter.
 * - A word that can be left out comes before the first option, or right after "--", or is an option
 *   itself ("--lines={n?}"). Else the option before it would take the next word for its value: with
 *   `tar -C {dir?} {file}`, a file for a folder; with `grep -e {pattern?} -- {file}`, the "--".
 * - In the script of a shell (`sh -c`), or of Python, Perl and the like, there is no argument in
 *   the midst of text: it would be code.
 *   `sh -c 'wc -l "$1"' sh {file}` is the way to write it. A word that is nothing but {script} is
 *   meant to be one, and fine.
 * - Right after `env`, `xargs`, `nohup`, `setsid` or `nice` there is none: it would be the program.
 *
 * What else a program makes of a word, "@file" or "name=value", is for who writes the template to
 * know; so is what awk, sed and others take for code. The cell holds either way.
 */
#pragma once

#include "tool/schema.h"

enum {
	VT_COMMAND_MAX_NAME     = 128,
	VT_COMMAND_MAX_TEMPLATE = 64 << 10, /* bytes of all its words, each with its NUL */
	VT_COMMAND_MAX_WORDS    = 4096,     /* of a template, and when filled in */
	/* bytes of one filled in: the kernel takes no longer one */
	VT_COMMAND_MAX_WORD     = 131071,
	/* of all, each with its NUL: half of what the kernel takes */
	VT_COMMAND_MAX_BYTES    = 1 << 20,
	VT_COMMAND_MAX_INPUT    = 16 << 20, /* of its standard input, filled in */
};

struct vt_template;

/*
 * Compiles a template, which ends with NULL. name is what messages call it ("command"), and they
 * begin with the place: "command[2]: ...". A name that the schema has no room for (its properties
 * lack it, and additionalProperties is false) is an error; schema may be NULL. -EINVAL, -E2BIG,
 * -ENOMEM. The caller owns *ret_command: vt_template_free(). It keeps nothing of what is handed in.
 */
int vt_template_compile(const char *const *words, const struct vt_schema *schema, const char *name,
		       struct vt_template **ret_command, struct vt_err *err);
/*
 * The same of the text of its standard input. Nothing there is an option, so that an argument may
 * begin with '-'. {name?} that is missing leaves out itself alone; there is no {name...}. Messages
 * begin with the name.
 */
int vt_template_compile_input(const char *text, const struct vt_schema *schema, const char *name,
			     struct vt_template **ret_input, struct vt_err *err);
/* NULL is fine. */
void vt_template_free(struct vt_template *command);

/* The first word, which has no argument in it. It is the command's own. */
const char *vt_template_program(const struct vt_template *command);

/*
 * Adds the names of the arguments that it cannot do without to an array, each once. NULL is a
 * command without any. -ENOMEM.
 */
int vt_template_needs(const struct vt_template *command, json_t *names);

/*
 * Fills in the arguments, an object, as vt_tool_check() gives it. *ret_argv ends with NULL and is
 * freed as a whole with free(). -EINVAL: a value does not do, and the message begins with its
 * place: "arguments.path: ..."; -E2BIG: it is too long for a command line; -ENOMEM.
 */
int vt_template_expand(const struct vt_template *command, const json_t *arguments, char ***ret_argv,
		      struct vt_err *err);

/*
 * The same of a standard input. *ret_text is freed with free(). -E2BIG: it is longer than
 * VT_COMMAND_MAX_INPUT.
 */
int vt_template_expand_input(const struct vt_template *input, const json_t *arguments,
			     char **ret_text,
			    size_t *ret_len, struct vt_err *err);

/*
 * The value of a call, from what the command printed: as it is, without the space around it, if
 * that is JSON; else as a JSON string, in which what is not UTF-8 is replaced. Of output that was
 * cut there is no value to be had: what is left of it could be other JSON. *ret_json ends in NUL
 * and is freed with free(); ret_len may be NULL. -ENOMEM.
 */
int vt_command_value(const char *output, size_t len, char **ret_json, size_t *ret_len);

/*
 * What a command says of its failure: the end of its standard error, as much of it as fits, from
 * the beginning of a line. As a JSON string, in which what is not UTF-8 is replaced. NULL: out of
 * memory.
 */
json_t *vt_command_words(const char *output, size_t len);
