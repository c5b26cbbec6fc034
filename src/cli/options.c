/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Flags that are not fields of a policy. */
enum own_flag { OWN_POLICY, OWN_SET, OWN_JSON, OWN_AUDIT, OWN_RAW, OWN_HELP };

static const struct own {
	enum own_flag id;
	const char *name, *letter, *argument, *sentence;
	bool optional; /* the argument is given as --name=ARG or not at all */
} own_flags[] = {
	{ OWN_POLICY, "--policy", "-p", "POLICY",
	  "A policy file, or a built-in one: default, strict, compute.", false },
	{ OWN_SET, "--set", NULL, "KEY=VALUE", "Set any key of the policy.", false },
	{ OWN_JSON, "--json", NULL, "FILE",
	  "Write the result to FILE, or to standard output in place of the command's output.",
	  true },
	{ OWN_AUDIT, "--audit", NULL, "FILE", "Append one JSON line about the call to FILE.",
	  false },
	{ OWN_RAW, "--raw", NULL, NULL, "Let escape sequences from the command reach the terminal.",
	  false },
	{ OWN_HELP, "--help", "-h", NULL, "Show what can be given, and end.", false },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A flag as it stands on the command line. */
struct flag {
	const char *text; /* as written, without its value: "--timeout" */
	size_t len;
	const char *value; /* after '=', or NULL */
	const struct own *own;
	int field; /* of the policy, or -1 */
};

static bool is_named(const struct flag *flag, const char *name)
{
	return name && strncmp(name, flag->text, flag->len) == 0 && name[flag->len] == '\0';
}

static struct flag recognise(const char *text)
{
	const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
	struct flag flag = {
		.text = text,
		.len = equals ? (size_t)(equals - text) : strlen(text),
		.value = equals ? equals + 1 : NULL,
		.field = -1,
	};

	for (size_t i = 0; i < COUNT(own_flags); i++)
		if (is_named(&flag, own_flags[i].name) || is_named(&flag, own_flags[i].letter))
			flag.own = &own_flags[i];
	for (int i = 0; i < VT_FIELD_COUNT; i++)
		if (is_named(&flag, vt_field_info((enum vt_field)i)->flag))
			flag.field = i;
	return flag;
}

static bool takes_value(const struct flag *flag)
{
	return flag->own ? flag->own->argument && !flag->own->optional : true;
}

/* Finds the flag at argv[*at] and its value, which may be the next argument. */
static int next_flag(int argc, char **argv, int *at, struct flag *ret_flag, struct vt_err *err)
{
	struct flag flag = recognise(argv[*at]);
	const char *argument;

	if (!flag.own && flag.field < 0)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "unknown flag '%s'; see vitro %s --help", flag.text, argv[0]);
	if (takes_value(&flag) && !flag.value) {
		argument = flag.own ? flag.own->argument
				    : vt_field_info((enum vt_field)flag.field)->argument;
		if (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0)
			return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s needs a value: %s %s",
				       flag.text, flag.text, argument);
		flag.value = argv[++*at];
	}
	if (flag.own && !flag.own->argument && flag.value)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s takes no value", flag.own->name);
	*ret_flag = flag;
	return 0;
}

static int set_any(struct vt_policy *policy, const char *assignment, const char *cwd,
		   struct vt_err *err)
{
	const char *equals = strchr(assignment, '=');

	if (!equals)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "--set %s: write it as KEY=VALUE",
			       assignment);
	char *key = vt_arena_dupn(policy->arena, assignment, (size_t)(equals - assignment));

	if (!key)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the flags");
	return vt_policy_set(policy, key, equals + 1, cwd, "--set", err);
}

static int apply_own(struct vt_options *options, const struct flag *flag, const char *cwd,
		     struct vt_err *err)
{
	switch (flag->own->id) {
	case OWN_POLICY:
		return 0; /* loaded before all other flags */
	case OWN_SET:
		return set_any(options->policy, flag->value, cwd, err);
	case OWN_JSON:
		options->json = true;
		options->json_file = flag->value;
		if (flag->value && !*flag->value)
			return vt_fail(err, VT_STEP_POLICY, EINVAL, "--json= needs a file's name");
		return 0;
	case OWN_AUDIT:
		options->audit_file = flag->value;
		return 0;
	case OWN_RAW:
		options->raw = true;
		return 0;
	case OWN_HELP:
		options->help = true;
		return 0;
	}
	return 0;
}

