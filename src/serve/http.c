/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/stranger.h"
#include "serve/listen.h"

enum { VISITORS_MAX = 16, REQUEST_MAX = 4096 };

/* How long one may take, for its question and for the answer. */
#define PATIENCE (5 * VT_NS_PER_S)
/* Without a descriptor for the next one: how long nobody is let in. */
#define PAUSE (100 * VT_NS_PER_MS)

struct visitor {
	struct vt_http *http;
	struct vt_watch watch; /* fd is -1: nobody */
	bool wary;
	char request[REQUEST_MAX];
	size_t len;
	struct vt_str answer;
	size_t sent;
	int64_t until;
};

struct vt_http {
	struct vt_loop *loop;
	struct vt_children *children;
	struct vt_listener listener; /* of a path; its fd is -1 where it is a port's */
	struct vt_watch door;
	bool wary; /* those who wait at it may have sent descriptors */
	struct vt_timer timer;
	int64_t paused_until; /* nobody is let in before; 0: somebody is */
	struct visitor visitors[VISITORS_MAX];
	void (*page)(void *user, struct vt_str *out);
	void *user;
};

/* ---- a visitor ------------------------------------------------------------------------------ */

static void let_go(struct visitor *visitor)
{
	vt_loop_remove(visitor->http->loop, &visitor->watch);
	vt_children_shut(visitor->http->children, &visitor->watch.fd, visitor->wary);
	vt_str_done(&visitor->answer);
	vt_str_init(&visitor->answer);
	visitor->len = visitor->sent = 0;
}

static void answer(struct visitor *visitor, const char *status, const char *type,
		   const struct vt_str *body)
{
	vt_str_addf(&visitor->answer,
		    "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: "
		    "close\r\n\r\n",
		    status, type, body->len);
	if (strncmp(visitor->request, "HEAD ", 5) != 0)
		vt_str_addn(&visitor->answer, body->text, body->len);
}

/* "GET /metrics HTTP/1.1", with or without a question behind it. */
static bool asks_for(const char *request, const char *method, const char *path)
{
	size_t method_len = strlen(method), path_len = strlen(path);

	return strncmp(request, method, method_len) == 0 && request[method_len] == ' ' &&
	       strncmp(request + method_len + 1, path, path_len) == 0 &&
	       strchr(" ?\r\n", request[method_len + 1 + path_len]);
}

/* Of a header's value, up to its line's end. */
static bool names_us(const char *value)
{
	static const char *const names[] = { "127.0.0.1", "[::1]", "localhost" };
	size_t len = strcspn(value, "\r\n");

	while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t own = strlen(names[i]);

		if (len >= own && strncasecmp(value, names[i], own) == 0 &&
		    (len == own ||
		     (value[own] == ':' && strspn(value + own + 1, "0123456789") == len - own - 1)))
			return true;
	}
	return false;
}

/*
 * A page of a browser may have a name of its own lead to this port, and then reads what it says.
 * But the browser names it as the page does. Who says no name is no browser.
 */
static bool is_for_us(const struct visitor *visitor)
{
	const char *line = visitor->request;

	if (visitor->http->listener.fd >= 0)
		return true; /* a path, which no browser speaks to */
	while ((line = strchr(line, '\n'))) {
		line++;
		if (strncasecmp(line, "Host:", 5) == 0 &&
		    !names_us(line + 5 + strspn(line + 5, " \t")))
			return false;
	}
	return true;
}

static void make_answer(struct visitor *visitor)
{
	static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
	const char *request = visitor->request;
	bool is_get = strncmp(request, "GET ", 4) == 0 || strncmp(request, "HEAD ", 5) == 0;
	struct vt_str body;

	vt_str_init(&body);
	if (!is_for_us(visitor)) {
		vt_str_add(&body,
			   "there is no such host here: ask 127.0.0.1, [::1] or localhost\n");
		answer(visitor, "421 Misdirected Request", "text/plain", &body);
	} else if (asks_for(request, "GET", "/metrics") || asks_for(request, "HEAD", "/metrics")) {
		visitor->http->page(visitor->http->user, &body);
		answer(visitor, "200 OK", text_type, &body);
	} else if (is_get) {
		vt_str_add(&body, "there is /metrics, and nothing else\n");
		answer(visitor, "404 Not Found", "text/plain", &body);
	} else {
		vt_str_add(&body, "only GET is understood\n");
		answer(visitor, "405 Method Not Allowed", "text/plain", &body);
	}
	vt_str_done(&body);
}

