/* SPDX-License-Identifier: Apache-2.0 */
/* One invented machine, as hosts see it that differ in what they can enforce. */
#pragma once

#include "plan/invented_test.h"

static const struct invented machine[] = {
	{ "/usr", S_IFDIR | 0755, 0, NULL },
	{ "/usr/bin", S_IFDIR | 0755, 0, NULL },
	{ "/usr/share", S_IFDIR | 0755, 0, NULL },
	{ "/bin", S_IFDIR | 0755, 0, "usr/bin" },
	{ "/lib", S_IFDIR | 0755, 0, "usr/lib" },
	{ "/etc", S_IFDIR | 0755, 0, NULL },
	{ "/etc/ld.so.cache", S_IFREG | 0644, 0, NULL },
	{ "/etc/hosts", S_IFREG | 0644, 0, NULL },
	{ "/etc/resolv.conf", S_IFREG | 0644, 0, NULL },
	{ "/etc/ssl/certs", S_IFDIR | 0755, 0, NULL },
	{ "/tmp", S_IFDIR | 01777, 0, NULL },
	{ "/proc", S_IFDIR | 0555, 0, NULL },
	{ "/dev", S_IFDIR | 0755, 0, NULL },
	{ "/dev/full", S_IFCHR | 0666, 0, NULL },
	{ "/dev/null", S_IFCHR | 0666, 0, NULL },
	{ "/dev/random", S_IFCHR | 0666, 0, NULL },
	{ "/dev/urandom", S_IFCHR | 0666, 0, NULL },
	{ "/dev/zero", S_IFCHR | 0666, 0, NULL },
	{ "/dev/shm/x", S_IFDIR | 0755, 1000, NULL },
	{ "/var/tmp/x", S_IFDIR | 0755, 1000, NULL },
	{ "/dev/sda", S_IFBLK | 0660, 0, NULL },
	{ "/srv", S_IFDIR | 0755, 0, NULL },
	{ "/srv/data", S_IFDIR | 0755, 1234, NULL },
	{ "/srv/data/out", S_IFDIR | 0755, 1234, NULL },
	{ "/srv/data/note.txt", S_IFREG | 0644, 1234, NULL },
	{ "/srv/socket", S_IFSOCK | 0666, 0, NULL },
	{ "/srv/secret", S_IFREG | 0600, 1234, NULL },
	{ "/vault", S_IFDIR | 0700, 0, NULL },
	{ "/vault/open", S_IFDIR | 0755, 0, NULL },
	{ "/home/ann/ws", S_IFDIR | 0755, 1000, NULL },
	{ "/home/ann/to-etc", S_IFDIR | 0755, 1000, "/etc" },
	{ "/home/ann/to-proc", S_IFDIR | 0555, 1000, "/proc" },
	{ "/home/ann/to-data", S_IFDIR | 0755, 1000, "/srv/data" },
	{ "/home/ann/ws/out", S_IFDIR | 0755, 1000, "/srv/data" },
	{ "/home/ann/ws/socket", S_IFSOCK | 0666, 1000, "/srv/socket" },
};

static inline int list(const struct vt_host *host, const char *path,
		void (*each)(void *arg, const char *name), void *arg)
{
	(void)host;
	if (strcmp(path, "/") != 0)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		if (!strchr(machine[i].path + 1, '/'))
			each(arg, machine[i].path + 1);
	return 0;
}

static inline int layer(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer *ret_layer)
{
	(void)path;
	(void)seen;
	/* The oldest host here has no overlays for ordinary users either. */
	*ret_layer = (struct vt_layer){
		.overlay = { host->landlock_abi ? 0 : EPERM, "an overlay" },
		.upper = true,
	};
	return 0;
}

static inline int can_work(const struct vt_host *host, const char *path, const char *folder,
		    const char *base, struct vt_path *ret_base)
{
	(void)path;
	(void)folder;
	return host->look(host, base, ret_base);
}

#define INVENTED                                                                          \
	.context = MACHINE(machine), .cpus = 4, .look = look, .step = step, .list = list, \
	.entries = entries, .layer = layer, .can_work = can_work
#define WORKS                \
	{                    \
		0, "a trial" \
	}
