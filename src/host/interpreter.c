/* SPDX-License-Identifier: Apache-2.0 */
#include "host/interpreter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/helper.h"

/* What gives vitro's own texts to a Node, which is in the hull already. In a block: its names are
 * none of the code's. */
#define BEGIN                                                                                  \
	"{const m={exports:{}};process.dlopen(m,process.argv[1]);const a=m.exports;"           \
	"require('vm').compileFunction(a.sources()['zygote.cjs'],['addon','require','bring','" \
	"parts'],"                                                                             \
	"{filename:'vitro:zygote.cjs'})(a,require,s=>import(s),null)}"

const struct vt_interpreter vt_interpreters[VT_LANGUAGES] = {
	[VT_PYTHON] = {
		.name = "python",
		.title = "Python",
		.pools = "Python pools",
		.program = "python3",
		.file = "zygote.py",
		.beside = "_vitro_zygote.abi3.so",
		.package = "python3-dev",
		.advice = "; is it CPython 3.8 or newer?",
		.learns = true,
		/* Nothing of the caller's environment or folders is read before the hull is
		 * joined, and nothing is written. */
		.flags = { "-I", "-S", "-B" },
	},
	[VT_NODE] = {
		.name = "node",
		.title = "Node",
		.pools = "Node pools",
		.program = "node",
		.file = "vitro_zygote.node",
		.beside = "zygote.cjs",
		.package = "libnode-dev",
		.advice = "; is it Node 18 or newer?",
		.preloads = true,
		/* A fork has none of V8's threads, so it must not count on them. */
		.flags = { "--single-threaded", "--v8-pool-size=1", "-e", BEGIN },
	},
};

/* What a folder has that was not seen is not known to be harmless. */
static int fail_look(const char *folder, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_COMMAND, errno, "look into '%s'", folder);
}

/*
 * All that is in it may be loaded before the hull is joined, and so with the caller's rights: each
 * file must be one that nobody else can write. What Python compiled of them lies in a folder below.
 */
static int check_folder(const char *folder, int depth, struct vt_err *err)
{
	char path[PATH_MAX], name[NAME_MAX + 64];
	DIR *dir;
	const struct dirent *entry;
	int r = vt_helper_find_file(folder, path, err);

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return fail_look(path, err);
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name); /* fits */
		r = vt_helper_find_file(name, path, err);
		if (r == 0 && depth > 0 && strcmp(entry->d_name, "__pycache__") == 0)
			r = check_folder(name, depth - 1, err);
	}
	if (r == 0 && errno)
		r = fail_look(folder, err);
	(void)closedir(dir); /* it was only read */
	return r;
}

int vt_interpreter_find(const struct vt_interpreter *interpreter, char path[PATH_MAX],
			struct vt_err *err)
{
	char name[NAME_MAX + 1], file[PATH_MAX], beside[PATH_MAX];

	(void)snprintf(name, sizeof(name), "%s/%s", interpreter->name,
		       interpreter->file); /* fits */
	int r = vt_helper_find_file(name, file, err);

	(void)snprintf(name, sizeof(name), "%s/%s", interpreter->name,
		       interpreter->beside); /* the same */
	if (r == 0)
		r = vt_helper_find_file(name, beside, err);
	if (r == -ENOENT)
		return vt_fail(
			err, VT_STEP_COMMAND, ENOENT,
			"this vitro was built without %s, or left its folder '%s' behind, "
			"which `make install` puts beside it; it is built where %s is installed",
			interpreter->title, interpreter->name, interpreter->package);
	if (r == 0)
		r = check_folder(interpreter->name, 1, err);
	/* As the loader has it, these part names. */
	if (r == 0 && interpreter->preloads && strpbrk(file, " :"))
		return vt_fail(err, VT_STEP_COMMAND, EINVAL,
			       "'%s' has a space or a colon in its name, and cannot be preloaded",
			       file);
	if (r == 0)
		memcpy(path, file, sizeof(file));
	return r;
}

enum { ASK_MS = 5000 };

#define ANEW "anew: " /* and why */

/* What it writes, until its end. */
static int hear(int fd, char *text, size_t size)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	int64_t end = vt_clock_now() + ASK_MS * INT64_C(1000000);
	size_t len = 0;

	for (;;) {
		int64_t left = (end - vt_clock_now()) / 1000000;
		int r = left > 0 ? poll(&one, 1, (int)left) : 0;
		ssize_t got = r > 0 ? read(fd, text + len, size - 1 - len) : -1;

		if (r == 0)
			return -ETIMEDOUT;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0 || len + 1 == size)
			break;
		len += got > 0 ? (size_t)got : 0;
	}
	text[len] = '\0';
	return 0;
}

