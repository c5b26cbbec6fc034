/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "kernel/cgroup_private.h"

int vt_cgroup_path(char buf[PATH_MAX], const char *folder, const char *name)
{
	while (*name == '/')
		name++;

	int len = snprintf(buf, PATH_MAX, "%s%s%s", folder, *name ? "/" : "", name);

	return len < 0 || len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int parse_number(const char *text, int64_t *ret_number)
{
	char *end;

	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (end == text || errno)
		return -ENODATA;
	*ret_number = number;
	return 0;
}

int vt_cgroup_get_number(int dir, const char *name, int64_t *ret_number)
{
	char text[64];
	ssize_t len = vt_file_read(dir, name, text, sizeof(text));

	return len < 0 ? (int)len : parse_number(text, ret_number);
}

int vt_cgroup_get_keyed(int dir, const char *name, const char *key, int64_t *ret_number)
{
	char text[VT_CGROUP_TEXT_MAX];
	size_t key_len = strlen(key);
	ssize_t len = vt_file_read(dir, name, text, sizeof(text));

	if (len < 0)
		return (int)len;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ')
			return parse_number(line + key_len + 1, ret_number);
	}
	return -ENODATA;
}

int vt_cgroup_put(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t put;

	if (fd < 0)
		return -errno;
	do
		put = write(fd, text, strlen(text));
	while (put < 0 && errno == EINTR);
	return put < 0 ? -errno : 0;
}

int vt_cgroup_put_number(int dir, const char *name, int64_t number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%lld", (long long)number); /* always fits */
	return vt_cgroup_put(dir, name, text);
}

bool vt_cgroup_has_word(const char *list, char sep, const char *word)
{
	const char stops[] = { sep, '\n', '\0' };
	size_t word_len = strlen(word);

	for (;;) {
		size_t len = strcspn(list, stops);

		if (len == word_len && memcmp(list, word, len) == 0)
			return true;
		if (list[len] != sep)
			return false;
		list += len + 1;
	}
}

/* ".." leads out of the mount: the path of a process outside the reader's cgroup namespace. */
static bool leads_out(const char *path)
{
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			return true;
	return false;
}

/* Copies what lies between two places of a text. */
static bool cut(char *buf, size_t size, const char *from, const char *to)
{
	size_t len = (size_t)(to - from);

	if (len >= size)
		return false;
	memcpy(buf, from, len);
	buf[len] = '\0';
	return true;
}

bool vt_cgroup_own(const char *text, const char *controller, char ret_list[NAME_MAX + 1],
		   char ret_path[PATH_MAX])
{
	const char *end;

	/* A line without its newline was cut off, and its path would be some other cgroup's. */
	for (const char *line = text; (end = strchr(line, '\n')); line = end + 1) {
		char list[NAME_MAX + 1], path[PATH_MAX];
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1))
					   : NULL;

		if (!second || !cut(list, sizeof(list), first + 1, second) ||
		    !vt_cgroup_has_word(list, ',', controller))
			continue;
		/* v2's line is "0::PATH"; a named v1 hierarchy has a list, "name=...". */
		if (*controller == '\0' && strncmp(line, "0::", 3) != 0)
			continue;
		if (!cut(path, sizeof(path), second + 1, end) || path[0] != '/' || leads_out(path))
			return false;
		memcpy(ret_list, list, sizeof(list));
		memcpy(ret_path, path, sizeof(path));
		return true;
	}
	return false;
}

void vt_cgroup_say(struct vt_cgroup_site *site, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(site->why, sizeof(site->why), fmt, args); /* a cut reason is still one */
	va_end(args);
}

void vt_cgroup_site_init(struct vt_cgroup_site *site)
{
	*site = (struct vt_cgroup_site){ .version = VT_CGROUP_NONE };
}

int vt_cgroup_noted(struct vt_cgroup_site *site, int num)
{
	if (site && vt_err_passes(num))
		site->short_of = num;
	return num;
}

