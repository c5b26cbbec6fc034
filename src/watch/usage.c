/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/usage.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "watch/family.h"
#include "watch/held.h"
#include "watch/procfs.h"

/* How much one look takes on. */
enum {
	MAX_PROCESSES = 4096,
	MAX_ENTRIES = 65536,       /* descriptors, threads and processes, each as often as seen */
	MAX_MAPS_BYTES = 64 << 20, /* of smaps text, all processes together */
};

enum depth { CHEAP, DEAR, EXACT };

struct look {
	enum depth depth;
	int64_t page, tick_ns;
	bool swap;                /* some is in use */
	unsigned processes, left; /* that may be looked at yet */
	size_t maps_bytes;
	int64_t resident; /* or swapped */
	int64_t tmpfs;
	int64_t cpu_ns;
	int64_t largest;   /* anonymous memory of one process */
	int64_t heaviest;  /* what is resident of one process, */
	char heavy[24];    /* and its name in proc */
	int64_t anonymous; /* the dear look's */
	int64_t shared;
	const struct vt_family *family; /* the cell's processes; NULL: all that show */
	struct vt_held held;            /* open files of both kinds */
};

/* The kilobytes on the line "KEY:  N kB", as bytes; -1 if there is no such line. */
static int64_t bytes_of(const char *text, const char *key)
{
	int64_t kb = vt_proc_number_of(text, key), bytes = 0;

	vt_proc_add_scaled(&bytes, kb, 1024);
	return kb < 0 ? -1 : bytes;
}

/*
 * Of stat the fields 14 to 17, which are utime, stime, cutime, cstime. Init's own time is not the
 * call's, but that of the orphans it waited for is.
 */
static int look_at_stat(struct look *look, int pid_dir, bool init)
{
	char text[1024];
	ssize_t len = vt_file_read(pid_dir, "stat", text, sizeof(text));

	if (len < 0)
		return vt_proc_vanished((int)-len) ? 0 : (int)len;

	for (unsigned field = init ? 16 : 14; field <= 17; field++)
		vt_proc_add_scaled(&look->cpu_ns, vt_proc_stat_number(text, field), look->tick_ns);
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
		return vt_proc_vanished((int)-len) ? 0 : (int)len;
	return vt_proc_number_at(memory->statm, 0) > 0;
}

