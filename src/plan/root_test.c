/* SPDX-License-Identifier: Apache-2.0 */
/* The root is planned on an invented host, and read back as one line per act. */
#include "plan/invented_test.h"

#include "base/clock.h"
#include "plan/root.h"

static const struct invented machine[] = {
	{ "/usr", S_IFDIR | 0755, 0, NULL },
	{ "/usr/bin", S_IFDIR | 0755, 0, NULL },
	{ "/usr/bin/tool", S_IFREG | 0755, 0, NULL },
	{ "/usr/local", S_IFDIR | 0755, 0, NULL },
	{ "/usr/local/app", S_IFDIR | 0755, 0, NULL },
	{ "/bin", S_IFDIR | 0755, 0, "usr/bin" },
	{ "/bin/tool", S_IFREG | 0755, 0, NULL },
	{ "/sbin", S_IFDIR | 0755, 0, "./usr/./bin" },
	{ "/var/lib", S_IFDIR | 0755, 0, "../usr/lib" },
	{ "/loop", S_IFDIR | 0755, 0, "loop" },
	{ "/srv", S_IFDIR | 0700, 1234, NULL },
	{ "/srv/out", S_IFDIR | 0755, 1234, NULL },
	{ "/srv/out/deep", S_IFDIR | 0755, 1234, NULL },
	{ "/srv/note", S_IFREG | 0644, 99, NULL },
	{ "/home", S_IFDIR | 0755, 99, NULL },
	{ "/nfs", S_IFDIR | 0755, 1234, NULL },
	{ "/sock", S_IFSOCK | 0666, 0, NULL },
	{ "/fifo", S_IFIFO | 0666, 0, NULL },
	{ "/dev/null", S_IFCHR | 0666, 0, NULL },
	{ "/dev/sda", S_IFBLK | 0660, 0, NULL },
};

/* What is a user's can be mapped, but for the one file system that cannot. */
static int look_at(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	if (strncmp(path, "/many/", 6) == 0) {
		*ret_path = (struct vt_path){ .mode = S_IFDIR | 0755, .dev = 2, .ino = 1 };
		return 0;
	}
	int r = look(host, path, ret_path);

	if (r < 0)
		return r;
	ret_path->gid = ret_path->uid + 1;
	ret_path->idmap = ret_path->uid && strcmp(path, "/nfs") != 0;
	return 0;
}

static const struct vt_host host = { .context = MACHINE(machine), .look = look_at, .step = step };

/* What one test works with. */
struct stage {
	struct vt_plan plan;
	struct vt_root *root;
	struct vt_str text;
	struct vt_err err;
};

static int begin(void **state)
{
	static struct stage stage;

	stage = (struct stage){ .plan = { .arena = vt_arena_new() } };
	stage.root = vt_root_new(stage.plan.arena, &host);
	vt_str_init(&stage.text);
	*state = &stage;
	return stage.root ? 0 : -1;
}

static int end(void **state)
{
	struct stage *stage = *state;

	vt_str_done(&stage->text);
	vt_arena_free(stage->plan.arena);
	return 0;
}

#define READ(path)                                             \
	(struct vt_entry)                                      \
	{                                                      \
		.from = (path), .to = (path), .origin = "test" \
	}
#define WRITE(path)                                                              \
	(struct vt_entry)                                                        \
	{                                                                        \
		.from = (path), .to = (path), .origin = "test", .writable = true \
	}
#define GRANT(path)                                                            \
	(struct vt_entry)                                                      \
	{                                                                      \
		.from = (path), .to = (path), .origin = "test", .mapped = true \
	}
#define MOVE(path, place)                                       \
	(struct vt_entry)                                       \
	{                                                       \
		.from = (path), .to = (place), .origin = "test" \
	}

static int add(struct stage *stage, struct vt_entry entry)
{
	return vt_root_mount(stage->root, &entry, &stage->err);
}

static int add_link(struct stage *stage, const char *path)
{
	struct vt_entry entry = READ(path);

	return vt_root_link_or_mount(stage->root, &entry, &stage->err);
}

