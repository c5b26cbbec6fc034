/* SPDX-License-Identifier: Apache-2.0 */
/* What the host changes in granted folders shows in the next call, whatever the last one has seen.
 */
#include "library_test.h"

#include <fcntl.h>
#include <sys/stat.h>

struct kind {
	const char *parent; /* of the folder */
	const char *key;    /* by which it is granted */
	const char *denied; /* a name in it, or NULL */
};

static const struct kind kinds[] = {
	{ "/tmp", "files.read", NULL },      { "/tmp", "files.read", "closed" },
	{ "/tmp", "files.write", NULL },     { "/tmp", "files.write", "closed" },
	{ "/var/tmp", "files.read", NULL },  { "/var/tmp", "files.read", "closed" },
	{ "/var/tmp", "files.write", NULL }, { "/var/tmp", "files.write", "closed" },
};

/* As an editor does: what was there is another file. */
static void put(int folder_fd, const char *name, const char *text)
{
	int fd = openat(folder_fd, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	assert_int_equal(renameat(folder_fd, "new", folder_fd, name), 0);
}

/* What a call finds: the text of "file" and of "in/file", and the names that there are. */
static void assert_finds(vitro_toolhost *host, const char *wanted)
{
	vitro_result *result = call(host, "look", "{}");

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_output(result, VITRO_STDOUT, NULL), wanted);
	vitro_result_free(result);
}

static void change(vitro_toolhost *host, int fd)
{
	assert_finds(host, "- - \n");
	put(fd, "file", "1");
	assert_finds(host, "1 - file \n");
	put(fd, "file", "2");
	assert_finds(host, "2 - file \n");
	assert_int_equal(mkdirat(fd, "in", 0755), 0);
	put(fd, "in/file", "3");
	assert_finds(host, "2 3 file in \n");
	assert_int_equal(renameat(fd, "in", fd, "out"), 0);
	assert_finds(host, "2 - file out \n");
	assert_int_equal(mkdirat(fd, "in", 0755), 0);
	put(fd, "in/file", "4");
	assert_finds(host, "2 4 file in out \n");
	assert_int_equal(unlinkat(fd, "file", 0), 0);
	assert_finds(host, "- 4 in out \n");
}

/* Each is to find what the host did before it, and none keeps another from that. */
static void crowd(vitro_toolhost *host)
{
	enum { CALLS = 2000 };
	const struct vitro_request request = { .tool = "look" };

	for (int i = 0; i < CALLS; i++)
		assert_int_equal(vitro_submit(host, &request, NULL), 0);
	vitro_cancel_all(host);
	while (vitro_is_running(host, NULL))
		turn(host);
}

static void empty(int fd)
{
	(void)unlinkat(fd, "file", 0);
	(void)unlinkat(fd, "in/file", 0);
	(void)unlinkat(fd, "out/file", 0);
	(void)unlinkat(fd, "in", AT_REMOVEDIR);
	(void)unlinkat(fd, "out", AT_REMOVEDIR);
	(void)unlinkat(fd, "closed", 0);
}

static void check_kind(const struct kind *kind)
{
	static const char script[] = "cd \"$0\"; a=-; b=-; read -r a <file; read -r b <in/file;"
				     "c=; for n in *; do case $n in '*'|closed) ;; *) c=\"$c$n \";;"
				     " esac; done; echo \"$a $b $c\"";
	char folder[64], closed[80];
	struct vitro_error error;

	(void)snprintf(folder, sizeof(folder), "%s/library-test-XXXXXX", kind->parent);
	if (!mkdtemp(folder))
		SKIP("nothing can be written in the folder of this case");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0755), 0);
	vitro_policy *policy = policy_of(kind->key, folder);

	if (kind->denied) {
		put(fd, kind->denied, "secret");
		(void)snprintf(closed, sizeof(closed), "%s/%s", folder, kind->denied);
		assert_int_equal(vitro_policy_set(policy, "files.deny", closed, &error), 0);
	}
	const struct vitro_tool tools[] = { { .name = "look",
					      .command = (const char *const[]){ "sh", "-c", script,
										folder, NULL },
					      .policy = policy },
					    { 0 } };
	vitro_toolhost *host = host_of(tools, NULL);

	change(host, fd);
	crowd(host);
	assert_finds(host, "- 4 in out \n");
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
	empty(fd);
	assert_int_equal(close(fd), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_changes(void **state)
{
	check_kind(*state);
}

int main(int argc, char **argv)
{
	enum { COUNT = sizeof(kinds) / sizeof(kinds[0]) };
	struct CMUnitTest tests[COUNT];
	char names[COUNT][64];

	if (argc < 2 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	for (size_t i = 0; i < COUNT; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "changes in %s below %s%s", kinds[i].key,
			       kinds[i].parent, kinds[i].denied ? ", with a deny inside" : "");
		tests[i] = (struct CMUnitTest){ .name = names[i],
						.test_func = test_changes,
						.initial_state = (void *)&kinds[i] };
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
