/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a zygote opens: nothing that lies where calls can write, or is a running call's, whoever
 * asks for it, by whatever name. Else a call could have code run in the process that later calls
 * are forked from. Where cells are bare, it opens no more than they do, so that no link which a
 * call left has it read for later calls what these cannot. The library is preloaded, and stands
 * before those of libc's functions by which Node opens files; of what was opened the kernel says
 * where it really lies. Native addons, which could open files by others, and programs are not to be
 * had meanwhile.
 */
#pragma once

#include "plan/plan.h"

/* From here on, where calls can write anywhere. fds_fd is /proc/self/fd. Returns whether they can,
 * or a failure. */
int vt_node_gate_shut(const struct vt_plan *plan, int fds_fd);
/* Not for this thread from here on, in which nothing but vitro's own code runs; threads that a
 * module left behind are still held. */
void vt_node_gate_exempt(void);
/* In a fork: a call may open what it can write. */
void vt_node_gate_open(void);
/* Why something was not to be had, the first time since this was last asked; NULL: all was. */
const char *vt_node_gate_held(void);
