/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gencomplete bash|zsh|fish TEMPLATE: writes the template with each line of the form "@NAME@"
 * replaced by a part of the parser's own tables in the shell's words. So a new verb, flag or key is
 * completed as soon as it is parsed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/flags.h"
#include "host/interpreter.h"
#include "policy/builtin.h"
#include "policy/fields.h"

static const struct verb {
	const char *name, *sentence, *word;
} verbs[] = {
#define VERB(name, run, sentence, word) { name, sentence, word },
#include "cli/verbs.def"
#undef VERB
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What can stand for a value. */
enum kind {
	KIND_ANY,
	KIND_FILES,
	KIND_FOLDERS,
	KIND_VARIABLES,
	KIND_WORDS,
	KIND_POLICY,
	KIND_KEYS
};

static enum kind kind_of_field(int field)
{
	enum vt_type type = vt_field_row((enum vt_field)field)->type;

	if (vt_type_words(type))
		return KIND_WORDS;
	switch (type) {
	case VT_TYPE_PATH:
		return KIND_FOLDERS;
	case VT_TYPE_PATHS:
	case VT_TYPE_GRANTS:
		return KIND_FILES;
	case VT_TYPE_NAMES:
	case VT_TYPE_ENV:
		return KIND_VARIABLES;
	default:
		return KIND_ANY;
	}
}

static enum kind kind_of(const struct vt_flag *flag)
{
	static const struct {
		const char *argument;
		enum kind kind;
	} own[] = { { "FILE", KIND_FILES }, { "PATH", KIND_FILES },    { "WHERE", KIND_FILES },
		    { "NAME", KIND_WORDS }, { "POLICY", KIND_POLICY }, { "KEY=VALUE", KIND_KEYS } };

	if (flag->field >= 0)
		return kind_of_field(flag->field);
	for (size_t i = 0; flag->argument && i < COUNT(own); i++)
		if (strcmp(flag->argument, own[i].argument) == 0)
			return own[i].kind;
	return KIND_ANY;
}

static bool needs_value(const struct vt_flag *flag)
{
	return flag->argument && !flag->optional;
}

/* Those verbs that take a policy take a command. */
static bool takes_command(const char *verb)
{
	struct vt_flag flag;

	for (size_t i = 0; vt_flag_at(verb, i, &flag); i++)
		if (flag.field >= 0)
			return true;
	return false;
}

/* Those whose first word is a file. */
static bool takes_manifest(const char *verb)
{
	return strcmp(verb, "tools") == 0 || strcmp(verb, "call") == 0;
}

/* Those that a field of the policy takes; -1: the languages of --lang. */
static const char *const *words_of(int field)
{
	static const char *languages[VT_LANGUAGES + 1];

	if (field >= 0)
		return vt_type_words(vt_field_row((enum vt_field)field)->type);
	for (int i = 0; i < VT_LANGUAGES; i++)
		languages[i] = vt_interpreters[i].name;
	return languages;
}

/* The words to choose from, each after a blank and a prefix. */
static void print_words(enum kind kind, int field, const char *prefix)
{
	const char *names = kind == KIND_POLICY ? vt_builtin_names() : "";

	while (*names) {
		int len = (int)strcspn(names, ", ");

		printf(" %s%.*s", prefix, len, names);
		names += len + (int)strspn(names + len, ", ");
	}
	if (kind != KIND_WORDS)
		return;
	const char *const *words = words_of(field);

	while (*words)
		printf(" %s%s", prefix, *words++);
}

/* Text that stands between single quotes; special characters get a backslash. */
static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		else if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

static void bash_verbs(void)
{
	fputs("\tlocal verbs='", stdout);
	for (size_t i = 0; i < COUNT(verbs); i++)
		printf("%s%s", i ? " " : "", verbs[i].name);
	puts("'");
}

static void bash_flags(void)
{
	struct vt_flag flag;

	for (size_t i = 0; i < COUNT(verbs); i++) {
		const char *verb = verbs[i].name;

		printf("\t%s)\n\t\tflags='", verb);
		for (size_t j = 0; vt_flag_at(verb, j, &flag); j++)
			if (flag.name)
				printf("%s%s", j ? " " : "", flag.name);
		fputs("'\n\t\tvalued='", stdout);
		for (size_t j = 0; vt_flag_at(verb, j, &flag); j++)
			if (flag.name && needs_value(&flag))
				printf(" %s %s", flag.name, flag.letter ? flag.letter : "");
		printf("'\n\t\tcommand=%s\n\t\taction=%s\n\t\tmanifest=%s\n\t\t;;\n",
		       takes_command(verb) ? "yes" : "", verbs[i].word ? verbs[i].word : "",
		       takes_manifest(verb) ? "yes" : "");
	}
}

static void bash_call(enum kind kind, int field)
{
	static const char *const names[] = {
		[KIND_FILES] = "files", [KIND_FOLDERS] = "folders", [KIND_VARIABLES] = "variables",
		[KIND_WORDS] = "words", [KIND_POLICY] = "policy",   [KIND_KEYS] = "keys",
	};

	printf(") __vitro_%s \"$value\"", names[kind]);
	print_words(kind, field, "");
	puts(" ;;");
}

static void bash_arguments(void)
{
	struct vt_flag flag;

	for (size_t i = 0; i < COUNT(verbs); i++) {
		for (size_t j = 0; vt_flag_at(verbs[i].name, j, &flag); j++) {
			if (!flag.name || kind_of(&flag) == KIND_ANY)
				continue;
			printf("\t%s:%s", verbs[i].name, flag.name);
			if (flag.letter)
				printf(" | %s:%s", verbs[i].name, flag.letter);
			bash_call(kind_of(&flag), flag.field);
		}
	}
}

static void bash_keys(void)
{
	fputs("\tlocal keys=(", stdout);
	for (int i = 0; i < VT_FIELD_COUNT; i++)
		printf("%s%s", i ? " " : "", vt_field_info((enum vt_field)i)->key);
	puts(")");
}

static void bash_values(void)
{
	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		if (kind_of_field(i) == KIND_ANY)
			continue;
		printf("\t%s", vt_field_info((enum vt_field)i)->key);
		bash_call(kind_of_field(i), i);
	}
}

