/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/gitconfig.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { NAME_MOST = 64 }; /* longer names are none of those that are looked for */

struct reading {
	const char *at, *end;
	char section[NAME_MOST];
	bool sub; /* the section has a part of its own: [section "sub"] */
};

static int peek(const struct reading *r)
{
	return r->at < r->end ? (unsigned char)*r->at : -1;
}

static void skip_line(struct reading *r)
{
	while (r->at < r->end && *r->at++ != '\n')
		;
}

static void read_word(struct reading *r, char ret_word[NAME_MOST])
{
	size_t len = 0;

	for (int c; isalnum(c = peek(r)) || c == '-' || c == '.'; r->at++)
		if (len < NAME_MOST)
			ret_word[len++] = (char)tolower(c);
	ret_word[len < NAME_MOST ? len : 0] = '\0';
}

/* From behind its '['. A key may follow on the same line. */
static void read_section(struct reading *r)
{
	bool quoted = false;

	read_word(r, r->section);
	r->sub = false;
	for (int c; (c = peek(r)) >= 0 && c != '\n'; r->at++) {
		if (c == '\\' && quoted && r->at + 1 < r->end) {
			r->at++;
		} else if (c == '"') {
			quoted = !quoted;
			r->sub = true;
		} else if (c == ']' && !quoted) {
			r->at++;
			return;
		}
	}
}

static void append(char value[PATH_MAX], size_t *len, int c)
{
	if (*len < PATH_MAX)
		value[(*len)++] = (char)c;
}

/* From behind its '='. Blanks around it are no part of it, unless they are quoted. */
static void read_value(struct reading *r, char ret_value[PATH_MAX])
{
	bool quoted = false;
	size_t len = 0, kept = 0;

	while (peek(r) == ' ' || peek(r) == '\t')
		r->at++;
	for (int c; (c = peek(r)) >= 0 && c != '\n'; r->at++) {
		if (c == '"') {
			quoted = !quoted;
			kept = len;
			continue;
		}
		if ((c == '#' || c == ';') && !quoted) {
			skip_line(r);
			break;
		}
		if (c == '\\' && r->at + 1 < r->end) {
			c = (unsigned char)*++r->at;
			if (c == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
				c = (unsigned char)*++r->at;
			if (c == '\n')
				continue; /* goes on with the next line */
			append(ret_value, &len, c == 'n' ? '\n' : c == 't' ? '\t' : c);
			kept = len;
			continue;
		}
		append(ret_value, &len, c);
		if (quoted || !isspace(c))
			kept = len;
	}
	ret_value[kept < PATH_MAX ? kept : 0] = '\0';
}

void vt_gitconfig_paths(const char *text, size_t len,
			void (*each)(void *arg, enum vt_gitconfig_path kind, const char *value),
			void *arg)
{
	struct reading r = { .at = text, .end = text + len };
	char key[NAME_MOST], value[PATH_MAX];

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at += 3; /* git passes over it, too */
	while (r.at < r.end) {
		int c = peek(&r);

		if (isspace(c)) {
			r.at++;
		} else if (c == '[') {
			r.at++;
			read_section(&r);
		} else if (isalpha(c)) {
			read_word(&r, key);
			while (peek(&r) == ' ' || peek(&r) == '\t')
				r.at++;
			if (peek(&r) != '=') {
				skip_line(&r);
				continue;
			}
			r.at++;
			read_value(&r, value);
			bool includes = (strcmp(r.section, "include") == 0 && !r.sub) ||
					strcmp(r.section, "includeif") == 0;

			if (*value && includes && strcmp(key, "path") == 0)
				each(arg, VT_GITCONFIG_INCLUDE, value);
			if (!*value || strcmp(r.section, "core") != 0 || r.sub)
				continue;
			if (strcmp(key, "hookspath") == 0)
				each(arg, VT_GITCONFIG_HOOKS, value);
			else if (strcmp(key, "worktree") == 0)
				each(arg, VT_GITCONFIG_TREE, value);
		} else {
			skip_line(&r);
		}
	}
}
