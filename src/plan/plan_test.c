/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies × invented hosts → plan text and JSON, compared with test/golden. VITRO_GOLDEN=update
 * writes the texts anew, to be read before they are committed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "plan/plan.h"

struct invented_path {
	const char *path;
	mode_t mode;
	uid_t uid;
	const char *link; /* where it leads, if it is a link */
};

static const struct invented_path machine[] = {
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
	{ "/home/ann/to-etc", S_IFDIR | 0755, 0, "/etc" },
	{ "/home/ann/to-proc", S_IFDIR | 0555, 0, "/proc" },
	{ "/home/ann/to-data", S_IFDIR | 0755, 1234, "/srv/data" },
	{ "/home/ann/ws/out", S_IFDIR | 0755, 1234, "/srv/data" },
	{ "/home/ann/ws/socket", S_IFSOCK | 0666, 0, "/srv/socket" },
};

static const struct invented_path *find(const char *path)
{
	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		if (strcmp(machine[i].path, path) == 0)
			return &machine[i];
	return NULL;
}

static int look(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	const struct invented_path *found = find(path);

	if (!found)
		return -ENOENT;
	*ret_path = (struct vt_path){
		.mode = found->mode,
		.uid = found->uid,
		.gid = found->uid,
		.dev = 1,
		.ino = (uint64_t)(found - machine) + 1,
		.idmap = host->privileged,
		.link = found->link != NULL,
	};
	return 0;
}

static int read_link(const struct vt_host *host, const char *path, char *buf, size_t size)
{
	const struct invented_path *found = find(path);

	(void)host;
	if (!found || !found->link)
		return found ? -EINVAL : -ENOENT;
	(void)snprintf(buf, size, "%s", found->link);
	return 0;
}

/* Of this machine's links, those in a home are its user's. */
static int link_owner(const struct vt_host *host, const char *path, uid_t *ret_owner)
{
	(void)host;
	*ret_owner = strncmp(path, "/home/ann/", 10) == 0 ? 1000 : 0;
	return 0;
}

static int resolve(const struct vt_host *host, const char *path, char *buf, size_t size)
{
	const struct invented_path *found = find(path);

	(void)host;
	/* Links of this machine lead from "/". */
	if (found && found->link)
		(void)snprintf(buf, size, "/%s", found->link + (*found->link == '/'));
	else
		(void)snprintf(buf, size, "%s", path);
	return 0;
}

static int list(const struct vt_host *host, const char *path,
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

static int layer(const struct vt_host *host, const char *path, const struct vt_path *seen,
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

static int can_work(const struct vt_host *host, const char *path, const char *folder,
		    const char *base, struct vt_path *ret_base)
{
	(void)path;
	(void)folder;
	return host->look(host, base, ret_base);
}

#define INVENTED                                                                           \
	.cpus = 4, .look = look, .read_link = read_link, .resolve = resolve, .list = list, \
	.layer = layer, .can_work = can_work, .link_owner = link_owner
#define WORKS                \
	{                    \
		0, "a trial" \
	}

static const struct vt_host root_v1 = {
	.privileged = true,
	.id_base = 0x70000000,
	.id_count = 4194304,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .version = VT_CGROUP_V1,
		    .memory = "/cg/memory",
		    .pids = "/cg/pids",
		    .cpu = "/cg/cpu",
		    .cpuacct = "/cg/cpu" },
};
static const struct vt_host user_v2 = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .version = VT_CGROUP_V2,
		    .memory = "/cg",
		    .pids = "/cg",
		    .cpu = "/cg",
		    .cpuacct = "/cg" },
};
static const struct vt_host user_plain = {
	.uid = 1000,
	.gid = 1000,
	.supplementary_groups = 2,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .version = VT_CGROUP_NONE, .cpu_why = "no cgroup is delegated to this user" },
};
static const struct vt_host user_old = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 0,
	.landlock_err = EOPNOTSUPP,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