static void zsh_verbs(void)
{
	for (size_t i = 0; i < COUNT(verbs); i++) {
		printf("\t\t'%s:", verbs[i].name);
		print_quoted(verbs[i].sentence, "\\");
		puts("'");
	}
}

/* An action: with a blank before it, it is called as it is written. */
static void zsh_action(enum kind kind, int field)
{
	static const char *const actions[] = {
		[KIND_ANY] = " ",
		[KIND_FILES] = "_files",
		[KIND_FOLDERS] = "_path_files -/",
		[KIND_VARIABLES] = "_vitro_variables",
		[KIND_WORDS] = "(",
		[KIND_POLICY] = " _vitro_policy",
		[KIND_KEYS] = " _vitro_keys",
	};

	fputs(actions[kind], stdout);
	print_words(kind, field, "");
	if (kind == KIND_WORDS)
		putchar(')');
}

/* '*--read=[sentence]:PATH:_files', as _arguments wants it. */
static void zsh_flag(const struct vt_flag *flag, const char *name)
{
	bool is_letter = name == flag->letter;

	printf("\t\t\t\t'%s%s%s[", flag->argument ? "*" : "", name,
	       !flag->argument || is_letter ? ""
	       : flag->optional             ? "=-"
					    : "=");
	print_quoted(flag->sentence, "\\[]:");
	putchar(']');
	if (flag->argument) {
		printf("%s:", flag->optional ? ":" : "");
		print_quoted(flag->argument, "\\[]:");
		putchar(':');
		zsh_action(kind_of(flag), flag->field);
	}
	puts("' \\");
}

