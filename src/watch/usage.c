/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "watch/family.h"
#include "watch/folder.h"

/* How much one look takes on. */
enum {
	MAX_PROCESSES = 4096,
	MAX_ENTRIES = 65536,       /* descriptors, threads and processes, each as often as seen */
	MAX_MAPS_BYTES = 64 << 20, /* of smaps text, all processes together */
	MEMFDS = 1024,             /* told apart; beyond, one that is open twice counts twice */
};

struct memfd {
	uint64_t dev, ino; /* ino 0: a free place */
};

struct look {
	int64_t page, tick_ns;
	bool swap;   /* some is in use */
	bool memfds; /* to be looked for */
	unsigned processes, entries;
	size_t maps_bytes;
	int64_t resident; /* or swapped */
	int64_t tmpfs, memfd_bytes;
	int64_t cpu_ns;
	int64_t anonymous; /* the dear look's */
	int64_t shared;
	const struct vt_family *family; /* the cell's processes; NULL: all that show */
	unsigned memfd_count;
	struct memfd memfd[MEMFDS];
};

/* Sums saturate: what a cell says is not a reason to overflow. */
static void add(int64_t *sum, int64_t more)
{
	if (more > 0 && __builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

static void add_scaled(int64_t *sum, int64_t count, int64_t unit)
{
	int64_t more;

	if (count > 0)
		add(sum, __builtin_mul_overflow(count, unit, &more) ? INT64_MAX : more);
}

/* The process ended, or is not shown. */
static bool vanished(int num)
{
	return num == ENOENT || num == ESRCH;
}

static bool refused(int num)
{
	return num == EACCES || num == EPERM;
}

/* The n-th number of a text of words, from 0; 0 if there is none. Never negative. */
static int64_t number_at(const char *text, unsigned n)
{
	while (n-- > 0) {
		text += strspn(text, " \t");
		text += strcspn(text, " \t\n");
	}

	long long number = strtoll(text, NULL, 10);
	return number > 0 ? number : 0;
}

/* The number on the line "KEY:  N"; -1 if there is no such line. */
static int64_t number_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return number_at(line + len + 1, 0);
	}
	return -1;
}

/* The kilobytes on the line "KEY:  N kB", as bytes; -1 if there is no such line. */
static int64_t bytes_of(const char *text, const char *key)
{
	int64_t kb = number_of(text, key), bytes = 0;

	add_scaled(&bytes, kb, 1024);
	return kb < 0 ? -1 : bytes;
}

typedef int visit(struct look *look, int dir, const char *name, void *arg);

/* Visits the numbers in a folder of proc, until one visit returns something else than 0. */
static int walk(struct look *look, int at, const char *folder, visit *visit_one, void *arg)
{
	AUTO_CLOSE int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	int r = 0;

	if (fd < 0)
		return -errno;

	DIR *stream = fdopendir(fd);
	if (!stream)
		return -errno;
	(void)vt_fd_take(&fd); /* the stream's from here on */
	while (r == 0) {
		errno = 0;
		entry = readdir(stream);
		if (!entry) {
			r = -errno;
			break;
		}
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = ++look->entries > MAX_ENTRIES
			    ? -E2BIG
			    : visit_one(look, dirfd(stream), entry->d_name, arg);
	}
	(void)closedir(stream); /* nothing was written */
	return r;
}

static uint64_t device(unsigned major, unsigned minor)
{
	return (uint64_t)major << 32 | minor;
}

/* Adds to the set, and says whether it was new to it. A full set takes everything for new. */
static bool remember(struct look *look, uint64_t dev, uint64_t ino)
{
	size_t at = (size_t)((ino ^ dev << 7) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % MEMFDS;

	for (; look->memfd[at].ino; at = (at + 1) % MEMFDS)
		if (look->memfd[at].ino == ino && look->memfd[at].dev == dev)
			return false;
	if (look->memfd_count < MEMFDS * 3 / 4) {
		look->memfd[at] = (struct memfd){ dev, ino };
		look->memfd_count++;
	}
	return true;
}

static bool knows(const struct look *look, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < MEMFDS; i++)
		if (look->memfd[i].ino == ino && look->memfd[i].dev == dev)
			return true;
	return false;
}

