/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro_zygote.node: what a Node needs to be a zygote. It is preloaded (LD_PRELOAD), so that it can
 * do what takes a process of one thread before Node has others: read vitro's own scripts, which the
 * hull does not have, and join the hull. Then it is an addon, which zygote.cjs loads: it takes
 * orders, forks occupants by the same code that seals every other, and has them wake as a Node
 * (fork.h). One file serves every Node, by Node-API.
 *
 * Where a Node cannot be forked, its occupants execute it anew, sealed already.
 */
#include <node_api.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "fork.h"
#include "kernel/ns.h"
#include "launch/writable.h"
#include "launch/zygote.h"
#include "revive.h"
#include "text.h"

int uv_loop_alive(const struct uv_loop_s *loop); /* of the process that loads this */

enum { SOURCES = 16, SOURCE_MAX = 1 << 20, WORDS = 16 };

static struct {
	struct vt_zygote zygote;
	struct vt_node_fork fork;
	bool joined, forked;
	bool awaited; /* in an occupant: a call waits for it */
	struct source {
		char name[NAME_MAX + 1];
		char *text;
		size_t len;
	} sources[SOURCES];
	size_t source_count;
} self;

/* ---- before Node begins -------------------------------------------------------------------- */

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	return len > end && strcmp(name + len - end, ending) == 0;
}

static int read_source(int folder, const char *name, struct source *ret_source)
{
	AUTO_CLOSE int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX)
		return -EFBIG;
	char *text = malloc((size_t)st.st_size + 1);

	if (!text)
		return -ENOMEM;
	ssize_t got = read(fd, text, (size_t)st.st_size);

	if (got != st.st_size) {
		free(text);
		return -EIO;
	}
	(void)snprintf(ret_source->name, sizeof(ret_source->name), "%s", name); /* it is one */
	ret_source->text = text;
	ret_source->len = (size_t)got;
	return 0;
}

/* The scripts that lie beside this library. */
static int read_sources(const char *library)
{
	char folder[PATH_MAX];
	const struct dirent *entry;
	const char *slash = strrchr(library, '/');
	int r = 0;

	if (!slash || slash - library >= PATH_MAX)
		return -EINVAL;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - library), library); /* fits */
	DIR *dir = opendir(folder);

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (!has_ending(entry->d_name, ".cjs") && !has_ending(entry->d_name, ".mjs"))
			continue;
		r = self.source_count == SOURCES ? -E2BIG
						 : read_source(dirfd(dir), entry->d_name,
							       &self.sources[self.source_count]);
		self.source_count += r == 0;
	}
	(void)closedir(dir); /* it was only read */
	return r;
}

/*
 * Node is a zygote where the supervisor says so, and else a test's. In the hull it sees no more
 * than a cell does; what fails is told by then, or shows as a zygote's end.
 */
__attribute__((constructor)) static void begin(void)
{
	const char *library = getenv("LD_PRELOAD"), *control = getenv("VITRO_ZYGOTE");
	struct vt_err err;

	bool preloaded = library && *library; /* else it is an addon that knows of no handlers */
	int r = vt_node_fork_init(&self.fork);

	if (r == 0 && preloaded)
		r = read_sources(library);
	if (r < 0) {
		fprintf(stderr, "cannot read vitro's own files for Node: %s\n", strerror(-r));
		_exit(125);
	}
	if (preloaded && control) {
		if (vt_zygote_join(&self.zygote, atoi(control), &err) < 0)
			_exit(err.num == EPIPE ? 0 : 1);
		if (vt_zygote_furnish(&self.zygote, &err) < 0) {
			vt_zygote_fail(&self.zygote, &err);
			_exit(1);
		}
		self.joined = true;
	}
	/* What calls see of the environment is the plan's. */
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LD_BIND_NOW");
	(void)unsetenv("VITRO_ZYGOTE");
}

/* ---- values of JavaScript ------------------------------------------------------------------ */

static napi_value throw_text(napi_env env, const char *text)
{
	(void)napi_throw_error(env, NULL,
			       text); /* what can fail here is that one is thrown already */
	return NULL;
}

static napi_value throw_err(napi_env env, const struct vt_err *err)
{
	char text[sizeof(err->what) + 64];

	(void)snprintf(text, sizeof(text), "%s: %s", err->what,
		       strerror(err->num)); /* cut, at worst */
	return throw_text(env, text);
}

