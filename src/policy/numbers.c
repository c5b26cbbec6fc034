/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/units.h"
#include "policy/value.h"

static int fail_range(const struct vt_field_row *row, const char *shown,
		      const struct vt_source *source, struct vt_err *err)
{
	char least[VT_UNITS_SHOWN], most[VT_UNITS_SHOWN];

	if (!*vt_units_names(row->type))
		return vt_source_fail(err, source, ERANGE, "%s is out of range (%s)", shown,
				      row->info.range);
	vt_units_show(row->type, (int64_t)row->least, least);
	vt_units_show(row->type, (int64_t)row->most, most);
	return vt_source_fail(err, source, ERANGE, "%s is out of range (%s to %s)", shown, least,
			      most);
}

static int fail_fraction(const char *shown, const struct vt_source *source, struct vt_err *err)
{
	return vt_source_fail(err, source, EINVAL, "%s is not a whole number", shown);
}

/* Stores a value after its range; NaN is in no range. shown is the value as the user wrote it. */
static int store(struct vt_policy *policy, enum vt_field field, double value, const char *shown,
		 const struct vt_source *source, struct vt_err *err)
{
	const struct vt_field_row *row = vt_field_row(field);

	if (!(value >= row->least && value <= row->most))
		return fail_range(row, shown, source, err);
	if (row->type == VT_TYPE_NUMBER)
		*(double *)vt_value_member(policy, field) = value;
	else
		*(int64_t *)vt_value_member(policy, field) = (int64_t)value;
	vt_value_mark(policy, field);
	return 0;
}

static bool can_be_none(const struct vt_field_row *row)
{
	return row->number < 0;
}

/* "None" is a value too: it lifts the limit that an extended policy set. */
static int store_none(struct vt_policy *policy, enum vt_field field)
{
	if (vt_field_row(field)->type == VT_TYPE_NUMBER)
		*(double *)vt_value_member(policy, field) = -1;
	else
		*(int64_t *)vt_value_member(policy, field) = -1;
	vt_value_mark(policy, field);
	return 0;
}

static bool has_units(enum vt_type type)
{
	return *vt_units_names(type) != '\0';
}

/* No range of the table reaches so far, and a double still holds halves there. */
#define WHOLE_FROM 1e15

static double round_up(double number)
{
	/* -0.5 must not become 0. */
	if (number <= 0 || number >= WHOLE_FROM)
		return number;
	int64_t whole = (int64_t)number;

	return (double)(whole + ((double)whole < number));
}

static bool is_whole(double number)
{
	return number <= -WHOLE_FROM || number >= WHOLE_FROM || (double)(int64_t)number == number;
}

static bool is_plain(const char *text)
{
	return *text && text[strspn(text, "0123456789.")] == '\0';
}

/* Whoever writes "5" for a time has seconds in mind as often as the key's own unit. */
static int fail_plain(const struct vt_field_row *row, const char *text,
		      const struct vt_source *source, struct vt_err *err)
{
	return vt_source_fail(err, source, EINVAL,
			      "\"%s\" has no unit (%s); without quotes it is a number of %s",
			      vt_show(text).text, vt_units_names(row->type),
			      row->type == VT_TYPE_MS   ? "milliseconds"
			      : row->type == VT_TYPE_KB ? "kilobytes"
							: "megabytes");
}

int vt_number_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		   const struct vt_source *source, struct vt_err *err)
{
	const struct vt_field_row *row = vt_field_row(field);
	char shown[40];

	if (json_is_null(value) && can_be_none(row))
		return store_none(policy, field);
	if (json_is_string(value) && has_units(row->type) && is_plain(json_string_value(value)))
		return fail_plain(row, json_string_value(value), source, err);
	if (json_is_string(value) && has_units(row->type))
		return vt_number_text(policy, field, json_string_value(value), source, err);
	if (json_is_integer(value)) {
		(void)snprintf(shown, sizeof(shown), "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value)); /* 20 digits at most */
		return store(policy, field, (double)json_integer_value(value), shown, source, err);
	}
	if (json_is_real(value)) {
		double number = json_real_value(value);

		(void)snprintf(shown, sizeof(shown), "%.15g", number); /* 24 bytes at most */
		if (row->type == VT_TYPE_COUNT && !is_whole(number))
			return fail_fraction(shown, source, err);
		if (row->type != VT_TYPE_NUMBER)
			number = round_up(number);
		return store(policy, field, number, shown, source, err);
	}
	char want[120];

	(void)snprintf(want, sizeof(want), "%s%s", vt_type_want(row->type),
		       can_be_none(row) ? ", or null" : ""); /* the longest has 60 */
	return vt_value_wrong(value, want, source, err);
}

/* "64MB", "5 s": what is meant is plain, and how it is written here is told. */
static int fail_unit(enum vt_type type, const char *text, const struct vt_source *source,
		     struct vt_err *err)
{
	const int digits = (int)strspn(text, "0123456789.");
	const char *suffix = text + digits;
	unsigned times = 1;
	const char *unit = vt_units_meant(type, suffix + strspn(suffix, " "), &times);
	struct vt_shown shown = vt_show(text);

	if (unit && times > 1)
		return vt_source_fail(err, source, EINVAL,
				      "'%s' has no unit known here (%s); write %.10g%s", shown.text,
				      vt_units_names(type), strtod(text, NULL) * times, unit);
	if (unit)
		return vt_source_fail(err, source, EINVAL,
				      "'%s' has no unit known here (%s); write %.*s%s", shown.text,
				      vt_units_names(type), digits, text, unit);
	return vt_source_fail(err, source, EINVAL, "'%s' has no unit known here (%s)", shown.text,
			      vt_units_names(type));
}

static int fail_text(const struct vt_field_row *row, int status, const char *text,
		     const struct vt_source *source, struct vt_err *err)
{
	struct vt_shown shown = vt_show(text);

	switch (status) {
	case -ERANGE:
		return fail_range(row, shown.text, source, err);
	case -EDOM:
		return fail_fraction(shown.text, source, err);
	case -E2BIG:
		return vt_source_fail(err, source, EINVAL, "%s has too many digits", shown.text);
	case -ENOTSUP:
		return fail_unit(row->type, text, source, err);
	default:
		if (!has_units(row->type))
			return vt_source_fail(err, source, EINVAL, "'%s' is not a number",
					      shown.text);
		return vt_source_fail(err, source, EINVAL,
				      "'%s' is not a %s; write a number and its unit (%s)",
				      shown.text, row->type == VT_TYPE_MS ? "time" : "size",
				      vt_units_names(row->type));
	}
}

int vt_number_text(struct vt_policy *policy, enum vt_field field, const char *text,
		   const struct vt_source *source, struct vt_err *err)
{
	const struct vt_field_row *row = vt_field_row(field);
	double number = 0;
	int64_t whole = 0;
	int status;

	if (can_be_none(row) && strcmp(text, "none") == 0)
		return store_none(policy, field);
	if (row->type == VT_TYPE_NUMBER) {
		status = vt_units_number(text, &number);
	} else {
		status = vt_units_whole(row->type, text, &whole);
		number = (double)whole; /* exact within any range of the table */
	}
	if (status < 0)
		return fail_text(row, status, text, source, err);
	return store(policy, field, number, vt_show(text).text, source, err);
}
