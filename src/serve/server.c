/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/frame.h"
#include "base/head.h"
#include "base/stranger.h"
#include "base/user.h"
#include "serve/http.h"
#include "serve/record.h"

enum {
	DOORS_MAX = 16,
	TURN_CLIENTS = 16,      /* that are let in before others have their turn */
	OF_ONE_MIN = 64,        /* connections that one process may have in any case */
	OF_ONE_FEW = 4,         /* the same, when three quarters of all are taken */
	SEND_BYTES = 512 << 10, /* what is sent ahead; the kernel counts twice that */
	SETS = 256,             /* of cells, each with a hull and processes of its own */
	LOOKS = 64,             /* at paths of clients, ahead of the loop */
	SPARE = 64,             /* cells that are ready, of each */
	BURST = 1 << 16,        /* mounts of one set */
};

/* Without a descriptor for the next one: how long nobody is let in. */
#define PAUSE (100 * VT_NS_PER_MS)
/* How often it is said that somebody is not let in. */
#define REFUSALS (10 * VT_NS_PER_S)
/* How often it is looked whether all is over, at the end; and how long what was cancelled is waited
 * for. */
#define LOOK (10 * VT_NS_PER_MS)
#define LAST (5 * VT_NS_PER_S)

enum state { SERVING, DRAINING, CANCELLING };

/* Where clients come in. */
struct door {
	struct vt_server *server;
	struct vt_watch watch;
	struct vt_listener listener; /* of a path; else its fd is -1, and the watch has its own */
	bool wary;                   /* whoever waits at it may have sent descriptors */
};

/* A client that is in. */
struct guest {
	struct guest *next, **link;
	struct vt_session *session;
};

struct vt_server {
	struct vt_loop *loop;
	struct vt_server_options options;
	struct vt_room room;
	struct vt_commons commons;
	struct door doors[DOORS_MAX];
	size_t door_count;
	struct guest *guests;
	unsigned guest_count;
	struct vt_record record;
	bool recorded;
	struct vt_metrics metrics;
	struct vt_http *http;
	struct vt_timer timer;
	enum state state;
	int64_t until;
	bool paused;
	int64_t refusal_told; /* when it was said last that somebody was not let in */
	unsigned refusals;    /* since then */
};

static void log_text(struct vt_server *server, int level, const char *text)
{
	if (server->options.log)
		server->options.log(server->options.user, level, text);
}

/* ---- those who are in ----------------------------------------------------------------------- */

static void session_ended(void *user, struct vt_session *session)
{
	struct vt_server *server = user;
	struct guest *guest = vt_session_user(session);

	vt_session_free(session);
	*guest->link = guest->next;
	if (guest->next)
		guest->next->link = guest->link;
	free(guest);
	server->guest_count--;
	if (server->guest_count == 0 && server->door_count == 0)
		server->loop->over = true;
}

static void log_line(void *user, const struct vt_cells *cells, int level, const char *text)
{
	struct vt_server *server = user;

	log_text(server, level, text);
	for (struct guest *guest = server->guests; cells && guest; guest = guest->next)
		vt_session_log(guest->session, cells, level, text);
}

static int let_in(struct vt_server *server, const struct vt_session_peer *peer, struct vt_err *err)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest) {
		vt_session_turn_away(&server->commons, peer);
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "let a client in");
	}
	int r = vt_session_new(&server->commons, peer, &guest->session, err);

	if (r < 0) {
		free(guest);
		return r;
	}
	vt_session_set_user(guest->session, guest);
	guest->next = server->guests;
	guest->link = &server->guests;
	if (guest->next)
		guest->next->link = &guest->next;
	server->guests = guest;
	server->guest_count++;
	server->metrics.clients++;
	return 0;
}

/* ---- the door ------------------------------------------------------------------------------- */

/* In place of a hello. What the socket does not take at once is not waited for. */
static void refuse(struct vt_server *server, const struct vt_session_peer *peer, const char *why)
{
	struct vt_frames_out out;
	struct vt_str head;
	struct vt_err err;

	vt_str_init(&head);
	vt_frames_out_init(&out, 0);
	vt_head_begin(&head);
	vt_head_add(&head, "is", "refused");
	vt_head_add(&head, "error", why);
	if (vt_head_end(&head, &err) == 0)
		(void)vt_frames_put(&out, peer->fd, head.text, head.len, NULL, 0, &err);
	vt_frames_out_done(&out);
	vt_str_done(&head);
	vt_session_turn_away(&server->commons, peer); /* it has heard, or does not listen */
}

