/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and values from text, and what test vectors share. Include it after cmocka.h. */
#pragma once

#include "base/json.h"
#include "tool/schema.h"

static inline json_t *parsed(const char *text)
{
	struct vt_err err = { 0 };
	json_t *root = NULL;

	if (vt_json_load_text(text, strlen(text), "test", &root, &err) < 0)
		fail_msg("%s", err.what);
	return root;
}

static inline int compile(const char *text, struct vt_schema **ret_schema, struct vt_err *err)
{
	AUTO_JSON json_t *root = parsed(text);

	return vt_schema_compile(root, "inputSchema", ret_schema, NULL, err);
}

static inline struct vt_schema *compiled(const char *text)
{
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };

	if (compile(text, &schema, &err) < 0)
		fail_msg("%s", err.what);
	return schema;
}

static inline int check(const char *schema_text, const char *text, struct vt_err *err)
{
	struct vt_schema *schema = compiled(schema_text);
	AUTO_JSON json_t *value = parsed(text);
	int status = vt_schema_check(schema, value, "arguments", err);

	vt_schema_free(schema);
	return status;
}

/* JSON is written with ' here, to be read. */
static inline char *quoted(char *text)
{
	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	return text;
}

static inline const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Which case of the vectors went wrong; without a test, the group's own `thing`. */
static inline void print_case(const json_t *group, const json_t *test, const char *thing,
			      const char *what)
{
	print_error("%s: %s: %s\n", text_of(group, "description"),
		    test ? text_of(test, "description") : thing, what);
}

static inline bool begins_with_place(const char *message, const char *place)
{
	size_t len = strlen(place);

	return strncmp(message, place, len) == 0 && message[len] == ':' && message[len + 1] == ' ';
}

/* A file of test/vectors, which other languages pass too. */
static inline json_t *load_vectors(const char *name)
{
	const char *folder = getenv("VITRO_TEST_DIR");
	struct vt_err err = { 0 };
	json_t *groups = NULL;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/vectors/%s", folder ? folder : TEST_DIR, name);
	if (vt_json_load_file(path, &groups, &err) < 0)
		fail_msg("%s", err.what);
	return groups;
}
