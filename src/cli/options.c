/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/closest.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "plan/lookup.h"
#include "policy/fields.h"
#include "policy/units.h"

enum { DRAIN_MAX_MS = 10 * 60 * 1000 };

/* A flag as it stands on the command line. */
struct given {
	const char *text; /* as written, without its value: "--timeout" */
	int len;
	const char *value;   /* after '=', or NULL */
	struct vt_flag flag; /* whose name is NULL where nobody knows it */
};

static bool is_named(const struct given *given, const char *name)
{
	return name && strncmp(name, given->text, (size_t)given->len) == 0 &&
	       name[given->len] == '\0';
}

static struct given recognise(const char *verb, const char *text)
{
	const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
	struct given given = {
		.text = text,
		.len = (int)(equals ? (size_t)(equals - text) : strlen(text)),
		.value = equals ? equals + 1 : NULL,
	};
	struct vt_flag flag;

	for (size_t i = 0; vt_flag_at(verb, i, &flag); i++)
		if (is_named(&given, flag.name) || is_named(&given, flag.letter))
			given.flag = flag;
	return given;
}

/* The flag that begins with what was typed, of several the shortest; NULL: none, or too little was.
 */
static const char *begun_flag(const char *verb, const char *typed)
{
	enum { LEAST = 3 };
	const char *best = NULL;
	size_t len = strlen(typed);
	struct vt_flag flag;

	for (size_t i = 0; len >= LEAST && vt_flag_at(verb, i, &flag); i++)
		if (flag.name && strncmp(flag.name + strlen("--"), typed, len) == 0 &&
		    (!best || strlen(flag.name) < strlen(best)))
			best = flag.name;
	return best;
}

/* Says which flag was meant, or which key of those that have none. */
static int fail_unknown(const struct given *given, const char *verb, struct vt_err *err)
{
	char typed[VT_CLOSEST_LONGEST + 2]; /* cut: too long to be near to anything */
	size_t dashes = strspn(given->text, "-");
	struct vt_closest closest;
	struct vt_flag flag;

	(void)snprintf(typed, sizeof(typed), "%.*s", given->len - (int)dashes,
		       given->text + dashes);
	vt_closest_init(&closest, typed);
	for (size_t i = 0; vt_flag_at(verb, i, &flag); i++) {
		const char *key = flag.field < 0 ? NULL
						 : vt_field_info((enum vt_field)flag.field)->key;
		const char *dot = key ? strchr(key, '.') : NULL;

		if (flag.name)
			vt_closest_try(&closest, flag.name + strlen("--"), flag.name);
		if (key)
			vt_closest_try(&closest, dot ? dot + 1 : key, flag.name ? flag.name : key);
	}
	const char *begun = begun_flag(verb, typed);

	if (begun)
		closest.best =
			begun; /* who leaves off in a word means it, however much is missing */
	if (!closest.best)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s has no flag '%.*s'; see vitro %s --help", verb, given->len,
			       given->text, verb);
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s has no flag '%.*s'; did you mean %s%s%s?",
		       verb, given->len, given->text, *closest.best == '-' ? "" : "--set ",
		       closest.best, *closest.best == '-' ? "" : "=VALUE");
}

/* Finds the flag at argv[*at] and its value, which may be the next argument. */
static int next_flag(int argc, char **argv, int *at, struct given *ret_given, struct vt_err *err)
{
	struct given given = recognise(argv[0], argv[*at]);
	const struct vt_flag *flag = &given.flag;

	if (!flag->name)
		return fail_unknown(&given, argv[0], err);
	if (flag->argument && !flag->optional && !given.value) {
		if (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0)
			return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s needs a value: %s %s",
				       given.text, given.text, flag->argument);
		given.value = argv[++*at];
	}
	if (!flag->argument && given.value)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s takes no value", flag->name);
	*ret_given = given;
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

/* A key's name says its unit; a flag's does not, and 5 is not 5 ms to everybody. */
static int check_unit(const struct given *given, struct vt_err *err)
{
	const struct vt_flag *flag = &given->flag;
	bool time = strcmp(flag->argument, "TIME") == 0;

	if ((time || strcmp(flag->argument, "SIZE") == 0) && *given->value &&
	    strcmp(given->value, "0") != 0 &&
	    given->value[strspn(given->value, "0123456789.")] == '\0')
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s %s: which unit? write %s%s",
			       flag->name, given->value, given->value,
			       time ? "s for seconds (ms and m work too)"
				    : "M for megabytes (K and G work too)");
	return 0;
}

static int set_field(struct vt_options *options, const struct given *given, enum vt_field field,
		     const char *cwd, struct vt_err *err)
{
	int r = check_unit(given, err);

	return r < 0 ? r
		     : vt_policy_set(options->policy, vt_field_info(field)->key, given->value, cwd,
				     given->flag.name, err);
}

