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
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "plan/links.h"

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
	const char *folder;        /* where the name leads: the real path of its folder */
	const char *planted;       /* the first link on the way that a cell may have made */
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

/* Whether the place that a link is in is among the places. */
static int find_link(struct judging *j, const char *link, struct vt_err *err)
{
	const char *folder = folder_of(j, link);

	if (!folder)
		return out_of_memory(err);
	AUTO_CLOSE int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return lost_way(j, errno, err);
	judge_names(j, link);
	return judge_folders(j, fd, link, err);
}

/*
 * A link that an earlier cell may have made. What this call shows to its cell is where others
 * worked before it: there it is refused. Elsewhere it is as likely the caller's own, who is told.
 */
static int judge_planted(struct judging *j, const char *link, struct vt_err *err)
{
	size_t count = j->count;

	j->count += j->more;
	int r = find_link(j, link, err);

	j->count = count;
	if (r < 0)
		return r;
	if (j->found)
		return vt_fail(err, VT_STEP_POLICY, EPERM,
			       "refused: %s '%s' passes the link '%s', which lies in '%s', where "
			       "an earlier cell may have made it, and leads to '%s'; name that "
			       "folder itself if it is meant",
			       j->output->flag, j->output->name, link, j->found->path, j->folder);
	if (!j->planted)
		j->planted = vt_arena_dup(j->arena, link);
	return j->planted ? 0 : out_of_memory(err);
}

/* A link on the way, which is where it is: whoever may write there says what is written to. */
static int judge_link(void *arg, const char *link, struct vt_err *err)
{
	struct judging *j = arg;
	int r = j->count ? find_link(j, link, err) : 0;

	if (r == 0)
		r = refuse_found(j, err);
	if (r < 0 || vt_links_trusted(j->host, link))
		return r;
	return judge_planted(j, link, err);
}

/* Every link on the way that the file was named by. */
static int judge_way(struct judging *j, struct vt_err *err)
{
	const char *name = j->output->name;
	char folder[PATH_MAX];

	if (*name != '/') {
		if (!getcwd(folder, sizeof(folder)))
			return lost_way(j, errno, err);
		if (folder[0] != '/')
			return lost_way(j, ENOENT, err); /* it is out of this root */
		name = vt_arena_printf(j->arena, "%s/%s", folder, name);
		if (!name)
			return out_of_memory(err);
	}
	/* The way to its folder: the file itself is opened only if it is no link. */
	name = folder_of(j, name);
	return name ? vt_links_follow(j->host, j->arena, name, j->output->flag, judge_link, j, err)
		    : out_of_memory(err);
}

/* The kernel's own name for what is open. NULL: it has none, as a pipe. */
static const char *name_of(const struct judging *j, int fd)
{
	char link[32], path[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fits */
	if (j->host->read_link(j->host, link, path, sizeof(path)) < 0 || path[0] != '/')
		return NULL;
	return vt_arena_dup(j->arena, path);
}

/* The folder as the caller named it. NULL: out of memory. */
static const char *folder_name(const struct judging *j)
{
	const char *name = j->output->name, *base = strrchr(name, '/');

	if (!base || base == name)
		return base ? "/" : ".";
	return vt_arena_dupn(j->arena, name, (size_t)(base - name));
}

/* Where the folder really is. */
static int find_folder(struct judging *j, int folder_fd, struct vt_err *err)
{
	char real[PATH_MAX];

	j->folder = name_of(j, folder_fd);
	/* Without a proc the way that was just walked is walked again. */
	if (!j->folder) {
		const char *way = folder_name(j);

		if (!way)
			return out_of_memory(err);
		if (!realpath(way, real))
			return lost_way(j, errno, err);
		j->folder = vt_arena_dup(j->arena, real);
	}
	return j->folder ? 0 : out_of_memory(err);
}

static int judge_folder(struct judging *j, int folder_fd, struct vt_err *err)
{
	const char *base = strrchr(j->output->name, '/');

	if (!j->count)
		return 0; /* nothing may be written */
	base = base ? base + 1 : j->output->name;
	const char *path = vt_arena_printf(j->arena, "%s/%s",
					   strcmp(j->folder, "/") ? j->folder : "", base);

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
	AUTO_CLOSE int folder_fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int r = 0;

	if (!path && j->count && is_file(fd))
		return vt_fail(err, VT_STEP_POLICY, ENOENT,
			       "refused: %s %s: without /proc there is no telling whether the "
			       "command may write there: name the file",
			       j->output->flag, j->output->name);
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
	char real[PATH_MAX];

	for (size_t i = 0; i < grants->count; i++) {
		const char *from = grants->items[i].from;
		struct stat st;

		/* What is not there is not granted either: the plan says so. */
		if (j->host->resolve(j->host, from, real, sizeof(real)) < 0 || stat(from, &st) < 0)
			continue;
		*places = (struct place){ .path = vt_arena_dup(j->arena, real),
					  .dev = st.st_dev,
					  .ino = st.st_ino };
		if (!places++->path)
			return out_of_memory(err);
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

static int open_folder(struct judging *j, int *ret_fd, struct vt_err *err)
{
	const char *folder = folder_name(j);

	if (!folder)
		return out_of_memory(err);
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fail(j->output, errno, err);
	*ret_fd = fd;
	return 0;
}

/* As of a grant that leads through such a link. */
static int note_link(const struct judging *j, struct vt_output *output, struct vt_err *err)
{
	if (!j->planted)
		return 0;
	output->note = vt_arena_printf(j->arena,
				       "note: %s '%s' passes the link '%s' and leads to "
				       "'%s'",
				       output->flag, output->name, j->planted, j->folder);
	return output->note ? 0 : out_of_memory(err);
}

static int open_named(struct judging *j, struct vt_output *output, int flags, struct vt_err *err)
{
	const char *base = strrchr(output->name, '/');
	AUTO_CLOSE int folder = -1;
	AUTO_CLOSE int fd = -1;
	int r = open_folder(j, &folder, err);

	base = base ? base + 1 : output->name;
	if (r == 0)
		r = find_folder(j, folder, err);
	if (r == 0)
		r = judge_way(j, err);
	if (r == 0)
		r = judge_folder(j, folder, err);
	if (r == 0)
		r = note_link(j, output, err);
	if (r < 0)
		return r;
	fd = open_in(output, folder, *base ? base : ".", flags);
	/* A pipe that nobody reads must not keep us here; one that somebody reads may be slow. */
	if (fd < 0 || fcntl(fd, F_SETFL, flags & ~O_ACCMODE) < 0)
		return fail_open(output, errno, flags, err);
	r = judge_file(j, fd, err);
	if (r < 0)
		return r;
	output->fd = vt_fd_take(&fd);
	output->folder_fd = vt_fd_take(&folder);
	return 0;
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
	else if (r == 0 && (r = find_folder(&j, output->folder_fd, err)) == 0)
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
