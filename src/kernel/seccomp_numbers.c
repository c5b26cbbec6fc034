/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/seccomp_profile.h"

/* clang-format off */
/* Since 424 new calls have one number on all machines. */
const struct vt_seccomp_number vt_seccomp_numbers[] = {
	{ "uretprobe", 335, true },
	{ "uprobe", 336, true },
	{ "futex_waitv", 449, false },
	{ "set_mempolicy_home_node", 450, false },
	{ "cachestat", 451, false },
	{ "fchmodat2", 452, false },
	{ "map_shadow_stack", 453, false },
	{ "futex_wake", 454, false },
	{ "futex_wait", 455, false },
	{ "futex_requeue", 456, false },
	{ "statmount", 457, false },
	{ "listmount", 458, false },
	{ "lsm_get_self_attr", 459, false },
	{ "lsm_set_self_attr", 460, false },
	{ "lsm_list_modules", 461, false },
	{ "mseal", 462, false },
	{ "setxattrat", 463, false },
	{ "getxattrat", 464, false },
	{ "listxattrat", 465, false },
	{ "removexattrat", 466, false },
	{ "open_tree_attr", 467, false },
	{ "file_getattr", 468, false },
	{ "file_setattr", 469, false },
	{ NULL },
};
/* clang-format on */
