/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "host/trust.h"
#include "plan/way.h"

/* What the command may write, as a name and as what it is. */
struct place {
	const char *path;
	uint64_t dev, ino; /* ino 0: not known */
};

struct judging {
	const struct vt_output *output;
	const struct vt_host *host;
	struct vt_arena *arena;
	const struct place *places;
	size_t count;
	size_t more;               /* places behind those, which the command may only read */
	const struct place *found; /* that something lies in */
	const char *planted;       /* the first link on the way that a cell may have made */
	const char *barred;        /* the first of these in what the command may read */
	const struct place *shown; /* which is that */
};

static int out_of_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WATCH, ENOMEM, "open the files for results");
}

static int fail(const struct vt_output *output, int num, struct vt_err *err)
{
	if (!*output->name)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: the path is empty", output->flag);
	return vt_fail(err, VT_STEP_POLICY, num, "%s %s: %s", output->flag, output->name,
		       strerror(num));
}

static int lost_way(const struct judging *j, int num, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_POLICY, num, "%s %s: find out where it is: %s", j->output->flag,
		       j->output->name, strerror(num));
}

/* ---- judging ------------------------------------------------------------------------------- */

static void judge_name(void *arg, const char *path)
{
	struct judging *j = arg;

	for (size_t i = 0; !j->found && i < j->count; i++)
		if (vt_path_lies_in(path, j->places[i].path))
			j->found = &j->places[i];
}

static void judge_inode(struct judging *j, const struct stat *st)
{
	for (size_t i = 0; !j->found && i < j->count; i++)
		if (j->places[i].ino && j->places[i].ino == st->st_ino &&
		    j->places[i].dev == st->st_dev)
			j->found = &j->places[i];
}

/* A path free of links, by each name that the host's mounts give it. */
static void judge_names(struct judging *j, const char *path)
{
	judge_name(j, path);
	/* Where the mounts are not known, the folders themselves are still looked at. */
	if (!j->found && j->host->aliases)
		(void)j->host->aliases(j->host, path, judge_name, j);
}

/*
 * A folder and those around it, by what they are: the same folder has other names at other mounts.
 * path says how far up it is to the root: a folder that is mounted in itself looks like its parent.
 */
static int judge_folders(struct judging *j, int folder_fd, const char *path, struct vt_err *err)
{
	AUTO_CLOSE int at = openat(folder_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (!j->found) {
		struct stat st;

		if (at < 0 || fstat(at, &st) < 0)
			return lost_way(j, errno, err);
		judge_inode(j, &st);
		path = strchr(path + 1, '/');
		if (!path)
			break;
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (up < 0)
			return lost_way(j, errno, err);
		vt_fd_close(&at);
		at = up;
	}
	return 0;
}

static int refuse_found(const struct judging *j, struct vt_err *err)
{
	if (!j->found)
		return 0;
	return vt_fail(err, VT_STEP_POLICY, EPERM,
		       "refused: %s '%s' lies in '%s', which the command may write: put it "
		       "elsewhere",
		       j->output->flag, j->output->name, j->found->path);
}

/* The folder of an absolute path without links. NULL: out of memory. */
static const char *folder_of(struct judging *j, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);

	return vt_arena_dupn(j->arena, path, len ? len : 1);
}

/*
 * A link on the way, which is where it is: whoever may write there says what is written to. One
 * that an earlier cell may have made is refused where this call shows to its cell what is around
 * it, since that is where others worked before it. Elsewhere it is as likely the caller's own, who
 * is told.
 */
static int judge_link(struct judging *j, int folder_fd, const struct vt_link *link,
		      struct vt_err *err)
{
	const bool trusted = vt_link_is_trusted(j->host, link);
	const size_t count = j->count;
	int r = 0;

	j->count += trusted ? 0 : j->more;
	judge_names(j, link->path);
	if (j->count)
		r = judge_folders(j, folder_fd, link->path, err);
	j->count = count;
	if (r < 0 || (j->found && j->found < j->places + count))
		return r < 0 ? r : refuse_found(j, err);
	if (!trusted && !j->planted)
		j->planted = link->path;
	if (j->found && !j->shown)
		j->barred = link->path;
	j->shown = j->shown ? j->shown : j->found;
	j->found = NULL;
	return 0;
}

