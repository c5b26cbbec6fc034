/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/manifest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/policy.h"
#include "manifest/table.h"

/* What is there for all tests: a folder with a manifest, a policy, and a folder to write to. */
static char folder[] = "/tmp/manifest-test-XXXXXX";
static char file[sizeof(folder) + 16];

static void write_file(const char *name, const char *text)
{
	char path[sizeof(folder) + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static int set_up(void **state)
{
	char path[sizeof(folder) + 32];

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(file, sizeof(file), "%s/t.json", folder);
	(void)snprintf(path, sizeof(path), "%s/out", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file("t.json", "{}");
	write_file("p.json", "{\"limits\": {\"wall_ms\": 100}}");
	write_file("bad.json", "{\n\"limits\": {\"wal_ms\": 100}}");
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static struct vt_manifest *load(const char *text)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err = { 0 };

	vt_str_init(&mistakes);
	if (vt_manifest_load_text(text, strlen(text), file, &manifest, NULL, &mistakes, &err) < 0)
		fail_msg("%s", mistakes.text);
	assert_int_equal(mistakes.len, 0);
	vt_str_done(&mistakes);
	return manifest;
}

/* The mistakes, with the folder's name cut away from each. */
static char *mistakes_of(const char *text)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err = { 0 };
	char *found, *at;

	vt_str_init(&mistakes);
	int status = vt_manifest_load_text(text, strlen(text), file, &manifest, NULL, &mistakes,
					   &err);

	assert_true(status < 0 && status == -err.num);
	assert_memory_equal(err.what, mistakes.text, strnlen(err.what, 80));
	found = strdup(mistakes.text);
	vt_str_done(&mistakes);
	while ((at = strstr(found, folder)))
		memmove(at, at + strlen(folder), strlen(at + strlen(folder)) + 1);
	return found;
}

static void test_tools(void **state)
{
	(void)state;
	struct vt_manifest *manifest = load(
		"{\"$schema\": \"x\", \"policy\": \"p.json\", \"tools\": [\n"
		" {\"name\": \"count\", \"description\": \"Counts.\",\n"
		"  \"input_schema\": {\"type\": \"object\", \"properties\": {\"f\": {\"default\": "
		"0.1}}},\n"
		"  \"command\": [\"wc\", \"-l\", \"--\", \"{f}\"]},\n"
		" {\"name\": \"run\", \"command\": [\"sh\"], \"stdin\": \"{script}\",\n"
		"  \"policy\": { \"network\": \"none\" }},\n"
		" {\"name\": \"s\", \"command\": [\"true\"], \"policy\": \"strict\"}]}");

	assert_int_equal(manifest->count, 3);
	const struct vt_manifest_tool *tool = vt_manifest_find(manifest, "count");

	assert_non_null(tool);
	assert_string_equal(tool->description, "Counts.");
	/* As it was written. */
	assert_non_null(strstr(tool->schema, "\"default\": 0.1}"));
	assert_string_equal(tool->command[3], "{f}");
	assert_null(tool->command[4]);
	assert_null(tool->input);
	assert_string_equal(tool->policy.json, "{}");
	assert_string_equal(tool->policy.load + strlen(folder), "/p.json");
	tool = vt_manifest_find(manifest, "run");
	assert_string_equal(tool->input, "{script}");
	assert_string_equal(tool->policy.json, "{ \"network\": \"none\" }");
	assert_null(tool->policy.load);
	assert_string_equal(vt_manifest_find(manifest, "s")->policy.load, "strict");
	assert_null(vt_manifest_find(manifest, "coun"));
	assert_string_equal(vt_manifest_closest(manifest, "coun"), "count");
	assert_null(vt_manifest_closest(manifest, "elephants"));
	vt_manifest_free(manifest);
}

/* What the template cannot do without is required, wherever the schema has its list, or none. */
static void test_needs(void **state)
{
	static const struct {
		const char *schema; /* NULL: none */
		const char *command, *want;
	} cases[] = {
		{ "{\"required\": [\"a\"], \"x\": 0.1}", "\"{a}\"",
		  "{\"required\": [\"a\"], \"x\": 0.1}" },
		{ "{\"x\": 0.1, \"required\": [\"a\"]}", "\"{b}\", \"{a}\", \"{b}\"",
		  "{\"x\": 0.1, \"required\": [\"a\", \"b\"]}" },
		{ "{\"required\": [ ]}", "\"{-b}\"", "{\"required\": [ \"b\"]}" },
		{ "{\"type\": \"object\"}", "\"x{b}y\"",
		  "{\"required\": [\"b\"], \"type\": \"object\"}" },
		{ "{}", "\"{b}\"", "{\"required\": [\"b\"]}" },
		{ "{}", "\"{b?}\", \"{c...}\"", "{}" },
		{ "{\"properties\": {\"required\": {}}}", "\"{b}\"",
		  "{\"required\": [\"b\"], \"properties\": {\"required\": {}}}" },
		{ "{\"r\\u0065quired\": [\"a\"]}", "\"{b}\"", "{\"r\\u0065quired\": [\"a\"]}" },
		{ NULL, "\"{b}\"", "{\"required\": [\"b\"], \"type\": \"object\"}" },
		{ NULL, "\"b\"", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "{\"tools\": [{\"name\": \"a\", %s%s%s \"command\": [\"wc\", %s]}]}",
			       cases[i].schema ? "\"input_schema\": " : "",
			       cases[i].schema ? cases[i].schema : "", cases[i].schema ? "," : "",
			       cases[i].command);
		struct vt_manifest *manifest = load(text);

		if (cases[i].want)
			assert_string_equal(manifest->tools[0].schema, cases[i].want);
		else
			assert_null(manifest->tools[0].schema);
		vt_manifest_free(manifest);
	}
	struct vt_manifest *manifest = load("{\"tools\": [{\"name\": \"a\", \"command\": [\"sh\"], "
					    "\"stdin\": \"{script}{more?}\"}]}");

	assert_string_equal(manifest->tools[0].schema,
			    "{\"required\": [\"script\"], \"type\": \"object\"}");
	vt_manifest_free(manifest);
}

static void test_programs_beside_it(void **state)
{
	(void)state;
	static const char text[] =
		"{\"tools\": [{\"name\": \"a\", \"command\": [\"./bin/a\", \"./b\"]},"
		"{\"name\": \"b\", \"command\": [\"b\"]},"
		"{\"name\": \"c\", \"command\": [\"/bin/c\"]}]}";
	struct vt_manifest *manifest = load(text);

	assert_string_equal(manifest->tools[0].command[0] + strlen(folder), "/./bin/a");
	assert_string_equal(manifest->tools[0].command[1], "./b");
	assert_string_equal(manifest->tools[1].command[0], "b");
	assert_string_equal(manifest->tools[2].command[0], "/bin/c");
	vt_manifest_free(manifest);
	/* A template, in which a folder's braces are no argument. */
	struct vt_str mistakes;
	struct vt_err err;

	vt_str_init(&mistakes);
	assert_int_equal(vt_manifest_load_text(text, strlen(text), "/tmp/{a}/t.json", &manifest,
					       NULL, &mistakes, &err),
			 0);
	assert_string_equal(manifest->tools[0].command[0], "/tmp/{{a}}/./bin/a");
	assert_string_equal(manifest->tools[0].program, "/tmp/{a}/./bin/a");
	vt_str_done(&mistakes);
	vt_manifest_free(manifest);
}

static void test_no_tools(void **state)
{
	(void)state;
	struct vt_manifest *manifest = load("{\"tools\": []}");

	assert_int_equal(manifest->count, 0);
	vt_manifest_free(manifest);
}

/* Each has its line and its key. */
static const struct {
	const char *text, *want;
} wrong_texts[] = {
	{ "", "/t.json:1:1: the text ends too early\n" },
	{ "{\n \"tools\": [,]}", "/t.json:2:12: unexpected token near ','\n" },
	{ "{\"tools\": [], \"tools\": []}",
	  "/t.json:1:21: duplicate object key near '\"tools\"'\n" },
	{ "[]", "/t.json:1: want a manifest, which is an object: {\"tools\": [...]}\n" },
	{ "\n{}", "/t.json:2: there is no \"tools\": a manifest is {\"tools\": [...]}\n" },
	{ "{\n\n\"tools\": 1}", "/t.json:3: tools: want a list of tools: [...]\n" },
	{ "{\"tools\": [],\n\"polcy\": 1}",
	  "/t.json:2: unknown key 'polcy'; did you mean 'policy'?\n" },
	{ "{\"tools\": [],\n\"zzzzzzzz\\u001b\": 1}",
	  "/t.json:2: unknown key 'zzzzzzzz\\u001b'; see vitro-tools(5)\n" },
	{ "{\"tools\": [\n1]}", "/t.json:2: tools[0]: want a tool, which is an object: {...}\n" },
	{ "{\"tools\": [\n{}]}",
	  "/t.json:2: tools[0]: there is no \"name\"\n"
	  "/t.json:2: tools[0]: there is no \"command\", no \"python\", and no \"node\"\n" },
	{ "{\"tools\": [{\"name\": \"a\",\n\"comand\": [\"b\"]}]}",
	  "/t.json:2: tools[0]: unknown key 'comand'; did you mean 'command'?\n"
	  "/t.json:1: tools[0]: there is no \"command\", no \"python\", and no \"node\"\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"inptu\": {}, \"e\": {},\n\"command\": [\"b\"]}]}",
	  "/t.json:1: tools[0]: unknown key 'inptu'; did you mean 'input_schema'?\n"
	  "/t.json:1: tools[0]: unknown key 'e'; see vitro-tools(5)\n" },
	{ "{\"tools\": [{\"name\": \"a b\",\n\"command\": \"wc -l\"}]}",
	  "/t.json:1: tools[0].name: a b: the name of a tool has letters, digits and "
	  "\"_-.:/\" only\n"
	  "/t.json:2: tools[0].command: want a list of words, as [\"wc\", \"-l\", \"--\", "
	  "\"{file}\"]\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"]},\n{\n\"name\": \"a\", "
	  "\"command\": []}]}",
	  "/t.json:3: tools[1].name: 'a' is the name of tools[0] already\n"
	  "/t.json:3: tools[1].command[0]: there must be a program\n" },
	{ "{\"tools\": [{\"name\": 5, \"description\": [], \"command\": [\"b\",\n 7]}]}",
	  "/t.json:1: tools[0].name: want a string\n/t.json:1: tools[0].description: want "
	  "a string\n"
	  "/t.json:2: tools[0].command[1]: want a string\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"input_schema\": {\n\"properties\": {\"x\": {\n"
	  "\"type\": \"strin\"}}}, \"command\": [\"b\"]}]}",
	  "/t.json:3: tools[0].input_schema.properties.x.type: " },
	{ "{\"tools\": [{\"name\": \"a\", \"input_schema\": [], \"command\": [\"b\", "
	  "\"{x}\"]}]}",
	  "/t.json:1: tools[0].input_schema: want a JSON schema, which is an object\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"input_schema\":\n{\"type\": \"number\"}, "
	  "\"command\": [\"b\"]}]}",
	  "/t.json:2: tools[0].input_schema.type: arguments are an object, and \"number\" allows "
	  "none\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"input_schema\": {\"properties\": {\"file\": "
	  "{}},\n"
	  "\"additionalProperties\": false}, \"command\": [\"b\", \n\"{fle}\"], "
	  "\n\"stdin\": \"{fil}\"}]}",
	  "/t.json:3: tools[0].command[1]: the schema has no argument 'fle'; did you mean "
	  "'file'?\n"
	  "/t.json:4: tools[0].stdin: the schema has no argument 'fil'; did you mean "
	  "'file'?\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"sh\", \"-c\",\n\"ls {x}\"]}]}",
	  "/t.json:2: tools[0].command[2]: an argument inside a script would be code; " },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"], \"policy\": {\n\"limits\": "
	  "{\n"
	  "\"wal_ms\": 5}}}]}",
	  "/t.json:3: tools[0].policy.limits.wal_ms: unknown key 'limits.wal_ms'; did you "
	  "mean "
	  "'limits.wall_ms'?\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"], \"policy\": {\n\"limits\": "
	  "{\n"
	  "\"wall_ms\": \"soon\"}}}]}",
	  "/t.json:3: tools[0].policy.limits.wall_ms: " },
	{ "{\"tools\": [],\n\"policy\": 5}",
	  "/t.json:2: policy: want an object, or the name of a policy as a string\n" },
	{ "{\"tools\": [],\n\"policy\": \"strickt\"}", "/t.json:2: policy: there is no file '" },
	{ "{\"tools\": [],\n\"policy\": \"bad.json\"}",
	  "/t.json:2: policy: /bad.json: unknown key 'limits.wal_ms'; did you mean "
	  "'limits.wall_ms'?\n" },
	{ "{\"tools\": [],\n\"policy\": {\n\"extends\": \"bad.json\"}}",
	  "/t.json:3: policy.extends: /bad.json: unknown key 'limits.wal_ms'; did you mean "
	  "'limits.wall_ms'?\n" },
	{ "{\"tools\": [],\n\"policy\": {\n\"extends\": \"none.json\"}}",
	  "/t.json:3: policy.extends: there is no file '" },
	{ "{\"tools\": [{\"name\": \"a\",\n\"command\": 5,\n\"stdin\": 6}]}",
	  "/t.json:2: tools[0].command: want a list of words\n"
	  "/t.json:3: tools[0].stdin: want a string\n" },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],\n\"policy\": {\n\"files\": "
	  "{\"read\": [\"/a\",\n1]}}}]}",
	  "/t.json:4: tools[0].policy.files.read[1]: " },
	{ "{\"tools\": [{\"name\": \"a\",\n\"command\": [\"b\",\n\"{x\"]}]}",
	  "/t.json:3: tools[0].command[1]: " },
	{ "{\"tools\": [{\"name\": \"a\",\n\"command\": [\"b\"],\n\"stdin\": \"{x...}\"}]}",
	  "/t.json:3: tools[0].stdin: " },
};