static int set_drain(struct vt_options *options, const struct given *given, struct vt_err *err)
{
	int64_t ms;
	int r = check_unit(given, err);

	if (r < 0)
		return r;
	if (vt_units_whole(VT_TYPE_MS, given->value, &ms) < 0 || ms > DRAIN_MAX_MS)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s %s: want a time from 0 to 10m, with its unit (%s)",
			       given->flag.name, given->value, vt_units_names(VT_TYPE_MS));
	options->serve.drain_ms = ms;
	return 0;
}

/* What a server has so many of. */
static int set_number(const struct given *given, int64_t least, int64_t most, int64_t *ret_value,
		      struct vt_err *err)
{
	char *end;

	errno = 0;
	long long value = strtoll(given->value, &end, 10);

	if (errno || !*given->value || *end || value < least || value > most)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s %s: want a number from %lld to %lld", given->flag.name,
			       given->value, (long long)least, (long long)most);
	*ret_value = value;
	return 0;
}

static int apply_serve(struct vt_options *options, const struct given *given, struct vt_err *err)
{
	int64_t number;
	int r = 0;

	switch (given->flag.own) {
	case VT_OWN_SOCKET:
		options->serve.socket = given->value;
		break;
	case VT_OWN_FD:
		r = set_number(given, 3, 1 << 20, &number, err);
		options->serve.fd = r < 0 ? -1 : (int)number;
		break;
	case VT_OWN_CLIENTS:
		return set_number(given, 1, 65536, &options->serve.clients, err);
	case VT_OWN_CELLS:
		return set_number(given, 1, 65536, &options->serve.cells, err);
	case VT_OWN_METRICS:
		options->serve.metrics = given->value;
		break;
	case VT_OWN_TOOLS:
		options->serve.tools = given->value;
		break;
	case VT_OWN_DRAIN:
		return set_drain(options, given, err);
	default:
		break;
	}
	return r;
}

static int apply_own(struct vt_options *options, const struct given *given, const char *cwd,
		     struct vt_err *err)
{
	switch (given->flag.own) {
	case VT_OWN_POLICY:
		return 0; /* loaded before all other flags */
	case VT_OWN_SET:
		return set_any(options->policy, given->value, cwd, err);
	case VT_OWN_JSON:
		options->json = true;
		options->json_file = given->value;
		if (given->value && !*given->value)
			return vt_fail(err, VT_STEP_POLICY, EINVAL, "--json= needs a file's name");
		return 0;
	case VT_OWN_SELF_TEST:
		options->self_test = true;
		return 0;
	case VT_OWN_REPORT:
		options->json = true;
		return 0;
	case VT_OWN_AUDIT:
		options->audit_file = given->value;
		return 0;
	case VT_OWN_EXPECT:
		options->expect = given->value;
		return 0;
	case VT_OWN_RAW:
		options->raw = true;
		return 0;
	case VT_OWN_QUERY:
		options->query = given->value;
		return 0;
	case VT_OWN_LANG:
		options->lang = given->value;
		return 0;
	case VT_OWN_TIMEOUT:
		return set_field(options, given, VT_FIELD_LIMITS_WALL_MS, cwd, err);
	case VT_OWN_HELP:
		options->help = true;
		return 0;
	default:
		return apply_serve(options, given, err);
	}
}

static int apply(struct vt_options *options, const struct given *given, const char *cwd,
		 struct vt_err *err)
{
	if (given->flag.own)
		return apply_own(options, given, cwd, err);
	return set_field(options, given, (enum vt_field)given->flag.field, cwd, err);
}

/* A variable that is to be passed on and is not there is no failure, but rarely meant. */
static void note_unset(const struct given *given)
{
	char message[256];

	if (given->flag.own || given->flag.field != VT_FIELD_ENV_SET || strchr(given->value, '=') ||
	    strcmp(given->value, "*") == 0 || getenv(given->value))
		return;
	(void)snprintf(message, sizeof(message),
		       "note: --env %s: no such variable is set here, so the command does not get "
		       "it",
		       given->value); /* cut: a long name */
	vt_cli_complain(message);
}

/* Of several mistakes in a policy the last one is the error; those before it are told here. */
static int load_policy(struct vt_policy *policy, const char *name, struct vt_err *err)
{
	struct vt_str mistakes;

	vt_str_init(&mistakes);
	policy->mistakes = &mistakes;
	int r = vt_policy_load(policy, name, "--policy", err);

	policy->mistakes = NULL;
	if (r < 0 && mistakes.len) {
		mistakes.text[mistakes.len - 1] = '\0'; /* the end of its last line */
		char *last = strrchr(mistakes.text, '\n');

		if (last) {
			*last = '\0';
			vt_cli_complain_lines(mistakes.text);
			r = vt_fail(err, VT_STEP_POLICY, EINVAL, "%s", last + 1);
		}
	}
	vt_str_done(&mistakes);
	return r;
}

