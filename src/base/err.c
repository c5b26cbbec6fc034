/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const step_names[VT_STEP_COUNT] = {
	[VT_STEP_NONE] = "none",         [VT_STEP_POLICY] = "policy",
	[VT_STEP_COMMAND] = "command",   [VT_STEP_PLAN] = "plan",
	[VT_STEP_CLONE] = "namespaces",  [VT_STEP_CGROUP] = "cgroup",
	[VT_STEP_IDS] = "ids",           [VT_STEP_MOUNTS] = "mounts",
	[VT_STEP_NETWORK] = "network",   [VT_STEP_SESSION] = "session",
	[VT_STEP_LIMITS] = "limits",     [VT_STEP_CAPS] = "capabilities",
	[VT_STEP_LANDLOCK] = "landlock", [VT_STEP_DESCRIPTORS] = "descriptors",
	[VT_STEP_SECCOMP] = "seccomp",   [VT_STEP_EXEC] = "exec",
	[VT_STEP_WATCH] = "watch",       [VT_STEP_OUTPUT] = "output",
	[VT_STEP_WIRE] = "wire",
};

static int begin(struct vt_err *err, enum vt_step step, int num)
{
	err->step = step;
	err->num = num > 0 ? num : EIO;
	return -err->num;
}

static void mark_cut(struct vt_err *err)
{
	memcpy(err->what + sizeof(err->what) - 4, "...", 4);
}

int(vt_fail)(struct vt_err *err, enum vt_step step, int num, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	if (len < 0)
		err->what[0] = '\0';
	else if ((size_t)len >= sizeof(err->what))
		mark_cut(err);
	return begin(err, step, num);
}

/* Appends as much of text as fits, and says how long what[] is then. */
static size_t put(struct vt_err *err, size_t at, const char *text)
{
	size_t len = strlen(text);
	size_t room = sizeof(err->what) - 1 - at;

	memcpy(err->what + at, text, len < room ? len : room);
	if (len > room) {
		mark_cut(err);
		return sizeof(err->what) - 1;
	}
	err->what[at + len] = '\0';
	return at + len;
}

int(vt_fail_at)(struct vt_err *err, enum vt_step step, int num, const char *what,
		const char *subject)
{
	size_t at = put(err, 0, what);

	if (subject) {
		at = put(err, at, " '");
		at = put(err, at, subject);
		put(err, at, "'");
	}
	return begin(err, step, num);
}

const char *vt_step_name(enum vt_step step)
{
	return (unsigned)step < VT_STEP_COUNT ? step_names[step] : "unknown";
}

bool vt_err_passes(int num)
{
	return num == EAGAIN || num == EINTR || num == EMFILE || num == ENFILE || num == ENOBUFS ||
	       num == ENOMEM;
}
