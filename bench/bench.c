/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PATHS = 1000, LEAST_ROUNDS = 10 };

struct options {
	const char *vitro, *json, *dir;
	char self[PATH_MAX], static_true[PATH_MAX + 8];
	unsigned rounds, burst;
	int cpu;
	bool quick, check;
};

static const char usage[] =
	"usage: vitro-bench [options] VITRO\n"
	"\n"
	"Times VITRO, the path of a vitro binary, against bubblewrap and bare spawning.\n"
	"\n"
	"  --quick        a tenth of the rounds\n"
	"  --rounds N     rounds of the first table (400)\n"
	"  --burst N      also start N at once\n"
	"  --cpu N        pin everything to CPU N\n"
	"  --dir DIR      where the folders of the second table are made (/var/tmp)\n"
	"  --json FILE    write the figures to FILE too\n"
	"  --check        exit with 1 if a bar is missed\n";

/* What must hold. */
static const double max_of_bwrap = 0.6, max_spaced = 1.3, max_of_byhand = 1.3, max_memory_kb = 5120;

static unsigned at_least(unsigned value, unsigned least)
{
	return value < least ? least : value;
}

static char **vitro_argv(const struct options *options, const char *policy, const char *program)
{
	struct words argv = { 0 };

	words_add(&argv, options->vitro);
	words_add(&argv, "run");
	if (policy) {
		words_add(&argv, "-p");
		words_add(&argv, policy);
	}
	words_add(&argv, "--");
	words_add(&argv, program);
	return argv.items;
}

static char **plain_argv(const char *program)
{
	struct words argv = { 0 };

	words_add(&argv, program);
	return argv.items;
}

/* The price of one call. */
static void run_calls(const struct options *options, const struct mounts *mounts,
		      struct report *report)
{
	const struct contestant contestants[] = {
		{ .name = "vitro", .argv = vitro_argv(options, NULL, "/bin/true") },
		{ .name = "bwrap", .argv = bwrap_argv(options->vitro, mounts, "/bin/true") },
		{ .name = "posix_spawn", .argv = plain_argv("/bin/true") },
		{ .name = "posix_spawn, static", .argv = plain_argv(options->static_true) },
	};
	struct contest contest = {
		.title = "one call of true",
		.contestants = contestants,
		.count = 4,
		.base = 1,
		.pattern = BACK_TO_BACK,
		.rounds = options->rounds,
	};
	const struct table *tight = contest_run(&contest, report);

	contest.pattern = SPACED;
	contest.rounds = at_least(options->rounds / 2, LEAST_ROUNDS);
	const struct table *spaced = contest_run(&contest, report);

	if (options->burst) {
		contest.pattern = BURST;
		contest.burst = options->burst;
		contest.rounds = options->rounds / 20 + 1;
		(void)contest_run(&contest, report); /* no bar yet: a figure to know */
	}
	add_bar(report, "vitro / bwrap, back to back",
		table_p50(tight, "vitro") / table_p50(tight, "bwrap"), max_of_bwrap);
	add_bar(report, "vitro / bwrap, spaced",
		table_p50(spaced, "vitro") / table_p50(spaced, "bwrap"), max_of_bwrap);
	double bare = table_p50(spaced, "posix_spawn") / table_p50(tight, "posix_spawn");

	/* a machine that sleeps between calls slows everybody's */
	add_bar(report, "vitro, spaced / back to back",
		table_p50(spaced, "vitro") / table_p50(tight, "vitro"),
		bare > max_spaced ? bare : max_spaced);
}

/* The price of a long policy. */
static void run_policies(const struct options *options, const struct mounts *mounts,
			 char *const *folders, struct report *report)
{
	static const struct {
		size_t paths;
		const char *title;
		unsigned part; /* of the rounds: the dearest gets the fewest */
	} rows[] = {
		{ 1, "1 read path", 2 },
		{ 10, "10 read paths", 2 },
		{ 100, "100 read paths", 4 },
		{ MAX_PATHS, "1000 read paths", 8 },
	};
	double last = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mounts same;

		mounts_extend(mounts, folders, rows[i].paths, &same);
		const struct contestant contestants[] = {
			{ .name = "vitro",
			  .argv = vitro_argv(options, folders_policy(rows[i].paths), "/bin/true") },
			{ .name = "by hand", .hand = &same },
		};
		const struct contest contest = {
			.title = rows[i].title,
			.contestants = contestants,
			.count = 2,
			.base = 1,
			.pattern = BACK_TO_BACK,
			.rounds = at_least(options->rounds / rows[i].part, LEAST_ROUNDS),
		};
		const struct table *table = contest_run(&contest, report);

		last = table_p50(table, "vitro") / table_p50(table, "by hand");
	}
	add_bar(report, "vitro / by hand, 1000 read paths", last, max_of_byhand);
}

static long peak_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");

	if (!file)
		die("open %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld kB", &kb) == 1)
			break;
	(void)fclose(file); /* only read from */
	if (kb < 0)
		die("no VmHWM in %s", path);
	return kb;
}