/* Whether there is more to come, or to send. */
static bool send_answer(struct visitor *visitor)
{
	const struct vt_str *text = &visitor->answer;
	struct vt_err err;

	if (!vt_str_ok(text))
		return false;
	ssize_t sent = send(visitor->watch.fd, text->text + visitor->sent,
			    text->len - visitor->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	visitor->sent += (size_t)sent;
	if (visitor->sent == text->len) {
		(void)shutdown(visitor->watch.fd, SHUT_WR); /* he may be gone */
		return false;
	}
	vt_loop_remove(visitor->http->loop, &visitor->watch);
	return vt_loop_add(visitor->http->loop, &visitor->watch, EPOLLOUT, &err) == 0;
}

static bool read_request(struct visitor *visitor)
{
	size_t room = sizeof(visitor->request) - 1 - visitor->len;
	ssize_t got = (visitor->wary ? vt_stranger_recv : recv)(
		visitor->watch.fd, visitor->request + visitor->len, room, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	visitor->len += (size_t)got;
	visitor->request[visitor->len] = '\0';
	if (strstr(visitor->request, "\r\n\r\n") || strstr(visitor->request, "\n\n")) {
		make_answer(visitor);
		return send_answer(visitor);
	}
	return visitor->len < sizeof(visitor->request) - 1;
}

static void visitor_ready(struct vt_watch *source, uint32_t events)
{
	struct visitor *visitor = source->owner;

	(void)events; /* who is gone is found to be by the next call */
	if (!(visitor->answer.len ? send_answer(visitor) : read_request(visitor)))
		let_go(visitor);
}

/* Whoever waits there would wake the loop at once, over and over. */
static void close_for_now(struct vt_http *http, int64_t now)
{
	http->paused_until = now + PAUSE;
	vt_loop_remove(http->loop, &http->door);
	vt_timer_hasten(&http->timer, http->paused_until);
}

static bool open_again(struct vt_http *http, int64_t now)
{
	struct vt_err err;
	bool opened = vt_loop_add(http->loop, &http->door, EPOLLIN, &err) == 0;

	http->paused_until = opened ? 0 : now + PAUSE;
	return opened;
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_http *http = timer->owner;
	int64_t now = vt_clock_now(), due = INT64_MAX;

	if (http->paused_until && (http->paused_until > now || !open_again(http, now)))
		due = http->paused_until;
	for (size_t i = 0; i < VISITORS_MAX; i++) {
		struct visitor *visitor = &http->visitors[i];

		if (visitor->watch.fd >= 0 && visitor->until <= now)
			let_go(visitor);
		if (visitor->watch.fd >= 0 && visitor->until < due)
			due = visitor->until;
	}
	vt_timer_set(timer, due);
}

/* Nobody's place, or that of who has been here for longest without a whole question: whoever asks
 * at once is answered, however many others wait for nothing. NULL: all are being answered. */
static struct visitor *find_place(struct vt_http *http)
{
	struct visitor *oldest = NULL;

	for (size_t i = 0; i < VISITORS_MAX; i++) {
		struct visitor *visitor = &http->visitors[i];

		if (visitor->watch.fd < 0)
			return visitor;
		if (!visitor->answer.len && (!oldest || visitor->until < oldest->until))
			oldest = visitor;
	}
	if (oldest)
		let_go(oldest);
	return oldest;
}

static void door_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_http *http = source->owner;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
	bool wary = fd >= 0 && http->listener.path && vt_stranger_meet(fd);
	struct vt_err err;

	(void)events;
	if (fd < 0) {
		/* One who is gone already is nobody's trouble. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			close_for_now(http, vt_clock_now());
		return;
	}
	struct visitor *visitor = find_place(http);

	if (!visitor) {
		vt_children_shut(http->children, &fd, wary);
		return;
	}
	visitor->watch.fd = fd;
	visitor->wary = wary;
	visitor->until = vt_clock_now() + PATIENCE;
	vt_timer_hasten(&http->timer, visitor->until);
	/* What came with it is heard before the next one is let in. */
	if (vt_loop_add(http->loop, &visitor->watch, EPOLLIN, &err) < 0 || !read_request(visitor))
		let_go(visitor);
}

/* ---- the door ------------------------------------------------------------------------------- */

static int bind_port(int fd, const struct sockaddr *address, socklen_t len, const char *where,
		     struct vt_err *err)
{
	/* One that has just ended keeps nobody from its port. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, address, len) < 0 || listen(fd, VISITORS_MAX) < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "cannot listen at %s: %s", where,
			       strerror(errno));
	return 0;
}

static int listen_at_port(struct vt_http *http, const char *where, struct vt_err *err)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool is_six = strncmp(where, "[::1]:", 6) == 0;
	bool is_four = strncmp(where, "127.0.0.1:", 10) == 0;
	const char *digits = is_six ? where + 6 : is_four ? where + 10 : "";
	bool is_number = *digits && !digits[strspn(digits, "0123456789")];
	long port = is_number ? strtol(digits, NULL, 10) : 0; /* or more than all there are */

	if (port < 1 || port > 65535)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "--metrics %s: want an absolute path, or 127.0.0.1:PORT, or "
			       "[::1]:PORT",
			       where);
	four.sin_port = six.sin6_port = htons((uint16_t)port);
	four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	http->door.fd = socket(is_six ? AF_INET6 : AF_INET,
			       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (http->door.fd < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "make a socket for %s: %s", where,
			       strerror(errno));
	return is_six ? bind_port(http->door.fd, (struct sockaddr *)&six, sizeof(six), where, err)
		      : bind_port(http->door.fd, (struct sockaddr *)&four, sizeof(four), where,
				  err);
}

static int open_door(struct vt_http *http, const char *where, struct vt_err *err)
{
	int r;

	if (*where == '/') {
		r = vt_listener_open(&http->listener, where, err);
		http->door.fd = http->listener.fd;
		http->wary = r == 0 && vt_stranger_bar(http->door.fd) < 0;
	} else {
		r = listen_at_port(http, where, err);
	}
	return r < 0 ? r : vt_loop_add(http->loop, &http->door, EPOLLIN, err);
}

int vt_http_new(struct vt_loop *loop, struct vt_children *children, const char *where,
		void (*page)(void *user, struct vt_str *out), void *user, struct vt_http **ret_http,
		struct vt_err *err)
{
	struct vt_http *http = calloc(1, sizeof(*http));

	if (!http)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "show metrics");
	http->loop = loop;
	http->children = children;
	http->page = page;
	http->user = user;
	http->listener = (struct vt_listener)VT_LISTENER_NONE;
	http->door = (struct vt_watch){ .fd = -1, .ready = door_ready, .owner = http };
	http->timer = (struct vt_timer){ .fire = timer_fires, .owner = http };
	vt_loop_add_timer(loop, &http->timer);
	for (size_t i = 0; i < VISITORS_MAX; i++) {
		http->visitors[i].http = http;
		http->visitors[i].watch = (struct vt_watch){ .fd = -1,
							     .ready = visitor_ready,
							     .owner = &http->visitors[i] };
		vt_str_init(&http->visitors[i].answer);
	}
	int r = open_door(http, where, err);

	if (r < 0) {
		vt_http_free(http);
		return r;
	}
	*ret_http = http;
	return 0;
}

void vt_http_free(struct vt_http *http)
{
	if (!http)
		return;
	for (size_t i = 0; i < VISITORS_MAX; i++)
		let_go(&http->visitors[i]);
	vt_loop_remove(http->loop, &http->door);
	http->listener.fd = -1; /* the name first, so that nobody comes to one that is closed */
	vt_listener_done(&http->listener);
	vt_children_shut(http->children, &http->door.fd, http->wary);
	vt_loop_remove_timer(http->loop, &http->timer);
	free(http);
}
