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

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/plan.h"

struct invented {
	const char *path;
	mode_t      mode;  /* 0: a link that leads nowhere */
	uid_t       owner;
	const char *link;  /* where it leads; NULL: it is none */
};

struct machine {
	const struct invented *paths;
	size_t                 count;
};

#define MACHINE(table) ((void *)&(struct machine){ table, sizeof(table) / sizeof((table)[0]) })

static inline const struct invented *find(const struct vt_host *host, const char *path)
{
	const struct machine *machine = host->context;

	for (size_t i = 0; i < machine->count; i++)
		if (strcmp(machine->paths[i].path, path) == 0)
			return &machine->paths[i];
	return NULL;
}

/* Counted from 1. */
static inline uint64_t inode_of(const struct vt_host *host, const char *path)
{
	return (uint64_t)(find(host, path) - ((const struct machine *)host->context)->paths) + 1;
}

static inline int look(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
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

static inline int read_link(const struct vt_host *host, const char *path, char *buf, size_t size)
{
	const struct invented *found = find(host, path);

	if (!found || !found->link)
		return found ? -EINVAL : -ENOENT;
	(void)snprintf(buf, size, "%s", found->link); /* fits */
	return 0;
}

static inline int link_owner(const struct vt_host *host, const char *path, uid_t *ret_owner)
{
	const struct invented *found = find(host, path);

	if (!found)
		return -ENOENT;
	*ret_owner = found->owner;
	return 0;
}

/* Of a machine where no link is on the way. */
static inline int resolve_as_written(const struct vt_host *host, const char *path, char *buf,
				     size_t size)
{
	(void)host;
	(void)snprintf(buf, size, "%s", path); /* fits */
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