static int find_thread(int tasks, const char *name, void *arg)
{
	struct memory *memory = arg;
	AUTO_CLOSE int thread = openat(tasks, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (thread < 0)
		return vt_proc_vanished(errno) ? 0 : -errno;
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
	r = vt_proc_walk(memory->dir, "task", &look->left, find_thread, memory);
	return vt_proc_vanished(-r) ? 0 : r;
}

/* Never too small: what is shared counts once per process, and mapped files count. */
static int64_t resident(const struct look *look, const struct memory *memory)
{
	int64_t bytes = 0;

	vt_proc_add_scaled(&bytes, vt_proc_number_at(memory->statm, 1), look->page);
	if (look->swap)
		vt_proc_add(&bytes, swapped(memory->dir));
	return bytes;
}

/* All pages of one process are different ones: what it has alone, the cell has at least. */
static void weigh(struct look *look, const struct memory *memory, const char *name, int64_t bytes)
{
	int64_t pages = vt_proc_number_at(memory->statm, 1) - vt_proc_number_at(memory->statm, 2);
	int64_t anonymous = 0;

	vt_proc_add_scaled(&anonymous, pages, look->page);
	if (anonymous > look->largest)
		look->largest = anonymous;
	if (bytes > look->heaviest) {
		look->heaviest = bytes;
		(void)snprintf(look->heavy, sizeof(look->heavy), "%s", name); /* a pid fits */
	}
}

static int look_cheaply(struct look *look, struct memory *memory, const char *name)
{
	if (++look->processes > MAX_PROCESSES)
		return -E2BIG;

	int r = find_memory(look, memory);
	if (r <= 0)
		return r;
	int64_t bytes = resident(look, memory);

	vt_proc_add(&look->resident, bytes);
	weigh(look, memory, name, bytes);
	/*
	 * One table speaks for all threads: the filter lets none have one of its own. It is that of
	 * a thread that lives, since an ended one has none.
	 */
	return vt_held_look(&look->held, memory->dir, &look->left);
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
			return !vt_held_knows(&look->held, major, minor, ino);
	return false;
}

/* What the mappings of a process come to. */
struct mappings {
	bool loose;     /* the one whose lines are read */
	int64_t shared; /* of loose ones: their share, from smaps */
	int64_t named;  /* room of all others that are of a file, also where nothing is there */
};

/* One line of maps or smaps: the head of a mapping, or "KEY: value" about it. */
static void take_line(const struct look *look, const char *line, struct mappings *mappings)
{
	unsigned long long start, end, ino;

	if (isdigit((unsigned char)*line) || islower((unsigned char)*line)) {
		mappings->loose = is_loose(look, line);
		if (!mappings->loose &&
		    sscanf(line, "%llx-%llx %*s %*s %*s %llu", &start, &end, &ino) == 3 && ino &&
		    end > start)
			vt_proc_add(&mappings->named, (int64_t)(end - start));
	} else if (mappings->loose && strncmp(line, "Pss:", 4) == 0) {
		vt_proc_add_scaled(&mappings->shared, vt_proc_number_at(line + 4, 0), 1024);
	}
}

/* Goes through all mappings of a process, in one of these files. Returns -errno where that cannot
 * be done. */
static int look_at_mappings(struct look *look, int pid_dir, const char *file,
			    struct mappings *ret_mappings)
{
	AUTO_CLOSE int fd = openat(pid_dir, file, O_RDONLY | O_CLOEXEC);
	struct mappings mappings = { .loose = false };
	char text[32768];
	size_t len = 0;

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
			take_line(look, line, &mappings);
		}
		len -= (size_t)(line - text);
		/* A head ends in a path of at most a page: what has no end by then is not smaps. */
		if (len == sizeof(text) - 1)
			return -EBADMSG;
		memmove(text, line, len);
	}
	*ret_mappings = mappings;
	return 0;
}

/*
 * What the heaviest process has at least by itself: its anonymous memory, and of its shared memory
 * what is neither a memfd nor a file's, be that the cell's or a file of the host's that lies in
 * memory. That takes no walk over pages, and no lock but for the list of its mappings.
 */