/* Whose file it is that the client runs, whatever its path leads to by now. To open it for more is
 * for a scout to try. */
static int open_program(pid_t pid)
{
	char path[64];

	if (pid <= 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); /* fits */
	return open(path, O_PATH | O_CLOEXEC);
}

/* Whether it may come in. */
static int check_user(struct vt_server *server, uid_t uid, struct vt_err *err)
{
	bool is_ours = uid == geteuid() || uid == 0;

	if (is_ours && vt_user_is_known(uid))
		return 0;
	server->metrics.denied[VT_DENIED_USER]++;
	if (is_ours)
		return vt_fail(err, VT_STEP_WIRE, EPERM,
			       "this server runs in a user namespace that shows user %u for all "
			       "users that it does not map, so that nobody knows who you are: "
			       "start it in one that maps its own user to another id",
			       (unsigned)uid);
	return vt_fail(err, VT_STEP_WIRE, EPERM,
		       "this server belongs to user %u and serves only that user and root; you are "
		       "user %u",
		       (unsigned)geteuid(), (unsigned)uid);
}

/* The same, by how many there are already, of all processes and of its own: -EUSERS. */
static int check_room(struct vt_server *server, const struct vt_session_peer *peer,
		      struct vt_err *err)
{
	const struct vt_client *client = vt_client_find(server->commons.clients, peer->pid,
							peer->since, peer->uid);
	unsigned most = server->room.clients / 4;
	const char *why = server->room.clients < server->options.clients_max ? "its RLIMIT_NOFILE"
									     : "--clients";

	most = most > OF_ONE_MIN ? most : OF_ONE_MIN;
	/* The last quarter is for those who have next to none. */
	if (server->guest_count >= server->room.clients - server->room.clients / 4)
		most = OF_ONE_FEW;
	if (server->guest_count >= server->room.clients)
		vt_fail(err, VT_STEP_WIRE, EUSERS,
			"this server has %u clients, which is the most it takes (%s)",
			server->guest_count, why);
	else if (client && client->sessions >= most)
		vt_fail(err, VT_STEP_WIRE, EUSERS,
			"your %s %u connections to this server, which is the most for one: a "
			"quarter of all (%s), or %d; when most are taken, %d",
			client->pid ? "process has"
				    : "user's processes outside the server's pid namespace have",
			client->sessions, why, OF_ONE_MIN, OF_ONE_FEW);
	else
		return 0;
	server->metrics.denied[VT_DENIED_CLIENTS]++;
	return -EUSERS;
}

static int check_peer(struct vt_server *server, int fd, struct vt_session_peer *peer,
		      struct vt_err *err)
{
	struct ucred other;
	socklen_t len = sizeof(other);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &len) < 0)
		return vt_fail(err, VT_STEP_WIRE, errno, "who you are cannot be found out");
	peer->uid = other.uid;
	peer->pid = other.pid;
	peer->since = vt_client_since(other.pid);
	int r = check_user(server, peer->uid, err);

	return r < 0 ? r : check_room(server, peer, err);
}

/* Lets a client in, or tells it why not. */
static int take_client(struct vt_server *server, int fd, struct vt_err *err)
{
	struct vt_session_peer peer = { .fd = fd, .wary = vt_stranger_meet(fd), .program_fd = -1 };
	int r = check_peer(server, fd, &peer, err);

	if (r < 0) {
		refuse(server, &peer, err->what);
		return r;
	}
	/* As much as is allowed of that: a large result takes fewer turns. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BYTES }, sizeof(int));
	peer.program_fd = open_program(peer.pid);
	return let_in(server, &peer, err);
}

static void close_door(struct door *door)
{
	vt_loop_remove(door->server->loop, &door->watch);
	door->listener.fd = -1; /* the name first, so that nobody comes to one that is closed */
	vt_listener_done(&door->listener);
	vt_children_shut(&door->server->commons.children, &door->watch.fd, door->wary);
}