#define NO_USERNS .userns = { EPERM, "clone(CLONE_NEWUSER)" }, .proc = true, .scratch = "/tmp"
static const struct vt_host bare_user = {
	.uid = 1000,
	.gid = 1000,
	NO_USERNS,
	.tasks = 12,
	.seccomp = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
/* Ubuntu 24.04: AppArmor, and a Landlock that does not scope signals. */
static const struct vt_host bare_user_old = {
	.uid = 1000,
	.gid = 1000,
	NO_USERNS,
	.tasks = 12,
	.seccomp = WORKS,
	.modes = { EBUSY, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)" },
	.landlock_abi = 4,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
/* Docker: root with a few capabilities. */
static const struct vt_host bare_root_old = {
	.can_change_ids = true,
	.id_base = 0x70000000,
	.id_count = 4194304,
	NO_USERNS,
	.seccomp = WORKS,
	.landlock_abi = 4,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host bare_root_powerless = {
	NO_USERNS, .seccomp = WORKS, .landlock_abi = 7, INVENTED, .cgroup = { .why = "no cgroups" },
};
static const struct vt_host bare_nothing = {
	.uid = 1000,
	.gid = 1000,
	NO_USERNS,
	.seccomp = { EPERM, "seccomp()" },
	.landlock_err = ENOSYS,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host bare_blind = {
	.uid = 1000,
	.gid = 1000,
	.userns = { ENOENT, "map ids through /proc/self/uid_map" },
	.scratch = "/tmp",
	.seccomp = WORKS,
	.landlock_abi = 4,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host bare_homeless = {
	.uid = 1000,
	.gid = 1000,
	.userns = { EPERM, "clone(CLONE_NEWUSER)" },
	.proc = true,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host user_listened = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = { EBUSY, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)" },
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host masked_proc = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.own_proc = { EPERM, "mount a proc" },
	.proc = true,
	.seccomp = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host no_seccomp = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.seccomp = { ENOSYS, "seccomp()" },
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host poor_user = {
	.uid = 1000,
	.gid = 1000,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	.most_open_files = 512,
	.most_file_kb = 100,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};
static const struct vt_host root_without_ids = {
	.privileged = true,
	.userns = WORKS,
	.seccomp = WORKS,
	.notify = WORKS,
	.landlock_abi = 7,
	INVENTED,
	.cgroup = { .why = "no cgroups" },
};

static char given_lang[] = "LANG=C.UTF-8", given_secret[] = "SECRET=1",
	    given_path[] = "PATH=/opt/bin";
static char *environment[] = { given_lang, given_secret, given_path, NULL };

static struct vt_policy *read_policy(const char *json)
{
	struct vt_policy *policy;
	struct vt_err err;

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	if (vt_policy_load_text(policy, json, strlen(json), "/home/ann", "p.json", &err) < 0)
		fail_msg("%s", err.what);
	return policy;
}

/* Plans the policy for the host: its text, or the refusal. */
static char *plan_text(const char *json, const struct vt_host *host)
{
	const struct vt_request request = { .environ = environment };
	struct vt_policy *policy = read_policy(json);
	struct vt_plan *plan;
	struct vt_err err;
	struct vt_str text;

	vt_str_init(&text);
	if (vt_plan_make(policy, host, &request, &plan, &err) < 0) {
		vt_str_addf(&text, "%s\n", err.what);
	} else {
		vt_plan_explain(plan, &text);
		vt_plan_free(plan);
	}
	vt_policy_free(policy);
	assert_true(vt_str_ok(&text));
	return text.text;
}

/* The same as JSON, with the plan of best effort beside a refusal. */
static char *plan_json(const char *json, const struct vt_host *host)
{
	const struct vt_request request = { .environ = environment };
	struct vt_policy *policy = read_policy(json);
	enum vt_require asked = policy->require;
	struct vt_plan *plan;
	struct vt_err refusal, err;
	struct vt_str text;
	int r = vt_plan_foresee(policy, host, &request, &plan, &refusal);

	vt_str_init(&text);
	assert_int_equal(
		vt_plan_explain_json(plan, asked, r < 0 ? refusal.what : NULL, &text, &err), 0);
	vt_plan_free(plan);
	vt_policy_free(policy);
	assert_true(vt_str_ok(&text));
	return text.text;
}

static const struct golden {
	const char *name;
	const struct vt_host *host;
	const char *policy;
} goldens[] = {
	{ "default-root", &root_v1, "{}" },
	{ "default-user-v2", &user_v2, "{}" },
	{ "tool-host-limits", &user_v2, "{\"limits\": {\"queue_ms\": 5, \"result_mb\": 1}}" },
	{ "default-user-plain", &user_plain, "{}" },
	{ "default-user-old", &user_old, "{}" },
	{ "bare-user", &bare_user, "{}" },
	{ "bare-user-grants", &bare_user,
	  "{\"files\": {\"read\": [\"to-data\"], \"write\": [\"/home/ann/ws\"], \"cwd\": "
	  "\"/home/ann/ws\"}, \"network\": \"host\"}" },
	{ "bare-user-place-refused", &bare_user, "{\"files\": {\"write\": [\"/tmp\"]}}" },
	{ "bare-user-place-best-effort", &bare_user,
	  "{\"files\": {\"write\": [\"/tmp\"]}, \"require\": \"best-effort\"}" },
	{ "bare-user-place-read", &bare_user, "{\"files\": {\"read\": [\"/tmp\"]}}" },
	{ "bare-root-place", &bare_root_old, "{\"files\": {\"write\": [\"/tmp\"]}}" },
	{ "bare-user-strict-refused", &bare_user, "{\"require\": \"strict\"}" },
	{ "bare-user-old-refused", &bare_user_old, "{}" },
	{ "bare-user-old-best-effort", &bare_user_old, "{\"require\": \"best-effort\"}" },
	{ "bare-root-old", &bare_root_old, "{}" },
	{ "bare-root-grants", &bare_root_old,
	  "{\"files\": {\"read\": [\"/home/ann/ws\"], \"write\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data\"}}" },
	{ "bare-root-closed-refused", &bare_root_old,
	  "{\"files\": {\"read\": [\"/vault/open\"]}}" },
	{ "bare-root-secret-refused", &bare_root_old,
	  "{\"files\": {\"read\": [\"/srv/secret\"]}}" },
	{ "bare-root-powerless-refused", &bare_root_powerless, "{\"require\": \"best-effort\"}" },
	{ "bare-nothing-refused", &bare_nothing, "{}" },
	{ "bare-nothing-best-effort", &bare_nothing, "{\"require\": \"best-effort\"}" },
	{ "bare-nothing-write-refused", &bare_nothing,
	  "{\"require\": \"best-effort\", \"files\": {\"write\": [\"/srv/data\"]}}" },
	{ "bare-blind-refused", &bare_blind, "{\"require\": \"best-effort\"}" },
	{ "bare-homeless-refused", &bare_homeless, "{\"require\": \"best-effort\"}" },
	{ "bare-loopback-refused", &bare_user, "{\"network\": \"loopback\"}" },
	{ "bare-moved-refused", &bare_user,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/s\"}]}}" },
	{ "bare-deny-refused", &bare_user,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data\"]}}" },
	{ "masked-proc", &masked_proc, "{}" },
	{ "no-seccomp-refused", &no_seccomp, "{}" },
	{ "no-seccomp-best-effort", &no_seccomp, "{\"require\": \"best-effort\"}" },
	{ "no-seccomp-host-network", &no_seccomp,
	  "{\"require\": \"best-effort\", \"network\": \"host\", "
	  "\"files\": {\"read\": [\"/srv/data\"]}}" },
	{ "no-seccomp-sockets-refused", &no_seccomp,
	  "{\"require\": \"best-effort\", \"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "no-seccomp-write-refused", &no_seccomp,
	  "{\"require\": \"best-effort\", \"files\": {\"write\": [\"/srv/data\"]}}" },
	{ "default-root-without-ids", &root_without_ids, "{}" },
	{ "grants-root", &root_v1,
	  "{\"files\": {\"read\": [\"/srv/data\", \"/etc\", {\"from\": \"ws\", \"to\": \"/in\"}],"
	  " \"write\": [\"/srv/data/out\"], \"cwd\": \"/in\"}}" },
	{ "grants-nested-user", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data/note.txt\", \"/srv\"], \"write\": "
	  "[\"/srv/data\"]}}" },
	{ "whole-root-user", &user_plain, "{\"files\": {\"read\": [\"/\"]}}" },
	{ "network-host-user", &user_v2, "{\"network\": \"host\"}" },
	{ "network-host-old", &user_old, "{\"network\": \"host\"}" },
	{ "network-loopback", &user_v2, "{\"network\": \"loopback\"}" },
	{ "network-loopback-v1", &root_v1, "{\"network\": \"loopback\"}" },
	{ "limits-root", &root_v1,
	  "{\"limits\": {\"cpus\": 0.5, \"cpu_ms\": 1500, \"grace_ms\": 100, \"memory_mb\": 64,"
	  " \"tmp_mb\": 8}, \"env\": {\"pass\": [\"*\"], \"set\": {\"HOME\": \"/in\"}}}" },
	{ "limits-cpus-refused", &user_plain, "{\"limits\": {\"cpus\": 2}}" },
	{ "limits-cpus-best-effort", &user_plain,
	  "{\"limits\": {\"cpus\": 2}, \"require\": \"best-effort\"}" },
	{ "strict-refused", &user_plain, "{\"extends\": \"strict\"}" },
	{ "strict-user-v2", &user_v2, "{\"extends\": \"strict\"}" },
	{ "deny-outside", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/etc/x\"]}}" },
	{ "deny-inside", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data/out\"]}}" },
	{ "deny-inside-old-refused", &user_old,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data/out\"]}}" },
	{ "deny-write-root", &root_v1,
	  "{\"files\": {\"write\": [\"/srv/data\"], \"deny\": [\"/srv/data/.env\", "
	  "\"/srv/data/new/key\"]}}" },
	{ "deny-moved", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/mnt/s\"}], \"deny\": "
	  "[\"/srv/data\"]}}" },
	{ "deny-unordered", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/secret\", "
	  "\"/srv/data/note.txt\"]}}" },
	{ "deny-around", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/srv\"]}}" },
	{ "deny-runtime", &user_v2, "{\"files\": {\"deny\": [\"/usr/share/doc\"]}}" },
	{ "deny-link", &user_v2, "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"to-data\"]}}" },
	{ "link-planted-refused", &user_v2,
	  "{\"files\": {\"write\": [\"ws\"], \"read\": [\"ws/out\"]}}" },
	{ "link-planted-bare-refused", &bare_user,
	  "{\"files\": {\"write\": [\"ws\"], \"read\": [\"ws/out\"]}}" },
	{ "link-planted-moved-refused", &root_v1,
	  "{\"files\": {\"write\": [\"ws\", {\"from\": \"ws/out\", \"to\": \"/x\"}]}}" },
	{ "link-planted-socket-refused", &user_v2,
	  "{\"files\": {\"write\": [\"ws\"], \"sockets\": [\"ws/socket\"]}}" },
	{ "link-planted-before", &user_v2,
	  "{\"files\": {\"read\": [\"ws/out\"], \"sockets\": [\"ws/socket\"]}}" },
	{ "link-to-etc-root", &root_v1, "{\"files\": {\"read\": [\"to-etc\"]}}" },
	{ "link-to-proc-refused", &root_v1, "{\"files\": {\"read\": [\"to-proc\"]}}" },
	{ "missing-refused", &user_v2, "{\"files\": {\"read\": [\"/nowhere\"]}}" },
	{ "socket-refused", &user_v2, "{\"files\": {\"read\": [\"/srv/socket\"]}}" },
	{ "sockets-alone", &user_v2, "{\"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "sockets-and-grants-root", &root_v1,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"read\": [\"/srv\"]}}" },
	{ "sockets-network-host", &user_v2,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"read\": [\"/srv/data\"]}, "
	  "\"network\": \"host\"}" },
	{ "sockets-listened-alone", &user_listened,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"]}}" },
	{ "sockets-listened-refused", &user_listened,
	  "{\"files\": {\"sockets\": [\"/srv/socket\"], \"write\": [\"/srv/data\"]}}" },
	{ "grants-listened", &user_listened, "{\"files\": {\"read\": [\"/srv/data\"]}}" },
	{ "grants-network-host", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"]}, \"network\": \"host\"}" },
	{ "sockets-missing-refused", &user_v2, "{\"files\": {\"sockets\": [\"/srv/nowhere\"]}}" },
	{ "sockets-file-refused", &user_v2,
	  "{\"files\": {\"sockets\": [\"/srv/data/note.txt\"]}}" },
	{ "sockets-folder-refused", &root_v1, "{\"files\": {\"sockets\": [\"/srv\"]}}" },
	{ "sockets-device-refused", &root_v1, "{\"files\": {\"sockets\": [\"/dev/null\"]}}" },
	{ "device-refused", &root_v1, "{\"files\": {\"write\": [\"/dev/sda\"]}}" },
	{ "moved-device-refused", &root_v1,
	  "{\"files\": {\"write\": [{\"from\": \"/dev/sda\", \"to\": \"/disk\"}]}}" },
	{ "proc-refused", &user_v2, "{\"files\": {\"read\": [\"/proc\"]}}" },
	{ "moved-proc-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/proc\", \"to\": \"/p\"}]}}" },
	{ "moved-root-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/\", \"to\": \"/h\"}]}}" },
	{ "write-root-refused", &root_v1, "{\"files\": {\"write\": [\"/\"]}}" },
	{ "two-at-one-place-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv\", \"to\": \"/x\"},"
	  " {\"from\": \"/etc\", \"to\": \"/x\"}]}}" },
	{ "no-place-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\", {\"from\": \"/etc\", \"to\": \"/srv/new\"}]}}" },
	{ "cwd-file-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"cwd\": \"/srv/data/note.txt\"}}" },
	{ "cwd-denied-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv/data\"], \"deny\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data\"}}" },
	{ "cwd-closed-refused", &user_v2,
	  "{\"files\": {\"read\": [\"/srv\"], \"deny\": [\"/srv/data\"], \"cwd\": "
	  "\"/srv/data/out\"}}" },
	{ "write-missing-refused", &user_v2, "{\"files\": {\"write\": [\"/nowhere\"]}}" },
	{ "cwd-own-refused", &user_v2, "{\"files\": {\"cwd\": \"/dev/shm/x\"}}" },
	{ "cwd-moved-refused", &user_v2,
	  "{\"files\": {\"read\": [{\"from\": \"/srv/data\", \"to\": \"/project\"}], \"cwd\": "
	  "\"/srv/data/out\"}}" },
	{ "cwd-var-tmp-refused", &user_v2, "{\"files\": {\"cwd\": \"/var/tmp/x\"}}" },
	{ "cwd-var-tmp", &user_v2,
	  "{\"files\": {\"read\": [\"/var/tmp/x\"], \"cwd\": \"/var/tmp/x\"}}" },
	{ "cwd-behind-link", &user_v2, "{\"files\": {\"cwd\": \"/bin/x\"}}" },
	{ "colon-refused", &user_v2, "{\"files\": {\"read\": [\"/srv/data:/project\"]}}" },
	{ "cwd-refused", &user_v2, "{\"files\": {\"cwd\": \"/srv/data\"}}" },
	{ "lower-limits", &poor_user, "{}" },
	{ "lower-limits-asked", &poor_user,
	  "{\"limits\": {\"open_files\": 1048576, \"file_mb\": 1}}" },
};

static char *read_whole(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 65536);

	assert_non_null(text);
	if (file) {
		assert_true(fread(text, 1, 65535, file) < 65535);
		(void)fclose(file);
	}
	return text;
}

static void check_file(const char *name, const char *ending, const char *text)
{
	const char *folder = getenv("VITRO_TEST_DIR");
	const char *mode = getenv("VITRO_GOLDEN");
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/golden/%s.%s", folder ? folder : TEST_DIR, name,
		       ending);
	if (mode && strcmp(mode, "update") == 0) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		assert_true(fputs(text, file) >= 0);
		assert_int_equal(fclose(file), 0);
	}
	char *wanted = read_whole(path);

	assert_string_equal(text, wanted);
	free(wanted);
}

static void check_golden(void **state)
{
	const struct golden *golden = *state;
	char *text = plan_text(golden->policy, golden->host);

	check_file(golden->name, "txt", text);
	free(text);
}

/* Between them they have all that a plan tells as JSON, and refusals with and without a plan. */
static void check_golden_json(void **state)
{
	static const char *const names[] = {
		"grants-root",         "bare-user-old-refused", "limits-root",
		"sockets-alone",       "deny-write-root",       "lower-limits-asked",
		"limits-cpus-refused", "missing-refused",       "cwd-refused",
		"no-seccomp-refused",  "bare-blind-refused",
	};
	size_t seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			if (strcmp(goldens[i].name, names[n]) != 0)
				continue;
			char *text = plan_json(goldens[i].policy, goldens[i].host);

			check_file(names[n], "json", text);
			free(text);
			seen++;
		}
	}
	assert_int_equal(seen, sizeof(names) / sizeof(names[0]));
}

/* What the command brings along is what the search has seen, or there is no plan. */
static void test_replaced(void **state)
{
	static char name[] = "x", *argv[] = { name, NULL }, *none[] = { NULL };
	struct vt_need need = { "/srv/data", 1, (uint64_t)(find("/srv/data") - machine) + 1 };
	const struct vt_command command = { "/srv/data/x", &need, 1, NULL, 0 };
	const struct vt_request request = { &command, argv, none };
	struct vt_policy *policy;
	struct vt_plan *plan;
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), 0);
	vt_plan_free(plan);
	/* Another file by that name, and a link that leads elsewhere by now. */
	need.ino++;
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), -ESTALE);
	assert_non_null(strstr(err.what, "'/srv/data': replaced while it was being looked at"));
	need = (struct vt_need){ "/home/ann/to-data", 1, need.ino - 1 };
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), 0);
	vt_plan_free(plan);
	need.path = "/home/ann/to-etc";
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), -ESTALE);
	vt_policy_free(policy);
}

