/* SPDX-License-Identifier: Apache-2.0 */
/* A program that embeds the library and nothing else of vitro's: the tests compile and run it. */
#include <stdio.h>
#include <string.h>
#include <vitro.h>

static const char *const words[] = { "echo", "{text}", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "say", .command = words },
	{ 0 },
};

/* The supervisor is no such program: what is looked at is that the library gets that far, and says
 * so. */
int main(void)
{
	vitro_policy *policy = vitro_policy_new();
	struct vitro_options options = { .policy = policy };
	struct vitro_error error = { 0 };
	vitro_toolhost *host = NULL;

	if (vitro_policy_set(policy, "limits.wall_ms", "5s", &error) < 0)
		return puts(error.text), 1;
	int status = vitro_toolhost_new(&host, tools, &options, &error);

	vitro_policy_free(policy);
	printf("%s %d %s\n", vitro_version(), status, error.text);
	return 0;
}
