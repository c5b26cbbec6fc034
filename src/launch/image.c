/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the plan serves both ways. While an image is made, turn() moves what a member
 * points to into the image and leaves its offset; where it is opened, turn() checks the offset and
 * makes it a pointer. The plan itself is at offset 0, after the head, so 0 stays NULL.
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
	uint64_t plan_size;
	struct vt_plan plan;
};

struct image {
	char *base;
	size_t len, room;
	bool making;
	bool bad; /* too large, or not an image */
};

/* Returns where the size bytes are now, or NULL if the member points to nothing. */
static void *turn(struct image *image, const void *member, size_t size)
{
	uintptr_t at;

	memcpy(&at, member, sizeof(at));
	if (!at || image->bad)
		return NULL;
	if (image->making) {
		size_t start = (image->len + 15) & ~(size_t)15;

		if (size > image->room || start > image->room - size) {
			image->bad = true;
			return NULL;
		}
		memcpy(image->base + start, (const void *)at, size);
		image->len = start + size;
		memcpy((void *)(uintptr_t)member, &(uintptr_t){ start }, sizeof(start));
		return image->base + start;
	}
	if (at > image->len || size > image->len - at) {
		image->bad = true;
		return NULL;
	}
	char *now = image->base + at;

	memcpy((void *)(uintptr_t)member, &now, sizeof(now));
	return now;
}

static void turn_text(struct image *image, const char *const *member)
{
	uintptr_t at;

	memcpy(&at, member, sizeof(at));
	if (!at || image->bad)
		return;
	if (!image->making &&
	    (at >= image->len || !memchr(image->base + at, '\0', image->len - at))) {
		image->bad = true;
		return;
	}
	const char *text = image->making ? *member : image->base + at;

	(void)turn(image, member, strlen(text) + 1);
}

static void turn_texts(struct image *image, char ***member)
{
	size_t count = 0;

	/* An opened list is turned one by one, up to the 0 that ends it. */
	while (image->making && (*member)[count])
		count++;
	char **texts = turn(image, member, (count + 1) * sizeof(char *));

	for (; texts && !image->bad; texts++) {
		if ((char *)(texts + 1) > image->base + image->len)
			image->bad = true;
		else if (!*texts)
			break;
		else
			turn_text(image, (const char *const *)texts);
	}
}

static void turn_builds(struct image *image, struct vt_plan *plan)
{
	struct vt_build *builds = turn(image, &plan->builds,
				       plan->build_count * sizeof(*plan->builds));

	for (size_t i = 0; builds && i < plan->build_count; i++) {
		builds[i].veiled = builds[i].veiled || builds[i].veil;
		builds[i].veil = NULL;
		turn_text(image, &builds[i].to);
		turn_text(image, &builds[i].from);
	}
}

static void turn_sealing(struct image *image, struct vt_plan *plan)
{
	struct vt_landlock_rule *rules = turn(image, &plan->landlock_rules,
					      plan->landlock_rule_count *
						      sizeof(*plan->landlock_rules));

	for (size_t i = 0; rules && i < plan->landlock_rule_count; i++)
		turn_text(image, &rules[i].to);
	(void)turn(image, &plan->rlimits, plan->rlimit_count * sizeof(*plan->rlimits));
	for (size_t i = 0; i < VT_FILTERS_MAX; i++) {
		struct sock_fprog *filter = turn(image, &plan->filters[i],
						 sizeof(*plan->filters[i]));

		if (filter)
			(void)turn(image, &filter->filter, filter->len * sizeof(*filter->filter));
	}
}

static void turn_plan(struct image *image, struct vt_plan *plan)
{
	turn_text(image, &plan->cwd);
	turn_text(image, &plan->scratch);
	turn_texts(image, &plan->envp);
	turn_builds(image, plan);
	turn_sealing(image, plan);
}

/* What is of use to nobody but the supervisor. */
static struct vt_plan trimmed(const struct vt_plan *whole)
{
	struct vt_plan plan = *whole;

	plan.arena = NULL;
	plan.exec_path = NULL;
	plan.argv = NULL;
	plan.idmaps = NULL;
	plan.idmap_count = plan.veil_count = plan.veiled_count = plan.work_count = 0;
	plan.open_pipes = NULL;
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

static int write_image(int fd, const struct vt_plan *plan, struct vt_err *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct head *head = mmap(NULL, MAX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (head == MAP_FAILED)
		return vt_fail(err, VT_STEP_CLONE, errno, "map the plan's image");
	struct image image = {
		.base = (char *)head, .len = sizeof(*head), .room = MAX_BYTES, .making = true
	};

	memcpy(head->mark, build_mark, sizeof(build_mark));
	head->plan_size = sizeof(head->plan);
	head->plan = trimmed(plan);
	turn_plan(&image, &head->plan);
	(void)munmap(head, MAX_BYTES); /* it was mapped */
	if (image.bad)
		return vt_fail(err, VT_STEP_CLONE, E2BIG, "make an image of so large a plan");
	if (ftruncate(fd, (off_t)image.len) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "seal the plan's image");
	return 0;
}

int vt_image_make(const struct vt_plan *plan, struct vt_err *err)
{
	_Static_assert(sizeof(build_mark) <= sizeof(((struct head *)0)->mark), "it fits");
	AUTO_CLOSE int fd = memfd_create("vitro-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, MAX_BYTES) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make room for the plan's image");
	int r = write_image(fd, plan, err);

	return r < 0 ? r : vt_fd_take(&fd);
}

static bool is_ours(const struct head *head, size_t len)
{
	return len >= sizeof(*head) && memcmp(head->mark, build_mark, sizeof(build_mark)) == 0 &&
	       head->plan_size == sizeof(head->plan);
}

int vt_image_open(int fd, const struct vt_plan **ret_plan, struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "look at the plan's image");
	if (st.st_size <= 0 || st.st_size > MAX_BYTES)
		return vt_fail(err, VT_STEP_CLONE, EBADMSG, "open the plan's image");
	size_t len = (size_t)st.st_size;
	struct head *head = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (head == MAP_FAILED)
		return vt_fail(err, VT_STEP_CLONE, errno, "map the plan's image");
	struct image image = { .base = (char *)head, .len = len };

	image.bad = !is_ours(head, len);
	if (!image.bad)
		turn_plan(&image, &head->plan);
	if (image.bad) {
		(void)munmap(head, len); /* it was mapped */
		return vt_fail(err, VT_STEP_CLONE, EBADMSG,
			       "open the plan's image: it is of another version of vitro");
	}
	*ret_plan = &head->plan;
	return 0;
}
