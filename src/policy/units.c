/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 wide; /* holds 18 digits times any unit */

#define MOST_DIGITS 18

static const struct {
	enum vt_type type;
	const char *suffix;
	uint32_t times, per; /* of the type's own unit */
} units[] = {
	{ VT_TYPE_MS, "ms", 1, 1 },   { VT_TYPE_MS, "s", 1000, 1 }, { VT_TYPE_MS, "m", 60000, 1 },
	{ VT_TYPE_KB, "K", 1, 1 },    { VT_TYPE_KB, "M", 1024, 1 }, { VT_TYPE_KB, "G", 1048576, 1 },
	{ VT_TYPE_MB, "K", 1, 1024 }, { VT_TYPE_MB, "M", 1, 1 },    { VT_TYPE_MB, "G", 1024, 1 },
};

/* digits / 10^scale; both below 10^19. */
struct decimal {
	uint64_t digits;
	unsigned scale;
};

/* Reads a decimal and leaves *ret_rest at what follows it. */
static int decimal_parse(const char *text, struct decimal *ret_decimal, const char **ret_rest)
{
	struct decimal decimal = { 0 };
	unsigned count = 0;
	const char *at = text + (*text == '-');
	bool fraction = false;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	if (*text == '-')
		return -ERANGE;
	for (;; at++) {
		if (*at == '.' && !fraction && at[1] >= '0' && at[1] <= '9') {
			fraction = true;
			continue;
		}
		if (*at < '0' || *at > '9')
			break;
		if (count == MOST_DIGITS)
			return fraction ? -E2BIG : -ERANGE;
		decimal.digits = decimal.digits * 10 + (uint64_t)(*at - '0');
		decimal.scale += fraction;
		count += decimal.digits > 0 || fraction; /* leading zeros are free */
	}
	*ret_decimal = decimal;
	*ret_rest = at;
	return 0;
}

static uint64_t power_of_ten(unsigned exponent)
{
	uint64_t power = 1;

	while (exponent--)
		power *= 10;
	return power;
}

int vt_units_whole(enum vt_type type, const char *text, int64_t *ret_value)
{
	struct decimal decimal;
	const char *suffix;
	uint32_t times = 1, per = 1;
	int status = decimal_parse(text, &decimal, &suffix);

	if (status < 0)
		return status;
	if (*suffix) {
		size_t row = 0, count = sizeof(units) / sizeof(units[0]);

		while (row < count &&
		       (units[row].type != type || strcmp(units[row].suffix, suffix) != 0))
			row++;
		if (row == count)
			return *vt_units_names(type) ? -ENOTSUP : -EINVAL;
		times = units[row].times;
		per = units[row].per;
	}
	wide divisor = (wide)power_of_ten(decimal.scale) * per;
	wide product = (wide)decimal.digits * times;
	wide value = (product + divisor - 1) / divisor;

	if (type == VT_TYPE_COUNT && product % divisor)
		return -EDOM;
	if (value > INT64_MAX)
		return -ERANGE;
	*ret_value = (int64_t)value;
	return 0;
}

int vt_units_number(const char *text, double *ret_value)
{
	struct decimal decimal;
	const char *rest;
	int status = decimal_parse(text, &decimal, &rest);

	if (status < 0)
		return status;
	if (*rest)
		return -EINVAL;
	*ret_value = (double)decimal.digits / (double)power_of_ten(decimal.scale);
	return 0;
}

void vt_units_show(enum vt_type type, int64_t value, char out[VT_UNITS_SHOWN])
{
	const char *suffix = "";
	int64_t times = 1;

	for (size_t row = 0; value > 0 && row < sizeof(units) / sizeof(units[0]); row++) {
		if (units[row].type != type || units[row].per != 1 || value % units[row].times)
			continue;
		suffix = units[row].suffix; /* the largest comes last */
		times = units[row].times;
	}
	(void)snprintf(out, VT_UNITS_SHOWN, "%lld%s", (long long)(value / times),
		       suffix); /* fits */
}

const char *vt_units_meant(enum vt_type type, const char *suffix, unsigned *ret_times)
{
	static const struct {
		enum vt_type type;
		const char *written, *unit;
		unsigned times;
	} others[] = {
		{ VT_TYPE_MS, "ms", "ms", 1 },    { VT_TYPE_MS, "s", "s", 1 },
		{ VT_TYPE_MS, "m", "m", 1 },      { VT_TYPE_MS, "msec", "ms", 1 },
		{ VT_TYPE_MS, "sec", "s", 1 },    { VT_TYPE_MS, "secs", "s", 1 },
		{ VT_TYPE_MS, "second", "s", 1 }, { VT_TYPE_MS, "seconds", "s", 1 },
		{ VT_TYPE_MS, "min", "m", 1 },    { VT_TYPE_MS, "mins", "m", 1 },
		{ VT_TYPE_MS, "minute", "m", 1 }, { VT_TYPE_MS, "minutes", "m", 1 },
		{ VT_TYPE_MS, "h", "m", 60 },     { VT_TYPE_MS, "hour", "m", 60 },
		{ VT_TYPE_MS, "hours", "m", 60 }, { VT_TYPE_MS, "d", "m", 1440 },
		{ VT_TYPE_MB, "K", "K", 1 },      { VT_TYPE_MB, "Ki", "K", 1 },
		{ VT_TYPE_MB, "KB", "K", 1 },     { VT_TYPE_MB, "KiB", "K", 1 },
		{ VT_TYPE_MB, "M", "M", 1 },      { VT_TYPE_MB, "Mi", "M", 1 },
		{ VT_TYPE_MB, "MB", "M", 1 },     { VT_TYPE_MB, "MiB", "M", 1 },
		{ VT_TYPE_MB, "G", "G", 1 },      { VT_TYPE_MB, "Gi", "G", 1 },
		{ VT_TYPE_MB, "GB", "G", 1 },     { VT_TYPE_MB, "GiB", "G", 1 },
		{ VT_TYPE_MB, "T", "G", 1024 },   { VT_TYPE_MB, "Ti", "G", 1024 },
		{ VT_TYPE_MB, "TB", "G", 1024 },  { VT_TYPE_MB, "TiB", "G", 1024 },
	};

	type = type == VT_TYPE_KB ? VT_TYPE_MB : type; /* sizes are written alike */
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i].type != type || strcasecmp(others[i].written, suffix) != 0)
			continue;
		*ret_times = others[i].times;
		return others[i].unit;
	}
	return NULL;
}

const char *vt_units_names(enum vt_type type)
{
	switch (type) {
	case VT_TYPE_MS:
		return "ms, s or m";
	case VT_TYPE_KB:
	case VT_TYPE_MB:
		return "K, M or G";
	default:
		return "";
	}
}
