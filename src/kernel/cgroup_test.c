/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing, and what v2 is told, on invented trees of plain files: this needs no right to make
 * cgroups. cgroup_kernel_test.c tries the real ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/skip_test.h"
#include "kernel/cgroup_private.h"

static const char hybrid_text[] = "9:name=systemd:/\n"
				  "8:pids:/a\n"
				  "4:memory:/a/b\n"
				  "2:cpu,cpuacct:/\n"
				  "0::/u\n";

/* An invented tree: path of a file, and what is in it. A path that ends in '/' is a folder. */
struct file {
	const char *path;
	const char *text;
};

static void make_parents(int top, const char *path)
{
	char part[PATH_MAX];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		memcpy(part, path, (size_t)(at - path));
		part[at - path] = '\0';
		assert_true(mkdirat(top, part, 0755) == 0 || errno == EEXIST);
	}
}

static void grow(const char *top, const struct file *files)
{
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	for (; files->path; files++) {
		make_parents(dir, files->path);
		if (!files->text)
			continue;
		AUTO_CLOSE int fd = openat(dir, files->path,
					   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, files->text, strlen(files->text)), strlen(files->text));
	}
}

static int make_top(void **state)
{
	char *top = strdup("/tmp/vitro-cgroup-test-XXXXXX");

	*state = top;
	return top && mkdtemp(top) ? 0 : -1;
}

static int drop_top(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	free(*state);
	return system(command);
}

static const char *content(const char *top, const char *file)
{
	static char text[256];
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(vt_file_read(dir, file, text, sizeof(text)) >= 0);
	return text;
}

static void assert_folder(const char *folder, const char *top, const char *below)
{
	char expected[PATH_MAX];

	assert_int_equal(vt_cgroup_path(expected, top, below), 0);
	assert_string_equal(folder, expected);
}

/* Paths and texts. */

static void test_paths_are_bounded(void **state)
{
	char buf[PATH_MAX], longest[PATH_MAX];

	(void)state;
	assert_int_equal(vt_cgroup_path(buf, "/a", "/"), 0);
	assert_string_equal(buf, "/a");
	assert_int_equal(vt_cgroup_path(buf, "/a", "/b/c"), 0);
	assert_string_equal(buf, "/a/b/c");
	memset(longest, 'x', sizeof(longest));
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(vt_cgroup_path(buf, "/a", longest), -ENAMETOOLONG);
	longest[PATH_MAX - 3] = '\0';
	assert_int_equal(vt_cgroup_path(buf, "/a", longest), -ENAMETOOLONG);
	longest[PATH_MAX - 4] = '\0';
	assert_int_equal(vt_cgroup_path(buf, "/a", longest), 0);
}

static void test_own_place(void **state)
{
	char list[NAME_MAX + 1], path[PATH_MAX];

	(void)state;
	assert_true(vt_cgroup_own(hybrid_text, "memory", list, path));
	assert_string_equal(list, "memory");
	assert_string_equal(path, "/a/b");
	assert_true(vt_cgroup_own(hybrid_text, "cpuacct", list, path));
	assert_string_equal(list, "cpu,cpuacct");
	assert_string_equal(path, "/");
	assert_true(vt_cgroup_own(hybrid_text, "", list, path));
	assert_string_equal(path, "/u");
	assert_false(vt_cgroup_own(hybrid_text, "cpuset", list, path));
	/* names are whole words; a path may have colons */
	assert_false(vt_cgroup_own("1:memoryx,xmemory:/\n", "memory", list, path));
	assert_true(vt_cgroup_own("1:memory:/a:b\n", "memory", list, path));
	assert_string_equal(path, "/a:b");
}

static void test_own_place_that_cannot_be_followed(void **state)
{
	char list[NAME_MAX + 1], path[PATH_MAX];

	(void)state;
	assert_false(vt_cgroup_own("4:memory:/../a\n", "memory", list, path));
	assert_false(vt_cgroup_own("4:memory:/a/..\n", "memory", list, path));
	assert_true(vt_cgroup_own("4:memory:/..a/b..\n", "memory", list, path));
	assert_false(vt_cgroup_own("4:memory:a\n", "memory", list, path));
	/* cut off: the rest of the path is unknown */
	assert_false(vt_cgroup_own("4:memory:/a", "memory", list, path));
	assert_false(vt_cgroup_own("", "memory", list, path));
	assert_false(vt_cgroup_own("junk\n:\n::\n", "", list, path));
}

