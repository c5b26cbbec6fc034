/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Veils: denied names inside granted folders, kept closed for as long as the cell lives, and the
 * host's named pipes in folders for reading, kept apart. Child side, as all that inside.c uses:
 * init calls it while it builds the root. vt_veil_open() is called by the supervisor too.
 *
 * While veils are made, there is a stage: a tmpfs at a name of the new root that holds their marks,
 * and on which the host's folders are attached to become layers. It is taken away before the root
 * is entered; what overlays need of it stays with them.
 */
#pragma once

#include "base/err.h"
#include "kernel/work.h"
#include "plan/plan.h"

/*
 * The two layers of a veil that can be written. Opened as the caller, who may look into the folders
 * around them: by init before it changes its user, or by the supervisor before it maps their owner.
 */
struct vt_layers {
	int folder_fd, work_fd;
};

/*
 * Opens the layers below a copy of the mount of veil->base, and insists that they are what the plan
 * and the supervisor saw.
 */
int vt_veil_open(const struct vt_build *build, int base_fd, const struct vt_work *work,
		 struct vt_layers *ret_layers, struct vt_err *err);

/* Makes the stage in the new root. Returns its descriptor. */
int vt_veil_stage(const struct vt_plan *plan, int root_fd, struct vt_err *err);

/*
 * Mounts the overlay of a build at its place in the new root, with its closed names covered.
 * mount_fd is a restricted copy of the mount of its folder, or of the veil's base where it can be
 * written; layers are those of all work folders. *ret_picked is what vt_overlay_pick() gives;
 * ret_picked may be NULL.
 */
int vt_veil_bind(const struct vt_build *build, int stage_fd, int mount_fd,
		 const struct vt_layers *layers, int root_fd, int *ret_picked, struct vt_err *err);

/* Takes the stage away. */
int vt_veil_unstage(int root_fd, struct vt_err *err);