static int own(struct stage *stage, enum vt_act act, const char *to, const char *from)
{
	return vt_root_own(stage->root, act, to, from, 0755, &stage->err);
}

/* The acts, as text. */
static const char *finish(struct stage *stage)
{
	static const char *const names[] = {
		[VT_ACT_DIR] = "dir",   [VT_ACT_LINK] = "link",       [VT_ACT_FILE] = "file",
		[VT_ACT_BIND] = "bind", [VT_ACT_SCRATCH] = "scratch", [VT_ACT_PROC] = "proc",
		[VT_ACT_MASK] = "mask",
	};

	assert_int_equal(vt_root_finish(stage->root, &stage->plan, &stage->err), 0);
	for (size_t i = 0; i < stage->plan.build_count; i++) {
		const struct vt_build *build = &stage->plan.builds[i];

		vt_str_addf(&stage->text, "%s %s", names[build->act], build->to);
		if (build->act == VT_ACT_BIND)
			vt_str_addf(&stage->text, " <- %s%s", build->from,
				    build->writable ? " rw" : "");
		if (build->act == VT_ACT_LINK)
			vt_str_addf(&stage->text, " -> %s", build->from);
		vt_str_add(&stage->text, "\n");
	}
	assert_true(vt_str_ok(&stage->text));
	return stage->text.text;
}

static const struct vt_build *bind_at(const struct stage *stage, const char *to)
{
	for (size_t i = 0; i < stage->plan.build_count; i++)
		if (stage->plan.builds[i].act == VT_ACT_BIND &&
		    strcmp(stage->plan.builds[i].to, to) == 0)
			return &stage->plan.builds[i];
	fail_msg("nothing is bound at %s", to);
	return NULL;
}

/* ---- what is mounted ----------------------------------------------------------------------- */

/* A folder and a file each need a place; the folders on the way are made, parents first. */
static void test_places(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/srv/note", "/b/c/note")), 0);
	assert_int_equal(add(stage, MOVE("/srv", "/a")), 0);
	assert_string_equal(finish(stage),
			    "dir a\nbind a <- /srv\n"
			    "dir b\ndir b/c\nfile b/c/note\nbind b/c/note <- /srv/note\n");
	/* A place is like any other: what the mount is like shows only through the mount. */
	assert_int_equal(stage->plan.builds[0].mode, 0755);
	assert_string_equal(stage->plan.builds[4].from, "");
	const struct vt_build *bind = bind_at(stage, "a");

	assert_int_equal(bind->dev, 1);
	assert_int_equal(bind->ino, inode_of(&host, "/srv"));
	assert_int_equal(bind->idmap, -1);
	assert_true(S_ISDIR(bind->mode));
}

static void test_covered(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_int_equal(add(stage, READ("/srv/out")), 0);
	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_int_equal(add(stage, READ("/srv/note")), 0);
	assert_string_equal(finish(stage), "dir srv\nbind srv <- /srv\n");
}

static void test_more_rights_are_mounted(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_int_equal(add(stage, WRITE("/srv/out")), 0);
	assert_int_equal(add(stage, READ("/srv/out/deep")), 0);
	/* in a mount nothing is made: the places are there */
	assert_string_equal(finish(stage),
			    "dir srv\nbind srv <- /srv\nbind srv/out <- /srv/out rw\n");
	/* the launcher is told that others' folders lead there */
	assert_false(bind_at(stage, "srv")->nested);
	assert_true(bind_at(stage, "srv/out")->nested);
}

static void test_read_then_write(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_int_equal(add(stage, WRITE("/srv")), 0);
	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_string_equal(finish(stage), "dir srv\nbind srv <- /srv rw\n");
}

/* A folder that comes after what was granted in it: nothing is made in it, and rights stay. */
static void test_outer_comes_last(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, WRITE("/usr/local/app")), 0);
	assert_int_equal(add(stage, READ("/usr/bin/tool")), 0);
	assert_int_equal(add(stage, READ("/usr")), 0);
	assert_string_equal(finish(stage),
			    "dir usr\nbind usr <- /usr\nbind usr/local/app <- /usr/local/app rw\n");
}