static napi_value make_int(napi_env env, int64_t number)
{
	napi_value value = NULL;

	return napi_create_int64(env, number, &value) == napi_ok ? value : NULL;
}

static napi_value make_text(napi_env env, const char *text, size_t len)
{
	napi_value value = NULL;

	return napi_create_string_utf8(env, text, len, &value) == napi_ok ? value : NULL;
}

static bool set(napi_env env, napi_value object, const char *name, napi_value value)
{
	return value && napi_set_named_property(env, object, name, value) == napi_ok;
}

/* The arguments, as many as are wanted. */
static bool take_args(napi_env env, napi_callback_info info, size_t count, napi_value *args)
{
	size_t got = count;

	if (napi_get_cb_info(env, info, &got, args, NULL, NULL) == napi_ok && got >= count)
		return true;
	(void)throw_text(env, "too few arguments");
	return false;
}

static bool take_int(napi_env env, napi_value value, int32_t *ret_number)
{
	if (napi_get_value_int32(env, value, ret_number) == napi_ok)
		return true;
	(void)throw_text(env, "want a number");
	return false;
}

/* Of this process's own; "" where it is no text. */
static void take_text(napi_env env, napi_value value, char *text, size_t size)
{
	if (napi_get_value_string_utf8(env, value, text, size, NULL) != napi_ok)
		*text = '\0';
}

/* ---- the zygote ---------------------------------------------------------------------------- */

struct places {
	napi_env env;
	napi_value paths, inodes;
	uint32_t path_count, inode_count;
};

static int add_path(void *user, const char *path)
{
	struct places *to = user;
	napi_value text = make_text(to->env, path, NAPI_AUTO_LENGTH);

	return text && napi_set_element(to->env, to->paths, to->path_count++, text) == napi_ok
		       ? 0
		       : -ENOMEM;
}

static int add_inode(void *user, uint64_t dev, uint64_t ino)
{
	struct places *to = user;
	char name[64];

	(void)snprintf(name, sizeof(name), "%llu:%llu", (unsigned long long)dev,
		       (unsigned long long)ino); /* fits */
	napi_value text = make_text(to->env, name, NAPI_AUTO_LENGTH);

	return text && napi_set_element(to->env, to->inodes, to->inode_count++, text) == napi_ok
		       ? 0
		       : -ENOMEM;
}

static napi_value about(napi_env env, napi_callback_info info)
{
	const struct vt_plan *plan = self.zygote.plan;
	struct places places = { .env = env };
	const struct vt_writable to = { add_path, add_inode, &places };
	napi_value all, bare;

	(void)info;
	if (!self.joined)
		return throw_text(env, "no hull was joined");
	if (napi_create_object(env, &all) != napi_ok ||
	    napi_create_array(env, &places.paths) != napi_ok ||
	    napi_create_array(env, &places.inodes) != napi_ok ||
	    napi_get_boolean(env, plan->bare, &bare) != napi_ok ||
	    vt_writable_list(plan, &to) < 0 || !set(env, all, "writable", places.paths) ||
	    !set(env, all, "inodes", places.inodes) || !set(env, all, "bare", bare) ||
	    !set(env, all, "result_bytes", make_int(env, (int64_t)plan->result_bytes)))
		return throw_text(env, "the plan cannot be told");
	return all;
}

static napi_value sources(napi_env env, napi_callback_info info)
{
	napi_value all;

	(void)info;
	if (napi_create_object(env, &all) != napi_ok)
		return NULL;
	for (size_t i = 0; i < self.source_count; i++)
		if (!set(env, all, self.sources[i].name,
			 make_text(env, self.sources[i].text, self.sources[i].len)))
			return throw_text(env, "a script is no UTF-8");
	return all;
}

static napi_value knows_handlers(napi_env env, napi_callback_info info)
{
	napi_value value = NULL;

	(void)info;
	return napi_get_boolean(env, vt_node_fork_knows_handlers(), &value) == napi_ok ? value
										       : NULL;
}

/* Before it is ready, in one that is forked. */
static napi_value enlarge(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	vt_node_text_enlarge();
	return NULL;
}