static int64_t weigh_heaviest(struct look *look, int proc)
{
	AUTO_CLOSE int dir = openat(proc, look->heavy, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct mappings mappings;
	char text[16384];

	if (dir < 0 || vt_file_read(dir, "status", text, sizeof(text)) < 0 ||
	    look_at_mappings(look, dir, "maps", &mappings) < 0)
		return 0;
	int64_t anonymous = bytes_of(text, "RssAnon");
	int64_t shared = bytes_of(text, "RssShmem") - mappings.named - look->held.memfd_bytes;
	int64_t sum = 0;

	vt_proc_add(&sum, anonymous);
	vt_proc_add(&sum, shared);
	return sum;
}

/*
 * Anonymous memory, in proportion where processes share it after a fork, and shared memory. Of the
 * latter the rollup has one sum, in which pages of the cell's tmpfs and of open memfds are counted
 * that look->tmpfs and look->held.memfd_bytes have already: `exact` takes them out.
 */
static int look_dearly(struct look *look, struct memory *memory, bool exact)
{
	char text[4096];
	int r = find_memory(look, memory);

	if (r <= 0)
		return r;

	ssize_t len = vt_file_read(memory->dir, "smaps_rollup", text, sizeof(text));
	if (len == 0 || (len < 0 && vt_proc_vanished((int)-len)))
		return 0;
	if (len < 0 && vt_proc_refused((int)-len)) {
		/* The program is one that its user may run and not read. */
		vt_proc_add(&look->anonymous, resident(look, memory));
		return 0;
	}
	if (len < 0)
		return (int)len;

	int64_t anonymous = bytes_of(text, "Pss_Anon");
	int64_t shared = bytes_of(text, "Pss_Shmem");
	if (anonymous < 0)
		anonymous = bytes_of(text, "Pss"); /* before Linux 5.4, and more than that */
	vt_proc_add(&look->anonymous, anonymous);
	vt_proc_add(&look->anonymous, bytes_of(text, "SwapPss"));
	if (exact && shared > 0) {
		struct mappings mappings;

		r = look_at_mappings(look, memory->dir, "smaps", &mappings);
		if (r == 0)
			shared = mappings.shared;
		/* What cannot be told apart counts in full. */
		if (r < 0 && !vt_proc_vanished(-r) && !vt_proc_refused(-r) && r != -EBADMSG &&
		    r != -EFBIG)
			return r;
	}
	vt_proc_add(&look->shared, shared);
	return 0;
}

static int look_at_process(int proc, const char *name, void *arg)
{
	struct look *look = arg;
	pid_t pid = (pid_t)vt_proc_number_at(name, 0);
	bool init = pid == (look->family ? look->family->init : 1);

	if (look->family && !init && !vt_family_has(look->family, pid))
		return 0; /* the host's, not the cell's */

	if (init && look->depth != CHEAP)
		return 0;

	/* The folder stays that of this process, even if its number is given to another. */
	struct memory memory = { .dir = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC) };
	if (memory.dir < 0)
		return vt_proc_vanished(errno) ? 0 : -errno;

	int r = look->depth == CHEAP ? look_at_stat(look, memory.dir, init) : 0;
	if (r == 0 && look->depth != CHEAP)
		r = look_dearly(look, &memory, look->depth == EXACT);
	else if (r == 0 && !init)
		r = look_cheaply(look, &memory, name);
	vt_fd_close(&memory.dir);
	/*
	 * With hidepid the folder itself is closed to who may not trace the process: it was listed,
	 * and is not shown any more. So ends a process that is not dumpable, since without its
	 * memory no namespace but the first can vouch for who looks.
	 */
	return r == -EPERM ? 0 : r;
}

