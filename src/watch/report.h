/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an evaluation tells of itself, on a pipe of its own: one JSON object, {"value": V} or
 * {"error": {"type": T, "message": M, "traceback": B}}. The code in the cell can write there too,
 * and says no more with that than it could have returned or raised; what is not of this form is
 * nothing. Pure.
 */
#pragma once

#include <jansson.h>

#include "base/json_scan.h"
#include "watch/verdict.h"

/* Of an error, all that is longer is cut. */
enum { VT_REPORT_TYPE = 512, VT_REPORT_TEXT = 64 << 10 };

/*
 * The value, in text; at is NULL where there is none that the verdict lets it have: only what ended
 * well has one.
 */
struct vt_json_span vt_report_value(const char *text, size_t len, const struct vt_verdict *verdict);

/*
 * What was raised, as results have it; NULL where there is nothing, memory included, but that the
 * code said itself how it exits.
 */
json_t *vt_report_error(const char *text, size_t len, const struct vt_verdict *verdict);