/* The kernel's own name for what is open. NULL: it has none, as a pipe. */
static const char *name_of(const struct judging *j, int fd)
{
	char link[VT_FDLINK], path[PATH_MAX];

	(void)vt_fdlink(link, fd);
	ssize_t len = readlink(link, path, sizeof(path));

	if (len <= 0 || path[0] != '/')
		return NULL;
	return vt_arena_dupn(j->arena, path, (size_t)len);
}

/* The path of what has a name in a folder. Without a proc that is where the way led. */
static const char *name_in(struct judging *j, const char *folder, const char *base)
{
	folder = folder ? folder : j->output->folder;
	return vt_arena_printf(j->arena, "%s/%s", strcmp(folder, "/") != 0 ? folder : "", base);
}

static int judge_folder(struct judging *j, int folder_fd, struct vt_err *err)
{
	const char *base = strrchr(j->output->name, '/');

	if (!j->count)
		return 0; /* nothing may be written */
	base = base ? base + 1 : j->output->name;
	const char *path = name_in(j, name_of(j, folder_fd), base);

	if (!path)
		return out_of_memory(err);
	judge_names(j, path);
	int r = judge_folders(j, folder_fd, path, err);

	return r < 0 ? r : refuse_found(j, err);
}

/* What is open: it may be granted by itself, or by another name. */
static int judge_file(struct judging *j, int fd, struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(j->output, errno, err);
	judge_inode(j, &st);
	return refuse_found(j, err);
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || S_ISREG(st.st_mode);
}

/*
 * A descriptor that the caller opened has a name, or it is out of a cell's reach; but a file has
 * one in any case, and without a proc it may be anywhere.
 */
static int judge_given(struct judging *j, int fd, struct vt_err *err)
{
	const char *path = name_of(j, fd);
	const char *folder = path ? folder_of(j, path) : NULL;
	AUTO_CLOSE int folder_fd = folder ? vt_trust_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY)
					  : -1;
	int r = 0;

	if (!path && j->count && is_file(fd))
		return vt_fail(err, VT_STEP_POLICY, ENOENT,
			       "refused: %s %s: without /proc there is no telling whether the "
			       "command may write there: name the file",
			       j->output->flag, j->output->name);
	/* A link where the kernel has just named a folder was put there. */
	if (folder && folder_fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return lost_way(j, ESTALE, err);
	if (path)
		judge_names(j, path);
	if (folder_fd >= 0)
		r = judge_folders(j, folder_fd, path, err);
	return r < 0 ? r : judge_file(j, fd, err);
}

/* Appends what is granted to the places that are there, and counts on. */
static int list_grants(struct judging *j, const struct vt_grants *grants, struct place *places,
		       size_t *count, struct vt_err *err)
{
	for (size_t i = 0; i < grants->count; i++) {
		const struct vt_grant *grant = &grants->items[i];
		struct vt_way way;
		int r = vt_way_find(j->host, j->arena, grant->from, grant->origin, &way, err);

		if (r < 0)
			return r;
		/* What is not there is not granted either: the plan says so. */
		if (way.err)
			continue;
		*places++ = (struct place){ way.real, way.seen.dev, way.seen.ino };
		++*count;
	}
	return 0;
}

static int list_policy(struct judging *j, const struct vt_policy *policy, struct vt_err *err)
{
	const struct vt_grants *write = &policy->files.write, *read = &policy->files.read;
	struct place *places = vt_arena_array(j->arena, write->count + read->count + 1,
					      sizeof(*places));

	if (!places)
		return out_of_memory(err);
	j->places = places;
	int r = list_grants(j, write, places, &j->count, err);

	return r < 0 ? r : list_grants(j, read, places + j->count, &j->more, err);
}

