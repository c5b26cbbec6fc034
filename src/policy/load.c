/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies by name: files, built-ins, and what they extend. A policy that is being loaded is a link
 * in the chain of those that lead to it, which is how a circle is seen and shown.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "policy/builtin.h"
#include "policy/parse.h"
#include "policy/paths.h"
#include "policy/value.h"

#define DEEPEST 16

struct link {
	const char *name;        /* as messages call it; a file's is what is opened */
	const char *real;        /* the file itself, by realpath(); NULL for text */
	const char *base_dir;    /* what its paths are relative to; may be NULL for text */
	const struct link *from; /* who extends it; NULL for the first */
	unsigned depth;
};

static int load_named(struct vt_policy *policy, const char *name, const struct link *from,
		      const char *by, struct vt_err *err);

/* "a.json -> b.json -> a.json", from the first link to the last, and on to name. */
static void show_chain(const struct link *last, const char *name, char *out, size_t size)
{
	const struct link *links[DEEPEST + 1];
	size_t count = 0, used = 0;

	for (const struct link *link = last; link && count <= DEEPEST; link = link->from)
		links[count++] = link;
	while (count && used < size)
		used += (size_t)snprintf(out + used, size - used, "%s -> ",
					 vt_show(links[--count]->name).text);
	if (used < size)
		(void)snprintf(out + used, size - used, "%s", vt_show(name).text); /* cut is fine */
}

static int check_chain(const struct link *link, struct vt_err *err)
{
	struct vt_source source = { link->from ? link->from->name : link->name, "extends", NULL };

	for (const struct link *at = link->from; at; at = at->from) {
		if (at->real && strcmp(at->real, link->real) == 0) {
			char chain[400];

			show_chain(link->from, link->name, chain, sizeof(chain));
			return vt_source_fail(err, &source, ELOOP, "goes round in a circle: %s",
					      chain);
		}
	}
	if (link->depth > DEEPEST)
		return vt_source_fail(err, &source, ELOOP,
				      "more than %d policies extend one another", DEEPEST);
	return 0;
}

/* A built-in's name as it is; a file relative to the folder of the policy that extends it. */
static int load_extended(struct vt_policy *policy, const char *extends, const struct link *link,
			 struct vt_err *err)
{
	struct vt_source source = { link->name, "extends", link->base_dir };
	char path[PATH_MAX];
	int len;

	if (vt_builtin_find(extends))
		return load_named(policy, extends, link, NULL, err);
	int status = vt_path_check(&source, extends, err);

	if (status < 0)
		return status;
	if (extends[0] == '/')
		return load_named(policy, extends, link, NULL, err);
	if (link->real) {
		/* The folder as it was given reads better in messages than where it really is. */
		const char *slash = strrchr(link->name, '/');

		len = snprintf(path, sizeof(path), "%.*s%s",
			       slash ? (int)(slash + 1 - link->name) : 0, link->name, extends);
	} else if (link->base_dir) {
		len = snprintf(path, sizeof(path), "%s/%s", link->base_dir, extends);
	} else {
		return vt_source_fail(
			err, &source, EINVAL,
			"'%s' is relative, and there is no folder it could be relative to",
			vt_show(extends).text);
	}
	if (len < 0 || (size_t)len >= sizeof(path))
		return vt_source_fail(err, &source, ENAMETOOLONG,
				      "the path is longer than %d bytes", PATH_MAX - 1);
	return load_named(policy, path, link, NULL, err);
}

/* Applies what root extends, and then root itself. */
static int load_root(struct vt_policy *policy, const json_t *root, const struct link *link,
		     struct vt_err *err)
{
	struct vt_source source = { link->name, "", link->base_dir };
	const char *extends;
	int status = vt_parse_check(policy, root, &extends, &source, err);
	struct vt_err later;

	/* With keys that are not known, values of others are told of as well. */
	if (status < 0 && policy->mistakes)
		(void)vt_parse_apply(policy, root, &source, &later);
	if (status == 0 && extends)
		status = load_extended(policy, extends, link, err);
	return status < 0 ? status : vt_parse_apply(policy, root, &source, err);
}

static bool is_blank(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && text[at] && strchr(" \t\r\n", text[at]))
		at++;
	return at == len;
}

static int load_text(struct vt_policy *policy, const char *text, size_t len,
		     const struct link *link, struct vt_err *err)
{
	AUTO_JSON json_t *root = NULL;

	if (is_blank(text, len)) {
		struct vt_source source = { link->name, "", NULL };

		return vt_source_fail(err, &source, EINVAL,
				      "it is empty; the policy of defaults is {}");
	}
	int status = vt_json_load_text(text, len, link->name, &root, err);

	return status < 0 ? status : load_root(policy, root, link, err);
}

static int load_file(struct vt_policy *policy, const struct link *link, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	int status = policy->plain_files ? vt_json_read_plain(link->name, &text, err)
					 : vt_json_read_file(link->name, &text, err);

	if (status == 0 && policy->texts) {
		vt_str_addf(policy->texts, "%s %zu\n", link->name, text.len);
		vt_str_addn(policy->texts, text.text, text.len);
	}
	if (status == 0)
		status = load_text(policy, text.text, text.len, link, err);
	vt_str_done(&text);
	return status;
}

