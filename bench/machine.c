/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"

static void first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(line, (int)size, file))
		(void)snprintf(line, size, "not known");
	line[strcspn(line, "\n")] = '\0';
	if (file)
		(void)fclose(file); /* only read from */
}

static int count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	int count = 0, byte;

	if (!file)
		return -1;
	while ((byte = getc(file)) != EOF)
		count += byte == '\n';
	(void)fclose(file); /* only read from */
	return count;
}

static void cpu_model(char *model, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	(void)snprintf(model, size, "not known");
	while (file && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(model, size, "%.*s", (int)size - 1, colon + 2);
		break;
	}
	if (file)
		(void)fclose(file); /* only read from */
}

static void pinning(struct machine *machine)
{
	cpu_set_t set;
	int used = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;

	if (used == machine->cpus)
		(void)snprintf(machine->pinning, sizeof(machine->pinning), "none");
	else
		(void)snprintf(machine->pinning, sizeof(machine->pinning), "%d of %d CPUs", used,
			       machine->cpus);
}

/* The one in use stands in brackets: "always [madvise] never". */
static void keep_bracketed(char *text)
{
	char *open = strchr(text, '['), *close = strchr(text, ']');

	if (!open || !close || close < open)
		return;
	*close = '\0';
	memmove(text, open + 1, strlen(open + 1) + 1);
}

void machine_look(struct machine *ret_machine)
{
	struct machine machine = { .cpus = (int)sysconf(_SC_NPROCESSORS_ONLN) };
	struct utsname name;

	if (uname(&name) == 0)
		(void)snprintf(machine.kernel, sizeof(machine.kernel), "%s %s %s", name.sysname,
			       name.release, name.machine);
	cpu_model(machine.cpu, sizeof(machine.cpu));
	machine.mounts = count_lines("/proc/self/mountinfo");
	first_line("/sys/kernel/mm/transparent_hugepage/enabled", machine.thp, sizeof(machine.thp));
	keep_bracketed(machine.thp);
	first_line("/proc/loadavg", machine.load, sizeof(machine.load));
	pinning(&machine);
	*ret_machine = machine;
}