static int list_plan(struct judging *j, const struct vt_plan *plan, struct vt_err *err)
{
	struct place *places = vt_arena_array(j->arena, plan->build_count + 1, sizeof(*places));

	if (!places)
		return out_of_memory(err);
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act == VT_ACT_BIND && build->writable)
			places[j->count++] = (struct place){ build->from, build->dev, build->ino };
	}
	j->places = places;
	return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* "/dev/fd/3": a descriptor that the caller opened for this. False: it is none. */
static bool is_given(const char *path, int *ret_fd)
{
	int fd = -1, end = 0;

	if (sscanf(path, "/dev/fd/%d%n", &fd, &end) != 1 || path[end])
		return false;
	*ret_fd = fd;
	return true;
}

/*
 * A file that the caller opened, opened once more: as it is needed, and with locks that are not the
 * caller's too.
 */
static int open_again(const struct judging *j, int *fd, int flags, struct vt_err *err)
{
	char link[32];

	if ((flags & O_ACCMODE) != O_RDWR || !is_file(*fd))
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", *fd); /* fits */
	AUTO_CLOSE int again = open(link, flags | O_CLOEXEC | O_NOCTTY);

	if (again >= 0 && !vt_file_is_same(*fd, again))
		return lost_way(j, ESTALE, err);
	if (again < 0)
		return vt_fail(err, VT_STEP_POLICY, errno,
			       "%s %s: cannot open it for reading and writing: %s: name the file",
			       j->output->flag, j->output->name, strerror(errno));
	vt_fd_close(fd);
	*fd = vt_fd_take(&again);
	return 0;
}

static int take_given(struct judging *j, struct vt_output *output, int given, int flags,
		      struct vt_err *err)
{
	AUTO_CLOSE int fd = -1;

	/* Among what the command prints, its own words could pass for ours. */
	if (given == STDOUT_FILENO || given == STDERR_FILENO)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s %s: the command's own output goes there; %s", output->flag,
			       output->name,
			       strcmp(output->flag, "--json") == 0
				       ? "use --json alone, and its output is in the result"
				       : "name a file");
	fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return fail(output, errno, err);
	int r = judge_given(j, fd, err);

	if (r == 0)
		r = open_again(j, &fd, flags, err);
	if (r == 0)
		output->fd = vt_fd_take(&fd);
	return r;
}

static int fail_open(const struct vt_output *output, int num, int flags, struct vt_err *err)
{
	if (num == EACCES && (flags & O_ACCMODE) == O_RDWR)
		return vt_fail(err, VT_STEP_POLICY, num,
			       "%s %s: %s: it is read as well as written, since each line has the "
			       "hash of the one before it",
			       output->flag, output->name, strerror(num));
	if (num != ELOOP)
		return fail(output, num, err);
	return vt_fail(err, VT_STEP_POLICY, num,
		       "%s %s: that is a link, which is not followed: name the file itself",
		       output->flag, output->name);
}

/*
 * A name that is there. For writing alone first: to open a pipe for both is to be its reader.
 * -1 with ENOENT: it is not there any more.
 */
static int open_known(int folder_fd, const char *base, int flags)
{
	AUTO_CLOSE int fd = openat(folder_fd, base, (flags & ~O_ACCMODE) | O_WRONLY);

	if (fd < 0 || (flags & O_ACCMODE) != O_RDWR || !is_file(fd))
		return vt_fd_take(&fd);
	int both = openat(folder_fd, base, flags);

	if (both >= 0 && !vt_file_is_same(fd, both)) {
		vt_fd_close(&both);
		errno = ENOENT;
	}
	return both;
}