/* The real place of a file and of its folder, from its name. Returns 0 or a negative errno. */
static int find_file(const char *name, char real[PATH_MAX], char folder[PATH_MAX])
{
	char part[PATH_MAX] = ".";
	const char *slash = strrchr(name, '/');

	if (strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	/* A pipe, as of `-p <(...)`, has no other name than the one it was given by. */
	if (!realpath(name, real)) {
		if (access(name, R_OK) < 0)
			return -errno;
		(void)snprintf(real, PATH_MAX, "%s", name); /* its length was looked at */
	}
	if (slash) {
		size_t len = slash == name ? 1 : (size_t)(slash - name);

		memcpy(part, name, len);
		part[len] = '\0';
	}
	return realpath(part, folder) ? 0 : -errno;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int fail_missing(const char *name, const struct vt_source *source, int num,
			struct vt_err *err)
{
	struct vt_shown shown = vt_show(name);
	const char *last = strrchr(name, '/');
	const char *closest = vt_builtin_closest(last ? last + 1
						      : name); /* packages give whole paths */

	if (strcmp(name, "-") == 0)
		return vt_source_fail(err, source, num,
				      "there is no file '-'; standard input is /dev/stdin");
	if (*name == '{')
		return vt_source_fail(err, source, num,
				      "JSON is to be in a file, and its name here; for what is "
				      "piped in: /dev/stdin");
	if (num == EISDIR)
		return vt_source_fail(err, source, num, "'%s' is a folder, not a file", shown.text);
	if (num == ENOENT || num == ENOTDIR)
		return vt_source_fail(
			err, source, num,
			"there is no file '%s', nor a built-in policy of that name (%s)%s%s%s",
			shown.text, vt_builtin_names(), closest ? "; did you mean " : "",
			closest ? closest : "", closest ? "?" : "");
	return vt_source_fail(err, source, num, "'%s': %s", shown.text, strerror(num));
}

/* By the name that it was given by: whoever can change a link on that way chooses the next policy.
 */
static int add_source(struct vt_policy *policy, const char *name, const struct vt_source *source,
		      struct vt_err *err)
{
	char folder[PATH_MAX];

	if (*name == '/')
		return vt_list_add_source(policy, name, source, err);
	if (!getcwd(folder, sizeof(folder)))
		return vt_source_fail(err, source, errno, "'%s': find where it is: %s",
				      vt_show(name).text, strerror(errno));
	const char *path = vt_arena_printf(policy->arena, "%s/%s", folder, name);

	return path ? vt_list_add_source(policy, path, source, err) : vt_source_nomem(err);
}

static int load_named(struct vt_policy *policy, const char *name, const struct link *from,
		      const char *by, struct vt_err *err)
{
	struct vt_source source = { from ? from->name : by, from ? "extends" : "", NULL };
	struct link link = { .name = name, .from = from, .depth = from ? from->depth + 1 : 0 };
	const char *builtin = vt_builtin_find(name);
	char real[PATH_MAX], folder[PATH_MAX];

	if (builtin)
		return load_text(policy, builtin, strlen(builtin), &link, err);
	int status = vt_path_check(&source, name, err);

	/* Also one that is not there: whoever waits for it is to know its name. */
	if (status == 0)
		status = add_source(policy, name, &source, err);
	if (status < 0)
		return status;
	status = find_file(name, real, folder);
	if (status == 0 && is_folder(real))
		status = -EISDIR;
	if (status < 0)
		return fail_missing(name, &source, -status, err);
	link.real = real;
	link.base_dir = folder;
	status = check_chain(&link, err);
	return status < 0 ? status : load_file(policy, &link, err);
}

int vt_policy_load(struct vt_policy *policy, const char *name, const char *by, struct vt_err *err)
{
	return load_named(policy, name, NULL, by, err);
}

int vt_policy_load_text(struct vt_policy *policy, const char *text, size_t len,
			const char *base_dir, const char *name, struct vt_err *err)
{
	struct link link = { .name = name, .base_dir = base_dir };

	return load_text(policy, text, len, &link, err);
}

int vt_policy_load_part(struct vt_policy *policy, const char *text, size_t len, const char *file,
			const char *name, struct vt_err *err)
{
	char real[PATH_MAX], folder[PATH_MAX];
	struct vt_source source = { name, "", NULL };
	struct link link = { .name = name, .base_dir = folder };
	int status = vt_path_check(&source, file, err);

	if (status == 0 && *file != '/')
		status = vt_source_fail(err, &source, EINVAL, "'%s' must be an absolute path",
					vt_show(file).text);
	if (status < 0)
		return status;
	status = find_file(file, real, folder);
	if (status < 0)
		return vt_source_fail(err, &source, -status, "'%s': %s", vt_show(file).text,
				      strerror(-status));
	status = add_source(policy, file, &source, err);
	return status < 0 ? status : load_text(policy, text, len, &link, err);
}
