/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of a server whose clients are no library: frames that are written by hand, and beside
 * them a client that behaves, whose calls are to go on as ever. Its program has a tool "echo".
 */
#pragma once

#include "serve_test.h"

/* ---- frames by hand ------------------------------------------------------------------------- */

static inline bool send_all(int fd, const void *bytes, size_t len)
{
	for (const char *at = bytes; len;) {
		ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		len -= (size_t)sent;
	}
	return true;
}

static inline bool send_frame(int fd, const char *head, const char *body, size_t body_len)
{
	const uint32_t prefix[2] = { (uint32_t)(strlen(head) + body_len), (uint32_t)strlen(head) };

	return send_all(fd, prefix, sizeof(prefix)) && send_all(fd, head, strlen(head)) &&
	       send_all(fd, body, body_len);
}

static inline bool receive_all(int fd, char *bytes, size_t len)
{
	while (len) {
		ssize_t got = recv(fd, bytes, len, 0);

		if (got <= 0)
			return false;
		bytes += got;
		len -= (size_t)got;
	}
	return true;
}

/* The next frame's head; its body is skipped. False: it is the end. */
static inline bool receive_frame(int fd, char head[4096])
{
	uint32_t prefix[2];
	char skipped[4096];

	if (!receive_all(fd, (char *)prefix, sizeof(prefix)) || prefix[1] >= 4096 ||
	    !receive_all(fd, head, prefix[1]))
		return false;
	head[prefix[1]] = '\0';
	for (size_t left = prefix[0] - prefix[1]; left;) {
		size_t most = left < sizeof(skipped) ? left : sizeof(skipped);

		if (!receive_all(fd, skipped, most))
			return false;
		left -= most;
	}
	return true;
}

/* Within so long the server has closed it. What it said before is in text. */
static inline void assert_closed(int fd, char *text, size_t size)
{
	struct timeval patience = { .tv_sec = 20 };
	size_t len = 0;
	ssize_t got;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	while ((got = recv(fd, text + len, size - 1 - len, 0)) > 0 && len < size - 1)
		len += (size_t)got;
	if (got < 0 && errno != ECONNRESET)
		fail_msg("it is not closed: %s", strerror(errno));
	for (size_t i = 0; i < len; i++)
		text[i] = text[i] ? text[i] : '.';
	text[len] = '\0';
}

static inline int greet(void)
{
	int fd = connect_raw();
	char head[4096];

	assert_true(fd >= 0);
	assert_true(send_frame(fd, "{\"do\":\"hello\",\"version\":1}", NULL, 0));
	assert_true(receive_frame(fd, head));
	assert_non_null(strstr(head, "\"is\":\"hello\""));
	return fd;
}

/* A pool of this program, as number 1, whose calls wait for as long as a slow machine needs. */
static inline int greet_with_pool(void)
{
	static const char patient[] = "[{\"key\":\"limits.queue_ms\",\"value\":\"10m\"}]";
	int fd = greet();
	char program[PATH_MAX], head[PATH_MAX + 64];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	assert_true(len > 0);
	program[len] = '\0';
	(void)snprintf(head, sizeof(head), "{\"do\":\"pool\",\"pool\":1,\"program\":\"%s\"}",
		       program);
	assert_true(send_frame(fd, head, patient, sizeof(patient) - 1));
	assert_true(receive_frame(fd, head));
	assert_non_null(strstr(head, "\"ok\":true"));
	return fd;
}

/* ---- connections of other processes --------------------------------------------------------- */

static inline void pass_fd(int socket_fd, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec byte = { &(char){ 0 }, 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(part), &fd, sizeof(int));
	if (sendmsg(socket_fd, &message, 0) != 1)
		_exit(1);
}

static inline int take_fd(int socket_fd)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	int fd;

	if (recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		fail_msg("who is apart cannot connect");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* So many that one other process has made, each as `how` does: they are of one client, which is not ours. */
static inline void connect_apart(int (*how)(void), int *ret_fds, int count)
{
	int pair[2], status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < count; i++)
			pass_fd(pair[1], how());
		_exit(0);
	}
	(void)close(pair[1]);
	for (int i = 0; i < count; i++)
		ret_fds[i] = take_fd(pair[0]);
	(void)close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* ---- floods --------------------------------------------------------------------------------- */

/* As much as it takes now of a frame that is sent again and again, from there on. */
static inline size_t feed(int fd, const char *frame, size_t len, size_t at)
{
	ssize_t sent;

	while ((sent = send(fd, frame + at, len - at, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		at = (at + (size_t)sent) % len;
	return at;
}

static inline int64_t time_count(int fd)
{
	int64_t begun = now_ms();
	char head[4096];

	assert_true(send_frame(fd, "{\"do\":\"count\"}", NULL, 0));
	assert_true(receive_frame(fd, head));
	return now_ms() - begun;
}

/* While a frame is sent on all of these again and again, for so long: whoever counts on fd waits for less, on average. */
static inline void assert_flood(int fd, const int *fds, int count, const char *frame, size_t len, int most_ms)
{
	size_t *at = calloc((size_t)count, sizeof(*at));
	int64_t all = 0;
	int counts = 0;

	assert_non_null(at);
	for (int64_t until = now_ms() + 3000; now_ms() < until; counts++) {
		for (int i = 0; i < count; i++)
			at[i] = feed(fds[i], frame, len, at[i]);
		all += time_count(fd);
	}
	print_message("%d counts, of %d ms each\n", counts, (int)(all / counts));
	assert_true(all / counts < most_ms);
	free(at);
}

/* ---- who behaves ---------------------------------------------------------------------------- */

static struct server server;
static vitro_toolhost *good;

static inline void begin_good(const char *const *flags, const struct vitro_tool *tools)
{
	start_server(&server, flags);
	good = join_server(tools);
	assert_value(good, "echo", "{\"n\":0}", "{\"n\":0}");
}

/* It is served, and no call of it takes long: the longest is told. */
static inline void assert_good(void)
{
	char arguments[32];
	int64_t longest = 0;

	for (int i = 0; i < 20; i++) {
		int64_t begun = now_ms();

		(void)snprintf(arguments, sizeof(arguments), "{\"n\":%d}", i);
		assert_value(good, "echo", arguments, arguments);
		longest = now_ms() - begun > longest ? now_ms() - begun : longest;
	}
	if (longest > 5000)
		fail_msg("a call of another client took %d ms", (int)longest);
}

static inline void end_good(void)
{
	assert_good();
	vitro_toolhost_free(good);
	stop_server(&server);
}
