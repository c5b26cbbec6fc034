/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forbidden acts, one function each. The same program runs outside a cell, where the act must
 * succeed (the control), and inside, where it must not. An act is tried for real, leaves nothing
 * behind, and says in one line and its exit code how it went:
 *
 *    reached: DETAIL         0   the act succeeded
 *    denied: ERRNO DETAIL    1   it was refused
 *    unclear: DETAIL         2   neither was shown: a failed test, inside or outside
 */
#pragma once

struct act {
	const char *name;
	const char *mechanism; /* the door that is tried, in a few words */
	const char *sentence;  /* what it would mean */
	int (*attempt)(int argc, char **argv);
};

/* Each ends with a row without a name. */
extern const struct act file_acts[], setuid_acts[], mount_acts[], process_acts[], kernel_acts[],
	net_acts[], limit_acts[], look_acts[], call_acts[], mode_acts[], road_acts[];

/* The act of this name, or NULL. */
const struct act *find_act(const char *name);

int reached(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int denied(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int unclear(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* unclear, and errno says why */
int broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * For calls that a filter or a capability check should stop at the door: EPERM, EACCES and ENOSYS
 * are denials. Any other errno comes from behind the door, so it is unclear what stopped the act.
 */
int gated(int err, const char *what);

/* Opens a path and reads from it: reached with its first bytes, or denied. */
int take(int dir, const char *path);

/* The same for what should be only opened. */
int open_any(const char *const *paths, int flags);

/* dir/name in a static buffer, of which there are a few. */
const char *join(const char *dir, const char *name);

/* argv[n] as a number. */
long number(char **argv, int n);
