/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mounts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

/* The names in mountinfo have blanks and backslashes as octal numbers. In place. */
static void unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; to++) {
		unsigned code;

		if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* Every mount point of this namespace, one after the other, each with its NUL. */
static void read_mounts(struct vt_str *points)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX + 1024], point[PATH_MAX];

	/* "36 35 98:0 /root /mount-point options ..." */
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			continue;
		unescape(point);
		vt_str_addn(points, point, strlen(point) + 1);
	}
	if (file)
		(void)fclose(file); /* only read from */
}

void vt_mounts_init(struct vt_mounts *mounts)
{
	vt_str_init(&mounts->points);
}

void vt_mounts_done(struct vt_mounts *mounts)
{
	vt_str_done(&mounts->points);
}

bool vt_mounts_below(struct vt_mounts *mounts, const char *path)
{
	struct vt_str *points = &mounts->points;

	if (points->len == 0)
		read_mounts(points);
	if (points->len == 0 || !vt_str_ok(points) || path[0] != '/')
		return true;
	for (const char *point = points->text; point < points->text + points->len;
	     point += strlen(point) + 1)
		if (vt_path_lies_in(point, path) && strcmp(point, path) != 0)
			return true;
	return false;
}
