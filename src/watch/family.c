/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "watch/procfs.h"

enum { MAX_PROCESSES = 65536 };

struct relation {
	pid_t pid, parent;
	bool ours;
};

struct census {
	struct relation *all;
	size_t count, room;
};

static int note(struct census *census, pid_t pid, pid_t parent)
{
	if (census->count == MAX_PROCESSES)
		return -E2BIG;
	if (census->count == census->room) {
		size_t room = census->room ? 2 * census->room : 256;
		struct relation *all = realloc(census->all, room * sizeof(*all));

		if (!all)
			return -ENOMEM;
		census->all = all;
		census->room = room;
	}
	census->all[census->count++] = (struct relation){ .pid = pid, .parent = parent };
	return 0;
}

static pid_t parent_of(int proc, const char *name)
{
	enum { PARENT = 4 };
	char path[32], text[1024];

	if ((size_t)snprintf(path, sizeof(path), "%s/stat", name) >= sizeof(path) ||
	    vt_file_read(proc, path, text, sizeof(text)) < 0)
		return 0; /* gone */
	return (pid_t)vt_proc_stat_number(text, PARENT);
}

static int take_census(struct census *census, int proc_fd)
{
	AUTO_CLOSE int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!stream)
		return -errno;
	(void)vt_fd_take(&fd); /* the stream's from here on */
	while (r == 0 && (errno = 0, entry = readdir(stream))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t parent = pid > 0 ? parent_of(proc_fd, entry->d_name) : 0;

		r = parent > 0 ? note(census, pid, parent) : 0;
	}
	if (r == 0)
		r = -errno;
	(void)closedir(stream); /* only read from */
	return r;
}

static int by_pid(const void *a, const void *b)
{
	const struct relation *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

static bool is_ours(const struct census *census, pid_t pid, pid_t init)
{
	const struct relation wanted = { .pid = pid };
	const struct relation *found = bsearch(&wanted, census->all, census->count, sizeof(wanted),
					       by_pid);

	return pid == init || (found && found->ours);
}

/* Each round finds at least one generation more. */
static size_t find_descendants(const struct census *census, pid_t init)
{
	size_t count = 0, before;

	do {
		before = count;
		for (size_t i = 0; i < census->count; i++) {
			struct relation *one = &census->all[i];

			if (!one->ours && is_ours(census, one->parent, init)) {
				one->ours = true;
				count++;
			}
		}
	} while (count > before);
	return count;
}

int vt_family_find(struct vt_family *family, int proc_fd, pid_t init)
{
	struct census census = { 0 };
	int r = take_census(&census, proc_fd);

	*family = (struct vt_family){ .init = init };
	if (r == 0 && census.count)
		qsort(census.all, census.count, sizeof(census.all[0]), by_pid);
	size_t count = r == 0 ? find_descendants(&census, init) : 0;

	if (r == 0 && !(family->pids = calloc(count + 1, sizeof(pid_t))))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < census.count; i++)
		if (census.all[i].ours)
			family->pids[family->count++] = census.all[i].pid;
	free(census.all);
	return r;
}

static int by_number(const void *a, const void *b)
{
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return (one > other) - (one < other);
}

bool vt_family_has(const struct vt_family *family, pid_t pid)
{
	return bsearch(&pid, family->pids, family->count, sizeof(pid_t), by_number) != NULL;
}

void vt_family_done(struct vt_family *family)
{
	free(family->pids);
	family->pids = NULL;
	family->count = 0;
}
