/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a supervisor that runs nothing. The test program is started as one by the client
 * itself, since VITRO_BINARY names it, and does what the names of the tools say. Each test sees
 * afterwards that no descriptor and no child is left, and that nobody was told of one.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/frame.h"
#include "base/head.h"
#include <vitro.h>

#define FAKE_CAPABILITIES "{\"level\": \"full\", \"files\": \"mountns\"}"

/* ---- the supervisor ------------------------------------------------------------------------- */

struct fake {
	struct vt_frames_in in;
	struct vt_frames_out out;
	struct vt_str head;
	int64_t calls;
	int pools;    /* that are open */
	int64_t late; /* the call that asks when it is told to end */
	struct {
		int64_t call, left;
	} askers[64];     /* and the answers that they wait for; 0: none */
	const char *mode; /* what is to go wrong, and where */
};

/* Ends as a supervisor that was killed does. */
static _Noreturn inline void fake_die(void)
{
	_exit(9);
}

static inline void fake_send(struct fake *fake, const char *head, const void *body, size_t len)
{
	struct vt_err err;
	int status = vt_frames_put(&fake->out, 3, head, strlen(head), body, len, &err);

	while (status == 0) {
		struct pollfd poller = { .fd = 3, .events = POLLOUT };

		(void)poll(&poller, 1, -1); /* it is tried again */
		status = vt_frames_flush(&fake->out, 3, &err);
	}
	if (status < 0)
		fake_die();
}

static inline void fake_raw(const void *bytes, size_t len)
{
	if (send(3, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		fake_die();
}

/* A result with a value and nothing else. */
static inline void fake_done(struct fake *fake, int64_t call, const char *status, const char *value,
			     size_t len)
{
	char head[512];

	(void)snprintf(
		head, sizeof(head),
		"{\"is\":\"done\",\"call\":%lld,\"status\":\"%s\",\"value\":%zu,\"stdout\":0,"
		"\"stderr\":0,\"exit_code\":-1,\"signal\":0,\"wall_ns\":1250000,\"cpu_ns\":500000,"
		"\"peak_kb\":100,\"processes\":1%s%s}",
		(long long)call, status, len,
		strcmp(status, "refused") == 0 ? "" : ",\"cell\":true",
		strcmp(status, "ok") == 0 ? ""
					  : ",\"error_type\":\"Type\",\"error\":\"the sentence\"");
	fake_send(fake, head, value, len);
}

static inline void fake_print(struct fake *fake, int64_t call)
{
	char head[512];

	(void)snprintf(head, sizeof(head), "{\"is\":\"output\",\"call\":%lld,\"stream\":1}",
		       (long long)call);
	fake_send(fake, head, "one\n", 4);
	/* Of a newer supervisor: what this client does not know is passed over. */
	(void)snprintf(head, sizeof(head), "{\"is\":\"what\",\"call\":%lld,\"more\":1.5}",
		       (long long)call);
	fake_send(fake, head, "three", 5);
	fake_send(fake, "{\"is\":\"whatever\"}", "", 0);
	(void)snprintf(head, sizeof(head), "{\"is\":\"log\",\"call\":%lld,\"level\":\"info\"}",
		       (long long)call);
	fake_send(fake, head, "a \"line\"\xff", 9);
	(void)snprintf(head, sizeof(head), "{\"is\":\"output\",\"call\":%lld,\"stream\":2}",
		       (long long)call);
	fake_send(fake, head, "two\0", 4);
	(void)snprintf(head, sizeof(head),
		       "{\"is\":\"done\",\"call\":%lld,\"status\":\"ok\",\"value\":4,\"stdout\":4,"
		       "\"stderr\":4,\"dropped_stderr\":7,\"exit_code\":0,\"signal\":0,"
		       "\"wall_ns\":12340000,\"cpu_ns\":0,\"peak_kb\":-1,\"processes\":3,"
		       "\"cell\":true,\"unreaped\":true,\"more\":\"new\"}",
		       (long long)call);
	fake_send(fake, head, "trueone\ntwo\0", 12);
}

/* Itself, as the client made it: pid, session, open descriptors, blocked and ignored signals. */
static inline void fake_tell(struct fake *fake, int64_t call)
{
	char value[1024], line[256];
	DIR *dir = opendir("/proc/self/fd");
	FILE *file = fopen("/proc/self/status", "re");
	size_t len = (size_t)snprintf(value, sizeof(value), "{\"pid\":%d,\"session\":%d", getpid(),
				      getsid(0));
	int fds = -3;

	if (!dir || !file)
		fake_die();
	while (readdir(dir))
		fds++;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "SigBlk:", 7) == 0 || strncmp(line, "SigIgn:", 7) == 0)
			len += (size_t)snprintf(value + len, sizeof(value) - len,
						",\"%.6s\":\"%.16s\"", line, line + 8);
	/* The file is open as well. */
	len += (size_t)snprintf(value + len, sizeof(value) - len, ",\"fds\":%d}", fds - 1);
	(void)fclose(file);
	(void)closedir(dir);
	fake_done(fake, call, "ok", value, len);
}