int64_t vt_usage_tmpfs(int root_fd)
{
	struct statfs fs;
	int64_t bytes = 0;

	/* A root that cannot be asked is one without a tmpfs: the descriptor is the supervisor's
	 * own. */
	if (root_fd < 0 || fstatfs(root_fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    fs.f_bfree > fs.f_blocks)
		return 0;
	vt_proc_add_scaled(&bytes, (int64_t)(fs.f_blocks - fs.f_bfree), (int64_t)fs.f_bsize);
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

	vt_proc_add(&sum, look->tmpfs);
	vt_proc_add(&sum, look->held.memfd_bytes);
	return sum;
}

/* Whether one process alone is above the limit, without what it may have of a zygote's memory. */
static bool is_certain(struct look *look, int proc, const struct vt_usage_limits *limits,
		       int64_t *ret_bytes)
{
	if (limits->inherited < 0)
		return false;
	int64_t bytes = total(look, look->largest) - limits->inherited;

	if (bytes <= limits->memory_bytes)
		bytes = total(look, weigh_heaviest(look, proc)) - limits->inherited;
	if (bytes > limits->memory_bytes)
		*ret_bytes = bytes;
	return bytes > limits->memory_bytes;
}

static int look_at_cell(struct look *look, int proc, const struct vt_usage_limits *limits,
			int64_t *ret_bytes, bool *ret_certain)
{
	int r = vt_proc_walk(proc, ".", &look->left, look_at_process, look);
	const int64_t limit = limits->memory_bytes;
	int64_t bytes = total(look, look->resident);

	if (r == 0 && limit >= 0 && bytes > limit && is_certain(look, proc, limits, ret_bytes)) {
		*ret_certain = true;
		return 0;
	}
	for (look->depth = DEAR; r == 0 && limit >= 0 && bytes > limit; look->depth++) {
		look->anonymous = look->shared = 0;
		r = vt_proc_walk(proc, ".", &look->left, look_at_process, look);
		bytes = total(look, look->anonymous);
		vt_proc_add(&bytes, look->shared);
		/* Taking the shared pages apart is of use only if there are any. */
		if (look->depth == EXACT || look->shared == 0)
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
			     .left = MAX_ENTRIES,
			     .held = { .memfds = limits->memory_bytes >= 0 },
			     .swap = limits->memory_bytes >= 0 && swap_in_use(),
			     .tmpfs = limits->tmp_bytes > 0 ? 0 : vt_usage_tmpfs(root_fd) };
	struct vt_family family = { 0 };
	bool only_tmp = proc_fd < 0 && limits->tmp_bytes > 0;
	struct vt_folder_size tmp = { .bytes = 0 };
	bool certain = false;
	int64_t bytes = 0;
	int r = limits->init && !only_tmp ? vt_family_find(&family, proc_fd, limits->init) : 0;

	look.family = limits->init ? &family : NULL;
	if (limits->tmp_bytes > 0)
		vt_held_want_nameless(&look.held, root_fd);
	if (r == 0 && !only_tmp)
		r = look_at_cell(&look, proc_fd, limits, &bytes, &certain);
	if (r == 0 && limits->tmp_bytes > 0)
		r = vt_folder_measure(root_fd, limits->tmp_bytes, &tmp);
	vt_proc_add(&tmp.bytes, look.held.nameless_bytes);
	vt_family_done(&family);
	if (r < 0)
		return r;
	*ret_usage = (struct vt_usage){ .memory_bytes = bytes,
					.largest_bytes = look.largest,
					.certain = certain,
					.tmp_bytes = tmp.bytes,
					.tmp_odd = tmp.odd,
					.cpu_ns = look.cpu_ns,
					.processes = look.processes };
	return 0;
}

struct kill {
	const struct vt_family *family; /* NULL: all that show */
	pid_t init;
};

static int kill_process(int proc, const char *name, void *arg)
{
	const struct kill *kill = arg;
	pid_t pid = (pid_t)vt_proc_number_at(name, 0);

	if (pid == kill->init || (kill->family && !vt_family_has(kill->family, pid)))
		return 0;
	AUTO_CLOSE int dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The folder is as good as a pidfd, and needs no number of ours. It may have ended. */
	if (dir >= 0)
		(void)syscall(SYS_pidfd_send_signal, dir, SIGKILL, NULL, 0);
	return 0;
}

void vt_usage_kill(int proc_fd, const struct vt_usage_limits *limits)
{
	struct vt_family family = { 0 };
	struct kill kill = { .family = limits->init ? &family : NULL,
			     .init = limits->init ? limits->init : 1 };
	unsigned left = MAX_ENTRIES;

	/* What does not show is left to who ends the cell. */
	if (!limits->init || vt_family_find(&family, proc_fd, limits->init) == 0)
		(void)vt_proc_walk(proc_fd, ".", &left, kill_process, &kill);
	vt_family_done(&family);
}

/* How long it takes to touch so much, in ns. A few CPUs are as fast as the memory itself. */
static int64_t time_to_touch(int64_t bytes, const struct vt_usage_limits *limits)
{
	enum { MEMORY_CPUS = 4 };
	int64_t cpus = limits->cpus > 0 ? limits->cpus : 1;
	int64_t rate = limits->touch_us * (cpus < MEMORY_CPUS ? cpus : MEMORY_CPUS);

	return bytes > 0 && rate > 0 ? bytes / rate * 1000 : 0;
}

int64_t vt_usage_next_glance(int64_t left_bytes, const struct vt_usage_limits *limits)
{
	const int64_t least = VT_NS_PER_MS / 2, most = 2 * VT_NS_PER_MS;
	int64_t ns = time_to_touch(left_bytes, limits);

	/* Part of what is stated for a burst is for this: else all cells cost more, all the time.
	 */
	ns += ns / 4 < most ? ns / 4 : most;
	return ns < least ? least : ns;
}

int64_t vt_usage_next_look(const struct vt_usage *usage, const struct vt_usage_limits *limits)
{
	const int64_t least = 2 * VT_NS_PER_MS, most = 50 * VT_NS_PER_MS;
	int64_t cpus = limits->cpus > 0 ? limits->cpus : 1;
	int64_t next = most;

	if (limits->memory_bytes >= 0) {
		int64_t ns = time_to_touch(limits->memory_bytes - usage->memory_bytes, limits);

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
