/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/closest.h"
#include "tool/schema_private.h"

#define COMPILER(name)                                                                            \
	static int name(struct vt_compiling *c, struct vt_schema_node *node, const json_t *value, \
			const struct vt_schema_place *at, struct vt_rule *rule)

/* ---- plain values -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned type;
} type_names[] = {
	{ "string", VT_DATA_STRING }, { "integer", VT_DATA_INTEGER },
	{ "number", VT_DATA_NUMBER }, { "boolean", VT_DATA_BOOLEAN },
	{ "array", VT_DATA_ARRAY },   { "object", VT_DATA_OBJECT },
	{ "null", VT_DATA_NULL },
};

static int add_type(struct vt_compiling *c, const json_t *value, const struct vt_schema_place *at,
		    unsigned *types)
{
	static const char want[] = "one of \"string\", \"integer\", \"number\", \"boolean\", "
				   "\"array\", \"object\" or \"null\"";
	struct vt_closest closest;
	char shown[VT_SHOWN_SIZE];

	if (!json_is_string(value))
		return vt_compiling_wrong(c, at, value, want);
	vt_closest_init(&closest, json_string_value(value));
	for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++) {
		if (strcmp(type_names[i].name, json_string_value(value)) == 0) {
			*types |= type_names[i].type;
			return 0;
		}
		vt_closest_try(&closest, type_names[i].name, type_names[i].name);
	}
	if (!closest.best)
		return vt_compiling_wrong(c, at, value, want);
	return vt_compiling_fail(c, at, EINVAL, "there is no type %s; did you mean \"%s\"?",
				 vt_data_show(shown, value), closest.best);
}

COMPILER(compile_type)
{
	(void)node;
	if (!json_is_array(value))
		return add_type(c, value, at, &rule->types);
	if (json_array_size(value) == 0)
		return vt_compiling_wrong(c, at, value, "a type, or some in an array");
	for (size_t i = 0; i < json_array_size(value); i++) {
		int status = add_type(c, json_array_get(value, i), VT_ELEMENT(at, i), &rule->types);

		if (status < 0)
			return status;
	}
	return 0;
}

COMPILER(compile_value)
{
	(void)c, (void)node, (void)at;
	rule->value = value;
	return 0;
}

COMPILER(compile_enum)
{
	(void)node;
	if (!json_is_array(value))
		return vt_compiling_wrong(c, at, value, "an array of values");
	rule->value = value;
	return 0;
}

COMPILER(compile_number)
{
	(void)node;
	if (!json_is_number(value))
		return vt_compiling_wrong(c, at, value, "a number");
	rule->value = value;
	return 0;
}

COMPILER(compile_multiple)
{
	(void)node;
	if (!json_is_number(value) || json_number_value(value) <= 0)
		return vt_compiling_wrong(c, at, value, "a number above 0");
	rule->decimal = vt_exact_of(value);
	rule->unit = value;
	return 0;
}

static int read_count(struct vt_compiling *c, const json_t *value, const struct vt_schema_place *at,
		      size_t *ret_count)
{
	if (!(vt_data_types(value) & VT_DATA_INTEGER) || json_number_value(value) < 0)
		return vt_compiling_wrong(c, at, value, "a whole number, 0 or more");
	if (json_is_integer(value))
		*ret_count = (size_t)json_integer_value(value);
	else
		*ret_count = json_real_value(value) < 1e18 ? (size_t)json_real_value(value)
							   : SIZE_MAX;
	return 0;
}

COMPILER(compile_count)
{
	(void)node;
	return read_count(c, value, at, &rule->count);
}

COMPILER(compile_pattern)
{
	(void)node;
	if (!json_is_string(value))
		return vt_compiling_wrong(c, at, value, "a regular expression in a string");
	return vt_compiling_pattern(c, json_string_value(value), json_string_length(value), at,
				    &rule->pattern);
}

COMPILER(compile_unique)
{
	(void)node, (void)rule;
	if (!json_is_boolean(value))
		return vt_compiling_wrong(c, at, value, "true or false");
	return json_is_false(value);
}

static int check_names(struct vt_compiling *c, const json_t *value,
		       const struct vt_schema_place *at)
{
	if (!json_is_array(value))
		return vt_compiling_wrong(c, at, value, "an array of names");
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return vt_compiling_wrong(c, VT_ELEMENT(at, i), json_array_get(value, i),
						  "a property's name");
	return 0;
}

COMPILER(compile_required)
{
	(void)node;
	rule->value = value;
	return check_names(c, value, at);
}

/* ---- schemas ------------------------------------------------------------------------------- */

COMPILER(compile_node)
{
	(void)node;
	return vt_compiling_node(c, value, at, &rule->node);
}

