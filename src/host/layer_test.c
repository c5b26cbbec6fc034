/* SPDX-License-Identifier: Apache-2.0 */
/* On this machine: stories hold what an overlay does, this what is said of it. */
#include "kernel/child_test.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/skip_test.h"
#include "host/host.h"

static struct vt_host host;

static int setup(void **state)
{
	struct vt_err err;

	(void)state;
	return vt_host_probe(&host, &err);
}

static int teardown(void **state)
{
	(void)state;
	vt_host_done(&host);
	return 0;
}

static void test_layer(void **state)
{
	struct vt_path seen;
	struct vt_layer layer, again;
	int before;

	(void)state;
	assert_int_equal(host.look(&host, "/usr", &seen), 0);
	assert_int_equal(host.layer(&host, "/usr", &seen, &layer), 0);
	if (layer.overlay.err)
		SKIP("%s: %s", layer.overlay.tried, strerror(layer.overlay.err));
	before = count_fds();
	assert_int_equal(host.layer(&host, "/usr", &seen, &again), 0); /* remembered */
	assert_int_equal(again.overlay.err, 0);
	assert_int_equal(again.upper, layer.upper);
	assert_int_equal(count_fds(), before);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

/* Wherever it runs short of descriptors, that is not taken for what the machine can do. */
static void check_shortage(rlim_t most, int wanted)
{
	static struct vt_host fresh;
	struct rlimit old, few;
	struct vt_path seen;
	struct vt_layer layer = { .overlay.err = -1 };
	struct vt_err err;

	assert_int_equal(vt_host_probe(&fresh, &err), 0);
	assert_int_equal(fresh.look(&fresh, "/usr", &seen), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ .rlim_cur = most, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = fresh.layer(&fresh, "/usr", &seen, &layer);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	if (r == 0)
		assert_int_equal(layer.overlay.err, wanted);
	else
		assert_int_equal(r, -EMFILE);
	vt_host_done(&fresh);
}

/* What fails for want of descriptors is tried again, and not remembered. */
static void test_shortage(void **state)
{
	struct rlimit old, few = { 0 };
	struct vt_path seen;
	struct vt_layer layer;
	static struct vt_host other;
	struct vt_layer wanted;
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_host_probe(&other, &err), 0);
	assert_int_equal(other.look(&other, "/usr", &seen), 0);
	assert_int_equal(other.layer(&other, "/usr", &seen, &wanted), 0);
	vt_host_done(&other);
	for (rlim_t most = 0; most < 40; most++)
		check_shortage(most, wanted.overlay.err);
	assert_int_equal(host.look(&host, "/usr", &seen), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = host.layer(&host, "/usr", &seen, &layer);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(vt_host_trouble(&host), EMFILE);
	assert_int_equal(host.layer(&host, "/usr", &seen, &layer), 0);
	assert_int_equal(layer.overlay.err, wanted.overlay.err);
	assert_int_equal(vt_host_trouble(&host), 0);
}

/* No overlay takes proc for a folder of files that can be written. */
static void test_other_file_systems(void **state)
{
	struct vt_path seen;
	struct vt_layer layer;

	(void)state;
	assert_int_equal(host.look(&host, "/proc/self", &seen), 0);
	assert_int_equal(host.layer(&host, "/proc/self/", &seen, &layer), 0);
	assert_false(layer.upper);
}

static void test_work(void **state)
{
	struct vt_path base, tmp;

	(void)state;
	assert_int_equal(host.look(&host, "/tmp", &tmp), 0);
	assert_int_equal(host.can_work(&host, "/tmp", "/tmp", "/tmp", &base), 0);
	assert_int_equal(base.ino, tmp.ino);
	assert_int_equal(host.can_work(&host, "/tmp", "/proc", "/tmp", &base), -EXDEV);
	assert_int_equal(host.can_work(&host, "/tmp", "/tmp", "/proc", &base), -EXDEV);
	assert_int_equal(host.can_work(&host, "/no-such", "/tmp", "/tmp", &base), -ENOENT);
	if (geteuid() != 0)
		assert_int_equal(host.can_work(&host, "/usr", "/usr", "/usr", &base), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_layer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shortage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_file_systems, setup, teardown),
		cmocka_unit_test_setup_teardown(test_work, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