int vt_cgroup_fail(struct vt_err *err, int num, const char *act, const char *file, const char *path)
{
	return vt_fail(err, VT_STEP_CGROUP, num, "%s %s of cgroup '%s'", act, file, path);
}

/* On v1 the cpu controller has a folder of its own, and so a reason of its own. */
static void explain_cpu(const struct vt_cgroup_site *v1, struct vt_cgroup_site *site)
{
	const char *why = site->cpu[0]                      ? ""
			  : v1->cpu_why[0]                  ? v1->cpu_why
			  : site->version == VT_CGROUP_NONE ? site->why
							    : "it is not delegated to us";
	char text[sizeof(site->cpu_why)];

	(void)snprintf(text, sizeof(text), "%s", why); /* fits; why may be the same buffer */
	memcpy(site->cpu_why, text, sizeof(text));
}

/*
 * A controller is in one hierarchy only, so where v1 has memory, v2 has not; and memory is what a
 * cgroup is wanted for most.
 */
void vt_cgroup_find_at(const char *mount, const char *text, struct vt_cgroup_site *ret_site)
{
	struct vt_cgroup_site v1, v2;

	vt_cgroup_site_init(&v1);
	vt_cgroup_site_init(&v2);
	vt_cgroup_v1_find(mount, text, &v1);
	if (!v1.memory[0])
		vt_cgroup_v2_find(mount, text, &v2);

	bool named = strstr(text, ":memory:") || strstr(text, ",memory:");
	bool take_v1 = v1.memory[0] ||
		       (v2.version == VT_CGROUP_NONE && (v1.version == VT_CGROUP_V1 || named));

	int short_of = v1.short_of ? v1.short_of : v2.short_of;

	*ret_site = take_v1 ? v1 : v2;
	ret_site->short_of = short_of;
	explain_cpu(&v1, ret_site);
	if (ret_site->version != VT_CGROUP_NONE)
		ret_site->why[0] = '\0';
}

void vt_cgroup_find(struct vt_cgroup_site *ret_site)
{
	char text[4 * VT_CGROUP_TEXT_MAX];
	ssize_t len = vt_file_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));

	if (len >= 0) {
		vt_cgroup_find_at("/sys/fs/cgroup", text, ret_site);
		return;
	}
	vt_cgroup_site_init(ret_site);
	(void)vt_cgroup_noted(ret_site, (int)-len);
	vt_cgroup_say(ret_site, "cannot read /proc/self/cgroup: %s", strerror((int)-len));
	explain_cpu(ret_site, ret_site);
}

void vt_cgroup_init(struct vt_cgroup *cgroup)
{
	cgroup->version = VT_CGROUP_NONE;
	cgroup->count = 0;
	cgroup->memory = cgroup->cpuacct = -1;
	for (int i = 0; i < VT_CGROUP_HIERARCHIES; i++) {
		cgroup->dirs[i] = cgroup->joins[i] = -1;
		cgroup->paths[i][0] = '\0';
	}
}

/*
 * Makes the folder, opens it and takes the lock that says that its maker lives. A sweep of another
 * vitro may come between and remove it: -EAGAIN. Once the lock is held, no sweep does.
 */
static int make_locked(const char *path, const char *join, int *ret_dir, int *ret_join)
{
	AUTO_CLOSE int dir = -1, join_fd = -1;
	int num;

	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0) {
		num = errno == ENOENT ? EAGAIN : errno;
		goto fail;
	}
	if (flock(dir, LOCK_SH | LOCK_NB) < 0) {
		num = errno;
		goto fail;
	}
	join_fd = openat(dir, join ? join : "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (join_fd < 0) {
		num = errno == ENOENT || errno == ENODEV ? EAGAIN : errno;
		goto fail;
	}
	*ret_dir = vt_fd_take(&dir);
	*ret_join = join ? vt_fd_take(&join_fd) : -1;
	return 0;
