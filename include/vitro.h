/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro: every tool call in its own sealed, single-use process.
 *
 *	static int hello(vitro_task *task)
 *	{
 *		return vitro_task_return(task, "\"hello\"");
 *	}
 *
 *	static const struct vitro_tool tools[] = {
 *		{ .name = "hello", .function = hello },
 *		{ 0 },
 *	};
 *
 *	int main(int argc, char **argv)
 *	{
 *		vitro_toolhost *host;
 *		struct vitro_error error;
 *
 *		vitro_host_main(argc, argv, tools);
 *		if (vitro_toolhost_new(&host, tools, NULL, &error) < 0)
 *			return puts(error.text), 1;
 *		vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "hello" });
 *
 *		puts(vitro_result_value(result, NULL));
 *		vitro_result_free(result);
 *		vitro_toolhost_free(host);
 *	}
 *
 * A tool host is a set of named tools. A call checks its arguments against the tool's schema, hands
 * them to a process that waits, sealed, in a cell of its own, and gives a result, whatever happens.
 * The process is never used again.
 *
 * Rules for the whole library:
 *
 * - Functions that can fail return 0 or a negative errno value, and fill *error, which may be NULL.
 *   What they would give through a `ret_` argument is untouched on failure.
 * - Text is UTF-8 and ends in NUL. What is passed in is copied before the function returns.
 * - A handle belongs to one thread at a time; different threads can use different handles at once.
 *   Results and policies do not belong to a tool host, and outlive it.
 * - Functions that free accept NULL, and do nothing then. No other handle may be NULL. A required
 *   text, structure or `ret_` argument that is NULL makes a function that returns an errno value
 *   return -EINVAL; in a request, it makes a result whose status is `refused`.
 * - Reserved members must be 0: anything else is refused.
 * - The library prints nothing, starts no threads, never exits (except in vitro_host_main(), in a
 *   process that the library itself started), touches no signals, and keeps no state between
 *   handles. The processes it starts are not children of this program: neither wait() nor SIGCHLD
 *   reports them, unless this program adopts orphans (as pid 1, or by PR_SET_CHILD_SUBREAPER).
 * - A handle does not survive fork(): in the child it can only be freed, and calls end as
 *   VITRO_LOST.
 * - Call-backs may use the library, even the handle that called them, but must not free it.
 *
 * The manual has a page for each part: see vitro(3).
 */
#ifndef VITRO_H
#define VITRO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The version that a program was compiled with. */
#define VITRO_VERSION_MAJOR 0
#define VITRO_VERSION_MINOR 1
#define VITRO_VERSION_PATCH 0

/* The version of the library that runs: "0.1.0". */
const char *vitro_version(void);

/* What failed and why. */
struct vitro_error {
	int  num;        /* an errno value */
	char text[1020]; /* a sentence for a person; what does not fit is cut */
};

/* ---- policies ------------------------------------------------------------------------------- */

/* What a tool may do: vitro-policy(5). */
typedef struct vitro_policy vitro_policy;

/* The default policy: system programs are readable, no network, 512 MB, 30 s. NULL: no memory. */
vitro_policy *vitro_policy_new(void);
/* Tool hosts and tools made with it are not affected. */
void vitro_policy_free(vitro_policy *policy);

/*
 * These three add to a policy: a later single value replaces an earlier one; lists grow. What is
 * added is checked at once: on failure, -EINVAL for instance, the policy is unchanged.
 */

/*
 * Adds a policy file, or a built-in policy by its name: "default", "strict", "compute". Paths in a
 * file are relative to its folder. The file is read again when a tool host starts to use it.
 */
int vitro_policy_load(vitro_policy *policy, const char *name, struct vitro_error *error);

/* Adds JSON text. Paths in it must be absolute. */
int vitro_policy_load_json(vitro_policy *policy, const char *json, struct vitro_error *error);

/*
 * Adds one key, as --set does: "limits.wall_ms" and "5s", "files.read" and "/srv/data". Paths must
 * be absolute.
 */
int vitro_policy_set(vitro_policy *policy, const char *key, const char *value,
		     struct vitro_error *error);

/* ---- tools ---------------------------------------------------------------------------------- */

/* A call, seen from within its cell. */
typedef struct vitro_task vitro_task;

/*
 * A tool's work, in C. It runs in a cell, in a process of its own. It gives its result by
 * vitro_task_return() or vitro_task_fail(); it returns what those return: 0, or a negative
 * errno value if the result could not be sent. If it returns without having given a result, the
 * call ends as `no_result`.
 */
