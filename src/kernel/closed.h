/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders that are to be emptied, whatever their mode, in a place where somebody else may rename:
 * what is opened up is what was opened, and never what has its name by then. Child side: no malloc.
 */
#pragma once

/*
 * Opens a folder of `parent` for reading: no link, no other mount. One whose mode keeps its owner
 * out gets 0700 first. -1 with errno set.
 */
int vt_closed_open(int parent, const char *name);
