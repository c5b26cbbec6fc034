/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of plans' images under forged ones. An input is a list of changes to an image that
 * vitro made, so that a corpus outlives changes of the plan; its first byte says of which kind the
 * image is. What is opened all the same is walked to its end, and made once more it is as large:
 * nothing in it lies outside, or in two places at once. libFuzzer drives it, or replay.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "launch/image.h"
#include "serve/cells.h"

enum { WHOLE = 1, BELIEVED = 2, CHANGES_MAX = 64 };

/* ---- an image -------------------------------------------------------------------------------- */

static char *envp[] = { (char *)"A=1", (char *)"B=two", NULL };
static const char *const notes[] = { "one", "two" };
static const struct vt_veiled names[] = { { .path = "sub" }, { .path = "sub/.env" } };
static const struct vt_veil veils[] = {
	{ .name = "v", .names = names, .count = 2, .work = 0, .base = "/", .work_parent = "/srv" },
	{ .name = "w", .names = names, .count = 1, .work = -1 },
};
static const struct vt_build builds[] = {
	{ .act = VT_ACT_BIND, .to = "srv", .from = "/srv", .idmap = 0, .veil = &veils[0] },
	{ .act = VT_ACT_BIND, .to = "usr", .from = "/usr", .idmap = -1, .veil = &veils[1] },
	{ .act = VT_ACT_DIR, .to = "tmp", .idmap = -1 },
};
static const struct vt_idmap idmaps[] = { { 7, 8 } };
static const struct vt_denial denials[] = { { .path = "/srv/.env" }, { "/a/b", "/a" } };
static const struct vt_landlock_rule rules[] = { { .to = "" }, { .to = "tmp" } };
static const struct vt_rlimit rlimits[] = { { .resource = RLIMIT_CORE } };
static struct sock_filter steps[] = { { .code = BPF_RET }, { .code = BPF_RET } };
static const struct sock_fprog filter = { 2, steps };
static const struct vt_inode sockets[] = { { 1, 2 }, { 3, 4 } };

static const struct vt_image_whole original = {
	.plan = { .envp = envp,
		  .cwd = "/home",
		  .scratch = "/tmp/vitro",
		  .pooled = true,
		  .builds = builds,
		  .build_count = 3,
		  .idmaps = idmaps,
		  .idmap_count = 1,
		  .work_count = 1,
		  .denials = denials,
		  .denial_count = 2,
		  .landlock_rules = rules,
		  .landlock_rule_count = 2,
		  .rlimits = rlimits,
		  .rlimit_count = 1,
		  .filters = { &filter, &filter },
		  .filter_count = 2,
		  .broker = { .sockets = sockets, .socket_count = 2 },
		  .holdings = { { .name = "files", .key = "files", .mechanism = "m", .note = "" } },
		  .level = "full",
		  .notes = notes,
		  .note_count = 2,
		  .warnings = { "beware" },
		  .warning_count = 1 },
	.texts = { "/bin/true", "/bin/true", NULL, "pass", "default" },
	.bytes = "a\0b",
	.bytes_len = 3,
};

/* ---- what was changed in it ------------------------------------------------------------------ */

/* Seven bytes each: what to do, at which word, and with what. */
static void change(char *bytes, size_t *len, const uint8_t *by)
{
	uint16_t where, from;
	uint64_t word;

	memcpy(&where, by + 1, sizeof(where));
	memcpy(&from, by + 3, sizeof(from));
	size_t words = *len / sizeof(word);
	char *at = words ? bytes + where % words * sizeof(word) : bytes;

	if (!words)
		return;
	memcpy(&word, at, sizeof(word));
	switch (by[0] % 7) {
	case 0: /* a count, or a place */
		word = from;
		break;
	case 1: /* what another word is */
		memcpy(&word, bytes + from % words * sizeof(word), sizeof(word));
		break;
	case 2:
		word += (uint64_t)(int64_t)(int8_t)by[5] * 16;
		break;
	case 3:
		word = (uint64_t)from << (by[5] % 64);
		break;
	case 4: /* one byte of it */
		((uint8_t *)&word)[by[5] % 8] = by[6];
		break;
	case 5: /* the place of another word */
		word = from % words * sizeof(word);
		break;
	default:
		*len = *len < from ? *len : *len - from;
		return;
	}
	memcpy(at, &word, sizeof(word));
}

