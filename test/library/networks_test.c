/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell of a pool reaches, by each kind of network. */
#include "library_test.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* Of 127.0.0.1; *port 0: any. */
static int listen_at(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	*port = ntohs(at.sin_port);
	return fd;
}

/* Which error keeps it from a port: that of its argument, or without one from a listener of its
 * own. */
static int reach(vitro_task *task)
{
	const char *argument = strchr(vitro_task_arguments(task, NULL), ':');
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	uint16_t port = argument ? (uint16_t)atoi(argument + 1) : 0;
	int listener = argument ? 0 : listen_at(&port), error = 0;
	char text[16];

	at.sin_port = htons(port);
	if (listener < 0)
		error = -listener;
	else if (connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&at,
			 sizeof(at)) < 0)
		error = errno == EBADF ? EACCES : errno;
	(void)snprintf(text, sizeof(text), "%d", error);
	return vitro_task_return(task, text);
}

static const struct vitro_tool own[] = { { .name = "reach", .function = reach }, { 0 } };

static int64_t reached(vitro_toolhost *host, const char *arguments)
{
	vitro_result *result = call(host, "reach", arguments);

	assert_status(result, VITRO_OK);
	int64_t error = atoi(vitro_result_value(result, NULL));

	vitro_result_free(result);
	return error;
}

/* Each of the three, twice: in cells that are new, and in those that come after others. */
static void test_networks(void **state)
{
	(void)state;
	static const char *const networks[] = { "none", "loopback", "host" };
	char arguments[32];
	uint16_t port;
	int listener = listen_at(&port);
	int bare = 0;

	assert_true(listener >= 0);
	(void)snprintf(arguments, sizeof(arguments), "{\"port\": %d}", port);
	for (int i = 0; i < 3; i++) {
		if (i == 1 && bare) /* has no loopback of its own */
			continue;
		vitro_policy *policy = policy_of("network", networks[i]);
		vitro_toolhost *host = host_of(own, &(struct vitro_options){ .policy = policy });

		bare = !has_namespaces(host);
		for (int j = 0; j < 6; j++) {
			if (i == 2)
				assert_int_equal(reached(host, arguments), 0);
			else
				assert_int_not_equal(reached(host, arguments), 0);
			if (i == 0)
				assert_int_not_equal(reached(host, "{}"), 0);
			else
				assert_int_equal(reached(host, "{}"), 0);
		}
		vitro_toolhost_free(host);
		vitro_policy_free(policy);
	}
	close(listener);
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, own);
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_networks) };

	if (argc < 2 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
