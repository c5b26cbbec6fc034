/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "client/error.h"
#include "client/host_private.h"
#include "client/policy.h"
#include "tool/function.h"

enum { PROTOCOL = 1, HELLO_MS = 30000, READY_MIN = 2, READY_MAX = 64 };

const char *vitro_version(void)
{
	return VITRO_VERSION;
}

/* ---- what a tool does ----------------------------------------------------------------------- */

static void target_free(void *owner)
{
	struct vt_target *target = owner;

	vt_host_pool_release(target->pool);
	free(target->symbol);
	vt_template_free(target->command);
	vt_template_free(target->input);
	free(target->may_call);
	free(target);
}

/* A copy that is freed as a whole. NULL: no memory. */
static char **copy_words(const char *const *words)
{
	size_t count = 0, bytes = 0;

	for (; words[count]; count++)
		bytes += strlen(words[count]) + 1;
	char **copy = malloc((count + 1) * sizeof(char *) + bytes);
	char *at = copy ? (char *)(copy + count + 1) : NULL;

	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = at;
		at = stpcpy(at, words[i]) + 1;
	}
	if (copy)
		copy[count] = NULL;
	return copy;
}

/*
 * Which program this is. Its file may be gone, or another be in its place: the supervisor has had
 * it since it was started, and the path is only a name then.
 */
static int find_program(char path[PATH_MAX], struct vt_err *err)
{
	static const char removed[] = " (deleted)"; /* the kernel's word for it */
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (len < 0 && errno == ENOENT)
		return vt_fail(err, VT_STEP_COMMAND, ENOENT,
			       "refused: a pool needs /proc, by which this program is found");
	if (len <= 0 || len >= PATH_MAX - 1)
		return vt_fail(err, VT_STEP_COMMAND, len < 0 ? errno : ENAMETOOLONG,
			       "cannot find out which program this is: /proc/self/exe");
	path[len] = '\0';
	size_t kept = (size_t)len - (sizeof(removed) - 1);

	if ((size_t)len >= sizeof(removed) && strcmp(path + kept, removed) == 0 &&
	    access(path, F_OK) < 0)
		path[kept] = '\0';
	return 0;
}

static enum vt_host_pool_kind kind_of(const struct vitro_tool *tool)
{
	return tool->function ? VT_HOST_POOL_PROGRAM
	       : tool->symbol ? VT_HOST_POOL_OBJECT
	       : tool->python ? VT_HOST_POOL_PYTHON
	       : tool->node   ? VT_HOST_POOL_NODE
			      : VT_HOST_POOL_COMMAND;
}

static int choose_pool(vitro_toolhost *host, const struct vitro_tool *tool,
		       struct vt_target *target, struct vt_err *err)
{
	const vitro_policy *policy = tool->policy ? tool->policy : host->policy;
	struct vt_host_pool_key key = { .kind = kind_of(tool) };
	enum vt_language language;
	const char *function = vt_tool_function(tool, &language);
	char program[PATH_MAX];
	int status = 0;

	if (key.kind == VT_HOST_POOL_PROGRAM) {
		status = find_program(program, err);
		key.path = program;
	} else if (function) {
		status = vt_tool_set_up(language, function, tool->folder, &key.setup, err);
		key.path = tool->interpreter ? tool->interpreter : vt_language_program(language);
	} else {
		key.path = target->command ? vt_template_program(target->command) : tool->object;
	}
	if (status == 0)
		status = vt_policy_sources_reading(policy, tool->folder, &key.policy, err);
	if (status < 0) {
		free(key.setup);
		return status;
	}
	target->pool = vt_host_pool_get(host, &key);
	return target->pool ? 0 : vt_error_no_memory(err);
}

static int check_function(const struct vitro_tool *tool, struct vt_err *err)
{
	enum vt_language language;
	const char *function = vt_tool_function(tool, &language);
	struct vt_err inner;

	if (!function && (tool->folder || tool->interpreter))
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: %s is for python and node",
			       tool->name, tool->interpreter ? "interpreter" : "folder");
	if (function &&
	    vt_tool_check_function(language, function, vt_language_name(language), &inner) < 0)
		return vt_fail(err, inner.step, inner.num, "%s: %s", tool->name, inner.what);
	if (tool->node && !tool->folder)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: node needs a folder", tool->name);
	if (tool->folder && tool->folder[0] != '/')
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: folder must be an absolute path",
			       tool->name);
	if (tool->interpreter && !*tool->interpreter)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: interpreter is empty", tool->name);
	return 0;
}