/* Frames, and what is none, of which none may harm the client. */
static const struct {
	const char *name, *head, *body;
} fake_garbage[] = {
	{ "no-head", "", "" },
	{ "no-json", "{", "" },
	{ "no-is", "{\"a\":1}", "" },
	{ "is-number", "{\"is\":1}", "" },
	{ "no-call", "{\"is\":\"done\",\"status\":\"ok\"}", "" },
	{ "other-call", "{\"is\":\"done\",\"call\":77,\"status\":\"ok\",\"value\":1}", "1" },
	{ "negative-call", "{\"is\":\"done\",\"call\":-1,\"status\":\"ok\",\"value\":1}", "1" },
	{ "no-status", "{\"is\":\"done\",\"call\":1,\"value\":1}", "1" },
	{ "odd-status", "{\"is\":\"done\",\"call\":1,\"status\":\"fine\",\"value\":1}", "1" },
	{ "too-long", "{\"is\":\"done\",\"call\":1,\"status\":\"ok\",\"value\":2}", "1" },
	{ "too-short", "{\"is\":\"done\",\"call\":1,\"status\":\"ok\",\"value\":1}", "12" },
	{ "negative-length",
	  "{\"is\":\"done\",\"call\":1,\"status\":\"ok\",\"value\":-1,\"stdout\":2}", "1" },
	{ "huge-length",
	  "{\"is\":\"done\",\"call\":1,\"status\":\"ok\",\"value\":9223372036854775807}", "1" },
	{ "no-stream", "{\"is\":\"output\",\"call\":1}", "x" },
	{ "odd-stream", "{\"is\":\"output\",\"call\":1,\"stream\":3}", "x" },
	{ "no-level", "{\"is\":\"log\",\"call\":1}", "x" },
	{ "no-ask", "{\"is\":\"ask\",\"call\":1,\"tool\":\"x\"}", "{}" },
	{ "no-tool", "{\"is\":\"ask\",\"call\":1,\"ask\":1}", "{}" },
	{ "a-pool", "{\"is\":\"pool\",\"pool\":1,\"ok\":true}", "{}" },
	{ "text-for-length", "{\"is\":\"done\",\"call\":1,\"status\":\"ok\",\"value\":\"1\"}", "" },
	{ "text-for-code", "{\"is\":\"done\",\"call\":1,\"status\":\"error\",\"exit_code\":\"1\"}",
	  "" },
	{ "odd-code", "{\"is\":\"done\",\"call\":1,\"status\":\"error\",\"exit_code\":256}", "" },
	{ "real-call", "{\"is\":\"output\",\"call\":1.0,\"stream\":1}", "" },
	{ "a-hello", "{\"is\":\"hello\",\"version\":1}", "" },
};

enum { FAKE_GARBAGE = sizeof(fake_garbage) / sizeof(fake_garbage[0]) };

/* What is not even a frame, or only part of one: whether it was sent. */
static inline bool fake_break(struct fake *fake, const char *how)
{
	if (strcmp(how, "die") == 0)
		fake_die();
	if (strcmp(how, "half") == 0) {
		fake_raw("\x40\0\0\0\x20\0\0\0{\"is\":", 14);
		fake_die();
	}
	if (strcmp(how, "prefix") == 0) {
		fake_raw("\x40\0\0", 3);
		fake_die();
	}
	if (strcmp(how, "lengths") == 0) {
		fake_raw("\x01\0\0\0\xff\xff\xff\xff", 8);
		return true;
	}
	for (int i = 0; i < FAKE_GARBAGE; i++) {
		if (strcmp(how, fake_garbage[i].name) == 0) {
			fake_send(fake, fake_garbage[i].head, fake_garbage[i].body,
				  strlen(fake_garbage[i].body));
			return true;
		}
	}
	return false;
}

