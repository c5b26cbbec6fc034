/* SPDX-License-Identifier: Apache-2.0 */
/* What a server counts, and the text that Prometheus reads of it. Pure. */
#pragma once

#include <stdint.h>

#include "base/str.h"
#include "pool/pool.h"
#include "watch/verdict.h"

/* Upper bounds of how long calls take, in seconds; the last bucket has none. */
enum { VT_METRICS_BUCKETS = 15 };

/* What was refused. */
enum vt_denial_kind {
	VT_DENIED_USER,    /* a client that is another user's */
	VT_DENIED_CLIENTS, /* one too many */
	VT_DENIED_FRAME,   /* what was not understood, or was too large */
	VT_DENIED_POLICY,  /* a policy that cannot be had here, or one too many */
	VT_DENIED_LIMIT,   /* a call beyond what one client may have */
	VT_DENIED_ENDING,  /* a call after the server was told to end */
	VT_DENIED_COUNT
};

struct vt_metrics {
	uint64_t calls[VT_STATUS_COUNT];
	uint64_t took[VT_METRICS_BUCKETS]; /* calls by their time, each in one bucket */
	uint64_t took_ns;                  /* of all together */
	uint64_t denied[VT_DENIED_COUNT];
	uint64_t clients; /* that were let in */
};

/* What is so now, and is not counted here. */
struct vt_metrics_now {
	struct vt_pool_counts cells;
	unsigned clients;
	unsigned waiting; /* calls that wait for their turn, of those that no pool has yet */
};

/* A call is over, after so long. */
void vt_metrics_call(struct vt_metrics *metrics, enum vt_status status, int64_t ns);

/* Adds the text, in the format of Prometheus, version 0.0.4. */
void vt_metrics_text(const struct vt_metrics *metrics, const struct vt_metrics_now *now,
		     struct vt_str *out);