static void test_outer_comes_last_without_a_place(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/home", "/usr/new")), 0);
	assert_int_equal(add(stage, READ("/usr")), -ENOENT);
	assert_int_equal(stage->err.step, VT_STEP_PLAN);
	assert_non_null(strstr(stage->err.what, "'/home' cannot be placed at '/usr/new'"));
}

static void test_own_things_in_a_mount_go(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(own(stage, VT_ACT_FILE, "/srv/made", "text"), 0);
	assert_int_equal(own(stage, VT_ACT_LINK, "/srv/link", "x"), 0);
	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_string_equal(finish(stage), "dir srv\nbind srv <- /srv\n");
}

/* What is moved is something else than what the place shows, even where it is the same path. */
static void test_moved(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/srv", "/usr")), 0);
	assert_int_equal(add(stage, MOVE("/srv/out", "/usr/out")), 0); /* shown there already */
	assert_int_equal(add(stage, MOVE("/home", "/usr/out/deep")), 0);
	assert_string_equal(finish(stage),
			    "dir usr\nbind usr <- /srv\nbind usr/out/deep <- /home\n");
}

static void test_cannot_be_placed(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, READ("/srv")), 0);
	assert_int_equal(add(stage, MOVE("/home", "/srv/new")), -ENOENT);
	assert_non_null(strstr(stage->err.what, "'/srv' is granted and has no such entry"));
	assert_int_equal(add(stage, MOVE("/home", "/srv/note")), -ENOTDIR);
	assert_int_equal(add(stage, MOVE("/usr/bin/tool", "/srv/out")), -ENOTDIR);
	assert_int_equal(add(stage, MOVE("/home", "/srv")), -EEXIST);
	assert_non_null(strstr(stage->err.what, "'/srv' and '/home' cannot both be at '/srv'"));
	assert_int_equal(stage->err.step, VT_STEP_PLAN);
}

static void test_file_where_a_folder_must_be(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/home", "/a/b")), 0);
	assert_int_equal(add(stage, MOVE("/srv/note", "/a")), -ENOTDIR);
	assert_int_equal(add(stage, MOVE("/srv/note", "/f")), 0);
	assert_true(add(stage, MOVE("/home", "/f/below")) < 0);
}

static void test_kinds(void **state)
{
	struct stage *stage = *state;
	struct vt_entry absent = READ("/absent"), null = READ("/dev/null");

	assert_int_equal(add(stage, READ("/sock")), -EINVAL);
	assert_non_null(strstr(stage->err.what, "'/sock' is a socket"));
	assert_int_equal(add(stage, READ("/fifo")), -EINVAL);
	assert_int_equal(add(stage, READ("/dev/null")), -EINVAL);
	assert_int_equal(add(stage, WRITE("/dev/sda")), -EINVAL);
	assert_int_equal(add(stage, absent), -ENOENT);
	absent.optional = true;
	assert_int_equal(add(stage, absent), 0);
	null.device = true;
	assert_int_equal(add(stage, null), 0);
	assert_string_equal(finish(stage), "dir dev\nfile dev/null\nbind dev/null <- /dev/null\n");
	assert_true(bind_at(stage, "dev/null")->device);
}

/* ---- links --------------------------------------------------------------------------------- */

static void test_links(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add_link(stage, "/usr"), 0);
	assert_int_equal(add_link(stage, "/bin"), 0);
	/* through the link it is a place in /usr, which shows it */
	assert_int_equal(add(stage, MOVE("/usr/bin/tool", "/bin/tool")), 0);
	assert_string_equal(finish(stage), "link bin -> usr/bin\ndir usr\nbind usr <- /usr\n");
}

static void test_links_with_dots(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add_link(stage, "/var/lib"), 0);
	assert_int_equal(add_link(stage, "/sbin"), 0);
	assert_int_equal(add(stage, MOVE("/home", "/var/lib/x")), 0);
	assert_int_equal(add(stage, MOVE("/srv", "/sbin/y")), 0);
	assert_string_equal(finish(stage),
			    "link sbin -> ./usr/./bin\n"
			    "dir usr\ndir usr/bin\ndir usr/bin/y\nbind usr/bin/y <- /srv\n"
			    "dir usr/lib\ndir usr/lib/x\nbind usr/lib/x <- /home\n"
			    "dir var\nlink var/lib -> ../usr/lib\n");
}

