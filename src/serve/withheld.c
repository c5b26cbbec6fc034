/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that a session's client is not told yet, since their lines are not in the audit log. They
 * are told, in their order, once the lines are; one that has waited for too long is lost instead,
 * and its line says still what became of the call.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/done.h"
#include "serve/session_private.h"

/* How long a client is kept waiting for a log that cannot be written. */
#define PATIENCE (5 * VT_NS_PER_S)

/* A frame that is made already. */
struct vt_withheld {
	struct vt_withheld *next;
	int64_t number; /* of the call */
	int64_t until;
	size_t head_len, len;
	char bytes[];
};

static void add_last(struct vt_session *session, struct vt_withheld *one)
{
	struct vt_withheld **at = &session->withheld;

	while (*at)
		at = &(*at)->next;
	*at = one;
	session->withheld_count++;
	session->withheld_bytes += one->len;
	vt_session_count_unread(session);
}

static struct vt_withheld *take_first(struct vt_session *session)
{
	struct vt_withheld *first = session->withheld;

	session->withheld = first->next;
	session->withheld_count--;
	session->withheld_bytes -= first->len;
	vt_session_count_unread(session);
	return first;
}

void vt_session_withhold(struct vt_session *session, int64_t number, const struct iovec *body,
			 size_t count)
{
	struct vt_err err;
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += body[i].iov_len;
	struct vt_withheld *one = vt_head_end(&session->head, &err) < 0
					  ? NULL
					  : malloc(sizeof(*one) + session->head.len + len);

	if (!one) {
		vt_session_tell_lost(session, number, "there is no memory for what the call gave");
		return;
	}
	*one = (struct vt_withheld){ .number = number,
				     .until = vt_clock_now() + PATIENCE,
				     .head_len = session->head.len,
				     .len = session->head.len + len };
	char *at = mempcpy(one->bytes, session->head.text, session->head.len);

	for (size_t i = 0; i < count; i++)
		if (body[i].iov_len)
			at = mempcpy(at, body[i].iov_base, body[i].iov_len);
	add_last(session, one);
}

void vt_session_tell_lost(struct vt_session *session, int64_t number, const char *why)
{
	struct vt_outcome outcome;
	struct vt_str texts[2];

	vt_outcome_init(&outcome);
	vt_str_init(&texts[0]);
	vt_str_init(&texts[1]);
	vt_verdict_set(&outcome.result.verdict, VT_STATUS_LOST, why);
	vt_done_describe(&session->head, number, &outcome, texts);
	vt_session_put(session, NULL, 0, NULL);
	vt_str_done(&texts[0]);
	vt_str_done(&texts[1]);
}

void vt_session_settle(struct vt_session *session, bool written, int64_t now)
{
	while (session->withheld && (written || session->withheld->until <= now)) {
		struct vt_withheld *one = take_first(session);
		const struct iovec body = { one->bytes + one->head_len, one->len - one->head_len };

		if (written)
			vt_session_put_made(session, one->bytes, one->head_len, &body);
		else
			vt_session_tell_lost(session, one->number,
					     "the server's audit log cannot be written, so what "
					     "the call gave is not given out");
		free(one);
	}
}

void vt_session_drop_withheld(struct vt_session *session)
{
	while (session->withheld)
		free(take_first(session));
}
