/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/oci.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "policy/source.h"
#include "policy/value.h"

/* Room for "syscalls[1023].includes.arches[1023]". */
#define KEY_SIZE 64

/* Where in the file a value is: a member of an object, or an element of a list. */
struct at {
	const struct at *up;
	const char *member; /* NULL: an element */
	size_t index;
};

#define MEMBER(where, name)   (&(const struct at){ where, name, 0 })
#define ELEMENT(where, which) (&(const struct at){ where, NULL, which })

static void show_at(const struct at *at, char buf[KEY_SIZE])
{
	size_t used;

	if (!at) {
		buf[0] = '\0';
		return;
	}
	show_at(at->up, buf);
	used = strlen(buf);
	/* Keys are short; one that is not is cut. */
	if (at->member)
		(void)snprintf(buf + used, KEY_SIZE - used, "%s%s", used ? "." : "", at->member);
	else
		(void)snprintf(buf + used, KEY_SIZE - used, "[%zu]", at->index);
}

/* More than any profile has; a bound on what compiling costs. */
enum { RULES_MOST = 1024, NAMES_MOST = 4096, LIST_MOST = 1024, NAME_LONGEST = 64 };

struct reading {
	struct vt_arena *arena;
	const char *name; /* of the file */
	size_t names;     /* of calls, in all rules so far */
};

__attribute__((format(printf, 5, 6))) static int fail(const struct reading *r, struct vt_err *err,
						      const struct at *at, int num, const char *fmt,
						      ...)
{
	char what[320], key[KEY_SIZE];
	const struct vt_source source = { r->name, key, NULL };
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* cut is fine */
	va_end(args);
	show_at(at, key);
	return vt_source_fail(err, &source, num, "%s", what);
}

static int wrong(const struct reading *r, const json_t *value, const struct at *at,
		 const char *want, struct vt_err *err)
{
	char key[KEY_SIZE];
	const struct vt_source source = { r->name, key, NULL };

	show_at(at, key);
	return vt_value_wrong(value, want, &source, err);
}

/* Go writes null for what is not there. */
static const json_t *member_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_null(value) ? NULL : value;
}

/* Checks that value is an object of these keys alone; known ends with NULL. */
static int check_keys(const struct reading *r, const json_t *value, const struct at *at,
		      const char *const *known, struct vt_err *err)
{
	const char *name;
	json_t *unused;

	if (!json_is_object(value))
		return wrong(r, value, at, "an object", err);
	json_object_foreach((json_t *)value, name, unused)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], name) != 0)
			i++;
		if (!known[i])
			return fail(r, err, at, EINVAL, "unknown key '%s'", vt_show(name).text);
	}
	return 0;
}

/* ---- single values ------------------------------------------------------------------------- */

struct word {
	const char *text;
	int value;
};

static int find_word(const struct word *words, const char *text)
{
	for (; words->text; words++)
		if (strcmp(words->text, text) == 0)
			return words->value;
	return -ENOENT;
}

/* What the word stands for, which is never negative. */
static int read_word(const struct reading *r, const json_t *value, const struct at *at,
		     const struct word *words, const char *want, struct vt_err *err)
{
	int found;

	if (!json_is_string(value))
		return wrong(r, value, at, want, err);
	found = find_word(words, json_string_value(value));
	return found >= 0 ? found
			  : fail(r, err, at, EINVAL, "'%s' is not known, want %s",
				 vt_show(json_string_value(value)).text, want);
}