/* For what another keyword's rule refers to. */
COMPILER(compile_unused_node)
{
	int status = compile_node(c, node, value, at, rule);

	return status < 0 ? status : 1;
}

COMPILER(compile_unused_count)
{
	int status = compile_count(c, node, value, at, rule);

	return status < 0 ? status : 1;
}

COMPILER(compile_nodes)
{
	size_t count = json_array_size(value);
	const struct vt_schema_node **nodes;

	(void)node;
	if (!json_is_array(value) || count == 0)
		return vt_compiling_wrong(c, at, value, "an array of schemas, one at least");
	nodes = vt_arena_array(vt_compiling_arena(c), count, sizeof(const struct vt_schema_node *));
	if (!nodes)
		return vt_compiling_no_memory(c);
	for (size_t i = 0; i < count; i++) {
		int status = vt_compiling_node(c, json_array_get(value, i), VT_ELEMENT(at, i),
					       &nodes[i]);

		if (status < 0)
			return status;
	}
	rule->nodes = nodes;
	rule->count = count;
	return 0;
}

COMPILER(compile_items)
{
	if (json_is_array(value))
		return vt_compiling_wrong(c, at, value,
					  "one schema for all items (a list of them is "
					  "'prefixItems')");
	rule->count = json_array_size(json_object_get(node->source, "prefixItems"));
	return vt_compiling_node(c, value, at, &rule->node);
}

COMPILER(compile_contains)
{
	const json_t *least = json_object_get(node->source, "minContains");
	const json_t *most = json_object_get(node->source, "maxContains");
	int status = vt_compiling_node(c, value, at, &rule->node);

	rule->count = 1;
	rule->most = SIZE_MAX;
	if (status == 0 && least)
		status = read_count(c, least, VT_MEMBER(at->up, "minContains", 11), &rule->count);
	if (status == 0 && most)
		status = read_count(c, most, VT_MEMBER(at->up, "maxContains", 11), &rule->most);
	return status;
}

COMPILER(compile_if)
{
	const json_t *then = json_object_get(node->source, "then");
	const json_t *otherwise = json_object_get(node->source, "else");
	int status = vt_compiling_node(c, value, at, &rule->node);

	if (status == 0)
		status = vt_compiling_node(c, then ? then : json_true(),
					   VT_MEMBER(at->up, "then", 4), &rule->then);
	if (status == 0)
		status = vt_compiling_node(c, otherwise ? otherwise : json_true(),
					   VT_MEMBER(at->up, "else", 4), &rule->otherwise);
	return status;
}

COMPILER(compile_ref)
{
	(void)node;
	if (!json_is_string(value))
		return vt_compiling_wrong(c, at, value, "a string such as \"#/$defs/name\"");
	return vt_compiling_refer(c, json_string_value(value), at, rule);
}

/* ---- members ------------------------------------------------------------------------------- */

/* Reads what a keyword has for one of its keys. */
typedef int member_reader(struct vt_compiling *c, const json_t *value,
			  const struct vt_schema_place *at, struct vt_member *member);

static int compile_each(struct vt_compiling *c, const json_t *value,
			const struct vt_schema_place *at, member_reader *reader,
			struct vt_rule *rule)
{
	struct vt_member *members;
	size_t count = 0;

	if (!json_is_object(value))
		return vt_compiling_wrong(c, at, value, "an object");
	members = vt_arena_array(vt_compiling_arena(c), json_object_size(value) + 1,
				 sizeof(*members));
	if (!members)
		return vt_compiling_no_memory(c);
	for (void *i = json_object_iter((json_t *)value); i;
	     i = json_object_iter_next((json_t *)value, i)) {
		struct vt_member *member = &members[count++];

		member->key = json_object_iter_key(i);
		member->len = json_object_iter_key_len(i);
		int status = reader(c, json_object_iter_value(i),
				    VT_MEMBER(at, member->key, member->len), member);

		if (status < 0)
			return status;
	}
	rule->members = members;
	rule->count = count;
	return 0;
}

static int read_member_node(struct vt_compiling *c, const json_t *value,
			    const struct vt_schema_place *at, struct vt_member *member)
{
	return vt_compiling_node(c, value, at, &member->node);
}

static int read_member_pattern(struct vt_compiling *c, const json_t *value,
			       const struct vt_schema_place *at, struct vt_member *member)
{
	int status = vt_compiling_pattern(c, member->key, member->len, at, &member->pattern);

	return status < 0 ? status : vt_compiling_node(c, value, at, &member->node);
}

static int read_member_names(struct vt_compiling *c, const json_t *value,
			     const struct vt_schema_place *at, struct vt_member *member)
{
	member->names = value;
	return check_names(c, value, at);
}

COMPILER(compile_members)
{
	(void)node;
	return compile_each(c, value, at, read_member_node, rule);
}