/* Whoever is not let in may come again and again, as somebody whom nobody here knows. */
static void tell_refusal(struct vt_server *server, const struct vt_err *err)
{
	char text[sizeof(err->what) + 64];
	int64_t now = vt_clock_now();

	if (server->refusal_told && now - server->refusal_told < REFUSALS) {
		server->refusals++;
		return;
	}
	(void)snprintf(text, sizeof(text), server->refusals ? "%s (and %u others before)" : "%s",
		       err->what, server->refusals); /* fits */
	log_text(server, LOG_WARNING, text);
	server->refusal_told = now;
	server->refusals = 0;
}

static void pause_doors(struct vt_server *server, int num)
{
	struct vt_err err;

	(void)vt_fail(&err, VT_STEP_WIRE, num, "nobody can be let in for now: %s", strerror(num));
	tell_refusal(server, &err);
	server->paused = true;
	for (size_t i = 0; i < server->door_count; i++)
		vt_loop_remove(server->loop, &server->doors[i].watch);
	vt_timer_hasten(&server->timer, vt_clock_now() + PAUSE);
}

static void door_ready(struct vt_watch *source, uint32_t events)
{
	struct door *door = source->owner;
	struct vt_err err;

	(void)events;
	for (int i = 0; i < TURN_CLIENTS; i++) {
		int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			/* One too many may come again and again, and is counted. */
			if (take_client(door->server, fd, &err) < 0 && err.num != EUSERS)
				tell_refusal(door->server, &err);
			continue;
		}
		/* One who is gone already is nobody's trouble. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			pause_doors(door->server, errno);
		return;
	}
}

static int open_door(struct vt_server *server, struct door *door, int fd, struct vt_err *err)
{
	door->server = server;
	/* Of one that was given, some may have connected before. */
	door->wary = vt_stranger_bar(fd) < 0 || door->listener.fd < 0;
	door->watch = (struct vt_watch){ .fd = fd, .ready = door_ready, .owner = door };
	server->door_count++;
	return vt_loop_add(server->loop, &door->watch, EPOLLIN, err);
}

static struct door *next_door(struct vt_server *server, struct vt_err *err)
{
	if (server->door_count < DOORS_MAX)
		return &server->doors[server->door_count];
	vt_fail(err, VT_STEP_WIRE, E2BIG, "listen on more than %d sockets", DOORS_MAX);
	return NULL;
}

/* A socket that was made at a path, and its lock: whoever could change these could put his own in
 * their place. */
static int keep_socket(struct vt_server *server, const char *path, struct vt_err *err)
{
	char lock[PATH_MAX];
	int r = vt_cells_keep(&server->commons.cells, path, err);

	if (r < 0)
		return r;
	(void)snprintf(lock, sizeof(lock), "%s.lock", path); /* fits: it is there */
	return vt_cells_keep(&server->commons.cells, lock, err);
}

int vt_server_listen(struct vt_server *server, const char *path, struct vt_err *err)
{
	struct door *door = next_door(server, err);

	if (!door)
		return -E2BIG;
	int r = vt_listener_open(&door->listener, path, err);

	if (r < 0) {
		vt_listener_done(&door->listener);
		return r;
	}
	r = open_door(server, door, door->listener.fd, err);
	return r < 0 ? r : keep_socket(server, path, err);
}

/* One whose name is gone, or has none, is in nobody's reach. */
static int keep_inherited(struct vt_server *server, int fd, struct vt_err *err)
{
	struct sockaddr_un name = { 0 };
	socklen_t len = sizeof(name) - 1; /* what is there without its NUL has one then */

	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0 || name.sun_family != AF_UNIX ||
	    name.sun_path[0] != '/' || access(name.sun_path, F_OK) < 0)
		return 0;
	return vt_cells_keep(&server->commons.cells, name.sun_path, err);
}

int vt_server_inherit(struct vt_server *server, int fd, struct vt_err *err)
{
	enum vt_inherited kind;
	int r = vt_listen_inherited(fd, &kind, err);

	if (r < 0)
		return r;
	if (kind == VT_INHERITED_CONNECTED)
		return take_client(server, fd, err);
	struct door *door = next_door(server, err);

	if (!door)
		return -E2BIG;
	door->listener = (struct vt_listener)VT_LISTENER_NONE;
	r = open_door(server, door, fd, err);
	return r < 0 ? r : keep_inherited(server, fd, err);
}