/*
 * The link is read before anything is asked of the file: a stat of whatever a cell has open may
 * wait for a network or a process. What begins like this is a memfd, whose name the cell chose, and
 * which is the kernel's own; or else a file in the root of the cell, which costs nothing but its
 * size.
 */
static int look_at_descriptor(struct look *look, int fd_dir, const char *name, void *arg)
{
	static const char prefix[] = "/memfd:";
	char target[sizeof(prefix)];
	struct statx st;
	ssize_t len = readlinkat(fd_dir, name, target, sizeof(target));

	(void)arg;
	if (len < 0)
		return refused(errno) ? -errno : 0; /* closed meanwhile */
	if (len < (ssize_t)sizeof(prefix) - 1 || memcmp(target, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	if (statx(fd_dir, name, AT_STATX_DONT_SYNC, STATX_INO | STATX_BLOCKS, &st) < 0)
		return refused(errno) ? -errno : 0;
	if (remember(look, device(st.stx_dev_major, st.stx_dev_minor), st.stx_ino))
		add_scaled(&look->memfd_bytes, (int64_t)st.stx_blocks, 512);
	return 0;
}

/* The kernel's own mount, on which all memfds are, as fdinfo numbers it; -errno. */
static int64_t memfd_mount(void)
{
	AUTO_CLOSE int fd = memfd_create("vitro", MFD_CLOEXEC);
	char path[32], text[512];

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd); /* fits */
	ssize_t len = vt_file_read(AT_FDCWD, path, text, sizeof(text));

	return len < 0 ? len : number_of(text, "mnt_id");
}

static int look_at_hidden_descriptor(struct look *look, int dir, const char *name, void *arg)
{
	const int64_t *memfds = arg;
	char text[512]; /* what comes later is the file's own kind of news */
	ssize_t len = vt_file_read(dir, name, text, sizeof(text));

	(void)look;
	if (len < 0)
		return vanished((int)-len) ? 0 : (int)len;
	return number_of(text, "mnt_id") == *memfds ? -EACCES : 0;
}

/*
 * The links of a process that is not dumpable, by its own wish or because its program cannot be
 * read, are root's. Its fdinfo is open to whoever may trace it, as the maker of its user namespace
 * may; that says which descriptors are memfds, though not how large. (pidfd_getfd would get at
 * them, but not from a number in the cell's pid namespace.) So such a process may have none: hardly
 * a program that hides its memory uses them, and a cell must not hide any by wishing so.
 */
static int look_at_hidden_table(struct look *look, int dir)
{
	char statm[128];
	ssize_t len = vt_file_read(dir, "statm", statm, sizeof(statm));

	if (len < 0)
		return vanished((int)-len) ? 0 : (int)len;
	if (number_at(statm, 0) == 0)
		return 0; /* a zombie's are root's too, and none */

	int64_t memfds = memfd_mount();
	if (memfds < 0)
		return -EACCES;

	int r = walk(look, dir, "fdinfo", look_at_hidden_descriptor, &memfds);
	return vanished(-r) ? 0 : r;
}

/* Memory of an open memfd need not be mapped, and so is in no other file of proc. */
static int look_at_table(struct look *look, int dir)
{
	int r = walk(look, dir, "fd", look_at_descriptor, NULL);

	if (refused(-r))
		return look_at_hidden_table(look, dir);
	return vanished(-r) ? 0 : r;
}

/*
 * Of stat the fields from the third on, which follow the name in parentheses; the name is the
 * cell's choice, and may have parentheses and spaces in it. Fields 14 to 17 are utime, stime,
 * cutime, cstime. Init's own time is not the call's, but that of the orphans it waited for is.
 */
static int look_at_stat(struct look *look, int pid_dir, bool init)
{
	char text[1024];
	ssize_t len = vt_file_read(pid_dir, "stat", text, sizeof(text));

	if (len < 0)
		return vanished((int)-len) ? 0 : (int)len;

	const char *rest = strrchr(text, ')');
	for (unsigned field = init ? 16 : 14; rest && field <= 17; field++)
		add_scaled(&look->cpu_ns, number_at(rest + 1, field - 3), look->tick_ns);
	return 0;
}

static int64_t swapped(int pid_dir)
{
	char text[16384];

	/* Without the file the resident size has to do. */
	if (vt_file_read(pid_dir, "status", text, sizeof(text)) < 0)
		return 0;
	return bytes_of(text, "VmSwap");
}

struct memory {
	int dir; /* of the process, or of a thread */
	char statm[128];
};

/* Returns 1 where there is memory, 0 where there is none, or -errno. */
static int read_statm(int dir, struct memory *memory)
{
	ssize_t len = vt_file_read(dir, "statm", memory->statm, sizeof(memory->statm));

	if (len < 0)
		return vanished((int)-len) ? 0 : (int)len;
	return number_at(memory->statm, 0) > 0;
}

static int find_thread(struct look *look, int tasks, const char *name, void *arg)
{
	struct memory *memory = arg;
	AUTO_CLOSE int thread = openat(tasks, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)look;
	if (thread < 0)
		return vanished(errno) ? 0 : -errno;
	int r = read_statm(thread, memory);
	if (r > 0) {
		vt_fd_close(&memory->dir);
		memory->dir = vt_fd_take(&thread);
	}
	return r;
}

/*
 * Reads statm, and makes the folder that through which the process's memory is seen. That is
 * another than its own if its first thread has ended while others run: then it looks like a
 * zombie's, which has no memory. Other threads that ended stay while they are traced. Returns 1, or
 * 0 where there is none, or -errno.
 */
static int find_memory(struct look *look, struct memory *memory)
{
	int r = read_statm(memory->dir, memory);

	if (r != 0)
		return r;
	r = walk(look, memory->dir, "task", find_thread, memory);
	return vanished(-r) ? 0 : r;
}

/* Never too small: what is shared counts once per process, and mapped files count. */
static int64_t resident(const struct look *look, const struct memory *memory)
{
	int64_t bytes = 0;

	add_scaled(&bytes, number_at(memory->statm, 1), look->page);
	if (look->swap)
		add(&bytes, swapped(memory->dir));
	return bytes;
}

static int look_cheaply(struct look *look, struct memory *memory)
{
	if (++look->processes > MAX_PROCESSES)
		return -E2BIG;

	int r = find_memory(look, memory);
	if (r <= 0)
		return r;
	add(&look->resident, resident(look, memory));
	/*
	 * One table speaks for all threads: the filter lets none have one of its own. It is that of
	 * a thread that lives, since an ended one has none.
	 */
	return look->memfds ? look_at_table(look, memory->dir) : 0;
}

/*
 * Whether a mapping is of shared memory that neither the cell's tmpfs nor an open memfd accounts
 * for, from the head of its entry: "START-END PERMS OFFSET DEV INODE   NAME". The kernel gives
 * these names.
 */
static bool is_loose(const struct look *look, const char *head)
{
	static const char *const names[] = { "/dev/zero", "/memfd:", "/SYSV", "[anon_shmem:" };
	unsigned major = 0, minor = 0;
	unsigned long long ino = 0;
	int at = 0;

	if (sscanf(head, "%*s %*s %*s %x:%x %llu %n", &major, &minor, &ino, &at) < 3 || at == 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(head + at, names[i], strlen(names[i])) == 0)
			return !knows(look, device(major, minor), ino);
	return false;
}

/* One line of smaps: the head of a mapping, or "KEY: value" about it. */
static void take_line(const struct look *look, const char *line, bool *loose, int64_t *sum)
{
	if (isdigit((unsigned char)*line) || islower((unsigned char)*line))
		*loose = is_loose(look, line);
	else if (*loose && strncmp(line, "Pss:", 4) == 0)
		add_scaled(sum, number_at(line + 4, 0), 1024);
}

/*
 * The shared memory of a process that nothing else accounts for: a walk over all of its mappings.
 * Returns -errno where that cannot be done.
 */
static int look_at_mappings(struct look *look, int pid_dir, int64_t *ret_bytes)
{
	AUTO_CLOSE int fd = openat(pid_dir, "smaps", O_RDONLY | O_CLOEXEC);
	char text[32768];
	size_t len = 0;
	bool loose = false;
	int64_t sum = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		look->maps_bytes += (size_t)got;
		if (look->maps_bytes > MAX_MAPS_BYTES)
			return -EFBIG;
		len += (size_t)got;
		text[len] = '\0';

		char *line = text, *end;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			take_line(look, line, &loose, &sum);
		}
		len -= (size_t)(line - text);
		/* A head ends in a path of at most a page: what has no end by then is not smaps. */
		if (len == sizeof(text) - 1)
			return -EBADMSG;
		memmove(text, line, len);
	}
	*ret_bytes = sum;
	return 0;
}

