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
#include "host/paths.h"
#include "plan/way.h"

#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO)
#define GONE    (IN_DELETE | IN_MOVED_FROM)
#define FOLDER  (IN_DELETE_SELF | IN_MOVE_SELF)
#define NOTED   (WRITTEN | GONE | IN_CREATE | FOLDER | IN_ONLYDIR)

/* How often it is read, while it names other files each time. */
enum { READINGS_MAX = 4 };

/* A name that says which file is read, by the folder that it is in. */
struct spot {
	int wd;     /* -1: the folder is not there */
	bool named; /* a link, or what a link could be put in place of; else a file's own name */
	char name[NAME_MAX + 1];
};

/* Which file it was when it was last looked at; 0, 0: none. */
struct file {
	char *path;
	dev_t dev;
	ino_t ino;
};

struct watched {
	struct file *files;
	struct spot *spots;
	size_t file_count, spot_count, spot_room;
	int num; /* why one of them is not: no memory, or no room for another watch; 0: all are */
};

struct vt_manifest_watch {
	char *path; /* absolute, as it was named */
	vt_manifest_changed *changed;
	void *user;
	int fd;
	struct watched watched;
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

static void watched_done(struct watched *watched)
{
	for (size_t i = 0; i < watched->file_count; i++)
		free(watched->files[i].path);
	free(watched->files);
	free(watched->spots);
	*watched = (struct watched){ 0 };
}

static bool has_spot(const struct watched *watched, const struct spot *spot)
{
	size_t i = 0;

	while (i < watched->spot_count &&
	       (watched->spots[i].wd != spot->wd || watched->spots[i].named != spot->named ||
		strcmp(watched->spots[i].name, spot->name) != 0))
		i++;
	return i < watched->spot_count;
}

static bool has_folder(const struct watched *watched, int wd)
{
	size_t i = 0;

	while (i < watched->spot_count && watched->spots[i].wd != wd)
		i++;
	return i < watched->spot_count;
}

static void add_spot(struct watched *watched, int fd, const char *path, bool named)
{
	struct spot spot = { .named = named };
	char folder[PATH_MAX];

	if (!cut(path, folder, spot.name))
		return;
	spot.wd = inotify_add_watch(fd, folder, NOTED);
	/* What is not there, or not for us to list, is still noticed when something else is. */
	if (spot.wd < 0 && (errno == ENOSPC || errno == ENOMEM))
		watched->num = errno;
	if (has_spot(watched, &spot))
		return;
	if (watched->spot_count == watched->spot_room) {
		size_t room = watched->spot_room ? 2 * watched->spot_room : 16;
		struct spot *spots = realloc(watched->spots, room * sizeof(*spots));

		if (!spots) {
			watched->num = ENOMEM;
			return;
		}
		watched->spots = spots;
		watched->spot_room = room;
	}
	watched->spots[watched->spot_count++] = spot;
}

/* Its own name, each link on the way to it, and where it is. */
static void add_file(struct watched *watched, int fd, struct vt_arena *arena, const char *path)
{
	const struct vt_host host = { .step = vt_paths_step };
	struct file *files = realloc(watched->files, (watched->file_count + 1) * sizeof(*files));
	char *copy = strdup(path);
	struct stat info = { 0 };
	struct vt_way way;
	struct vt_err err;

	watched->files = files ? files : watched->files;
	if (!files || !copy) {
		watched->num = ENOMEM;
		free(copy);
		return;
	}
	if (stat(path, &info) < 0)
		info = (struct stat){ 0 };
	files[watched->file_count++] = (struct file){ copy, info.st_dev, info.st_ino };
	add_spot(watched, fd, path, true);
	/* One that cannot be followed cannot be read either. */
	if (vt_way_find(&host, arena, path, path, &way, &err) < 0)
		return;
	for (size_t i = 0; i < way.link_count; i++)
		add_spot(watched, fd, way.links[i].path, true);
	if (!way.err)
		add_spot(watched, fd, way.real, false);
}

/*
 * Watches these from now on, each with its NUL, in place of those before. 1: there are some that
 * were not watched before.
 */
static int follow(struct vt_manifest_watch *watch, const char *sources, size_t len,
		  struct vt_err *err)
{
	struct vt_arena *arena = vt_arena_new();
	struct watched now = { .num = arena ? 0 : ENOMEM }, before = watch->watched;
	int is_new = 0;

