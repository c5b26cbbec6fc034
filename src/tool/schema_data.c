/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/schema_private.h"

/* Up to so many items are compared each with each; sorting would have to allocate. */
#define FEW_ITEMS 32

__extension__ typedef unsigned __int128 wide;

/* 2^63: the least real that no integer of jansson's reaches. */
static const double integers_end = 9223372036854775808.0;

unsigned vt_data_types(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return VT_DATA_OBJECT;
	case JSON_ARRAY:
		return VT_DATA_ARRAY;
	case JSON_STRING:
		return VT_DATA_STRING;
	case JSON_INTEGER:
		return VT_DATA_INTEGER | VT_DATA_NUMBER;
	case JSON_REAL:
		return VT_DATA_NUMBER |
		       (trunc(json_real_value(value)) == json_real_value(value) ? VT_DATA_INTEGER
										: 0);
	case JSON_TRUE:
	case JSON_FALSE:
		return VT_DATA_BOOLEAN;
	case JSON_NULL:
		return VT_DATA_NULL;
	}
	return 0;
}

/* A real may be between two integers, and an integer between two reals: neither is converted. */
static int compare_mixed(json_int_t integer, double real)
{
	if (real >= integers_end)
		return -1;
	if (real < -integers_end)
		return 1;
	json_int_t whole = (json_int_t)real; /* towards 0 */
	double rest = real - (double)whole;

	if (integer != whole)
		return integer < whole ? -1 : 1;
	return rest > 0 ? -1 : rest < 0;
}

int vt_data_compare(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(a) < json_integer_value(b)
			       ? -1
			       : json_integer_value(a) > json_integer_value(b);
	if (json_is_integer(a))
		return compare_mixed(json_integer_value(a), json_real_value(b));
	if (json_is_integer(b))
		return -compare_mixed(json_integer_value(b), json_real_value(a));
	return json_real_value(a) < json_real_value(b) ? -1
						       : json_real_value(a) > json_real_value(b);
}

static int equal(const json_t *a, const json_t *b, int64_t *steps, unsigned depth);

static int equal_arrays(const json_t *a, const json_t *b, int64_t *steps, unsigned depth)
{
	size_t count = json_array_size(a);

	if (count != json_array_size(b))
		return 0;
	for (size_t i = 0; i < count; i++) {
		int status = equal(json_array_get(a, i), json_array_get(b, i), steps, depth + 1);

		if (status != 1)
			return status;
	}
	return 1;
}

static int equal_objects(const json_t *a, const json_t *b, int64_t *steps, unsigned depth)
{
	if (json_object_size(a) != json_object_size(b))
		return 0;
	for (void *at = json_object_iter((json_t *)a); at;
	     at = json_object_iter_next((json_t *)a, at)) {
		const json_t *other = json_object_getn(b, json_object_iter_key(at),
						       json_object_iter_key_len(at));
		int status = other ? equal(json_object_iter_value(at), other, steps, depth + 1) : 0;

		if (status != 1)
			return status;
	}
	return 1;
}

static int equal(const json_t *a, const json_t *b, int64_t *steps, unsigned depth)
{
	if (--*steps < 0 || depth > VT_SCHEMA_MAX_NESTING)
		return -E2BIG;
	if (json_is_number(a) && json_is_number(b))
		return vt_data_compare(a, b) == 0;
	if (json_typeof(a) != json_typeof(b))
		return 0;
	if (json_is_array(a))
		return equal_arrays(a, b, steps, depth);
	if (json_is_object(a))
		return equal_objects(a, b, steps, depth);
	if (!json_is_string(a))
		return 1;
	size_t len = json_string_length(a);

	*steps -= (int64_t)(len / VT_STEP_BYTES);
	return len == json_string_length(b) &&
	       memcmp(json_string_value(a), json_string_value(b), len) == 0;
}

int vt_data_equal(const json_t *a, const json_t *b, int64_t *steps)
{
	return equal(a, b, steps, 0);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 0x100000001b3; /* FNV-1a */
	return hash;
}

static uint64_t hash_number(const json_t *value, uint64_t hash)
{
	double real = json_number_value(value);
	json_int_t integer = json_integer_value(value); /* 0 of a real */

	/* What is equal has one hash: 1 and 1.0, 0 and -0.0. */
	if (json_is_real(value) && real >= -integers_end && real < integers_end &&
	    trunc(real) == real)
		integer = (json_int_t)real;
	else if (json_is_real(value))
		return mix(hash, &real, sizeof(real));
	return mix(hash, &integer, sizeof(integer));
}

