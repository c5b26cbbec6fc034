/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genflags TEMPLATE: writes the template with its line "@FLAGS VERB@" replaced by the flags of that
 * verb as scdoc. They come from vt_options_help(), so that manual, --help and parser have one
 * source: two blanks, the flag, then its sentence from column SENTENCE on, or from the next line on
 * where the flag is too long; the rest of a long sentence is on further lines.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/options.h"

enum { INDENT = 2, SENTENCE = 28 };

/* scdoc would take these for markup. */
static void print_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr("\\*_[#<", text[i]))
			putchar('\\');
		putchar(text[i]);
	}
}

/* "-p, --policy POLICY": dashes in bold up to the first blank or bracket of each word. */
static void print_flag(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t word = 0, bold;

		while (at + word < len && text[at + word] != ' ')
			word++;
		bold = text[at] == '-' ? strcspn(text + at, " ,[") : 0;
		if (bold) {
			putchar('*');
			print_plain(text + at, bold);
			putchar('*');
		}
		print_plain(text + at + bold, word - bold);
		at += word;
		if (at < len)
			putchar(text[at++]);
	}
	putchar('\n');
}

/* How long the flag in a line is, without the blanks around it; 0: the line has a sentence alone.
 */
static size_t flag_length(const char *line, size_t len)
{
	size_t end = len < SENTENCE ? len : SENTENCE;

	if (len > SENTENCE && line[SENTENCE - 1] != ' ')
		end = len;
	while (end > INDENT && line[end - 1] == ' ')
		end--;
	return end > INDENT ? end - INDENT : 0;
}

/* A sentence is one line, whatever it is in the help: roff takes a "." at the begin of one for its
 * own. */
static void print_line(const char *line, size_t len, bool *in_sentence)
{
	size_t flag = flag_length(line, len);

	if (flag) {
		fputs(*in_sentence ? "\n\n" : "\n", stdout);
		print_flag(line + INDENT, flag);
		*in_sentence = false;
	}
	if (INDENT + flag == len)
		return;
	putchar(*in_sentence ? ' ' : '\t');
	print_plain(line + SENTENCE, len - SENTENCE);
	*in_sentence = true;
}

static int print_flags(const char *verb)
{
	struct vt_str help;
	bool in_sentence = false;

	vt_str_init(&help);
	vt_options_help(verb, &help);
	for (const char *at = help.text; *at;) {
		size_t len = strcspn(at, "\n");

		print_line(at, len, &in_sentence);
		at += len + (at[len] == '\n');
	}
	fputs("\n\n", stdout);
	int bad = !vt_str_ok(&help) || !help.len;

	vt_str_done(&help);
	return bad;
}

static int fill(FILE *template)
{
	char line[1000], verb[20];
	int bad = 0;

	while (fgets(line, sizeof(line), template)) {
		if (sscanf(line, "@FLAGS %19[a-z]@", verb) == 1)
			bad |= print_flags(verb);
		else
			fputs(line, stdout);
	}
	return bad || ferror(template);
}

int main(int argc, char **argv)
{
	FILE *template = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!template) {
		fputs("usage: genflags TEMPLATE\n", stderr);
		return 1;
	}
	int bad = fill(template);

	(void)fclose(template); /* only read from */
	return bad || fflush(stdout) != 0 || ferror(stdout);
}
