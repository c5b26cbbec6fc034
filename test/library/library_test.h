/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the library through a real supervisor. They are linked with it as other programs are, and know
 * nothing of vitro's but the header.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vitro.h>

#include "../../src/base/skip_test.h" /* which is cmocka's alone */

/* A tool host, or the test is skipped where the machine cannot hold what its policy asks for. */
static inline vitro_toolhost *host_of(const struct vitro_tool *tools, const struct vitro_options *options)
{
	vitro_toolhost *host = NULL;
	struct vitro_error error = { 0 };

	if (vitro_toolhost_new(&host, tools, options, &error) < 0) {
		if (strncmp(error.text, "refused: ", 9) == 0)
			SKIP("%s", error.text);
		fail_msg("%s", error.text);
	}
	return host;
}

static inline vitro_result *call(vitro_toolhost *host, const char *tool, const char *arguments)
{
	return vitro_call(host, &(struct vitro_request){ .tool = tool, .arguments = arguments });
}

/* Whether its cells have namespaces. Without them some of what holds is of another kind. */
static inline int has_namespaces(vitro_toolhost *host)
{
	char *text = vitro_toolhost_capabilities(host, NULL);
	int has = text && strstr(text, "\"processes\": \"pidns\"");

	free(text);
	return has;
}

static inline void assert_status(const vitro_result *result, enum vitro_status wanted)
{
	if (vitro_result_status(result) != wanted)
		fail_msg("%s: %s; %s", vitro_status_name(vitro_result_status(result)),
			 vitro_result_error(result),
			 vitro_result_output(result, VITRO_STDERR, NULL));
}

static inline void assert_value(vitro_toolhost *host, const char *tool, const char *arguments,
			 const char *wanted)
{
	vitro_result *result = call(host, tool, arguments);

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), wanted);
	vitro_result_free(result);
}

static inline void assert_error(vitro_toolhost *host, const char *tool, const char *arguments,
			 const char *type, const char *text)
{
	vitro_result *result = call(host, tool, arguments);

	assert_status(result, VITRO_ERROR);
	assert_string_equal(vitro_result_error_type(result), type);
	if (!strstr(vitro_result_error(result), text))
		fail_msg("'%s' lacks '%s'", vitro_result_error(result), text);
	vitro_result_free(result);
}

static inline vitro_policy *policy_of(const char *key, const char *value)
{
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error;

	if (vitro_policy_set(policy, key, value, &error) < 0)
		fail_msg("%s", error.text);
	return policy;
}

static inline void keep(void *user, vitro_result *result)
{
	*(vitro_result **)user = result;
}

static inline void turn(vitro_toolhost *host)
{
	struct pollfd poller = { .fd = vitro_toolhost_fd(host), .events = POLLIN };

	assert_true(poll(&poller, 1, 20000) > 0);
	(void)vitro_dispatch(host);
}
