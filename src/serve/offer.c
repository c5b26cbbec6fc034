/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/offer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"

enum { READY_MIN = 1, READY_MAX = 64, LIVE_MAX = 1024 };

/* Where a tool runs. */
struct place {
	struct vt_cells *cells;
	char *path;
};

struct vt_offer {
	struct vt_offer_source source;
	struct vt_cells_maker *maker;
	struct place *places;
	size_t kept; /* so many of the source's */
};

/* What says what calls of one may do is no other's to change, nor a client's: all of it is known
 * before the first is planned. */
static int keep_sources(struct vt_offer *offer, struct vt_err *err)
{
	int r = 0;

	for (; r == 0 && offer->source.kept[offer->kept]; offer->kept += r == 0)
		r = vt_cells_keep(offer->maker, offer->source.kept[offer->kept], err);
	return r;
}

static int find_places(struct vt_offer *offer, struct vt_err *err)
{
	int r = keep_sources(offer, err);

	for (size_t i = 0; r == 0 && i < offer->source.count; i++) {
		const struct vt_offered *tool = &offer->source.tools[i];
		struct vt_cells_wish wish = {
			.command = tool->setup ? NULL : tool->program,
			.setup = tool->setup,
			.sources = tool->sources,
			.sources_len = strlen(tool->sources),
			.ready_min = READY_MIN,
			.ready_share = READY_MIN,
			.ready_max = READY_MAX,
			.live_max = LIVE_MAX,
			.program_fd = -1,
		};
		struct vt_err inner;

		if (tool->setup)
			wish.interpreters[tool->language] = tool->program;
		r = vt_cells_get(offer->maker, &wish, &offer->places[i].cells,
				 &offer->places[i].path, &inner);
		if (r < 0)
			vt_fail(err, inner.step, inner.num, "%s: %s",
				inner.step == VT_STEP_COMMAND ? tool->program_at : tool->policy_at,
				inner.what);
	}
	return r;
}

int vt_offer_new(struct vt_cells_maker *maker, const struct vt_offer_source *source,
		 struct vt_offer **ret_offer, struct vt_err *err)
{
	struct vt_offer *offer = calloc(1, sizeof(*offer));
	struct place *places = calloc(source->count + 1, sizeof(*places));

	if (!offer || !places) {
		free(offer);
		free(places);
		source->release(source->user);
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "offer tools");
	}
	offer->source = *source;
	offer->maker = maker;
	offer->places = places;
	int r = find_places(offer, err);

	if (r < 0) {
		vt_offer_free(offer);
		return r;
	}
	vt_cells_end_writers(maker);
	*ret_offer = offer;
	return 0;
}

void vt_offer_free(struct vt_offer *offer)
{
	if (!offer)
		return;
	for (size_t i = 0; i < offer->source.count; i++) {
		vt_cells_release(offer->places[i].cells);
		free(offer->places[i].path);
	}
	while (offer->kept)
		vt_cells_unkeep(offer->maker, offer->source.kept[--offer->kept]);
	offer->source.release(offer->source.user);
	free(offer->places);
	free(offer);
}

const char *vt_offer_list(const struct vt_offer *offer)
{
	return offer->source.list;
}

bool vt_offer_find(const struct vt_offer *offer, const char *name, size_t *ret_index,
		   struct vt_cells **ret_cells, const char **ret_path)
{
	size_t i = 0;

	while (i < offer->source.count && strcmp(offer->source.tools[i].name, name) != 0)
		i++;
	if (i == offer->source.count)
		return false;
	*ret_index = i;
	*ret_cells = offer->places[i].cells;
	*ret_path = offer->places[i].path;
	return true;
}

const char *vt_offer_closest(const struct vt_offer *offer, const char *name)
{
	struct vt_closest closest;

	vt_closest_init(&closest, name);
	for (size_t i = 0; i < offer->source.count; i++)
		vt_closest_try(&closest, offer->source.tools[i].name, offer->source.tools[i].name);
	return closest.best;
}

const char *vt_offer_function(const struct vt_offer *offer, size_t index)
{
	return offer->source.tools[index].function;
}

int vt_offer_expand(const struct vt_offer *offer, size_t index, const char *arguments, size_t len,
		    struct vt_str *words, struct vt_str *input, struct vt_err *err)
{
	return offer->source.expand(offer->source.user, index, arguments, len, words, input, err);
}
