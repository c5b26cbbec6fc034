/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory with one owner and one end: a policy and a plan each live in an arena, and are freed by
 * freeing it. Allocations are zeroed and aligned for any type. NULL means out of memory; the caller
 * turns it into -ENOMEM.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct vt_arena;

struct vt_arena *vt_arena_new(void);
/* Frees the arena and everything from it. NULL is fine. */
void vt_arena_free(struct vt_arena *arena);

void *vt_arena_alloc(struct vt_arena *arena, size_t size);
/* count * size, with the product checked. */
void *vt_arena_array(struct vt_arena *arena, size_t count, size_t size);
char *vt_arena_dup(struct vt_arena *arena, const char *text);
char *vt_arena_dupn(struct vt_arena *arena, const char *text, size_t len);
char *vt_arena_printf(struct vt_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
char *vt_arena_vprintf(struct vt_arena *arena, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
