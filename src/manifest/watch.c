/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"

#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO)
#define GONE    (IN_DELETE | IN_MOVED_FROM)
#define FOLDER  (IN_DELETE_SELF | IN_MOVE_SELF)
#define NOTED   (WRITTEN | GONE | IN_CREATE | FOLDER | IN_ONLYDIR)

struct vt_manifest_watch {
	char *path; /* absolute, as it was named */
	vt_manifest_changed *changed;
	void *user;
	int fd;
	int wd;        /* of the folder that it is named in */
	int target_wd; /* of the folder that a link leads to; wd where it is none, or -1 */
	char name[NAME_MAX + 1];
	char target[NAME_MAX + 1]; /* the file's own name */
	dev_t dev;                 /* which file it was when it was last looked at; 0, 0: none */
	ino_t ino;
};

/* What events come to. */
enum finding { NOTHING, LOOK, READ };

/* Copies "a/b/NAME" in two. False: it is too long, or has no name. */
static bool cut(const char *path, char folder[PATH_MAX], char name[NAME_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	if (!slash || !slash[1] || strlen(slash + 1) > NAME_MAX || len >= PATH_MAX)
		return false;
	(void)snprintf(folder, PATH_MAX, "%.*s", len ? (int)len : 1, path); /* fits */
	(void)snprintf(name, NAME_MAX + 1, "%s", slash + 1);                /* fits */
	return true;
}

/* Which file it is now, and where its own folder is. What is not there has none. */
static void look(struct vt_manifest_watch *watch)
{
	char real[PATH_MAX], folder[PATH_MAX];
	struct stat info = { 0 };
	int before = watch->target_wd;

	if (stat(watch->path, &info) < 0)
		info = (struct stat){ 0 };
	watch->dev = info.st_dev;
	watch->ino = info.st_ino;
	watch->target_wd = -1;
	watch->target[0] = '\0';
	/* One that cannot be watched is still noticed when it is exchanged. */
	if (realpath(watch->path, real) && cut(real, folder, watch->target))
		watch->target_wd = inotify_add_watch(watch->fd, folder, NOTED);
	if (before >= 0 && before != watch->target_wd && before != watch->wd)
		(void)inotify_rm_watch(watch->fd, before); /* it may be gone with its folder */
}

static bool is_other_file(const struct vt_manifest_watch *watch)
{
	struct stat info = { 0 };

	if (stat(watch->path, &info) < 0)
		info = (struct stat){ 0 };
	return info.st_dev != watch->dev || info.st_ino != watch->ino;
}

/* A new name may be a new link to a whole file; a new file is still empty, and will be written. */
static bool is_new_link(const struct vt_manifest_watch *watch)
{
	struct stat info;

	return lstat(watch->path, &info) == 0 && (S_ISLNK(info.st_mode) || info.st_nlink > 1);
}

static enum finding judge(const struct vt_manifest_watch *watch, const struct inotify_event *event)
{
	const char *name = event->len ? event->name : "";
	bool is_named = event->wd == watch->wd && strcmp(name, watch->name) == 0;
	bool is_target = event->wd == watch->target_wd && strcmp(name, watch->target) == 0;

	if (event->mask & (IN_Q_OVERFLOW | FOLDER))
		return READ;
	if (!is_named && !is_target)
		return LOOK;
	if (event->mask & IN_CREATE)
		return is_named && is_new_link(watch) ? READ : NOTHING;
	return event->mask & (WRITTEN | GONE) ? READ : NOTHING;
}

static void tell(struct vt_manifest_watch *watch)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err;

	vt_str_init(&mistakes);
	look(watch); /* before it is read: what comes after that is seen */
	if (vt_manifest_load(watch->path, &manifest, &mistakes, &err) == 0)
		watch->changed(watch->user, manifest, NULL);
	else
		watch->changed(watch->user, NULL, mistakes.len ? mistakes.text : err.what);
	vt_manifest_free(manifest);
	vt_str_done(&mistakes);
}

int vt_manifest_watch_dispatch(struct vt_manifest_watch *watch)
{
	_Alignas(struct inotify_event) char buffer[16 << 10];
	enum finding most = NOTHING;
	ssize_t got;

	while ((got = read(watch->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const void *)(buffer + at);
			enum finding one = judge(watch, event);

			most = one > most ? one : most;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	if (most == NOTHING || (most == LOOK && !is_other_file(watch)))
		return 0;
	tell(watch);
	return 1;
}

static int begin(struct vt_manifest_watch *watch, const char *path, struct vt_err *err)
{
	char cwd[PATH_MAX] = "", folder[PATH_MAX], shown[200];

	vt_utf8_show_text(shown, sizeof(shown), path, strlen(path));
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return vt_fail(err, VT_STEP_POLICY, errno, "the working directory has no name");
	if (asprintf(&watch->path, "%s%s%s", cwd, *path == '/' ? "" : "/", path) < 0) {
		watch->path = NULL;
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	}
	if (!cut(watch->path, folder, watch->name))
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: that is no file's name", shown);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "%s: watch it for changes", shown);
	watch->wd = inotify_add_watch(watch->fd, folder, NOTED);
	if (watch->wd < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "%s: watch its folder for changes",
			       shown);
	look(watch);
	return 0;
}

int vt_manifest_watch_new(const char *path, vt_manifest_changed *changed, void *user,
			  struct vt_manifest_watch **ret_watch, struct vt_err *err)
{
	struct vt_manifest_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	watch->changed = changed;
	watch->user = user;
	watch->fd = watch->wd = watch->target_wd = -1;
	int status = begin(watch, path, err);

	if (status < 0)
		vt_manifest_watch_free(watch);
	else
		*ret_watch = watch;
	return status;
}

void vt_manifest_watch_free(struct vt_manifest_watch *watch)
{
	if (!watch)
		return;
	vt_fd_close(&watch->fd);
	free(watch->path);
	free(watch);
}

int vt_manifest_watch_fd(const struct vt_manifest_watch *watch)
{
	return watch->fd;
}