static int forge(int fd, const uint8_t *data, size_t size, size_t *ret_len)
{
	static char bytes[1 << 16];
	ssize_t got = pread(fd, bytes, sizeof(bytes), 0);

	REQUIRE(got > 0 && (size_t)got < sizeof(bytes));
	size_t len = (size_t)got;

	for (size_t at = 0, i = 0; at + 7 <= size && i < CHANGES_MAX; at += 7, i++)
		change(bytes, &len, data + at);
	int forged = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	REQUIRE(forged >= 0 && write(forged, bytes, len) == (ssize_t)len);
	REQUIRE(fcntl(forged, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
	*ret_len = len;
	return forged;
}

/* ---- what came of it ------------------------------------------------------------------------- */

static void check_again(const struct vt_image_whole *opened, bool is_whole, size_t len)
{
	struct vt_err err;
	struct stat st;

	REQUIRE(!opened->plan.arena && !opened->plan.exec_path && !opened->plan.argv);
	AUTO_CLOSE int again = is_whole ? vt_image_make_whole(opened, &err)
					: vt_image_make(&opened->plan, &err);

	REQUIRE(again >= 0 && fstat(again, &st) == 0);
	/* What is only the supervisor's is left out once more. */
	REQUIRE(is_whole ? (size_t)st.st_size == len : (size_t)st.st_size <= len);
}

static void open_whole(int fd, size_t len)
{
	struct vt_image_whole *opened;
	struct vt_err err = { 0 };
	size_t opened_len;
	int r = vt_image_open_whole(fd, &opened, &opened_len, &err);

	REQUIRE(r == 0 || (r == -EBADMSG && err.num == EBADMSG));
	if (r < 0)
		return;
	REQUIRE(opened_len == len);
	check_again(opened, true, len);
	vt_image_close(opened, opened_len);
}

/* As a supervisor does with what a scout has sent. */
static void believe(int fd)
{
	const struct vt_cells_wish wish = { .command = "true", .program_fd = -1 };
	struct vt_cells_found found = { .image_fd = fd, .program_fd = -1 };
	struct vt_cells cells = { 0 };
	struct vt_err err = { 0 };

	vt_str_init(&cells.key);
	int r = vt_cells_believe(&cells, &wish, &found, &err);

	REQUIRE(r == 0 || (r == -err.num && *err.what));
	if (r == 0)
		REQUIRE(cells.plan->pooled && cells.path && cells.program);
	free(cells.path);
	free(cells.program);
	free(cells.object);
	free(cells.script);
	free(cells.policy_name);
	vt_str_done(&cells.key);
	vt_image_close(cells.image, cells.image_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_whole = size && data[0] & WHOLE;
	const struct vt_plan *plan;
	struct vt_err err = { 0 };
	size_t len;

	if (size == 0)
		return 0;
	AUTO_CLOSE int fd = is_whole ? vt_image_make_whole(&original, &err)
				     : vt_image_make(&original.plan, &err);

	REQUIRE(fd >= 0);
	AUTO_CLOSE int forged = forge(fd, data + 1, size - 1, &len);

	if (is_whole && data[0] & BELIEVED) {
		believe(forged);
	} else if (is_whole) {
		open_whole(forged, len);
	} else if (vt_image_open(forged, &plan, &err) == 0) {
		struct vt_image_whole *opened = (void *)((char *)(uintptr_t)plan -
							 offsetof(struct vt_image_whole, plan));

		check_again(opened, false, len);
		vt_image_close(opened, len);
	} else {
		REQUIRE(err.num == EBADMSG && *err.what);
	}
	return 0;
}