/* Texts that are too long to be written out: so many times a part, between two others. */
static const struct {
	const char *before, *part, *after, *want;
	size_t times;
} long_texts[] = {
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],\n\"description\": \"", "x", "\"}]}",
	  "/t.json:2: tools[0].description: it is longer than 64 KB\n", (64 << 10) + 1 },
	{ "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],\n\"input_schema\": "
	  "{\"title\": \"",
	  "x", "\"}}]}", "/t.json:2: tools[0].input_schema: it is longer than 256 KB\n",
	  256 << 10 },
	{ "{\"tools\": [{\"name\": \"a\",\n\"command\": [\"b\"", ",\"c\"", "]}]}",
	  "/t.json:2: tools[0].command: there are more than 4096 words\n", 4096 },
	{ "{\"tools\": [{\"name\": \"a\",\n\"command\": [\"b\",\n\"", "x", "\"]}]}",
	  "/t.json:3: tools[0].command", 65 << 10 },
	{ "{\n\"tools\": ", "[", "", "/t.json:2:", 3000 },
};

static void test_long_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(long_texts) / sizeof(long_texts[0]); i++) {
		struct vt_str text;

		vt_str_init(&text);
		vt_str_add(&text, long_texts[i].before);
		for (size_t j = 0; j < long_texts[i].times; j++)
			vt_str_add(&text, long_texts[i].part);
		vt_str_add(&text, long_texts[i].after);
		char *found = mistakes_of(text.text);

		if (strncmp(found, long_texts[i].want, strlen(long_texts[i].want)) != 0)
			fail_msg("%zu: found %.300s", i, found);
		free(found);
		vt_str_done(&text);
	}
}