/* jansson has only numbers below 2^63, which no argument of a profile has needed to be. */
static int read_number(const struct reading *r, const json_t *value, const struct at *at,
		       uint64_t most, uint64_t *ret_number, struct vt_err *err)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > most) {
		char want[64];

		(void)snprintf(want, sizeof(want), "a whole number from 0 to %llu",
			       (unsigned long long)most); /* fits */
		return wrong(r, value, at, want, err);
	}
	*ret_number = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_strings(const struct reading *r, const json_t *value, const struct at *at,
			const char *const **ret_strings, size_t *ret_count, struct vt_err *err)
{
	size_t count = json_array_size(value);
	const char **strings;

	if (!json_is_array(value))
		return wrong(r, value, at, "a list of strings", err);
	if (count > LIST_MOST)
		return fail(r, err, at, E2BIG, "more than %d entries", LIST_MOST);
	strings = vt_arena_array(r->arena, count + 1, sizeof(*strings));
	for (size_t i = 0; strings && i < count; i++) {
		const json_t *item = json_array_get(value, i);

		if (!json_is_string(item))
			return wrong(r, item, ELEMENT(at, i), "a string", err);
		strings[i] = vt_arena_dup(r->arena, json_string_value(item));
		if (!strings[i])
			return vt_source_nomem(err);
	}
	if (!strings)
		return vt_source_nomem(err);
	*ret_strings = strings;
	*ret_count = count;
	return 0;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

/* These need a program that answers for the cell, and a cell has none. */
enum { NEEDS_LISTENER = 100 };

static const struct word actions[] = {
	{ "SCMP_ACT_ALLOW", VT_OCI_ALLOW },
	{ "SCMP_ACT_LOG", VT_OCI_LOG },
	{ "SCMP_ACT_ERRNO", VT_OCI_ERRNO },
	{ "SCMP_ACT_TRAP", VT_OCI_TRAP },
	{ "SCMP_ACT_KILL", VT_OCI_KILL_THREAD },
	{ "SCMP_ACT_KILL_THREAD", VT_OCI_KILL_THREAD },
	{ "SCMP_ACT_KILL_PROCESS", VT_OCI_KILL_PROCESS },
	{ "SCMP_ACT_TRACE", NEEDS_LISTENER },
	{ "SCMP_ACT_NOTIFY", NEEDS_LISTENER },
	{ NULL, 0 },
};

static int read_errno_name(const struct reading *r, const json_t *value, const struct at *at,
			   unsigned *ret_num, struct vt_err *err)
{
	const char *text = json_string_value(value);

	if (!text)
		return wrong(r, value, at, "the name of an errno, such as \"EPERM\"", err);
	for (int num = 1; num < 256; num++) {
		const char *name = strerrorname_np(num);

		if (name && strcmp(name, text) == 0) {
			*ret_num = (unsigned)num;
			return 0;
		}
	}
	return fail(r, err, at, EINVAL, "'%s' is no errno", vt_show(text).text);
}

/* The errno as a number or, as Podman has it, by name; a name is the stronger of the two. */
static int read_errno(const struct reading *r, const json_t *object, const struct at *at,
		      const char *number_name, const char *name_name,
		      struct vt_oci_verdict *verdict, struct vt_err *err)
{
	const json_t *number = member_of(object, number_name), *name = member_of(object, name_name);
	uint64_t num;
	int status;

	verdict->num = EPERM;
	if (verdict->action != VT_OCI_ERRNO && (number || name))
		return fail(r, err, MEMBER(at, number ? number_name : name_name), EINVAL,
			    "only SCMP_ACT_ERRNO has an errno");
	if (number) {
		status = read_number(r, number, MEMBER(at, number_name), 4095, &num, err);
		if (status < 0)
			return status;
		verdict->num = (unsigned)num;
	}
	if (name)
		return read_errno_name(r, name, MEMBER(at, name_name), &verdict->num, err);
	return 0;
}

static int read_action(const struct reading *r, const json_t *object, const struct at *at,
		       const char *name, struct vt_oci_verdict *verdict, struct vt_err *err)
{
	const json_t *value = member_of(object, name);
	const struct at *own = MEMBER(at, name);
	int action;

	if (!value)
		return fail(r, err, own, EINVAL, "is missing");
	action = read_word(r, value, own, actions,
			   "an action such as \"SCMP_ACT_ALLOW\" or \"SCMP_ACT_ERRNO\"", err);
	if (action < 0)
		return action;
	if (action == NEEDS_LISTENER)
		return fail(r, err, own, ENOTSUP,
			    "%s needs a program outside that answers for the cell, which vitro "
			    "does not have",
			    json_string_value(value));
	verdict->action = (enum vt_oci_action)action;
	return 0;
}

/* ---- rules --------------------------------------------------------------------------------- */

static const struct word ops[] = {
	{ "SCMP_CMP_NE", VT_OCI_NE },
	{ "SCMP_CMP_LT", VT_OCI_LT },
	{ "SCMP_CMP_LE", VT_OCI_LE },
	{ "SCMP_CMP_EQ", VT_OCI_EQ },
	{ "SCMP_CMP_GE", VT_OCI_GE },
	{ "SCMP_CMP_GT", VT_OCI_GT },
	{ "SCMP_CMP_MASKED_EQ", VT_OCI_MASKED_EQ },
	{ NULL, 0 },
};

static int read_arg(const struct reading *r, const json_t *value, const struct at *at,
		    struct vt_oci_arg *ret_arg, struct vt_err *err)
{
	static const char *const known[] = { "index", "value", "valueTwo", "op", NULL };
	struct vt_oci_arg arg = { 0 };
	uint64_t index = 0;
	const json_t *member;
	int status = check_keys(r, value, at, known, err);

	if (status < 0)
		return status;
	for (size_t i = 0; known[i]; i++) {
		member = member_of(value, known[i]);
		/* A comparison says with what, and only one of them has two values. */
		if (!member && i != 2)
			return fail(r, err, MEMBER(at, known[i]), EINVAL, "is missing");
	}
	status = read_number(r, member_of(value, "index"), MEMBER(at, "index"), 5, &index, err);
	if (status == 0)
		status = read_number(r, member_of(value, "value"), MEMBER(at, "value"), INT64_MAX,
				     &arg.value, err);
	member = member_of(value, "valueTwo");
	if (status == 0 && member)
		status = read_number(r, member, MEMBER(at, "valueTwo"), INT64_MAX, &arg.value_two,
				     err);
	if (status == 0)
		status = read_word(r, member_of(value, "op"), MEMBER(at, "op"), ops,
				   "a comparison such as \"SCMP_CMP_EQ\"", err);
	if (status < 0)
		return status;
	arg.index = (unsigned)index;
	arg.op = (enum vt_oci_op)status;
	*ret_arg = arg;
	return 0;
}

static int read_args(const struct reading *r, const json_t *value, const struct at *at,
		     struct vt_oci_rule *rule, struct vt_err *err)
{
	size_t count = json_array_size(value);
	struct vt_oci_arg *args;

	if (!json_is_array(value))
		return wrong(r, value, at, "a list of conditions", err);
	if (count > VT_OCI_ARGS)
		return fail(r, err, at, E2BIG, "more than %d conditions", VT_OCI_ARGS);
	args = vt_arena_array(r->arena, count + 1, sizeof(*args));
	if (!args)
		return vt_source_nomem(err);
	for (size_t i = 0; i < count; i++) {
		int status = read_arg(r, json_array_get(value, i), ELEMENT(at, i), &args[i], err);

		if (status < 0)
			return status;
	}
	rule->args = args;
	rule->arg_count = count;
	return 0;
}

static int read_kernel(const struct reading *r, const json_t *value, const struct at *at,
		       struct vt_oci_when *when, struct vt_err *err)
{
	const char *text = json_string_value(value);
	int end = 0;

	if (!text || !isdigit((unsigned char)*text) ||
	    sscanf(text, "%4u.%4u%n", &when->major, &when->minor, &end) != 2 || text[end])
		return wrong(r, value, at, "a version of Linux such as \"4.8\"", err);
	when->kernel = true;
	return 0;
}

static int read_when(const struct reading *r, const json_t *rule, const struct at *at,
		     const char *name, struct vt_oci_when *when, struct vt_err *err)
{
	static const char *const known[] = { "caps", "arches", "minKernel", NULL };
	const json_t *value = member_of(rule, name), *caps, *arches, *kernel;
	const struct at *own = MEMBER(at, name);
	const char *const *names;
	size_t count = 0;
	int status;

	if (!value)
		return 0;
	status = check_keys(r, value, own, known, err);
	if (status < 0)
		return status;
	caps = member_of(value, "caps");
	arches = member_of(value, "arches");
	kernel = member_of(value, "minKernel");
	if (caps)
		status = read_strings(r, caps, MEMBER(own, "caps"), &names, &count, err);
	when->caps = count > 0;
	if (status == 0 && arches)
		status = read_strings(r, arches, MEMBER(own, "arches"), &when->arches,
				      &when->arch_count, err);
	if (status == 0 && kernel)
		status = read_kernel(r, kernel, MEMBER(own, "minKernel"), when, err);
	return status;
}

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return len > 0 && len <= NAME_LONGEST;
}

