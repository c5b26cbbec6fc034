/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every file of a folder through a fuzzer's function, as a TAP test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static int replay(const char *folder, const char *name)
{
	static uint8_t bytes[1 << 20];
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "rb");

	if (!file)
		return -1;
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	int bad = ferror(file);

	fclose(file);
	return bad ? -1 : LLVMFuzzerTestOneInput(bytes, size);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int count = argc == 2 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;
	int failed = 0;

	/* An empty corpus would pass with nothing run. */
	if (count <= 0) {
		printf("Bail out! usage: replay FOLDER, with files in it\n");
		return 1;
	}
	printf("1..%d\n", count);
	for (int i = 0; i < count; i++) {
		int status = replay(argv[1], entries[i]->d_name);

		printf("%sok %d - %s\n", status < 0 ? "not " : "", i + 1, entries[i]->d_name);
		(void)fflush(stdout); /* so that an abort shows which file came next */
		failed += status < 0;
		free(entries[i]);
	}
	free(entries);
	return failed > 0;
}