/*
 * Anonymous memory, in proportion where processes share it after a fork, and shared memory. Of the
 * latter the rollup has one sum, in which pages of the cell's tmpfs and of open memfds are counted
 * that look->tmpfs and look->memfd_bytes have already: `exact` takes them out.
 */
static int look_dearly(struct look *look, struct memory *memory, bool exact)
{
	char text[4096];
	int r = find_memory(look, memory);

	if (r <= 0)
		return r;

	ssize_t len = vt_file_read(memory->dir, "smaps_rollup", text, sizeof(text));
	if (len == 0 || (len < 0 && vanished((int)-len)))
		return 0;
	if (len < 0 && refused((int)-len)) {
		/* The program is one that its user may run and not read. */
		add(&look->anonymous, resident(look, memory));
		return 0;
	}
	if (len < 0)
		return (int)len;

	int64_t anonymous = bytes_of(text, "Pss_Anon");
	int64_t shared = bytes_of(text, "Pss_Shmem");
	if (anonymous < 0)
		anonymous = bytes_of(text, "Pss"); /* before Linux 5.4, and more than that */
	add(&look->anonymous, anonymous);
	add(&look->anonymous, bytes_of(text, "SwapPss"));
	if (exact && shared > 0) {
		r = look_at_mappings(look, memory->dir, &shared);
		/* What cannot be told apart counts in full. */
		if (r < 0 && !vanished(-r) && !refused(-r) && r != -EBADMSG && r != -EFBIG)
			return r;
	}
	add(&look->shared, shared);
	return 0;
}