/* While it waits for its command: rusage would give the larger of it and its children. */
static void run_memory(const struct options *options, struct report *report)
{
	const struct timespec half_second = { .tv_nsec = 500000000 };
	char **argv = vitro_argv(options, NULL, "/bin/sleep");
	struct words words = { 0 };

	for (size_t i = 0; argv[i]; i++)
		words_add(&words, argv[i]);
	words_add(&words, "2");
	pid_t pid = spawn(words.items, 1, 2);

	(void)nanosleep(&half_second, NULL); /* cut short it is a shorter look */
	long peak = peak_kb(pid);

	(void)kill(pid, SIGTERM); /* it may have ended */
	(void)await(pid);         /* by that signal, or by itself */
	add_fact(report, "memory of vitro itself while a call runs: %ld kB at its peak", peak);
	add_bar(report, "vitro's own memory, MB", (double)peak / 1024, max_memory_kb / 1024);
}

struct trial {
	const char *vitro, *self;
};

/* The probe, by `vitro run`. */
static char *try_in_cell(const void *user, int port, const char *secret)
{
	const struct trial *trial = user;
	struct words argv = { 0 };

	words_add(&argv, trial->vitro);
	words_add(&argv, "run");
	words_add(&argv, "--");
	words_add(&argv, trial->self);
	words_add(&argv, "--probe");
	words_addf(&argv, "%d", port);
	words_add(&argv, secret);
	return output_of(argv.items);
}

static unsigned number(const char *text, unsigned least, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < least || value > most)
		die("%s: not a number from %u to %u", text, least, most);
	return (unsigned)value;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("pin to CPU %d: %s", cpu, strerror(errno));
}

static void find_self(struct options *options)
{
	ssize_t len = readlink("/proc/self/exe", options->self, sizeof(options->self) - 1);

	if (len < 0)
		die("find this program: %s", strerror(errno));
	options->self[len] = '\0';
	(void)snprintf(options->static_true, sizeof(options->static_true), "%s-true",
		       options->self);
	if (access(options->static_true, X_OK) < 0)
		die("%s: %s", options->static_true, strerror(errno));
	if (access(options->vitro, X_OK) < 0)
		die("%s: %s", options->vitro, strerror(errno));
}

static void parse(int argc, char **argv, struct options *ret_options)
{
	static const struct option known[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "burst", required_argument, NULL, 'b' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "dir", required_argument, NULL, 'd' },
		{ "json", required_argument, NULL, 'j' },
		{ "check", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = { .rounds = 400, .cpu = -1, .dir = "/var/tmp" };

	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 'q':
			options.quick = true;
			break;
		case 'r':
			options.rounds = number(optarg, LEAST_ROUNDS, 100000);
			break;
		case 'b':
			options.burst = number(optarg, 2, 256);
			break;
		case 'c':
			options.cpu = (int)number(optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'd':
			options.dir = optarg;
			break;
		case 'j':
			options.json = optarg;
			break;
		case 'k':
			options.check = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		exit(2);
	}
	options.vitro = argv[optind];
	if (options.quick)
		options.rounds = at_least(options.rounds / 10, LEAST_ROUNDS);
	*ret_options = options;
}

/* The words of a bubblewrap that makes the same cell, for bench/all; the last is "--". */
static int print_bwrap(const char *vitro)
{
	struct mounts mounts;

	mounts_of_cell(vitro, &mounts);
	char **argv = bwrap_argv(vitro, &mounts, NULL);

	for (size_t i = 0; argv[i]; i++)
		puts(argv[i]);
	return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct report report;
	static struct options options;
	struct mounts mounts;
	struct machine machine, after;

	if (argc > 1 && strcmp(argv[1], "--probe") == 0)
		return probe_main(argc - 2, argv + 2);
	if (argc == 2 && strcmp(argv[1], "--neighbour") == 0)
		return neighbour_main(0, 1), 0;
	if (argc == 3 && strcmp(argv[1], "--bwrap") == 0)
		return print_bwrap(argv[2]);
	parse(argc, argv, &options);
	find_self(&options);
	if (options.cpu >= 0)
		pin(options.cpu);
	machine_look(&machine);
	report_machine(&machine);
	char **folders = folders_make(options.dir, MAX_PATHS);

	const struct trial trial = { .vitro = options.vitro, .self = options.self };

	check_isolation(try_in_cell, &trial, folders_file("secret", ""));
	mounts_of_cell(options.vitro, &mounts);
	printf("a cell isolates, and has %zu mounts\n\n", mounts.count + 1);

	run_calls(&options, &mounts, &report);
	run_policies(&options, &mounts, folders, &report);
	run_memory(&options, &report);
	machine_look(&after);
	report_bars(&report, &after);
	if (options.json)
		report_json(&report, &machine, options.json);
	for (size_t i = 0; options.check && i < report.bar_count; i++)
		if (!bar_holds(&report.bars[i]))
			return 1;
	return 0;
}
