/* SPDX-License-Identifier: Apache-2.0 */
/* A program's look at its own memory. */
#include "apart.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t unhide(const char *hex, char *out, size_t room)
{
	size_t len = 0;
	unsigned byte;

	for (; len < room && sscanf(hex + 2 * len, "%2x", &byte) == 1; len++)
		out[len] = (char)~byte;
	return len;
}

/* A bare cell has no mem in its proc. The kernel, which copies the bytes, minds pages that are not
 * there. */
static ssize_t read_memory(const int pipe[2], unsigned long from, char *to, size_t size)
{
	ssize_t got = write(pipe[1], (const void *)from, size < 4096 ? size : 4096);

	return got <= 0 ? got : read(pipe[0], to, (size_t)got);
}

static int count_in(const int pipe[2], unsigned long from, unsigned long to, const char *needle,
		    size_t len, char *buffer, size_t room)
{
	int found = 0;
	size_t kept = 0;

	while (from < to) {
		size_t size = to - from < room - kept ? to - from : room - kept;
		ssize_t got = read_memory(pipe, from, buffer + kept, size);

		if (got <= 0)
			return found; /* pages that nobody can read, such as vvar */
		size_t have = kept + (size_t)got;

		for (char *at = buffer, *hit;
		     (hit = memmem(at, have - (size_t)(at - buffer), needle, len)); at = hit + 1)
			found++;
		kept = have < len - 1 ? have : len - 1;
		memmove(buffer, buffer + have - kept, kept);
		from += (unsigned long)got;
	}
	return found;
}

int count_in_memory(const char *hidden)
{
	static char buffer[1 << 16]; /* in itself it looks too: what is there was read elsewhere */
	char needle[128], line[512];
	size_t len = unhide(hidden, needle, sizeof(needle));
	int mem[2], found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps || len < 8 || pipe(mem) < 0)
		return -1;
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[0] != 'r')
			continue;
		/* Neither the needle itself nor what was read of others is a find. */
		if ((unsigned long)needle >= from && (unsigned long)needle < to) {
			found += count_in(mem, from, (unsigned long)needle, needle, len, buffer,
					  sizeof(buffer));
			from = (unsigned long)needle + sizeof(needle);
		}
		if ((unsigned long)buffer >= from && (unsigned long)buffer < to) {
			found += count_in(mem, from, (unsigned long)buffer, needle, len, buffer,
					  sizeof(buffer));
			from = (unsigned long)buffer + sizeof(buffer);
		}
		found += count_in(mem, from, to, needle, len, buffer, sizeof(buffer));
		memset(buffer, 0, sizeof(buffer));
	}
	fclose(maps);
	close(mem[0]);
	close(mem[1]);
	return found;
}