typedef int vitro_function(vitro_task *task);

/*
 * A tool. Exactly one of function, symbol, command, python and node is set. A table of tools ends
 * with one that has no name. All other members must be 0, reserved ones too.
 */
struct vitro_tool {
	const char *name;        /* letters, digits and "_-.:/", at most 128 */
	const char *description; /* for a model to read; NULL: none */
	/* JSON schema of the arguments, an object; NULL: any object will do */
	const char *schema;

	/*
	 * A function of this program, which is started afresh to run it, and must call
	 * vitro_host_main().
	 */
	vitro_function *function;

	/*
	 * A function of a shared object, by its name, at most 448 bytes; object is an absolute
	 * path. A program of vitro's own loads it. It need not be linked with this library. Where
	 * root runs the program, the file must be readable by everyone. Where there are user
	 * namespaces, its constructors are as sealed off from the host's files and network as its
	 * calls are.
	 */
	const char *object;
	const char *symbol;

	/*
	 * A command, ending with NULL: words that are executed as they are, without a shell. In
	 * them, these stand for arguments of a call:
	 *
	 *   {name}     the argument of that name: a string as it is, anything else as
	 *              JSON. It is required
	 *   {name?}    the same; where it is missing or null, its word is left out, with
	 *              the text around it
	 *   {name...}  alone in its word: one word for each item of a list; none if it is missing
	 *   {-name}    (and {-name?}, {-name...}) the same, and it may begin with '-'
	 *   {{ and }}  a brace
	 *
	 * No argument becomes an option, whatever a model puts in it: one that begins with '-' is
	 * refused unless the template allows it, by {-name} or by a "--" before it. The program's
	 * name cannot contain an argument, nor can the program after env, xargs, nohup, setsid or
	 * nice, nor the text of a script after -c or -e of a shell, Python, Perl, Ruby, Node, Lua
	 * or PHP; write sh -c 'wc -l "$1"' sh {file}. A script that is an argument as a whole, sh
	 * -c {script}, is taken as meant, and runs. What else a program makes of a word, the author
	 * of the template has to know: awk and sed take code as their first word, and sh -s and
	 * others execute what they read.
	 *
	 * Standard input is the arguments as JSON, unless `input` says otherwise. Standard output
	 * is the value: as it is if that is JSON, else as text. An exit code other than 0 is an
	 * error, whose sentence has the end of standard error. The program is looked up when the
	 * tool is added, as `vitro run` does.
	 */
	const char *const *command;

	/* What it may do; NULL: the tool host's policy. */
	const vitro_policy *policy;

	/*
	 * Tools of the host that its calls may call in turn, ending with NULL; NULL: none. "*":
	 * all. They may be added later.
	 */
	const char *const *may_call;

	/*
	 * What a command reads: a text in which {name} and {name?} stand for arguments, as in its
	 * words; a missing one leaves nothing. NULL: the arguments as JSON.
	 */
	const char *input;

	/*
	 * A Python function: "module:function", at most 448 bytes. It is called with the arguments
	 * as keyword arguments, and awaited if it is async; its value is what it returns, which
	 * must fit JSON. An exception is the call's error. The module is imported once, ahead of
	 * calls, and as sealed off as they are. It is looked for where the interpreter looks, then
	 * in folder, an absolute path; NULL: only where the interpreter looks. Calls may read all
	 * of that folder. Where calls may write to the module, each imports it for itself.
	 */
	const char *python;
	const char *folder;
	/*
	 * As typed at a shell, a venv's too. python: CPython 3.8 or newer, default "python3"; node:
	 * Node 18 or newer, default "node". vitro must be built with support for it.
	 */
	const char *interpreter;
	/*
	 * A JavaScript function: "file.mjs#export", at most 448 bytes, of a file in folder. It is
	 * called with the arguments as one object; all else is as for a Python function.
	 */
	const char *node;

	void *reserved[3]; /* NULL; for later members */
};

/*
 * To be called first in main(), with the table of this program's own tools. It returns at once,
 * unless the library started this process to hold tools ready: then it never returns. Whatever
 * comes before it runs in each such process too, where files can be read but not written, and what
 * it leaves in memory, every tool has. Memory that tools would share, and could write to, makes
 * their calls `refused`. Handlers of pthread_atfork() do not run when a tool's process is made.
 */
void vitro_host_main(int argc, char **argv, const struct vitro_tool *tools);

