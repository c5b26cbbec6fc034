/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables that name code: the dynamic loader, libc, Node and OpenSSL load what these say. A policy
 * may set them for calls. But a zygote is started outside of cells, and what they name may be what
 * an earlier call has written. So it is started with their names hidden, which nobody heeds, and
 * each occupant shows them to itself once it is sealed. Nothing is allocated or moved for that: one
 * bit of the first letter tells.
 */
#pragma once

/*
 * A copy of a list that ends with NULL, with such names hidden, and room for `more` after it. One
 * block, for free(); NULL: out of memory.
 */
char **vt_heeded_hide(char *const *variables, unsigned more);

/* Shows them, where they are. For an occupant, between its seal and what it is for. */
void vt_heeded_show(char **variables);
