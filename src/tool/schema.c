/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tool/schema_private.h"

#define BUCKETS 1024

/* A reference whose node is not known yet: it may be to what comes later, or to what it is part of.
 */
struct reference {
	struct reference *next;
	struct vt_rule *rule;
	const char *text;
	const char *place; /* of the reference itself, for messages */
};

struct vt_compiling {
	struct vt_schema *schema;
	const char *name;
	struct vt_err *err;
	size_t node_count;
	size_t pattern_bytes;
	struct vt_schema_node *buckets[BUCKETS]; /* nodes by their source */
	struct vt_schema_node *first, **last;
	struct reference *references, **last_reference;
	const char *warned[VT_SCHEMA_MAX_WARNINGS]; /* keywords */
	const char **warnings;
	size_t warning_count;
};

static const struct vt_schema_node always = { 0 };
static const struct vt_schema_node never = { .never = true };

struct vt_arena *vt_compiling_arena(struct vt_compiling *c)
{
	return c->schema->arena;
}

int vt_compiling_no_memory(struct vt_compiling *c)
{
	return vt_fail(c->err, VT_STEP_POLICY, ENOMEM, "out of memory");
}

int vt_compiling_fail(struct vt_compiling *c, const struct vt_schema_place *at, int num,
		      const char *fmt, ...)
{
	char place[VT_PLACE_SIZE], what[VT_MESSAGE_SIZE];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* fits */
	va_end(args);
	return vt_fail(c->err, VT_STEP_POLICY, num, "%s: %s",
		       vt_schema_place_show(place, c->name, at), what);
}

int vt_compiling_wrong(struct vt_compiling *c, const struct vt_schema_place *at,
		       const json_t *value, const char *want)
{
	char shown[VT_SHOWN_SIZE];

	return vt_compiling_fail(c, at, EINVAL, "want %s, found %s", want,
				 vt_data_show(shown, value));
}

int vt_compiling_pattern(struct vt_compiling *c, const char *text, size_t len,
			 const struct vt_schema_place *at, const struct vt_pattern **ret_pattern)
{
	char message[VT_WANTED_SIZE], shown[VT_SHOWN_SIZE];
	struct vt_pattern *pattern;
	int status = vt_pattern_compile(c->schema->arena, text, len, &pattern, message);

	if (status == -ENOMEM)
		return vt_compiling_no_memory(c);
	if (status < 0)
		return vt_compiling_fail(c, at, EINVAL, "'%s' is not a regular expression: %s",
					 vt_utf8_show_text(shown, sizeof(shown), text, len),
					 message);
	pattern->next = c->schema->patterns;
	c->schema->patterns = pattern;
	c->pattern_bytes += vt_pattern_size(pattern);
	if (c->pattern_bytes > VT_SCHEMA_MAX_PATTERNS)
		return vt_compiling_fail(c, at, E2BIG, "too many large regular expressions");
	*ret_pattern = pattern;
	return 0;
}

/* ---- warnings ------------------------------------------------------------------------------ */

/* One for each keyword: a schema that uses it a hundred times is not a hundred times as wrong. */
static int warn(struct vt_compiling *c, const char *keyword, const struct vt_schema_place *at)
{
	char place[VT_PLACE_SIZE], shown[VT_SHOWN_SIZE];
	size_t count = c->warning_count;
	const char *text;

	for (size_t i = 0; i < count; i++)
		if (strcmp(c->warned[i], keyword) == 0)
			return 0;
	if (count == VT_SCHEMA_MAX_WARNINGS)
		return 0;
	if (count + 1 == VT_SCHEMA_MAX_WARNINGS)
		text = vt_arena_printf(c->schema->arena, "%s: more keywords are not checked",
				       vt_schema_place_show(place, c->name, NULL));
	else
		text = vt_arena_printf(
			c->schema->arena, "%s: the keyword '%s' is not known and not checked",
			vt_schema_place_show(place, c->name, at),
			vt_utf8_show_text(shown, sizeof(shown), keyword, strlen(keyword)));
	if (!text)
		return vt_compiling_no_memory(c);
	c->warned[count] = keyword;
	c->warnings[count] = text;
	c->warning_count++;
	return 0;
}