/* ---- what is told of calls ------------------------------------------------------------------ */

static void record_failed(void *user, const struct vt_err *err)
{
	struct vt_server *server = user;
	char text[sizeof(err->what) + 128];

	(void)snprintf(text, sizeof(text), "%s: %s; no call is taken until it works again",
		       err->what, strerror(err->num)); /* fits */
	log_text(server, LOG_ERR, text);
}

static void record_tried(void *user, bool written)
{
	struct vt_server *server = user;
	int64_t now = vt_clock_now();

	if (written)
		log_text(server, LOG_NOTICE, "the audit log is written again");
	for (struct guest *guest = server->guests; guest; guest = guest->next)
		vt_session_settle(guest->session, written, now);
}

/* Whoever can open a file can lock it. */
static void warn_of_lockers(struct vt_server *server, const char *path)
{
	char text[PATH_MAX + 160];
	struct stat st;

	if (fstat(server->record.log.fd, &st) < 0 || !(st.st_mode & 066))
		return;
	(void)snprintf(text, sizeof(text),
		       "the audit log '%s' has mode %04o: others can open it, and keep it locked, "
		       "and no call is taken meanwhile; take that from them: chmod 600",
		       path, (unsigned)(st.st_mode & 07777)); /* fits */
	log_text(server, LOG_WARNING, text);
}

int vt_server_record(struct vt_server *server, const char *path, struct vt_err *err)
{
	int r = vt_record_open(&server->record, server->loop, path, err);

	server->record.failed = record_failed;
	server->record.tried = record_tried;
	server->record.user = server;
	server->commons.unrecorded = &server->record.blocked;
	server->recorded = r == 0;
	if (r == 0)
		warn_of_lockers(server, path);
	return r < 0 ? r : vt_cells_close(&server->commons.cells, path, err);
}

int vt_server_offer(struct vt_server *server, const struct vt_offer_source *source,
		    struct vt_err *err)
{
	struct vt_offer *offer, *before = server->commons.offer;
	int r = vt_offer_new(&server->commons.cells, source, &offer, err);

	if (r < 0)
		return r;
	server->commons.offer = offer;
	vt_offer_free(before);
	for (struct guest *guest = server->guests; guest; guest = guest->next)
		vt_session_tell_tools(guest->session);
	return 0;
}

static enum vt_telling call_over(void *user, const struct vt_call_over *over)
{
	struct vt_server *server = user;

	vt_metrics_call(&server->metrics, over->outcome->result.verdict.status, over->ns);
	return server->recorded ? vt_record_call(&server->record, over) : VT_TELL_NOW;
}

static void denied(void *user, enum vt_denial_kind what)
{
	struct vt_server *server = user;

	server->metrics.denied[what]++;
}

static void show_metrics(void *user, struct vt_str *out)
{
	const struct vt_server *server = user;
	struct vt_metrics_now now = { .clients = server->guest_count,
				      .waiting = server->commons.turns.waiting };

	vt_cells_count(&server->commons.cells, &now.cells);
	vt_metrics_text(&server->metrics, &now, out);
}

int vt_server_show(struct vt_server *server, const char *where, struct vt_err *err)
{
	int r = vt_http_new(server->loop, &server->commons.children, where, show_metrics, server,
			    &server->http, err);

	return r < 0 || *where != '/' ? r : keep_socket(server, where, err);
}

/* ---- its end -------------------------------------------------------------------------------- */

static void close_doors(struct vt_server *server)
{
	while (server->door_count)
		close_door(&server->doors[--server->door_count]);
}

static bool is_done(const struct vt_server *server)
{
	for (const struct guest *guest = server->guests; guest; guest = guest->next)
		if (vt_session_calls(guest->session) || vt_session_is_unread(guest->session))
			return false;
	return true;
}

/* After a bye, what has no done counts as not begun: so each has one before it. */
static void finish(struct vt_server *server)
{
	bool written = !server->recorded || vt_record_flush(&server->record);

	for (struct guest *guest = server->guests; guest; guest = guest->next) {
		vt_session_settle(guest->session, written, INT64_MAX);
		vt_session_bye(guest->session);
	}
	server->loop->over = true;
}

