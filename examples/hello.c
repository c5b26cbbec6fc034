/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest tool there is: a function of this program, called in a sealed process of its own. */
#include <stdio.h>

#include <vitro.h>

static int hello(vitro_task *task)
{
	return vitro_task_return(task, "\"hello\"");
}

static const struct vitro_tool tools[] = { { .name = "hello", .function = hello }, { 0 } };

int main(int argc, char **argv)
{
	vitro_toolhost *host;
	struct vitro_error error;

	vitro_host_main(argc, argv, tools);
	if (vitro_toolhost_new(&host, tools, NULL, &error) < 0)
		return fprintf(stderr, "%s\n", error.text), 1;
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "hello" });

	fputs(vitro_result_json(result), stdout);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	return 0;
}
