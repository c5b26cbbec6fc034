/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions: PCRE2, set up to read them as ECMA-262 does, and bounded. A backtracking
 * matcher takes time that is exponential in the text for some expressions, and both may come from
 * whoever wants vitro to hang. PCRE2's own limit counts anew at each place where a match could
 * start, so the work is counted here: PCRE2 calls out before each item of an expression
 * (PCRE2_AUTO_CALLOUT), and each call is charged for itself and for the text that the item before
 * it has passed over.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/schema_private.h"

/* Of one start; beyond it the caller's steps are all but used up anyway. Heap is in KiB. */
enum { MATCH_LIMIT = 4000000, DEPTH_LIMIT = 100000, HEAP_LIMIT = 16 << 10 };
/* Steps that a match takes at least: its memory is made and freed. */
enum { MATCH_COST = 20 };

static const uint32_t options = PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY |
				PCRE2_MATCH_UNSET_BACKREF | PCRE2_ALLOW_EMPTY_CLASS |
				PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;

/* The largest count that "{N" could stand for. An item so often repeated passes no callout. */
static size_t largest_count(const char *text, size_t len)
{
	size_t largest = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '{')
			continue;
		size_t count = strtoul(text + i + 1, NULL, 10);

		largest = count > largest ? count : largest;
	}
	return largest < 65536 ? largest : 65536; /* PCRE2 takes no more */
}

/* A comparison with a group's text passes no callout either, and may be as long as the text. */
static void set_costs(struct vt_pattern *pattern, size_t len)
{
	uint32_t references = 0;

	/* It cannot fail: the code is good, and the place is right. */
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_BACKREFMAX, &references);
	pattern->cost = 1 + largest_count(pattern->text, len) / VT_STEP_BYTES;
	pattern->has_references = references > 0;
}

static pcre2_code *compile(const char *text, size_t len, int *ret_error, size_t *ret_offset)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code = NULL;

	*ret_error = PCRE2_ERROR_NOMEMORY;
	if (!context)
		return NULL;
	/* These return 0 for values that are known, as here. "." stops at both ends of lines. */
	(void)pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
	(void)pcre2_set_max_pattern_length(context, VT_SCHEMA_MAX_PATTERN);
	code = pcre2_compile((PCRE2_SPTR)text, len, options, ret_error, ret_offset, context);
	pcre2_compile_context_free(context);
	return code;
}

int vt_pattern_compile(struct vt_arena *arena, const char *text, size_t len,
		       struct vt_pattern **ret_pattern, char message[static VT_WANTED_SIZE])
{
	struct vt_pattern *pattern = vt_arena_alloc(arena, sizeof(*pattern));
	size_t offset = 0;
	int error;

	if (!pattern || !(pattern->text = vt_arena_dupn(arena, text, len)))
		return -ENOMEM;
	/* What PCRE2 would take for its own settings. */
	if (len >= 2 && memcmp(text, "(*", 2) == 0) {
		(void)snprintf(message, VT_WANTED_SIZE, "there is nothing to repeat before '*'");
		return -EINVAL;
	}
	pattern->code = compile(text, len, &error, &offset);
	if (!pattern->code && error == PCRE2_ERROR_NOMEMORY)
		return -ENOMEM;
	if (!pattern->code) {
		char words[120];

		if (pcre2_get_error_message(error, (PCRE2_UCHAR *)words, sizeof(words)) < 0)
			(void)strcpy(words, "it is not valid");
		(void)snprintf(message, VT_WANTED_SIZE, "%s, at its byte %zu", words,
			       offset); /* fits */
		return -EINVAL;
	}
	set_costs(pattern, len);
	*ret_pattern = pattern;
	return 0;
}

size_t vt_pattern_size(const struct vt_pattern *pattern)
{
	size_t size = 0;

	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &size); /* as in set_costs() */
	return size;
}

struct spent {
	int64_t *steps;
	size_t cost;
	size_t position; /* where the item before was tried */
};

static int spend(pcre2_callout_block *block, void *data)
{
	struct spent *spent = data;
	size_t passed = block->current_position > spent->position
				? block->current_position - spent->position
				: 0;

	spent->position = block->current_position;
	*spent->steps -= (int64_t)(spent->cost + passed / VT_STEP_BYTES);
	return *spent->steps < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

static int find_within(pcre2_match_context *limits, const struct vt_pattern *pattern,
		       const char *text, size_t len, struct spent *spent)
{
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);

	if (!match || pcre2_set_callout(limits, spend, spent) != 0) {
		pcre2_match_data_free(match);
		return PCRE2_ERROR_NOMEMORY;
	}
	int status = pcre2_match(pattern->code, (PCRE2_SPTR)text, len, 0, 0, match, limits);

	pcre2_match_data_free(match);
	return status;
}

static pcre2_match_context *limits_new(void)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);

	if (!limits)
		return NULL;
	/* These cannot fail. */
	(void)pcre2_set_match_limit(limits, MATCH_LIMIT);
	(void)pcre2_set_depth_limit(limits, DEPTH_LIMIT);
	(void)pcre2_set_heap_limit(limits, HEAP_LIMIT);
	return limits;
}

int vt_pattern_find(const struct vt_pattern *pattern, const char *text, size_t len, int64_t *steps)
{
	struct spent spent = { .steps = steps, .cost = pattern->cost };
	pcre2_match_context *limits = limits_new();

	if (!limits)
		return -ENOMEM;
	if (pattern->has_references)
		spent.cost += len / VT_STEP_BYTES;
	*steps -= (int64_t)(MATCH_COST + len / VT_STEP_BYTES); /* UTF-8 is looked for first */
	int status = find_within(limits, pattern, text, len, &spent);

	pcre2_match_context_free(limits);
	if (status >= 0 || status == PCRE2_ERROR_NOMATCH)
		return status >= 0;
	if (status == PCRE2_ERROR_NOMEMORY)
		return -ENOMEM;
	/* jansson lets no such text in, but a caller can tell it not to look. */
	if (status <= PCRE2_ERROR_UTF8_ERR1 && status >= PCRE2_ERROR_UTF8_ERR21)
		return -EILSEQ;
	return -E2BIG;
}
