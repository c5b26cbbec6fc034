/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A first chunk of this size holds an ordinary policy and its plan without a second malloc. */
#define CHUNK_SIZE ((size_t)16 << 10)
#define ALIGNMENT  _Alignof(max_align_t)

struct chunk {
	struct chunk *next;
	size_t size;
	size_t used;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct vt_arena {
	struct chunk *chunks;
};

struct vt_arena *vt_arena_new(void)
{
	return calloc(1, sizeof(struct vt_arena));
}

void vt_arena_free(struct vt_arena *arena)
{
	if (!arena)
		return;
	for (struct chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(arena);
}

static struct chunk *chunk_with_room(struct vt_arena *arena, size_t size)
{
	struct chunk *chunk = arena->chunks;

	if (chunk && chunk->size - chunk->used >= size)
		return chunk;
	size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;

	chunk = calloc(1, sizeof(*chunk) + capacity);
	if (!chunk)
		return NULL;
	chunk->size = capacity;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *vt_arena_alloc(struct vt_arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct chunk *chunk = chunk_with_room(arena, size);

	if (!chunk)
		return NULL;
	void *start = chunk->bytes + chunk->used;

	chunk->used += size;
	return start;
}

void *vt_arena_array(struct vt_arena *arena, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return vt_arena_alloc(arena, total);
}

char *vt_arena_dupn(struct vt_arena *arena, const char *text, size_t len)
{
	char *copy = vt_arena_alloc(arena, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

char *vt_arena_dup(struct vt_arena *arena, const char *text)
{
	return vt_arena_dupn(arena, text, strlen(text));
}

char *vt_arena_vprintf(struct vt_arena *arena, const char *fmt, va_list args)
{
	char first[256]; /* measured, and for the most part done with */
	va_list again;

	va_copy(again, args);
	int len = vsnprintf(first, sizeof(first), fmt, args);
	char *text = len < 0 ? NULL : vt_arena_alloc(arena, (size_t)len + 1);

	if (text && (size_t)len < sizeof(first))
		memcpy(text, first, (size_t)len + 1);
	else if (text)
		(void)vsnprintf(text, (size_t)len + 1, fmt, again); /* measured just above */
	va_end(again);
	return text;
}

char *vt_arena_printf(struct vt_arena *arena, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	char *text = vt_arena_vprintf(arena, fmt, args);

	va_end(args);
	return text;
}