/* What each cell of a pool has for itself, where it is bare, has its place in the plan. */
static void test_pooled_bare(void **state)
{
	static const char scratch[] = "/tmp/vitro-pool-000000000000";
	const struct vt_request request = { .pooled = true, .cells = 100, .name = "pool" };
	struct vt_policy *policy;
	struct vt_plan *plan;
	struct vt_err err;
	size_t named = 0;

	(void)state;
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_plan_make(policy, &bare_user, &request, &plan, &err), 0);
	assert_true(plan->bare && plan->pooled && plan->cwd_private);
	assert_string_equal(plan->scratch, scratch);
	for (char **variable = plan->envp; *variable; variable++)
		named += strcmp(strchr(*variable, '=') + 1, scratch) == 0;
	assert_int_equal(named, 2);
	assert_int_equal(plan->rlimits[0].resource, RLIMIT_NPROC);
	assert_int_equal(plan->rlimits[0].limit.rlim_cur, plan->pids + 1 + bare_user.tasks + 200);
	assert_non_null(strstr(plan->holdings[VT_PROPERTY_PIDS].note, "the pool's other cells"));
	assert_string_equal(plan->holdings[VT_PROPERTY_PROCESSES].mechanism, "landlock-scope");
	vt_plan_free(plan);
	/* With an id of its own, others do not count. */
	assert_int_equal(vt_plan_make(policy, &bare_root_old, &request, &plan, &err), 0);
	assert_int_equal(plan->rlimits[0].limit.rlim_cur, plan->pids + 1);
	vt_plan_free(plan);
	vt_policy_free(policy);
}