/* What jansson reads, and nobody passes on as text. */
static void test_deep_mistake(void **state)
{
	struct vt_str text;

	(void)state;
	vt_str_init(&text);
	vt_str_add(&text, "{\"policy\": {},\n\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],\n"
			  "\"input_schema\": {\"const\": ");
	for (int i = 0; i < 600; i++)
		vt_str_add(&text, "[");
	for (int i = 0; i < 600; i++)
		vt_str_add(&text, "]");
	vt_str_add(&text, "}}]}");
	char *found = mistakes_of(text.text);

	assert_string_equal(found, "/t.json:2: tools: this is nested too deeply\n");
	free(found);
	vt_str_done(&text);
}

/* What is found when a tool is tried says where the manifest has it. */
static void test_blame(void **state)
{
	static const struct {
		const char *policy; /* of the manifest */
		const char *own;    /* of the tool */
		enum vt_step step;
		const char *want;
	} cases[] = {
		{ "", "", VT_STEP_COMMAND, "/t.json:4: tools[1].command: what" },
		{ "", "", VT_STEP_PLAN, "/t.json:3: tools[1]: what" },
		{ "", ",\n\"policy\": {}", VT_STEP_PLAN, "/t.json:5: tools[1].policy: what" },
		{ "\"policy\": {},", "", VT_STEP_PLAN, "/t.json:1: policy: what" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct vt_err err;

		(void)snprintf(text, sizeof(text),
			       "{%s\n\"tools\": [{\"name\": \"a\", \"command\": [\"b\"]},\n"
			       "{\"name\": \"c\",\n\"command\": [\"d\"]%s}]}",
			       cases[i].policy, cases[i].own);
		struct vt_manifest *manifest = load(text);

		assert_int_equal(vt_fail(&err, cases[i].step, ENOENT, "what"), -ENOENT);
		assert_int_equal(vt_manifest_blame(&manifest->tools[1], &err), -ENOENT);
		assert_int_equal(err.step, cases[i].step);
		assert_string_equal(err.what + strlen(folder), cases[i].want);
		vt_manifest_free(manifest);
	}
}

static void test_mistakes(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong_texts) / sizeof(wrong_texts[0]); i++) {
		char *found = mistakes_of(wrong_texts[i].text);
		bool whole = wrong_texts[i].want[strlen(wrong_texts[i].want) - 1] == '\n';

		if (whole ? strcmp(found, wrong_texts[i].want) != 0
			  : strncmp(found, wrong_texts[i].want, strlen(wrong_texts[i].want)) != 0) {
			print_error("of %s\nfound %s\nwant  %s", wrong_texts[i].text, found,
				    wrong_texts[i].want);
			wrong++;
		}
		free(found);
	}
	assert_int_equal(wrong, 0);
}

