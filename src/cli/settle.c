/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settle.h"

#include "base/fd.h"
#include "cli/signals.h"
#include "watch/settle.h"

int vt_cli_settle(struct vt_policy *policy, struct vt_host *host, const struct vt_request *request,
		  struct vt_err *err)
{
	AUTO_CLOSE int signal_fd = vt_cli_signals(false, err);

	return signal_fd < 0 ? signal_fd : vt_settle(policy, host, request, signal_fd, err);
}
