/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests on invented machines: a table of paths is one, which a host has for its context, and
 * these are the questions about it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/plan.h"

struct invented {
	const char *path;
	mode_t      mode;  /* 0: a link that leads nowhere */
	uid_t       owner; /* of a link, the link's own */
	const char *link;  /* where it leads; NULL: it is none */
};

struct machine {
	const struct invented *paths;
	size_t                 count;
	/*
	 * While somebody changes it, as many questions are answered as it was, as many more as it
	 * is, and then as it was again. A path's inode is that of its place in the list.
	 */
	const struct invented *changed; /* as many of them; NULL: nobody does */
	unsigned               before, during, asked;
};

#define MACHINE(table) ((void *)&(struct machine){ table, sizeof(table) / sizeof((table)[0]) })

static inline const struct invented *paths_now(const struct vt_host *host)
{
	const struct machine *machine = host->context;
	bool changed = machine->changed && machine->asked > machine->before &&
		       machine->asked <= machine->before + machine->during;

	return changed ? machine->changed : machine->paths;
}

static inline void count_question(const struct vt_host *host)
{
	((struct machine *)host->context)->asked++;
}

static inline const struct invented *find(const struct vt_host *host, const char *path)
{
	const struct invented *paths = paths_now(host);

	for (size_t i = 0; i < ((const struct machine *)host->context)->count; i++)
		if (strcmp(paths[i].path, path) == 0)
			return &paths[i];
	return NULL;
}

/* Counted from 1. */
static inline uint64_t inode_of(const struct vt_host *host, const char *path)
{
	return (uint64_t)(find(host, path) - paths_now(host)) + 1;
}

static inline int look(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	count_question(host);
	const struct invented *found = find(host, path);

	if (!found || !found->mode)
		return -ENOENT;
	*ret_path = (struct vt_path){
		.mode = found->mode,
		.uid = found->owner,
		.gid = found->owner,
		.dev = 1,
		.ino = inode_of(host, path),
		.idmap = host->privileged,
		.link = found->link != NULL,
	};
	return 0;
}

/* What is not in the list is a folder where something in the list lies in it. */
static inline int step(const struct vt_host *host, const char *path, struct vt_path *ret_path,
		       char *target, size_t size)
{
	count_question(host);
	const struct invented *paths = paths_now(host), *found = find(host, path);
	int r = -ENOENT;

	for (size_t i = 0; i < ((const struct machine *)host->context)->count; i++) {
		const struct invented *other = &paths[i];

		if (other->link && other != found && vt_path_lies_in(path, other->path))
			return -ELOOP;
		if (other != found && vt_path_lies_in(other->path, path))
			r = 0;
	}
	*ret_path = (struct vt_path){ .mode = S_IFDIR | 0755, .dev = 1 };
	if (!found || !found->link)
		return found ? host->look(host, path, ret_path) : r;
	*ret_path = (struct vt_path){ .mode = S_IFLNK | 0777, .uid = found->owner, .link = true };
	(void)snprintf(target, size, "%s", found->link); /* fits */
	return 0;
}

/* What lies right in a folder. */
static inline int entries(const struct vt_host *host, const char *path, uint64_t dev,
			  void (*each)(void *arg, const char *name, unsigned char type), void *arg)
{
	const struct invented *paths = paths_now(host);
	size_t len = strlen(path);

	(void)dev;
	if (!find(host, path))
		return -ENOENT;
	for (size_t i = 0; i < ((const struct machine *)host->context)->count; i++) {
		const struct invented *one = &paths[i];

		if (strncmp(one->path, path, len) == 0 && one->path[len] == '/' &&
		    !strchr(one->path + len + 1, '/'))
			each(arg, one->path + len + 1,
			     one->link ? DT_LNK : S_ISDIR(one->mode) ? DT_DIR : DT_REG);
	}
	return 0;
}

/* Plans for a host what a policy says of files: "\"read\": [\"/srv\"]". */
static inline int plan_files(const struct vt_host *host, const char *files,
			     struct vt_plan **ret_plan, struct vt_err *err)
{
	static char *environment[] = { NULL };
	static char json[1 << 20];
	const struct vt_request request = { .environ = environment };
	struct vt_policy *policy;

	(void)snprintf(json, sizeof(json), "{\"files\": {%s}}", files); /* fits */
	assert_int_equal(vt_policy_new(&policy, err), 0);
	if (vt_policy_load_text(policy, json, strlen(json), "/", "p.json", err) < 0)
		fail_msg("%s", err->what);
	int r = vt_plan_make(policy, host, &request, ret_plan, err);

	vt_policy_free(policy);
	return r;
}
