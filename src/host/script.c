/* SPDX-License-Identifier: Apache-2.0 */
#include "host/script.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

bool vt_script_read(const char *path, struct vt_script *ret_script)
{
	static const char blanks[] = " \t";
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[VT_SCRIPT_HEAD];
	ssize_t len = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

	if (len < 3 || head[0] != '#' || head[1] != '!')
		return false;
	head[len] = '\0';
	head[strcspn(head, "\n")] = '\0';
	char *at = head + 2 + strspn(head + 2, blanks);
	size_t word = strcspn(at, blanks);
	char *rest = at + word + strspn(at + word, blanks);

	for (size_t end = strlen(rest); end > 0 && strchr(blanks, rest[end - 1]) != NULL; end--)
		rest[end - 1] = '\0';
	(void)snprintf(ret_script->interpreter, VT_SCRIPT_HEAD, "%.*s", (int)word, at); /* fits */
	(void)snprintf(ret_script->argument, VT_SCRIPT_HEAD, "%s", rest);               /* fits */
	return word > 0;
}

const char *vt_script_env_program(char *argument)
{
	static const char split_long[] = "--split-string";
	char *save = NULL;
	bool split = strncmp(argument, "-S", 2) == 0 || strncmp(argument, "-vS", 3) == 0 ||
		     strncmp(argument, split_long, sizeof(split_long) - 1) == 0;

	if (!split)
		return argument[0] == '\0' || argument[0] == '-' ? NULL : argument;
	argument += argument[1] == '-' ? sizeof(split_long) - 1 : strcspn(argument, "S") + 1;
	argument += *argument == '=';
	for (char *word = strtok_r(argument, " \t", &save); word != NULL;
	     word = strtok_r(NULL, " \t", &save)) {
		if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0)
			(void)strtok_r(NULL, " \t", &save); /* the option's own argument */
		else if (word[0] != '-' && strchr(word, '=') == NULL)
			return word;
	}
	return NULL;
}
