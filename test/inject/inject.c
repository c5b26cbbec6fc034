/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program of vitro's, and makes one system call of one of its processes fail:
 *
 *	vitro-inject LOG PROGRAM ARGUMENT...
 *	vitro-inject LOG --at ROLE:CALL:NUMBER PROGRAM ARGUMENT...
 *
 * All processes that come of it are traced, so that this is what users run, with nothing built in.
 * The call is not made; it returns an error that fits it. Lines of the log:
 *
 *	count ROLE CALL NUMBER     so many of these were made
 *	hit ROLE CALL NUMBER       this one failed
 *	began LINE                 what runs in a cell began in this cgroup: a line of its
 *	                           /proc/PID/cgroup, as only one who stands outside sees it
 *	mark                       a tool, or code, begins or ends in its occupant
 *	vitro PID                  a process that began as vitro
 *	left ROLE PID NAME         a process that was there SECONDS_AFTER after the program's end,
 *	                           and was killed
 *
 * The exit code is the program's, 128 and the signal's number if one ended it, or 125 if this
 * program failed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* MARK: a descriptor that nobody has. What runs in an occupant closes it first and last, which any
 * language can say; what fails in between is not vitro's. */
enum { SECONDS_AFTER = 5, CALLS = 1024, TRACEES = 4096, MARK = 1986622064 };

enum role {
	ROLE_CLIENT, /* the program, and whatever it starts but supervisors */
	ROLE_SUPERVISOR,
	ROLE_HELPER, /* a fork of the supervisor: a look, a broker, a zygote before its exec */
	ROLE_SPAWNER,
	ROLE_ZYGOTE,
	ROLE_INIT,
	ROLE_OCCUPANT,
	ROLE_COMMAND, /* what runs in a cell, and is not vitro's */
	ROLES,
};

static const char *const role_names[ROLES] = {
	[ROLE_CLIENT] = "client",     [ROLE_SUPERVISOR] = "supervisor", [ROLE_HELPER] = "helper",
	[ROLE_SPAWNER] = "spawner",   [ROLE_ZYGOTE] = "zygote",         [ROLE_INIT] = "init",
	[ROLE_OCCUPANT] = "occupant", [ROLE_COMMAND] = "command",
};

struct tracee {
	pid_t pid, process; /* threads of one process have one role */
	enum role role;
	bool adopted; /* its parent has been heard about it */
	bool stopped; /* and until then it waits */
	bool failing; /* the call that it is in is not made */
};

struct point {
	enum role role;
	char call[64];
	unsigned number;
};

static struct {
	FILE *log;
	struct point at;
	bool wanted, hit;
	unsigned counts[ROLES][CALLS];
	struct tracee tracees[TRACEES];
	size_t tracee_count;
} state;

static _Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(125);
}

/* ---- tracees ------------------------------------------------------------------------------- */

static struct tracee *find(pid_t pid)
{
	for (size_t i = 0; i < state.tracee_count; i++)
		if (state.tracees[i].pid == pid)
			return &state.tracees[i];
	if (state.tracee_count == TRACEES)
		die("more than %d processes", TRACEES);
	state.tracees[state.tracee_count] = (struct tracee){ .pid = pid };
	return &state.tracees[state.tracee_count++];
}

static void forget(struct tracee *tracee)
{
	*tracee = state.tracees[--state.tracee_count];
}

/* Whoever makes no call that matters goes on without a stop at each. A tool in its occupant tells
 * by a call where it begins. */
static bool is_heard(const struct tracee *tracee)
{
	return !state.wanted || tracee->failing || tracee->role == ROLE_OCCUPANT ||
	       tracee->role == ROLE_COMMAND || (!state.hit && tracee->role == state.at.role);
}

/* One that is gone is heard of by its end. */
static void go_on(const struct tracee *tracee, int signal)
{
	if (ptrace(is_heard(tracee) ? PTRACE_SYSCALL : PTRACE_CONT, tracee->pid, NULL,
		   (void *)(long)signal) < 0 &&
	    errno != ESRCH)
		die("let %d go on: %s", (int)tracee->pid, strerror(errno));
}