/* With a grant below it, a link cannot be one: it is the folder behind it, or /bin were empty. */
static void test_grant_below_a_link(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, WRITE("/bin/tool")), 0);
	assert_int_equal(add_link(stage, "/usr"), 0);
	assert_int_equal(add_link(stage, "/bin"), 0);
	assert_string_equal(finish(stage),
			    "dir bin\nbind bin <- /bin\nbind bin/tool <- /bin/tool rw\n"
			    "dir usr\nbind usr <- /usr\n");
}

static void test_link_loop(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add_link(stage, "/loop"), 0);
	assert_int_equal(add(stage, MOVE("/home", "/loop/x")), -ELOOP);
	assert_int_equal(stage->err.step, VT_STEP_PLAN);
}

/* ---- the cell's own ------------------------------------------------------------------------ */

static void test_own_places(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(own(stage, VT_ACT_PROC, "/proc", NULL), 0);
	assert_int_equal(own(stage, VT_ACT_MASK, "/proc/keys", "dev/null"), 0);
	assert_int_equal(own(stage, VT_ACT_SCRATCH, "/tmp", NULL), 0);
	assert_int_equal(own(stage, VT_ACT_FILE, "/etc/passwd", "user"), 0);
	assert_int_equal(own(stage, VT_ACT_DIR, "/run", NULL), 0);
	assert_string_equal(finish(stage), "dir etc\nfile etc/passwd\ndir proc\nproc proc\n"
					   "mask proc/keys\ndir run\ndir tmp\nscratch tmp\n");
}

/* Where the user granted something, theirs stays. */
static void test_own_gives_way(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/srv", "/etc")), 0);
	assert_int_equal(add(stage, MOVE("/home", "/tmp/work")), 0);
	assert_int_equal(add(stage, MOVE("/home", "/var/tmp/work")), 0);
	assert_int_equal(own(stage, VT_ACT_FILE, "/etc/passwd", "user"), 0);
	assert_int_equal(own(stage, VT_ACT_DIR, "/etc", NULL), 0);
	assert_int_equal(own(stage, VT_ACT_SCRATCH, "/tmp", NULL), 0);
	assert_int_equal(own(stage, VT_ACT_LINK, "/var/tmp", "../tmp"), 0);
	assert_string_equal(finish(stage),
			    "dir etc\nbind etc <- /srv\n"
			    "dir tmp\nscratch tmp\ndir tmp/work\nbind tmp/work <- /home\n"
			    "dir var\ndir var/tmp\ndir var/tmp/work\n"
			    "bind var/tmp/work <- /home\n");
}

static void test_covers(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, MOVE("/srv", "/a/b")), 0);
	assert_true(vt_root_covers(stage->root, "/a/b"));
	assert_true(vt_root_covers(stage->root, "/a/b/c/d"));
	assert_true(vt_root_covers(stage->root, "/a//b/"));
	assert_false(vt_root_covers(stage->root, "/a"));
	assert_false(vt_root_covers(stage->root, "/a/bc"));
	assert_false(vt_root_covers(stage->root, "/a/"));
	assert_false(vt_root_covers(stage->root, "/"));
	assert_false(vt_root_covers(stage->root, "/other"));
}

/* ---- owners -------------------------------------------------------------------------------- */

/* One map per owner, for grants on file systems that take one. */
static void test_idmaps(void **state)
{
	struct stage *stage = *state;

	stage->plan.own_ids = true;
	assert_int_equal(add(stage, GRANT("/srv")), 0);
	assert_int_equal(add(stage, GRANT("/home")), 0);
	assert_int_equal(add(stage, (struct vt_entry){ .from = "/srv/out",
						       .to = "/o",
						       .origin = "t",
						       .mapped = true }),
			 0);
	assert_int_equal(add(stage, GRANT("/nfs")), 0);
	assert_int_equal(add(stage, READ("/usr")), 0);
	(void)finish(stage);
	assert_int_equal(stage->plan.idmap_count, 2);
	int srv = bind_at(stage, "srv")->idmap, home = bind_at(stage, "home")->idmap;

	assert_int_not_equal(srv, home);
	assert_int_equal(bind_at(stage, "o")->idmap, srv);
	assert_int_equal(stage->plan.idmaps[srv].uid, 1234);
	assert_int_equal(stage->plan.idmaps[srv].gid, 1235);
	assert_int_equal(stage->plan.idmaps[home].uid, 99);
	assert_int_equal(bind_at(stage, "nfs")->idmap, -1);
	assert_int_equal(bind_at(stage, "usr")->idmap, -1);
}

