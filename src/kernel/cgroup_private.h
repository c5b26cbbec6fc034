/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cgroup facade and its two back ends share. The folders and texts that come from the
 * kernel are arguments here, so that the tests can give invented ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/cgroup.h"

#define VT_CGROUP_SUPERVISOR "vitro-supervisor"
#define VT_CGROUP_TOP        "vitro"

enum { VT_CGROUP_PERIOD_US = 100000, VT_CGROUP_TEXT_MAX = 4096 };

/* Controllers, as a set. */
enum { VT_CGROUP_MEMORY = 1 << 0, VT_CGROUP_PIDS = 1 << 1, VT_CGROUP_CPU = 1 << 2 };

/* "FOLDER/NAME" into buf of PATH_MAX; an empty name or "/" adds nothing. -ENAMETOOLONG. */
int vt_cgroup_path(char buf[PATH_MAX], const char *folder, const char *name);

/* The number that a file begins with. -ENODATA where there is none. */
int vt_cgroup_get_number(int dir, const char *name, int64_t *ret_number);
/* The number on the line "KEY NUMBER". -ENODATA where there is none. */
int vt_cgroup_get_keyed(int dir, const char *name, const char *key, int64_t *ret_number);
/* Writes text to an existing file in one write: 0 or -errno. */
int vt_cgroup_put(int dir, const char *name, const char *text);
int vt_cgroup_put_number(int dir, const char *name, int64_t number);

/* Whether a list contains word; sep parts the words, and a newline ends the list. */
bool vt_cgroup_has_word(const char *list, char sep, const char *word);

/*
 * The caller's place in the hierarchy of a controller, or of v2 if controller is "": the list of
 * the hierarchy's controllers, and the path, from the text of /proc/self/cgroup. False if there is
 * none, or if the path cannot be followed from a mount's root.
 */
bool vt_cgroup_own(const char *text, const char *controller, char ret_list[NAME_MAX + 1],
		   char ret_path[PATH_MAX]);

/* Sets site->why, cut to what fits. */
void vt_cgroup_say(struct vt_cgroup_site *site, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Remembers an errno that says nothing about the machine, if there is a site to remember it. Gives
 * it.
 */
int vt_cgroup_noted(struct vt_cgroup_site *site, int num);

/* No folder, no version, no reason. */
void vt_cgroup_site_init(struct vt_cgroup_site *site);

/* Fails for a file of the cgroup at path. */
int vt_cgroup_fail(struct vt_err *err, int num, const char *act, const char *file,
		   const char *path);

/*
 * Makes a folder in `folder`, opens and locks it, and opens its file join if that is not NULL.
 * Returns its index in cgroup->dirs or -errno.
 */
int vt_cgroup_add(struct vt_cgroup *cgroup, const char *folder, const char *join,
		  struct vt_err *err);

/* vt_cgroup_find() for a mount point and the text of /proc/self/cgroup. */
void vt_cgroup_find_at(const char *mount, const char *text, struct vt_cgroup_site *ret_site);

/* Each fills in what is usable of its version, and else says why. */
void vt_cgroup_v1_find(const char *mount, const char *text, struct vt_cgroup_site *site);
void vt_cgroup_v2_find(const char *mount, const char *text, struct vt_cgroup_site *site);

/* Each adds to an empty cgroup; on failure what is in it is the caller's to remove. */
int vt_cgroup_v1_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		      struct vt_cgroup *cgroup, struct vt_err *err);
int vt_cgroup_v2_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		      struct vt_cgroup *cgroup, struct vt_err *err);

int vt_cgroup_v1_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *usage,
		      struct vt_err *err);
int vt_cgroup_v2_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *usage,
		      struct vt_err *err);

/* Sees to it that children of the folder get these controllers. */
int vt_cgroup_v2_prepare(const char *folder, unsigned set, struct vt_err *err);
/* Moves the caller into the child "vitro-supervisor", if nobody else is here. 0 or -errno. */
int vt_cgroup_v2_step_aside(int dir);
/* Writes the limits into the files of a cgroup. */
int vt_cgroup_v2_limit(int dir, const char *path, const struct vt_cgroup_limits *limits,
		       struct vt_err *err);
