/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as editors make them, and what is read then. */
#include "manifest/watch.h"

#include <sys/stat.h>

#include "client/fake_test.h"

struct scene {
	char folder[64], path[96];
	struct vt_manifest_watch *watch;
	char told[512]; /* which tools there are; "": none that can be had */
	char why[1024]; /* what was wrong */
};

static void write_to(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

#define TOOL(name, about) \
	"{\"name\": \"" name "\", \"description\": \"" about "\", \"command\": [\"cat\"]}"

static void on_change(void *user, const struct vt_manifest *manifest, const char *mistakes)
{
	struct scene *scene = user;
	struct vt_str told;

	vt_str_init(&told);
	if (manifest)
		vt_str_add(&told, "[");
	for (size_t i = 0; manifest && i < manifest->count; i++)
		vt_str_addf(&told, "%s %s;", manifest->tools[i].name,
			    manifest->tools[i].description);
	if (manifest)
		vt_str_add(&told, "]");
	(void)snprintf(scene->told, sizeof(scene->told), "%s", told.text ? told.text : "");
	vt_str_done(&told);
	(void)snprintf(scene->why, sizeof(scene->why), "%s", mistakes ? mistakes : "");
}

static void begin(struct scene *scene, const char *name)
{
	struct vt_err err;

	*scene = (struct scene){ .folder = "/tmp/manifest-watch-XXXXXX" };
	assert_non_null(mkdtemp(scene->folder));
	(void)snprintf(scene->path, sizeof(scene->path), "%s/%s", scene->folder, name);
	if (strcmp(name, "t.json") == 0)
		write_to(scene->path, "{\"tools\": [" TOOL("a", "A.") "]}");
	assert_int_equal(vt_manifest_watch_new(scene->path, on_change, scene, &scene->watch, &err),
			 0);
}

static void end(struct scene *scene)
{
	char command[96];

	vt_manifest_watch_free(scene->watch);
	(void)snprintf(command, sizeof(command), "exec rm -r %s", scene->folder);
	/* By a child that is waited for, and which the tests do not take for one of the client's.
	 */
	FILE *removing = popen(command, "r");

	assert_non_null(removing);
	assert_int_equal(pclose(removing), 0);
	fake_children = 0;
}

/* Waits for events where there should be some, and sees that there are none where not. */
static int turn(struct scene *scene, int ms)
{
	struct pollfd poller = { .fd = vt_manifest_watch_fd(scene->watch), .events = POLLIN };

	scene->told[0] = scene->why[0] = '\0';
	return poll(&poller, 1, ms) > 0 ? vt_manifest_watch_dispatch(scene->watch) : 0;
}

static void put(const struct scene *scene, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
	write_to(path, text);
}

static void move(const struct scene *scene, const char *from, const char *to)
{
	char old[128], new[128];

	(void)snprintf(old, sizeof(old), "%s/%s", scene->folder, from);
	(void)snprintf(new, sizeof(new), "%s/%s", scene->folder, to);
	assert_int_equal(rename(old, new), 0);
}

static void test_written_in_place(void **state)
{
	(void)state;
	struct scene scene;

	begin(&scene, "t.json");
	assert_int_equal(turn(&scene, 0), 0);
	write_to(scene.path, "{\"tools\": [" TOOL("a", "A.") "," TOOL("b", "B.") "]}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;b B.;]");
	write_to(scene.path, "{\"tools\": [" TOOL("b", "Other.") "]}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[b Other.;]");
	end(&scene);
}

/* Half of a file is not read: it is, once it was closed. */
static void test_being_written(void **state)
{
	(void)state;
	struct scene scene;

	begin(&scene, "t.json");
	FILE *out = fopen(scene.path, "w");

	assert_non_null(out);
	assert_true(fputs("{\"tools\": [", out) >= 0);
	assert_int_equal(fflush(out), 0);
	put(&scene, "other", "x");
	assert_int_equal(turn(&scene, 100), 0);
	assert_true(fputs(TOOL("c", "C.") "]}", out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[c C.;]");
	end(&scene);
}

static void test_renamed_over(void **state)
{
	(void)state;
	struct scene scene;

	begin(&scene, "t.json");
	for (int i = 0; i < 3; i++) {
		put(&scene, ".t.json.swp",
		    i % 2 ? "{\"tools\": []}" : "{\"tools\": [" TOOL("a", "A.") "]}");
		assert_int_equal(turn(&scene, 0), 0);
		move(&scene, ".t.json.swp", "t.json");
		assert_int_equal(turn(&scene, 1000), 1);
		assert_string_equal(scene.told, i % 2 ? "[]" : "[a A.;]");
	}
	/* As others do it: the old one is put aside, and a new one made. */
	move(&scene, "t.json", "t.json~");
	put(&scene, "t.json", "{\"tools\": []}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[]");
	end(&scene);
}

static void test_bad_ones_change_nothing(void **state)
{
	(void)state;
	struct scene scene;

	begin(&scene, "t.json");
	put(&scene, "t.json", "{\"tools\": [" TOOL("a", "A.") "]}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	put(&scene, "t.json", "{\"tools\": [" TOOL("b", "B.") ",\n{}]}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "");
	assert_non_null(strstr(scene.why, "t.json:2: tools[1]: there is no \"name\"\n"));
	assert_int_equal(unlink(scene.path), 0);
	assert_int_equal(turn(&scene, 1000), 1);
	assert_non_null(strstr(scene.why, "No such file"));
	put(&scene, "t.json", "{\"tools\": [" TOOL("b", "B.") "]}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[b B.;]");
	assert_string_equal(scene.why, "");
	end(&scene);
}

/* A link that is turned, as where a whole folder of settings is exchanged at once. */
static void test_links(void **state)
{
	(void)state;
	struct scene scene;
	char path[128];

	begin(&scene, "link.json");
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", scene.folder, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	put(&scene, "0/t.json", "{\"tools\": [" TOOL("a", "A.") "]}");
	put(&scene, "1/t.json", "{\"tools\": [" TOOL("b", "B.") "]}");
	(void)snprintf(path, sizeof(path), "%s/data", scene.folder);
	assert_int_equal(symlink("0", path), 0);
	assert_int_equal(turn(&scene, 100), 0);
	assert_int_equal(symlink("data/t.json", scene.path), 0);
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	(void)snprintf(path, sizeof(path), "%s/next", scene.folder);
	assert_int_equal(symlink("1", path), 0);
	move(&scene, "next", "data");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[b B.;]");
	/* And the file behind it, in its own folder; the one before is no matter any more. */
	put(&scene, "0/t.json", "{\"tools\": []}");
	assert_int_equal(turn(&scene, 100), 0);
	put(&scene, "1/t.json", "{\"tools\": []}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[]");
	end(&scene);
}

#define WITH(policy)                                                                       \
	"{\"tools\": [{\"name\": \"a\", \"description\": \"A.\", \"command\": [\"cat\"], " \
	"\"policy\": \"" policy "\"}]}"

static void load(struct scene *scene)
{
	struct vt_manifest *manifest;
	struct vt_str mistakes;
	struct vt_err err;

	vt_str_init(&mistakes);
	if (vt_manifest_watch_load(scene->watch, &manifest, &mistakes, &err) < 0)
		fail_msg("%s", mistakes.text);
	vt_manifest_free(manifest);
	vt_str_done(&mistakes);
}

/* The manifest is as it was: what its tools may do is not. */
static void test_policies(void **state)
{
	(void)state;
	struct scene scene;

	begin(&scene, "t.json");
	put(&scene, "p.json", "{\"extends\": \"q.json\"}");
	put(&scene, "q.json", "{}");
	put(&scene, "t.json", WITH("p.json"));
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	put(&scene, "p.json", "{\"extends\": \"q.json\", \"network\": \"none\"}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	put(&scene, "q.json.new", "{\"network\": \"none\"}");
	assert_int_equal(turn(&scene, 100), 0);
	move(&scene, "q.json.new", "q.json");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	/* One that is wrong, or gone for a moment. */
	put(&scene, "q.json", "{\"network\": 1}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "");
	move(&scene, "q.json", "aside");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "");
	put(&scene, "q.json", "{}");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	/* One that is none of its any more. */
	put(&scene, "p.json", "{}");
	assert_int_equal(turn(&scene, 1000), 1);
	put(&scene, "q.json", "{}");
	assert_int_equal(turn(&scene, 100), 0);
	end(&scene);
}

/* Those of a manifest that is read at the beginning; and a link on the way to one that is turned.
 */
static void test_links_to_policies(void **state)
{
	(void)state;
	struct scene scene;
	char path[128];

	begin(&scene, "t.json");
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", scene.folder, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	put(&scene, "0/p.json", "{}");
	put(&scene, "1/p.json", "{\"network\": \"none\"}");
	(void)snprintf(path, sizeof(path), "%s/ways", scene.folder);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/ways/now", scene.folder);
	assert_int_equal(symlink("../0", path), 0);
	put(&scene, "t.json", WITH("ways/now/p.json"));
	load(&scene);
	(void)turn(&scene, 100); /* it was written before it was read */
	(void)snprintf(path, sizeof(path), "%s/ways/next", scene.folder);
	assert_int_equal(symlink("../1", path), 0);
	assert_int_equal(turn(&scene, 100), 0);
	move(&scene, "ways/next", "ways/now");
	assert_int_equal(turn(&scene, 1000), 1);
	assert_string_equal(scene.told, "[a A.;]");
	put(&scene, "1/p.json", "{}");
	assert_int_equal(turn(&scene, 1000), 1);
	put(&scene, "0/p.json", "{}");
	assert_int_equal(turn(&scene, 100), 0);
	end(&scene);
}

static void test_what_cannot_be_watched(void **state)
{
	static const char *const paths[] = { "/no/such/folder/t.json", "/tmp/", "/" };
	struct vt_manifest_watch *watch;
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_true(vt_manifest_watch_new(paths[i], on_change, NULL, &watch, &err) < 0);
	vt_manifest_watch_free(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_written_in_place),
		FAKE_TEST(test_being_written),
		FAKE_TEST(test_renamed_over),
		FAKE_TEST(test_bad_ones_change_nothing),
		FAKE_TEST(test_links),
		FAKE_TEST(test_policies),
		FAKE_TEST(test_links_to_policies),
		FAKE_TEST(test_what_cannot_be_watched),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