static napi_value ready(napi_env env, napi_callback_info info)
{
	struct vt_err err;
	int r = vt_node_fork_prepare(&self.fork);

	(void)info;
	if (r < 0)
		return throw_text(env, strerror(-r));
	self.zygote.helpers = vt_zygote_threads(&self.zygote) - 1;
	if (vt_zygote_ready(&self.zygote, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	return NULL;
}

/* Words that are executed, each with its NUL; made ahead of a fork. */
struct words {
	char *text;
	char *list[WORDS + 1];
};

static int take_words(napi_env env, napi_value array, struct words *ret_words)
{
	uint32_t count;
	size_t size = 0, len;
	napi_value word;
	struct words words = { NULL };

	if (napi_get_array_length(env, array, &count) != napi_ok || count < 1 || count > WORDS)
		return -EINVAL;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0, at = 0; i < count; i++, at += (uint32_t)len + 1) {
			if (napi_get_element(env, array, i, &word) != napi_ok ||
			    napi_get_value_string_utf8(env, word, fill ? words.text + at : NULL,
						       fill ? size - at : 0, &len) != napi_ok) {
				free(words.text);
				return -EINVAL;
			}
			if (fill)
				words.list[i] = words.text + at;
			else
				size += len + 1;
		}
		if (!fill && !(words.text = malloc(size + 1)))
			return -ENOMEM;
	}
	*ret_words = words;
	return 0;
}

static _Noreturn void execute(char *const *words)
{
	if (fcntl(VT_OCCUPANT_CALL_FD, F_SETFD, 0) == 0)
		(void)execve(words[0], words, environ); /* returns only to fail */
	fprintf(stderr, "cannot execute '%s': %s\n", words[0], strerror(errno));
	_exit(127);
}

static napi_value wake(napi_env env)
{
	struct uv_loop_s *loop;
	int r;

	self.forked = true;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok)
		_exit(125);
	r = vt_node_fork_wake(&self.fork, loop);
	if (r < 0) {
		fprintf(stderr, "this Node cannot go on after a fork: %s\n", strerror(-r));
		_exit(125);
	}
	return NULL;
}

