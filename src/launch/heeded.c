/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/heeded.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Makes of a letter, or "_", a digit or a mark, and that again of those. No name that is used
 * begins so; and it is text, for modules that read all that is there.
 */
enum { TURN = 0x60 };

/* Whole families, so that one that is new in them is hidden, too. */
static const char *const families[] = {
	/* The loader and libc: code, catalogs that have formats, what is written at the end. */
	"LD_", "GCONV_PATH=", "LOCPATH=", "MUSL_LOCPATH=", "NLSPATH=", "LANGUAGE=", "GETCONF_DIR=",
	"MALLOC_TRACE=", "MALLOC_CONF=", "GMON_OUT_PREFIX=",
	/* OpenSSL, and who logs its keys. */
	"OPENSSL_", "SSLKEYLOGFILE=",
	/* Interpreters: zygotes, and what is started while a zygote imports. */
	"PYTHON", "_PYTHON_", "NODE_", "BASH_ENV=",
	/* By which libuv would open files where nobody looks at them (runtimes/node/gate.h). */
	"UV_USE_IO_URING="
};

/*
 * Of these, what leads to no code and has nothing written: switches, certificates and time zones.
 * An interpreter asks for most of them at its start alone, so that hidden they would be lost to
 * calls; modules ask for the first two.
 */
static const char *const harmless[] = {
	"NODE_ENV=",           "PYTHON_ENV=",          "PYTHONTZPATH=",
	"NODE_DEBUG=",         "NODE_EXTRA_CA_CERTS=", "NODE_NO_WARNINGS=",
	"NODE_USE_ENV_PROXY=", "NODE_USE_SYSTEM_CA=",  "NODE_PENDING_DEPRECATION="
};

static bool begins_like_one(char first, const char *rest, const char *const *beginnings,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = beginnings[i];

		if (first == name[0] && strncmp(rest, name + 1, strlen(name + 1)) == 0)
			return true;
	}
	return false;
}

static bool is_heeded(char first, const char *rest)
{
	return begins_like_one(first, rest, families, COUNT(families)) &&
	       !begins_like_one(first, rest, harmless, COUNT(harmless));
}

char **vt_heeded_hide(char *const *variables, unsigned more)
{
	size_t count = 0, bytes = 0;

	for (; variables[count]; count++)
		bytes += is_heeded(variables[count][0], variables[count] + 1)
				 ? strlen(variables[count]) + 1
				 : 0;
	char **copy = calloc(1, (count + more + 1) * sizeof(char *) + bytes);

	if (!copy)
		return NULL;
	char *text = (char *)(copy + count + more + 1);

	for (size_t i = 0; i < count; i++) {
		copy[i] = variables[i];
		if (!is_heeded(variables[i][0], variables[i] + 1))
			continue;
		copy[i] = text;
		text = stpcpy(text, variables[i]) + 1;
		copy[i][0] ^= TURN;
	}
	return copy;
}

void vt_heeded_show(char **variables)
{
	for (; variables && *variables; variables++)
		if (is_heeded((char)((*variables)[0] ^ TURN), *variables + 1))
			(*variables)[0] ^= TURN;
}
