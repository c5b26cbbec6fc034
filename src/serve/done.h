/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ended, as a client is told: the head of a "done". */
#pragma once

#include <stdint.h>

#include "base/str.h"
#include "pool/call.h"

/* Whether a frame has room for it. */
bool vt_done_fits(const struct vt_outcome *outcome, const struct vt_str texts[2]);

/*
 * What no frame has room for is not sent at all: then the outcome says so, without a value, and the
 * texts of standard output and error are empty.
 */
void vt_done_bound(struct vt_outcome *outcome, struct vt_str texts[2]);

/* The same where there is no room for now: what has a body is lost. */
void vt_done_lose(struct vt_outcome *outcome, struct vt_str texts[2]);

/* Begins a head, and adds all that there is to say. The body is the value and the two texts. */
void vt_done_describe(struct vt_str *head, int64_t call, const struct vt_outcome *outcome,
		      const struct vt_str texts[2]);
