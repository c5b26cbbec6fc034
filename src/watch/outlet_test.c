/* SPDX-License-Identifier: Apache-2.0 */
/* Each body runs in a child that an alarm ends: what blocks fails, and does not hang. */
#include "kernel/child_test.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <termios.h>

#include "watch/outlet.h"

enum { TOO_LONG_S = 10 };

static char block[100000];

/* Writes until it would block. Returns how much went in; it must have been something. */
static size_t fill(const struct vt_outlet *outlet)
{
	size_t total = 0;
	ssize_t n;

	while ((n = vt_outlet_write(outlet, block, sizeof(block))) > 0) {
		total += (size_t)n;
		MUST(total < 64 << 20);
	}
	MUST(n == -EAGAIN);
	MUST(total > 0);
	/* and once more: it does not wait now either */
	MUST(vt_outlet_write(outlet, block, 1) == -EAGAIN);
	return total;
}

/* Takes n bytes out of a reading end. */
static void drain(int fd, size_t n)
{
	char buffer[4096];

	while (n > 0) {
		ssize_t got = read(fd, buffer, n < sizeof(buffer) ? n : sizeof(buffer));

		MUST(got > 0);
		n -= (size_t)got;
	}
}

static void fills_a_pipe(void *arg)
{
	struct vt_outlet outlet;
	int ends[2];

	(void)arg;
	(void)alarm(TOO_LONG_S); /* returns the old one: none */
	MUST(pipe(ends) == 0);
	int before = count_fds();

	vt_outlet_init(&outlet, ends[1]);
	MUST(outlet.kind == VT_OUTLET_OWN && outlet.fd != ends[1]);
	MUST(fcntl(outlet.fd, F_GETFD) & FD_CLOEXEC);
	MUST(fill(&outlet) == 65536);
	/* whoever shares the description finds it as it was */
	MUST(!(fcntl(ends[1], F_GETFL) & O_NONBLOCK));
	drain(ends[0], 5000);
	MUST(vt_outlet_write(&outlet, block, 10) == 10);
	vt_outlet_done(&outlet);
	MUST(count_fds() == before);
	MUST(fcntl(ends[1], F_GETFD) >= 0);
}

static void test_pipe(void **state)
{
	(void)state;
	run_child(fills_a_pipe, NULL);
}

static void reader_leaves(void *arg)
{
	struct vt_outlet outlet;
	int ends[2];

	(void)arg;
	MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	MUST(pipe(ends) == 0);
	vt_outlet_init(&outlet, ends[1]);
	MUST(close(ends[0]) == 0);
	MUST(vt_outlet_write(&outlet, "x", 1) == -EPIPE);
	vt_outlet_done(&outlet);
	/* gone before we came: there is nothing to open anew, and writing says so */
	vt_outlet_init(&outlet, ends[1]);
	MUST(vt_outlet_write(&outlet, "x", 1) == -EPIPE);
	vt_outlet_done(&outlet);
}

static void test_reader_leaves(void **state)
{
	(void)state;
	run_child(reader_leaves, NULL);
}

/* A pipe of somebody else's cannot be opened anew: it is asked first. */
static void polls_a_pipe(void *arg)
{
	int ends[2];
	struct vt_outlet outlet;

	(void)arg;
	(void)alarm(TOO_LONG_S); /* returns the old one: none */
	MUST(pipe(ends) == 0);
	outlet = (struct vt_outlet){ .kind = VT_OUTLET_POLLED, .fd = ends[1] };
	MUST(fill(&outlet) > 32768);
	MUST(!(fcntl(ends[1], F_GETFL) & O_NONBLOCK));
	vt_outlet_done(&outlet);
	MUST(fcntl(ends[1], F_GETFD) >= 0); /* it is not ours to close */
}

static void test_polled_pipe(void **state)
{
	(void)state;
	run_child(polls_a_pipe, NULL);
}

static void fills_a_socket(void *arg)
{
	struct vt_outlet outlet;
	int pair[2];

	(void)arg;
	(void)alarm(TOO_LONG_S); /* returns the old one: none */
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	vt_outlet_init(&outlet, pair[1]);
	MUST(outlet.kind == VT_OUTLET_SOCKET);
	size_t total = fill(&outlet);

	MUST(!(fcntl(pair[1], F_GETFL) & O_NONBLOCK));
	drain(pair[0], total);
	MUST(vt_outlet_write(&outlet, block, 10) == 10);
	/* no SIGPIPE, though nobody has ignored it */
	MUST(close(pair[0]) == 0);
	MUST(vt_outlet_write(&outlet, block, 10) == -EPIPE);
	vt_outlet_done(&outlet);
}

static void test_socket(void **state)
{
	(void)state;
	run_child(fills_a_socket, NULL);
}

