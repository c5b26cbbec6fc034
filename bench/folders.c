/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

/* Known to the function that runs at exit, which takes no argument. */
static struct {
	char *home;
	pid_t owner;
	struct words folders, files;
} made;

static void remove_all(void)
{
	/* a forked child that exits is not the one to clean up */
	if (getpid() != made.owner)
		return;
	/* best effort, as always at exit */
	for (size_t i = 0; i < made.files.count; i++)
		(void)unlink(made.files.items[i]);
	for (size_t i = 0; i < made.folders.count; i++)
		(void)rmdir(made.folders.items[i]);
	(void)rmdir(made.home);
}

char **folders_make(const char *parent, size_t count)
{
	if (asprintf(&made.home, "%s/vitro-bench.XXXXXX", parent) < 0)
		die("out of memory");
	if (!mkdtemp(made.home))
		die("make a folder in %s: %s", parent, strerror(errno));
	made.owner = getpid();
	if (atexit(remove_all) != 0)
		die("out of memory");
	/* a cell's user is another one */
	if (chmod(made.home, 0755) < 0)
		die("open %s: %s", made.home, strerror(errno));
	for (size_t i = 0; i < count; i++) {
		words_addf(&made.folders, "%s/%04zu", made.home, i);
		if (mkdir(made.folders.items[i], 0755) < 0)
			die("make %s: %s", made.folders.items[i], strerror(errno));
	}
	return made.folders.items;
}

char *folders_file(const char *name, const char *text)
{
	words_addf(&made.files, "%s/%s", made.home, name);
	char *path = made.files.items[made.files.count - 1];
	FILE *file = fopen(path, "we");

	if (!file || fputs(text, file) == EOF || fclose(file) != 0)
		die("write %s: %s", path, strerror(errno));
	return path;
}

char *folders_policy(size_t count)
{
	char name[32], *text;
	size_t len;
	FILE *memory = need(open_memstream(&text, &len));

	fputs("{\"files\": {\"read\": [", memory);
	for (size_t i = 0; i < count; i++)
		fprintf(memory, "%s\n\"%s\"", i ? "," : "", made.folders.items[i]);
	fputs("\n]}}\n", memory);
	if (fclose(memory) != 0)
		die("out of memory");
	(void)snprintf(name, sizeof(name), "%zu.json", count);
	char *path = folders_file(name, text);

	free(text);
	return path;
}