static int check_symbol(const struct vitro_tool *tool, struct vt_err *err)
{
	if (tool->symbol && !*tool->symbol)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: symbol is empty", tool->name);
	if (tool->symbol && strlen(tool->symbol) > VT_TOOL_MAX_FUNCTION)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: symbol has more than %d bytes",
			       tool->name, VT_TOOL_MAX_FUNCTION);
	if (!tool->object != !tool->symbol)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s: object and symbol must be set together", tool->name);
	if (tool->object && tool->object[0] != '/')
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: object must be an absolute path",
			       tool->name);
	return 0;
}

static int check_kind(const struct vitro_tool *tool, struct vt_err *err)
{
	int kinds = !!tool->function + !!tool->symbol + !!tool->command + !!tool->python +
		    !!tool->node;

	if (kinds != 1)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s: exactly one of function, symbol, command, python and "
			       "node must be set",
			       tool->name);
	if (!VT_IS_CLEAR(tool->reserved))
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: reserved must be 0", tool->name);
	for (const char *const *at = tool->may_call; at && *at; at++)
		if (!**at)
			return vt_fail(err, VT_STEP_POLICY, EINVAL,
				       "%s: may_call has an empty name", tool->name);
	if (tool->input && !tool->command)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: input is for commands",
			       tool->name);
	int status = check_symbol(tool, err);

	return status < 0 ? status : check_function(tool, err);
}

static int fill_target(vitro_toolhost *host, const struct vitro_tool *tool,
		       const struct vt_tool *made, struct vt_target *target, struct vt_err *err)
{
	enum vt_language language;
	const char *symbol = tool->symbol ? tool->symbol : vt_tool_function(tool, &language);
	struct vt_err inner = { 0 };

	if (symbol && !(target->symbol = strdup(symbol)))
		return vt_error_no_memory(err);
	if (tool->may_call && !(target->may_call = copy_words(tool->may_call)))
		return vt_error_no_memory(err);
	if (tool->command && vt_template_compile(tool->command, made->schema, "command",
						 &target->command, &inner) < 0)
		return vt_fail(err, inner.step, inner.num, "%s: %s", tool->name, inner.what);
	if (tool->input && vt_template_compile_input(tool->input, made->schema, "input",
						     &target->input, &inner) < 0)
		return vt_fail(err, inner.step, inner.num, "%s: %s", tool->name, inner.what);
	return choose_pool(host, tool, target, err);
}

/* A tool with its target, whose pool may not be open yet. */
static int make_tool(vitro_toolhost *host, const struct vitro_tool *tool, struct vt_tool **ret_tool,
		     struct vt_err *err)
{
	struct vt_tool *made;
	int status = vt_tool_new(tool->name ? tool->name : "", tool->description, tool->schema,
				 &made, err);

	if (status < 0)
		return status;
	struct vt_target *target = calloc(1, sizeof(*target));

	made->owner = target;
	made->release = target ? target_free : NULL;
	status = target ? check_kind(tool, err) : vt_error_no_memory(err);
	if (status == 0)
		status = fill_target(host, tool, made, target, err);
	if (status < 0)
		vt_tool_unref(made);
	else
		*ret_tool = made;
	return status;
}

static void tell_warnings(const vitro_toolhost *host, const struct vt_tool *tool)
{
	struct vt_str text;

	vt_str_init(&text);
	for (size_t i = 0; i < tool->warnings.count; i++) {
		vt_str_clear(&text);
		vt_str_addf(&text, "%s: %s", tool->name, tool->warnings.items[i]);
		if (vt_str_ok(&text))
			vt_host_log(host, LOG_WARNING, text.text);
	}
	vt_str_done(&text);
}