static void test_many_mistakes(void **state)
{
	char text[4096] = "{\"tools\": [";
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(text, i ? ",\n1" : "\n1");
	strcat(text, "]}");
	char *found = mistakes_of(text);

	for (const char *at = found; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, VT_MANIFEST_MISTAKES + 1);
	assert_non_null(strstr(found, "/t.json:21: tools[19]: "));
	assert_non_null(strstr(found, "there may be more mistakes after these\n"));
	free(found);
}

static void test_too_many_tools(void **state)
{
	enum { MANY = 4097 };
	struct vt_str text;

	(void)state;
	vt_str_init(&text);
	vt_str_add(&text, "{\"tools\": [1");
	for (int i = 1; i < MANY; i++)
		vt_str_add(&text, ",1");
	vt_str_add(&text, "]}");
	char *found = mistakes_of(text.text);

	assert_string_equal(found, "/t.json:1: tools: there are more than 4096\n");
	free(found);
	vt_str_done(&text);
}

/* What a tool may write must hold neither the manifest nor a policy, by whatever name. */
static void test_nobody_writes_their_own_manifest(void **state)
{
	static const struct {
		const char *policy; /* of the tool */
		bool refused;
	} cases[] = {
		{ "{\"files\": {\"write\": [\"out\"]}}", false },
		{ "{\"files\": {\"write\": [\".\"]}}", true },
		{ "{\"files\": {\"write\": [\"..\"]}}", true },
		{ "{\"files\": {\"write\": [\"t.json\"]}}", true },
		{ "{\"files\": {\"write\": [\"p.json\"]}, \"extends\": \"p.json\"}", true },
		{ "{\"files\": {\"write\": [\"link\"]}}", true },
		{ "{\"files\": {\"write\": [\".\"], \"deny\": [\"t.json\"]}}", false },
		{ "{\"files\": {\"write\": [\".\"]}, \"require\": \"best-effort\"}", false },
		{ "{\"files\": {\"read\": [\".\"]}}", false },
	};
	char path[sizeof(folder) + 16], text[512];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink(".", path), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_manifest *manifest = NULL;
		struct vt_str mistakes;
		struct vt_err err = { 0 };

		(void)snprintf(
			text, sizeof(text),
			"{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],\n\"policy\": %s}]}",
			cases[i].policy);
		vt_str_init(&mistakes);
		int status = vt_manifest_load_text(text, strlen(text), file, &manifest, NULL,
						   &mistakes, &err);

		if ((status < 0) != cases[i].refused)
			fail_msg("%s: %s", cases[i].policy, mistakes.text);
		if (status < 0)
			assert_non_null(strstr(mistakes.text,
					       "t.json:2: tools[0].policy: files.write: with '"));
		vt_str_done(&mistakes);
		vt_manifest_free(manifest);
	}
}

