/* SPDX-License-Identifier: Apache-2.0 */
#include "host/python.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/helper.h"

/* All that is loaded before the hull is joined, and so with the caller's rights. */
static const char *const parts[] = {
	"python/_vitro_zygote.abi3.so",
	"python/codec.py",
	"python/talk.py",
	"python/resolve.py",
	"python/harness.py",
	"python/zygote.py",
};

int vt_python_find(char path[PATH_MAX], struct vt_err *err)
{
	char found[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		r = vt_helper_find_file(parts[i], found, err);
	if (r == -ENOENT)
		return vt_fail(
			err, VT_STEP_COMMAND, ENOENT,
			"this vitro was built without Python: there is no folder 'python' with its "
			"runtime beside it; build it where python3-dev is installed");
	if (r == 0)
		memcpy(path, found, sizeof(found));
	return r;
}

static int check_way(const char *path, const char *interpreter, struct vt_err *err)
{
	char at[PATH_MAX];
	struct stat st;

	(void)snprintf(at, sizeof(at), "%s", path); /* it is a path */
	while (strcmp(at, "/") != 0) {
		(void)dirname(at);
		if (stat(at, &st) < 0 || !(st.st_mode & S_IXOTH))
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: cells have no namespaces here, and a user of "
				       "their own each, "
				       "for whom '%s' is closed: '%s' would not find its library; "
				       "name one "
				       "that everyone may read",
				       at, interpreter);
	}
	return 0;
}

int vt_python_check_open(const char *path, struct vt_err *err)
{
	char real[PATH_MAX];
	int r = check_way(path, path, err);

	if (r == 0 && !realpath(path, real))
		r = vt_fail(err, VT_STEP_COMMAND, errno, "follow '%s'", path);
	return r < 0 ? r : check_way(real, path, err);
}
