/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "policy/fields.h"
#include "policy/units.h"

/* A whole number is written without a point. */
static json_t *number(double value)
{
	json_int_t whole = (json_int_t)value;

	return (double)whole == value ? json_integer(whole) : json_real(value);
}

/* The JSON types of a numeric field: a number, a text with a unit, null where none is a value. */
static json_t *numeric_types(const struct vt_field_row *row)
{
	json_t *types = json_array();

	json_array_append_new(types,
			      json_string(row->type == VT_TYPE_COUNT ? "integer" : "number"));
	if (*vt_units_names(row->type))
		json_array_append_new(types, json_string("string"));
	if (row->number < 0)
		json_array_append_new(types, json_string("null"));
	return types;
}

static json_t *numeric_schema(const struct vt_field_row *row)
{
	const char *pattern = row->type == VT_TYPE_MS ? "^[0-9]+([.][0-9]+)?(ms|s|m)$"
						      : "^[0-9]+([.][0-9]+)?[KMG]$";
	json_t *schema = json_object();

	json_object_set_new(schema, "type", numeric_types(row));
	if (*vt_units_names(row->type))
		json_object_set_new(schema, "pattern", json_string(pattern));
	/* Rounding up takes what lies between 0 and 1 to 1. */
	if (*vt_units_names(row->type) && row->least == 1)
		json_object_set_new(schema, "exclusiveMinimum", json_integer(0));
	else
		json_object_set_new(schema, "minimum", number(row->least));
	json_object_set_new(schema, "maximum", number(row->most));
	json_object_set_new(schema, "default", row->number < 0 ? json_null() : number(row->number));
	return schema;
}

static json_t *word_schema(const char *const *words, const char *fallback)
{
	json_t *choices = json_array();

	for (size_t i = 0; words[i]; i++)
		json_array_append_new(choices, json_string(words[i]));
	return json_pack("{s:o, s:s}", "enum", choices, "default", fallback);
}

static json_t *list_schema(enum vt_type type)
{
	json_t *item = json_pack("{s:s, s:i}", "type", "string", "minLength", 1);

	if (type == VT_TYPE_GRANTS) {
		json_t *move = json_pack("{s:s, s:{s:O, s:O}, s:[s,s], s:b}", "type", "object",
					 "properties", "from", item, "to", item, "required", "from",
					 "to", "additionalProperties", 0);

		item = json_pack("{s:[o,o]}", "anyOf", item, move);
	}
	return json_pack("{s:s, s:o}", "type", "array", "items", item);
}

static json_t *field_schema(const struct vt_field_row *row)
{
	if (vt_type_is_numeric(row->type))
		return numeric_schema(row);
	if (row->type == VT_TYPE_SYSCALLS)
		return json_pack("{s:[o, {s:s, s:s}], s:s}", "anyOf",
				 word_schema(vt_type_words(row->type), row->info.fallback), "type",
				 "string", "pattern", "/|[.]json$", "default", row->info.fallback);
	if (vt_type_words(row->type))
		return word_schema(vt_type_words(row->type), row->info.fallback);
	if (row->type == VT_TYPE_PATH)
		return json_pack("{s:s, s:s}", "type", "string", "default", row->info.fallback);
	if (row->type == VT_TYPE_ENV)
		return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
				 "string");
	return list_schema(row->type);
}

/* Where a key's schema goes, and by which name: into its group's properties, made when first met.
 */
static json_t *home_of(json_t *properties, const char *key, const char **ret_name)
{
	const char *dot = strchr(key, '.');

	*ret_name = dot ? dot + 1 : key;
	if (!dot)
		return properties;
	json_t *group = json_object_getn(properties, key, (size_t)(dot - key));

	if (!group) {
		group = json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0,
				  "properties");
		json_object_setn_new(properties, key, (size_t)(dot - key), group);
	}
	return json_object_get(group, "properties");
}

static json_t *policy_schema(void)
{
	json_t *properties = json_pack(
		"{s:{s:s}, s:{s:s, s:s}}", "$schema", "type", "string", "extends", "type", "string",
		"description",
		"Another policy to start from: a file, or default, strict or compute.");

	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const struct vt_field_row *row = vt_field_row(field);
		const char *name;
		json_t *home = home_of(properties, row->info.key, &name);
		json_t *schema = field_schema(row);

		json_object_set_new(schema, "description", json_string(row->info.sentence));
		json_object_set_new(home, name, schema);
	}
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "$schema",
			 "https://json-schema.org/draft/2020-12/schema", "title", "vitro policy",
			 "type", "object", "additionalProperties", 0, "properties", properties);
}

void vt_policy_schema(struct vt_str *out)
{
	AUTO_JSON json_t *schema = policy_schema();
	char *text = schema ? json_dumps(schema, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;

	/* jansson takes NULL where memory ran out, and yields NULL in the end. */
	if (!text) {
		out->failed = true;
		return;
	}
	vt_str_add(out, text);
	vt_str_add(out, "\n");
	free(text);
}
