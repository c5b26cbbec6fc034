/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people write them: "5s", "0.5s", "256M", "1.5G". All in decimal arithmetic, so that
 * 1.1s is 1100 ms and not 1101, and free of the locale, so that a comma country reads the same
 * policy.
 */
#pragma once

#include <stdint.h>

#include "policy/fields.h"

enum { VT_UNITS_SHOWN = 32 };

/*
 * The value of text in the unit of the type (MS, KB, MB or COUNT), rounded up to a whole one. A
 * bare number is in that unit already. -EINVAL: not a number; -ENOTSUP: no such unit; -ERANGE:
 * negative or too big for any range; -E2BIG: more digits than anyone means; -EDOM: a fraction of
 * something that is counted.
 */
int vt_units_whole(enum vt_type type, const char *text, int64_t *ret_value);

/* The same for a plain number, of type NUMBER. */
int vt_units_number(const char *text, double *ret_value);

/*
 * A value of the type as a person writes it, in the largest unit that holds it whole: "10m",
 * "16384G".
 */
void vt_units_show(enum vt_type type, int64_t value, char out[VT_UNITS_SHOWN]);

/* The units of a type, for messages: "ms, s or m"; "" where it has none. */
const char *vt_units_names(enum vt_type type);

/*
 * The unit that a person means by an unknown suffix, and how many of it: "M" and 1 for "MB", "m"
 * and 60 for "h". NULL: nobody knows.
 */
const char *vt_units_meant(enum vt_type type, const char *suffix, unsigned *ret_times);
