/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro_zygote.node: what a Node needs to be a zygote. It is preloaded (LD_PRELOAD), so that it can
 * do what takes a process of one thread before Node has others: read vitro's own scripts, which the
 * hull does not have, join the hull, and cover what calls can write. Then it is an addon, which
 * zygote.cjs loads: it takes orders, forks occupants by the same code that seals every other, and
 * has them wake as a Node (fork.h). One file serves every Node, by Node-API.
 *
 * Where a Node cannot be forked, its occupants execute it anew, sealed already.
 */
#include <node_api.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "fork.h"
#include "kernel/ns.h"
#include "launch/zygote.h"
#include "occupant.h"
#include "revive.h"
#include "source.h"
#include "text.h"
#include "value.h"

enum { WORDS = 16 };

static struct {
	struct vt_zygote zygote;
	struct vt_node_fork fork;
	bool joined, forked;
	bool awaited; /* in an occupant: a call waits for it */
} self;

/* ---- before Node begins -------------------------------------------------------------------- */

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
		r = vt_node_source_read_all(library);
	if (r < 0) {
		fprintf(stderr, "cannot read vitro's own files for Node: %s\n", strerror(-r));
		_exit(125);
	}
	if (preloaded && control) {
		if (vt_zygote_join(&self.zygote, atoi(control), &err) < 0)
			_exit(err.num == EPIPE ? 0 : 1);
		if (vt_zygote_furnish(&self.zygote, &err) < 0 ||
		    vt_zygote_cover(&self.zygote, &err) < 0) {
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

/* ---- the zygote ---------------------------------------------------------------------------- */

static napi_value about(napi_env env, napi_callback_info info)
{
	const struct vt_plan *plan = self.zygote.plan;
	napi_value all, bare, ahead;

	(void)info;
	if (!self.joined)
		return vt_value_throw(env, "no hull was joined");
	if (napi_create_object(env, &all) != napi_ok ||
	    napi_get_boolean(env, plan->bare, &bare) != napi_ok ||
	    napi_get_boolean(env, self.zygote.loads_ahead, &ahead) != napi_ok ||
	    !vt_value_set(env, all, "bare", bare) || !vt_value_set(env, all, "loadsAhead", ahead) ||
	    !vt_value_set(env, all, "result_bytes", vt_value_int(env, (int64_t)plan->result_bytes)))
		return vt_value_throw(env, "the plan cannot be told");
	return all;
}

static napi_value knows_handlers(napi_env env, napi_callback_info info)
{
	(void)info;
	return vt_value_bool(env, vt_node_fork_knows_handlers());
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
		return vt_value_throw(env, strerror(-r));
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

	if (!vt_value_take_args(env, info, 1, args) || napi_typeof(env, args[0], &type) != napi_ok)
		return NULL;
	if (type == napi_object && take_words(env, args[0], &words) < 0)
		return vt_value_throw(env, "want words to execute");
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

static napi_value is_awaited(napi_env env, napi_callback_info info)
{
	(void)info;
	return vt_value_bool(env, self.awaited);
}

/* The only argument, which is a text. */
static bool take_line(napi_env env, napi_callback_info info, char *to, size_t size)
{
	napi_value args[1];

	if (!vt_value_take_args(env, info, 1, args))
		return false;
	vt_value_take_text(env, args[0], to, size);
	return true;
}

static napi_value tell_note(napi_env env, napi_callback_info info, enum vt_note_kind kind, int num)
{
	char text[512];
	struct vt_err err;

	if (!take_line(env, info, text, sizeof(text)))
		return NULL;
	if (vt_zygote_tell(&self.zygote, kind, num, text, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	return NULL;
}

static napi_value tell_line(napi_env env, napi_callback_info info)
{
	return tell_note(env, info, VT_NOTE_TOLD, 0);
}

static napi_value tell_warning(napi_env env, napi_callback_info info)
{
	return tell_note(env, info, VT_NOTE_TOLD, ENOEXEC);
}

static napi_value loads(napi_env env, napi_callback_info info)
{
	return tell_note(env, info, VT_NOTE_LOADS, 0);
}

/* How many pieces of memory this process would share with its forks. */
static napi_value shared(napi_env env, napi_callback_info info)
{
	int count = vt_zygote_shared(&self.zygote);

	(void)info;
	return count < 0 ? vt_value_throw(env, strerror(-count)) : vt_value_int(env, count);
}

static napi_value threads(napi_env env, napi_callback_info info)
{
	int count = vt_zygote_threads(&self.zygote);

	(void)info;
	return count < 0 ? vt_value_throw(env, strerror(-count)) : vt_value_int(env, count);
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

/* ---- tests --------------------------------------------------------------------------------- */

static napi_value throw_err(napi_env env, const struct vt_err *err)
{
	char text[sizeof(err->what) + 64];

	(void)snprintf(text, sizeof(text), "%s: %s", err->what,
		       strerror(err->num)); /* cut, at worst */
	return vt_value_throw(env, text);
}

/* A fork as an occupant is one, but in no cell. In it 0. */
static napi_value sprout(napi_env env, napi_callback_info info)
{
	AUTO_CLOSE int pidfd = -1;
	struct vt_err err;
	int r = vt_node_fork_prepare(&self.fork);

	(void)info;
	if (self.joined || r < 0)
		return vt_value_throw(env, "this is no test");
	pid_t child = vt_ns_clone(SIGCHLD, -1, &pidfd, &err);

	if (child < 0)
		return throw_err(env, &err);
	if (child == 0) {
		if (close_range(4, ~0U, 0) < 0)
			_exit(125);
		(void)wake(env); /* or it has ended */
	}
	return vt_value_int(env, child);
}

/* reap(pid, ms): its wait status; -1: it did not end in that time, and was killed. */
static napi_value reap(napi_env env, napi_callback_info info)
{
	napi_value args[2];
	int32_t child, ms;
	int status = 0;

	if (!vt_value_take_args(env, info, 2, args) || !vt_value_take_int(env, args[0], &child) ||
	    !vt_value_take_int(env, args[1], &ms))
		return NULL;
	for (int i = 0; i < ms * 4; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return vt_value_int(env, status);
		(void)usleep(250); /* shorter is as good */
	}
	(void)kill(child, SIGKILL); /* it is ours, and not reaped: it is there */
	return vt_value_int(env, waitpid(child, &status, 0) == child ? -1 : -errno);
}

/* ---- the addon ----------------------------------------------------------------------------- */

/* Whatever road led to the end of the environment: beyond it Node waits for threads. */
static void end_fork(void *unused)
{
	(void)unused;
	if (self.forked)
		_exit(0);
}

static const struct vt_value_function functions[] = {
	{ "about", about },
	{ "sources", vt_node_source_tell_all },
	{ "knowsHandlers", knows_handlers },
	{ "enlarge", enlarge },
	{ "ready", ready },
	{ "serve", serve },
	{ "tell", tell_line },
	{ "warn", tell_warning },
	{ "loads", loads },
	{ "shared", shared },
	{ "threads", threads },
	{ "fail", fail },
	{ "isAwaited", is_awaited },
	{ "sprout", sprout },
	{ "reap", reap },
};

NAPI_MODULE_INIT(/* env, exports */)
{
	vt_revive_end_of_platform();
	if (!vt_value_set_functions(env, exports, functions,
				    sizeof(functions) / sizeof(functions[0])) ||
	    !vt_node_occupant_set_functions(env, exports) ||
	    napi_add_env_cleanup_hook(env, end_fork, NULL) != napi_ok)
		return vt_value_throw(env, "vitro's addon cannot be set up");
	return exports;
}
