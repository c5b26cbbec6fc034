/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/lessons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void vt_lessons_done(struct vt_lessons *lessons)
{
	free(lessons->items);
	*lessons = (struct vt_lessons){ 0 };
}

static struct vt_lesson *find(const struct vt_lessons *lessons, const char *name)
{
	for (size_t i = 0; i < lessons->count; i++)
		if (strcmp(lessons->items[i].name, name) == 0)
			return &lessons->items[i];
	return NULL;
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len <= VT_MODULE_MAX;
}

bool vt_lessons_take(const struct vt_lessons *lessons, const char *name)
{
	return is_name(name) && (lessons->count < VT_LESSONS_MAX || find(lessons, name));
}

/* The one of that name, which may be new: it is FAILED then, as nobody has asked for it. */
static int get(struct vt_lessons *lessons, const char *name, struct vt_lesson **ret_lesson)
{
	if (!is_name(name))
		return -EINVAL;
	if ((*ret_lesson = find(lessons, name)))
		return 0;
	if (lessons->count == VT_LESSONS_MAX)
		return -E2BIG;
	if (lessons->count == lessons->room) {
		size_t room = lessons->room ? lessons->room * 2 : 8;
		struct vt_lesson *items = realloc(lessons->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		lessons->items = items;
		lessons->room = room;
	}
	*ret_lesson = &lessons->items[lessons->count++];
	**ret_lesson = (struct vt_lesson){ .state = VT_LESSON_FAILED };
	memcpy((*ret_lesson)->name, name, strlen(name) + 1);
	return 0;
}

int vt_lessons_want(struct vt_lessons *lessons, const char *name)
{
	struct vt_lesson *lesson;
	int r = get(lessons, name, &lesson);

	if (r < 0 || lesson->state != VT_LESSON_FAILED)
		return r;
	lesson->state = VT_LESSON_WANTED;
	return 1;
}

int vt_lessons_leave_out(struct vt_lessons *lessons, const char *name)
{
	struct vt_lesson *lesson;
	unsigned count = 0;

	for (size_t i = 0; i < lessons->count; i++)
		count += lessons->items[i].state == VT_LESSON_LEFT_OUT;
	int r = count < VT_LESSONS_LEFT_OUT_MAX ? get(lessons, name, &lesson) : -E2BIG;

	if (r == 0 && lesson->state == VT_LESSON_LEFT_OUT)
		return -EALREADY;
	if (r == 0)
		lesson->state = VT_LESSON_LEFT_OUT;
	return r;
}

struct vt_lesson *vt_lessons_next(const struct vt_lessons *lessons)
{
	for (size_t i = 0; i < lessons->count; i++)
		if (lessons->items[i].state == VT_LESSON_WANTED)
			return &lessons->items[i];
	return NULL;
}

char **vt_lessons_words(struct vt_lessons *lessons, char *const *argv, unsigned zygote)
{
	size_t given = 0, len = 0, used;

	while (argv[given])
		given++;
	for (size_t i = 0; i < lessons->count; i++)
		len += strlen(lessons->items[i].name) + 2;
	char **words = calloc(1, (given + lessons->count + 1) * sizeof(char *) + len);

	if (!words)
		return NULL;
	char *text = (char *)(words + given + lessons->count + 1);

	memcpy(words, argv, given * sizeof(char *));
	used = given;
	for (size_t i = 0; i < lessons->count; i++) {
		struct vt_lesson *lesson = &lessons->items[i];
		size_t name_len = strlen(lesson->name);

		lesson->known &= ~(1U << zygote);
		if (lesson->state == VT_LESSON_FAILED)
			continue;
		if (lesson->state != VT_LESSON_LEFT_OUT)
			lesson->known |= 1U << zygote;
		*text = lesson->state == VT_LESSON_LEFT_OUT ? '-' : '+';
		memcpy(text + 1, lesson->name, name_len + 1);
		words[used++] = text;
		text += name_len + 2;
	}
	return words;
}

unsigned vt_lessons_turn_to(struct vt_lessons *lessons, unsigned zygote)
{
	unsigned learned = 0;

	for (size_t i = 0; i < lessons->count; i++) {
		struct vt_lesson *lesson = &lessons->items[i];
		bool known = lesson->known & 1U << zygote;

		if (lesson->state == VT_LESSON_WANTED && known) {
			lesson->state = VT_LESSON_LEARNED;
			learned++;
		} else if (lesson->state == VT_LESSON_LEARNED && !known) {
			lesson->state = VT_LESSON_WANTED;
		}
	}
	return learned;
}