static void zsh_flags(void)
{
	struct vt_flag flag;

	for (size_t i = 0; i < COUNT(verbs); i++) {
		const char *word = verbs[i].word;

		printf("\t\t%s)\n\t\t\t_arguments -S%s \\\n", verbs[i].name,
		       word ? "" : " -A '-*'");
		for (size_t j = 0; vt_flag_at(verbs[i].name, j, &flag); j++) {
			if (flag.name && flag.letter)
				zsh_flag(&flag, flag.letter);
			if (flag.name)
				zsh_flag(&flag, flag.name);
		}
		if (takes_command(verbs[i].name))
			puts("\t\t\t\t'(-)1:command:_vitro_command' "
			     "'*::argument:_normal' \\");
		if (word)
			printf("\t\t\t\t'1: :(%s)' '2:file:_files' \\\n", word);
		if (takes_manifest(verbs[i].name))
			puts("\t\t\t\t'1:manifest:_files' '*:: : ' \\");
		puts("\t\t\t\t&& ret=0\n\t\t\t;;");
	}
}

static void zsh_keys(void)
{
	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		printf("\t\t'%s:", vt_field_info((enum vt_field)i)->key);
		print_quoted(vt_field_info((enum vt_field)i)->sentence, "\\");
		puts("'");
	}
}

static void zsh_values(void)
{
	static const char *const calls[] = {
		[KIND_FILES] = "_files",
		[KIND_FOLDERS] = "_path_files -/",
		[KIND_VARIABLES] = "_vitro_variables",
		[KIND_WORDS] = "compadd --",
	};

	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		if (kind_of_field(i) == KIND_ANY)
			continue;
		printf("\t%s) %s", vt_field_info((enum vt_field)i)->key, calls[kind_of_field(i)]);
		print_words(kind_of_field(i), i, "");
		puts(" ;;");
	}
}

static void fish_verbs(void)
{
	for (size_t i = 0; i < COUNT(verbs); i++) {
		printf("complete -c vitro -n '__vitro_wants_verb' -a %s -d '", verbs[i].name);
		print_quoted(verbs[i].sentence, "\\");
		puts("'");
	}
}

/* The words of a flag, each with what it is in short: else fish shows the flag's sentence for each.
 */
static void fish_words(enum kind kind, int field)
{
	static const struct {
		const char *word, *what;
	} known[] = {
		{ "none", "no network" },
		{ "loopback", "a loopback of the cell'\\''s own" },
		{ "host", "the host'\\''s network, its loopback included" },
	};

	if (kind != KIND_WORDS) {
		print_words(kind, field, "");
		return;
	}
	const char *const *words = words_of(field);

	for (; *words; words++) {
		printf(" %s", *words);
		for (size_t i = 0; i < COUNT(known); i++)
			if (strcmp(known[i].word, *words) == 0)
				printf("\\t\"%s\"", known[i].what);
	}
}

static void fish_flag(const char *verb, const struct vt_flag *flag)
{
	static const char *const actions[] = {
		[KIND_ANY] = "-x",
		[KIND_FILES] = "-r -F",
		[KIND_FOLDERS] = "-x -a '(__fish_complete_directories)'",
		[KIND_VARIABLES] = "-x -a '(set -xn)'",
		[KIND_WORDS] = "-x -a '",
		[KIND_POLICY] = "-r -F -a '",
		[KIND_KEYS] = "-x -a '(__vitro_keys)'",
	};
	enum kind kind = kind_of(flag);

	printf("complete -c vitro -n '__vitro_flags %s' -l %s", verb, flag->name + strlen("--"));
	if (flag->letter)
		printf(" -s %s", flag->letter + strlen("-"));
	if (flag->optional) {
		fputs(" -F", stdout);
	} else if (flag->argument) {
		printf(" %s", actions[kind]);
		if (kind == KIND_WORDS || kind == KIND_POLICY)
			fish_words(kind, flag->field);
		if (kind == KIND_WORDS || kind == KIND_POLICY)
			putchar('\'');
	}
	fputs(" -d '", stdout);
	print_quoted(flag->sentence, "\\");
	puts("'");
}