/* A link to the manifest that a tool could put elsewhere. */
static void test_nobody_turns_the_link(void **state)
{
	char path[sizeof(folder) + 32];
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err;

	(void)state;
	write_file("t.json", "{\"tools\": [{\"name\": \"a\", \"command\": [\"b\"],"
			     "\"policy\": {\"files\": {\"write\": [\".\"]}}}]}");
	(void)snprintf(path, sizeof(path), "%s/out/turned.json", folder);
	assert_int_equal(symlink(file, path), 0);
	vt_str_init(&mistakes);
	/* Its paths are relative to where it was named: "." is the folder of the link. */
	assert_int_equal(vt_manifest_load(path, &manifest, NULL, &mistakes, &err), -EINVAL);
	assert_non_null(strstr(mistakes.text, "could change '"));
	vt_str_done(&mistakes);
}

/* What the library is given: the manifest is a source of each policy. */
static void test_table(void **state)
{
	(void)state;
	struct vt_manifest *manifest = load(
		"{\"policy\": {\"files\": {\"write\": [\"out\"]}}, \"tools\": ["
		"{\"name\": \"a\", \"command\": [\"b\"], \"stdin\": \"x\"},"
		"{\"name\": \"c\", \"command\": [\"d\"], \"policy\": \"p.json\"}]}");
	struct vitro_error error;
	struct vitro_tool *tools;

	assert_int_equal(vt_manifest_table(manifest, NULL, &tools, &error), 0);
	assert_string_equal(tools[0].name, "a");
	assert_string_equal(tools[0].input, "x");
	assert_null(tools[2].name);
	for (int i = 0; i < 2; i++) {
		char *sources = vt_policy_sources(tools[i].policy);

		assert_non_null(strstr(sources, "\"from\":\"/tmp/manifest-test-"));
		assert_true(!strstr(sources, "p.json") == (i == 0));
		assert_true(!strstr(sources, "write") == (i == 1));
		free(sources);
	}
	vt_manifest_table_free(tools);
	assert_int_equal(
		vt_manifest_table(manifest, vt_manifest_find(manifest, "c"), &tools, &error), 0);
	assert_string_equal(tools[0].name, "c");
	assert_null(tools[1].name);
	vt_manifest_table_free(tools);
	vt_manifest_free(manifest);
}

