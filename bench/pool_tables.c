/* SPDX-License-Identifier: Apache-2.0 */
#include "pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	BLOCK = 32, /* calls in a row: half of them, so that all find one */
	BURST_OF = 64,
	MEMORY_CELLS = 128,
	SLICES = 6, /* of throughput */
	QUICK_SLICES = 2,
	SLICE_MS = 500,
	EMPTY_TRIES = 100,
};

/* ---- contestants ---------------------------------------------------------------------------- */

static size_t run_echo(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = echo_time(&bench->echo);
	return 1;
}

static size_t run_relay(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = echo_time(&bench->relay);
	return 1;
}

static void fill_forks(const struct contestant *self)
{
	struct bench *bench = self->user;

	forks_fill(&bench->forks);
}

static size_t run_forks(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = echo_time(&bench->forks);
	return 1;
}

static size_t run_call(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = host_time(bench->host);
	return 1;
}

static void settle(const struct contestant *self)
{
	struct bench *bench = self->user;

	host_settle(bench->host, READY);
}

/* Both: what the other is still at would be done at this one's cost. */
static void settle_served(const struct contestant *self)
{
	struct bench *bench = self->user;

	host_settle(bench->host, READY);
	host_settle(bench->served.host, READY);
}

static size_t run_served(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = host_time(bench->served.host);
	return 1;
}

/* What the tool measured itself. */
static size_t run_ask(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;
	vitro_result *result = host_call(bench->host, "ask", NULL);
	const char *at = vitro_result_value(result, NULL);
	size_t count = 0;

	for (at++; count < room && *at && *at != ']'; count++) {
		char *end;

		samples[count] = strtoll(at, &end, 10);
		at = *end == ',' ? end + 1 : end;
	}
	vitro_result_free(result);
	return count;
}

static void settle_empty(const struct contestant *self)
{
	struct bench *bench = self->user;

	host_settle(bench->empty, 1);
	pause_ms(20);
}

/*
 * The one cell that is ready is used up, and there is none for the next call. Where this process
 * has to wait for a CPU between the two, there may be one again: that is not what is timed, and is
 * done anew.
 */
static size_t run_empty(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;
	struct vitro_counts before, after;

	(void)room;
	for (unsigned tries = 0; tries < EMPTY_TRIES; tries++) {
		settle_empty(self);
		vitro_toolhost_count(bench->empty, &before);
		(void)host_time(bench->empty);
		samples[0] = host_time(bench->empty);
		vitro_toolhost_count(bench->empty, &after);
		if (after.cold_calls == before.cold_calls + 1)
			return 1;
	}
	die("%u calls found a cell in an empty pool", EMPTY_TRIES);
}

/* As long as a pool rests: what was there before takes a while to go. */
static void settle_hand(const struct contestant *self)
{
	(void)self;
	pause_ms(20);
}

static size_t run_hand(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = hand_make(&bench->hand);
	hand_end(&bench->hand);
	return 1;
}

static size_t run_value(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;
	char arguments[64];
	size_t len;

	(void)room;
	(void)snprintf(arguments, sizeof(arguments), "{\"mb\": %zu}", self->number / MB);
	int64_t begin = vt_clock_now();
	vitro_result *result = host_call(bench->host, "value", arguments);

	samples[0] = vt_clock_now() - begin;
	(void)vitro_result_value(result, &len);
	if (len != self->number)
		die("a value has %zu bytes", len);
	vitro_result_free(result);
	return 1;
}

static size_t run_copy(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = copy_time(&bench->copy, self->number);
	return 1;
}

static size_t run_burst(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;

	(void)room;
	samples[0] = host_burst(bench->host, BURST_OF);
	return 1;
}

static size_t run_spawns(const struct contestant *self, int64_t *samples, size_t room)
{
	struct bench *bench = self->user;
	struct words argv = { 0 };
	pid_t pids[BURST_OF];

	(void)room;
	words_add(&argv, bench->options->static_true);
	int64_t begin = vt_clock_now();

	for (size_t i = 0; i < BURST_OF; i++)
		pids[i] = spawn(argv.items, 1, 2);
	for (size_t i = 0; i < BURST_OF; i++)
		if (await(pids[i]) != 0)
			die("the empty program failed");
	samples[0] = vt_clock_now() - begin;
	return 1;
}

/* ---- tables --------------------------------------------------------------------------------- */

static char *named(const struct bench *bench, const char *what)
{
	char *name;

	if (asprintf(&name, "%s, %s", what, bench->pinning) < 0)
		die("out of memory");
	return name;
}