fail:
	(void)rmdir(path); /* gone already, or the next sweep's */
	return -num;
}

int vt_cgroup_add(struct vt_cgroup *cgroup, const char *folder, const char *join,
		  struct vt_err *err)
{
	enum { TRIES = 16 };
	int at = cgroup->count;
	int r = -EAGAIN;

	if (at >= VT_CGROUP_HIERARCHIES)
		return vt_fail(err, VT_STEP_CGROUP, ENOSPC, "more hierarchies than there can be");
	for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
		char name[64];

		/* The clock's nanoseconds are a serial number without a counter to keep. */
		(void)snprintf(name, sizeof(name), "vitro-%d.%lld", (int)getpid(),
			       (long long)vt_clock_now());
		r = vt_cgroup_path(cgroup->paths[at], folder, name);
		if (r == 0)
			r = make_locked(cgroup->paths[at], join, &cgroup->dirs[at],
					&cgroup->joins[at]);
	}
	if (r < 0)
		return vt_fail(err, VT_STEP_CGROUP, -r, "make a cgroup in '%s'", folder);
	cgroup->count++;
	return at;
}

/* What is asked for and cannot be had; NULL if nothing. */
static const char *lacking(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits)
{
	if (limits->memory_bytes > 0 && !site->memory[0])
		return "memory";
	if (limits->pids > 0 && !site->pids[0])
		return "pids";
	if (limits->cpu_quota_us > 0 && !site->cpu[0])
		return "cpu";
	if (limits->count_cpu && !site->cpuacct[0])
		return "cpuacct";
	return NULL;
}

int vt_cgroup_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		   struct vt_cgroup *ret_cgroup, struct vt_err *err)
{
	const char *controller = lacking(site, limits);
	struct vt_cgroup cgroup;
	int r;

	if (site->version == VT_CGROUP_NONE)
		return vt_fail(err, VT_STEP_CGROUP, EOPNOTSUPP, "no cgroups here: %s", site->why);
	if (controller)
		return vt_fail(err, VT_STEP_CGROUP, EOPNOTSUPP,
			       "the %s controller of cgroups cannot be used here", controller);

	vt_cgroup_init(&cgroup);
	cgroup.version = site->version;
	if (site->version == VT_CGROUP_V1)
		r = vt_cgroup_v1_make(site, limits, &cgroup, err);
	else
		r = vt_cgroup_v2_make(site, limits, &cgroup, err);
	if (r < 0) {
		struct vt_err ignored;

		/* Nothing has joined: it goes, and the first failure is the one to tell. */
		(void)vt_cgroup_remove(&cgroup, &ignored);
		return r;
	}
	*ret_cgroup = cgroup;
	return 0;
}

int vt_cgroup_clone_fd(const struct vt_cgroup *cgroup)
{
	return cgroup->version == VT_CGROUP_V2 && cgroup->count > 0 ? cgroup->dirs[0] : -1;
}

int vt_cgroup_join(const struct vt_cgroup *cgroup, struct vt_err *err)
{
	if (cgroup->version != VT_CGROUP_V1)
		return 0;
	for (int i = 0; i < cgroup->count; i++) {
		ssize_t put;

		/*
		 * "0" is the caller, whatever its number in whose pid namespace. In `tasks` that is
		 * one thread, and the kernel need not stop the world's forks for it as for
		 * cgroup.procs.
		 */
		do
			put = write(cgroup->joins[i], "0", 1);
		while (put < 0 && errno == EINTR);
		if (put < 0)
			return vt_fail_at(err, VT_STEP_CGROUP, errno, "join cgroup",
					  cgroup->paths[i]);
	}
	return 0;
}

