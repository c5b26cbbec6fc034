/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "host/mounts.h"

/* An invented machine: number, that of the mount below, device, folder of the file system, mount
 * point. */
static const char *const machine[][5] = {
	{ "20", "1", "8:1", "/", "/" },
	{ "21", "20", "0:5", "/", "/proc" },
	{ "22", "20", "8:2", "/", "/home" },
	{ "23", "20", "8:2", "/ann/desk", "/srv/desk" },
	{ "24", "20", "8:2", "/ann/desk/deep", "/opt/deep" },
	{ "25", "20", "8:1", "/var/lib", "/mnt/lib" },
	{ "26", "20", "8:2", "/ann", "/covered" },
	{ "27", "26", "0:9", "/", "/covered" },
	{ "28", "20", "8:1", "/", "/host" },
	/* hidden by what was mounted above it later */
	{ "29", "20", "0:8", "/", "/hiding/deep" },
	{ "30", "20", "8:3", "/", "/hiding" },
	{ "31", "20", "8:3", "/", "/shown" },
	{ "32", "29", "8:3", "/", "/hiding/deep/er" },
};

static struct vt_mounts invent(void)
{
	struct vt_mounts mounts;

	vt_mounts_init(&mounts);
	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		for (size_t j = 0; j < 5; j++)
			vt_str_addn(&mounts.texts, machine[i][j], strlen(machine[i][j]) + 1);
	return mounts;
}

static void gather(void *arg, const char *alias)
{
	char *text = arg;

	(void)snprintf(text + strlen(text), 512 - strlen(text), "%s ", alias);
}

static void check_aliases(const char *path, const char *wanted)
{
	struct vt_mounts mounts = invent();
	char text[512] = "";

	assert_int_equal(vt_mounts_aliases(&mounts, path, gather, text), 0);
	assert_string_equal(text, wanted);
	vt_mounts_done(&mounts);
}

static void test_aliases(void **state)
{
	(void)state;
	check_aliases("/home/ann/desk/.env", "/srv/desk/.env ");
	check_aliases("/srv/desk/.env", "/home/ann/desk/.env ");
	check_aliases("/home/ann/desk/deep/x", "/srv/desk/deep/x /opt/deep/x ");
	check_aliases("/opt/deep", "/home/ann/desk/deep /srv/desk/deep ");
	/* what shows a part of it */
	check_aliases("/home/ann", "/srv/desk /opt/deep ");
	check_aliases("/home", "/srv/desk /opt/deep ");
	check_aliases("/var/lib/x", "/mnt/lib/x /host/var/lib/x ");
	check_aliases("/mnt/lib", "/var/lib /host/var/lib ");
	check_aliases("/etc", "/host/etc ");
	check_aliases("/host", "/ /mnt/lib ");
	/* what is mounted in it */
	check_aliases("/srv", "/host/srv /home/ann/desk /opt/deep ");
	/* what was mounted there first is not there */
	check_aliases("/hiding/deep/x", "/shown/deep/x ");
	check_aliases("/shown/deep/x", "/hiding/deep/x ");
	check_aliases("/shown", "/hiding ");
	/* another device, another name, and what another mount covers */
	check_aliases("/proc/x", "");
	check_aliases("/home/annabel", "");
	check_aliases("/covered/desk/x", "");
}

static void test_below(void **state)
{
	struct vt_mounts mounts = invent();

	(void)state;
	assert_true(vt_mounts_below(&mounts, "/"));
	assert_true(vt_mounts_below(&mounts, "/srv"));
	assert_false(vt_mounts_below(&mounts, "/srv/desk"));
	assert_false(vt_mounts_below(&mounts, "/srv/wor"));
	assert_true(vt_mounts_below(&mounts, "relative"));
	vt_mounts_done(&mounts);
}

struct torn {
	const char *text;
	int err;
};

/* Gives the text, then an error in place of the end. */
static ssize_t read_torn(void *cookie, char *buf, size_t size)
{
	struct torn *torn = cookie;
	size_t len = strlen(torn->text);

	if (len == 0) {
		errno = torn->err;
		return torn->err ? -1 : 0;
	}
	len = len < size ? len : size;
	memcpy(buf, torn->text, len);
	torn->text += len;
	return (ssize_t)len;
}

static int read_list(struct vt_mounts *mounts, const char *text, int err)
{
	struct torn torn = { text, err };
	FILE *file = fopencookie(&torn, "r", (cookie_io_functions_t){ .read = read_torn });

	assert_non_null(file);
	int r = vt_mounts_read(mounts, file);

	assert_int_equal(fclose(file), 0);
	return r;
}

/* A list of which only a part could be read would hide the other names of what is denied. */
static void test_torn(void **state)
{
	static const char list[] = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				   "21 20 8:1 /a\\040b /c rw - ext4 /dev/sda1 rw\n";
	struct vt_mounts mounts;
	char text[512] = "";

	(void)state;
	vt_mounts_init(&mounts);
	assert_int_equal(read_list(&mounts, list, EIO), -EIO);
	assert_int_equal(mounts.err, -EIO);
	assert_int_equal(mounts.texts.len, 0);
	assert_int_equal(read_list(&mounts, list, 0), 0);
	assert_int_equal(mounts.err, 0);
	assert_int_equal(vt_mounts_aliases(&mounts, "/c", gather, text), 0);
	assert_string_equal(text, "/a b ");
	vt_mounts_done(&mounts);
}

/* What is missing for a moment is told apart from what cannot be had. */
static void test_shortage(void **state)
{
	struct rlimit old, few = { 0 };
	struct vt_mounts mounts;
	char text[512] = "";

	(void)state;
	vt_mounts_init(&mounts);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = vt_mounts_aliases(&mounts, "/no/such", gather, text);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(vt_mounts_aliases(&mounts, "relative", gather, text), -EINVAL);
	vt_mounts_done(&mounts);
}

static void test_this_machine(void **state)
{
	struct vt_mounts mounts;

	(void)state;
	vt_mounts_init(&mounts);
	assert_true(vt_mounts_below(&mounts, "/")); /* /proc, at the least */
	assert_false(vt_mounts_below(&mounts, "/no/such/folder"));
	vt_mounts_done(&mounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aliases),      cmocka_unit_test(test_below),
		cmocka_unit_test(test_torn),         cmocka_unit_test(test_shortage),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
