/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/gitconfig.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char found[8192];

static void collect(void *arg, enum vt_gitconfig_path kind, const char *value)
{
	size_t len = strlen(found);

	(void)arg;
	(void)snprintf(found + len, sizeof(found) - len, "%s%s:%s", len ? " " : "",
		       kind == VT_GITCONFIG_HOOKS ? "hooks" : "include", value);
}

static void check(const char *text, const char *wanted)
{
	*found = '\0';
	vt_gitconfig_paths(text, strlen(text), collect, NULL);
	assert_string_equal(found, wanted);
}

static void paths_are_found(void **state)
{
	(void)state;
	check("", "");
	check("[core]\n\thooksPath = .hooks\n", "hooks:.hooks");
	check("[CORE]\n\tHOOKSPATH=a b  \n", "hooks:a b");
	check("[core] hooksPath = x", "hooks:x");
	check("[include]\npath = a.cfg\n\tpath=b.cfg", "include:a.cfg include:b.cfg");
	check("[includeIf \"gitdir:/x/]y\"]\n\tpath = ~/c.cfg\n", "include:~/c.cfg");
	check("[includeif \"a\\\"b\"] path = c\n", "include:c");
	check("\xef\xbb\xbf[core]\nhookspath = h\n", "hooks:h");
	check("[a \"b\"]\n\tc = d\n[core]\nbare = false\n; x\n# y\n  hooksPath = z # not this\n",
	      "hooks:z");
}

static void values_are_unquoted_as_git_does(void **state)
{
	(void)state;
	check("[core]\nhooksPath = \"a # b\" ; c\n", "hooks:a # b");
	check("[core]\nhooksPath = a\" \"\n", "hooks:a ");
	check("[core]\nhooksPath = a\\\nb\n", "hooks:ab");
	check("[core]\nhooksPath = a\\\r\nb\n", "hooks:ab");
	check("[core]\nhooksPath = a\\\"b\\\\\n", "hooks:a\"b\\");
	check("[core]\nhooksPath = a\\tb\n", "hooks:a\tb");
}

static void others_are_not(void **state)
{
	(void)state;
	check("[core \"x\"]\nhooksPath = h\n[include \"x\"]\npath = i\n", "");
	check("[core]\nhooksPath\n[include]\npath =\n", "");
	check("[cores]\nhooksPath = h\n[core]\nhooksPaths = h\nx.hooksPath = h", "");
	check("[core]\n# hooksPath = h\n", "");
	check("hooksPath = h\n", "");
	check("[core\nhooksPath = h\n", "hooks:h"); /* git refuses the file; it does no harm */
}

static void odd_text_ends(void **state)
{
	static const char *const texts[] = { "[",
					     "[core",
					     "[core]\nhooksPath",
					     "[core]\nhooksPath=",
					     "[core]\nhooksPath=\"",
					     "[a \"\\",
					     "\\",
					     "=",
					     "]",
					     "\xff\xfe" };
	size_t len = PATH_MAX + 64;
	char *text = malloc(len);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check(texts[i], "");
	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text, "[core]\nhooksPath=", 17);
	*found = '\0';
	vt_gitconfig_paths(text, len, collect, NULL); /* longer than a path */
	assert_string_equal(found, "");
	memset(text, 'a', len);
	text[0] = '[';
	vt_gitconfig_paths(text, len, collect, NULL);
	assert_string_equal(found, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_found),
		cmocka_unit_test(values_are_unquoted_as_git_does),
		cmocka_unit_test(others_are_not),
		cmocka_unit_test(odd_text_ends),
	};

	return cmocka_run_group_tests_name("gitconfig", tests, NULL, NULL);
}