/* "names", or "name" of the first such profiles, for one. */
static int read_names(struct reading *r, const json_t *value, const struct at *at,
		      struct vt_oci_rule *rule, struct vt_err *err)
{
	const json_t *names = member_of(value, "names"), *name = member_of(value, "name");
	const struct at *own = MEMBER(at, name ? "name" : "names");
	AUTO_JSON json_t *one = NULL;
	int status;

	/* Go writes "" beside a list. */
	if (name && json_is_string(name) && !*json_string_value(name))
		name = NULL;
	if (!names == !name)
		return fail(r, err, at, EINVAL, "has %s, want \"names\"",
			    names ? "both \"name\" and \"names\"" : "no \"names\"");
	if (name) {
		one = json_pack("[O]", name);
		if (!one)
			return vt_source_nomem(err);
	}
	status = read_strings(r, one ? one : names, own, &rule->names, &rule->name_count, err);
	if (status < 0)
		return status;
	for (size_t i = 0; i < rule->name_count; i++)
		if (!is_name(rule->names[i]))
			return fail(r, err, own, EINVAL, "'%s' cannot be the name of a call",
				    vt_show(rule->names[i]).text);
	r->names += rule->name_count;
	if (r->names > NAMES_MOST)
		return fail(r, err, own, E2BIG, "more than %d names in all", NAMES_MOST);
	return 0;
}

