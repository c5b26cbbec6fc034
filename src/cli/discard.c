/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro discard FOLDER: removes a folder of the caller's, which cells wrote to, with all that is in
 * it, and through no link. For programs whose language has no openat().
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "kernel/scratch.h"

int vt_cli_discard(int argc, char **argv)
{
	enum { PATIENCE_MS = 1000 };
	char message[PATH_MAX + 128];

	if (argc != 2 || *argv[1] != '/') {
		vt_cli_complain("this is for programs that embed vitro: discard /FOLDER");
		return VT_EXIT_OWN;
	}
	int r = vt_scratch_discard(argv[1], geteuid(), true, PATIENCE_MS);

	if (r == 0)
		return 0;
	(void)snprintf(message, sizeof(message), "'%s' cannot be removed: %s", argv[1],
		       strerror(-r)); /* a longer one is cut */
	vt_cli_complain(message);
	return VT_EXIT_OWN;
}