static bool is_known(const char *key)
{
	const struct vt_keyword *row = vt_schema_keywords;

	while (row->name && strcmp(row->name, key) != 0)
		row++;
	return row->name;
}

static int warn_of_unknown(struct vt_compiling *c, const json_t *source,
			   const struct vt_schema_place *at)
{
	for (void *i = json_object_iter((json_t *)source); i;
	     i = json_object_iter_next((json_t *)source, i)) {
		int status = is_known(json_object_iter_key(i))
				     ? 0
				     : warn(c, json_object_iter_key(i), at);

		if (status < 0)
			return status;
	}
	return 0;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static struct vt_schema_node **bucket_of(struct vt_compiling *c, const json_t *source)
{
	return &c->buckets[((uintptr_t)source >> 4) * 0x9e3779b97f4a7c15 >> 54];
}

static int compile_rules(struct vt_compiling *c, struct vt_schema_node *node,
			 const struct vt_schema_place *at)
{
	struct vt_rule *rules = vt_arena_array(c->schema->arena, json_object_size(node->source) + 1,
					       sizeof(*rules));

	if (!rules)
		return vt_compiling_no_memory(c);
	node->rules = rules;
	for (const struct vt_keyword *row = vt_schema_keywords; row->name; row++) {
		const json_t *value = json_object_get(node->source, row->name);
		struct vt_rule *rule = &rules[node->count];

		if (!value || !row->compile)
			continue;
		*rule = (struct vt_rule){ .keyword = row };
		int status = row->compile(c, node, value,
					  VT_MEMBER(at, row->name, strlen(row->name)), rule);

		if (status < 0)
			return status;
		node->count += status == 0;
	}
	return warn_of_unknown(c, node->source, at);
}

int vt_compiling_node(struct vt_compiling *c, const json_t *value, const struct vt_schema_place *at,
		      const struct vt_schema_node **ret_node)
{
	if (json_is_boolean(value)) {
		*ret_node = json_is_true(value) ? &always : &never;
		return 0;
	}
	if (!json_is_object(value))
		return vt_compiling_wrong(c, at, value, "a schema: an object, true or false");
	struct vt_schema_node **bucket = bucket_of(c, value), *node = *bucket;

	while (node && node->source != value)
		node = node->next;
	*ret_node = node;
	if (node)
		return 0;
	if (++c->node_count > VT_SCHEMA_MAX_NODES)
		return vt_compiling_fail(c, at, E2BIG, "the schema is too big: more than %d parts",
					 VT_SCHEMA_MAX_NODES);
	node = vt_arena_alloc(c->schema->arena, sizeof(*node));
	if (!node)
		return vt_compiling_no_memory(c);
	*node = (struct vt_schema_node){ .source = value, .next = *bucket };
	*bucket = *c->last = node;
	c->last = &node->after;
	*ret_node = node;
	return compile_rules(c, node, at);
}

/* ---- references ---------------------------------------------------------------------------- */

int vt_compiling_refer(struct vt_compiling *c, const char *text, const struct vt_schema_place *at,
		       struct vt_rule *rule)
{
	char place[VT_PLACE_SIZE];
	struct reference *reference = vt_arena_alloc(c->schema->arena, sizeof(*reference));

	if (!reference)
		return vt_compiling_no_memory(c);
	*reference = (struct reference){
		.rule = rule,
		.text = text,
		.place = vt_arena_dup(c->schema->arena, vt_schema_place_show(place, c->name, at)),
	};
	if (!reference->place)
		return vt_compiling_no_memory(c);
	*c->last_reference = reference;
	c->last_reference = &reference->next;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* "%25" becomes '%', in place. False: it is not well formed. */
static bool decode_percents(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text != '%') {
			*to++ = *text;
			continue;
		}
		int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);

		if (low < 0 || high + low == 0)
			return false;
		*to++ = (char)(high << 4 | low);
		text += 2;
	}
	*to = '\0';
	return true;
}

