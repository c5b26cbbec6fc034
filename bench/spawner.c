/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command for each line that it reads, so many at once, and answers with how long it took
 * until all were over, in ns: vitro-bench-spawner COUNT COMMAND... It is a contestant of bench/all,
 * which measures from outside of Python.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rig.h"

enum { MAX_AT_ONCE = 256 };

static int64_t run_all(char *const *argv, unsigned count, int null_fd)
{
	pid_t pids[MAX_AT_ONCE];
	int64_t begin = vt_clock_now();

	for (unsigned i = 0; i < count; i++)
		pids[i] = spawn(argv, null_fd, 2);
	for (unsigned i = 0; i < count; i++) {
		int status = await(pids[i]);

		if (status != 0)
			die("%s failed: wait status %#x", argv[0], (unsigned)status);
	}
	return vt_clock_now() - begin;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	char line[16];

	if (count < 1 || count > MAX_AT_ONCE || null_fd < 0)
		die("usage: vitro-bench-spawner COUNT COMMAND...");
	while (fgets(line, sizeof(line), stdin)) {
		printf("%lld\n", (long long)run_all(argv + 2, (unsigned)count, null_fd));
		if (fflush(stdout) == EOF)
			die("answer: %s", strerror(errno));
	}
	return 0;
}
