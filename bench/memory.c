/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pools.h"

/* ---- what the kernel says ------------------------------------------------------------------ */

/* The sum of the lines that begin with one of these names, in kB. -1: the file cannot be read. */
static long sum_of(const char *path, const char *const *names)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long sum = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		for (const char *const *name = names; *name; name++)
			if (strncmp(line, *name, strlen(*name)) == 0)
				sum += strtol(line + strlen(*name), NULL, 10);
	if (ferror(file))
		sum = -1;
	(void)fclose(file); /* only read from */
	return sum;
}

static long kernel_kb(void)
{
	static const char *const names[] = { "Slab:", "KernelStack:", "PageTables:", "Percpu:",
					     NULL };

	return sum_of("/proc/meminfo", names);
}

static long pss_kb(pid_t pid)
{
	static const char *const names[] = { "Pss:", NULL };
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	return sum_of(path, names);
}

/* ---- the processes of cells ---------------------------------------------------------------- */

struct process {
	pid_t pid, parent;
	unsigned depth; /* of pid namespaces */
	bool ours;      /* comes from this process */
};

struct processes {
	struct process *items;
	size_t count;
};

static bool read_status(pid_t pid, struct process *ret_process)
{
	struct process process = { .pid = pid };
	char path[64], line[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");

	if (!file)
		return false; /* gone since */
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "PPid:", 5) == 0)
			process.parent = (pid_t)strtol(line + 5, NULL, 10);
		if (strncmp(line, "NSpid:", 6) == 0)
			for (char *at = line + 6; (at = strpbrk(at, "0123456789"));
			     at += strspn(at, "0123456789"))
				process.depth++;
	}
	(void)fclose(file); /* only read from */
	*ret_process = process;
	return true;
}

static struct processes list_processes(void)
{
	DIR *proc = opendir("/proc");
	struct processes list = { 0 };
	struct process process;

	if (!proc)
		die("open /proc: %s", strerror(errno));
	for (struct dirent *entry; (entry = readdir(proc));) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || !read_status(pid, &process))
			continue;
		process.ours = pid == getpid();
		list.items = need(realloc(list.items, (list.count + 1) * sizeof(process)));
		list.items[list.count++] = process;
	}
	(void)closedir(proc); /* only read from */
	return list;
}

/* Whoever has a parent that is ours, until there are no more of them. */
static void find_ours(struct processes *list)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < list->count; i++)
			for (size_t j = 0; !list->items[i].ours && j < list->count; j++)
				if (list->items[j].ours &&
				    list->items[j].pid == list->items[i].parent)
					more = list->items[i].ours = true;
	}
}

/* Of all processes in cells: those two pid namespaces below our own. */
static double cells_pss(unsigned cells)
{
	struct processes list = list_processes();
	struct process self;
	double sum = 0;
	unsigned count = 0;

	if (!read_status(getpid(), &self))
		die("read /proc/self/status");
	find_ours(&list);
	for (size_t i = 0; i < list.count; i++) {
		if (!list.items[i].ours || list.items[i].depth < self.depth + 2)
			continue;
		long kb = pss_kb(list.items[i].pid);

		if (kb < 0) {
			free(list.items);
			return 0; /* only root may look */
		}
		sum += (double)kb;
		count++;
	}
	free(list.items);
	if (count != 2 * cells)
		die("%u cells have %u processes", cells, count);
	return sum;
}

static double look_by_hand(unsigned cells, const struct mounts *mounts, unsigned long namespaces)
{
	enum { FIRST = 4 }; /* what is made once is made with them */
	struct hand hand;
	long before = 0;

	hand_open(&hand, mounts, namespaces);
	for (unsigned i = 0; i < FIRST + cells; i++) {
		if (i == FIRST)
			before = kernel_kb();
		(void)hand_make(&hand);
	}
	pause_ms(200);
	long after = kernel_kb();

	hand_close(&hand);
	return (double)(after - before) / cells;
}

void memory_look(unsigned cells, const struct mounts *mounts, unsigned long namespaces,
		 struct cell_memory *ret_memory)
{
	struct cell_memory memory = { .cells = cells };

	/* The supervisor is nobody's child: this makes it ours, so that its processes are found. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		die("adopt orphans: %s", strerror(errno));
	vitro_toolhost *few = host_open(1, 0);

	host_settle(few, 1);
	vitro_toolhost_free(few); /* what is made once is made now */
	vitro_toolhost *host = host_open(cells, 0);
	struct vitro_counts counts;

	do {
		pause_ms(1);
		vitro_toolhost_count(host, &counts);
	} while (counts.ready == 0);
	long before = kernel_kb();
	unsigned there = counts.ready + counts.refilling;

	host_settle(host, cells);
	pause_ms(200);
	memory.kernel_kb = (double)(kernel_kb() - before) / (cells - there);
	memory.pss_kb = cells_pss(cells) / cells;
	/* while these are there: what they had freed would be used again */
	memory.by_hand_kb = look_by_hand(cells, mounts, namespaces);
	vitro_toolhost_free(host);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	*ret_memory = memory;
}