/* What a manifest with two tools says of their policies: its text, or "". */
static char *mistakes_of_two(const char *a, const char *b)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "{\"tools\": [{\"name\": \"a\", \"command\": [\"x\"]%s%s},\n"
		       "{\"name\": \"b\", \"command\": [\"x\"], \"policy\": %s}]}",
		       a ? ", \"policy\": " : "", a ? a : "", b);
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err;

	vt_str_init(&mistakes);
	if (vt_manifest_load_text(text, strlen(text), file, &manifest, NULL, &mistakes, &err) == 0)
		vt_manifest_free(manifest);
	char *told = strdup(mistakes.len ? mistakes.text : "");

	vt_str_done(&mistakes);
	assert_non_null(told);
	return told;
}

/* Nor what another tool stands on: the file, what that extends, a link on the way to it. */
static void test_nobody_writes_anothers_policy(void **state)
{
#define BEST "\"require\": \"best-effort\""
	static const struct {
		const char *a, *b;
		bool refused;
	} cases[] = {
		{ "\"out/a.json\"", "{\"files\": {\"write\": [\"out\"]}}", true },
		{ "\"out/a.json\"", "{\"files\": {\"read\": [\"out\"]}}", false },
		{ "\"out/a.json\"", "{\"files\": {\"write\": [\"out/data\"]}}", false },
		{ "\"out/a.json\"",
		  "{\"files\": {\"write\": [\"out\"], \"deny\": [\"out/a.json\"]}}", false },
		{ "\"extends.json\"", "{\"files\": {\"write\": [\"out\"]}}", true },
		{ "\"way/a.json\"", "{\"files\": {\"write\": [\"ways\"]}}", true },
		{ "\"way/a.json\"", "{\"files\": {\"write\": [\"out\"]}}", true },
		/* Under best effort its own is at its risk, but nobody else's. */
		{ "\"out/a.json\"", "{\"files\": {\"write\": [\"out\"]}, " BEST "}", true },
		{ "{\"extends\": \"out/a.json\", " BEST "}",
		  "{\"files\": {\"write\": [\"out\"]}, " BEST "}", false },
		{ NULL, "{\"files\": {\"write\": [\".\"]}, " BEST "}", true },
	};
	char path[sizeof(folder) + 32];

	(void)state;
	write_file("out/a.json", "{}");
	write_file("extends.json", "{\"extends\": \"out/a.json\"}");
	(void)snprintf(path, sizeof(path), "%s/out/data", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/ways", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/ways/on", folder);
	assert_int_equal(symlink("../out", path), 0);
	(void)snprintf(path, sizeof(path), "%s/way", folder);
	assert_int_equal(symlink("ways/on", path), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *told = mistakes_of_two(cases[i].a, cases[i].b);

		if (!strstr(told, "t.json:2: tools[1].policy: files.write: with '") ==
		    cases[i].refused)
			fail_msg("%s, %s: '%s'", cases[i].a, cases[i].b, told);
		free(told);
	}
}

