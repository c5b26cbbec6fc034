/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/heeded.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Names are UTF-8, where no letter of ASCII comes after such a byte: no policy has a name like it.
 */
enum { HIDDEN = 0x80 };

static bool is_heeded(const char *variable)
{
	static const char *const beginnings[] = {
		"LD_", "GCONV_PATH=", "LOCPATH=", "OPENSSL_", "NODE_OPTIONS=", "NODE_COMPILE_CACHE="
	};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		const char *rest = beginnings[i] + 1;

		if (((unsigned char)variable[0] & ~HIDDEN) == beginnings[i][0] &&
		    strncmp(variable + 1, rest, strlen(rest)) == 0)
			return true;
	}
	return false;
}

char **vt_heeded_hide(char *const *variables, unsigned more)
{
	size_t count = 0, bytes = 0;

	for (; variables[count]; count++)
		bytes += is_heeded(variables[count]) ? strlen(variables[count]) + 1 : 0;
	char **copy = calloc(1, (count + more + 1) * sizeof(char *) + bytes);

	if (!copy)
		return NULL;
	char *text = (char *)(copy + count + more + 1);

	for (size_t i = 0; i < count; i++) {
		copy[i] = variables[i];
		if (!is_heeded(variables[i]))
			continue;
		copy[i] = text;
		text = stpcpy(text, variables[i]) + 1;
		copy[i][0] = (char)(copy[i][0] | HIDDEN);
	}
	return copy;
}

void vt_heeded_show(char **variables)
{
	for (; variables && *variables; variables++)
		if (((*variables)[0] & HIDDEN) && is_heeded(*variables))
			(*variables)[0] = (char)((*variables)[0] & ~HIDDEN);
}