static int read_rule(struct reading *r, const json_t *value, const struct at *at,
		     struct vt_oci_rule *rule, struct vt_err *err)
{
	static const char *const known[] = { "name", "names",    "action",   "errnoRet", "errno",
					     "args", "includes", "excludes", "comment",  NULL };
	int status = check_keys(r, value, at, known, err);
	const json_t *args = member_of(value, "args");

	if (status == 0)
		status = read_names(r, value, at, rule, err);
	if (status == 0)
		status = read_action(r, value, at, "action", &rule->verdict, err);
	if (status == 0)
		status = read_errno(r, value, at, "errnoRet", "errno", &rule->verdict, err);
	if (status == 0 && args)
		status = read_args(r, args, MEMBER(at, "args"), rule, err);
	if (status == 0)
		status = read_when(r, value, at, "includes", &rule->includes, err);
	if (status == 0)
		status = read_when(r, value, at, "excludes", &rule->excludes, err);
	return status;
}

static int read_rules(struct reading *r, const json_t *value, struct vt_oci_profile *profile,
		      struct vt_err *err)
{
	const struct at *at = MEMBER(NULL, "syscalls");
	size_t count = json_array_size(value);
	struct vt_oci_rule *rules;

	if (!json_is_array(value))
		return wrong(r, value, at, "a list of rules", err);
	if (count > RULES_MOST)
		return fail(r, err, at, E2BIG, "more than %d rules", RULES_MOST);
	rules = vt_arena_array(r->arena, count + 1, sizeof(*rules));
	if (!rules)
		return vt_source_nomem(err);
	for (size_t i = 0; i < count; i++) {
		int status = read_rule(r, json_array_get(value, i), ELEMENT(at, i), &rules[i], err);

		if (status < 0)
			return status;
	}
	profile->rules = rules;
	profile->rule_count = count;
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/*
 * How the filter is installed is vitro's business: no thread is there yet to be synchronised, and
 * mitigations stay on. Of machines there is one, since vitro kills calls of all others.
 */
static int check_rest(const struct reading *r, const json_t *root, struct vt_err *err)
{
	static const struct word flags[] = {
		{ "SECCOMP_FILTER_FLAG_TSYNC", 0 },
		{ "SECCOMP_FILTER_FLAG_LOG", 0 },
		{ "SECCOMP_FILTER_FLAG_SPEC_ALLOW", 0 },
		{ "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 0 },
		{ NULL, 0 },
	};
	const json_t *listener = member_of(root, "listenerPath");
	const json_t *arches = member_of(root, "architectures");
	const json_t *list = member_of(root, "flags"), *map = member_of(root, "archMap");
	const char *const *texts;
	size_t count = 0;
	int status = 0;

	if (listener && (!json_is_string(listener) || *json_string_value(listener)))
		return fail(r, err, MEMBER(NULL, "listenerPath"), ENOTSUP,
			    "vitro has no listener for calls of a cell");
	if (arches)
		status = read_strings(r, arches, MEMBER(NULL, "architectures"), &texts, &count,
				      err);
	if (status < 0)
		return status;
	for (size_t i = 0; i < count; i++)
		if (strncmp(texts[i], "SCMP_ARCH_", 10) != 0)
			return fail(r, err, MEMBER(NULL, "architectures"), EINVAL,
				    "'%s' is not known, want a machine such as "
				    "\"SCMP_ARCH_X86_64\"",
				    vt_show(texts[i]).text);
	if (map && !json_is_array(map))
		return wrong(r, map, MEMBER(NULL, "archMap"), "a list", err);
	count = 0;
	if (list)
		status = read_strings(r, list, MEMBER(NULL, "flags"), &texts, &count, err);
	for (size_t i = 0; status == 0 && i < count; i++)
		if (find_word(flags, texts[i]) < 0)
			status = fail(r, err, MEMBER(NULL, "flags"), EINVAL, "'%s' is not known",
				      vt_show(texts[i]).text);
	return status;
}

int vt_oci_parse(struct vt_arena *arena, const json_t *root, const char *name,
		 const struct vt_oci_profile **ret_profile, struct vt_err *err)
{
	static const char *const known[] = { "defaultAction", "defaultErrnoRet",  "defaultErrno",
					     "architectures", "archMap",          "flags",
					     "listenerPath",  "listenerMetadata", "syscalls",
					     "$schema",       "comment",          NULL };
	struct vt_oci_profile *profile = vt_arena_alloc(arena, sizeof(*profile));
	struct reading r = { arena, name, 0 };
	const json_t *rules;
	int status;

	if (!profile)
		return vt_source_nomem(err);
	status = check_keys(&r, root, NULL, known, err);
	if (status == 0)
		status = read_action(&r, root, NULL, "defaultAction", &profile->fallback, err);
	if (status == 0)
		status = read_errno(&r, root, NULL, "defaultErrnoRet", "defaultErrno",
				    &profile->fallback, err);
	if (status == 0)
		status = check_rest(&r, root, err);
	rules = status == 0 ? member_of(root, "syscalls") : NULL;
	if (rules)
		status = read_rules(&r, rules, profile, err);
	if (status < 0)
		return status;
	profile->path = vt_arena_dup(arena, vt_show(name).text);
	if (!profile->path)
		return vt_source_nomem(err);
	*ret_profile = profile;
	return 0;
}

int vt_oci_load(struct vt_arena *arena, const char *path, bool plain,
		const struct vt_oci_profile **ret_profile, struct vt_err *err)
{
	AUTO_JSON json_t *root = NULL;
	int status = plain ? vt_json_load_plain(path, &root, err)
			   : vt_json_load_file(path, &root, err);

	return status < 0 ? status : vt_oci_parse(arena, root, path, ret_profile, err);
}