/* Messages that are right or nearly so, in any order, for any call. The seed is in the body. */
static inline void fake_ramble(struct fake *fake, const char *body, size_t len)
{
	static const char *const heads[] = {
		"{\"is\":\"done\",\"call\":%d,\"status\":\"ok\",\"value\":%d,\"stdout\":%d}",
		"{\"is\":\"done\",\"call\":%d,\"status\":\"error\",\"stderr\":%d,\"signal\":%d}",
		"{\"is\":\"output\",\"call\":%d,\"stream\":%d}",
		"{\"is\":\"log\",\"call\":%d,\"level\":\"%d\"}",
		"{\"is\":\"log\",\"level\":%d}",
		"{\"is\":\"ask\",\"call\":%d,\"ask\":%d,\"tool\":\"hang\"}",
		"{\"is\":\"ask\",\"call\":%d,\"ask\":%d,\"tool\":\"mine\"}",
		"{\"is\":\"count\",\"ready\":%d}",
		"{\"is\":\"pool\",\"pool\":%d,\"ok\":true}",
	};
	static const char *const bodies[] = {
		"", "1", "{}", "[12]", "\"a\xff\"", "{\"a\":", "nul"
	};
	const char *digits = memchr(body, ':', len);
	unsigned seed = digits ? (unsigned)atoi(digits + 1) : 0;

	for (int i = 0; i < 40; i++) {
		char head[256];
		const char *text = bodies[(unsigned)rand_r(&seed) % 7];

		_Pragma("GCC diagnostic push");
		_Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"");
		(void)snprintf(head, sizeof(head),
			       heads[(unsigned)rand_r(&seed) % 7 + (i > 30) * 2], rand_r(&seed) % 6,
			       rand_r(&seed) % 5, rand_r(&seed) % 3);
		_Pragma("GCC diagnostic pop");
		fake_send(fake, head, text, strlen(text));
	}
	fake_die();
}

static inline void fake_ask(struct fake *fake, int64_t call, const char *body, size_t len)
{
	char head[256];

	/* {"ask":"NAME"}: it asks for that tool, with the same arguments. */
	const char *name = memmem(body, len, "\"ask\":\"", 7);
	const char *many = memmem(body, len, "\"times\":", 8);

	int64_t times = many ? atoi(many + 8) : 1;
	int slot = 0;

	while (fake->askers[slot].left)
		if (++slot == 64)
			fake_die();
	fake->askers[slot].call = call;
	fake->askers[slot].left = times;
	name = name ? name + 7 : "nothing\"";
	for (int64_t i = 1; i <= times; i++) {
		(void)snprintf(head, sizeof(head),
			       "{\"is\":\"ask\",\"call\":%lld,\"ask\":%lld,\"tool\":\"%.*s\"}",
			       (long long)call, (long long)i, (int)strcspn(name, "\""), name);
		fake_send(fake, head, body, len);
	}
}

static inline void fake_call(struct fake *fake, const struct vt_head *head, const char *body,
			     size_t len)
{
	const char *tool = vt_head_text(head, "tool", NULL);
	int64_t call = vt_head_int(head, "call", -1);
	int64_t input = vt_head_int(head, "stdin", -1);
	char text[1024];

	fake->calls++;
	if (input >= 0) {
		/* A command: what it would print is what it was given. */
		(void)snprintf(text, sizeof(text),
			       "{\"is\":\"done\",\"call\":%lld,\"status\":\"%s\",\"std%s\":%zu,"
			       "\"dropped_stdout\":%d,\"exit_code\":%d,\"error\":\"no\"}",
			       (long long)call, strcmp(tool, "fail") == 0 ? "error" : "ok",
			       strcmp(tool, "fail") == 0 ? "err" : "out", len,
			       strcmp(tool, "cut") == 0, strcmp(tool, "fail") == 0 ? 3 : 0);
		fake_send(fake, text, body, len);
	} else if (strcmp(tool, "echo") == 0) {
		fake_done(fake, call, "ok", body, len);
	} else if (strcmp(tool, "head") == 0) {
		(void)snprintf(text, sizeof(text),
			       "{\"pool\":%lld,\"id\":\"%s\",\"wall_ms\":%lld,\"stream\":%s}",
			       (long long)vt_head_int(head, "pool", -1),
			       vt_head_text(head, "id", NULL),
			       (long long)vt_head_int(head, "wall_ms", -1),
			       vt_head_flag(head, "stream", false) ? "true" : "false");
		fake_done(fake, call, "ok", text, strlen(text));
	} else if (strcmp(tool, "pools") == 0) {
		(void)snprintf(text, sizeof(text), "%d", fake->pools);
		fake_done(fake, call, "ok", text, strlen(text));
	} else if (strcmp(tool, "tell") == 0) {
		fake_tell(fake, call);
	} else if (strcmp(tool, "print") == 0) {
		fake_print(fake, call);
	} else if (strcmp(tool, "ask") == 0) {
		fake_ask(fake, call, body, len);
	} else if (strcmp(tool, "large") == 0) {
		size_t bytes = (size_t)20 << 20;
		char *value = malloc(bytes);

		memset(value, 'x', bytes);
		value[0] = value[bytes - 1] = '"';
		fake_done(fake, call, "ok", value, bytes);
		free(value);
	} else if (strcmp(tool, "late") == 0) {
		fake->late = call;
	} else if (strcmp(tool, "ramble") == 0) {
		fake_ramble(fake, body, len);
	} else if (strcmp(tool, "oops") == 0) {
		fake_done(fake, call, "ok", "{oops", 5);
	} else if (strcmp(tool, "hang") != 0 && !fake_break(fake, tool)) {
		fake_done(fake, call, tool, "1", 1); /* the tool's name is the status */
	}
}