static int add_tool(vitro_toolhost *host, const struct vitro_tool *tool, struct vt_err *err)
{
	struct vt_tool *made;
	int status = make_tool(host, tool, &made, err);

	if (status == 0) {
		status = vt_toolset_add(host->tools, made, err);
		if (status == 0)
			tell_warnings(host, made);
		vt_tool_unref(made);
	}
	return status;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static void tell_change(void *user, enum vt_toolset_event event, const struct vt_tool *tool)
{
	vitro_toolhost *host = user;

	if (host->watched && host->options.watch)
		host->options.watch(host->options.user, (int)event, tool->name);
}

static enum vt_peer_taken take_hello(void *user, const struct vt_message *message,
				     struct vt_err *err)
{
	int64_t version = vt_head_int(&message->head, "version", -1);
	const char *program = vt_head_text(&message->head, "vitro", NULL);

	(void)user; /* nothing is kept of it */
	if (strcmp(message->is, "log") == 0)
		return VT_PEER_OTHER;
	if (strcmp(message->is, "refused") == 0) {
		const char *why = vt_head_text(&message->head, "error", NULL);

		vt_fail(err, VT_STEP_WIRE, ECONNREFUSED, "%s", why ? why : "it refuses");
		return VT_PEER_WRONG;
	}
	/* Of the same version to the letter: what is in a plan is between these two alone. */
	if (strcmp(message->is, "hello") == 0 && version == PROTOCOL && program &&
	    strcmp(program, VITRO_VERSION) == 0)
		return VT_PEER_LAST;
	vt_fail(err, VT_STEP_WIRE, EPROTO,
		"this library is vitro " VITRO_VERSION " and the supervisor %s: "
		"they do not understand each other",
		program ? program : "something else");
	return VT_PEER_WRONG;
}

/* A server has another working directory and environment. */
static int send_hello(struct vt_peer *peer, struct vt_err *err)
{
	struct vt_str *head = vt_peer_begin(peer, "hello");
	char cwd[PATH_MAX];
	struct vt_str body;

	vt_head_add_int(head, "version", PROTOCOL);
	vt_str_init(&body);
	if (peer->is_server) {
		for (char **at = environ; at && *at; at++)
			vt_str_addn(&body, *at, strlen(*at) + 1);
		if (getcwd(cwd, sizeof(cwd)) && *cwd == '/') /* or it is gone */
			vt_head_add(head, "cwd", cwd);
	}
	int status = vt_str_ok(&body) ? vt_peer_send(peer, body.text, body.len, err)
				      : vt_error_no_memory(err);

	vt_str_done(&body);
	return status;
}

static int say_hello(struct vt_peer *peer, struct vt_err *err)
{
	struct vt_err inner = { 0 };
	int status = send_hello(peer, &inner);

	if (status == 0)
		status = vt_peer_await(peer, HELLO_MS, take_hello, NULL, &inner);
	if (status == 0)
		return 0;
	vt_start_kill(&peer->process);
	if (peer->is_server)
		return vt_fail(err, VT_STEP_WIRE, inner.num, "the server at '%s': %s",
			       peer->program,
			       inner.num == EPIPE ? "it ended without a word" : inner.what);
	return vt_fail(err, VT_STEP_WIRE, inner.num,
		       "'%s', which was started as the supervisor: %s", peer->program,
		       inner.num == EPIPE
			       ? "it ended without a word; it is no vitro, or cannot run "
				 "within this program's limits (ulimit -a)"
			       : inner.what);
}

static int take_options(vitro_toolhost *host, const struct vitro_options *given, struct vt_err *err)
{
	struct vitro_options *options = &host->options;

	if (given)
		*options = *given;
	if (!VT_IS_CLEAR(options->reserved))
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "reserved must be 0 in options");
	/* Whoever names one of them need not name the other. */
	if (!options->ready_max)
		options->ready_max = options->ready_min > READY_MAX ? options->ready_min
								    : READY_MAX;
	if (!options->ready_min)
		options->ready_min = options->ready_max < READY_MIN ? options->ready_max
								    : READY_MIN;
	options->live_max = options->live_max ? options->live_max : 1024;
	if (options->ready_min > options->ready_max)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "ready_min is %u, and ready_max %u: less than that",
			       options->ready_min, options->ready_max);
	if (options->server_tools && !options->socket)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "server_tools is set, and socket names no server");
	host->policy = vitro_policy_new();
	if (!host->policy)
		return vt_error_no_memory(err);
	if (options->policy)
		vt_str_addn(&host->policy->sources, options->policy->sources.text,
			    options->policy->sources.len);
	options->policy = NULL;
	options->socket = NULL; /* it is the caller's */
	return vt_str_ok(&host->policy->sources) ? 0 : vt_error_no_memory(err);
}

/* All but the pools, which all open at once. */
static int set_up(vitro_toolhost *host, const struct vitro_tool *tools,
		  const struct vitro_options *options, struct vt_err *err)
{
	int status = take_options(host, options, err);

	host->tools = vt_toolset_new(tell_change, host);
	if (status == 0 && !host->tools)
		status = vt_error_no_memory(err);
	for (; status == 0 && tools && tools->name; tools++) {
		if (vt_toolset_find(host->tools, tools->name))
			return vt_fail(err, VT_STEP_POLICY, EEXIST,
				       "%s: there are two tools of that name", tools->name);
		status = add_tool(host, tools, err);
	}
	if (status == 0)
		status = options && options->socket
				 ? vt_peer_connect(&host->peer, options->socket, err)
				 : vt_peer_init(&host->peer, err);
	if (status == 0)
		status = say_hello(&host->peer, err);
	return status == 0 && host->options.server_tools ? vt_remote_open(host, err) : status;
}

