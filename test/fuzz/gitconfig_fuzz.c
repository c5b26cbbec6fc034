/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of git configurations under any bytes: what it tells is a path that the text has room
 * for, and whatever comes before an include, that is told. libFuzzer drives it, or replay.c.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "plan/gitconfig.h"

static const char last[] = "\n\n[include]\n\tpath = ../the last\n";

struct told {
	size_t size, count, bytes;
	bool last;
};

static void take(void *arg, enum vt_gitconfig_path kind, const char *value)
{
	struct told *told = arg;
	size_t len = strlen(value);

	REQUIRE(kind <= VT_GITCONFIG_TREE);
	REQUIRE(len > 0 && len < PATH_MAX);
	told->count++;
	told->bytes += len;
	REQUIRE(told->bytes <= told->size);
	told->last = kind == VT_GITCONFIG_INCLUDE && strcmp(value, "../the last") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct told told = { .size = size }, longer = { .size = size + sizeof(last) };
	/* Just as large as the text is, so that a byte read beyond it shows. */
	char *text = calloc(1, size + sizeof(last) - 1);

	REQUIRE(text);
	if (size)
		memcpy(text + sizeof(last) - 1, data, size);
	vt_gitconfig_paths(text + sizeof(last) - 1, size, take, &told);
	if (size)
		memcpy(text, data, size);
	memcpy(text + size, last, sizeof(last) - 1);
	vt_gitconfig_paths(text, size + sizeof(last) - 1, take, &longer);
	REQUIRE(longer.last && longer.count >= told.count);
	free(text);
	return 0;
}
