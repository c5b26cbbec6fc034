/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading proc, which is text that a cell has a say in: numbers are never negative, sums do not
 * overflow, and no folder is walked without a bound. Runs in the supervisor and its looker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Adds what is above 0. A sum saturates: what a cell says is not a reason to overflow. */
void vt_proc_add(int64_t *sum, int64_t more);
void vt_proc_add_scaled(int64_t *sum, int64_t count, int64_t unit);

/* Whether this errno means that the process has ended, or is not shown. */
bool vt_proc_vanished(int num);

/* Whether it means that the process is shown, but not this about it. */
bool vt_proc_refused(int num);

/*
 * Whether the process of this pidfd is on its way to its end, or has come there. The init of a pid
 * namespace is so before the kernel kills those in it: then this tells why they died. False where
 * it cannot be seen.
 */
bool vt_proc_is_exiting(int pidfd);

/*
 * Whether that is the pid of the pidfd's process, as it is numbered here. False where it cannot be
 * seen.
 */
bool vt_proc_is(int pidfd, pid_t pid);

/* The n-th number of a text of words, from 0; 0 if there is none. Never negative. */
int64_t vt_proc_number_at(const char *text, unsigned n);

/* A field of /proc/PID/stat, as proc(5) counts them, from the fourth on; 0 if there is none. */
int64_t vt_proc_stat_number(const char *text, unsigned field);

/* The number on the line "KEY:  N"; -1 if there is no such line. */
int64_t vt_proc_number_of(const char *text, const char *key);

/* `dir` is the open folder. Returns 0 to go on. */
typedef int vt_proc_visit(int dir, const char *name, void *arg);

/*
 * Visits the numbers in a folder of proc, until one visit returns something else than 0, which is
 * returned. *left is how many may be visited yet, in all walks that share it: -E2BIG beyond.
 */
int vt_proc_walk(int at, const char *folder, unsigned *left, vt_proc_visit *visit, void *arg);
