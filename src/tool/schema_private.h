/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled form of a schema, and what its parts share. A schema is a graph of nodes; a node is
 * a list of rules, in the order of vt_schema_keywords[]; a rule is a keyword with what it was
 * given.
 *
 *   schema.c           compiles: nodes, references, warnings
 *   schema_keywords.c  the table of keywords, and how each is read
 *   schema_check.c     checks: the walk, its bounds, and the rules that apply other schemas
 *   schema_rules.c     the rules that look at one value
 *   schema_plain.c     the same for text that is quickly seen to fit
 *   schema_pattern.c   regular expressions
 *   schema_data.c      equality, order and multiples of JSON values
 *   schema_say.c       places and values in messages
 */
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "tool/schema.h"

/* Types of values, as a set. An integer is a number too. */
enum {
	VT_DATA_NULL    = 1 << 0,
	VT_DATA_BOOLEAN = 1 << 1,
	VT_DATA_INTEGER = 1 << 2,
	VT_DATA_NUMBER  = 1 << 3,
	VT_DATA_STRING  = 1 << 4,
	VT_DATA_ARRAY   = 1 << 5,
	VT_DATA_OBJECT  = 1 << 6,
	VT_DATA_ANY     = (1 << 7) - 1,
};

/* Room for a place, a value, a list of what is wanted; and for a message without its place. */
enum { VT_PLACE_SIZE = 160, VT_SHOWN_SIZE = 72, VT_WANTED_SIZE = 160, VT_MESSAGE_SIZE = 344 };
_Static_assert(VT_PLACE_SIZE + VT_MESSAGE_SIZE < sizeof(((struct vt_err *)0)->what),
	       "no message is cut, which could part a character");

/* Where a value is: a member of an object, or an element of an array. The root is NULL. */
struct vt_schema_place {
	const struct vt_schema_place *up;
	const char                   *key;     /* NULL: an element */
	size_t                        len;     /* of the key; or the element's index */
	bool                          is_name; /* not the member is meant but its name */
};

#define VT_MEMBER(up, key, len) (&(const struct vt_schema_place){ up, key, len, false })
#define VT_ELEMENT(up, index)   (&(const struct vt_schema_place){ up, NULL, index, false })

struct vt_schema_node;
struct vt_rule;
struct vt_compiling;
struct vt_checking;
struct vt_plain;

/* One row: what a keyword is called, what it looks at, how it is read and how it is checked. */
struct vt_keyword {
	const char *name;
	unsigned    types; /* of values that it says something about */
	/*
	 * Reads `value`, for `rule`; 1: there is nothing to check. NULL: it is accepted as it is.
	 */
	int (*compile)(struct vt_compiling *c, struct vt_schema_node *node, const json_t *value,
		       const struct vt_schema_place *at, struct vt_rule *rule);
	/* NULL: it says nothing by itself. */
	int (*check)(struct vt_checking *c, const struct vt_rule *rule, const json_t *value,
		     const struct vt_schema_place *at);
};

/* In the order of checking; ends with a row without a name. */
extern const struct vt_keyword vt_schema_keywords[];

/* |digits * 10^exponent|, exactly. */
struct vt_exact {
	uint64_t digits;
	int      exponent;
};

/* Bytes of text that one step looks at. */
enum { VT_STEP_BYTES = 16 };
/* How many words are tried for the one that was meant; each takes a microsecond or more. */
enum { VT_GUESSES_MOST = 1000 };

struct vt_pattern {
	struct vt_pattern *next; /* all of a schema's */
	pcre2_code        *code;
	const char        *text;
	size_t             cost;           /* of one item of it, in steps */
	bool               has_references; /* to its own groups: \1 */
};

/* A schema that is named: by a property, a pattern, or a property that it depends on. */
struct vt_member {
	const char                  *key;
	size_t                       len;
	const struct vt_schema_node *node;
	const struct vt_pattern     *pattern;
	const json_t                *names; /* of dependentRequired */
};

struct vt_rule {
	const struct vt_keyword *keyword;
	size_t                   count; /* of nodes or members; or the number that it was given */
	union {
		unsigned                            types;
		const json_t                       *value;
		struct vt_exact                   decimal;
		const struct vt_schema_node        *node;
		const struct vt_schema_node *const *nodes;
		const struct vt_member             *members;
		const struct vt_pattern            *pattern;
	};
	/* multipleOf: as it was written. */
	const json_t *unit;
	/* additionalProperties: what has a schema of its own already. */
	const json_t         *properties;
	const struct vt_rule *patterns;
	/* contains: how many at most; at least is count. */
	size_t most;
	/* if */
	const struct vt_schema_node *then, *otherwise;
};

struct vt_schema_node {
	const struct vt_rule  *rules;
	size_t                 count;
	bool                   never;  /* the schema `false` */
	const json_t          *source; /* NULL for `true` and `false` */
	struct vt_schema_node *next;   /* in its bucket */
	struct vt_schema_node *after;  /* in the order of compiling */
	enum { VT_NODE_NEW, VT_NODE_OPEN, VT_NODE_DONE } walk; /* while cycles are looked for */
};

struct vt_schema {
	struct vt_arena             *arena;
	json_t                      *source;
	const struct vt_schema_node *root;
	struct vt_pattern           *patterns;
	const struct vt_plain       *plain; /* NULL: it says more than that */
};

/* ---- schema_plain.c ---- */

/* *ret_plain is NULL where a schema says more than can be seen quickly. */
int vt_plain_compile(struct vt_arena *arena, const struct vt_schema_node *root,
		     const struct vt_plain **ret_plain);

/* ---- schema.c: for the readers of keywords ---- */

