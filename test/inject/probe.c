/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process in a cell can see of the cell, line by line, for test/inject: the same in each
 * call, whatever failed on the way to it. As a program it prints that; as a tool of a pool it does
 * the same:
 *
 *	vitro-probe                        prints
 *	vitro-probe call                   calls itself as a tool, and prints the result
 *	vitro-probe serve VITRO SOCKET     the same by a server, which it starts and ends
 */
#include <dirent.h>
#include <errno.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vitro.h>

/* What fails between the first and the second close of it is not vitro's: MARK of vitro-inject. */
enum { MARK = 1986622064 };

extern char **environ;

/* Numbers of pipes and sockets are new each time. */
static void print_link(const char *folder, const char *name)
{
	char path[512], target[512];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	ssize_t len = readlink(path, target, sizeof(target) - 1);

	if (len < 0) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	target[len] = '\0';
	if (strncmp(folder, "/proc/self/fd", 13) == 0)
		target[strcspn(target, "[")] = '\0';
	printf("%s: %s\n", path, target);
}

static void print_links(const char *folder)
{
	DIR *dir = opendir(folder);

	if (!dir) {
		printf("%s: %s\n", folder, strerror(errno));
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
			print_link(folder, entry->d_name);
	(void)closedir(dir);
}

static void print_lines(const char *path, const char *const *starts)
{
	FILE *file = fopen(path, "re");
	char line[1024];

	if (!file) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), file))
		for (const char *const *start = starts; *start; start++)
			if (strncmp(line, *start, strlen(*start)) == 0)
				printf("%s", line);
	(void)fclose(file);
}

/* Place and options of each; the numbers before them are new each time. */
static void print_mounts(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], place[1024], options[1024];

	if (!file) {
		printf("mounts: %s\n", strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %*s %*s %*s %1023s %1023s", place, options) == 2)
			printf("mount %s %s\n", place, options);
	(void)fclose(file);
}

static void print_limits(void)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
		struct rlimit limit = { 0 };

		if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
			printf("limit %d %lld %lld\n", i, (long long)limit.rlim_cur,
			       (long long)limit.rlim_max);
	}
}

/* Domains can be put upon each other up to a bound of the kernel's: those that fit are not there
   yet. Last of all, since what it makes stays. */
static void print_domains(void)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), count = 0;

	if (fd < 0) {
		printf("domains: %s\n", strerror(errno));
		return;
	}
	while (count < 64 && syscall(SYS_landlock_restrict_self, fd, 0) == 0)
		count++;
	printf("domains: room for %d, then %s\n", count, strerror(errno));
	(void)close(fd);
}

static void look(void)
{
	static const char *const marks[] = { "Uid:",          "Gid:",    "Groups:", "Cap",
					     "NoNewPrivs:",   "Seccomp", "Sig",     "NSpid:",
					     "Cpus_allowed:", NULL };
	static const char *const all[] = { "", NULL };
	char text[1024];

	print_lines("/proc/self/status", marks);
	print_lines("/proc/self/cgroup", all);
	print_lines("/proc/self/oom_score_adj", all);
	print_links("/proc/self/ns");
	print_links("/proc/self/fd");
	print_mounts();
	print_limits();
	for (char **entry = environ; *entry; entry++)
		printf("environment %s\n", *entry);
	printf("folder %s, root %s\n", getcwd(text, sizeof(text)) ? text : "none",
	       access("/root", R_OK) == 0 ? "can be read" : "cannot be read");
	printf("name %s\n", gethostname(text, sizeof(text)) == 0 ? text : "none");
	printf("umask %o, dumpable %d, session %s\n", umask(022), prctl(PR_GET_DUMPABLE),
	       getsid(0) == getpid() ? "its own" : "another's");
	print_domains();
	(void)fflush(stdout);
}

static int tool(vitro_task *task)
{
	(void)close(MARK);
	look();
	(void)close(MARK);
	return vitro_task_return(task, "1");
}

static const struct vitro_tool tools[] = { { .name = "look", .function = tool }, { 0 } };

static int call(const char *socket)
{
	const struct vitro_options options = { .ready_min = 1, .ready_max = 1, .socket = socket };
	struct vitro_error error;
	vitro_toolhost *host;

	if (vitro_toolhost_new(&host, tools, &options, &error) < 0) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "look" });
	int code = vitro_result_status(result) == VITRO_OK ? 0 : 1;

	puts(vitro_result_json(result));
	vitro_result_free(result);
	vitro_toolhost_free(host);
	return code;
}

static int serve(const char *vitro, const char *socket)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	pid_t server = fork();
	int code = 1, ended = 0;

	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(vitro, vitro, "serve", "--socket", socket, NULL);
		_exit(127);
	}
	if (server < 0)
		return 1;
	/* Its socket is there when it listens, or it ends. */
	while (access(socket, F_OK) < 0 && !(ended = waitpid(server, NULL, WNOHANG)))
		(void)nanosleep(&pause, NULL);
	if (!ended) {
		code = call(socket);
		(void)kill(server, SIGTERM); /* our child, which nobody has reaped */
		(void)waitpid(server, NULL, 0);
	}
	return code;
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, tools);
	if (argc == 4)
		return serve(argv[2], argv[3]);
	if (argc == 2)
		return call(NULL);
	look();
	return 0;
}