/* Equal values have equal hashes. Depth is cut, not refused: comparing does that. */
static uint64_t hash_value(const json_t *value, int64_t *steps, unsigned depth)
{
	uint64_t hash = 0xcbf29ce484222325 ^ (json_is_number(value) ? 99 : json_typeof(value));

	if (--*steps < 0 || depth > VT_SCHEMA_MAX_NESTING)
		return 0;
	if (json_is_number(value))
		return hash_number(value, hash);
	*steps -= (int64_t)(json_string_length(value) / VT_STEP_BYTES);
	if (json_is_string(value))
		return mix(hash, json_string_value(value), json_string_length(value));
	for (size_t i = 0; i < json_array_size(value); i++) {
		uint64_t item = hash_value(json_array_get(value, i), steps, depth + 1);

		hash = mix(hash, &item, sizeof(item));
	}
	for (void *at = json_object_iter((json_t *)value); at;
	     at = json_object_iter_next((json_t *)value, at)) {
		uint64_t item = hash_value(json_object_iter_value(at), steps, depth + 1);

		/* A sum: members have no order. */
		hash += mix(item, json_object_iter_key(at), json_object_iter_key_len(at));
	}
	return hash;
}

struct hashed {
	uint64_t hash;
	size_t index;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *one = a, *other = b;

	if (one->hash != other->hash)
		return one->hash < other->hash ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

/* Compares each with those after it, as long as hashes are equal; hashed is NULL where there are
 * none. */
static int find_pair(const json_t *array, const struct hashed *hashed, int64_t *steps,
		     size_t *ret_i, size_t *ret_j)
{
	size_t count = json_array_size(array);

	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count; j++) {
			size_t a = hashed ? hashed[i].index : i, b = hashed ? hashed[j].index : j;

			if (hashed && hashed[i].hash != hashed[j].hash)
				break;
			int status = equal(json_array_get(array, a), json_array_get(array, b),
					   steps, 0);

			if (status == 0)
				continue;
			*ret_i = a;
			*ret_j = b;
			return status < 0 ? status : 0;
		}
	}
	return 1;
}

int vt_data_unique(const json_t *array, int64_t *steps, size_t *ret_i, size_t *ret_j)
{
	size_t count = json_array_size(array);

	if (count <= FEW_ITEMS)
		return find_pair(array, NULL, steps, ret_i, ret_j);
	if (count > VT_SCHEMA_MAX_STEPS)
		return -E2BIG;
	struct hashed *hashed = calloc(count, sizeof(*hashed));

	if (!hashed)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		hashed[i] = (struct hashed){ hash_value(json_array_get(array, i), steps, 0), i };
	qsort(hashed, count, sizeof(*hashed), by_hash);
	int status = *steps < 0 ? -E2BIG : find_pair(array, hashed, steps, ret_i, ret_j);

	free(hashed);
	return status;
}

/* Digits of "-1.25e-07", whatever the locale's point is. */
static struct vt_exact read_decimal(const char *text)
{
	struct vt_exact decimal = { 0 };
	bool is_fraction = false;

	for (; *text && *text != 'e'; text++) {
		if (*text >= '0' && *text <= '9') {
			decimal.digits = decimal.digits * 10 + (uint64_t)(*text - '0');
			decimal.exponent -= is_fraction;
		} else if (*text != '-') {
			is_fraction = true;
		}
	}
	if (*text == 'e')
		decimal.exponent += atoi(text + 1);
	return decimal;
}

struct vt_exact vt_exact_of(const json_t *number)
{
	char text[32];

	if (json_is_integer(number)) {
		uint64_t bits = (uint64_t)json_integer_value(number);

		return (struct vt_exact){ json_integer_value(number) < 0 ? -bits : bits, 0 };
	}
	/* 17 digits tell any two reals apart; 0.1 needs one, and is meant as written. */
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits,
			       json_real_value(number)); /* 24 bytes at most */
		if (strtod(text, NULL) == json_real_value(number))
			break;
	}
	return read_decimal(text);
}

bool vt_exact_divides(struct vt_exact unit, struct vt_exact value)
{
	int shift = value.exponent - unit.exponent;

	if (value.digits == 0)
		return true;
	if (shift >= 0) {
		wide rest = value.digits % unit.digits;

		for (; shift > 0 && rest; shift--)
			rest = rest * 10 % unit.digits;
		return rest == 0;
	}
	/* More places behind the point than all of value's digits: only 0 could be divided. */
	if (shift < -19)
		return false;
	wide scaled = unit.digits;

	for (; shift < 0; shift++)
		scaled *= 10;
	return value.digits % scaled == 0;
}

size_t vt_data_length(const json_t *string)
{
	const char *text = json_string_value(string);
	size_t count = 0, len = json_string_length(string);

	/* All bytes but those that continue a character. */
	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}
