/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the plan serves both ways. While an image is made, turn() moves what a member
 * points to into the image and leaves its offset; where it is opened, turn() checks the offset and
 * makes it a pointer. The plan itself is in the head, at offset 0, so 0 stays NULL.
 *
 * Both ways everything has one place, behind what was turned before. If two things could be in the
 * same, turning one would change a count of the other that was checked already.
 */
#include "launch/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { MAX_BYTES = 64 << 20 };

/* Another version's plan has other members, or they mean something else. */
static const char build_mark[] = "vitro " VITRO_VERSION;

struct head {
	char mark[64];
	uint64_t size;
	struct vt_image_whole whole;
};

enum { ALIGNMENT = 16 };

struct image {
	char *base;
	size_t used, room; /* all of an opened one is used in the end */
	bool making;
	bool trimmed; /* it is for cells, and not for a supervisor */
	bool bad;     /* too large, or not an image */
};

/* Where the next thing is, or is put. */
static size_t next_place(const struct image *image)
{
	size_t place = (image->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

	return place < image->room ? place : image->room;
}

/* Returns where the size bytes are now, or NULL if the member points to nothing. */
static void *turn(struct image *image, const void *member, size_t size)
{
	size_t place = next_place(image);
	char *now = image->base + place;
	uintptr_t at;

	memcpy(&at, member, sizeof(at));
	if (!at || image->bad)
		return NULL;
	if (size > image->room - place || (!image->making && at != place)) {
		image->bad = true;
		return NULL;
	}
	if (image->making)
		memcpy(now, (const void *)at, size);
	image->used = place + size;
	at = image->making ? place : (uintptr_t)now;
	memcpy((void *)(uintptr_t)member, &at, sizeof(at));
	return now;
}

/* The same of so many of a size. There are none without a place for them. */
static void *turn_array(struct image *image, const void *member, size_t count, size_t size)
{
	size_t total = 0;

	if (__builtin_mul_overflow(count, size, &total))
		image->bad = true;
	void *items = turn(image, member, total);

	if (count && !items)
		image->bad = true;
	return items;
}

static void turn_text(struct image *image, const char *const *member)
{
	size_t place = next_place(image);

	if (!*member || image->bad)
		return;
	const char *text = image->making ? *member : image->base + place;
	size_t len = image->making ? strlen(text) : strnlen(text, image->room - place);

	(void)turn(image, member, len + 1);
}

static void turn_texts(struct image *image, char ***member)
{
	size_t place = next_place(image), count = 0;

	if (!*member || image->bad)
		return;
	char **texts = image->making ? *member : (char **)(void *)(image->base + place);
	size_t most = image->making ? SIZE_MAX : (image->room - place) / sizeof(*texts);

	while (count < most && texts[count])
		count++;
	texts = turn(image, member, (count + 1) * sizeof(*texts));
	for (size_t i = 0; texts && i < count; i++)
		turn_text(image, (const char *const *)&texts[i]);
}

/* What compilers take for granted: a bool of another value is neither true nor false. */
static void check_flags(struct image *image, const void *of, const size_t *places, size_t count)
{
	for (size_t i = 0; i < count && !image->making; i++)
		image->bad |= ((const unsigned char *)of)[places[i]] > 1;
}

#define CHECK_FLAGS(image, of, ...)                             \
	check_flags(image, of, (const size_t[]){ __VA_ARGS__ }, \
		    sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t))
#define OF_PLAN(flag)    offsetof(struct vt_plan, flag)
#define IS_ENDLESS(text) (!memchr(text, '\0', sizeof(text)))
#define OF_BUILD(flag)   offsetof(struct vt_build, flag)

