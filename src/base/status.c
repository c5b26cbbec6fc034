/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <string.h>

static const struct {
	const char *name, *type;
} statuses[VT_STATUS_COUNT] = {
	[VT_STATUS_OK] = { "ok", "" },
	[VT_STATUS_ERROR] = { "error", "Error" },
	[VT_STATUS_TIMEOUT] = { "timeout", "Timeout" },
	[VT_STATUS_CPU_LIMIT] = { "cpu_limit", "CpuLimit" },
	[VT_STATUS_MEMORY_LIMIT] = { "memory_limit", "MemoryLimit" },
	[VT_STATUS_CRASHED] = { "crashed", "Crashed" },
	[VT_STATUS_NO_RESULT] = { "no_result", "NoResult" },
	[VT_STATUS_RESULT_LIMIT] = { "result_limit", "ResultLimit" },
	[VT_STATUS_CANCELLED] = { "cancelled", "Cancelled" },
	[VT_STATUS_REFUSED] = { "refused", "Refused" },
	[VT_STATUS_LOST] = { "lost", "Lost" },
};

const char *vt_status_name(enum vt_status status)
{
	return (unsigned)status < VT_STATUS_COUNT ? statuses[status].name : "unknown";
}

const char *vt_status_type(enum vt_status status)
{
	return statuses[status].type;
}

int vt_status_find(const char *name)
{
	for (int i = 0; i < VT_STATUS_COUNT; i++)
		if (strcmp(statuses[i].name, name) == 0)
			return i;
	return -1;
}