/* Cuts off one part of a pointer, in place: "~1" is '/', "~0" is '~'. NULL: it is not well formed.
 */
static const char *cut_part(char **at)
{
	char *part = *at, *to = part, *from = part;

	for (; *from && *from != '/'; from++) {
		if (*from == '~' && from[1] != '0' && from[1] != '1')
			return NULL;
		*to++ = *from != '~' ? *from : *++from == '0' ? '~' : '/';
	}
	*at = *from ? from + 1 : NULL;
	*to = '\0';
	return part;
}

static const json_t *element_of(const json_t *array, const char *part)
{
	char *end;
	unsigned long index = strtoul(part, &end, 10);

	if (part[0] < '0' || part[0] > '9' || *end || (part[0] == '0' && part[1]))
		return NULL;
	return json_array_get(array, index);
}

/* What a fragment names, a JSON pointer that is changed on the way. NULL: nothing. */
static const json_t *follow(const json_t *root, char *pointer)
{
	if (!decode_percents(pointer) || (*pointer && *pointer != '/'))
		return NULL;
	char *at = *pointer ? pointer + 1 : NULL;

	while (root && at) {
		const char *part = cut_part(&at);

		if (!part)
			return NULL;
		root = json_is_array(root) ? element_of(root, part) : json_object_get(root, part);
	}
	return root;
}

static int fail_reference(struct vt_compiling *c, const struct reference *reference,
			  const char *what)
{
	char shown[VT_SHOWN_SIZE];

	return vt_fail(
		c->err, VT_STEP_POLICY, EINVAL, "%s: \"%s\" %s", reference->place,
		vt_utf8_show_text(shown, sizeof(shown), reference->text, strlen(reference->text)),
		what);
}

static int resolve(struct vt_compiling *c, const struct reference *reference)
{
	const char *text = reference->text;
	char *copy = vt_arena_dup(c->schema->arena, text);

	if (!copy)
		return vt_compiling_no_memory(c);
	if (text[0] != '#')
		return fail_reference(c, reference,
				      "is not in this schema; want one that begins with '#'");
	const json_t *target = follow(c->schema->source, copy + 1);

	if (!target)
		return fail_reference(c, reference, "names nothing in this schema");
	/* What is compiled only now is named by how it was found. */
	return vt_compiling_node(c, target, VT_MEMBER(NULL, text, strlen(text)),
				 &reference->rule->node);
}

/* ---- cycles -------------------------------------------------------------------------------- */

/* The i-th schema that a rule applies to the same value, not to a part of it. NULL: no more. */
static const struct vt_schema_node *in_place(const struct vt_rule *rule, size_t i)
{
	vt_rule_check *check = rule->keyword->check;

	if (check == vt_rule_all || check == vt_rule_any || check == vt_rule_one)
		return i < rule->count ? rule->nodes[i] : NULL;
	if (check == vt_rule_dependent_schemas)
		return i < rule->count ? rule->members[i].node : NULL;
	if (check == vt_rule_ref || check == vt_rule_not)
		return i == 0 ? rule->node : NULL;
	if (check == vt_rule_if)
		return i == 0 ? rule->node : i == 1 ? rule->then : i == 2 ? rule->otherwise : NULL;
	return NULL;
}

static int fail_cycle(struct vt_compiling *c, const struct vt_rule *rule)
{
	for (const struct reference *i = c->references; i; i = i->next)
		if (i->rule == rule)
			return fail_reference(c, i, "leads back to itself for the same value");
	return vt_compiling_fail(c, NULL, EINVAL, "a reference leads back to itself");
}

/* A check would walk such a cycle without end. Every cycle has a reference; via is the last so far.
 */
