/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of a verb as --help and the man pages show them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/options.h"
#include "policy/fields.h"
#include "policy/units.h"

/* Flags, and beside them the sentence, in lines that fit a terminal of 80 columns. */
static void help_line(struct vt_str *out, const char *flags, const char *sentence)
{
	enum { INDENT = 26, WIDTH = 80 - 2 - INDENT };

	vt_str_addf(out, "  %-*s", INDENT, flags);
	if (strlen(flags) >= INDENT)
		vt_str_addf(out, "\n  %-*s", INDENT, "");
	while (strlen(sentence) > WIDTH) {
		const char *end = sentence + WIDTH;

		while (end > sentence && *end != ' ')
			end--;
		if (end == sentence)
			break;
		vt_str_addf(out, "%.*s\n  %-*s", (int)(end - sentence), sentence, INDENT, "");
		sentence = end + 1;
	}
	vt_str_addf(out, "%s\n", sentence);
}

/* A sentence; of a number of the policy, with its default and its units. */
static void help_sentence(struct vt_str *out, const struct vt_flag *flag)
{
	const struct vt_field_row *row = flag->field < 0 ? NULL
							 : vt_field_row((enum vt_field)flag->field);
	size_t len = strlen(flag->sentence) - 1; /* it ends with a dot */
	char number[VT_UNITS_SHOWN] = "none";

	if (!row || !vt_type_is_numeric(row->type)) {
		vt_str_add(out, flag->sentence);
		return;
	}
	const char *units = vt_units_names(row->type);

	if (row->number >= 0)
		vt_units_show(row->type, (int64_t)row->number, number);
	vt_str_addf(out, "%.*s (default %s%s%s).", (int)len, flag->sentence, number,
		    *units ? "; in " : "", units);
}

static void help_flag(struct vt_str *out, const struct vt_flag *flag)
{
	struct vt_str sentence;
	char text[80];

	if (!flag->name)
		(void)snprintf(text, sizeof(text), "--set %s=VALUE",
			       vt_field_info((enum vt_field)flag->field)->key);
	else
		(void)snprintf(text, sizeof(text), "%s%s%s%s%s%s", flag->letter ? flag->letter : "",
			       flag->letter ? ", " : "", flag->name,
			       !flag->argument  ? ""
			       : flag->optional ? "[="
						: " ",
			       flag->argument ? flag->argument : "", flag->optional ? "]" : "");
	vt_str_init(&sentence);
	help_sentence(&sentence, flag);
	help_line(out, text, sentence.text);
	vt_str_done(&sentence);
}

/* What a call is given comes first, and last what few need. */
enum part { OF_POLICY, OF_VERB, KEY_ALONE, PARTS };

static enum part part_of(const struct vt_flag *flag)
{
	return flag->field < 0 ? OF_VERB : flag->name ? OF_POLICY : KEY_ALONE;
}

void vt_options_help(const char *verb, struct vt_str *out)
{
	struct vt_flag flag;

	for (int part = 0; part < PARTS; part++)
		for (size_t i = 0; vt_flag_at(verb, i, &flag); i++)
			if ((int)part_of(&flag) == part)
				help_flag(out, &flag);
}

void vt_options_show(const char *verb, const char *before, const char *after)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_add(&text, before);
	vt_options_help(verb, &text);
	vt_str_add(&text, after);
	(void)vt_cli_write(STDOUT_FILENO, text.text, text.len); /* nobody to tell */
	vt_str_done(&text);
}