#define OF_A_USER  INVENTED, .uid = 1000, .gid = 1000
#define OF_ROOT    INVENTED, .privileged = true
#define SOME_IDS   .id_base = 0x70000000, .id_count = 4194304
#define NO_CGROUPS .cgroup = { .why = "no cgroups" }
#define NO_USERNS  .userns = { EPERM, "clone(CLONE_NEWUSER)" }, .proc = true, .scratch = "/tmp"
/* What a machine of today gives to everyone. */
#define MODERN .userns = WORKS, .seccomp = WORKS, .notify = WORKS, .landlock_abi = 7

static const struct vt_host root_v1 = { OF_ROOT, SOME_IDS, MODERN,
					.cgroup = { .version = VT_CGROUP_V1,
						    .memory = "/cg/memory",
						    .pids = "/cg/pids",
						    .cpu = "/cg/cpu",
						    .cpuacct = "/cg/cpu" } };
static const struct vt_host root_without_ids = { OF_ROOT, MODERN, NO_CGROUPS };
static const struct vt_host user_v2 = { OF_A_USER, MODERN,
					.cgroup = { .version = VT_CGROUP_V2,
						    .memory = "/cg",
						    .pids = "/cg",
						    .cpu = "/cg",
						    .cpuacct = "/cg" } };
static const struct vt_host user_plain = {
	OF_A_USER, MODERN, .supplementary_groups = 2,
	.cgroup = { .cpu_why = "no cgroup is delegated to this user" }
};
static const struct vt_host user_old = { OF_A_USER, NO_CGROUPS, .userns = WORKS, .seccomp = WORKS,
					 .notify = WORKS, .landlock_err = EOPNOTSUPP };
static const struct vt_host poor_user = { OF_A_USER, MODERN, NO_CGROUPS, .most_open_files = 512,
					  .most_file_kb = 100 };
static const struct vt_host user_listened = {
	OF_A_USER, NO_CGROUPS, .userns = WORKS, .seccomp = WORKS, .landlock_abi = 7,
	.notify = { EBUSY, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)" }
};
static const struct vt_host masked_proc = { OF_A_USER, NO_CGROUPS, .userns = WORKS,
					    .own_proc = { EPERM, "mount a proc" }, .proc = true,
					    .seccomp = WORKS, .landlock_abi = 7 };
static const struct vt_host no_seccomp = { OF_A_USER, NO_CGROUPS, .userns = WORKS,
					   .seccomp = { ENOSYS, "seccomp()" }, .landlock_abi = 7 };
static const struct vt_host bare_user = { OF_A_USER, NO_CGROUPS, NO_USERNS, .tasks = 12,
					  .seccomp = WORKS, .landlock_abi = 7 };
/* Ubuntu 24.04: AppArmor, and a Landlock that does not scope signals. */
static const struct vt_host bare_user_old = {
	OF_A_USER, NO_CGROUPS, NO_USERNS, .tasks = 12, .seccomp = WORKS, .landlock_abi = 4,
	.modes = { EBUSY, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)" }
};
/* Docker: root with a few capabilities. */
static const struct vt_host bare_root_old = { INVENTED, SOME_IDS, NO_CGROUPS, NO_USERNS,
					      .can_change_ids = true, .seccomp = WORKS,
					      .landlock_abi = 4 };
static const struct vt_host bare_root_powerless = { INVENTED, NO_CGROUPS, NO_USERNS,
						    .seccomp = WORKS, .landlock_abi = 7 };
static const struct vt_host bare_nothing = { OF_A_USER, NO_CGROUPS, NO_USERNS,
					     .seccomp = { EPERM, "seccomp()" },
					     .landlock_err = ENOSYS };
static const struct vt_host bare_blind = {
	OF_A_USER, NO_CGROUPS, .userns = { ENOENT, "map ids through /proc/self/uid_map" },
	.scratch = "/tmp", .seccomp = WORKS, .landlock_abi = 4
};
static const struct vt_host bare_homeless = { OF_A_USER, NO_CGROUPS,
					      .userns = { EPERM, "clone(CLONE_NEWUSER)" },
					      .proc = true, .seccomp = WORKS, .notify = WORKS,
					      .landlock_abi = 7 };