/* The line of /proc/PID/status that starts so; an empty one, if it is gone since. */
static void read_status(pid_t pid, const char *start, char *ret_line, size_t size)
{
	char path[64], line[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");

	ret_line[0] = '\0';
	while (file && !ret_line[0] && fgets(line, sizeof(line), file))
		if (strncmp(line, start, strlen(start)) == 0)
			(void)snprintf(ret_line, size, "%s", line);
	if (file)
		(void)fclose(file);
}

/* Of how many pid namespaces a process has a number. */
static int depth_of(pid_t pid)
{
	char line[512];
	int depth = 0;

	read_status(pid, "NSpid:", line, sizeof(line));
	for (char *at = line; (at = strchr(at, '\t')); at++)
		depth++;
	return depth;
}

static pid_t process_of(pid_t pid)
{
	char line[512];
	int process = pid;

	read_status(pid, "Tgid:", line, sizeof(line));
	(void)sscanf(line, "Tgid: %d", &process);
	return process;
}

static void set_role(const struct tracee *of, enum role role)
{
	for (size_t i = 0; i < state.tracee_count; i++)
		if (state.tracees[i].process == of->process)
			state.tracees[i].role = role;
}

static enum role role_of_child(const struct tracee *parent, const struct tracee *child)
{
	if (child->process == parent->process)
		return parent->role;
	switch (parent->role) {
	case ROLE_SUPERVISOR:
	case ROLE_HELPER: /* one of them makes hulls */
		return depth_of(child->pid) > depth_of(parent->pid) ? ROLE_INIT : ROLE_HELPER;
	case ROLE_SPAWNER:
		return ROLE_INIT;
	case ROLE_ZYGOTE:
	case ROLE_INIT:
		return ROLE_OCCUPANT;
	case ROLE_OCCUPANT:
		return ROLE_COMMAND;
	default:
		return parent->role;
	}
}

static void read_name(pid_t pid, char *ret_name, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t len = readlink(path, ret_name, size - 1);

	ret_name[len < 0 ? 0 : len] = '\0';
	char *slash = strrchr(ret_name, '/');

	if (slash)
		memmove(ret_name, slash + 1, strlen(slash));
}

static enum role role_of_exec(const struct tracee *tracee)
{
	char name[4096];

	switch (tracee->role) {
	case ROLE_INIT:
		return ROLE_SPAWNER;
	case ROLE_HELPER:
		return ROLE_ZYGOTE;
	case ROLE_OCCUPANT:
		return ROLE_COMMAND;
	case ROLE_CLIENT:
		read_name(tracee->pid, name, sizeof(name));
		return strcmp(name, "vitro") == 0 ? ROLE_SUPERVISOR : ROLE_CLIENT;
	default:
		return tracee->role;
	}
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Those that cannot fail, as what is done with valid arguments alone, or whose failure nobody can
 * do anything about, or that only wait. */
static bool is_left_out(const char *call, const struct __ptrace_syscall_info *info)
{
	static const char *const names[] = {
		"arch_prctl",
		"brk",
		"clock_nanosleep",
		"close",
		"exit",
		"exit_group",
		"futex",
		"getegid",
		"geteuid",
		"getgid",
		"getpgrp",
		"getpid",
		"getppid",
		"gettid",
		"getuid",
		"pause",
		"rseq",
		"rt_sigprocmask",
		"rt_sigreturn",
		"sched_yield",
		"set_robust_list",
		"restart_syscall",
		"umask",
		"set_tid_address",
		NULL,
	};

	for (const char *const *name = names; *name; name++)
		if (strcmp(*name, call) == 0)
			return true;
	return info->entry.nr == SYS_epoll_ctl && info->entry.args[1] == EPOLL_CTL_DEL;
}

/* Never one that says that this machine lacks something: that is a reason to make other cells, and
 * this is not. */
static int error_of(const char *call)
{
	static const struct {
		const char *start;
		int error;
	} errors[] = {
		{ "clone", EAGAIN }, { "fork", EAGAIN },   { "vfork", EAGAIN }, { "open", EMFILE },
		{ "pipe", EMFILE },  { "socket", EMFILE }, { "wait", ECHILD },
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strncmp(call, errors[i].start, strlen(errors[i].start)) == 0)
			return errors[i].error;
	return ENOMEM;
}

static const char *call_name(long number)
{
	static char *names[CALLS];

	if (number < 0 || number >= CALLS)
		return NULL;
	if (!names[number])
		names[number] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
	return names[number];
}

#if defined(__x86_64__)
static bool skip_call(pid_t pid)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L) == 0;
}

static bool set_result(pid_t pid, long result)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), result) == 0;
}
#elif defined(__aarch64__)
static bool skip_call(pid_t pid)
{
	int none = -1;
	struct iovec part = { &none, sizeof(none) };

	return ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &part) == 0;
}

static bool set_result(pid_t pid, long result)
{
	struct user_regs_struct regs;
	struct iovec part = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &part) < 0)
		return false;
	regs.regs[0] = (unsigned long long)result;
	return ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &part) == 0;
}
#else
#error "how a system call is left out on this machine"
#endif