/* ---- the tool host -------------------------------------------------------------------------- */

/* Named tools, and the supervisor that runs their calls. */
typedef struct vitro_toolhost vitro_toolhost;

/* How a tool host works. Every member is optional: 0 is its default. */
struct vitro_options {
	const vitro_policy *policy; /* of tools without their own; NULL: the default one */

	/* Cells kept ready for each policy and program; commands under one policy share them. */
	uint32_t ready_min; /* at least; 0: 2, or ready_max if that is less */
	uint32_t ready_max; /* at most, when calls come fast; 0: 64, or ready_min if that is more */
	uint32_t live_max;  /* calls at once; more wait, as limits.queue_ms allows; 0: 1024 */

	/* Messages about the library's own work. level as in syslog(3); NULL: they are dropped. */
	void (*log)(void *user, int level, const char *text);

	/*
	 * A tool was added, removed or changed after the start: VITRO_TOOL_ADDED, ... NULL: no
	 * call.
	 */
	void (*watch)(void *user, int event, const char *tool);

	void *user; /* for log and watch */

	/*
	 * The path of a server's socket, vitro-serve(1): then its cells are used, which its other
	 * clients share; NULL: a supervisor of the tool host's own. The server must belong to this
	 * user, or to root. It starts this program to hold functions ready, and takes variables
	 * that policies pass on from this program's environment.
	 */
	const char *socket;

	/*
	 * Not 0: the server's own tools (vitro serve --tools) are among this tool host's, and
	 * change as they do there, of which `watch` is told. A tool that this program adds hides
	 * one of the same name.
	 */
	int64_t server_tools;

	void *reserved[6]; /* NULL; for later members */
};

/* What `watch` is told. */
enum { VITRO_TOOL_ADDED = 1, VITRO_TOOL_REMOVED = 2, VITRO_TOOL_CHANGED = 3 };

/*
 * Starts a supervisor, which ends with this process, and waits until it is ready; or connects to a
 * server, where options name one. The supervisor is the program `vitro`: the one that VITRO_BINARY
 * in the environment names, else the one installed with the library, else the first on PATH. tools
 * and options may be NULL. -EPERM: a policy cannot be enforced on this machine; the text says which
 * part, and what to do. -ENOENT: a tool's program or object does not exist.
 */
int vitro_toolhost_new(vitro_toolhost **ret_host, const struct vitro_tool *tools,
		       const struct vitro_options *options, struct vitro_error *error);

/*
 * Ends all that runs or was kept ready, and waits for that. Calls that are not over get no result.
 */
void vitro_toolhost_free(vitro_toolhost *host);

/*
 * Adds a tool, or changes the one of that name. Calls that run already are not affected. Where its
 * policy and program are new to the tool host, it waits until the supervisor has agreed to them.
 */
int vitro_toolhost_add(vitro_toolhost *host, const struct vitro_tool *tool,
		       struct vitro_error *error);
/*
 * Removes a tool. Calls that run already are not affected; what was kept ready for this tool alone
 * goes when they are over. -ENOENT: there is no tool of that name.
 */
int vitro_toolhost_remove(vitro_toolhost *host, const char *name, struct vitro_error *error);

/*
 * The tools as a JSON array of {"name", "description", "input_schema"}, sorted by name: those whose
 * name or description has every word of query in it; NULL: all. To be freed with free(); NULL: no
 * memory, or query is longer than 1024 bytes.
 */
char *vitro_toolhost_list(vitro_toolhost *host, const char *query);

/*
 * What holds a call of this tool on this machine, as JSON: the mechanism of each property, and what
 * is weaker than it might be. With NULL for the tool: a call under the tool host's own policy, for
 * which the supervisor is asked the first time. To be freed with free(); NULL: there is no such
 * tool, the policy cannot be enforced here, the supervisor is gone, or no memory.
 */
char *vitro_toolhost_capabilities(vitro_toolhost *host, const char *tool);

/*
 * Cells and calls of a tool host, of all its policies and programs; with a server, of all clients.
 */
struct vitro_counts {
	uint32_t ready;      /* cells that wait for a call */
	uint32_t refilling;  /* cells that are being made */
	uint32_t live;       /* calls that run */
	uint32_t waiting;    /* calls that wait for a cell */
	uint64_t calls;      /* that were begun so far */
	uint64_t cells_made; /* so far */
	uint64_t cold_calls; /* that found no cell ready */
};

