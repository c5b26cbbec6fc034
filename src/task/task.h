/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the zygotes of C tools share: the program itself, in vitro_host_main(), and vitro-object,
 * which has loaded somebody's shared object.
 */
#pragma once

#include <vitro.h>

#include "launch/zygote.h"

struct vt_task_tools {
	/* In an occupant; NULL: there is none. ENOEXEC: it cannot be had. */
	vitro_function *(*find)(void *user, const char *name, struct vt_err *err);
	/* what a call will need, before there is one; may be NULL */
	void            (*touch)(void *user);
	void             *user;
};

/* The control socket, if the supervisor started this process as a zygote; else -1. */
int vt_task_control(void);

/* The rest of its life, once it has joined its hull; and all of each occupant's. */
_Noreturn void vt_task_serve(struct vt_zygote *zygote, const struct vt_task_tools *tools);
