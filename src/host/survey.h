/* SPDX-License-Identifier: Apache-2.0 */
/* host->entries and host->read_file, as this machine answers them: through no link. */
#pragma once

#include "host/host.h"

int vt_survey_entries(const struct vt_host *host, const char *path, uint64_t dev,
		      void (*each)(void *arg, const char *name, unsigned char type), void *arg);
ssize_t vt_survey_read(const struct vt_host *host, const char *path, char *buf, size_t size);