/* The file in its folder; made if there is none. No link: it would lead to another file. */
static int open_in(struct vt_output *output, int folder_fd, const char *base, int flags)
{
	enum { TRIES = 8 }; /* others may make and remove it at the same time */
	int fd = -1;

	if ((flags & O_ACCMODE) != O_RDWR)
		flags |= O_WRONLY;
	flags |= O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
	for (int i = 0; i < TRIES && fd < 0; i++) {
		output->made = false;
		fd = open_known(folder_fd, base, flags);
		if (fd >= 0 || errno != ENOENT)
			break;
		fd = openat(folder_fd, base, flags | O_CREAT | O_EXCL, 0600);
		output->made = fd >= 0;
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

/* The way to the file's folder: what was reached of it, and what is left. */
struct way {
	int fd;
	char at[PATH_MAX]; /* "" is the root; as far as names tell */
	const char *rest;
	int links;
};

enum { WAY = O_PATH | O_NOFOLLOW | O_CLOEXEC, MAX_LINKS = 40 };

/* Relative to where one is, or from the root. */
static int go_on_from(struct way *way)
{
	const bool top = *way->rest == '/';

	if (way->fd >= 0 && !top)
		return 0;
	vt_fd_close(&way->fd);
	way->fd = open(top ? "/" : ".", WAY | O_DIRECTORY);
	if (way->fd < 0 || (!top && !getcwd(way->at, sizeof(way->at))))
		return -errno;
	if (!top && way->at[0] != '/')
		return -ENOENT; /* it is out of this root */
	if (top || !way->at[1])
		way->at[0] = '\0';
	way->rest += strspn(way->rest, "/");
	return 0;
}

/* What is no folder, and so perhaps a link: that one is judged, and followed. */
static int follow(struct judging *j, struct way *way, const char *part, struct vt_err *err)
{
	AUTO_CLOSE int fd = openat(way->fd, part, WAY);
	const char *folder = name_of(j, way->fd);
	char target[PATH_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(j->output, errno, err);
	if (S_ISDIR(st.st_mode))
		return lost_way(j, ESTALE, err); /* it is one now */
	if (!S_ISLNK(st.st_mode) || ++way->links > MAX_LINKS)
		return fail(j->output, S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR, err);
	const struct vt_link link = { name_in(j, folder ? folder : way->at, part), st.st_uid };
	int r = link.path ? judge_link(j, way->fd, &link, err) : out_of_memory(err);
	ssize_t len = readlinkat(fd, "", target, sizeof(target));

	if (r < 0 || len < 0)
		return r < 0 ? r : fail(j->output, errno, err);
	way->rest = vt_arena_printf(j->arena, "%.*s/%s", (int)len, target, way->rest);
	if (!way->rest)
		return out_of_memory(err);
	r = go_on_from(way);
	return r < 0 ? lost_way(j, -r, err) : 0;
}

/* One name further. */
static int go_on(struct judging *j, struct way *way, struct vt_err *err)
{
	const size_t len = strcspn(way->rest, "/"), have = strlen(way->at);
	char part[NAME_MAX + 1];

	if (len > NAME_MAX || have + len + 2 > sizeof(way->at))
		return fail(j->output, ENAMETOOLONG, err);
	(void)snprintf(part, sizeof(part), "%.*s", (int)len, way->rest); /* fits */
	way->rest += len + strspn(way->rest + len, "/");
	int next = openat(way->fd, part, WAY | O_DIRECTORY);

	if (next < 0 && errno != ENOTDIR && errno != ELOOP)
		return fail(j->output, errno, err);
	if (next < 0)
		return follow(j, way, part, err);
	vt_fd_close(&way->fd);
	way->fd = next;
	if (strcmp(part, "..") == 0 && have)
		*strrchr(way->at, '/') = '\0';
	else if (strcmp(part, "..") != 0 && strcmp(part, ".") != 0)
		(void)snprintf(way->at + have, sizeof(way->at) - have, "/%s", part); /* fits */
	return 0;
}

/*
 * Goes to the file's folder name by name. Each link is judged as it is met, and is the one that is
 * followed: a name that is looked at twice may lead elsewhere the second time.
 */
static int walk(struct judging *j, struct vt_output *output, struct vt_err *err)
{
	const char *name = j->output->name, *base = strrchr(name, '/');
	struct way way = { .fd = -1,
			   .rest = base == name ? "/"
				   : base ? vt_arena_dupn(j->arena, name, (size_t)(base - name))
					  : "." };
	int r = way.rest ? go_on_from(&way) : -ENOMEM;

	if (r < 0)
		r = r == -ENOMEM ? out_of_memory(err) : lost_way(j, -r, err);
	while (r == 0 && *way.rest)
		r = go_on(j, &way, err);
	if (r == 0) {
		const char *real = name_of(j, way.fd);

		output->folder = real ? real : vt_arena_dup(j->arena, *way.at ? way.at : "/");
		r = output->folder ? 0 : out_of_memory(err);
	}
	if (r == 0)
		output->folder_fd = vt_fd_take(&way.fd);
	vt_fd_close(&way.fd);
	return r;
}

/* What to do about a link that an earlier cell may have made. */
static int tell_planted(const struct judging *j, struct vt_output *output, struct vt_err *err)
{
	if (!j->planted)
		return 0;
	if (j->barred)
		return vt_fail(err, VT_STEP_POLICY, EPERM,
			       "refused: %s '%s' passes the link '%s', which lies in '%s', where "
			       "an earlier cell may have made it, and leads to '%s'; name that "
			       "folder itself if it is meant",
			       output->flag, output->name, j->barred, j->shown->path,
			       output->folder);
	output->note = vt_arena_printf(j->arena,
				       "note: %s '%s' passes the link '%s' and leads to "
				       "'%s'",
				       output->flag, output->name, j->planted, output->folder);
	return output->note ? 0 : out_of_memory(err);
}

static int open_named(struct judging *j, struct vt_output *output, int flags, struct vt_err *err)
{
	const char *base = strrchr(output->name, '/');
	AUTO_CLOSE int fd = -1;
	int r = walk(j, output, err);

	base = base ? base + 1 : output->name;
	if (r == 0)
		r = judge_folder(j, output->folder_fd, err);
	if (r == 0)
		r = tell_planted(j, output, err);
	if (r < 0)
		return r;
	fd = open_in(output, output->folder_fd, *base ? base : ".", flags);
	/* A pipe that nobody reads must not keep us here; one that somebody reads may be slow. */
	if (fd < 0 || fcntl(fd, F_SETFL, flags & ~O_ACCMODE) < 0)
		return fail_open(output, errno, flags, err);
	r = judge_file(j, fd, err);
	if (r == 0)
		output->fd = vt_fd_take(&fd);
	return r;
}

int vt_output_open(struct vt_output *output, int flags, const struct vt_policy *policy,
		   const struct vt_host *host, struct vt_arena *arena, struct vt_err *err)
{
	struct judging j = { .output = output, .host = host, .arena = arena };
	int given, r = list_policy(&j, policy, err);

	if (r < 0)
		return r;
	return is_given(output->name, &given) ? take_given(&j, output, given, flags, err)
					      : open_named(&j, output, flags, err);
}

static void withdraw(struct vt_output *output)
{
	const char *base = strrchr(output->name, '/');

	if (output->made)
		(void)unlinkat(output->folder_fd, base ? base + 1 : output->name,
			       0); /* it is empty, if it is there */
	vt_output_done(output);
}

int vt_output_check(struct vt_output *output, const struct vt_plan *plan,
		    const struct vt_host *host, struct vt_arena *arena, struct vt_err *err)
{
	struct judging j = { .output = output, .host = host, .arena = arena };

	if (output->fd < 0)
		return 0;
	int r = list_plan(&j, plan, err);

	if (r == 0 && output->folder_fd < 0)
		r = judge_given(&j, output->fd, err);
	else if (r == 0)
		r = judge_folder(&j, output->folder_fd, err);
	if (r == 0)
		r = judge_file(&j, output->fd, err);
	if (r < 0)
		withdraw(output);
	return r;
}

int vt_output_write(const struct vt_output *output, const char *text, size_t len, bool raw,
		    struct vt_err *err)
{
	int fd = output->name ? output->fd : STDOUT_FILENO;
	int r = 0;

	if (fd < 0)
		return 0;
	/* Not before there is something to put in its place. What is no file has nothing to cut. */
	if (output->name && ftruncate(fd, 0) < 0 && errno != EINVAL)
		r = -errno;
	if (r == 0)
		r = vt_cli_write_safe(fd, text, len, raw);
	return r < 0 ? vt_fail(err, VT_STEP_OUTPUT, -r, "write the result") : 0;
}

void vt_output_done(struct vt_output *output)
{
	vt_fd_close(&output->fd);
	vt_fd_close(&output->folder_fd);
}