static void test_no_idmaps_without_own_ids(void **state)
{
	struct stage *stage = *state;

	assert_int_equal(add(stage, GRANT("/srv")), 0);
	(void)finish(stage);
	assert_int_equal(stage->plan.idmap_count, 0);
	assert_int_equal(bind_at(stage, "srv")->idmap, -1);
}

/* ---- many ---------------------------------------------------------------------------------- */

enum { MANY = 1000 };

/* CPU time: others may have the machine in between. */
static int64_t cpu_now(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
	return now.tv_sec * VT_NS_PER_S + now.tv_nsec;
}

static int64_t add_many(struct stage *stage, bool backwards)
{
	int64_t start = cpu_now();
	char path[32];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(path, sizeof(path), "/many/%04d", backwards ? MANY - 1 - i : i);
		assert_int_equal(add(stage, READ(path)), 0);
	}
	assert_int_equal(vt_root_finish(stage->root, &stage->plan, &stage->err), 0);
	return cpu_now() - start;
}

static void check_many(const struct stage *stage)
{
	char name[32];

	assert_int_equal(stage->plan.build_count, 1 + 2 * MANY);
	assert_string_equal(stage->plan.builds[0].to, "many");
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "many/%04d", i); /* fits */
		assert_int_equal(stage->plan.builds[1 + 2 * i].act, VT_ACT_DIR);
		assert_string_equal(stage->plan.builds[1 + 2 * i].to, name);
		assert_int_equal(stage->plan.builds[2 + 2 * i].act, VT_ACT_BIND);
		assert_string_equal(stage->plan.builds[2 + 2 * i].to, name);
	}
}

/* Sorted, as a policy's grants are, it takes a few hundred µs; the bound is for slow machines. */
static void test_many_siblings(void **state)
{
	struct stage *stage = *state;
	int64_t took = add_many(stage, false);

	check_many(stage);
	print_message("1000 siblings: %d us\n", (int)(took / 1000));
	assert_true(took < 20 * VT_NS_PER_MS);
}

static void test_many_siblings_backwards(void **state)
{
	(void)add_many(*state, true);
	check_many(*state);
}

static void test_deep(void **state)
{
	struct stage *stage = *state;
	static char path[8000];
	size_t len = (size_t)snprintf(path, sizeof(path), "/many");

	while (len < sizeof(path) - 2)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/d");
	assert_int_equal(add(stage, MOVE("/home", path)), 0);
	assert_int_equal(vt_root_finish(stage->root, &stage->plan, &stage->err), 0);
	assert_string_equal(stage->plan.builds[stage->plan.build_count - 1].to, path + 1);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(test_places),
		STAGED(test_covered),
		STAGED(test_more_rights_are_mounted),
		STAGED(test_read_then_write),
		STAGED(test_outer_comes_last),
		STAGED(test_outer_comes_last_without_a_place),
		STAGED(test_own_things_in_a_mount_go),
		STAGED(test_moved),
		STAGED(test_cannot_be_placed),
		STAGED(test_file_where_a_folder_must_be),
		STAGED(test_kinds),
		STAGED(test_links),
		STAGED(test_links_with_dots),
		STAGED(test_grant_below_a_link),
		STAGED(test_link_loop),
		STAGED(test_own_places),
		STAGED(test_own_gives_way),
		STAGED(test_covers),
		STAGED(test_idmaps),
		STAGED(test_no_idmaps_without_own_ids),
		STAGED(test_many_siblings),
		STAGED(test_many_siblings_backwards),
		STAGED(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
