/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"

enum { SPACING_MS = 20, MAX_CONTESTANTS = 8, MAX_BURST = 256, MAX_SAMPLES = 64 };

/* What was measured so far. */
struct tally {
	const struct contest *contest;
	int64_t *samples[MAX_CONTESTANTS];
	size_t counts[MAX_CONTESTANTS], room[MAX_CONTESTANTS];
	int64_t *middles[MAX_CONTESTANTS]; /* of each round */
	int null_fd;
};

static pid_t start(const struct contestant *contestant, int null_fd, int err_fd)
{
	return contestant->argv ? spawn(contestant->argv, null_fd, err_fd)
				: byhand_start(contestant->hand);
}

static void insist(const struct contestant *contestant, int status)
{
	if (status != 0)
		die("%s failed: wait status %#x", contestant->name, (unsigned)status);
}

static void record(struct tally *tally, size_t who, int64_t ns)
{
	if (tally->counts[who] == tally->room[who]) {
		tally->room[who] = tally->room[who] ? tally->room[who] * 2 : 256;
		tally->samples[who] = need(
			realloc(tally->samples[who], tally->room[who] * sizeof(int64_t)));
	}
	tally->samples[who][tally->counts[who]++] = ns;
}

static void run_inside(struct tally *tally, size_t who)
{
	const struct contestant *contestant = &tally->contest->contestants[who];
	int64_t samples[MAX_SAMPLES];
	size_t count = contestant->run(contestant, samples, MAX_SAMPLES);

	for (size_t i = 0; i < count; i++)
		record(tally, who, samples[i]);
}

static void run_one(struct tally *tally, size_t who)
{
	const struct contestant *contestant = &tally->contest->contestants[who];

	if (contestant->run) {
		run_inside(tally, who);
		return;
	}
	int64_t begin = vt_clock_now();
	int status = await(start(contestant, tally->null_fd, tally->null_fd));
	int64_t end = vt_clock_now();

	insist(contestant, status);
	record(tally, who, end - begin);
}

/* Each one's time is from its own start: that is what its caller waits. */
static void run_burst(struct tally *tally, size_t who)
{
	const struct contestant *contestant = &tally->contest->contestants[who];
	unsigned count = tally->contest->burst;
	pid_t pids[MAX_BURST];
	int64_t begins[MAX_BURST];

	for (unsigned i = 0; i < count; i++) {
		begins[i] = vt_clock_now();
		pids[i] = start(contestant, tally->null_fd, tally->null_fd);
	}
	for (unsigned left = count; left;) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);
		int64_t end = vt_clock_now();

		if (pid < 0 && errno != EINTR)
			die("wait for a burst: %s", strerror(errno));
		for (unsigned i = 0; i < count; i++) {
			if (pid < 0 || pids[i] != pid)
				continue;
			insist(contestant, status);
			record(tally, who, end - begins[i]);
			left--;
		}
	}
}

static void shuffle(size_t *order, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		uint32_t random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			die("getrandom: %s", strerror(errno));
		size_t j = random % i, other = order[i - 1];

		order[i - 1] = order[j];
		order[j] = other;
	}
}

