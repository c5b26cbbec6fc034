/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/commons.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/frame.h"

/* How long cells that no client has are kept. */
#define KEEP (60 * VT_NS_PER_S)

/* How long memory is kept for the next large result. */
#define SPARE (2 * VT_NS_PER_S)

/* How long whoever was killed is waited for at the end of all. */
#define LEFT (VT_NS_PER_S / 2)

/* A private supervisor's client only gets in its own way. */
static const struct vt_session_limits private_limits = {
	.frame_max = VT_FRAME_MAX,
	.frame_ns = INT64_MAX,
	.hello_ns = INT64_MAX,
	.bytes_max = SIZE_MAX,
	.sources_max = SIZE_MAX,
	.queued_slow = SIZE_MAX,
	.queued_max = 512 << 20,
	.unread_max = SIZE_MAX,
	.kept_max = SIZE_MAX,
	.calls_max = UINT_MAX,
	.live_max = UINT_MAX,
	.pools_max = 8192, /* many may share their cells */
	.cells_max = UINT_MAX,
	.cells_few = UINT_MAX,
	.ready_max = 4096,
};

static const struct vt_session_limits shared_limits = {
	.frame_max = 64 << 20,
	.frame_ns = 30 * VT_NS_PER_S,
	.hello_ns = 10 * VT_NS_PER_S,
	.bytes_max = 256 << 20,
	.sources_max = 256 << 10,
	.queued_slow = 4 << 20,
	.queued_max = 64 << 20,
	.unread_max = 256 << 20,
	.kept_max = 64 << 20,
	.calls_max = 4096,
	.pools_max = 256,
	.ready_max = 64,
};

/* What large results leave in the heap, between what is small and stays, goes back too. */
static void return_memory(struct vt_timer *timer)
{
	struct vt_commons *commons = timer->owner;

	vt_bulk_drop(&commons->spare);
	(void)malloc_trim(256 << 10); /* whether there was anything */
}

/* Not put off by whoever goes on: it is time for it every so often. */
void vt_commons_trim_later(struct vt_commons *commons)
{
	if (commons->spare_timer.when == INT64_MAX)
		vt_timer_set(&commons->spare_timer, vt_clock_now() + SPARE);
}

void vt_commons_init(struct vt_commons *commons, struct vt_loop *loop, struct vt_host *host)
{
	*commons = (struct vt_commons){
		.loop = loop,
		.limits = private_limits,
		.held_max = SIZE_MAX,
		.kept_max = SIZE_MAX,
		.call_bytes_max = SIZE_MAX,
		.unread_max = SIZE_MAX,
		.spare_timer = { .fire = return_memory, .owner = commons },
		.cells = { .loop = loop,
			   .host = host,
			   .children = &commons->children,
			   .spare = &commons->spare,
			   .count_max = 256,
			   .burst_max = UINT_MAX,
			   .bytes_max = SIZE_MAX,
			   .spawner_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC) },
	};
	commons->children.loop = loop;
	vt_cells_maker_init(&commons->cells);
	vt_scouts_init(&commons->scouts, &commons->cells);
	vt_turns_init(&commons->turns, loop, UINT_MAX);
	vt_loop_add_timer(loop, &commons->spare_timer);
}

void vt_commons_share(struct vt_commons *commons, const struct vt_room *room)
{
	unsigned live_max = room->live;

	commons->shared = commons->cells.shared = true;
	commons->cells.keep_ns = KEEP;
	commons->limits = shared_limits;
	/* One client leaves some for the next, who need not wait for it. */
	commons->limits.live_max = live_max > 1 ? live_max - (live_max + 3) / 4 : 1;
	commons->turns.live_max = live_max;
	commons->held_max = 256 << 20;
	commons->kept_max = 256 << 20;
	commons->call_bytes_max = 1 << 30;
	commons->unread_max = 1 << 30;
	commons->room = (struct vt_pool_room){ .cells_max = room->live + room->spare,
					       .spare_max = room->spare };
	commons->cells.room = &commons->room;
	commons->cells.count_max = room->sets;
	commons->limits.cells_max = room->sets > 8 ? room->sets / 4 : 2;
	commons->limits.cells_few = room->sets > 128 ? room->sets / 64 : 2;
	commons->cells.burst_max = room->burst;
	commons->cells.bytes_max = 256 << 20;
	commons->scouts.most = room->looks;
}

void vt_commons_done(struct vt_commons *commons)
{
	vt_scouts_done(&commons->scouts);
	vt_cells_maker_done(&commons->cells);
	vt_children_done(&commons->children, LEFT);
	vt_turns_done(&commons->turns, commons->loop);
	vt_loop_remove_timer(commons->loop, &commons->spare_timer);
	vt_bulk_drop(&commons->spare);
	vt_fd_close(&commons->cells.spawner_fd);
}
