/* SPDX-License-Identifier: Apache-2.0 */
#include "host/advice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* A sysctl's value; -1 where it does not exist or is no number. */
static long read_sysctl(const char *name)
{
	char path[128], text[32];
	char *end;

	(void)snprintf(path, sizeof(path), "/proc/sys/%s", name); /* names are short: fits */
	if (vt_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	long value = strtol(text, &end, 10);

	return end == text ? -1 : value;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The initial pid namespace has a fixed inode number, part of the kernel's interface. */
static bool in_first_pidns(void)
{
	const ino_t first = 0xEFFFFFFC;
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == first;
}

const char *vt_advice_container(void)
{
	static const struct {
		const char *mark, *name;
	} marks[] = {
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
		{ "/run/.containerenv", "Podman" },
		{ "/.dockerenv", "Docker" },
	};

	/* The marks alone prove nothing: they stay in an image that became a machine of its own. */
	if (in_first_pidns())
		return NULL;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (exists(marks[i].mark))
			return marks[i].name;
	return "a container";
}

static bool is_in(const char *name)
{
	const char *container = vt_advice_container();

	return container != NULL && strcmp(container, name) == 0;
}

/* Whether a filter that somebody else set is on this process. */
static bool is_filtered(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

/* In a chroot no mount is at "/", unless the chroot is a mount itself. */
static bool is_chrooted(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], place[8];
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, "%*d %*d %*s %*s %7s", place) == 1 && strcmp(place, "/") == 0;
	(void)fclose(file); /* only read from */
	return !found;
}

/* How to start the container so that its filter lets namespaces be made. */
static void advise_container_filter(char *buf, size_t size)
{
	if (is_in("Kubernetes"))
		(void)snprintf(
			buf, size,
			"Set seccompProfile: {type: Unconfined} and appArmorProfile: {type: "
			"Unconfined} in the container's securityContext, or give both profiles "
			"that allow clone, clone3, unshare, mount and the calls of its new API.");
	else
		(void)snprintf(
			buf, size,
			"A filter on this process forbids it. In a container, start that with "
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined, or "
			"with profiles that allow clone, clone3, unshare, mount and the calls of "
			"its new API; in a systemd service, look at RestrictNamespaces= and "
			"SystemCallFilter=.");
}

static void advise_apparmor(char *buf, size_t size)
{
	char exe[PATH_MAX] = "/usr/bin/vitro";
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len > 0)
		exe[len] = '\0';
	(void)snprintf(
		buf, size,
		"AppArmor takes the capabilities of user namespaces away here. For vitro alone: "
		"write 'abi <abi/4.0>, profile vitro %.256s flags=(unconfined) { userns, }' to "
		"/etc/apparmor.d/vitro and run: sudo apparmor_parser -r /etc/apparmor.d/vitro. "
		"For everyone: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
		exe);
}

/* Overflow ids: in a namespace that maps no id for us, the kernel makes no further one. */
static bool is_unmapped(const struct vt_host *host)
{
	const ino_t first = 0xEFFFFFFD; /* fixed, as the pid namespace's is */
	struct stat st;

	return (host->uid == 65534 || host->gid == 65534) && stat("/proc/self/ns/user", &st) == 0 &&
	       st.st_ino != first;
}

void vt_advice_userns(const struct vt_host *host, int num, char *buf, size_t size)
{
	bool ordinary = !host->privileged;

	if (read_sysctl("user/max_user_namespaces") == 0)
		(void)snprintf(buf, size,
			       "user.max_user_namespaces is 0. Allow them: sudo sysctl -w "
			       "user.max_user_namespaces=15000 (and in /etc/sysctl.d to keep it).");
	else if (num == ENOSPC || num == EUSERS)
		(void)snprintf(buf, size,
			       "A limit on their number or nesting is reached: raise "
			       "user.max_user_namespaces (now %ld), or run vitro less deep.",
			       read_sysctl("user/max_user_namespaces"));
	else if (ordinary && read_sysctl("kernel/unprivileged_userns_clone") == 0)
		(void)snprintf(
			buf, size,
			"kernel.unprivileged_userns_clone is 0. Allow them: sudo sysctl -w "
			"kernel.unprivileged_userns_clone=1 (and in /etc/sysctl.d to keep it).");
	else if (ordinary && (num == EPERM || num == EACCES) &&
		 read_sysctl("kernel/apparmor_restrict_unprivileged_userns") > 0)
		advise_apparmor(buf, size);
	else if (is_filtered())
		advise_container_filter(buf, size);
	else if (num == EPERM && is_unmapped(host))
		(void)snprintf(
			buf, size,
			"The user namespace around us maps no id for our user or group: map both "
			"(unshare --map-user=N --map-group=N).");
	else if (num == EPERM && is_chrooted())
		(void)snprintf(
			buf, size,
			"In a chroot the kernel makes no user namespaces: run vitro outside it, or "
			"enter the folder with pivot_root, as container tools do.");
	else if (num == EINVAL || num == ENOSYS)
		(void)snprintf(buf, size,
			       "This kernel is built without CONFIG_USER_NS: use one that "
			       "has it, as all distributions' do.");
	else
		(void)snprintf(buf, size,
			       "A security module (SELinux, AppArmor, ...) may forbid it: its log "
			       "says so: "
			       "sudo dmesg | grep -i denied");
}