static void writes_a_file(void *arg)
{
	char name[] = "/tmp/vitro-outlet-XXXXXX", text[8] = "";
	struct vt_outlet outlet;

	(void)arg;
	int fd = mkstemp(name);

	MUST(fd >= 0 && unlink(name) == 0);
	vt_outlet_init(&outlet, fd);
	MUST(outlet.kind == VT_OUTLET_FILE);
	MUST(write(fd, "<", 1) == 1);
	/* at the description's own position, not over what others wrote */
	MUST(vt_outlet_write(&outlet, "text", 4) == 4);
	MUST(write(fd, ">", 1) == 1);
	vt_outlet_done(&outlet);
	MUST(pread(fd, text, 7, 0) == 6 && strcmp(text, "<text>") == 0);
	/* a disk that is full is an error, and not a matter of waiting */
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	vt_outlet_init(&outlet, full);
	MUST(vt_outlet_write(&outlet, "x", 1) == -ENOSPC);
	vt_outlet_done(&outlet);
	int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);

	vt_outlet_init(&outlet, closed);
	MUST(vt_outlet_write(&outlet, "x", 1) == -EBADF);
}

static void test_file(void **state)
{
	(void)state;
	run_child(writes_a_file, NULL);
}

/* A terminal whose screen nobody reads, as one is that was stopped by ^S. */
static void fills_a_terminal(void *arg)
{
	const struct termios *modes = arg;
	struct vt_outlet outlet;
	int screen, terminal;

	(void)alarm(TOO_LONG_S);            /* returns the old one: none */
	memset(block, '\n', sizeof(block)); /* each becomes two, where output is processed */
	MUST(openpty(&screen, &terminal, NULL, modes, NULL) == 0);
	int before = count_fds();

	vt_outlet_init(&outlet, terminal);
	MUST(isatty(outlet.fd));
	struct pollfd ready = { .fd = outlet.fd, .events = POLLOUT };
	int turns = 0;

	/* The kernel makes some room later on; it ends, or a loop that waits for it would spin. */
	do {
		ssize_t n;

		while ((n = vt_outlet_write(&outlet, block, sizeof(block))) > 0)
			;
		MUST(n == -EAGAIN);
		MUST(turns++ < 1000);
	} while (poll(&ready, 1, 50) == 1);
	MUST(!(fcntl(terminal, F_GETFL) & O_NONBLOCK));
	drain(screen, 2000);
	vt_outlet_done(&outlet);
	MUST(count_fds() == before);
	MUST(fcntl(terminal, F_GETFD) >= 0);
}

static void stops_a_terminal(void *arg)
{
	struct vt_outlet outlet;
	int screen, terminal;
	char text[4];

	(void)arg;
	(void)alarm(TOO_LONG_S); /* returns the old one: none */
	MUST(openpty(&screen, &terminal, NULL, NULL, NULL) == 0);
	vt_outlet_init(&outlet, terminal);
	MUST(vt_outlet_write(&outlet, "a", 1) == 1);
	MUST(tcflow(terminal, TCOOFF) == 0);
	MUST(vt_outlet_write(&outlet, "b", 1) == -EAGAIN);
	MUST(tcflow(terminal, TCOON) == 0);
	MUST(vt_outlet_write(&outlet, "c", 1) == 1);
	/* byte by byte: the kernel may hand them on one at a time */
	MUST(read(screen, text, 1) == 1 && read(screen, text + 1, 1) == 1);
	MUST(memcmp(text, "ac", 2) == 0);
}

/* To open the other side of a terminal anew is to make another terminal. */
static void leaves_a_master(void *arg)
{
	struct vt_outlet outlet;
	int screen, terminal;
	char text[4];

	(void)arg;
	(void)alarm(TOO_LONG_S); /* returns the old one: none */
	MUST(openpty(&screen, &terminal, NULL, NULL, NULL) == 0);
	vt_outlet_init(&outlet, screen);
	MUST(outlet.kind == VT_OUTLET_POLLED && outlet.fd == screen);
	MUST(vt_outlet_write(&outlet, "ab\n", 3) == 3);
	MUST(read(terminal, text, 3) == 3 && memcmp(text, "ab\n", 3) == 0);
}

static void test_terminal(void **state)
{
	struct termios raw;

	(void)state;
	memset(&raw, 0, sizeof(raw));
	cfmakeraw(&raw);
	run_child(fills_a_terminal, NULL);
	run_child(fills_a_terminal, &raw);
	run_child(stops_a_terminal, NULL);
	run_child(leaves_a_master, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipe),        cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_polled_pipe), cmocka_unit_test(test_socket),
		cmocka_unit_test(test_file),        cmocka_unit_test(test_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