static int find_cycle(struct vt_compiling *c, struct vt_schema_node *node,
		      const struct vt_rule *via, unsigned depth)
{
	const struct vt_schema_node *next;

	if (!node->source || node->walk == VT_NODE_DONE)
		return 0;
	if (node->walk == VT_NODE_OPEN)
		return fail_cycle(c, via);
	if (depth > VT_SCHEMA_MAX_DEPTH)
		return vt_compiling_fail(c, NULL, E2BIG, "references are nested too deeply");
	node->walk = VT_NODE_OPEN;
	for (size_t i = 0; i < node->count; i++) {
		const struct vt_rule *rule = &node->rules[i];

		for (size_t j = 0; (next = in_place(rule, j)); j++) {
			/* Nodes are the arena's; only this walk writes to them. */
			int status = find_cycle(c, (struct vt_schema_node *)next,
						rule->keyword->check == vt_rule_ref ? rule : via,
						depth + 1);

			if (status < 0)
				return status;
		}
	}
	node->walk = VT_NODE_DONE;
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Bounds what copying and compiling will take. A value that contains itself ends here too. */
static int measure(struct vt_compiling *c, const json_t *value, unsigned depth, size_t *count)
{
	int status = 0;

	if (depth > VT_SCHEMA_MAX_DEPTH)
		return vt_compiling_fail(c, NULL, E2BIG, "the schema is nested too deeply");
	if (++*count > VT_SCHEMA_MAX_VALUES)
		return vt_compiling_fail(c, NULL, E2BIG,
					 "the schema is too big: more than %d values",
					 VT_SCHEMA_MAX_VALUES);
	for (size_t i = 0; i < json_array_size(value) && status == 0; i++)
		status = measure(c, json_array_get(value, i), depth + 1, count);
	for (void *i = json_object_iter((json_t *)value); i && status == 0;
	     i = json_object_iter_next((json_t *)value, i))
		status = measure(c, json_object_iter_value(i), depth + 1, count);
	return status;
}

static int compile(struct vt_compiling *c)
{
	struct vt_schema *schema = c->schema;
	int status = vt_compiling_node(c, schema->source, NULL, &schema->root);

	/* The list grows by what references lead to. */
	for (struct reference *i = c->references; i && status == 0; i = i->next)
		status = resolve(c, i);
	for (struct vt_schema_node *i = c->first; i && status == 0; i = i->after)
		status = find_cycle(c, i, NULL, 0);
	return status;
}

static int start(struct vt_compiling *c, const json_t *root)
{
	struct vt_schema *schema = c->schema;
	size_t count = 0;
	int status = measure(c, root, 0, &count);

	if (status < 0)
		return status;
	c->last = &c->first;
	c->last_reference = &c->references;
	schema->arena = vt_arena_new();
	schema->source = json_deep_copy(root);
	if (!schema->arena || !schema->source)
		return vt_compiling_no_memory(c);
	c->warnings = vt_arena_array(schema->arena, VT_SCHEMA_MAX_WARNINGS, sizeof(*c->warnings));
	return c->warnings ? 0 : vt_compiling_no_memory(c);
}

int vt_schema_compile(const json_t *root, const char *name, struct vt_schema **ret_schema,
		      struct vt_schema_warnings *ret_warnings, struct vt_err *err)
{
	struct vt_compiling c = { .name = name, .err = err };

	c.schema = calloc(1, sizeof(*c.schema));
	if (!c.schema)
		return vt_compiling_no_memory(&c);
	int status = start(&c, root);

	if (status == 0)
		status = compile(&c);
	if (status == 0 && vt_plain_compile(c.schema->arena, c.schema->root, &c.schema->plain) < 0)
		status = vt_compiling_no_memory(&c);
	if (status < 0) {
		vt_schema_free(c.schema);
		return status;
	}
	if (ret_warnings)
		*ret_warnings = (struct vt_schema_warnings){ c.warnings, c.warning_count };
	*ret_schema = c.schema;
	return 0;
}

const json_t *vt_schema_source(const struct vt_schema *schema)
{
	return schema->source;
}

void vt_schema_free(struct vt_schema *schema)
{
	if (!schema)
		return;
	for (struct vt_pattern *i = schema->patterns; i; i = i->next)
		pcre2_code_free(i->code);
	vt_arena_free(schema->arena);
	json_decref(schema->source);
	free(schema);
}