static void check_plan(struct image *image, const struct vt_plan *plan)
{
	CHECK_FLAGS(image, plan, OF_PLAN(cwd_private), OF_PLAN(rehearsal), OF_PLAN(pooled),
		    OF_PLAN(bare), OF_PLAN(own_network), OF_PLAN(keeps_networks),
		    OF_PLAN(bars_rights), OF_PLAN(loads_ahead), OF_PLAN(own_ids),
		    OF_PLAN(veiled_pipes), OF_PLAN(loopback_up), OF_PLAN(unix_sockets),
		    OF_PLAN(broker.on), OF_PLAN(broker.modes), OF_PLAN(broker.inet),
		    OF_PLAN(broker.abstract), OF_PLAN(can_look), OF_PLAN(own_proc),
		    OF_PLAN(stdout_capped), OF_PLAN(stderr_capped), OF_PLAN(cgroup.has_network),
		    OF_PLAN(cgroup.count_cpu));
	const struct vt_cgroup_site *site = &plan->cgroup_site;

	image->bad |= IS_ENDLESS(site->memory) || IS_ENDLESS(site->pids) || IS_ENDLESS(site->cpu) ||
		      IS_ENDLESS(site->cpuacct) || IS_ENDLESS(site->why) ||
		      IS_ENDLESS(site->cpu_why);
}

static void check_build(struct image *image, const struct vt_build *build)
{
	CHECK_FLAGS(image, build, OF_BUILD(writable), OF_BUILD(granted), OF_BUILD(nested),
		    OF_BUILD(device), OF_BUILD(socket), OF_BUILD(per_cell), OF_BUILD(inner),
		    OF_BUILD(veiled));
}

static void turn_veil(struct image *image, const struct vt_plan *plan, struct vt_build *build)
{
	struct vt_veil *veil = turn(image, &build->veil, sizeof(*veil));

	if (!veil)
		return;
	if (veil->work < -1 || veil->work >= (int)plan->work_count)
		image->bad = true;
	turn_text(image, &veil->name);
	turn_text(image, &veil->base);
	turn_text(image, &veil->base_to_folder);
	turn_text(image, &veil->base_to_work);
	turn_text(image, &veil->work_parent);
	struct vt_veiled *names = turn_array(image, &veil->names, veil->count, sizeof(*names));

	for (size_t i = 0; names && i < veil->count; i++)
		turn_text(image, &names[i].path);
}

static void turn_builds(struct image *image, struct vt_plan *plan)
{
	struct vt_build *builds = turn_array(image, &plan->builds, plan->build_count,
					     sizeof(*plan->builds));

	for (size_t i = 0; builds && !image->bad && i < plan->build_count; i++) {
		check_build(image, &builds[i]);
		if (image->making && image->trimmed && builds[i].veil) {
			builds[i].veiled = true;
			builds[i].veil = NULL;
		}
		if (!image->trimmed &&
		    (builds[i].idmap < -1 || builds[i].idmap >= (int)plan->idmap_count))
			image->bad = true;
		turn_text(image, &builds[i].to);
		turn_text(image, &builds[i].from);
		turn_veil(image, plan, &builds[i]);
		struct vt_guard *guards = turn_array(image, &builds[i].guards,
						     builds[i].guard_count, sizeof(*guards));

		for (size_t j = 0; guards && !image->bad && j < builds[i].guard_count; j++) {
			CHECK_FLAGS(image, &guards[j], offsetof(struct vt_guard, closed));
			turn_text(image, &guards[j].path);
		}
	}
	(void)turn_array(image, &plan->idmaps, plan->idmap_count, sizeof(*plan->idmaps));
	struct vt_denial *denials = turn_array(image, &plan->denials, plan->denial_count,
					       sizeof(*denials));

	for (size_t i = 0; denials && !image->bad && i < plan->denial_count; i++) {
		turn_text(image, &denials[i].path);
		turn_text(image, &denials[i].closed);
	}
}