void vt_advice_namespace(const char *sysctl, int num, char *buf, size_t size)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "user/max_%s_namespaces", sysctl); /* short: fits */
	if (num == ENOSPC)
		(void)snprintf(buf, size,
			       "user.max_%s_namespaces is %ld. Raise it: sudo sysctl -w "
			       "user.max_%s_namespaces=15000",
			       sysctl, read_sysctl(name), sysctl);
	else if (num == EINVAL)
		(void)snprintf(buf, size,
			       "This kernel is built without them: use one that has them, "
			       "as all distributions' do.");
	else if (is_filtered())
		advise_container_filter(buf, size);
	else
		buf[0] = '\0';
}

void vt_advice_proc(int num, char *buf, size_t size)
{
	if (num != EPERM)
		buf[0] = '\0';
	else if (is_in("Kubernetes"))
		(void)snprintf(buf, size,
			       "Set procMount: Unmasked (with hostUsers: false) in the "
			       "container's securityContext: a proc whose parts are covered "
			       "cannot be mounted anew inside.");
	else if (is_in("Podman"))
		(void)snprintf(buf, size,
			       "Start the container with --security-opt unmask=ALL: a proc "
			       "whose parts are covered cannot be mounted anew inside.");
	else
		(void)snprintf(buf, size,
			       "Parts of /proc are covered by other mounts (findmnt -R /proc "
			       "lists them), and then the kernel gives no new one. In Docker, "
			       "start the container with --security-opt "
			       "systempaths=unconfined; elsewhere, uncover them.");
}

void vt_advice_seccomp(int num, char *buf, size_t size)
{
	if (num == ENOSYS || num == EINVAL || num == EOPNOTSUPP)
		(void)snprintf(buf, size,
			       "This kernel is built without CONFIG_SECCOMP_FILTER: use one "
			       "that has it, as all distributions' do.");
	else
		advise_container_filter(buf, size);
}

void vt_advice_call(const char *kernel, int num, char *buf, size_t size)
{
	if (is_filtered())
		advise_container_filter(buf, size);
	else if (num == ENOSYS || num == EINVAL)
		(void)snprintf(buf, size, "It needs Linux %s or later.", kernel);
	else
		buf[0] = '\0';
}

void vt_advice_landlock(int num, char *buf, size_t size)
{
	if (num == EOPNOTSUPP)
		(void)snprintf(buf, size,
			       "It is built into this kernel but not turned on: add landlock "
			       "to the list in the kernel's lsm= parameter (cat "
			       "/sys/kernel/security/lsm shows it), and boot again.");
	else
		vt_advice_call("5.13, built with CONFIG_SECURITY_LANDLOCK", num, buf, size);
}

void vt_advice_cgroup(const struct vt_host *host, char *buf, size_t size)
{
	if (vt_advice_container() != NULL)
		(void)snprintf(buf, size,
			       "Give the container a cgroup tree of its own that it may "
			       "write to (Docker: --cgroupns=private and /sys/fs/cgroup "
			       "mounted rw; Podman: --cgroups=split).");
	else if (host->privileged)
		(void)snprintf(buf, size,
			       "Start vitro where it may make cgroups: systemd-run --scope -p "
			       "Delegate=yes vitro run ...; in a service: Delegate=yes, and "
			       "DelegateSubgroup= where vitro is not alone in it.");
	else if (exists("/sys/fs/cgroup/memory/tasks"))
		(void)snprintf(buf, size,
			       "This machine has cgroup v1, which gives nothing to ordinary users: "
			       "run vitro as root, or boot with v2 alone "
			       "(systemd.unified_cgroup_hierarchy=1).");
	else
		(void)snprintf(buf, size,
			       "Start vitro where it may make cgroups: systemd-run --user "
			       "--scope -p Delegate=yes vitro run ...; in a service: "
			       "Delegate=yes, and DelegateSubgroup= where vitro is not alone in "
			       "it.");
}
