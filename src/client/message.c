/* SPDX-License-Identifier: Apache-2.0 */
#include "client/message.h"

#include <errno.h>

enum { EXIT_CODE_MAX = 255, SIGNAL_MAX = 127, STREAM_MAX = 2, ERRNO_MAX = 4095 };

/* In the order in which a "done" has them. "level" has two kinds, and is looked at where it is
 * used. */
static const struct vt_head_field fields[] = {
	{ "is", VT_HEAD_TEXT, 0, 0 },
	{ "call", VT_HEAD_INT, 0, INT64_MAX },
	{ "status", VT_HEAD_TEXT, 0, 0 },
	{ "value", VT_HEAD_INT, 0, INT64_MAX },
	{ "stdout", VT_HEAD_INT, 0, INT64_MAX },
	{ "stderr", VT_HEAD_INT, 0, INT64_MAX },
	{ "dropped_stdout", VT_HEAD_INT, 0, INT64_MAX },
	{ "dropped_stderr", VT_HEAD_INT, 0, INT64_MAX },
	{ "exit_code", VT_HEAD_INT, -1, EXIT_CODE_MAX },
	{ "signal", VT_HEAD_INT, 0, SIGNAL_MAX },
	{ "wall_ns", VT_HEAD_INT, 0, INT64_MAX },
	{ "cpu_ns", VT_HEAD_INT, 0, INT64_MAX },
	{ "peak_kb", VT_HEAD_INT, -1, INT64_MAX },
	{ "processes", VT_HEAD_INT, -1, INT64_MAX },
	{ "unreaped", VT_HEAD_FLAG, 0, 0 },
	{ "cell", VT_HEAD_FLAG, 0, 0 },
	{ "protected", VT_HEAD_TEXT, 0, 0 },
	{ "error_type", VT_HEAD_TEXT, 0, 0 },
	{ "error", VT_HEAD_TEXT, 0, 0 },
	{ "stream", VT_HEAD_INT, 1, STREAM_MAX },
	{ "ask", VT_HEAD_INT, 0, INT64_MAX },
	{ "tool", VT_HEAD_TEXT, 0, 0 },
	{ "pool", VT_HEAD_INT, 0, INT64_MAX },
	{ "ok", VT_HEAD_FLAG, 0, 0 },
	{ "num", VT_HEAD_INT, 1, ERRNO_MAX },
	{ "version", VT_HEAD_INT, 0, INT64_MAX },
	{ "vitro", VT_HEAD_TEXT, 0, 0 },
};

int vt_message_read(const struct vt_frame *frame, struct vt_message *ret_message,
		    struct vt_err *err)
{
	int status = vt_head_parse(frame->head, frame->head_len, &ret_message->head, err);

	if (status == 0)
		status = vt_head_check(&ret_message->head, fields,
				       sizeof(fields) / sizeof(fields[0]), err);
	if (status < 0)
		return status;
	ret_message->is = vt_head_text(&ret_message->head, "is", NULL);
	ret_message->body = frame->body;
	ret_message->body_len = frame->body_len;
	return ret_message->is
		       ? 0
		       : vt_fail(err, VT_STEP_WIRE, EBADMSG, "a message does not say what it is");
}