	for (size_t at = 0; !now.num && at < len; at += strlen(sources + at) + 1)
		add_file(&now, watch->fd, arena, sources + at);
	vt_arena_free(arena);
	if (now.num) {
		int num = now.num;

		watched_done(&now);
		return vt_fail(err, VT_STEP_POLICY, num, "%s: watch for changes: %s", watch->path,
			       num == ENOSPC ? "there are as many watches as a user may have "
					       "(fs.inotify.max_user_watches)"
					     : strerror(num));
	}
	for (size_t i = 0; i < now.spot_count; i++)
		is_new |= !has_spot(&before, &now.spots[i]);
	for (size_t i = 0; i < before.spot_count; i++)
		if (before.spots[i].wd >= 0 && !has_folder(&now, before.spots[i].wd))
			(void)inotify_rm_watch(watch->fd, before.spots[i].wd); /* or it is gone */
	watch->watched = now;
	watched_done(&before);
	return is_new;
}

static bool is_other_file(const struct vt_manifest_watch *watch)
{
	for (size_t i = 0; i < watch->watched.file_count; i++) {
		const struct file *file = &watch->watched.files[i];
		struct stat info = { 0 };

		if (stat(file->path, &info) < 0)
			info = (struct stat){ 0 };
		if (info.st_dev != file->dev || info.st_ino != file->ino)
			return true;
	}
	return false;
}

/* A new name may be a new link to a whole file; a new file is still empty, and will be written. */
static bool is_new_link(const struct vt_manifest_watch *watch, const char *name)
{
	struct stat info;

	for (size_t i = 0; i < watch->watched.file_count; i++) {
		const char *path = watch->watched.files[i].path;

		if (strcmp(strrchr(path, '/') + 1, name) == 0 && lstat(path, &info) == 0 &&
		    (S_ISLNK(info.st_mode) || info.st_nlink > 1))
			return true;
	}
	return false;
}

static enum finding judge(const struct vt_manifest_watch *watch, const struct inotify_event *event)
{
	const char *name = event->len ? event->name : "";
	bool is_named = false, is_target = false;

	for (size_t i = 0; i < watch->watched.spot_count; i++) {
		const struct spot *spot = &watch->watched.spots[i];

		if (spot->wd != event->wd || strcmp(spot->name, name) != 0)
			continue;
		is_named |= spot->named;
		is_target |= !spot->named;
	}
	if (event->mask & (IN_Q_OVERFLOW | FOLDER))
		return READ;
	if (!is_named && !is_target)
		return LOOK;
	if (event->mask & IN_CREATE)
		return is_named && is_new_link(watch, name) ? READ : NOTHING;
	return event->mask & (WRITTEN | GONE) ? READ : NOTHING;
}

int vt_manifest_watch_load(struct vt_manifest_watch *watch, struct vt_manifest **ret_manifest,
			   struct vt_str *mistakes, struct vt_err *err)
{
	int status = -EAGAIN, is_new = 1;

	for (int i = 0; is_new > 0 && i < READINGS_MAX; i++) {
		struct vt_manifest *manifest = NULL;
		struct vt_str sources;

		vt_str_init(&sources);
		vt_str_drop(mistakes, mistakes->len); /* of the time before */
		status = vt_manifest_load(watch->path, &manifest, &sources, mistakes, err);
		/* Of one that is no JSON only its own file is known. */
		if (status < 0 && !sources.len)
			vt_str_addn(&sources, watch->path, strlen(watch->path) + 1);
		is_new = vt_str_ok(&sources)
				 ? follow(watch, sources.text, sources.len, err)
				 : vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
		vt_str_done(&sources);
		if (status == 0 && is_new) {
			vt_manifest_free(manifest);
			status = is_new < 0 ? is_new : -EAGAIN;
		} else if (status == 0) {
			*ret_manifest = manifest;
		}
	}
	if (status == -EAGAIN)
		(void)vt_fail(err, VT_STEP_POLICY, EAGAIN,
			      "%s: it names other policies each time that it is read", watch->path);
	if (status < 0 && !mistakes->len)
		vt_str_addf(mistakes, "%s\n", err->what);
	return status;
}

static void tell(struct vt_manifest_watch *watch)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err;

	vt_str_init(&mistakes);
	if (vt_manifest_watch_load(watch, &manifest, &mistakes, &err) == 0)
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
	char cwd[PATH_MAX] = "", folder[PATH_MAX], name[NAME_MAX + 1], shown[200];

	vt_utf8_show_text(shown, sizeof(shown), path, strlen(path));
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return vt_fail(err, VT_STEP_POLICY, errno, "the working directory has no name");
	if (asprintf(&watch->path, "%s%s%s", cwd, *path == '/' ? "" : "/", path) < 0) {
		watch->path = NULL;
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	}
	if (!cut(watch->path, folder, name))
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: that is no file's name", shown);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "%s: watch it for changes", shown);
	if (inotify_add_watch(watch->fd, folder, NOTED) < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "%s: watch its folder for changes",
			       shown);
	int r = follow(watch, watch->path, strlen(watch->path) + 1, err);

	return r < 0 ? r : 0;
}

int vt_manifest_watch_new(const char *path, vt_manifest_changed *changed, void *user,
			  struct vt_manifest_watch **ret_watch, struct vt_err *err)
{
	struct vt_manifest_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	watch->changed = changed;
	watch->user = user;
	watch->fd = -1;
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
	watched_done(&watch->watched);
	free(watch->path);
	free(watch);
}

int vt_manifest_watch_fd(const struct vt_manifest_watch *watch)
{
	return watch->fd;
}