static void bar(const struct bench *bench, const char *what, double value, double limit, double aim)
{
	add_bar(bench->report, named(bench, what), value, limit);
	bench->report->bars[bench->report->bar_count - 1].aim = aim;
}

static unsigned rounds(const struct bench *bench, unsigned part)
{
	unsigned count = bench->options->rounds / part;

	return count < 3 ? 3 : count;
}

void bench_calls(struct bench *bench)
{
	struct words argv = { 0 };

	words_add(&argv, bench->options->static_true);
	struct contestant contestants[] = {
		{ .name = "round trip of a socket",
		  .run = run_echo,
		  .user = bench,
		  .block = BLOCK },
		{ .name = "through a third process",
		  .run = run_relay,
		  .user = bench,
		  .block = BLOCK },
		{ .name = "and to a fresh fork",
		  .run = run_forks,
		  .prepare = fill_forks,
		  .user = bench,
		  .block = BLOCK },
		{ .name = "call",
		  .run = run_call,
		  .prepare = settle,
		  .user = bench,
		  .block = BLOCK },
		{ .name = "call-back",
		  .run = run_ask,
		  .prepare = settle,
		  .user = bench,
		  .block = 2 },
		{ .name = "posix_spawn, static", .argv = argv.items, .block = BLOCK / 4 },
	};
	struct contest contest = {
		.title = named(bench, "a call in a cell that is ready"),
		.contestants = contestants,
		.count = sizeof(contestants) / sizeof(contestants[0]),
		.rounds = rounds(bench, 4),
	};
	const struct table *tight = contest_run(&contest, bench->report);

	contest.pattern = SPACED;
	contest.rounds = rounds(bench, 1);
	for (size_t i = 0; i < contest.count; i++)
		contestants[i].block = 1;
	const struct table *spaced = contest_run(&contest, bench->report);
	const struct stats *call = table_stats(tight, "call"), *apart = table_stats(spaced, "call");

	bar(bench, "call / round trip", call->p50_us / table_p50(tight, contestants[0].name), 4, 3);
	bar(bench, "call / round trip, spaced",
	    apart->p50_us / table_p50(spaced, contestants[0].name), 4, 3);
	bar(bench, "call / spawn", call->p50_us / table_p50(tight, "posix_spawn, static"), 0.1, 0);
	bar(bench, "call / spawn, spaced", apart->p50_us / table_p50(spaced, "posix_spawn, static"),
	    0.2, 0);
	bar(bench, "call-back / round trip",
	    table_p50(tight, "call-back") / table_p50(tight, contestants[0].name), 4, 2);
	bar(bench, "call, p99 / p50", call->p99_us / call->p50_us, 5, 0);
	bar(bench, "call, p99 / p50, spaced", apart->p99_us / apart->p50_us, 5, 0);
}

/* One table of two, whose first is measured by the second. */
static void bench_pair(struct bench *bench, const char *title, const struct contestant *pair,
		       unsigned count, double limit)
{
	const struct contest contest = {
		.title = named(bench, title),
		.contestants = pair,
		.count = 2,
		.base = 1,
		.rounds = count,
	};
	const struct table *table = contest_run(&contest, bench->report);

	if (limit > 0)
		bar(bench, title, table->stats[0].p50_us / table->stats[1].p50_us, limit, 0);
}

void bench_empty(struct bench *bench)
{
	const struct contestant pair[] = {
		{ .name = "call, no cell ready", .run = run_empty, .user = bench },
		{ .name = "cell by hand", .run = run_hand, .prepare = settle_hand, .user = bench },
	};

	bench_pair(bench, "empty pool / by hand", pair, rounds(bench, 2), 1.5);
}

void bench_served(struct bench *bench)
{
	const struct contestant pair[] = {
		{ .name = "call over a server",
		  .run = run_served,
		  .prepare = settle_served,
		  .user = bench,
		  .block = BLOCK },
		{ .name = "call, private supervisor",
		  .run = run_call,
		  .prepare = settle_served,
		  .user = bench,
		  .block = BLOCK },
	};

	served_open(&bench->served, READY);
	bench_pair(bench, "server / private supervisor", pair, rounds(bench, 4), 1.3);
	served_close(&bench->served);
}

static void bench_value(struct bench *bench, unsigned mb, unsigned count)
{
	const struct contestant pair[] = {
		{ .name = "call with that result",
		  .run = run_value,
		  .prepare = settle,
		  .user = bench,
		  .number = (size_t)mb * MB },
		{ .name = "memcpy and socket",
		  .run = run_copy,
		  .user = bench,
		  .number = (size_t)mb * MB },
	};
	char *title;

	if (asprintf(&title, "%u MB result / copy", mb) < 0)
		die("out of memory");
	bench_pair(bench, title, pair, count, 3);
}