/* Policies come before all other flags, wherever they stand; and notes when all is well. */
enum round { ROUND_POLICIES, ROUND_FLAGS, ROUND_NOTES };

static int take(struct vt_options *options, const struct given *given, enum round round,
		const char *cwd, struct vt_err *err)
{
	bool is_policy = given->flag.own == VT_OWN_POLICY;

	if (round == ROUND_NOTES) {
		note_unset(given);
	} else if (round == ROUND_POLICIES && is_policy) {
		options->policy_name = given->value;
		return load_policy(options->policy, given->value, err);
	} else if (round == ROUND_FLAGS && !is_policy) {
		return apply(options, given, cwd, err);
	}
	return 0;
}

/* Takes each flag up to the command. */
static int walk(struct vt_options *options, int argc, char **argv, enum round round,
		const char *cwd, struct vt_err *err)
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
		struct given given = { 0 };

		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		int r = next_flag(argc, argv, &at, &given, err);

		if (r == 0)
			r = take(options, &given, round, cwd, err);
		if (r < 0)
			return r;
	}
	options->command = argv + at;
	options->json_last = at > 1 && strcmp(argv[at - 1], "--json") == 0;
	return 0;
}

/* Puts the flags first, each with its value, and leaves the order of all else. */
static int arrange(struct vt_options *options, int argc, char **argv, struct vt_err *err)
{
	char **flags = calloc(2 * (size_t)argc + 2, sizeof(*flags)), **others;
	size_t flag_count = 0, other_count = 0;
	bool over = false;

	if (!flags)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the flags");
	options->arranged = flags;
	others = flags + argc + 1;
	flags[flag_count++] = argv[0];
	for (int at = 1; at < argc; at++) {
		struct given given;
		int first = at;

		if (over || argv[at][0] != '-' || !argv[at][1]) {
			others[other_count++] = argv[at];
			continue;
		}
		over = strcmp(argv[at], "--") == 0;
		int r = over ? 0 : next_flag(argc, argv, &at, &given, err);

		if (r < 0)
			return r;
		for (; !over && first <= at; first++)
			flags[flag_count++] = argv[first];
	}
	/* They are one array, and there is room: all together are argc. */
	memmove(flags + flag_count, others, other_count * sizeof(*flags));
	flags[flag_count + other_count] = NULL;
	return (int)(flag_count + other_count);
}

int vt_options_parse(struct vt_options *options, int argc, char **argv, struct vt_err *err)
{
	char buffer[PATH_MAX];
	/* A folder that was deleted is no reason to fail where no relative path is given. */
	const char *cwd = getcwd(buffer, sizeof(buffer));

	*options = (struct vt_options){
		.policy_name = "default",
		.command = argv + argc,
		.serve = { .fd = -1, .clients = 512, .cells = 256, .drain_ms = 30000 },
	};
	int r = vt_policy_new(&options->policy, err);

	if (r == 0 && vt_flag_may_follow(argv[0])) {
		r = arrange(options, argc, argv, err);
		argc = r < 0 ? argc : r;
		argv = r < 0 ? argv : options->arranged;
		r = r < 0 ? r : 0;
	}
	if (r == 0)
		r = walk(options, argc, argv, ROUND_POLICIES, cwd, err);
	if (r == 0)
		r = walk(options, argc, argv, ROUND_FLAGS, cwd, err);
	if (r == 0 && !options->help)
		r = walk(options, argc, argv, ROUND_NOTES, cwd, err);
	/* Whoever asked for JSON gets the refusal as JSON too, wherever the flag stands. */
	for (int i = 1; r < 0 && i < argc && strcmp(argv[i], "--") != 0; i++)
		options->json |= strcmp(argv[i], "--json") == 0;
	return r;
}

void vt_options_done(struct vt_options *options)
{
	vt_policy_free(options->policy);
	options->policy = NULL;
	free(options->arranged);
	options->arranged = NULL;
}

int vt_options_find_command(const struct vt_options *options, struct vt_arena *arena,
			    struct vt_command *ret_command, struct vt_err *err)
{
	int r = vt_lookup_command(arena, options->command[0], options->policy, ret_command, err);

	/* `--json x.json`: the flag's value is optional, and so never the next word. */
	if (r < 0 && options->json_last && strchr(options->command[0], '.')) {
		const struct vt_err failed = *err;

		r = vt_fail(err, failed.step, failed.num,
			    "%s; to write the result to a file: --json=%s", failed.what,
			    options->command[0]);
	}
	return r;
}