static inline void fake_answer(struct fake *fake, const struct vt_head *head, const char *body,
			       size_t len)
{
	int64_t call = vt_head_int(head, "call", -1);

	int slot = 0;

	while (slot < 64 && (fake->askers[slot].call != call || !fake->askers[slot].left))
		slot++;
	if (slot == 64 || --fake->askers[slot].left > 0)
		return;
	if (vt_head_flag(head, "ok", false)) {
		fake_done(fake, call, "ok", body, len);
		return;
	}
	struct vt_err err;

	vt_head_begin(&fake->head);
	vt_head_add_text(&fake->head, "is", "done", 4);
	vt_head_add_int(&fake->head, "call", call);
	vt_head_add_text(&fake->head, "status", "error", 5);
	vt_head_add_text(&fake->head, "error", body, len);
	if (vt_head_end(&fake->head, &err) < 0)
		fake_die();
	fake_send(fake, fake->head.text, NULL, 0);
}

static inline void fake_pool(struct fake *fake, const struct vt_head *head, const char *body,
			     size_t len)
{
	char text[256];
	long long pool = (long long)vt_head_int(head, "pool", -1);

	if (strncmp(fake->mode, "pool-", 5) == 0 && fake_break(fake, fake->mode + 5))
		return;
	if (memmem(body, len, "refuse-me", 9)) {
		(void)snprintf(text, sizeof(text),
			       "{\"is\":\"pool\",\"pool\":%lld,\"ok\":false,\"num\":1,"
			       "\"error\":\"limits.cpus: cannot be enforced here\"}",
			       pool);
		fake_send(fake, text, NULL, 0);
		return;
	}
	fake->pools++;
	(void)snprintf(text, sizeof(text), "{\"is\":\"pool\",\"pool\":%lld,\"ok\":true}", pool);
	fake_send(fake, text, FAKE_CAPABILITIES "\n", strlen(FAKE_CAPABILITIES) + 1);
}

static inline void fake_take(struct fake *fake, const struct vt_head *head, const char *body,
			     size_t len)
{
	const char *what = vt_head_text(head, "do", NULL);
	char text[256];

	if (!what)
		fake_die();
	if (strcmp(what, "hello") == 0) {
		if (strncmp(fake->mode, "hello-", 6) == 0 && fake_break(fake, fake->mode + 6))
			return;
		const char *hello =
			strcmp(fake->mode, "newer") == 0
				? "{\"is\":\"hello\",\"version\":2,\"vitro\":\"9.0\"}"
			: strcmp(fake->mode, "other") == 0
				? "{\"is\":\"hello\",\"version\":1,\"vitro\":\"0.0.9\"}"
				: "{\"is\":\"hello\",\"version\":1,\"vitro\":\"0.1.0\"}";

		fake_send(fake, "{\"is\":\"log\",\"level\":4}", "hear me", 7);
		fake_send(fake, hello, NULL, 0);
	} else if (strcmp(what, "pool") == 0) {
		fake_pool(fake, head, body, len);
	} else if (strcmp(what, "drop") == 0) {
		if (--fake->pools < 0 || vt_head_int(head, "pool", -1) <= 0)
			fake_die();
	} else if (strcmp(what, "call") == 0) {
		fake_call(fake, head, body, len);
	} else if (strcmp(what, "cancel") == 0) {
		int64_t call = vt_head_int(head, "call", -1);

		(void)snprintf(text, sizeof(text),
			       "{\"is\":\"ask\",\"call\":%lld,\"ask\":1,\"tool\":\"mine\"}",
			       (long long)call);
		if (call == fake->late)
			fake_send(fake, text, "{}", 2);
		fake_done(fake, call, "cancelled", NULL, 0);
	} else if (strcmp(what, "answer") == 0) {
		fake_answer(fake, head, body, len);
	} else if (strcmp(what, "count") == 0) {
		(void)snprintf(text, sizeof(text),
			       "{\"is\":\"count\",\"ready\":%d,\"refilling\":1,\"live\":0,"
			       "\"waiting\":0,\"calls\":%lld,\"cells_made\":3,\"cold_calls\":-1}",
			       2 * fake->pools, (long long)fake->calls);
		fake_send(fake, text, NULL, 0);
	} else {
		fake_die();
	}
}