/* Nothing of JavaScript runs between orders, so that what was prepared for forks stays so. */
static napi_value serve(napi_env env, napi_callback_info info)
{
	struct words words = { NULL };
	struct vt_zygote_order order;
	struct vt_err err;
	napi_value args[1];
	napi_valuetype type;
	int r = 0;

	if (!take_args(env, info, 1, args) || napi_typeof(env, args[0], &type) != napi_ok)
		return NULL;
	if (type == napi_object && take_words(env, args[0], &words) < 0)
		return throw_text(env, "want words to execute");
	do {
		r = vt_zygote_take(&self.zygote, &order, &err);
		if (r == 0 && order.note.kind == VT_NOTE_LEARN)
			r = vt_zygote_tell(&self.zygote, VT_NOTE_LEARNED, ENOSYS,
					   "a Node learns nothing", &err) < 0
				    ? -err.num
				    : 1;
		else if (r == 0) {
			self.awaited = order.note.awaited;
			r = vt_zygote_enter(&self.zygote, &order, &err);
		}
	} while (r > 0);
	if (r < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	if (words.text)
		execute(words.list);
	return wake(env);
}

/* The only argument, which is a text. */
static bool take_line(napi_env env, napi_callback_info info, char *to, size_t size)
{
	napi_value args[1];

	if (!take_args(env, info, 1, args))
		return false;
	take_text(env, args[0], to, size);
	return true;
}

static napi_value tell_note(napi_env env, napi_callback_info info, enum vt_note_kind kind)
{
	char text[512];
	struct vt_err err;

	if (!take_line(env, info, text, sizeof(text)))
		return NULL;
	if (vt_zygote_tell(&self.zygote, kind, 0, text, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	return NULL;
}

static napi_value tell_line(napi_env env, napi_callback_info info)
{
	return tell_note(env, info, VT_NOTE_TOLD);
}

static napi_value loads(napi_env env, napi_callback_info info)
{
	return tell_note(env, info, VT_NOTE_LOADS);
}

/* How many pieces of memory this process would share with its forks. */
static napi_value shared(napi_env env, napi_callback_info info)
{
	int count = vt_zygote_shared(&self.zygote);

	(void)info;
	return count < 0 ? throw_text(env, strerror(-count)) : make_int(env, count);
}

static napi_value threads(napi_env env, napi_callback_info info)
{
	int count = vt_zygote_threads(&self.zygote);

	(void)info;
	return count < 0 ? throw_text(env, strerror(-count)) : make_int(env, count);
}

static napi_value fail(napi_env env, napi_callback_info info)
{
	char text[512];
	struct vt_err err;

	if (!take_line(env, info, text, sizeof(text)))
		return NULL;
	(void)vt_fail(&err, VT_STEP_COMMAND, ENOEXEC, "%s", text); /* it is what is told */
	vt_zygote_fail(&self.zygote, &err);
	_exit(1);
}

/* ---- an occupant --------------------------------------------------------------------------- */

/* What tells that an occupant is parked, for one that has no addon. */
static napi_value parked(napi_env env, napi_callback_info info)
{
	const struct vt_note note = { .kind = VT_NOTE_PARKED };
	napi_value buffer = NULL;

	(void)info;
	return napi_create_buffer_copy(env, sizeof(note), &note, NULL, &buffer) == napi_ok ? buffer
											   : NULL;
}

/* 31 bits that no other process has. OpenSSL's cost a fork much. */
static napi_value make_random(napi_env env, napi_callback_info info)
{
	uint32_t bits;

	(void)info;
	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		_exit(125);
	return make_int(env, bits >> 1);
}

static napi_value is_awaited(napi_env env, napi_callback_info info)
{
	napi_value value = NULL;

	(void)info;
	return napi_get_boolean(env, self.awaited, &value) == napi_ok ? value : NULL;
}

static napi_value park(napi_env env, napi_callback_info info)
{
	struct vt_err err;

	(void)env;
	(void)info;
	if (vt_zygote_park(&err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	return NULL;
}

static napi_value leave(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	int32_t code = 0;

	if (!take_args(env, info, 1, args))
		return NULL;
	(void)napi_get_value_int32(env, args[0], &code); /* 0 where it is none */
	_exit(code);
}

/* Until the cell is killed. */
static napi_value wait_for_end(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	while (pause() < 0) /* always: a handler may have run */
		;
	return NULL;
}

static napi_value pid(napi_env env, napi_callback_info info)
{
	(void)info;
	return make_int(env, getpid());
}

/* Whether anything could still happen in the event loop. */
static napi_value is_alive(napi_env env, napi_callback_info info)
{
	struct uv_loop_s *loop;
	napi_value value = NULL;

	(void)info;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    napi_get_boolean(env, uv_loop_alive(loop) != 0, &value) != napi_ok)
		return NULL;
	return value;
}

struct span {
	int32_t fd;
	char *at;
	size_t len;
};

/* (fd, buffer, from) */
static bool take_span(napi_env env, const napi_value *args, struct span *ret_span)
{
	struct span span;
	int64_t from;
	void *data;

	if (!take_int(env, args[0], &span.fd) ||
	    napi_get_buffer_info(env, args[1], &data, &span.len) != napi_ok ||
	    napi_get_value_int64(env, args[2], &from) != napi_ok || from < 0 ||
	    (size_t)from > span.len) {
		(void)throw_text(env, "want a descriptor, a buffer, and where in it");
		return false;
	}
	span.at = (char *)data + from;
	span.len -= (size_t)from;
	*ret_span = span;
	return true;
}

/* send(fd, buffer, from): how many bytes the socket took, or a negative errno. */
static napi_value send_some(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	struct span span;

	if (!take_args(env, info, 3, args) || !take_span(env, args, &span))
		return NULL;
	ssize_t sent = send(span.fd, span.at, span.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return make_int(env, sent < 0 ? -errno : sent);
}

/* receive(fd, buffer, from, wait): how many bytes came, 0 at the end, or a negative errno. */
static napi_value receive_some(napi_env env, napi_callback_info info)
{
	napi_value args[4];
	struct span span;
	int32_t wait;
	ssize_t got;

	if (!take_args(env, info, 4, args) || !take_span(env, args, &span) ||
	    !take_int(env, args[3], &wait))
		return NULL;
	struct pollfd one = { .fd = span.fd, .events = POLLIN };

	/* The description may be one that does not wait: libuv's doing. */
	do {
		got = recv(span.fd, span.at, span.len, wait ? 0 : MSG_DONTWAIT);
	} while (got < 0 &&
		 (errno == EINTR || (wait && errno == EAGAIN && poll(&one, 1, -1) >= 0)));
	return make_int(env, got < 0 ? -errno : got);
}

/* wait(fd): until it can be written to, or read; what it can, as poll() has it. */
static napi_value wait_for(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	int32_t fd;

	if (!take_args(env, info, 1, args) || !take_int(env, args[0], &fd))
		return NULL;
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };

	while (poll(&one, 1, -1) < 0 && errno == EINTR)
		;
	return make_int(env, one.revents);
}

/* pair(): the two ends of a stream, or nothing where a policy has no sockets. */
static napi_value make_pair(napi_env env, napi_callback_info info)
{
	napi_value ends = NULL;
	int fds[2];

	(void)info;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return NULL;
	if (napi_create_array(env, &ends) != napi_ok ||
	    napi_set_element(env, ends, 0, make_int(env, fds[0])) != napi_ok ||
	    napi_set_element(env, ends, 1, make_int(env, fds[1])) != napi_ok)
		return NULL;
	return ends;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* A fork as an occupant is one, but in no cell. In it 0. */
static napi_value sprout(napi_env env, napi_callback_info info)
{
	AUTO_CLOSE int pidfd = -1;
	struct vt_err err;
	int r = vt_node_fork_prepare(&self.fork);

	(void)info;
	if (self.joined || r < 0)
		return throw_text(env, "this is no test");
	pid_t child = vt_ns_clone(SIGCHLD, -1, &pidfd, &err);

	if (child < 0)
		return throw_err(env, &err);
	if (child == 0) {
		if (close_range(4, ~0U, 0) < 0)
			_exit(125);
		(void)wake(env); /* or it has ended */
	}
	return make_int(env, child);
}

/* reap(pid, ms): its wait status; -1: it did not end in that time, and was killed. */
static napi_value reap(napi_env env, napi_callback_info info)
{
	napi_value args[2];
	int32_t child, ms;
	int status = 0;

	if (!take_args(env, info, 2, args) || !take_int(env, args[0], &child) ||
	    !take_int(env, args[1], &ms))
		return NULL;
	for (int i = 0; i < ms * 4; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return make_int(env, status);
		(void)usleep(250); /* shorter is as good */
	}
	(void)kill(child, SIGKILL); /* it is ours, and not reaped: it is there */
	return make_int(env, waitpid(child, &status, 0) == child ? -1 : -errno);
}

/* ---- the addon ----------------------------------------------------------------------------- */

/* Whatever road led to the end of the environment: beyond it Node waits for threads. */
static void end_fork(void *unused)
{
	(void)unused;
	if (self.forked)
		_exit(0);
}

static const struct {
	const char *name;
	napi_callback function;
} functions[] = {
	{ "about", about },
	{ "sources", sources },
	{ "knowsHandlers", knows_handlers },
	{ "enlarge", enlarge },
	{ "ready", ready },
	{ "serve", serve },
	{ "tell", tell_line },
	{ "loads", loads },
	{ "shared", shared },
	{ "threads", threads },
	{ "fail", fail },
	{ "parked", parked },
	{ "random", make_random },
	{ "isAwaited", is_awaited },
	{ "park", park },
	{ "exit", leave },
	{ "pause", wait_for_end },
	{ "pid", pid },
	{ "isAlive", is_alive },
	{ "send", send_some },
	{ "receive", receive_some },
	{ "wait", wait_for },
	{ "pair", make_pair },
	{ "sprout", sprout },
	{ "reap", reap },
};

NAPI_MODULE_INIT(/* env, exports */)
{
	vt_revive_end_of_platform();
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		napi_value function;

		if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH,
					 functions[i].function, NULL, &function) != napi_ok ||
		    !set(env, exports, functions[i].name, function))
			return throw_text(env, "vitro's addon cannot be set up");
	}
	if (napi_add_env_cleanup_hook(env, end_fork, NULL) != napi_ok)
		return throw_text(env, "vitro's addon cannot be set up");
	return exports;
}