static int ask(char *const *argv, char *const *envp, char *text, size_t size)
{
	posix_spawn_file_actions_t acts;
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	AUTO_CLOSE int ours = fds[0], theirs = fds[1];

	r = posix_spawn_file_actions_init(&acts);
	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDWR, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&acts, theirs, 1);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&acts, 0, 2);
	if (!r)
		r = posix_spawn(&pid, argv[0], &acts, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&acts); /* cannot fail */
	if (r)
		return -r;
	vt_fd_close(&theirs);
	r = hear(ours, text, size);
	/* Whatever it said: one that goes on would never be waited for. It is our child, which
	 * nobody has reaped. */
	vt_fd_close(&ours);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int vt_interpreter_forks(const struct vt_interpreter *interpreter, const char *program,
			 const char *path, char why_not[VT_INTERPRETER_WHY], struct vt_err *err)
{
	char preload[PATH_MAX + 16], said[VT_INTERPRETER_WHY] = "";
	char *const envp[] = { preload, NULL };
	char *argv[VT_INTERPRETER_FLAGS + 4] = { (char *)program };
	size_t n = 1;

	why_not[0] = '\0';
	if (!interpreter->preloads)
		return 0;
	(void)snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", path); /* fits */
	for (size_t i = 0; i < VT_INTERPRETER_FLAGS && interpreter->flags[i]; i++)
		argv[n++] = (char *)interpreter->flags[i];
	argv[n++] = (char *)path;
	argv[n] = (char *)"?";
	int r = ask(argv, envp, said, sizeof(said));

	if (r < 0 || (strcmp(said, "forked") != 0 && strncmp(said, ANEW, strlen(ANEW)) != 0))
		return vt_fail(err, VT_STEP_COMMAND, r < 0 ? -r : ENOEXEC,
			       "'%s' does not say whether it can be forked%s", program,
			       interpreter->advice);
	if (strcmp(said, "forked") != 0)
		(void)snprintf(why_not, VT_INTERPRETER_WHY, "%s", said + strlen(ANEW)); /* fits */
	return 0;
}

static int follow_links(const char *folder, int depth,
			int (*each)(void *arg, const char *path, struct vt_err *err), void *arg,
			struct vt_err *err)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	struct stat st;
	int r = 0;

	if (!dir)
		return fail_look(folder, err);
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX ||
		    lstat(path, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			r = each(arg, path, err);
		if (r == 0 && depth > 0 && strcmp(entry->d_name, "__pycache__") == 0)
			r = follow_links(path, depth - 1, each, arg, err);
	}
	if (r == 0 && errno)
		r = fail_look(folder, err);
	(void)closedir(dir); /* it was only read */
	return r;
}

int vt_interpreter_follow(int (*each)(void *arg, const char *path, struct vt_err *err), void *arg,
			  struct vt_err *err)
{
	char folder[PATH_MAX];
	struct vt_err unheard; /* one that cannot be used is not */
	int r = 0;

	for (size_t i = 0; r == 0 && i < VT_LANGUAGES; i++) {
		r = vt_helper_follow(vt_interpreters[i].name, each, arg, err);
		if (r == 0 && vt_helper_find_file(vt_interpreters[i].name, folder, &unheard) == 0)
			r = follow_links(folder, 1, each, arg, err);
	}
	return r;
}

static int check_way(const char *path, const char *interpreter, struct vt_err *err)
{
	char at[PATH_MAX];
	struct stat st;

	(void)snprintf(at, sizeof(at), "%s", path); /* it is a path */
	while (strcmp(at, "/") != 0) {
		(void)dirname(at);
		if (stat(at, &st) < 0 || !(st.st_mode & S_IXOTH))
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: cells have no namespaces here, and a user of "
				       "their own each, "
				       "for whom '%s' is closed: '%s' would not find its library; "
				       "name one "
				       "that everyone may read",
				       at, interpreter);
	}
	return 0;
}

int vt_interpreter_check_open(const char *path, struct vt_err *err)
{
	char real[PATH_MAX];
	int r = check_way(path, path, err);

	if (r == 0 && !realpath(path, real))
		r = vt_fail(err, VT_STEP_COMMAND, errno, "follow '%s'", path);
	return r < 0 ? r : check_way(real, path, err);
}
