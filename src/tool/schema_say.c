/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tool/schema_private.h"

enum { NAME_SHOWN = 48, KEY_SHOWN = 48, LISTED_MOST = 8 };

static bool is_plain(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool is_letter = ((key[i] | 0x20) >= 'a' && (key[i] | 0x20) <= 'z') ||
				 key[i] == '_' || key[i] == '$';

		if (!is_letter && (i == 0 || key[i] < '0' || key[i] > '9'))
			return false;
	}
	return len > 0;
}

static size_t show_step(char buf[static KEY_SHOWN + 32], const struct vt_schema_place *at)
{
	char key[KEY_SHOWN];
	const char *note = at->is_name ? " (its name)" : "";

	if (!at->key)
		return (size_t)sprintf(buf, "[%zu]", at->len);
	vt_utf8_show_text(key, sizeof(key), at->key, at->len);
	return (size_t)sprintf(buf, is_plain(at->key, at->len) ? ".%s%s" : "[\"%s\"]%s", key, note);
}

char *vt_schema_place_show(char buf[static VT_PLACE_SIZE], const char *name,
			   const struct vt_schema_place *at)
{
	char shown[NAME_SHOWN], tail[VT_PLACE_SIZE - NAME_SHOWN - 3];
	size_t start = sizeof(tail) - 1;

	tail[start] = '\0';
	for (; at; at = at->up) {
		char step[KEY_SHOWN + 32];
		size_t len = show_step(step, at);

		if (len > start)
			break;
		start -= len;
		memcpy(tail + start, step, len);
	}
	(void)snprintf(buf, VT_PLACE_SIZE, "%s%s%s",
		       vt_utf8_show_text(shown, sizeof(shown), name, strlen(name)), at ? "..." : "",
		       tail + start); /* fits */
	return buf;
}

static void show_real(char buf[static VT_SHOWN_SIZE], double real)
{
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(buf, VT_SHOWN_SIZE, "%.*g", digits, real); /* fits */
		if (strtod(buf, NULL) == real)
			return;
	}
}

char *vt_data_show(char buf[static VT_SHOWN_SIZE], const json_t *value)
{
	static const char *const words[] = {
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null",
	};

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return strcpy(buf, json_object_size(value) ? "an object" : "an empty object");
	case JSON_ARRAY:
		return strcpy(buf, json_array_size(value) ? "an array" : "an empty array");
	case JSON_STRING:
		buf[0] = '"';
		vt_utf8_show_text(buf + 1, VT_SHOWN_SIZE - 2, json_string_value(value),
				  json_string_length(value));
		return strcat(buf, "\"");
	case JSON_INTEGER:
		(void)snprintf(buf, VT_SHOWN_SIZE, "%" JSON_INTEGER_FORMAT,
			       json_integer_value(value)); /* fits */
		return buf;
	case JSON_REAL:
		show_real(buf, json_real_value(value));
		return buf;
	default:
		return strcpy(buf, words[json_typeof(value)]);
	}
}

/* Adds one of count to a list: "a, b or c". False: it does not fit, and the list ends in "...". */
static bool add_item(char *buf, size_t size, const char *item, size_t index, size_t count)
{
	size_t used = strlen(buf);
	const char *before = index == 0 ? "" : index + 1 == count ? " or " : ", ";

	/* Every item leaves room for the dots. */
	if (used + strlen(before) + strlen(item) + 6 > size) {
		(void)strcpy(buf + used, ", ...");
		return false;
	}
	(void)sprintf(buf + used, "%s%s", before, item);
	return true;
}

char *vt_data_show_types(char buf[static VT_WANTED_SIZE], unsigned types)
{
	static const struct {
		unsigned type;
		const char *words;
	} names[] = {
		{ VT_DATA_OBJECT, "an object" },   { VT_DATA_ARRAY, "an array" },
		{ VT_DATA_STRING, "a string" },    { VT_DATA_NUMBER, "a number" },
		{ VT_DATA_INTEGER, "an integer" }, { VT_DATA_BOOLEAN, "true or false" },
		{ VT_DATA_NULL, "null" },
	};
	size_t put = 0;

	if (types & VT_DATA_NUMBER)
		types &= ~(unsigned)VT_DATA_INTEGER;
	size_t count = (size_t)__builtin_popcount(types);

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (types & names[i].type)
			add_item(buf, VT_WANTED_SIZE, names[i].words, put++, count);
	return buf;
}

char *vt_data_show_all(char buf[static VT_WANTED_SIZE], const json_t *values)
{
	size_t count = json_array_size(values);
	size_t listed = count <= LISTED_MOST ? count : LISTED_MOST;
	char item[VT_SHOWN_SIZE];

	(void)strcpy(buf, count == 0 ? "nothing at all" : "");
	for (size_t i = 0; i < listed; i++)
		if (!add_item(buf, VT_WANTED_SIZE, vt_data_show(item, json_array_get(values, i)), i,
			      count))
			return buf;
	if (listed == count)
		return buf;
	(void)snprintf(item, sizeof(item), "%zu more", count - listed); /* fits */
	add_item(buf, VT_WANTED_SIZE, item, 1, 2);
	return buf;
}

bool vt_schema_node_show(char *buf, size_t size, const struct vt_schema_node *node)
{
	char words[VT_WANTED_SIZE] = "";

	for (size_t i = 0; i < node->count && !*words; i++) {
		const struct vt_rule *rule = &node->rules[i];

		if (rule->keyword->check == vt_rule_const)
			vt_data_show(words, rule->value);
		else if (rule->keyword->check == vt_rule_enum)
			vt_data_show_all(words, rule->value);
		else if (rule->keyword->check == vt_rule_type)
			vt_data_show_types(words, rule->types);
		else if (rule->keyword->check == vt_rule_ref)
			return vt_schema_node_show(buf, size, rule->node);
	}
	return *words && strlen(words) < size && strcpy(buf, words);
}
