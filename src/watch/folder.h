/* SPDX-License-Identifier: Apache-2.0 */
/* How much a folder holds, where no file system of its own tells. */
#pragma once

#include <stdint.h>

/*
 * The blocks of all that is in it, up to a little more than `most`: beyond that nobody asks. What is
 * deeper, or has more entries, than anybody needs counts as more. Links are not followed. Returns 0 or
 * a negative errno.
 */
int vt_folder_measure(int fd, int64_t most, int64_t *ret_bytes);
