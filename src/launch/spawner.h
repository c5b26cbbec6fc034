/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner of a hull: pid 1 there, root in its user namespace and nobody outside. It makes cells
 * when the supervisor orders one, and ends with the supervisor; everything in the hull ends with
 * it. It runs no code of anybody's, reads nothing but orders, and each cell's init is a fork of it.
 */
#pragma once

/*
 * Where the overlays of the hull's veils are, as vt_overlay_pick() gives them, in the plan's order.
 */
enum { VT_SPAWNER_VEILS = 4 };

/* The whole life of the program "vitro-spawner". Its control socket is descriptor 3. */
_Noreturn void vt_spawner_run(void);
