/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that a result or an audit line is written to. What a cell can replace is no place to
 * report on it: neither the file, nor a name that leads to it through a folder where a cell can put
 * a link. That is judged before the file is made, by names, by the host's mounts and by what the
 * folders are.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

struct vt_output {
	const char *flag;      /* "--json" */
	const char *name;      /* as given; NULL: no file was named */
	int         fd;        /* -1: none */
	int         folder_fd; /* that it is in; -1: the caller gave a descriptor */
	const char *folder;    /* where that was found; the arena's */
	bool        made;      /* the file is new */
	/* what to tell of its way once it is open; NULL: nothing. The arena's */
	const char *note;
};

/*
 * Opens the file at output->name, or takes the descriptor N of "/dev/fd/N", unless it lies in what
 * the policy grants for writing. A link on the way that an earlier cell may have made
 * (vt_links_trusted()) is refused where it lies in what the policy grants at all; elsewhere there
 * is a note. flags: more of those of open(). With O_RDWR a file is open for reading too, by an
 * open() of its own; what is no file is only written to.
 */
int vt_output_open(struct vt_output *output, int flags, const struct vt_policy *policy,
		   const struct vt_host *host, struct vt_arena *arena, struct vt_err *err);

/*
 * The same by the plan, which has seen what it grants. A file that is refused now is closed, and
 * removed if it is new. An output that is not open is fine.
 */
int vt_output_check(struct vt_output *output, const struct vt_plan *plan,
		    const struct vt_host *host, struct vt_arena *arena, struct vt_err *err);

/*
 * Writes a result in place of all that is there; or, where no file was named, to standard output.
 * One that was named and is not open gets nothing, and nobody gets it in its stead. A terminal gets
 * the safe form, unless it is to be raw.
 */
int vt_output_write(const struct vt_output *output, const char *text, size_t len, bool raw,
		    struct vt_err *err);

void vt_output_done(struct vt_output *output);