static void turn_sealing(struct image *image, struct vt_plan *plan)
{
	struct vt_landlock_rule *rules = turn_array(image, &plan->landlock_rules,
						    plan->landlock_rule_count,
						    sizeof(*plan->landlock_rules));

	for (size_t i = 0; rules && !image->bad && i < plan->landlock_rule_count; i++) {
		CHECK_FLAGS(image, &rules[i], offsetof(struct vt_landlock_rule, scratch));
		turn_text(image, &rules[i].to);
	}
	(void)turn_array(image, &plan->rlimits, plan->rlimit_count, sizeof(*plan->rlimits));
	image->bad |= plan->filter_count > VT_FILTERS_MAX;
	for (size_t i = 0; i < VT_FILTERS_MAX; i++) {
		struct sock_fprog *filter = turn(image, &plan->filters[i],
						 sizeof(*plan->filters[i]));

		if (filter)
			(void)turn_array(image, &filter->filter, filter->len,
					 sizeof(*filter->filter));
		else if (i < plan->filter_count)
			image->bad = true;
	}
	(void)turn_array(image, &plan->broker.sockets, plan->broker.socket_count,
			 sizeof(*plan->broker.sockets));
}

/* What it says of itself. */
static void turn_words(struct image *image, struct vt_plan *plan)
{
	for (size_t i = 0; i < VT_PROPERTIES; i++) {
		turn_text(image, &plan->holdings[i].name);
		turn_text(image, &plan->holdings[i].key);
		turn_text(image, &plan->holdings[i].mechanism);
		turn_text(image, &plan->holdings[i].note);
	}
	turn_text(image, &plan->level);
	turn_text(image, &plan->open_pipes);
	turn_text(image, &plan->unlooked);
	turn_text(image, &plan->protect_note);
	turn_text(image, &plan->ids_note);
	turn_text(image, &plan->links_note);
	const char **notes = turn_array(image, &plan->notes, plan->note_count, sizeof(*notes));

	for (size_t i = 0; notes && !image->bad && i < plan->note_count; i++)
		turn_text(image, &notes[i]);
	image->bad |= plan->warning_count > VT_WARNINGS_MAX;
	for (size_t i = 0; i < VT_WARNINGS_MAX; i++)
		turn_text(image, &plan->warnings[i]);
}

static void turn_whole(struct image *image, struct vt_image_whole *whole)
{
	struct vt_plan *plan = &whole->plan;

	check_plan(image, plan);
	turn_text(image, &plan->cwd);
	turn_text(image, &plan->scratch);
	turn_texts(image, &plan->envp);
	turn_builds(image, plan);
	turn_sealing(image, plan);
	turn_words(image, plan);
	for (size_t i = 0; i < VT_IMAGE_TEXTS; i++)
		turn_text(image, &whole->texts[i]);
	(void)turn_array(image, &whole->bytes, whole->bytes_len, 1);
}

/* What is of use to nobody but the supervisor. */
static struct vt_plan trimmed(const struct vt_plan *whole)
{
	struct vt_plan plan = *whole;

	plan.idmaps = NULL;
	plan.idmap_count = plan.veil_count = plan.veiled_count = plan.work_count = 0;
	plan.open_pipes = plan.unlooked = plan.protect_note = NULL;
	plan.denials = NULL;
	plan.denial_count = 0;
	plan.broker.sockets = NULL;
	plan.broker.socket_count = 0;
	plan.cgroup_site = (struct vt_cgroup_site){ .version = VT_CGROUP_NONE };
	memset(plan.holdings, 0, sizeof(plan.holdings));
	plan.level = NULL;
	plan.notes = NULL;
	plan.ids_note = plan.links_note = NULL;
	memset(plan.warnings, 0, sizeof(plan.warnings));
	plan.note_count = plan.warning_count = 0;
	return plan;
}

