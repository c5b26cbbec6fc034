/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the fields of a policy as scdoc, from the same table that the parser uses: alone, or with
 * a template as argument, the template with its line "@FIELDS@" replaced.
 */
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

/* scdoc would take these for markup. */
static void print_plain(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void print_field(const struct vt_field_info *info)
{
	putchar('*');
	print_plain(info->key);
	printf("* (%s; default: ", info->type);
	print_plain(info->fallback);
	if (*info->range)
		printf("; %s", info->range);
	if (info->flag)
		printf("; flag: *%s* %s", info->flag, info->argument);
	printf(")\n\t");
	print_plain(info->sentence);
	printf("\n\n");
}

static void print_fields(void)
{
	for (int field = 0; field < VT_FIELD_COUNT; field++)
		print_field(vt_field_info(field));
}

static void print_schema(void)
{
	struct vt_str schema;

	vt_str_init(&schema);
	vt_policy_schema(&schema);
	fputs(schema.text, stdout);
	vt_str_done(&schema);
}

static int fill(const char *path)
{
	FILE *template = fopen(path, "r");
	char line[1000];

	if (!template) {
		perror(path);
		return 1;
	}
	while (fgets(line, sizeof(line), template)) {
		if (strcmp(line, "@FIELDS@\n") == 0)
			print_fields();
		else
			fputs(line, stdout);
	}
	int bad = ferror(template);

	fclose(template);
	return bad != 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc > 1 && strcmp(argv[1], "--schema") == 0)
		print_schema();
	else if (argc > 1)
		status = fill(argv[1]);
	else
		print_fields();
	return status || fflush(stdout) != 0 || ferror(stdout);
}