static int apply(struct vt_options *options, const struct flag *flag, const char *cwd,
		 struct vt_err *err)
{
	if (flag->own)
		return apply_own(options, flag, cwd, err);
	const struct vt_field_info *info = vt_field_info((enum vt_field)flag->field);
	bool time = strcmp(info->argument, "TIME") == 0;

	/* A key's name says its unit; a flag's does not, and 5 is not 5 ms to everybody. */
	if ((time || strcmp(info->argument, "SIZE") == 0) && *flag->value &&
	    strcmp(flag->value, "0") != 0 &&
	    flag->value[strspn(flag->value, "0123456789.")] == '\0')
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s %s: which unit? write %s%s",
			       info->flag, flag->value, flag->value,
			       time ? "s for seconds (ms and m work too)"
				    : "M for megabytes (K and G work too)");
	return vt_policy_set(options->policy, info->key, flag->value, cwd, info->flag, err);
}

/* Calls for each flag up to the command: first for the policies, then for the rest. */
static int walk(struct vt_options *options, int argc, char **argv, bool policies, const char *cwd,
		struct vt_err *err)
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
		struct flag flag = { 0 };

		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		int r = next_flag(argc, argv, &at, &flag, err);

		if (r < 0)
			return r;
		bool is_policy = flag.own && flag.own->id == OWN_POLICY;

		if (policies && is_policy) {
			options->policy_name = flag.value;
			r = vt_policy_load(options->policy, flag.value, err);
		} else if (!policies && !is_policy) {
			r = apply(options, &flag, cwd, err);
		}
		if (r < 0)
			return r;
	}
	options->command = argv + at;
	return 0;
}

int vt_options_parse(struct vt_options *options, int argc, char **argv, struct vt_err *err)
{
	char cwd[PATH_MAX];

	*options = (struct vt_options){ .policy_name = "default", .command = argv + argc };
	if (!getcwd(cwd, sizeof(cwd)))
		return vt_fail(err, VT_STEP_POLICY, errno, "the working directory is gone");
	int r = vt_policy_new(&options->policy, err);

	if (r == 0)
		r = walk(options, argc, argv, true, cwd, err);
	if (r == 0)
		r = walk(options, argc, argv, false, cwd, err);
	/* Whoever asked for JSON gets the refusal as JSON too, wherever the flag stands. */
	for (int i = 1; r < 0 && i < argc && strcmp(argv[i], "--") != 0; i++)
		options->json |= strcmp(argv[i], "--json") == 0;
	return r;
}

void vt_options_done(struct vt_options *options)
{
	vt_policy_free(options->policy);
	options->policy = NULL;
}

int vt_options_find_command(const struct vt_options *options, struct vt_arena *arena,
			    struct vt_command *ret_command, struct vt_err *err)
{
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)))
		return vt_fail(err, VT_STEP_COMMAND, errno, "the working directory is gone");
	return vt_command_find(arena, options->command[0], getenv("PATH"), cwd, getenv("HOME"),
			       getenv("PYENV_VERSION"), ret_command, err);
}

static void help_line(struct vt_str *out, const char *flags, const char *sentence)
{
	if (strlen(flags) >= 26)
		vt_str_addf(out, "  %s\n  %-26s%s\n", flags, "", sentence);
	else
		vt_str_addf(out, "  %-26s%s\n", flags, sentence);
}

void vt_options_help(struct vt_str *out)
{
	char flags[80];

	for (size_t i = 0; i < COUNT(own_flags); i++) {
		const struct own *own = &own_flags[i];

		(void)snprintf(flags, sizeof(flags), "%s%s%s%s%s%s", own->letter ? own->letter : "",
			       own->letter ? ", " : "", own->name,
			       !own->argument  ? ""
			       : own->optional ? "[="
					       : " ",
			       own->argument ? own->argument : "", own->optional ? "]" : "");
		help_line(out, flags, own->sentence);
	}
	for (int i = 0; i < VT_FIELD_COUNT; i++) {
		const struct vt_field_info *info = vt_field_info((enum vt_field)i);

		(void)snprintf(flags, sizeof(flags), "%s %s%s", info->flag ? info->flag : "--set",
			       info->flag ? info->argument : info->key, info->flag ? "" : "=VALUE");
		help_line(out, flags, info->sentence);
	}
}