static void cancel_all(struct vt_server *server)
{
	server->state = CANCELLING;
	server->until = vt_clock_now() + LAST;
	for (struct guest *guest = server->guests; guest; guest = guest->next)
		vt_session_cancel(guest->session);
}

static void go_on_ending(struct vt_server *server)
{
	bool late = vt_clock_now() >= server->until;

	if (is_done(server) || (late && server->state == CANCELLING)) {
		finish(server);
		return;
	}
	if (late)
		cancel_all(server);
	vt_timer_set(&server->timer, vt_clock_now() + LOOK);
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_server *server = timer->owner;
	struct vt_err err;

	if (server->state != SERVING) {
		go_on_ending(server);
		return;
	}
	server->paused = false;
	for (size_t i = 0; i < server->door_count; i++)
		if (vt_loop_add(server->loop, &server->doors[i].watch, EPOLLIN, &err) < 0)
			log_text(server, LOG_ERR, err.what);
}

void vt_server_end(struct vt_server *server)
{
	if (server->state != SERVING) {
		server->loop->over = true;
		return;
	}
	server->state = DRAINING;
	server->until = vt_clock_now() + server->options.drain_ms * VT_NS_PER_MS;
	server->commons.ending = true;
	close_doors(server);
	vt_timer_set(&server->timer, 0);
}

/* ---- the server ----------------------------------------------------------------------------- */

/* So many descriptors there can be, and what they will do for. */
static int find_room(struct vt_server *server, struct vt_err *err)
{
	const struct vt_room wanted = { .clients = server->options.clients_max,
					.live = server->options.live_max,
					.sets = SETS,
					.spare = SETS * SPARE,
					.looks = LOOKS,
					.burst = BURST };
	struct vt_room *room = &server->room;
	struct rlimit files;
	char text[256];

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return vt_fail(err, VT_STEP_WIRE, errno, "ask for the limit of descriptors");
	if (files.rlim_cur < VT_ROOM_FILES_MIN)
		return vt_fail(err, VT_STEP_POLICY, EMFILE,
			       "refused: RLIMIT_NOFILE is %llu, and a server needs %d at the least",
			       (unsigned long long)files.rlim_cur, VT_ROOM_FILES_MIN);
	vt_room_find(files.rlim_cur, &wanted, room);
	if (room->clients == wanted.clients && room->live == wanted.live &&
	    room->sets == wanted.sets)
		return 0;
	(void)snprintf(text, sizeof(text),
		       "RLIMIT_NOFILE is %llu: there is room for %u clients of %u, %u calls at "
		       "once of %u, and cells of %u policies and programs of %u",
		       (unsigned long long)files.rlim_cur, room->clients, wanted.clients,
		       room->live, wanted.live, room->sets, wanted.sets); /* fits */
	log_text(server, LOG_NOTICE, text);
	return 0;
}

int vt_server_new(struct vt_loop *loop, struct vt_host *host,
		  const struct vt_server_options *options, struct vt_server **ret_server,
		  struct vt_err *err)
{
	struct vt_server *server = calloc(1, sizeof(*server));

	if (!server)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a server");
	server->loop = loop;
	server->options = *options;
	server->timer = (struct vt_timer){ .fire = timer_fires, .owner = server };
	vt_loop_add_timer(loop, &server->timer);
	vt_commons_init(&server->commons, loop, host);
	int r = find_room(server, err);

	vt_commons_share(&server->commons, &server->room);
	server->commons.user = server->commons.cells.user = server;
	server->commons.ended = session_ended;
	server->commons.call_over = call_over;
	server->commons.denied = denied;
	server->commons.cells.log = log_line;
	if (r == 0)
		r = vt_cells_settle(&server->commons.cells, err);
	if (r < 0) {
		vt_server_free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

void vt_server_free(struct vt_server *server)
{
	if (!server)
		return;
	close_doors(server);
	while (server->guests)
		session_ended(server, server->guests->session);
	vt_http_free(server->http);
	vt_offer_free(server->commons.offer);
	vt_commons_done(&server->commons);
	vt_record_done(&server->record);
	vt_loop_remove_timer(server->loop, &server->timer);
	free(server);
}