void pause_ms(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void progress(const struct contest *contest, unsigned round)
{
	bool terminal = isatty(2);

	if (terminal && (round % 8 == 0 || round == contest->rounds))
		fprintf(stderr, "\r%s: round %u of %u%s", contest->title, round, contest->rounds,
			round == contest->rounds ? "\r\033[K" : "");
	else if (!terminal && round && round % (contest->rounds / 4 + 1) == 0)
		fprintf(stderr, "%s: round %u of %u\n", contest->title, round, contest->rounds);
}

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static void take_turn(struct tally *tally, size_t who)
{
	const struct contest *contest = tally->contest;
	const struct contestant *contestant = &contest->contestants[who];

	if (interrupted)
		die("interrupted");
	if (contestant->prepare)
		contestant->prepare(contestant);
	for (unsigned i = 0; i == 0 || i < contestant->block; i++) {
		if (contest->pattern != BACK_TO_BACK)
			pause_ms(SPACING_MS);
		if (contest->pattern == BURST)
			run_burst(tally, who);
		else
			run_one(tally, who);
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static int64_t middle_of(int64_t *samples, size_t count)
{
	qsort(samples, count, sizeof(*samples), by_value);
	return samples[(count - 1) / 2];
}

static void run_rounds(struct tally *tally)
{
	const struct contest *contest = tally->contest;
	size_t order[MAX_CONTESTANTS];

	for (size_t i = 0; i < contest->count; i++) {
		order[i] = i;
		tally->middles[i] = need(calloc(contest->rounds, sizeof(int64_t)));
	}
	for (unsigned round = 0; round < contest->rounds; round++) {
		progress(contest, round);
		shuffle(order, contest->count);
		for (size_t i = 0; i < contest->count; i++) {
			size_t who = order[i], before = tally->counts[who];

			take_turn(tally, who);
			tally->middles[who][round] = middle_of(tally->samples[who] + before,
							       tally->counts[who] - before);
		}
	}
	progress(contest, contest->rounds);
}

static double paired(const struct tally *tally, size_t who)
{
	const struct contest *contest = tally->contest;
	int64_t *ratios = need(calloc(contest->rounds, sizeof(int64_t)));

	for (unsigned round = 0; round < contest->rounds; round++)
		ratios[round] = tally->middles[who][round] * 1000 /
				(tally->middles[contest->base][round] + 1);
	double ratio = (double)middle_of(ratios, contest->rounds) / 1000;

	free(ratios);
	return ratio;
}

static struct stats summarize(int64_t *samples, size_t count)
{
	qsort(samples, count, sizeof(*samples), by_value);
	return (struct stats){
		.min_us = (double)samples[0] / 1000,
		.p50_us = (double)samples[(count - 1) / 2] / 1000,
		.p99_us = (double)samples[(count * 99 + 99) / 100 - 1] / 1000,
	};
}

/* Twice each, with its messages shown: files get cached, and what does not work says why. */
static void warm_up(const struct tally *tally)
{
	for (size_t i = 0; i < 2 * tally->contest->count; i++) {
		const struct contestant *who = &tally->contest->contestants[i / 2];
		int64_t samples[MAX_SAMPLES];

		if (who->run && who->prepare)
			who->prepare(who);
		if (who->run)
			(void)who->run(who, samples, MAX_SAMPLES); /* they do not count */
		else
			insist(who, await(start(who, tally->null_fd, 2)));
	}
}

const struct table *contest_run(const struct contest *contest, struct report *report)
{
	struct table *table = &report->tables[report->table_count++];
	unsigned each = contest->pattern == BURST ? contest->burst : 1;
	struct tally tally = { .contest = contest,
			       .null_fd = open("/dev/null", O_RDWR | O_CLOEXEC) };
	const struct sigaction action = { .sa_handler = interrupt };

	if (tally.null_fd < 0 || contest->count > MAX_CONTESTANTS || each > MAX_BURST ||
	    sigaction(SIGINT, &action, NULL) < 0 || sigaction(SIGTERM, &action, NULL) < 0)
		die("prepare %s: %s", contest->title, strerror(errno));
	if (report->table_count > sizeof(report->tables) / sizeof(report->tables[0]))
		die("no room for the table of %s", contest->title);
	warm_up(&tally);
	run_rounds(&tally);
	*table = (struct table){
		.title = contest->title,
		.pattern = contest->pattern,
		.rounds = contest->rounds,
		.burst = contest->burst,
		.count = contest->count,
		.base = contest->base,
	};
	for (size_t i = 0; i < contest->count; i++) {
		table->names[i] = contest->contestants[i].name;
		table->stats[i] = summarize(tally.samples[i], tally.counts[i]);
		table->stats[i].paired = paired(&tally, i);
		free(tally.samples[i]);
	}
	for (size_t i = 0; i < contest->count; i++)
		free(tally.middles[i]);
	(void)close(tally.null_fd); /* nothing was kept in it */
	report_table(table);
	return table;
}

const struct stats *table_stats(const struct table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->names[i], name) == 0)
			return &table->stats[i];
	die("no contestant is called %s", name);
}

double table_p50(const struct table *table, const char *name)
{
	return table_stats(table, name)->p50_us;
}
