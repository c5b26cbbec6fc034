/* SPDX-License-Identifier: Apache-2.0 */
/* vitro eval: `vitro run`, of the interpreter of a language with code that was given. */
#include "cli/eval.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "host/helper.h"
#include "launch/inside.h"

static const struct language {
	const char *name;
	const char *program;
	const char *apart;  /* keeps what the caller has set up for himself out of it; or NULL */
	const char *code;   /* the flag that code follows */
	const char *script; /* a file of vitro's own, whose text is the code, and the code its
			       argument */
	const char *end;    /* of its flags, where it would take the code for one; or NULL */
	const char *gives;  /* the word without which no code has a value; or NULL */
	const char *others; /* how people write it, in any case, between blanks */
} languages[] = {
	{ "python", "python3", "-I", "-c", "python/evaluate.py", NULL, NULL,
	  " py python python3 " },
	{ "node", "node", NULL, "-e", "node/evaluate.cjs", "--", "return",
	  " javascript js node nodejs " },
};

/* The language that is asked for; NULL: there is none of that name. */
static const struct language *find(const struct vt_options *options)
{
	const char *name = options->lang ? options->lang : "python";

	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		if (strcmp(languages[i].name, name) == 0)
			return &languages[i];
	return NULL;
}

static int fail_unknown(const char *name, struct vt_err *err)
{
	const char *meant = NULL;
	char word[32]; /* cut: too long to be one of them */

	(void)snprintf(word, sizeof(word), " %s ", name);
	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		if (strcasestr(languages[i].others, word))
			meant = languages[i].name;
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "--lang: there is no language '%s'; %s%s%s",
		       name, meant ? "did you mean " : "there are python and node",
		       meant ? meant : "", meant ? "?" : "");
}

/* A package for one language brings the scripts of that one alone. */
static int fail_missing(const struct language *language, struct vt_err *err)
{
	char path[PATH_MAX];
	struct vt_err other;

	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		if (&languages[i] != language &&
		    vt_helper_find_file(languages[i].script, path, &other) == 0)
			return vt_fail(
				err, VT_STEP_POLICY, ENOENT,
				"this vitro is packaged for %s only: add --lang %s; `make install` "
				"brings all languages",
				languages[i].name, languages[i].name);
	return -err->num;
}

/* Its text goes along, so that no cell need read the file. */
static int read_script(const struct language *language, struct vt_arena *arena,
		       const char **ret_text, struct vt_err *err)
{
	char path[PATH_MAX];
	struct vt_str text;
	int r = vt_helper_find_file(language->script, path, err);

	if (r == -ENOENT)
		return fail_missing(language, err);
	if (r < 0)
		return r;
	vt_str_init(&text);
	r = vt_json_read_file(path, &text, err);
	*ret_text = r == 0 && vt_str_ok(&text) ? vt_arena_dupn(arena, text.text, text.len) : NULL;
	vt_str_done(&text);
	if (r == 0 && !*ret_text)
		r = vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	return r;
}

/* The words, without those that are NULL. */
static char **list(struct vt_arena *arena, const char *const *words, size_t count)
{
	char **argv = vt_arena_array(arena, count + 1, sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (words[i])
			argv[n++] = (char *)words[i];
	argv[n] = NULL;
	return argv;
}

static int fail_words(char **code, struct vt_err *err)
{
	const char *what = "no code given";

	if (code[0])
		what = strncmp(code[1], "--", 2) == 0 ? "flags come before the code"
						      : "code is one word, so quote it";
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: vitro eval [FLAGS] CODE | -", what);
}

bool vt_eval_lacks_value(const struct vt_options *options)
{
	const struct language *language = find(options);

	return options->code && strcmp(options->code, "-") != 0 && language && language->gives &&
	       !strstr(options->code, language->gives);
}

int vt_eval_command(struct vt_options *options, struct vt_arena *arena, struct vt_err *err)
{
	const struct language *language = find(options);
	char **code = options->command;

	if (!language)
		return fail_unknown(options->lang, err);
	if (!code[0] || code[1])
		return fail_words(code, err);
	const char *script = NULL;
	const char *report = NULL; /* where it tells its value */

	if (options->json && !(report = vt_arena_printf(arena, "%d", VT_REPORT_FD)))
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	if (read_script(language, arena, &script, err) < 0)
		return -err->num;
	const char *words[] = { language->program, language->apart, language->code, script,
				language->end,     code[0],         report };
	const size_t count = sizeof(words) / sizeof(words[0]);

	options->code = code[0];
	options->command = list(arena, words, count);
	words[3] = language->script;
	words[6] = NULL;
	options->told = list(arena, words, count);
	if (!options->command || !options->told)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	return 0;
}