void vt_cgroup_from_joins(struct vt_cgroup *ret_cgroup, const int *joins, int count)
{
	vt_cgroup_init(ret_cgroup);
	ret_cgroup->version = count > 0 ? VT_CGROUP_V1 : VT_CGROUP_NONE; /* joins by itself */
	for (int i = 0; i < count && i < VT_CGROUP_HIERARCHIES; i++)
		ret_cgroup->joins[ret_cgroup->count++] = joins[i];
}

int vt_cgroup_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *ret_usage,
		   struct vt_err *err)
{
	struct vt_cgroup_usage usage = {
		.memory_bytes = -1, .memory_peak_bytes = -1, .cpu_ns = -1, .oom_kills = 0
	};
	int r = 0;

	if (cgroup->version == VT_CGROUP_V1)
		r = vt_cgroup_v1_read(cgroup, &usage, err);
	else if (cgroup->version == VT_CGROUP_V2)
		r = vt_cgroup_v2_read(cgroup, &usage, err);
	if (r < 0)
		return r;
	*ret_usage = usage;
	return 0;
}

/* 0, or the errno that stands after waiting for the kernel to drop the last task. */
static int remove_folder(const char *path, int64_t deadline)
{
	struct timespec pause = { .tv_nsec = VT_NS_PER_MS / 10 };

	while (rmdir(path) < 0) {
		int num = errno;

		if (num == ENOENT)
			return 0; /* swept */
		if (num != EBUSY || vt_clock_now() >= deadline)
			return num;
		(void)nanosleep(&pause, NULL); /* a shorter one only means one more try */
		if (pause.tv_nsec < 10 * VT_NS_PER_MS)
			pause.tv_nsec *= 2;
	}
	return 0;
}

static int remove_by(struct vt_cgroup *cgroup, int64_t deadline, struct vt_err *err)
{
	int left = 0;
	int r = 0;

	for (int i = 0; i < cgroup->count; i++) {
		vt_fd_close(&cgroup->joins[i]);
		vt_fd_close(&cgroup->dirs[i]);

		int num = remove_folder(cgroup->paths[i], deadline);
		if (num == 0)
			continue;
		r = vt_fail(err, VT_STEP_CGROUP, num, "remove cgroup '%s'", cgroup->paths[i]);
		if (left != i)
			memcpy(cgroup->paths[left], cgroup->paths[i], PATH_MAX);
		left++;
	}
	cgroup->count = left;
	cgroup->memory = cgroup->cpuacct = -1;
	return r;
}

int vt_cgroup_remove(struct vt_cgroup *cgroup, struct vt_err *err)
{
	return remove_by(cgroup, vt_clock_now() + VT_NS_PER_S, err);
}

int vt_cgroup_try_remove(struct vt_cgroup *cgroup, struct vt_err *err)
{
	return remove_by(cgroup, 0, err);
}

/* Whether the folder's maker is gone and it went too. rmdir harms no cgroup that has processes. */
static bool sweep_one(int parent, const char *name)
{
	AUTO_CLOSE int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
	       unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static int sweep_folder(const char *folder)
{
	const struct dirent *entry;
	struct stat st;
	int swept = 0;

	/* The kernel counts subfolders as links: with two there are none. */
	if (stat(folder, &st) < 0 || st.st_nlink == 2)
		return 0;

	DIR *stream = opendir(folder);
	if (!stream)
		return 0;
	while ((entry = readdir(stream)))
		if (vt_path_is_numbered(entry->d_name, "vitro-") &&
		    sweep_one(dirfd(stream), entry->d_name))
			swept++;
	(void)closedir(stream); /* nothing was written */
	return swept;
}

int vt_cgroup_sweep(const struct vt_cgroup_site *site)
{
	const char *const folders[] = { site->memory, site->pids, site->cpu, site->cpuacct };
	int swept = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		bool seen = folders[i][0] == '\0';

		for (size_t j = 0; j < i && !seen; j++)
			seen = strcmp(folders[i], folders[j]) == 0;
		if (!seen)
			swept += sweep_folder(folders[i]);
	}
	return swept;
}