static int write_image(int fd, const struct vt_image_whole *whole, bool trim, struct vt_err *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct head *head = mmap(NULL, MAX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (head == MAP_FAILED)
		return vt_fail(err, VT_STEP_CLONE, errno, "map the plan's image");
	struct image image = { .base = (char *)head,
			       .used = sizeof(*head),
			       .room = MAX_BYTES,
			       .making = true,
			       .trimmed = trim };

	memcpy(head->mark, build_mark, sizeof(build_mark));
	head->size = sizeof(head->whole);
	head->whole = *whole;
	if (trim)
		head->whole.plan = trimmed(&whole->plan);
	/* Occupants of pools come from a zygote, and memory is its owner's. */
	head->whole.plan.arena = NULL;
	head->whole.plan.exec_path = NULL;
	head->whole.plan.argv = NULL;
	turn_whole(&image, &head->whole);
	(void)munmap(head, MAX_BYTES); /* it was mapped */
	if (image.bad)
		return vt_fail(err, VT_STEP_CLONE, E2BIG, "make an image of so large a plan");
	if (ftruncate(fd, (off_t)image.used) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "seal the plan's image");
	return 0;
}

static int make(const struct vt_image_whole *whole, bool trim, struct vt_err *err)
{
	_Static_assert(sizeof(build_mark) <= sizeof(((struct head *)0)->mark), "it fits");
	AUTO_CLOSE int fd = memfd_create("vitro-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, MAX_BYTES) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make room for the plan's image");
	int r = write_image(fd, whole, trim, err);

	return r < 0 ? r : vt_fd_take(&fd);
}

int vt_image_make(const struct vt_plan *plan, struct vt_err *err)
{
	const struct vt_image_whole whole = { .plan = *plan };

	return make(&whole, true, err);
}

int vt_image_make_whole(const struct vt_image_whole *whole, struct vt_err *err)
{
	return make(whole, false, err);
}

static bool is_ours(const struct head *head, size_t len)
{
	return len >= sizeof(*head) && memcmp(head->mark, build_mark, sizeof(build_mark)) == 0 &&
	       head->size == sizeof(head->whole) && !head->whole.plan.arena &&
	       !head->whole.plan.exec_path && !head->whole.plan.argv;
}

/* Of one that is not sealed, what was checked could be another thing later. */
static bool is_sealed(int fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;

	return (fcntl(fd, F_GET_SEALS) & seals) == seals;
}

static int open_image(int fd, bool trimmed, struct vt_image_whole **ret_whole, size_t *ret_len,
		      struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "look at the plan's image");
	if (st.st_size <= 0 || st.st_size > MAX_BYTES || !is_sealed(fd))
		return vt_fail(err, VT_STEP_CLONE, EBADMSG, "open the plan's image");
	size_t len = (size_t)st.st_size;
	struct head *head = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (head == MAP_FAILED)
		return vt_fail(err, VT_STEP_CLONE, errno, "map the plan's image");
	struct image image = {
		.base = (char *)head, .used = sizeof(*head), .room = len, .trimmed = trimmed
	};

	image.bad = !is_ours(head, len);
	if (!image.bad)
		turn_whole(&image, &head->whole);
	if (image.bad || image.used != len) {
		(void)munmap(head, len); /* it was mapped */
		return vt_fail(err, VT_STEP_CLONE, EBADMSG,
			       "open the plan's image: it is of another version of vitro");
	}
	*ret_whole = &head->whole;
	*ret_len = len;
	return 0;
}

int vt_image_open_whole(int fd, struct vt_image_whole **ret_whole, size_t *ret_len,
			struct vt_err *err)
{
	return open_image(fd, false, ret_whole, ret_len, err);
}

void vt_image_close(struct vt_image_whole *whole, size_t len)
{
	if (whole)
		(void)munmap((char *)whole - offsetof(struct head, whole), len); /* it is mapped */
}

int vt_image_open(int fd, const struct vt_plan **ret_plan, struct vt_err *err)
{
	struct vt_image_whole *whole;
	size_t len;
	int r = open_image(fd, true, &whole, &len, err);

	if (r == 0)
		*ret_plan = &whole->plan;
	return r;
}
