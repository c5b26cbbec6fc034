/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a pool's cell have in common: begin.c has how it comes to be, warm.c its life,
 * words.c what is said to its occupant, and by it.
 */
#pragma once

#include "pool/warm.h"

/* warm.c */

/* The one who changes its state, and tells the owner. */
void vt_warm_move(struct vt_warm *warm, enum vt_warm_state state);

/* The occupant gave a result: the cell can be killed when there is time. */
void vt_warm_take_result(struct vt_warm *warm, const struct vt_talk *talk);

/* Ends a running call without a result: the cell is killed first, then the call concluded. */
void vt_warm_end(struct vt_warm *warm);

/* The same for a failure that is not the call's own, at once. owner is a struct vt_warm. */
void vt_warm_give_up(void *owner, const struct vt_err *failure);

/* Of its processes, and of its pipes. */
void vt_warm_init_ended(struct vt_watch *source, uint32_t events);
void vt_warm_occupant_ended(struct vt_watch *source, uint32_t events);
void vt_warm_pipe_ready(struct vt_watch *source, uint32_t events);

/* words.c */

/* Of the talk socket. */
void vt_words_ready(struct vt_watch *source, uint32_t events);

/* Whether it has to wait, as its call's maker has more of it than it can pass on. */
bool vt_words_hold(struct vt_warm *warm);

/*
 * Sends what is left of a call, from `at` on, as it can be sent. Its arguments stay where they are.
 */
void vt_words_go_on(struct vt_warm *warm, const struct vt_talk *talk, size_t at);

/*
 * It is PARKED if both have told. Without knowing its occupant nobody would notice that one's end.
 */
void vt_words_check_parked(struct vt_warm *warm);