/* Whoever waits for a change is to know of each file, also of one that is wrong or not there. */
static void test_sources(void **state)
{
	static const char text[] =
		"{\"tools\": [{\"name\": \"c\", \"command\": [\"d\"], \"policy\": \"0.json\"},"
		"{\"name\": \"e\", \"command\": [\"d\"], \"policy\": \"1.json\"}]}";
	static const char *const names[] = { "t.json", "0.json", "1.json", "2.json" };
	struct vt_manifest *manifest;
	char path[sizeof(folder) + 32];

	(void)state;
	write_file("0.json", "{\"extends\": \"1.json\"}");
	write_file("1.json", "{\"extends\": \"2.json\"}");
	for (int round = 0; round < 3; round++) {
		struct vt_str sources, mistakes;
		struct vt_err err;
		size_t at = 0;

		if (round)
			write_file("2.json", round == 1 ? "{" : "{}");
		vt_str_init(&sources);
		vt_str_init(&mistakes);
		int status = vt_manifest_load_text(text, strlen(text), file, &manifest, &sources,
						   &mistakes, &err);

		assert_int_equal(status == 0, round == 2);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
			assert_true(at < sources.len);
			assert_string_equal(sources.text + at, path);
			at += strlen(path) + 1;
			if (status == 0)
				assert_string_equal(manifest->sources[i], path);
		}
		assert_int_equal(at, sources.len);
		if (status == 0) {
			assert_null(manifest->sources[sizeof(names) / sizeof(names[0])]);
			vt_manifest_free(manifest);
		}
		vt_str_done(&sources);
		vt_str_done(&mistakes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tools),
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_programs_beside_it),
		cmocka_unit_test(test_no_tools),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_many_mistakes),
		cmocka_unit_test(test_long_mistakes),
		cmocka_unit_test(test_deep_mistake),
		cmocka_unit_test(test_blame),
		cmocka_unit_test(test_too_many_tools),
		cmocka_unit_test(test_nobody_writes_their_own_manifest),
		cmocka_unit_test(test_nobody_turns_the_link),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nobody_writes_anothers_policy),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