/* Where what is compiled lives. */
struct vt_arena *vt_compiling_arena(struct vt_compiling *c);
/* "PLACE: ...", and -num. */
int vt_compiling_fail(struct vt_compiling *c, const struct vt_schema_place *at, int num,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* "PLACE: want WANT, found VALUE", and -EINVAL. */
int vt_compiling_wrong(struct vt_compiling *c, const struct vt_schema_place *at,
		       const json_t *value, const char *want);
/* Says so, and returns -ENOMEM. */
int vt_compiling_no_memory(struct vt_compiling *c);

/* The node of a schema: compiled, or about to be. */
int vt_compiling_node(struct vt_compiling *c, const json_t *value, const struct vt_schema_place *at,
		      const struct vt_schema_node **ret_node);
/* Has rule->node set to what the text of a reference names, once all else is compiled. */
int vt_compiling_refer(struct vt_compiling *c, const char *text, const struct vt_schema_place *at,
		       struct vt_rule *rule);
/* Compiles a regular expression, which the schema owns. */
int vt_compiling_pattern(struct vt_compiling *c, const char *text, size_t len,
			 const struct vt_schema_place *at, const struct vt_pattern **ret_pattern);

/* ---- schema_pattern.c ---- */

/* Compiles a regular expression; what is wrong with it goes to message. */
int vt_pattern_compile(struct vt_arena *arena, const char *text, size_t len,
		       struct vt_pattern **ret_pattern, char message[static VT_WANTED_SIZE]);
/* Bytes of memory that it takes. */
size_t vt_pattern_size(const struct vt_pattern *pattern);
/* 1: found in text; 0: not; -E2BIG, -ENOMEM, -EILSEQ. What it cost is taken from steps. */
int vt_pattern_find(const struct vt_pattern *pattern, const char *text, size_t len, int64_t *steps);

/* ---- schema_data.c ---- */

/* The types that a value has; a whole number has two. */
unsigned vt_data_types(const json_t *value);
/* 1: equal, as JSON has it; 0: not; -E2BIG. */
int vt_data_equal(const json_t *a, const json_t *b, int64_t *steps);
/* 1: all differ; 0: items[*ret_i] and items[*ret_j] are equal; -E2BIG, -ENOMEM. */
int vt_data_unique(const json_t *array, int64_t *steps, size_t *ret_i, size_t *ret_j);
/* Less than, equal to or greater than 0, as a is to b; both are numbers. */
int vt_data_compare(const json_t *a, const json_t *b);
/* The decimal that a number is written as, in its shortest form. */
struct vt_exact vt_exact_of(const json_t *number);
/* Whether value is a whole number of times `unit`, which is not 0. */
bool vt_exact_divides(struct vt_exact unit, struct vt_exact value);
/* Characters of a JSON string: code points. */
size_t vt_data_length(const json_t *string);

/* ---- schema_say.c ---- */

/* The place as people write it: name.files[2]["a b"]. One that is too long loses its middle. */
char *vt_schema_place_show(char buf[static VT_PLACE_SIZE], const char *name,
			   const struct vt_schema_place *at);
/* A value in a few words. */
char *vt_data_show(char buf[static VT_SHOWN_SIZE], const json_t *value);
/* "a string, an integer or null" */
char *vt_data_show_types(char buf[static VT_WANTED_SIZE], unsigned types);
/* ""a", "b" or 3 more" */
char *vt_data_show_all(char buf[static VT_WANTED_SIZE], const json_t *values);
/* What a node wants, in a few words; false if there are none for it. */
bool vt_schema_node_show(char *buf, size_t size, const struct vt_schema_node *node);

/* ---- schema_check.c: for the rules ---- */

/* "PLACE: ..." and -EINVAL. Says nothing while alternatives are tried. */
int vt_check_fail(struct vt_checking *c, const struct vt_schema_place *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same: "PLACE: want ..., found VALUE". */
int vt_check_wrong(struct vt_checking *c, const struct vt_schema_place *at, const json_t *value,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* No answer can be had: -num is returned through all alternatives, and never taken for one. */
int vt_check_stop(struct vt_checking *c, const struct vt_schema_place *at, int num);
/* 1: found in text; 0: not; all else: nobody knows. */
int vt_check_pattern(struct vt_checking *c, const struct vt_pattern *pattern, const char *text,
		     size_t len, const struct vt_schema_place *at);
/* What is left to spend; a step is some 20 ns, and what takes longer pays more. */
int64_t *vt_check_steps(struct vt_checking *c);
/* Whether alternatives are being tried, so that a message need not be made. */
bool vt_check_is_quiet(const struct vt_checking *c);

/* The checks that vt_schema_keywords[] names. */
typedef int vt_rule_check(struct vt_checking *c, const struct vt_rule *rule, const json_t *value,
			  const struct vt_schema_place *at);
vt_rule_check vt_rule_ref, vt_rule_properties, vt_rule_patterns, vt_rule_additional, vt_rule_names,
	vt_rule_dependent_schemas, vt_rule_prefix, vt_rule_items, vt_rule_contains, vt_rule_all,
	vt_rule_any, vt_rule_one, vt_rule_not, vt_rule_if;
vt_rule_check vt_rule_type, vt_rule_enum, vt_rule_const, vt_rule_minimum, vt_rule_maximum,
	vt_rule_above, vt_rule_below, vt_rule_multiple, vt_rule_min_length, vt_rule_max_length,
	vt_rule_pattern, vt_rule_min_items, vt_rule_max_items, vt_rule_unique, vt_rule_min_members,
	vt_rule_max_members, vt_rule_required, vt_rule_dependent;
