/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a Node that is forked. What is mapped from a file is not in the page tables of a fork: each piece of code
 * that it runs is looked up by the kernel again, a hundred and fifty times for a call that does next to nothing. A copy of it in
 * large pages of the zygote's own is inherited whole.
 */
#pragma once

/* Puts such copies in place of the code of the program and its libraries. Where that fails, all stays as it was. */
void vt_node_text_enlarge(void);
