/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include <inttypes.h>

/* From a warm call to a deadline that is long: each about three times the one before it. */
static const struct {
	int64_t ns;
	const char *text;
} bounds[] = {
	{ 100000, "0.0001" },  { 250000, "0.00025" }, { 500000, "0.0005" }, { 1000000, "0.001" },
	{ 2500000, "0.0025" }, { 5000000, "0.005" },  { 10000000, "0.01" }, { 25000000, "0.025" },
	{ 50000000, "0.05" },  { 100000000, "0.1" },  { 500000000, "0.5" }, { 1000000000, "1" },
	{ 5000000000, "5" },   { 30000000000, "30" },
};

_Static_assert(sizeof(bounds) / sizeof(bounds[0]) + 1 == VT_METRICS_BUCKETS,
	       "one each, and the last");

static const char *const denied_names[] = {
	[VT_DENIED_USER] = "user",   [VT_DENIED_CLIENTS] = "clients",
	[VT_DENIED_FRAME] = "frame", [VT_DENIED_POLICY] = "policy",
	[VT_DENIED_LIMIT] = "limit", [VT_DENIED_ENDING] = "ending",
};

void vt_metrics_call(struct vt_metrics *metrics, enum vt_status status, int64_t ns)
{
	size_t bucket = 0;

	while (bucket < VT_METRICS_BUCKETS - 1 && ns > bounds[bucket].ns)
		bucket++;
	metrics->calls[status]++;
	metrics->took[bucket]++;
	metrics->took_ns += ns > 0 ? (uint64_t)ns : 0;
}

static void describe(struct vt_str *out, const char *name, const char *type, const char *help)
{
	vt_str_addf(out, "# HELP vitro_%s %s\n# TYPE vitro_%s %s\n", name, help, name, type);
}

static void add(struct vt_str *out, const char *name, const char *type, const char *help,
		uint64_t value)
{
	describe(out, name, type, help);
	vt_str_addf(out, "vitro_%s %" PRIu64 "\n", name, value);
}

static void add_calls(const struct vt_metrics *metrics, struct vt_str *out)
{
	describe(out, "calls_total", "counter", "Calls that are over, by how they ended.");
	for (int i = 0; i < VT_STATUS_COUNT; i++)
		vt_str_addf(out, "vitro_calls_total{status=\"%s\"} %" PRIu64 "\n",
			    vt_status_name((enum vt_status)i), metrics->calls[i]);
}

/* Each bucket counts all that are below its bound. */
static void add_times(const struct vt_metrics *metrics, struct vt_str *out)
{
	uint64_t sum = 0;

	describe(out, "call_seconds", "histogram", "From the request to the result of a call.");
	for (size_t i = 0; i < VT_METRICS_BUCKETS; i++) {
		sum += metrics->took[i];
		vt_str_addf(out, "vitro_call_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
			    i < VT_METRICS_BUCKETS - 1 ? bounds[i].text : "+Inf", sum);
	}
	vt_str_addf(out, "vitro_call_seconds_sum %" PRIu64 ".%09" PRIu64 "\n",
		    metrics->took_ns / 1000000000, metrics->took_ns % 1000000000);
	vt_str_addf(out, "vitro_call_seconds_count %" PRIu64 "\n", sum);
}

static void add_denials(const struct vt_metrics *metrics, struct vt_str *out)
{
	describe(out, "denials_total", "counter", "What was refused, by what it was.");
	for (int i = 0; i < VT_DENIED_COUNT; i++)
		vt_str_addf(out, "vitro_denials_total{what=\"%s\"} %" PRIu64 "\n", denied_names[i],
			    metrics->denied[i]);
}

void vt_metrics_text(const struct vt_metrics *metrics, const struct vt_metrics_now *now,
		     struct vt_str *out)
{
	add_calls(metrics, out);
	add_times(metrics, out);
	add(out, "calls_waiting", "gauge", "Calls that wait for a cell, or for their turn.",
	    (uint64_t)now->cells.waiting + now->waiting);
	add(out, "cold_calls_total", "counter", "Calls that found no cell ready.",
	    now->cells.cold_calls);
	add(out, "cells_ready", "gauge", "Cells that wait for a call.", now->cells.ready);
	add(out, "cells_live", "gauge", "Cells that run a call.", now->cells.live);
	add(out, "cells_refilling", "gauge", "Cells that are being made.", now->cells.refilling);
	add(out, "refills_total", "counter", "Cells that were made.", now->cells.cells_made);
	add(out, "clients", "gauge", "Clients that are connected.", now->clients);
	add(out, "clients_total", "counter", "Clients that were let in.", metrics->clients);
	add_denials(metrics, out);
}
