/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "bench.h"

static const char *const pattern_names[PATTERNS] = {
	[BACK_TO_BACK] = "back to back",
	[SPACED] = "spaced 20 ms",
	[BURST] = "burst",
};

void report_machine(const struct machine *machine)
{
	printf("kernel   %s\n", machine->kernel);
	printf("CPU      %s, %d online, pinning: %s\n", machine->cpu, machine->cpus,
	       machine->pinning);
	printf("mounts   %d    THP %s    load average %s\n\n", machine->mounts, machine->thp,
	       machine->load);
}

static double ratio(const struct table *table, size_t row)
{
	return table->stats[row].p50_us / table->stats[table->base].p50_us;
}

void report_table(const struct table *table)
{
	printf("%s, %s", table->title, pattern_names[table->pattern]);
	if (table->pattern == BURST)
		printf(" of %u", table->burst);
	printf(", %u rounds (µs)\n", table->rounds);
	printf("  %-28s %9s %9s %9s   p50 / %s, and in the same round\n", "", "min", "p50", "p99",
	       table->names[table->base]);
	for (size_t i = 0; i < table->count; i++)
		printf("  %-28s %9.0f %9.0f %9.0f   %7.2f %7.2f\n", table->names[i],
		       table->stats[i].min_us, table->stats[i].p50_us, table->stats[i].p99_us,
		       ratio(table, i), table->stats[i].paired);
	putchar('\n');
	(void)fflush(stdout); /* a lost table shows as one */
}

void add_bar(struct report *report, const char *name, double value, double limit)
{
	if (report->bar_count == sizeof(report->bars) / sizeof(report->bars[0]))
		die("no room for the bar '%s'", name);
	report->bars[report->bar_count++] = (struct bar){ .name = name,
							  .value = value,
							  .limit = limit };
}

void add_fact(struct report *report, const char *fmt, ...)
{
	va_list args;
	char *fact;

	va_start(args, fmt);
	if (vasprintf(&fact, fmt, args) < 0 ||
	    report->fact_count == sizeof(report->facts) / sizeof(report->facts[0]))
		die("no room for a fact");
	va_end(args);
	printf("%s\n\n", fact);
	report->facts[report->fact_count++] = fact;
}

bool bar_holds(const struct bar *bar)
{
	return bar->at_least ? bar->value >= bar->limit : bar->value <= bar->limit;
}

static void report_bar(const struct bar *bar)
{
	bool reached = bar->at_least ? bar->value >= bar->aim : bar->value <= bar->aim;

	printf("  %-52s %8.2f   %s %7.2f   %s", bar->name, bar->value, bar->at_least ? "≥" : "≤",
	       bar->limit, bar_holds(bar) ? "held" : "MISSED");
	if (bar->aim != 0)
		printf(", aim %.2f%s", bar->aim, reached ? " reached" : " not reached");
	putchar('\n');
}

void report_bars(const struct report *report, const struct machine *after)
{
	printf("  %-52s %8s   %9s\n", "bar", "measured", "demanded");
	for (size_t i = 0; i < report->bar_count; i++)
		report_bar(&report->bars[i]);
	printf("\nload average afterwards: %s\n", after->load);
}

static json_t *table_json(const struct table *table)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(rows,
				      json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "name",
						table->names[i], "min_us", table->stats[i].min_us,
						"p50_us", table->stats[i].p50_us, "p99_us",
						table->stats[i].p99_us, "ratio", ratio(table, i),
						"paired_ratio", table->stats[i].paired));
	return json_pack("{s:s, s:s, s:i, s:s, s:o}", "title", table->title, "pattern",
			 pattern_names[table->pattern], "rounds", (int)table->rounds, "base",
			 table->names[table->base], "rows", rows);
}

void report_json(const struct report *report, const struct machine *machine, const char *path)
{
	json_t *tables = json_array(), *bars = json_array(), *facts = json_array();

	for (size_t i = 0; i < report->table_count; i++)
		json_array_append_new(tables, table_json(&report->tables[i]));
	for (size_t i = 0; i < report->bar_count; i++)
		json_array_append_new(
			bars, json_pack("{s:s, s:f, s:f, s:b, s:b}", "name", report->bars[i].name,
					"value", report->bars[i].value, "limit",
					report->bars[i].limit, "at_least", report->bars[i].at_least,
					"held", bar_holds(&report->bars[i])));
	for (size_t i = 0; i < report->fact_count; i++)
		json_array_append_new(facts, json_string(report->facts[i]));
	json_t *root = json_pack("{s:{s:s, s:s, s:i, s:s, s:i, s:s, s:s}, s:o, s:o, s:o}",
				 "machine", "kernel", machine->kernel, "cpu", machine->cpu, "cpus",
				 machine->cpus, "pinning", machine->pinning, "mounts",
				 machine->mounts, "thp", machine->thp, "load", machine->load,
				 "tables", tables, "facts", facts, "bars", bars);

	/* what failed above shows here: a NULL cannot be dumped */
	if (json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0)
		die("write %s", path);
	json_decref(root);
}