/* What is not vitro's is about to run. */
static void note_cgroups(pid_t pid)
{
	char path[64], line[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	FILE *file = fopen(path, "re");

	if (!file)
		die("open '%s': %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file))
		(void)fprintf(state.log, "began %s", line);
	(void)fclose(file);
}

static void enter_call(struct tracee *tracee, const struct __ptrace_syscall_info *info)
{
	long number = (long)info->entry.nr;
	const char *call = call_name(number);

	if (number == SYS_close && info->entry.args[0] == MARK) {
		(void)fprintf(state.log, "mark\n");
		if (tracee->role == ROLE_OCCUPANT) {
			set_role(tracee, ROLE_COMMAND);
			note_cgroups(tracee->pid);
		} else if (tracee->role == ROLE_COMMAND) {
			set_role(tracee, ROLE_OCCUPANT);
		}
	}
	if (!call || is_left_out(call, info))
		return;
	unsigned count = ++state.counts[tracee->role][number];

	if (!state.wanted || state.hit || tracee->role != state.at.role ||
	    count != state.at.number || strcmp(call, state.at.call) != 0)
		return;
	if (!skip_call(tracee->pid))
		die("leave out a call of %d: %s", (int)tracee->pid, strerror(errno));
	tracee->failing = state.hit = true;
	(void)fprintf(state.log, "hit %s %s %u\n", role_names[tracee->role], call, count);
}

static void at_call(struct tracee *tracee)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->pid, (void *)sizeof(info), &info) < 0)
		return; /* gone since */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		enter_call(tracee, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && tracee->failing) {
		tracee->failing = false;
		if (!set_result(tracee->pid, -error_of(state.at.call)))
			die("fail a call of %d: %s", (int)tracee->pid, strerror(errno));
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void adopt(const struct tracee *parent)
{
	unsigned long pid;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0)
		return; /* gone since, and its child is heard of by its end */
	struct tracee *child = find((pid_t)pid);

	child->process = process_of(child->pid);
	child->role = role_of_child(parent, child);
	child->adopted = true;
	if (child->stopped)
		go_on(child, 0);
}

static void at_stop(struct tracee *tracee, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (!tracee->adopted) { /* the stop that each begins with */
		tracee->stopped = true;
		return;
	}
	if (signal == (SIGTRAP | 0x80)) {
		at_call(tracee);
		signal = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		tracee->role = role_of_exec(tracee);
		if (tracee->role == ROLE_COMMAND)
			note_cgroups(tracee->pid);
		if (tracee->role == ROLE_SUPERVISOR)
			(void)fprintf(state.log, "vitro %d\n", (int)tracee->pid);
		signal = 0;
	} else if (event) {
		adopt(tracee);
		signal = 0;
	} else if (signal == SIGSTOP) {
		signal = 0; /* the same, where its parent was heard first */
	}
	go_on(tracee, signal);
}

static void begin(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
			die("be traced: %s", strerror(errno));
		execv(argv[0], argv);
		die("execute '%s': %s", argv[0], strerror(errno));
	}
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		die("start the program");
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
		die("trace the program: %s", strerror(errno));
	struct tracee *first = find(pid);

	first->process = pid;
	first->adopted = true;
	go_on(first, 0);
}

static void kill_what_is_left(void)
{
	char name[4096];

	for (size_t i = 0; i < state.tracee_count; i++) {
		const struct tracee *tracee = &state.tracees[i];

		read_name(tracee->pid, name, sizeof(name));
		(void)fprintf(state.log, "left %s %d %s\n", role_names[tracee->role],
			      (int)tracee->pid, name);
		(void)kill(tracee->pid,
			   SIGKILL); /* a tracee, which nobody reaped: the number is its */
	}
}

/* Until all are gone. The wait status of the first. */
static int trace(pid_t first)
{
	int64_t until = 0;
	int status, code = 0;

	while (state.tracee_count > 0) {
		pid_t pid = waitpid(-1, &status, __WALL | (until ? WNOHANG : 0));

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			die("wait: %s", strerror(errno));
		if (pid == 0 && vt_clock_now() > until) {
			kill_what_is_left();
			break; /* the rest goes with the tracer */
		}
		if (pid == 0) {
			const struct timespec moment = { .tv_nsec = VT_NS_PER_MS };

			(void)nanosleep(&moment, NULL); /* or shorter */
			continue;
		}
		struct tracee *tracee = find(pid);

		if (WIFSTOPPED(status)) {
			at_stop(tracee, status);
			continue;
		}
		forget(tracee);
		if (pid == first) {
			code = status;
			until = vt_clock_now() + SECONDS_AFTER * VT_NS_PER_S;
		}
	}
	return code;
}

static void parse_point(const char *text)
{
	char role[32];

	if (sscanf(text, "%31[^:]:%63[^:]:%u", role, state.at.call, &state.at.number) != 3)
		die("'%s' is not ROLE:CALL:NUMBER", text);
	for (int i = 0; i < ROLES && !state.wanted; i++)
		if (strcmp(role, role_names[i]) == 0) {
			state.at.role = (enum role)i;
			state.wanted = true;
		}
	if (!state.wanted)
		die("there is no role '%s'", role);
}

int main(int argc, char **argv)
{
	char **program = &argv[2];

	if (argc > 4 && strcmp(argv[2], "--at") == 0) {
		parse_point(argv[3]);
		program = &argv[4];
	} else if (argc < 3) {
		die("usage: vitro-inject LOG [--at ROLE:CALL:NUMBER] PROGRAM ARGUMENT...");
	}
	state.log = fopen(argv[1], "we");
	if (!state.log)
		die("open '%s': %s", argv[1], strerror(errno));
	begin(program);
	int status = trace(state.tracees[0].pid);

	for (int role = 0; role < ROLES; role++)
		for (int call = 0; call < CALLS; call++)
			if (state.counts[role][call])
				(void)fprintf(state.log, "count %s %s %u\n", role_names[role],
					      call_name(call), state.counts[role][call]);
	if (fclose(state.log) != 0)
		die("write '%s': %s", argv[1], strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
