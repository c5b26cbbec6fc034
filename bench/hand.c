/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells by hand for benchmarks that are no C: vitro-bench-hand VITRO. 'm' on standard input makes
 * one, 'e' ends it; either is answered by itself when it is done.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rig.h"

int main(int argc, char **argv)
{
	const unsigned long namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
					 CLONE_NEWUTS | CLONE_NEWCGROUP;
	struct mounts mounts;
	struct hand hand;
	char order;

	if (argc != 2) {
		fputs("usage: vitro-bench-hand VITRO\n", stderr);
		return 2;
	}
	mounts_of_cell(argv[1], &mounts);
	hand_open(&hand, &mounts, namespaces);
	while (read(STDIN_FILENO, &order, 1) == 1) {
		if (order == 'm')
			(void)hand_make(&hand); /* who asked has a clock */
		else
			hand_end(&hand);
		if (write(STDOUT_FILENO, &order, 1) != 1)
			die("answer: %s", strerror(errno));
	}
	hand_close(&hand);
	return 0;
}