/* Asks the supervisor, and waits for its answer. All members are 0 if it is gone. */
void vitro_toolhost_count(vitro_toolhost *host, struct vitro_counts *ret_counts);

/* ---- calls ---------------------------------------------------------------------------------- */

/* How a call ended. */
typedef struct vitro_result vitro_result;

/* The streams of what a call prints. */
enum { VITRO_STDOUT = 1, VITRO_STDERR = 2 };

/* What a running tool asks this program. See `on_call`. */
typedef struct vitro_question vitro_question;

/* One call. Every member but the tool's name is optional: 0 is its default. */
struct vitro_request {
	const char *tool;      /* its name */
	const char *arguments; /* the text of a JSON object; NULL: {} */
	/*
	 * Yours: at most 63 bytes, no control characters, and of no other running call; NULL: one
	 * is made.
	 */
	const char *call_id;
	/* A shorter deadline than the policy's; 0: the policy's; a negative one is refused. */
	int64_t     wall_ms;

	/* These are called while the call runs, from within vitro_call() or vitro_dispatch(). */
	void *user; /* for the call-backs, and for vitro_done */
	/* What it prints, as it comes. The result has it too. */
	void (*on_output)(void *user, int stream, const char *bytes, size_t len);
	/* A line of vitro_task_log(). */
	void (*on_log)(void *user, const char *level, const char *text);
	/*
	 * It calls, by vitro_task_call(), a tool that this tool host does not have. Answer the
	 * question once, now or later, by vitro_question_answer(). tool and arguments come from
	 * untrusted code: arguments is valid JSON, and nothing else is known of it. NULL: it is
	 * told that there is no such tool. Tools that this one calls ask here too.
	 */
	void (*on_call)(void *user, vitro_question *question, const char *tool,
	      const char *arguments);

	void *reserved[8]; /* NULL; for later members */
};

/*
 * Makes a call, and waits for its result, which is never NULL: whatever goes wrong is in it. Calls
 * that were submitted before go on meanwhile, and their call-backs are made.
 */
vitro_result *vitro_call(vitro_toolhost *host, const struct vitro_request *request);

/* Takes the result of a submitted call, which is yours to free. */
typedef void vitro_done(void *user, vitro_result *result);

/*
 * Begins a call and returns at once. Whatever goes wrong, done is called once, by a later
 * vitro_dispatch() or vitro_call(), and never from within this function. NULL: the result is
 * dropped. -ENOMEM: there is no call, and done is not called.
 */
int vitro_submit(vitro_toolhost *host, const struct vitro_request *request, vitro_done *done);

/*
 * A descriptor to poll for reading: when it is readable, vitro_dispatch() has something to do. The
 * same one for the life of the tool host; do not read from it.
 */
int vitro_toolhost_fd(vitro_toolhost *host);

/* Makes the call-backs that are due, without waiting. Returns how many calls have ended. */
int vitro_dispatch(vitro_toolhost *host);

/*
 * Ends a call, and what it called. Its result comes as always, and says `cancelled`, unless the
 * call was over already. -ENOENT: no call of that id runs. -EINVAL: the id is NULL.
 */
int vitro_cancel(vitro_toolhost *host, const char *call_id);
/* Ends all calls. */
void vitro_cancel_all(vitro_toolhost *host);
/* 1 if a call of that id is not over, else 0; NULL: if any call is not. */
int vitro_is_running(vitro_toolhost *host, const char *call_id);

/*
 * Answers a question, and frees it: with a JSON value, or, if that is NULL, with a sentence that
 * says what went wrong. A NULL question is ignored. If its call has ended meanwhile, or its tool
 * host was freed, the answer goes nowhere, which does no harm.
 */
void vitro_question_answer(vitro_question *question, const char *value, const char *error);

/* ---- results -------------------------------------------------------------------------------- */

/* Why a call ended. One cause, one status. */
enum vitro_status {
	VITRO_OK = 0,       /* there is a value */
	/* the tool failed: an error of its own, an exit code, no such program */
	VITRO_ERROR,
	VITRO_TIMEOUT,      /* it ran past its deadline, or found no cell in time */
	VITRO_CPU_LIMIT,    /* it used more CPU time than it may */
	VITRO_MEMORY_LIMIT, /* it used more memory than it may */
	VITRO_CRASHED,      /* it died of a signal, or sent a malformed message */
	VITRO_NO_RESULT,    /* it ended without one, or gave one that is not JSON */
	/* its value is too large, or the output that would be its value was cut */
	VITRO_RESULT_LIMIT,
	VITRO_CANCELLED,    /* by vitro_cancel(), or because the call that made it ended */
	/* by the policy, as an invalid request, or by a server that takes no more */
	VITRO_REFUSED,
	VITRO_LOST          /* the supervisor failed; whether the tool ran is not known */
};

