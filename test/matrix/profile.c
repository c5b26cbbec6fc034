/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "matrix/within.h"

#if defined(__x86_64__)
static const char machine[] = "amd64";
static const uint32_t others[] = { SCMP_ARCH_X86, SCMP_ARCH_X32 };
#elif defined(__aarch64__)
static const char machine[] = "arm64";
static const uint32_t others[] = { SCMP_ARCH_ARM };
#endif

enum { MAX_ARGS = 6 };

static const struct {
	const char *name;
	enum scmp_compare op;
} compares[] = {
	{ "SCMP_CMP_NE", SCMP_CMP_NE },
	{ "SCMP_CMP_LT", SCMP_CMP_LT },
	{ "SCMP_CMP_LE", SCMP_CMP_LE },
	{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
	{ "SCMP_CMP_GE", SCMP_CMP_GE },
	{ "SCMP_CMP_GT", SCMP_CMP_GT },
	{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
};

static uint32_t action_of(const json_t *group, const char *key, const char *error_key)
{
	const char *name = json_string_value(json_object_get(group, key));
	const json_t *error = json_object_get(group, error_key);

	if (name && strcmp(name, "SCMP_ACT_ALLOW") == 0)
		return SCMP_ACT_ALLOW;
	if (name && strcmp(name, "SCMP_ACT_ERRNO") == 0)
		return SCMP_ACT_ERRNO(json_is_integer(error) ? json_integer_value(error) : EPERM);
	die(0, "the profile's action '%s' is not known", name ? name : "");
}

static bool names_machine(const json_t *condition)
{
	size_t i;
	json_t *item;

	json_array_foreach(json_object_get(condition, "arches"), i,
			   item) if (strcmp(json_string_value(item), machine) == 0) return true;
	return false;
}

/* How many of the capabilities that a condition names stay. */
static size_t count_caps(const json_t *condition, uint64_t caps)
{
	size_t i, count = 0;
	json_t *item;

	json_array_foreach(json_object_get(condition, "caps"), i, item)
	{
		cap_value_t cap;

		if (cap_from_name(json_string_value(item), &cap) == 0 && (caps & (1ULL << cap)))
			count++;
	}
	return count;
}

/* minKernel is always met: every kernel with Landlock is newer than what profiles ask for. */
static bool applies(const json_t *group, uint64_t caps)
{
	const json_t *includes = json_object_get(group, "includes");
	const json_t *excludes = json_object_get(group, "excludes");

	if (names_machine(excludes) || count_caps(excludes, caps) > 0)
		return false;
	if (json_array_size(json_object_get(includes, "arches")) && !names_machine(includes))
		return false;
	return count_caps(includes, caps) == json_array_size(json_object_get(includes, "caps"));
}

static size_t read_args(const json_t *group, struct scmp_arg_cmp *args)
{
	size_t i, count = 0;
	json_t *item;

	json_array_foreach(json_object_get(group, "args"), i, item)
	{
		const char *op = json_string_value(json_object_get(item, "op"));
		struct scmp_arg_cmp *arg = &args[count++];

		if (count > MAX_ARGS || op == NULL)
			die(0, "the profile has a strange argument");
		arg->arg = json_integer_value(json_object_get(item, "index"));
		arg->datum_a = json_integer_value(json_object_get(item, "value"));
		arg->datum_b = json_integer_value(json_object_get(item, "valueTwo"));
		arg->op = _SCMP_CMP_MIN;
		for (size_t j = 0; j < sizeof(compares) / sizeof(compares[0]); j++)
			if (strcmp(op, compares[j].name) == 0)
				arg->op = compares[j].op;
	}
	return count;
}

/* Returns the highest number of a call that the group names, if it is higher than newest. */
static int add_group(scmp_filter_ctx filter, const json_t *group, uint32_t usual, uint64_t caps,
		     int newest)
{
	uint32_t action = action_of(group, "action", "errnoRet");
	bool wanted = applies(group, caps) && action != usual;
	struct scmp_arg_cmp args[MAX_ARGS];
	size_t i, arg_count = read_args(group, args);
	json_t *item;

	json_array_foreach(json_object_get(group, "names"), i, item)
	{
		int call = seccomp_syscall_resolve_name(json_string_value(item));
		int r = call == __NR_SCMP_ERROR || !wanted
				? 0
				: seccomp_rule_add_array(filter, action, call, arg_count, args);

		if (r < 0)
			die(-r, "the profile's rule for %s", json_string_value(item));
		if (call > newest)
			newest = call;
	}
	return newest;
}

int install_profile(const struct environment *environment)
{
	json_error_t where;
	json_t *profile = json_load_file(environment->oci_profile, 0, &where), *group;
	size_t i;
	int r = 0, newest = 0;

	if (profile == NULL)
		die(0, "%s: %s", environment->oci_profile, where.text);
	uint32_t usual = action_of(profile, "defaultAction", "defaultErrnoRet");
	scmp_filter_ctx filter = seccomp_init(usual);

	if (filter == NULL)
		die(ENOMEM, "make a filter");
	for (i = 0; r == 0 && i < sizeof(others) / sizeof(others[0]); i++)
		r = seccomp_arch_add(filter, others[i]);
	if (r == 0 && geteuid() == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (r < 0)
		die(-r, "make a filter");
	json_array_foreach(json_object_get(profile, "syscalls"), i, group)
		newest = add_group(filter, group, usual, environment->caps, newest);
	r = seccomp_load(filter);
	if (r < 0)
		die(-r, "install the profile");
	seccomp_release(filter);
	json_decref(profile);
	return newest;
}
