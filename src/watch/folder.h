/* SPDX-License-Identifier: Apache-2.0 */
/* How much a folder holds, where no file system of its own tells. */
#pragma once

#include <stdint.h>

/* What one look takes on. */
enum { VT_FOLDER_MAX_DEPTH = 64, VT_FOLDER_MAX_ENTRIES = 200000 };

/* Why a folder could not be measured to its end, though it may hold little. */
enum vt_folder_odd {
	VT_FOLDER_PLAIN,
	VT_FOLDER_DEEP,   /* folders in folders, more than anybody needs */
	VT_FOLDER_MANY,   /* the same of entries */
	VT_FOLDER_CLOSED, /* some folder cannot be looked into; the rest was measured */
	VT_FOLDER_SLOW,   /* it took a second, and there is more */
};

struct vt_folder_size {
	int64_t            bytes;
	enum vt_folder_odd odd;
};

/*
 * The blocks of all that is in it, up to a little more than `most`: beyond that nobody asks. Links
 * are not followed. VT_FOLDER_CLOSED and VT_FOLDER_SLOW may pass: a new folder can be closed for a
 * moment, and the machine busy. Returns 0 or a negative errno.
 */
int vt_folder_measure(int fd, int64_t most, struct vt_folder_size *ret_size);
