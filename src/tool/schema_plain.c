/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quick look at text that most arguments pass: an object of numbers, words and flags, of which
 * the schema says only what types they have, or nothing at all. Reading it in full costs more than
 * all else that a client does for a call. It says yes, or that it does not know.
 */
#include <errno.h>
#include <string.h>

#include "tool/schema_private.h"

enum { MEMBERS_MAX = 32, OTHERS_MAX = 8, DIGITS_MAX = 15 };

struct vt_plain {
	bool open;         /* it says nothing of members that it does not name */
	uint32_t required; /* a bit for each member */
	size_t count;
	struct {
		const char *key;
		size_t len;
		unsigned types;
	} members[MEMBERS_MAX];
};

/* ---- from a schema ------------------------------------------------------------------------- */

/* What a node says of types, if it says nothing else. */
static bool read_types(const struct vt_schema_node *node, unsigned *ret_types)
{
	if (node->never || node->count > 1 ||
	    (node->count && node->rules[0].keyword->check != vt_rule_type))
		return false;
	*ret_types = node->count ? node->rules[0].types : VT_DATA_ANY;
	return true;
}

static bool read_members(struct vt_plain *plain, const struct vt_rule *rule)
{
	if (rule->count > MEMBERS_MAX)
		return false;
	for (; plain->count < rule->count; plain->count++) {
		const struct vt_member *member = &rule->members[plain->count];

		plain->members[plain->count].key = member->key;
		plain->members[plain->count].len = member->len;
		if (!read_types(member->node, &plain->members[plain->count].types))
			return false;
	}
	return true;
}

static int find(const struct vt_plain *plain, const char *key, size_t len)
{
	for (size_t i = 0; i < plain->count; i++)
		if (plain->members[i].len == len && memcmp(plain->members[i].key, key, len) == 0)
			return (int)i;
	return -1;
}

static bool read_required(struct vt_plain *plain, const struct vt_rule *rule)
{
	for (size_t i = 0; i < json_array_size(rule->value); i++) {
		const json_t *name = json_array_get(rule->value, i);
		int at = find(plain, json_string_value(name), json_string_length(name));

		if (at < 0)
			return false;
		plain->required |= 1U << at;
	}
	return true;
}

/* The rules are looked at in two rounds, since which names there are comes after the required. */
static bool read_rules(struct vt_plain *plain, const struct vt_schema_node *root)
{
	for (size_t i = 0; i < root->count; i++) {
		const struct vt_rule *rule = &root->rules[i];

		if (rule->keyword->check == vt_rule_properties) {
			if (!read_members(plain, rule))
				return false;
		} else if (rule->keyword->check == vt_rule_type) {
			if (!(rule->types & VT_DATA_OBJECT))
				return false;
		} else if (rule->keyword->check == vt_rule_additional) {
			plain->open = false;
		} else if (rule->keyword->check != vt_rule_required) {
			return false;
		}
	}
	for (size_t i = 0; i < root->count; i++)
		if (root->rules[i].keyword->check == vt_rule_required &&
		    !read_required(plain, &root->rules[i]))
			return false;
	return true;
}

int vt_plain_compile(struct vt_arena *arena, const struct vt_schema_node *root,
		     const struct vt_plain **ret_plain)
{
	struct vt_plain plain = { .open = true };

	*ret_plain = NULL;
	if (root->never || !read_rules(&plain, root))
		return 0;
	struct vt_plain *kept = vt_arena_alloc(arena, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	*kept = plain;
	*ret_plain = kept;
	return 0;
}

/* ---- the text ------------------------------------------------------------------------------ */

struct text {
	const char *at, *end;
};

/* The next that is no space; 0: there is none. */
static char next(struct text *t)
{
	while (t->at < t->end &&
	       (*t->at == ' ' || *t->at == '\n' || *t->at == '\t' || *t->at == '\r'))
		t->at++;
	return t->at < t->end ? *t->at : '\0';
}

static bool take(struct text *t, char wanted)
{
	if (next(t) != wanted)
		return false;
	t->at++;
	return true;
}

static bool take_word(struct text *t, const char *word, size_t len)
{
	if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

/* Of ASCII, without escapes. */
static bool take_string(struct text *t, const char **ret_string, size_t *ret_len)
{
	if (!take(t, '"'))
		return false;
	*ret_string = t->at;
	while (t->at < t->end && *t->at >= ' ' && *t->at <= '~' && *t->at != '"' && *t->at != '\\')
		t->at++;
	*ret_len = (size_t)(t->at - *ret_string);
	return t->at < t->end && *t->at++ == '"';
}

static size_t skip_digits(struct text *t)
{
	const char *first = t->at;

	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return (size_t)(t->at - first);
}

/* Whatever follows it must be a comma or the end, so that 1e9 or 1x is none. */
static unsigned take_number(struct text *t)
{
	t->at += *t->at == '-';
	const char *first = t->at;
	size_t digits = skip_digits(t);

	if (digits == 0 || digits > DIGITS_MAX || (*first == '0' && digits > 1))
		return 0;
	if (t->at == t->end || *t->at != '.')
		return VT_DATA_INTEGER | VT_DATA_NUMBER;
	t->at++;
	digits = skip_digits(t);
	return digits > 0 && digits <= DIGITS_MAX ? VT_DATA_NUMBER : 0;
}

/* Its types; 0: not known. */
static unsigned take_scalar(struct text *t)
{
	const char *string;
	size_t len;

	switch (next(t)) {
	case '"':
		return take_string(t, &string, &len) ? VT_DATA_STRING : 0;
	case 't':
		return take_word(t, "true", 4) ? VT_DATA_BOOLEAN : 0;
	case 'f':
		return take_word(t, "false", 5) ? VT_DATA_BOOLEAN : 0;
	case 'n':
		return take_word(t, "null", 4) ? VT_DATA_NULL : 0;
	case '\0':
		return 0;
	default:
		return take_number(t);
	}
}

/* Members that were there before, each of which may come once. */
struct seen {
	uint32_t named; /* a bit for each that the schema names */
	size_t count;
	struct {
		const char *key;
		size_t len;
	} others[OTHERS_MAX];
};

/* Whether it is the first of its name, as far as there is room for names. */
static bool note_other(struct seen *seen, const char *key, size_t len)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->others[i].len == len && memcmp(seen->others[i].key, key, len) == 0)
			return false;
	if (seen->count == OTHERS_MAX)
		return false;
	seen->others[seen->count].key = key;
	seen->others[seen->count++].len = len;
	return true;
}

/* A member that was there before, or that the schema may judge in other ways, is for others. */
static bool take_member(const struct vt_plain *plain, struct text *t, struct seen *seen)
{
	const char *key;
	size_t len;

	if (!take_string(t, &key, &len) || !take(t, ':'))
		return false;
	int at = find(plain, key, len);

	if (at < 0)
		return plain->open && note_other(seen, key, len) && take_scalar(t);
	if (seen->named & 1U << at)
		return false;
	seen->named |= 1U << at;
	return take_scalar(t) & plain->members[at].types;
}

bool vt_schema_fits_plainly(const struct vt_schema *schema, const char *text, size_t len)
{
	const struct vt_plain *plain = schema->plain;
	struct text t = { text, text + len };
	struct seen seen;

	if (!plain || !take(&t, '{'))
		return false;
	seen.named = 0;
	seen.count = 0;
	if (next(&t) != '}')
		do
			if (!take_member(plain, &t, &seen))
				return false;
		while (take(&t, ','));
	return take(&t, '}') && next(&t) == '\0' && t.at == t.end &&
	       (seen.named & plain->required) == plain->required;
}
