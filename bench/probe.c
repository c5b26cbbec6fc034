/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof that what is timed isolates. One probe runs twice: in a cell, where each attempt must
 * fail, and outside, where each must succeed, since a probe that can do nothing proves nothing.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "rig.h"

struct world {
	int port;         /* where the benchmark listens on the host's loopback */
	const char *file; /* a file of the host's that nobody granted */
};

/* The name of a process of the host's that is there while a probe runs. */
static const char neighbour_name[] = "bench-neighbour";

static bool is_neighbour(const char *pid)
{
	char path[300], name[sizeof(neighbour_name)] = "";

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, neighbour_name) == 0;
}

static bool sees_others(const struct world *world)
{
	DIR *proc = opendir("/proc");
	bool others = false;

	(void)world;
	if (!proc)
		die("open /proc: %s", strerror(errno));
	for (struct dirent *entry; (entry = readdir(proc));)
		if (strtol(entry->d_name, NULL, 10) > 0 && is_neighbour(entry->d_name))
			others = true;
	(void)closedir(proc); /* only read from */
	return others;
}

void neighbour_main(int in, int out)
{
	char byte;

	if (prctl(PR_SET_NAME, neighbour_name) < 0)
		die("take a name: %s", strerror(errno));
	(void)!write(out, "", 1); /* whoever waits for it sees the end */
	(void)!read(in, &byte, 1);
}

/* There until the other end of *ret_fd is closed. */
static pid_t start_neighbour(int *ret_fd)
{
	pid_t pid;
	char byte;

	if (split_off(&pid, ret_fd)) {
		neighbour_main(*ret_fd, *ret_fd);
		_exit(0);
	}
	if (read(*ret_fd, &byte, 1) != 1)
		die("start a neighbour: it said nothing");
	return pid;
}

static bool reaches_host(const struct world *world)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)world->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static bool reads_file(const struct world *world)
{
	AUTO_CLOSE int fd = open(world->file, O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

static long status_field(const char *key, int base)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long value = -1;

	if (!file)
		die("open /proc/self/status: %s", strerror(errno));
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtol(line + strlen(key), NULL, base);
	(void)fclose(file); /* only read from */
	return value;
}

static bool lacks_filter(const struct world *world)
{
	(void)world;
	return status_field("Seccomp:", 10) != 2;
}

static bool may_gain_privileges(const struct world *world)
{
	(void)world;
	return status_field("NoNewPrivs:", 10) != 1;
}

static bool can_write(const char *folder)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/vitro-bench.%d", folder, (int)getpid());
	AUTO_CLOSE int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	return fd >= 0 && unlink(path) == 0;
}

static bool writes_root(const struct world *world)
{
	(void)world;
	return can_write("");
}

static const struct {
	const char *hole;
	bool (*open)(const struct world *);
	bool outside; /* open outside for everybody: the control insists on it */
} holes[] = {
	{ "the processes of the host are visible", sees_others, true },
	{ "the host's loopback answers", reaches_host, true },
	{ "a file that was not granted can be read", reads_file, true },
	{ "no system call filter is on", lacks_filter, false },
	{ "privileges can be gained by exec", may_gain_privileges, false },
	{ "the root can be written", writes_root, false },
};

enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

static unsigned find_holes(const struct world *world)
{
	unsigned found = 0;

	for (unsigned i = 0; i < HOLES; i++)
		if (holes[i].open(world))
			found |= 1u << i;
	return found;
}

void probe(int port, const char *secret)
{
	const struct world world = { .port = port, .file = secret };

	/* the control of the root's: what cannot write anywhere says nothing */
	printf("holes %u scratch %d\n", find_holes(&world), can_write("/tmp"));
}

int probe_main(int argc, char **argv)
{
	if (argc != 2)
		die("the probe takes a port and a file");
	probe(atoi(argv[0]), argv[1]);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int listen_here(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		die("listen on the loopback: %s", strerror(errno));
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void judge(const char *text)
{
	unsigned found;
	int scratch;

	if (sscanf(text, "holes %u scratch %d", &found, &scratch) != 2)
		die("the probe in the cell said: %s", text);
	for (unsigned i = 0; i < HOLES; i++)
		if (found >> i & 1)
			die("this vitro does not isolate, so its speed means nothing: %s",
			    holes[i].hole);
	if (!scratch)
		die("the probe in the cell cannot write to /tmp, so its failures prove nothing");
}

void check_isolation(probe_inside *inside, const void *user, const char *secret)
{
	struct world world = { .file = secret };
	AUTO_CLOSE int listener = listen_here(&world.port);
	AUTO_CLOSE int neighbour_fd = -1;
	pid_t neighbour = start_neighbour(&neighbour_fd);
	unsigned outside = find_holes(&world);
	char *text = inside(user, world.port, secret);

	for (unsigned i = 0; i < HOLES; i++)
		if (holes[i].outside && !(outside >> i & 1))
			die("the probe fails outside too, so it proves nothing: %s", holes[i].hole);
	judge(text);
	free(text);
	(void)shutdown(
		neighbour_fd,
		SHUT_WR); /* what cannot be told to end is ended with this program's end of it */
	(void)await(neighbour);
}
