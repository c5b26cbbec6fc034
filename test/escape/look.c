/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cell could learn or change without opening a file: names, sizes and modes, the marks of
 * mounts, the machine's names. Landlock does not cover these, so other layers must.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int see(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return denied(errno, "stat %s", path);
	return reached("%s has %ld bytes", path, (long)st.st_size);
}

static int see_dotdot(int argc, char **argv)
{
	(void)argc;
	return see(join("../../../../../../../../..", argv[1]));
}

static int see_leaked_cwd(int argc, char **argv)
{
	(void)argc;
	return see(argv[1]);
}

static int see_init(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return see("/proc/1");
}

/* argv: the host's name */
static int see_hostname(int argc, char **argv)
{
	(void)argc;
	char name[256] = "";
	if (gethostname(name, sizeof(name) - 1) < 0)
		return broken("gethostname");
	return strcmp(name, argv[1]) == 0 ? reached("this is %s", name)
					  : denied(0, "this is %s", name);
}

/* Calls look(line) for each line of a file; stops where it says so. -1: the file cannot be read. */
static int each_line(const char *path, int (*look)(char *line, const char *word), const char *word)
{
	char line[4096];
	int found = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	while (!found && fgets(line, sizeof(line), file))
		found = look(line, word);
	fclose(file);
	return found;
}

static int is_below_root(char *line, const char *word)
{
	(void)word;
	const char *path = strrchr(line, ':');
	return path && strcmp(path, ":/\n") != 0;
}

static int see_cgroup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int found = each_line("/proc/self/cgroup", is_below_root, NULL);
	if (found < 0)
		return denied(errno, "read /proc/self/cgroup");
	return found ? reached("its place in the host's cgroups") : denied(0, "each path is /");
}

static int has_word(char *line, const char *word)
{
	return strstr(line, word) != NULL;
}

/* argv: the name of a socket of the host's */
static int see_sockets(int argc, char **argv)
{
	(void)argc;
	int found = each_line("/proc/net/unix", has_word, argv[1]);
	if (found < 0)
		return denied(errno, "read /proc/net/unix");
	return found ? reached("sees the socket %s", argv[1]) : denied(0, "it is not listed");
}

/* argv: the key of a SysV segment of the host's, as the list has it */
static int see_segments(int argc, char **argv)
{
	(void)argc;
	int found = each_line("/proc/sysvipc/shm", has_word, argv[1]);
	if (found < 0)
		return denied(errno, "read /proc/sysvipc/shm");
	return found ? reached("sees segment %s", argv[1]) : denied(0, "it is not listed");
}

/* The options of a mount are the sixth word of its line, its place the fifth. */
static int lacks_option(char *line, const char *option)
{
	char place[2048], options[1024];
	if (sscanf(line, "%*s %*s %*s %*s %2047s %1023s", place, options) != 2)
		return 0;
	if (strstr(options, option))
		return 0;
	/* The device nodes: each a mount of that one file. */
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom" };
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (strcmp(option, "nodev") == 0 && strcmp(place, nodes[i]) == 0)
			return 0;
	return 1;
}

static int find_mount_without(const char *option)
{
	int found = each_line("/proc/self/mountinfo", lacks_option, option);
	if (found < 0)
		return broken("read /proc/self/mountinfo");
	return found ? reached("a mount is not %s", option) : denied(0, "all are %s", option);
}

static int find_setuid_mount(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return find_mount_without("nosuid");
}

static int find_device_mount(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return find_mount_without("nodev");
}

/* argv: a device node in a granted folder, the memory device's /dev/null */
static int open_node(int argc, char **argv)
{
	(void)argc;
	struct stat st;
	if (stat(argv[1], &st) < 0 || !S_ISCHR(st.st_mode))
		return broken("%s is no device", argv[1]);
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open %s", argv[1]);
	close(fd);
	return reached("%s opens", argv[1]);
}

/* Asks the driver behind a device that may be read: harmless, and as much as any other request. */
static int drive_device(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int count, fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return broken("open /dev/urandom");
	if (ioctl(fd, RNDGETENTCNT, &count) < 0)
		return denied(errno, "ioctl");
	return reached("the driver answers");
}

/* argv: a prefix of the places to try: "/" for the root itself */
static int change_root_mode(int argc, char **argv)
{
	static const char *const places[] = { "", "etc", "dev", "run", "var", "mnt" };
	int err = ENOENT;
	(void)argc;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *path = join(argv[1], places[i]);
		struct stat st;
		if (stat(path, &st) == 0 && chmod(path, st.st_mode & 0777) == 0)
			return reached("changed the mode of %s", path);
		err = errno == ENOENT ? err : errno;
	}
	return denied(err, "no folder's mode can be changed");
}

/* argv: a folder that may be written, a folder in it and one in that, which may only be read */
static int write_renamed_parent(int argc, char **argv)
{
	(void)argc;
	char inner[4096];
	const char *held = join(argv[1], argv[2]), *moved = join(argv[1], "moved");
	if (rename(held, moved) < 0)
		return denied(errno, "rename %s", held);
	snprintf(inner, sizeof(inner), "%s/%s/new", moved, argv[3]);
	int fd = open(inner, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), err = errno;
	if (fd >= 0)
		unlink(inner);
	close(fd);
	(void)rename(moved, held); /* as it was; what follows does not depend on it */
	return fd < 0 ? denied(err, "create %s", inner) : reached("created %s", inner);
}

const struct act look_acts[] = {
	{ "see_dotdot", "stat of a path with ..", "sees files of the host's root", see_dotdot },
	{ "see_leaked_cwd", "stat in the inherited working directory",
	  "sees files of the caller's folder", see_leaked_cwd },
	{ "see_init", "/proc/1", "sees the cell's keeper", see_init },
	{ "see_hostname", "gethostname", "learns the machine's name", see_hostname },
	{ "see_cgroup", "/proc/self/cgroup", "learns its place in the host's cgroups", see_cgroup },
	{ "see_sockets", "/proc/net/unix", "sees the host's sockets", see_sockets },
	{ "see_segments", "/proc/sysvipc/shm", "sees the host's shared memory", see_segments },
	{ "find_setuid_mount", "a mount without nosuid", "runs setuid programs",
	  find_setuid_mount },
	{ "find_device_mount", "a mount without nodev", "opens device nodes in it",
	  find_device_mount },
	{ "open_node", "a device node in a read grant", "reaches a driver", open_node },
	{ "drive_device", "ioctl of a device", "reaches a driver's rare code", drive_device },
	{ "change_root_mode", "chmod of the root's folders", "changes what it is made of",
	  change_root_mode },
	{ "write_renamed_parent", "rename of a read grant's parent",
	  "writes to a read grant at another place", write_renamed_parent },
	{ NULL }
};
