/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/glance.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "watch/family.h"
#include "watch/procfs.h"
#include "watch/usage.h"

static const uint64_t mark_of_nothing = UINT64_C(0xcbf29ce484222325);

static uint64_t add_to_mark(uint64_t mark, const char *text)
{
	for (; *text; text++)
		mark = (mark ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (mark ^ ' ') * UINT64_C(0x100000001b3);
}

/* ---- which processes there are ------------------------------------------------------------- */

/* Of a whole machine's proc, which has too many names, its last process; as it counts for us. */
static int mark_of_machine(int proc_fd, uint64_t *ret_mark)
{
	char text[128];
	ssize_t len = vt_file_read(proc_fd, "loadavg", text, sizeof(text));

	if (len < 0)
		return (int)len;
	*ret_mark = (uint64_t)vt_proc_number_at(text, 4);
	return 0;
}

/* Where the names of processes begin: those of files come before, and are many. */
static long find_first(DIR *names)
{
	const struct dirent *entry;
	long before = telldir(names);

	while ((entry = readdir(names)) && !isdigit((unsigned char)entry->d_name[0]))
		before = telldir(names);
	return before;
}

static int find_mark(const struct vt_glance *glance, uint64_t *ret_mark)
{
	uint64_t mark = mark_of_nothing;
	const struct dirent *entry;

	if (glance->init)
		return mark_of_machine(glance->proc_fd, ret_mark);
	seekdir(glance->names, glance->first);
	while ((errno = 0, entry = readdir(glance->names)))
		mark = add_to_mark(mark, entry->d_name);
	*ret_mark = mark;
	return -errno;
}

static void forget(struct vt_glance *glance)
{
	while (glance->count) {
		glance->count--;
		vt_fd_close(&glance->statm[glance->count]);
		vt_fd_close(&glance->stat[glance->count]);
	}
	glance->on = false;
}

struct census {
	struct vt_glance *glance;
	const struct vt_family *family; /* NULL: all that show */
};

static int add_process(int proc, const char *name, void *arg)
{
	struct census *census = arg;
	struct vt_glance *glance = census->glance;
	pid_t pid = (pid_t)vt_proc_number_at(name, 0);

	if (census->family ? !vt_family_has(census->family, pid) || pid == glance->init : pid == 1)
		return 0;
	if (glance->count == VT_GLANCES)
		return -E2BIG;
	AUTO_CLOSE int dir = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int statm = dir < 0 ? -1 : openat(dir, "statm", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int stat = statm < 0 ? -1 : openat(dir, "stat", O_RDONLY | O_CLOEXEC);

	if (stat < 0)
		return -errno;
	glance->statm[glance->count] = vt_fd_take(&statm);
	glance->stat[glance->count++] = vt_fd_take(&stat);
	return 0;
}

/* ---- how large they are -------------------------------------------------------------------- */

static bool read_again(int fd, char *text, size_t size)
{
	ssize_t len = pread(fd, text, size - 1, 0);

	text[len < 0 ? 0 : len] = '\0';
	return len > 0;
}

/* Their states, page faults and times are in it. Times count in ticks: less than one does not show.
 */
static uint64_t find_done(const struct vt_glance *glance)
{
	uint64_t mark = mark_of_nothing;
	char text[1024];

	for (unsigned i = 0; i < glance->count; i++) {
		(void)read_again(glance->stat[i], text, sizeof(text)); /* one that ended has none */
		mark = add_to_mark(mark, text);
	}
	return mark;
}

static int measure(const struct vt_glance *glance, int64_t *ret_bytes)
{
	const int64_t page = sysconf(_SC_PAGESIZE);
	int64_t bytes = vt_usage_tmpfs(glance->root_fd);

	for (unsigned i = 0; i < glance->count; i++) {
		char text[128];

		if (!read_again(glance->statm[i], text, sizeof(text)))
			return -EAGAIN;
		vt_proc_add_scaled(&bytes, vt_proc_number_at(text, 1), page);
	}
	*ret_bytes = bytes;
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

void vt_glance_init(struct vt_glance *glance, int proc_fd, int root_fd, pid_t init)
{
	*glance = (struct vt_glance){ .proc_fd = proc_fd, .root_fd = root_fd, .init = init };
	int fd = init ? -1 : openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	glance->names = fd < 0 ? NULL : fdopendir(fd);
	if (glance->names)
		glance->first = find_first(glance->names);
	else
		vt_fd_close(&fd);
}

void vt_glance_prepare(struct vt_glance *glance)
{
	struct vt_family family = { 0 };
	struct census census = { glance, glance->init ? &family : NULL };
	unsigned left = 65536;
	uint64_t mark;

	if ((!glance->init && !glance->names) || find_mark(glance, &mark) < 0) {
		forget(glance);
		return;
	}
	/*
	 * To find the cell's among a whole machine's is dear: where others come all the time, that
	 * is left to the looks.
	 */
	bool same = mark == glance->mark;

	glance->mark = mark;
	if (!same || !glance->on) {
		forget(glance);
		if ((same || !glance->init) &&
		    (!glance->init ||
		     vt_family_find(&family, glance->proc_fd, glance->init) == 0) &&
		    vt_proc_walk(glance->proc_fd, ".", &left, add_process, &census) == 0)
			glance->on = true;
		vt_family_done(&family);
	}
	if (glance->on && measure(glance, &glance->seen) < 0)
		forget(glance);
	glance->done = find_done(glance);
}

int vt_glance(const struct vt_glance *glance, int64_t *ret_grown)
{
	uint64_t mark;
	int64_t bytes;

	if (!glance->on || find_mark(glance, &mark) < 0 || mark != glance->mark ||
	    measure(glance, &bytes) < 0)
		return -EAGAIN;
	*ret_grown = bytes - glance->seen;
	return 0;
}

bool vt_glance_is_idle(const struct vt_glance *glance)
{
	int64_t grown;

	return vt_glance(glance, &grown) == 0 && grown == 0 && find_done(glance) == glance->done;
}

void vt_glance_done(struct vt_glance *glance)
{
	forget(glance);
	if (glance->names)
		(void)closedir(glance->names); /* only read from */
	glance->names = NULL;
}