static void fish_flags(void)
{
	struct vt_flag flag;

	for (size_t i = 0; i < COUNT(verbs); i++) {
		for (size_t j = 0; vt_flag_at(verbs[i].name, j, &flag); j++)
			if (flag.name)
				fish_flag(verbs[i].name, &flag);
		if (takes_command(verbs[i].name))
			printf("complete -c vitro -n '__vitro_in_command %s' -x "
			       "-a '(__vitro_command)'\n",
			       verbs[i].name);
		if (verbs[i].word)
			printf("complete -c vitro -n '__vitro_wants_word %s' -a %s\n"
			       "complete -c vitro -n '__vitro_wants_file %s' -F\n",
			       verbs[i].name, verbs[i].word, verbs[i].name);
		if (takes_manifest(verbs[i].name))
			printf("complete -c vitro -n '__vitro_wants_manifest %s' -F\n",
			       verbs[i].name);
	}
}

/* Those words of verbs that come before their flags. */
static void fish_words_of_verbs(void)
{
	fputs("    contains -- \"$argv[1]:$argv[2]\"", stdout);
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (verbs[i].word)
			printf(" %s:%s", verbs[i].name, verbs[i].word);
	putchar('\n');
}

static void fish_valued(void)
{
	struct vt_flag flag;

	fputs("                case", stdout);
	for (size_t i = 0; i < COUNT(verbs); i++) {
		for (size_t j = 0; vt_flag_at(verbs[i].name, j, &flag); j++) {
			if (!flag.name || !needs_value(&flag))
				continue;
			printf(" %s:%s", verbs[i].name, flag.name);
			if (flag.letter)
				printf(" %s:%s", verbs[i].name, flag.letter);
		}
	}
	putchar('\n');
}

static void fish_keys(void)
{
	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		printf("    printf '%%s\\t%%s\\n' %s= '", vt_field_info((enum vt_field)i)->key);
		print_quoted(vt_field_info((enum vt_field)i)->sentence, "\\");
		puts("'");
	}
}

static void fish_values(void)
{
	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		char prefix[80];

		if (kind_of_field(i) != KIND_WORDS)
			continue;
		(void)snprintf(prefix, sizeof(prefix),
			       "%s=", vt_field_info((enum vt_field)i)->key); /* keys are short */
		fputs("        printf '%s\\n'", stdout);
		print_words(KIND_WORDS, i, prefix);
		putchar('\n');
	}
}

static const struct part {
	const char *shell, *line;
	void (*print)(void);
} parts[] = {
	{ "bash", "@VERBS@\n", bash_verbs },
	{ "bash", "@FLAGS@\n", bash_flags },
	{ "bash", "@ARGUMENTS@\n", bash_arguments },
	{ "bash", "@KEYS@\n", bash_keys },
	{ "bash", "@VALUES@\n", bash_values },
	{ "zsh", "@VERBS@\n", zsh_verbs },
	{ "zsh", "@FLAGS@\n", zsh_flags },
	{ "zsh", "@KEYS@\n", zsh_keys },
	{ "zsh", "@VALUES@\n", zsh_values },
	{ "fish", "@VERBS@\n", fish_verbs },
	{ "fish", "@FLAGS@\n", fish_flags },
	{ "fish", "@VALUED@\n", fish_valued },
	{ "fish", "@KEYS@\n", fish_keys },
	{ "fish", "@VALUES@\n", fish_values },
	{ "fish", "@WORDS@\n", fish_words_of_verbs },
};

static void print_line(const char *shell, const char *line)
{
	for (size_t i = 0; i < COUNT(parts); i++) {
		if (strcmp(shell, parts[i].shell) == 0 && strcmp(line, parts[i].line) == 0) {
			parts[i].print();
			return;
		}
	}
	fputs(line, stdout);
}

int main(int argc, char **argv)
{
	FILE *template = argc == 3 ? fopen(argv[2], "r") : NULL;
	char line[1000];

	if (!template) {
		fputs("usage: gencomplete bash|zsh|fish TEMPLATE\n", stderr);
		return 1;
	}
	while (fgets(line, sizeof(line), template))
		print_line(argv[1], line);
	bool bad = ferror(template);

	(void)fclose(template); /* only read from */
	return bad || fflush(stdout) != 0 || ferror(stdout);
}