/* Finding, on invented trees. */

static void test_find_v1_beside_an_empty_v2(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	grow(top, (const struct file[]){ { "memory/a/b/memory.limit_in_bytes", "" },
					 { "pids/a/tasks", "" },
					 { "cpu,cpuacct/cpu.cfs_quota_us", "-1\n" },
					 { "cpu,cpuacct/cpuacct.usage", "0\n" },
					 { "unified/cgroup.controllers", "hugetlb\n" },
					 { "unified/u/cgroup.controllers", "hugetlb\n" },
					 { NULL, NULL } });
	vt_cgroup_find_at(top, hybrid_text, &site);
	assert_int_equal(site.version, VT_CGROUP_V1);
	assert_folder(site.memory, top, "memory/a/b");
	assert_folder(site.pids, top, "pids/a");
	assert_folder(site.cpu, top, "cpu,cpuacct");
	assert_string_equal(site.cpu, site.cpuacct);
	assert_string_equal(site.why, "");
}

/* "cpuacct,cpu" in the text, mounted as "cpu,cpuacct" with links: still one folder for both. */
static void test_find_v1_by_link(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;
	char link[PATH_MAX];

	grow(top, (const struct file[]){ { "cpu,cpuacct/cpu.cfs_quota_us", "-1\n" },
					 { "cpu,cpuacct/cpuacct.usage", "0\n" },
					 { NULL, NULL } });
	(void)vt_cgroup_path(link, top, "cpuacct");
	assert_int_equal(symlink("cpu,cpuacct", link), 0);
	(void)vt_cgroup_path(link, top, "cpu");
	assert_int_equal(symlink("cpu,cpuacct", link), 0);
	vt_cgroup_find_at(top, "2:cpuacct,cpu:/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V1);
	assert_folder(site.cpu, top, "cpuacct");
	assert_folder(site.cpuacct, top, "cpuacct");
	assert_string_equal(site.memory, "");
}

static void test_find_none(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	vt_cgroup_find_at(top, hybrid_text, &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_string_equal(site.memory, "");
	assert_non_null(strstr(site.why, "/memory/a/b'"));
	assert_non_null(strstr(site.cpu_why, "/cpu"));
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_non_null(strstr(site.why, "mounted"));
	vt_cgroup_find_at(top, "", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_true(site.why[0]);
	assert_string_equal(site.cpu_why, site.why);
}

static void test_find_v2_root(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	grow(top, (const struct file[]){ { "cgroup.controllers", "cpuset cpu memory pids\n" },
					 { "cgroup.subtree_control", "" },
					 { "cgroup.procs", "1\n2\n" },
					 { NULL, NULL } });
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.memory, top);
	assert_string_equal(site.pids, top);
	assert_string_equal(site.cpu, top);
	assert_string_equal(site.cpuacct, top);
}

/* The root of a container: a cgroup namespace calls it "/", but it has a type. */
static void grow_container(const char *top, const char *procs, const char *enabled)
{
	grow(top, (const struct file[]){ { "cgroup.controllers", "cpu memory pids\n" },
					 { "cgroup.type", "domain\n" },
					 { "cgroup.subtree_control", enabled },
					 { "cgroup.procs", procs },
					 { NULL, NULL } });
}

static void test_find_v2_alone(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;
	char procs[32];

	(void)snprintf(procs, sizeof(procs), "%d\n", (int)getpid());
	grow_container(top, procs, "");
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.memory, top);

	/* and again after stepping aside, when the child is the own one */
	grow_container(top, "", "memory\n");
	grow(top, (const struct file[]){ { VT_CGROUP_SUPERVISOR "/cgroup.procs", procs },
					 { NULL, NULL } });
	vt_cgroup_find_at(top, "0::/" VT_CGROUP_SUPERVISOR "\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.memory, top);
	assert_string_equal(site.pids, top);
}

static void test_find_v2_with_others(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;
	char procs[32];

	(void)snprintf(procs, sizeof(procs), "1\n%d\n", (int)getpid());
	grow_container(top, procs, "");
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_non_null(strstr(site.why, "other processes"));

	/* what is given already can be used all the same */
	grow_container(top, procs, "pids\n");
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.pids, top);
	assert_string_equal(site.memory, "");
}

/* As systemd marks a unit's cgroup; the rest of the test is skipped where files take no marks. */
static void mark(const char *top, const char *below, const char *name)
{
	char folder[PATH_MAX], full[64];

	assert_int_equal(vt_cgroup_path(folder, top, below), 0);
	(void)snprintf(full, sizeof(full), "user.%s", name);
	if (setxattr(folder, full, "1", 1, 0) == 0)
		return;
	(void)snprintf(full, sizeof(full), "trusted.%s", name);
	if (setxattr(folder, full, "1", 1, 0) < 0)
		SKIP("no extended attributes in /tmp: %s", strerror(errno));
}

static void test_find_v2_unit(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	grow_container(top, "", "");
	mark(top, "", "invocation_id");
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_non_null(strstr(site.why, "Delegate=yes"));
	mark(top, "", "delegate");
	vt_cgroup_find_at(top, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.memory, top);
}

/* A unit's processes in a child of its cgroup, as DelegateSubgroup= has it. */
static void test_find_v2_subgroup(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	grow_container(top, "", "");
	grow(top, (const struct file[]){ { "sub/cgroup.controllers", "" },
					 { "sub/cgroup.type", "domain\n" },
					 { "sub/cgroup.subtree_control", "" },
					 { "sub/cgroup.procs", "1\n2\n" },
					 { NULL, NULL } });
	vt_cgroup_find_at(top, "0::/sub\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	mark(top, "", "invocation_id");
	vt_cgroup_find_at(top, "0::/sub\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	mark(top, "", "delegate");
	vt_cgroup_find_at(top, "0::/sub\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_string_equal(site.memory, top);

	/* a unit below one is a unit by itself */
	mark(top, "sub", "invocation_id");
	vt_cgroup_find_at(top, "0::/sub\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
}

static void test_find_v2_threaded(void **state)
{
	struct vt_cgroup_site site;

	grow_container(*state, "", "");
	grow(*state,
	     (const struct file[]){ { "cgroup.type", "domain threaded\n" }, { NULL, NULL } });
	vt_cgroup_find_at(*state, "0::/\n", &site);
	assert_int_equal(site.version, VT_CGROUP_NONE);
	assert_non_null(strstr(site.why, "threaded"));
}

static void test_find_v2_below_the_root(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	grow(top, (const struct file[]){ { "cgroup.controllers", "cpu memory pids\n" },
					 { "cgroup.subtree_control", "memory pids\n" },
					 { "s/cgroup.controllers", "memory pids\n" },
					 { "s/cgroup.type", "domain\n" },
					 { "s/cgroup.subtree_control", "" },
					 { "s/cgroup.procs", "1\n2\n" },
					 { NULL, NULL } });
	vt_cgroup_find_at(top, "0::/s\n", &site);
	assert_int_equal(site.version, VT_CGROUP_V2);
	assert_folder(site.memory, top, VT_CGROUP_TOP);
	assert_folder(site.cpu, top, VT_CGROUP_TOP);
	assert_string_equal(site.why, "");

	/* a unit that would do, but is systemd's */
	grow(top, (const struct file[]){ { "s/cgroup.procs", "" }, { NULL, NULL } });
	vt_cgroup_find_at(top, "0::/s\n", &site);
	assert_folder(site.memory, top, "s");
	mark(top, "s", "invocation_id");
	vt_cgroup_find_at(top, "0::/s\n", &site);
	assert_folder(site.memory, top, VT_CGROUP_TOP);
}

/* v2's writes, on invented trees. */

static void test_v2_prepare(void **state)
{
	const char *top = *state;
	struct vt_err err;

	grow_container(top, "", "");
	assert_int_equal(vt_cgroup_v2_prepare(top, VT_CGROUP_MEMORY | VT_CGROUP_PIDS, &err), 0);
	assert_string_equal(content(top, "cgroup.subtree_control"), "+memory +pids");
	grow_container(top, "", "memory cpu\n");
	assert_int_equal(vt_cgroup_v2_prepare(top, VT_CGROUP_MEMORY, &err), 0);
	assert_string_equal(content(top, "cgroup.subtree_control"), "memory cpu\n");
	assert_int_equal(vt_cgroup_v2_prepare("/nowhere/vitro-x", VT_CGROUP_MEMORY, &err), -ENOENT);
	assert_int_equal(err.step, VT_STEP_CGROUP);
}

static void test_v2_prepare_below_the_root(void **state)
{
	const char *top = *state;
	char folder[PATH_MAX];
	struct vt_err err;

	grow(top, (const struct file[]){ { "cgroup.controllers", "memory\n" },
					 { "cgroup.subtree_control", "" },
					 { NULL, NULL } });
	(void)vt_cgroup_path(folder, top, VT_CGROUP_TOP);
	/* the folder is made; a plain one has no cgroup.subtree_control then */
	assert_int_equal(vt_cgroup_v2_prepare(folder, VT_CGROUP_MEMORY, &err), -ENOENT);
	assert_string_equal(content(top, "cgroup.subtree_control"), "+memory");
	grow(folder, (const struct file[]){ { "cgroup.subtree_control", "" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_v2_prepare(folder, VT_CGROUP_MEMORY, &err), 0);
	assert_string_equal(content(folder, "cgroup.subtree_control"), "+memory");
}

static void test_v2_step_aside(void **state)
{
	const char *top = *state;
	char self[32];
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)snprintf(self, sizeof(self), "%d\n", (int)getpid());
	grow_container(top, "1\n", "");
	assert_int_equal(vt_cgroup_v2_step_aside(dir), -EBUSY);
	assert_int_not_equal(faccessat(dir, VT_CGROUP_SUPERVISOR, F_OK, 0), 0);
	grow_container(top, self, "");
	grow(top,
	     (const struct file[]){ { VT_CGROUP_SUPERVISOR "/cgroup.procs", "" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_v2_step_aside(dir), 0);
	assert_string_equal(content(top, VT_CGROUP_SUPERVISOR "/cgroup.procs"), "0");
}

static void test_v2_limit(void **state)
{
	const char *top = *state;
	struct vt_cgroup_limits limits = { .memory_bytes = 64 << 20,
					   .pids = 7,
					   .cpu_quota_us = 50000 };
	struct vt_err err;
	AUTO_CLOSE int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(vt_cgroup_v2_limit(dir, top, &limits, &err), -ENOENT);
	assert_non_null(strstr(err.what, "memory.max"));
	/* swap and oom.group may be absent, pids.max may not */
	grow(top, (const struct file[]){ { "memory.max", "" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_v2_limit(dir, top, &limits, &err), -ENOENT);
	assert_non_null(strstr(err.what, "pids.max"));
	grow(top, (const struct file[]){ { "memory.max", "" },
					 { "memory.swap.max", "" },
					 { "memory.oom.group", "" },
					 { "pids.max", "" },
					 { "cpu.max", "" },
					 { NULL, NULL } });
	assert_int_equal(vt_cgroup_v2_limit(dir, top, &limits, &err), 0);
	assert_string_equal(content(top, "memory.max"), "67108864");
	assert_string_equal(content(top, "memory.swap.max"), "0");
	assert_string_equal(content(top, "memory.oom.group"), "1");
	assert_string_equal(content(top, "pids.max"), "7");
	assert_string_equal(content(top, "cpu.max"), "50000 100000");
	/* no limit, no write */
	limits = (struct vt_cgroup_limits){ .count_cpu = true };
	grow(top, (const struct file[]){ { "memory.max", "max\n" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_v2_limit(dir, top, &limits, &err), 0);
	assert_string_equal(content(top, "memory.max"), "max\n");
}

static void test_v2_read(void **state)
{
	const char *top = *state;
	struct vt_cgroup_usage usage = { .cpu_ns = 77 };
	struct vt_cgroup cgroup;
	struct vt_err err;

	vt_cgroup_init(&cgroup);
	cgroup.version = VT_CGROUP_V2;
	cgroup.count = 1;
	cgroup.memory = cgroup.cpuacct = 0;
	cgroup.dirs[0] = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	grow(top, (const struct file[]){ { "memory.current", "4096\n" },
					 { "memory.events", "low 9\noom 4\noom_kill 3\n"
							    "oom_group_kill 1\n" },
					 { NULL, NULL } });
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), -ENOENT);
	assert_non_null(strstr(err.what, "cpu.stat"));
	assert_int_equal(usage.cpu_ns, 77);
	grow(top, (const struct file[]){ { "cpu.stat", "usage_usec 1500\nuser_usec 900\n" },
					 { NULL, NULL } });
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_int_equal(usage.memory_bytes, 4096);
	assert_int_equal(usage.memory_peak_bytes, -1);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(usage.cpu_ns, 1500000);
	grow(top, (const struct file[]){ { "memory.peak", "8192\n" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_int_equal(usage.memory_peak_bytes, 8192);
	grow(top, (const struct file[]){ { "memory.current", "none\n" }, { NULL, NULL } });
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), -ENODATA);
	assert_int_equal(vt_cgroup_clone_fd(&cgroup), cgroup.dirs[0]);
	vt_fd_close(&cgroup.dirs[0]);
}

static int count_folders(const char *folder)
{
	struct stat st;

	assert_int_equal(stat(folder, &st), 0);
	return (int)st.st_nlink - 2;
}

static void test_sweep_knows_its_own(void **state)
{
	const char *top = *state;
	struct vt_cgroup_site site;

	vt_cgroup_site_init(&site);
	(void)snprintf(site.memory, sizeof(site.memory), "%s", top);
	(void)snprintf(site.cpu, sizeof(site.cpu), "%s", top);
	grow(top, (const struct file[]){ { "vitro-1.2/", NULL },
					 { "vitro-1/", NULL },
					 { "vitro-1.2x/", NULL },
					 { "vitro-.2/", NULL },
					 { "vitro-1./", NULL },
					 { VT_CGROUP_SUPERVISOR "/", NULL },
					 { "other/", NULL },
					 { "vitro-3.4", "a file\n" },
					 { NULL, NULL } });
	assert_int_equal(vt_cgroup_sweep(&site), 1);
	assert_int_equal(count_folders(top), 6);
}

static void test_empty_cgroup(void **state)
{
	struct vt_cgroup_site site;
	struct vt_cgroup_usage usage;
	struct vt_cgroup cgroup;
	struct vt_err err;

	(void)state;
	vt_cgroup_init(&cgroup);
	assert_int_equal(vt_cgroup_clone_fd(&cgroup), -1);
	assert_int_equal(vt_cgroup_join(&cgroup, &err), 0);
	assert_int_equal(vt_cgroup_read(&cgroup, &usage, &err), 0);
	assert_int_equal(usage.memory_peak_bytes, -1);
	assert_int_equal(usage.cpu_ns, -1);
	assert_int_equal(vt_cgroup_remove(&cgroup, &err), 0);
	vt_cgroup_site_init(&site);
	assert_int_equal(vt_cgroup_sweep(&site), 0);
	assert_int_equal(
		vt_cgroup_make(&site, &(struct vt_cgroup_limits){ .pids = 1 }, &cgroup, &err),
		-EOPNOTSUPP);
}

#define ON_A_TREE(test) cmocka_unit_test_setup_teardown(test, make_top, drop_top)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_are_bounded),
		cmocka_unit_test(test_own_place),
		cmocka_unit_test(test_own_place_that_cannot_be_followed),
		ON_A_TREE(test_find_v1_beside_an_empty_v2),
		ON_A_TREE(test_find_v1_by_link),
		ON_A_TREE(test_find_none),
		ON_A_TREE(test_find_v2_root),
		ON_A_TREE(test_find_v2_alone),
		ON_A_TREE(test_find_v2_with_others),
		ON_A_TREE(test_find_v2_unit),
		ON_A_TREE(test_find_v2_subgroup),
		ON_A_TREE(test_find_v2_threaded),
		ON_A_TREE(test_find_v2_below_the_root),
		ON_A_TREE(test_v2_prepare),
		ON_A_TREE(test_v2_prepare_below_the_root),
		ON_A_TREE(test_v2_step_aside),
		ON_A_TREE(test_v2_limit),
		ON_A_TREE(test_v2_read),
		ON_A_TREE(test_sweep_knows_its_own),
		cmocka_unit_test(test_empty_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
