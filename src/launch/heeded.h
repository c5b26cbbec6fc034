/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables that make a program load code or write files: the dynamic loader, libc,
 * OpenSSL and the interpreters do what these say. A policy may set them for calls. But a zygote is
 * started outside of cells, and what they name may be what an earlier call has written, or a link
 * that it made. So it is started with their names hidden, which nobody heeds, nor does what it
 * starts; and each occupant shows them to itself once it is sealed. Nothing is allocated or moved
 * for that: the first letter tells. What modules ask for when they are imported ahead is not of
 * these.
 */
#pragma once

/*
 * A copy of a list that ends with NULL, with such names hidden, and room for `more` after it. One
 * block, for free(); NULL: out of memory.
 */
char **vt_heeded_hide(char *const *variables, unsigned more);

/* Shows them, where they are. For an occupant, between its seal and what it is for. */
void vt_heeded_show(char **variables);