COMPILER(compile_definitions)
{
	int status = compile_members(c, node, value, at, rule);

	return status < 0 ? status : 1;
}

COMPILER(compile_patterns)
{
	(void)node;
	return compile_each(c, value, at, read_member_pattern, rule);
}

COMPILER(compile_dependent)
{
	(void)node;
	return compile_each(c, value, at, read_member_names, rule);
}

COMPILER(compile_additional)
{
	rule->properties = json_object_get(node->source, "properties");
	/* It stands before this row in the table, so that its rule is there. */
	for (size_t i = 0; i < node->count; i++)
		if (node->rules[i].keyword->check == vt_rule_patterns)
			rule->patterns = &node->rules[i];
	return vt_compiling_node(c, value, at, &rule->node);
}

/* ---- the table ----------------------------------------------------------------------------- */

enum {
	ANY = VT_DATA_ANY,
	NUMBER = VT_DATA_NUMBER,
	STRING = VT_DATA_STRING,
	ARRAY = VT_DATA_ARRAY,
	OBJECT = VT_DATA_OBJECT
};

/* clang-format off */
const struct vt_keyword vt_schema_keywords[] = {
	/* What says most about a wrong value comes first. */
	{ "const",                 ANY,    compile_value,        vt_rule_const },
	{ "enum",                  ANY,    compile_enum,         vt_rule_enum },
	{ "type",                  ANY,    compile_type,         vt_rule_type },
	{ "$ref",                  ANY,    compile_ref,          vt_rule_ref },

	{ "minimum",               NUMBER, compile_number,       vt_rule_minimum },
	{ "maximum",               NUMBER, compile_number,       vt_rule_maximum },
	{ "exclusiveMinimum",      NUMBER, compile_number,       vt_rule_above },
	{ "exclusiveMaximum",      NUMBER, compile_number,       vt_rule_below },
	{ "multipleOf",            NUMBER, compile_multiple,     vt_rule_multiple },

	{ "minLength",             STRING, compile_count,        vt_rule_min_length },
	{ "maxLength",             STRING, compile_count,        vt_rule_max_length },
	{ "pattern",               STRING, compile_pattern,      vt_rule_pattern },

	{ "minItems",              ARRAY,  compile_count,        vt_rule_min_items },
	{ "maxItems",              ARRAY,  compile_count,        vt_rule_max_items },
	{ "prefixItems",           ARRAY,  compile_nodes,        vt_rule_prefix },
	{ "items",                 ARRAY,  compile_items,        vt_rule_items },
	{ "uniqueItems",           ARRAY,  compile_unique,       vt_rule_unique },
	{ "contains",              ARRAY,  compile_contains,     vt_rule_contains },
	{ "minContains",           ARRAY,  compile_unused_count, NULL },
	{ "maxContains",           ARRAY,  compile_unused_count, NULL },

	/* A name that is not known explains one that is missing. */
	{ "patternProperties",     OBJECT, compile_patterns,     vt_rule_patterns },
	{ "additionalProperties",  OBJECT, compile_additional,   vt_rule_additional },
	{ "required",              OBJECT, compile_required,     vt_rule_required },
	{ "properties",            OBJECT, compile_members,      vt_rule_properties },
	{ "propertyNames",         OBJECT, compile_node,         vt_rule_names },
	{ "minProperties",         OBJECT, compile_count,        vt_rule_min_members },
	{ "maxProperties",         OBJECT, compile_count,        vt_rule_max_members },
	{ "dependentRequired",     OBJECT, compile_dependent,    vt_rule_dependent },
	{ "dependentSchemas",      OBJECT, compile_members,      vt_rule_dependent_schemas },

	{ "allOf",                 ANY,    compile_nodes,        vt_rule_all },
	{ "anyOf",                 ANY,    compile_nodes,        vt_rule_any },
	{ "oneOf",                 ANY,    compile_nodes,        vt_rule_one },
	{ "not",                   ANY,    compile_node,         vt_rule_not },
	{ "if",                    ANY,    compile_if,           vt_rule_if },
	{ "then",                  ANY,    compile_unused_node,  NULL },
	{ "else",                  ANY,    compile_unused_node,  NULL },

	{ "$defs",                 ANY,    compile_definitions,  NULL },
	{ "definitions",           ANY,    compile_definitions,  NULL },

	/* These are for people, and for others than a checker. */
	{ .name = "$schema" },
	{ .name = "$id" },
	{ .name = "$comment" },
	{ .name = "title" },
	{ .name = "description" },
	{ .name = "default" },
	{ .name = "examples" },
	{ .name = "deprecated" },
	{ .name = "readOnly" },
	{ .name = "writeOnly" },
	{ .name = "format" },
	{ .name = "contentMediaType" },
	{ .name = "contentEncoding" },
	{ 0 },
};
/* clang-format on */
