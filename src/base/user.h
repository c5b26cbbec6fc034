/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an id of a user says. In a user namespace that does not map all ids, the kernel shows one
 * and the same for each user that has none there: who has that id is not known by it. Runs
 * anywhere.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether who is shown with this id is one user. Not, where that cannot be found out. */
bool vt_user_is_known(uid_t uid);

/* The same of an overflow id, and of a map as /proc/self/uid_map shows it. Pure. */
bool vt_user_is_one(uid_t uid, const char *overflow, const char *map);
