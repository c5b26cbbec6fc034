/* SPDX-License-Identifier: Apache-2.0 */
#include "pools.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: vitro-bench-pools [options] VITRO\n"
			    "\n"
			    "Times calls of C tools by libvitro, with the supervisor VITRO, "
			    "against what they are made of.\n"
			    "\n"
			    "  --quick        a tenth of the rounds, and not pinned\n"
			    "  --json FILE    write the figures to FILE too\n"
			    "  --check        exit with 1 if a bar is missed\n";

static char *try_in_pool(const void *user, int port, const char *secret)
{
	const struct bench *bench = user;
	char arguments[PATH_MAX];

	(void)snprintf(arguments, sizeof(arguments), "{\"port\": %d, \"secret\": \"%s\"}", port,
		       secret);
	return host_output(bench->host, "probe", arguments);
}

static void find_mounts(struct bench *bench)
{
	char *text = host_output(bench->host, "look", "{\"path\": \"/proc/self/mountinfo\"}");

	mounts_read(text, &bench->mounts);
	free(text);
}

/*
 * Those in which two cells of one pool are apart, but for the network's: a pool makes these ahead
 * and uses them again, so a cell by hand that made one each time would be slow for nothing.
 */
static void find_namespaces(struct bench *bench)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} kinds[] = {
		{ "user", CLONE_NEWUSER }, { "pid", CLONE_NEWPID }, { "mnt", CLONE_NEWNS },
		{ "ipc", CLONE_NEWIPC },   { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP },
	};

	printf("a cell of a pool isolates, has %zu mounts, and beside a network its own "
	       "namespaces:",
	       bench->mounts.count + 1);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char arguments[64];

		(void)snprintf(arguments, sizeof(arguments), "{\"path\": \"/proc/self/ns/%s\"}",
			       kinds[i].name);
		char *one = host_output(bench->host, "look", arguments);
		char *other = host_output(bench->host, "look", arguments);

		if (!*one || !*other)
			die("a cell does not see its %s namespace", kinds[i].name);
		if (strcmp(one, other) != 0) {
			bench->namespaces |= kinds[i].flag;
			printf(" %s", kinds[i].name);
		}
		free(one);
		free(other);
	}
	printf("\n\n");
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
		if (cpu < 0 || i == cpu)
			CPU_SET((unsigned)i, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("set the CPUs: %s", strerror(errno));
}

/* In this order: what holds calls leaves them. */
static const struct {
	const char *name;
	void (*run)(struct bench *bench);
	bool pinned; /* on one CPU too */
} parts[] = {
	{ "calls", bench_calls, true }, { "served", bench_served, true },
	{ "empty", bench_empty, true }, { "results", bench_results, true },
	{ "burst", bench_burst, true }, { "throughput", bench_throughput, false },
	{ "live", bench_live, false },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static bool is_wanted(const struct bench *bench, const char *part)
{
	return !bench->options->only || strcmp(bench->options->only, part) == 0;
}

/* What a cell is, for those that are made by hand. */
static void look_at_cells(struct bench *bench)
{
	bench->host = host_open(2, 0);
	check_isolation(try_in_pool, bench, folders_file("secret", ""));
	find_mounts(bench);
	find_namespaces(bench);
	vitro_toolhost_free(bench->host);
}

static void open_all(struct bench *bench)
{
	bench->host = host_open(READY, RESULT_MB);
	bench->empty = host_open(1, 0);
	host_settle(bench->host, READY);
	echo_open(&bench->echo);
	relay_open(&bench->relay);
	forks_open(&bench->forks);
	copy_open(&bench->copy, (size_t)RESULT_MB * MB);
	hand_open(&bench->hand, &bench->mounts, bench->namespaces);
}

static void close_all(struct bench *bench)
{
	hand_close(&bench->hand);
	mate_close(&bench->copy);
	mate_close(&bench->forks);
	mate_close(&bench->relay);
	mate_close(&bench->echo);
	vitro_toolhost_free(bench->empty);
	vitro_toolhost_free(bench->host);
}

static void bench_parts(struct bench *bench, bool pinned)
{
	bench->pinning = pinned ? "one CPU" : "all CPUs";
	pin(pinned ? 0 : -1);
	open_all(bench);
	for (size_t i = 0; i < PARTS; i++)
		if (is_wanted(bench, parts[i].name) && (parts[i].pinned || !pinned))
			parts[i].run(bench);
	close_all(bench);
}

static void bench_all(struct bench *bench)
{
	look_at_cells(bench);
	if (is_wanted(bench, "memory"))
		bench_memory(bench);
	if (!bench->options->quick)
		bench_parts(bench, true);
	bench_parts(bench, false);
}

static void parse(int argc, char **argv, struct options *ret_options)
{
	static const struct option known[] = {
		{ "quick", no_argument, NULL, 'q' },      { "only", required_argument, NULL, 'o' },
		{ "json", required_argument, NULL, 'j' }, { "check", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },       { 0 },
	};
	struct options options = { .rounds = 100 };

	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 'q':
			options.rounds = 10;
			options.quick = true;
			break;
		case 'o':
			options.only = optarg;
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'k':
			options.check = true;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		exit(2);
	}
	if (setenv("VITRO_BINARY", argv[optind], 1) < 0)
		die("out of memory");
	ssize_t len = readlink("/proc/self/exe", options.static_true, PATH_MAX - 1);
	char *name = len < 0 ? NULL : strrchr(options.static_true, '/');

	if (!name)
		die("find this program: %s", strerror(errno));
	(void)strcpy(name + 1, "vitro-bench-true");
	*ret_options = options;
}

int main(int argc, char **argv)
{
	static struct report report;
	static struct options options;
	struct machine machine, after;

	if (argc == 1)
		tools_prepare(); /* as the library starts it */
	vitro_host_main(argc, argv, bench_tools);
	parse(argc, argv, &options);
	machine_look(&machine);
	report_machine(&machine);
	(void)folders_make("/var/tmp", 0); /* for the secret */
	struct bench bench = { .options = &options, .report = &report };

	bench_all(&bench);
	machine_look(&after);
	report_bars(&report, &after);
	if (options.json)
		report_json(&report, &machine, options.json);
	for (size_t i = 0; options.check && i < report.bar_count; i++)
		if (!bar_holds(&report.bars[i]))
			return 1;
	return 0;
}