/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capabilities: giving up all of them, for good. Child side: no malloc, hence not through libcap.
 */
#pragma once

#include "base/err.h"

/*
 * Empties the bounding and ambient sets, locks the securebits so that no uid change or exec brings
 * any back, and empties the process's own sets.
 */
int vt_caps_drop(struct vt_err *err);

/*
 * The same but for the process's own sets, as far as the caller may: without CAP_SETPCAP the
 * bounding set stays as it is, which no_new_privs makes useless.
 */
int vt_caps_bound(struct vt_err *err);

/* Empties the process's own sets, which is enough for one that never execs. */
int vt_caps_empty(struct vt_err *err);

/* prctl(PR_SET_NO_NEW_PRIVS): no exec gives privileges any more. */
int vt_caps_no_new_privs(struct vt_err *err);