/* Whoever had more than unix sockets in it, or could be reached in it by the next, leaves it to
 * none. */
static void test_kept_networks(void **state)
{
	static const struct {
		const struct vt_host *host;
		const char *network;
		bool pooled, kept;
	} cases[] = {
		{ &user_v2, "none", true, true },   { &user_v2, "none", false, false },
		{ &user_v2, "host", true, false },  { &user_v2, "loopback", true, false },
		{ &user_old, "none", true, false }, { &bare_user, "none", true, false },
	};
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vt_request request = { .pooled = cases[i].pooled,
						    .cells = 4,
						    .name = "pool" };
		struct vt_policy *policy;
		struct vt_plan *plan;

		assert_int_equal(vt_policy_new(&policy, &err), 0);
		assert_int_equal(
			vt_policy_set(policy, "network", cases[i].network, NULL, "-", &err), 0);
		assert_int_equal(vt_plan_make(policy, cases[i].host, &request, &plan, &err), 0);
		assert_int_equal(plan->keeps_networks, cases[i].kept);
		vt_plan_free(plan);
		vt_policy_free(policy);
	}
}

int main(void)
{
	enum { COUNT = sizeof(goldens) / sizeof(goldens[0]) };
	struct CMUnitTest tests[COUNT + 4] = {
		[COUNT] = cmocka_unit_test(test_replaced),
		[COUNT + 1] = cmocka_unit_test(test_pooled_bare),
		[COUNT + 2] = cmocka_unit_test(test_kept_networks),
		[COUNT + 3] = cmocka_unit_test(check_golden_json),
	};

	for (size_t i = 0; i < COUNT; i++)
		tests[i] = (struct CMUnitTest){
			.name = goldens[i].name,
			.test_func = check_golden,
			.initial_state = (void *)&goldens[i],
		};
	return _cmocka_run_group_tests("plan", tests, COUNT + 4, NULL, NULL);
}