int vitro_toolhost_new(vitro_toolhost **ret_host, const struct vitro_tool *tools,
		       const struct vitro_options *options, struct vitro_error *error)
{
	/* Each such process would start the next. */
	if (getenv("VITRO_ZYGOTE"))
		return vt_error_give(
			error, EDEADLK,
			"this process was started to hold tools ready, and the program "
			"has not called vitro_host_main() first");
	if (!ret_host)
		return vt_error_give(error, EINVAL, "there is no room for the tool host: NULL");
	vitro_toolhost *host = calloc(1, sizeof(*host));
	struct vt_err err = { 0 };

	if (!host)
		return vt_error_give(error, ENOMEM, "out of memory");
	host->ready_end = &host->ready;
	vt_peer_clear(&host->peer);
	int status = set_up(host, tools, options, &err);

	status = status < 0 ? vt_error_pass(error, &err) : vt_host_pools_open(host, error);
	if (status < 0) {
		vitro_toolhost_free(host);
		return status;
	}
	host->watched = true;
	*ret_host = host;
	return 0;
}

void vitro_toolhost_free(vitro_toolhost *host)
{
	if (!host)
		return;
	vt_peer_close(&host->peer);
	host->busy++; /* nobody is told */
	vt_call_end_all(host);
	while (host->ready) {
		struct vt_call *next = host->ready->next;

		vt_call_free(host->ready);
		host->ready = next;
	}
	vt_calls_done(&host->calls);
	vt_toolset_free(host->tools);
	vt_host_pool_release(host->own_pool);
	vitro_policy_free(host->policy);
	vt_peer_done(&host->peer);
	free(host);
}

/* ---- tools ---------------------------------------------------------------------------------- */

/* The pool opens before the tool is there, so that there is none that cannot be called. */
int vitro_toolhost_add(vitro_toolhost *host, const struct vitro_tool *tool,
		       struct vitro_error *error)
{
	struct vt_tool *made;
	struct vt_err err = { 0 };

	if (!tool)
		return vt_error_give(error, EINVAL, "the tool is NULL");
	/* Even where there is nothing to ask for. */
	if (host->peer.lost)
		return vt_error_give(error, EPIPE, "the supervisor was lost");
	if (make_tool(host, tool, &made, &err) < 0)
		return vt_error_pass(error, &err);
	int status = vt_host_pools_open(host, error);

	if (status == 0 && vt_toolset_add(host->tools, made, &err) < 0)
		status = vt_error_pass(error, &err);
	if (status == 0)
		tell_warnings(host, made);
	vt_tool_unref(made);
	return status;
}

int vitro_toolhost_remove(vitro_toolhost *host, const char *name, struct vitro_error *error)
{
	struct vt_err err = { 0 };

	if (!name)
		return vt_error_give(error, EINVAL, "the name of the tool is NULL");
	int status = vt_toolset_remove(host->tools, name, &err);

	return status < 0 ? vt_error_pass(error, &err) : 0;
}

char *vitro_toolhost_list(vitro_toolhost *host, const char *query)
{
	struct vt_err err;
	char *json;

	return vt_toolset_list(host->tools, query, &json, &err) < 0 ? NULL : json;
}

/* Under the tool host's own policy, which may be no tool's. */
static const struct vt_host_pool *own_pool(vitro_toolhost *host)
{
	if (host->own_pool)
		return host->own_pool;
	struct vt_host_pool *pool = vt_host_pool_get(
		host, &(struct vt_host_pool_key){ .kind = VT_HOST_POOL_NONE,
						  .policy = vt_policy_sources(host->policy) });

	if (pool && vt_host_pools_open(host, NULL) < 0) {
		vt_host_pool_release(pool);
		return NULL;
	}
	return host->own_pool = pool;
}

char *vitro_toolhost_capabilities(vitro_toolhost *host, const char *tool)
{
	struct vt_tool *found = tool ? vt_toolset_find(host->tools, tool) : NULL;
	const struct vt_host_pool *pool = found  ? ((struct vt_target *)found->owner)->pool
					  : tool ? NULL
						 : own_pool(host);

	return pool && pool->capabilities ? strdup(pool->capabilities) : NULL;
}

void vitro_toolhost_count(vitro_toolhost *host, struct vitro_counts *ret_counts)
{
	vt_host_pools_count(host, ret_counts);
}