/* What a call took. */
struct vitro_usage {
	double  wall_ms;        /* from when its cell got it to its end */
	double  cpu_ms;         /* of its processes, as far as they were seen */
	int64_t peak_memory_kb; /* -1: not known */
	int64_t processes;      /* the most that were seen at once; -1: not known */
};

/* Frees it, with all that the functions below returned from it. */
void vitro_result_free(vitro_result *result);

enum vitro_status vitro_result_status(const vitro_result *result);
/* The word for a status, as in JSON: "memory_limit". Never NULL. */
const char *vitro_status_name(enum vitro_status status);

/* The request's id; or one that was made, where it had none or an invalid one. */
const char *vitro_result_call_id(const vitro_result *result);

/* The value: valid JSON, from untrusted code. NULL unless the status is VITRO_OK. */
const char *vitro_result_value(const vitro_result *result, size_t *ret_len);

/* The error: a word such as "Timeout". NULL if the status is VITRO_OK. */
const char *vitro_result_error_type(const vitro_result *result);
/* The error: a sentence, or the tool's own text, up to 8 KB. NULL if the status is VITRO_OK. */
const char *vitro_result_error(const vitro_result *result);

/*
 * What was printed: any bytes, followed by a NUL. stream is VITRO_STDOUT or VITRO_STDERR. Never
 * NULL. Here and above, ret_len may be NULL.
 */
const char *vitro_result_output(const vitro_result *result, int stream, size_t *ret_len);
/* How many bytes of it were dropped, because it was too much. */
uint64_t vitro_result_dropped(const vitro_result *result, int stream);

/* Its exit code; -1: it did not exit by itself. */
int vitro_result_exit_code(const vitro_result *result);
/* The signal that it died of; 0: none. */
int vitro_result_signal(const vitro_result *result);

void vitro_result_usage(const vitro_result *result, struct vitro_usage *ret_usage);

/*
 * What held the call, as vitro_toolhost_capabilities() says it; NULL: it came to no cell, or the
 * tool is a server's own, and only the server knows.
 */
const char *vitro_result_isolation(const vitro_result *result);

/*
 * The whole result as `vitro run --json` prints it, in one line with a newline. "logs" has the
 * lines of vitro_task_log(), as {"level", "text"}, up to 256 KB in all. NULL: no memory.
 */
const char *vitro_result_json(vitro_result *result);

/* ---- inside a cell -------------------------------------------------------------------------- */

/* The arguments, as the JSON text of an object that the schema allows. ret_len may be NULL. */
const char *vitro_task_arguments(const vitro_task *task, size_t *ret_len);
/* The call's id. */
const char *vitro_task_call_id(const vitro_task *task);

/* Gives the result: a JSON value. Only the first one counts. */
int vitro_task_return(vitro_task *task, const char *json);
/* The same, of len bytes. */
int vitro_task_return_bytes(vitro_task *task, const char *json, size_t len);
/* Gives an error instead: a word such as "ValueError", at most 512 bytes, and a sentence. */
int vitro_task_fail(vitro_task *task, const char *type, const char *message);

/*
 * A line for the caller's on_log, and for "logs" of the result, of which the first 64 KB are sent.
 * level: "info", "error", ...
 */
int vitro_task_log(vitro_task *task, const char *level, const char *text);

/*
 * Calls a tool of the host that this one may call, and waits. arguments is the text of a JSON
 * object; NULL: {}. *ret_value is its value as JSON text, or, with -EREMOTEIO, the sentence of its
 * error; free it with free() either way. -EMSGSIZE: arguments are longer than limits.result_mb.
 */
int vitro_task_call(vitro_task *task, const char *tool, const char *arguments, char **ret_value);

/* The same in two parts, so that many can be under way: *ret_ticket names the call. */
int vitro_task_submit(vitro_task *task, const char *tool, const char *arguments,
		      uint64_t *ret_ticket);
/*
 * Waits for that call, or, with ticket 0, for any; *ret_ticket says which, and may be NULL.
 * -ENOENT: there is none to wait for.
 */
int vitro_task_await(vitro_task *task, uint64_t ticket, uint64_t *ret_ticket, char **ret_value);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
