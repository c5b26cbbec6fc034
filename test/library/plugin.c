/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object with tools, as others make one: it is linked with nothing of vitro's. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <vitro.h>

vitro_function plugin_twice, plugin_surroundings, plugin_count;

/* What its constructor could reach, in the process that loads it. */
static int opened_secret, saw_host;

__attribute__((constructor)) static void look_around(void)
{
	int fd = open("/etc/shadow", O_RDONLY);

	opened_secret = fd >= 0;
	if (fd >= 0)
		(void)close(fd);
	saw_host = access("/var/lib/dpkg/status", R_OK) == 0;
}

int plugin_twice(vitro_task *task)
{
	const char *arguments = vitro_task_arguments(task, NULL);
	char value[64];
	int number = 0;

	if (sscanf(arguments, "{\"n\": %d}", &number) != 1)
		return vitro_task_fail(task, "ValueError", "n must be a number");
	(void)snprintf(value, sizeof(value), "%d", 2 * number);
	(void)vitro_task_log(task, "info", "doubled");
	return vitro_task_return(task, value);
}

int plugin_surroundings(vitro_task *task)
{
	char value[512];

	(void)snprintf(value, sizeof(value), "{\"shadow\": %d, \"host\": %d}", opened_secret,
		       saw_host);
	return vitro_task_return(task, value);
}

/* Each call starts from what was there when the object was loaded. */
int plugin_count(vitro_task *task)
{
	static int calls;
	char value[16];

	(void)snprintf(value, sizeof(value), "%d", ++calls);
	return vitro_task_return(task, value);
}