enum depth { CHEAP, DEAR, EXACT };

static int look_at_process(struct look *look, int proc, const char *name, void *arg)
{
	const enum depth *depth = arg;
	pid_t pid = (pid_t)number_at(name, 0);
	bool init = pid == (look->family ? look->family->init : 1);

	if (look->family && !init && !vt_family_has(look->family, pid))
		return 0; /* the host's, not the cell's */

	if (init && *depth != CHEAP)
		return 0;

	/* The folder stays that of this process, even if its number is given to another. */
	struct memory memory = { .dir = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC) };
	if (memory.dir < 0)
		return vanished(errno) ? 0 : -errno;

	int r = *depth == CHEAP ? look_at_stat(look, memory.dir, init) : 0;
	if (r == 0 && *depth != CHEAP)
		r = look_dearly(look, &memory, *depth == EXACT);
	else if (r == 0 && !init)
		r = look_cheaply(look, &memory);
	vt_fd_close(&memory.dir);
	return r;
}

static int64_t tmpfs_bytes(int root_fd)
{
	struct statfs fs;
	int64_t bytes = 0;

	/* A root that cannot be asked is one without a tmpfs: the descriptor is the supervisor's
	 * own. */
	if (root_fd < 0 || fstatfs(root_fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    fs.f_bfree > fs.f_blocks)
		return 0;
	add_scaled(&bytes, (int64_t)(fs.f_blocks - fs.f_bfree), (int64_t)fs.f_bsize);
	return bytes;
}

static bool swap_in_use(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 || info.freeswap < info.totalswap;
}

static int64_t total(const struct look *look, int64_t of_processes)
{
	int64_t sum = of_processes;

	add(&sum, look->tmpfs);
	add(&sum, look->memfd_bytes);
	return sum;
}

static int look_at_cell(struct look *look, int proc, int64_t limit, int64_t *ret_bytes)
{
	enum depth depth = CHEAP;
	int r = walk(look, proc, ".", look_at_process, &depth);
	int64_t bytes = total(look, look->resident);

	for (depth = DEAR; r == 0 && limit >= 0 && bytes > limit; depth++) {
		look->anonymous = look->shared = 0;
		r = walk(look, proc, ".", look_at_process, &depth);
		bytes = total(look, look->anonymous);
		add(&bytes, look->shared);
		/* Taking the shared pages apart is of use only if there are any. */
		if (depth == EXACT || look->shared == 0)
			break;
	}
	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

int vt_usage_look(int proc_fd, int root_fd, const struct vt_usage_limits *limits,
		  struct vt_usage *ret_usage)
{
	struct look look = { .page = sysconf(_SC_PAGESIZE),
			     .tick_ns = VT_NS_PER_S / sysconf(_SC_CLK_TCK),
			     .memfds = limits->memory_bytes >= 0,
			     .swap = limits->memory_bytes >= 0 && swap_in_use(),
			     .tmpfs = limits->tmp_bytes > 0 ? 0 : tmpfs_bytes(root_fd) };
	struct vt_family family = { 0 };
	bool only_tmp = proc_fd < 0 && limits->tmp_bytes > 0;
	int64_t bytes = 0, tmp_bytes = 0;
	int r = limits->init && !only_tmp ? vt_family_find(&family, proc_fd, limits->init) : 0;

	look.family = limits->init ? &family : NULL;
	if (r == 0 && !only_tmp)
		r = look_at_cell(&look, proc_fd, limits->memory_bytes, &bytes);
	if (r == 0 && limits->tmp_bytes > 0)
		r = vt_folder_measure(root_fd, limits->tmp_bytes, &tmp_bytes);
	vt_family_done(&family);
	if (r < 0)
		return r;
	*ret_usage = (struct vt_usage){ .memory_bytes = bytes,
					.tmp_bytes = tmp_bytes,
					.cpu_ns = look.cpu_ns,
					.processes = look.processes };
	return 0;
}

int64_t vt_usage_next_look(const struct vt_usage *usage, const struct vt_usage_limits *limits)
{
	/*
	 * A CPU zeroes some 8 bytes of fresh memory in a nanosecond at best (huge pages); a few of
	 * them are as fast as the memory itself.
	 */
	enum { BYTES_PER_NS = 8, MEMORY_CPUS = 4 };
	const int64_t least = 2 * VT_NS_PER_MS, most = 50 * VT_NS_PER_MS;
	int64_t cpus = limits->cpus > 0 ? limits->cpus : 1;
	int64_t next = most;

	if (limits->memory_bytes >= 0) {
		int64_t touching = cpus < MEMORY_CPUS ? cpus : MEMORY_CPUS;
		int64_t left = limits->memory_bytes - usage->memory_bytes;
		int64_t ns = left / (BYTES_PER_NS * touching);

		next = ns < next ? ns : next;
	}
	/* A disk takes a gigabyte in a second, a folder in memory four. */
	if (limits->tmp_bytes > 0) {
		int64_t ns = (limits->tmp_bytes - usage->tmp_bytes) / 4;

		next = ns < next ? ns : next;
	}
	if (limits->cpu_ns >= 0) {
		int64_t ns = (limits->cpu_ns - usage->cpu_ns) / cpus;

		next = ns < next ? ns : next;
	}
	return next < least ? least : next;
}
