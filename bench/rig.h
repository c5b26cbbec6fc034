/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the contestants need before the clock starts: the mounts and namespaces of a real cell, so that
 * others can make the same; the proof that a cell isolates; folders to grant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ends the program with a message, status 2. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *need(void *memory); /* dies where it is NULL */

/* spawn.c: starts argv with a bare environment; out_fd and err_fd become its 1 and 2. */
pid_t spawn(char *const *argv, int out_fd, int err_fd);
/* In a child: nothing is open any more but 0 to 2 and this one, which has another number then. */
void keep_only(int *fd);
/* Forks, with a socket to the child, which ends with this process: whether this is the child, which has nothing else open. */
bool split_off(pid_t *ret_pid, int *ret_fd);
/* Waits, and returns the wait status. */
int await(pid_t pid);
/* Runs argv and returns what it printed. Dies unless it exits with 0. */
char *output_of(char *const *argv);

/* A list of strings that grows, ended by NULL: an argv. */
struct words {
	char **items;
	size_t count;
};

void words_add(struct words *words, const char *word);
void words_addf(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum mount_kind { MOUNT_BIND, MOUNT_DEVICE, MOUNT_SCRATCH, MOUNT_PROC, MOUNT_MASK };

struct mount {
	enum mount_kind kind;
	char           *at; /* absolute; for a bind, the host's path too */
	bool            writable, folder;
};

/* How a cell's root looks: what is mounted in it, and which links of the host's root it needs. */
struct mounts {
	struct mount *items;
	size_t        count;
	char         *links[8], *targets[8];
	size_t        link_count;
};

/* cell.c: the default cell of this vitro, as it sees itself. */
void mounts_of_cell(const char *vitro, struct mounts *ret_mounts);
/* Of a cell, from its mountinfo, which is changed. */
void mounts_read(char *text, struct mounts *ret_mounts);
/* The same with more read-only folders. */
void mounts_extend(const struct mounts *base, char *const *folders, size_t count,
		   struct mounts *ret_mounts);
/* A bubblewrap command that makes the same namespaces and mounts and runs program in them; NULL: it lacks that. */
char **bwrap_argv(const char *vitro, const struct mounts *mounts, const char *program);

/* Runs probe() in a cell, and gives what it printed, to be freed. */
typedef char *probe_inside(const void *user, int port, const char *secret);

/*
 * probe.c: dies unless a cell isolates, and the same probe outside shows that it can tell. secret is a
 * file of the host's that nobody grants.
 */
void check_isolation(probe_inside *inside, const void *user, const char *secret);
/* What the probe itself runs: inside the cell, and outside as the control. It prints what it found. */
void probe(int port, const char *secret);
int  probe_main(int argc, char **argv);
/* A process that the probe looks for: it says a byte when it is there, and stays until its input ends. */
void neighbour_main(int in, int out);

/* folders.c: a folder of the benchmark's own with count empty ones in it; it goes at exit. */
char **folders_make(const char *parent, size_t count);
/* A file in it with this text. */
char *folders_file(const char *name, const char *text);
/* A policy file in it that grants the first count of them. */
char *folders_policy(size_t count);