static inline int fake_supervise(void)
{
	const char *mode = getenv("FAKE_MODE");
	struct fake fake = { .mode = mode ? mode : "" };
	struct vt_frame frame;
	struct vt_head head;
	struct vt_err err;

	vt_str_init(&fake.head);
	vt_frames_in_init(&fake.in, VT_FRAME_MAX);
	vt_frames_out_init(&fake.out, SIZE_MAX);
	if (strcmp(fake.mode, "stillborn") == 0)
		return 1;
	for (;;) {
		struct pollfd poller = { .fd = 3, .events = POLLIN };
		int next = vt_frames_next(&fake.in, &frame, &err);

		if (next < 0)
			return 2;
		if (next > 0) {
			if (vt_head_parse(frame.head, frame.head_len, &head, &err) < 0)
				return 3;
			fake_take(&fake, &head, frame.body, frame.body_len);
			continue;
		}
		(void)poll(&poller, 1, -1); /* it is tried next */
		ssize_t got = vt_frames_read(&fake.in, 3, &err);

		if (got < 0) {
			vt_str_done(&fake.head);
			vt_frames_in_done(&fake.in);
			vt_frames_out_done(&fake.out);
			return got == -EPIPE ? 0 : 4;
		}
	}
}

/* ---- the tests' side ------------------------------------------------------------------------ */

static volatile sig_atomic_t fake_children;

static inline void fake_on_child(int number)
{
	(void)number;
	fake_children++;
}

static inline int fake_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -3; /* ".", ".." and the listing's own */

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir); /* only read from */
	return count;
}

/* To be called first in main(): the client starts this program. */
static inline void fake_begin(int argc, char **argv)
{
	char self[4096];

	if (argc > 1 && strcmp(argv[1], "supervise") == 0)
		exit(fake_supervise());
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0) {
		(void)puts("1..0 # SKIP there is no /proc/self/exe");
		exit(0);
	}
	self[len] = '\0';
	assert_int_equal(setenv("VITRO_BINARY", self, 1), 0);
	assert_ptr_not_equal(signal(SIGCHLD, fake_on_child), SIG_ERR);
}

static inline int fake_set_up(void **state)
{
	*state = (void *)(intptr_t)fake_count_fds();
	assert_int_equal(unsetenv("FAKE_MODE"), 0);
	return 0;
}

/* Nothing is left, and nobody was told of a child. */
static inline int fake_tear_down(void **state)
{
	int status;

	assert_int_equal(fake_count_fds(), (int)(intptr_t)*state);
	if (getpid() == 1) { /* to whom every orphan goes */
		while (waitpid(-1, &status, __WALL) > 0)
			continue;
		fake_children = 0;
	}
	assert_int_equal(fake_children, 0);
	assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, fake_set_up, fake_tear_down)

/* It is never run: the fake supervisor knows the tools by their names. */
static inline int fake_function(vitro_task *task)
{
	(void)task;
	return 0;
}

/* A tool host with these tools, ending with NULL, all of which may call all. */
static inline vitro_toolhost *fake_host(const char *const *names)
{
	static const char *const all[] = { "*", NULL };
	struct vitro_tool tools[32] = { { 0 } };
	vitro_toolhost *host = NULL;
	struct vitro_error error = { 0 };

	for (size_t i = 0; names[i]; i++) {
		assert_true(i < 31);
		tools[i].name = names[i];
		tools[i].function = fake_function;
		tools[i].may_call = all;
	}
	if (vitro_toolhost_new(&host, tools, NULL, &error) < 0)
		fail_msg("%s", error.text);
	return host;
}

#define FAKE_HOST(...) fake_host((const char *const[]){ __VA_ARGS__, NULL })

/* Waits on the descriptor, as a program's own loop does, and dispatches. */
static inline int fake_turn(vitro_toolhost *host)
{
	struct pollfd poller = { .fd = vitro_toolhost_fd(host), .events = POLLIN };

	assert_int_equal(poll(&poller, 1, 20000), 1);
	return vitro_dispatch(host);
}
