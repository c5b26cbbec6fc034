/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending every process of a cell that has no pid namespace, from its init, to which all of them are
 * children or come as orphans (PR_SET_CHILD_SUBREAPER). Child side: no malloc.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

enum vt_sweep {
	VT_SWEEP_NAMESPACE, /* not needed: init is pid 1, and its end is everybody's */
	VT_SWEEP_DOMAIN,    /* init's Landlock domain lets it signal the cell and nobody else */
	VT_SWEEP_USER,      /* init's user id is the cell's alone */
	VT_SWEEP_TREE,      /* by looking for children of children in /proc */
};

/*
 * Makes the caller the cell's reaper. For VT_SWEEP_DOMAIN it enters that domain, and needs
 * no_new_privs for it. For that and VT_SWEEP_USER it makes sure that a signal to everybody spares
 * its own parent: else it fails with EPERM.
 */
int vt_sweep_prepare(enum vt_sweep how, struct vt_err *err);

/*
 * Kills all and waits until none is left. If one of them is `wanted`, *ret_status is its wait
 * status; else it is untouched. Somebody who is traced from within the cell can be waited for only
 * here, when the tracer is gone.
 */
void vt_sweep(enum vt_sweep how, pid_t wanted, int *ret_status);