void bench_results(struct bench *bench)
{
	bench_value(bench, 1, rounds(bench, 2));
	bench_value(bench, RESULT_MB, rounds(bench, 20));
}

void bench_burst(struct bench *bench)
{
	const struct contestant pair[] = {
		{ .name = "64 calls", .run = run_burst, .prepare = settle, .user = bench },
		{ .name = "64 posix_spawn, static", .run = run_spawns, .user = bench },
	};

	bench_pair(bench, "64 at once, until the last is over", pair, rounds(bench, 8), 0);
}

/* ---- what does not depend on pinning --------------------------------------------------------- */

void bench_live(struct bench *bench)
{
	static const struct {
		unsigned live;
		const char *title;
	} steps[] = { { 1, "1 live call" },
		      { 100, "100 live calls" },
		      { 1000, "1000 live calls" } };
	double least = 0, most = 0;
	unsigned held = 0;

	for (size_t i = 0; i < 3; i++) {
		const struct contestant pair[] = {
			{ .name = "call",
			  .run = run_call,
			  .prepare = settle,
			  .user = bench,
			  .block = BLOCK },
			{ .name = "round trip of a socket",
			  .run = run_echo,
			  .user = bench,
			  .block = BLOCK },
		};
		const struct contest contest = {
			.title = named(bench, steps[i].title),
			.contestants = pair,
			.count = 2,
			.base = 1,
			.rounds = rounds(bench, 8),
		};

		host_hold(bench->host, steps[i].live - 1 - held);
		held = steps[i].live - 1;
		double p50 = table_p50(contest_run(&contest, bench->report), "call");

		least = least == 0 || p50 < least ? p50 : least;
		most = p50 > most ? p50 : most;
	}
	bar(bench, "call among 1, 100, 1000 live, slowest / fastest", most / least, 1.5, 0);
}

/* By hand on every CPU at once, and calls as many at a time as keep them busy, in turns. */
void bench_throughput(struct bench *bench)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct hand *hands = need(calloc((size_t)cpus, sizeof(*hands)));
	int slices = bench->options->quick ? QUICK_SLICES : SLICES;
	double calls = 0, cells = 0;

	for (long i = 0; i < cpus; i++)
		hand_open(&hands[i], &bench->mounts, bench->namespaces);
	for (int slice = 0; slice < slices; slice++) {
		for (long i = 0; i < cpus; i++)
			hand_work(&hands[i], SLICE_MS);
		for (long i = 0; i < cpus; i++)
			cells += hand_worked(&hands[i]);
		/* What is ready would be counted, and made while nobody counts. */
		(void)host_work(bench->host, 4 * (unsigned)cpus, SLICE_MS / 2 * VT_NS_PER_MS);
		calls += host_work(bench->host, 4 * (unsigned)cpus, SLICE_MS * VT_NS_PER_MS);
		host_settle(bench->host, READY);
	}
	for (long i = 0; i < cpus; i++)
		hand_close(&hands[i]);
	free(hands);
	double seconds = slices * SLICE_MS / 1000.0;

	add_fact(bench->report,
		 "throughput, %s, %ld CPUs: %.0f calls/s; made and ended by hand: %.0f cells/s",
		 bench->pinning, cpus, calls / seconds, cells / seconds);
	bar(bench, "calls per second / cells by hand", calls / cells, 0.7, 0);
	bench->report->bars[bench->report->bar_count - 1].at_least = true;
}

void bench_memory(struct bench *bench)
{
	struct cell_memory memory;

	memory_look(MEMORY_CELLS, &bench->mounts, bench->namespaces, &memory);
	char pss[64] = "PSS is for root alone to see";

	if (memory.pss_kb > 0)
		(void)snprintf(pss, sizeof(pss), "%.0f KB PSS of its two processes (smaps_rollup)",
			       memory.pss_kb);
	add_fact(bench->report,
		 "memory of a parked cell, mean of %u: %s, %.0f KB of the kernel's (what Slab, "
		 "KernelStack, PageTables and Percpu of /proc/meminfo grew by, whoever made them "
		 "grow); made by hand, without limits, filter, pipes and sockets: %.0f KB of the "
		 "kernel's",
		 memory.cells, pss, memory.kernel_kb, memory.by_hand_kb);
	if (memory.pss_kb == 0)
		return;
	add_bar(bench->report, "parked cell, KB PSS", memory.pss_kb, 100);
	add_bar(bench->report, "parked cell, KB with the kernel's",
		memory.pss_kb + memory.kernel_kb, 350);
}
