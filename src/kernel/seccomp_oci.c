/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/seccomp_oci.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "kernel/seccomp_profile.h"

#ifdef __x86_64__
#define NATIVE_AUDIT AUDIT_ARCH_X86_64
static const char *const own_arch[] = { "amd64", "x86_64", "SCMP_ARCH_X86_64" };
#else
#define NATIVE_AUDIT AUDIT_ARCH_AARCH64
static const char *const own_arch[] = { "arm64", "aarch64", "SCMP_ARCH_AARCH64" };
#endif

struct compiling {
	const struct vt_oci_profile *profile;
	unsigned major, minor;
	scmp_filter_ctx filter;
	int newest; /* the highest number that the profile names; -1: none */
};

__attribute__((format(printf, 4, 5))) static int
refuse(struct vt_err *err, const struct compiling *c, int num, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* cut is fine */
	va_end(args);
	return vt_fail(err, VT_STEP_PLAN, num, "refused: syscalls: %s: %s", c->profile->path, what);
}

static uint32_t libseccomp_action(struct vt_oci_verdict verdict)
{
	switch (verdict.action) {
	case VT_OCI_ALLOW:
		return SCMP_ACT_ALLOW;
	case VT_OCI_LOG:
		return SCMP_ACT_LOG;
	case VT_OCI_ERRNO:
		return SCMP_ACT_ERRNO(verdict.num);
	case VT_OCI_TRAP:
		return SCMP_ACT_TRAP;
	case VT_OCI_KILL_THREAD:
		return SCMP_ACT_KILL_THREAD;
	case VT_OCI_KILL_PROCESS:
		break;
	}
	return SCMP_ACT_KILL_PROCESS;
}

static struct scmp_arg_cmp libseccomp_arg(const struct vt_oci_arg *arg)
{
	static const enum scmp_compare ops[] = {
		[VT_OCI_NE] = SCMP_CMP_NE,
		[VT_OCI_LT] = SCMP_CMP_LT,
		[VT_OCI_LE] = SCMP_CMP_LE,
		[VT_OCI_EQ] = SCMP_CMP_EQ,
		[VT_OCI_GE] = SCMP_CMP_GE,
		[VT_OCI_GT] = SCMP_CMP_GT,
		[VT_OCI_MASKED_EQ] = SCMP_CMP_MASKED_EQ,
	};

	return (struct scmp_arg_cmp){ arg->index, ops[arg->op], arg->value, arg->value_two };
}

static bool is_here(const struct vt_oci_when *when)
{
	for (size_t i = 0; i < when->arch_count; i++)
		for (size_t j = 0; j < sizeof(own_arch) / sizeof(*own_arch); j++)
			if (strcmp(when->arches[i], own_arch[j]) == 0)
				return true;
	return false;
}

static bool is_recent(const struct compiling *c, const struct vt_oci_when *when)
{
	return c->major > when->major || (c->major == when->major && c->minor >= when->minor);
}

/* All of what is included must be so, and nothing of what is excluded. */
static bool applies(const struct compiling *c, const struct vt_oci_rule *rule)
{
	const struct vt_oci_when *in = &rule->includes, *ex = &rule->excludes;

	if (in->caps || (in->arch_count && !is_here(in)) || (in->kernel && !is_recent(c, in)))
		return false;
	return !is_here(ex) && !(ex->kernel && is_recent(c, ex));
}

/* The number of a call here, or -1. vitro's table knows calls that libseccomp is too old for. */
static int number_of(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	for (const struct vt_seccomp_number *row = vt_seccomp_numbers; nr < 0 && row->call; row++)
		if (strcmp(row->call, name) == 0)
			nr = row->x86_only && NATIVE_AUDIT != AUDIT_ARCH_X86_64 ? -1 : row->nr;
	return nr < 0 ? -1 : nr;
}

static bool asks_twice(const struct vt_oci_rule *rule)
{
	unsigned seen = 0;

	for (size_t i = 0; i < rule->arg_count; i++) {
		if (seen & 1u << rule->args[i].index)
			return true;
		seen |= 1u << rule->args[i].index;
	}
	return false;
}

/* Conditions about one argument are alternatives to runc, since libseccomp takes only one of each.
 */
static int add_call(const struct compiling *c, const struct vt_oci_rule *rule, int nr)
{
	uint32_t action = libseccomp_action(rule->verdict);
	struct scmp_arg_cmp args[VT_OCI_ARGS];
	int r = 0;

	for (size_t i = 0; i < rule->arg_count; i++)
		args[i] = libseccomp_arg(&rule->args[i]);
	if (!asks_twice(rule))
		return seccomp_rule_add_array(c->filter, action, nr, (unsigned)rule->arg_count,
					      args);
	for (size_t i = 0; r == 0 && i < rule->arg_count; i++)
		r = seccomp_rule_add_array(c->filter, action, nr, 1, &args[i]);
	return r;
}

/* A rule that says what holds anyway is none, to runc too; libseccomp takes it for a mistake. */
static bool is_idle(const struct compiling *c, const struct vt_oci_rule *rule)
{
	return libseccomp_action(rule->verdict) == libseccomp_action(c->profile->fallback);
}

static int add_rule(struct compiling *c, size_t index, struct vt_err *err)
{
	const struct vt_oci_rule *rule = &c->profile->rules[index];

	for (size_t i = 0; i < rule->name_count; i++) {
		int nr = number_of(rule->names[i]), r;

		c->newest = nr > c->newest ? nr : c->newest;
		if (nr < 0 || is_idle(c, rule))
			continue;
		r = add_call(c, rule, nr);
		if (r == -EEXIST)
			return refuse(err, c, EINVAL,
				      "syscalls[%zu]: contradicts an earlier rule for '%s' with "
				      "the same arguments",
				      index, rule->names[i]);
		if (r < 0)
			return refuse(err, c, -r, "syscalls[%zu]: '%s': libseccomp: %s", index,
				      rule->names[i], strerror(-r));
	}
	return 0;
}

/* The verdict about a call whatever its arguments, or NULL where they decide. */
static const struct vt_oci_verdict *plain_verdict(const struct compiling *c, const char *call)
{
	bool depends = false;

	for (size_t i = 0; i < c->profile->rule_count; i++) {
		const struct vt_oci_rule *rule = &c->profile->rules[i];

		if (!applies(c, rule) || is_idle(c, rule))
			continue;
		for (size_t j = 0; j < rule->name_count; j++) {
			if (strcmp(rule->names[j], call) != 0)
				continue;
			if (!rule->arg_count)
				return &rule->verdict;
			depends = true;
		}
	}
	return depends ? NULL : &c->profile->fallback;
}

/*
 * Nothing runs under a profile that denies this. It would be seen when it is too late to say so: a
 * profile that denies execve may deny sending a message, too.
 */
static int check_execve(const struct compiling *c, struct vt_err *err)
{
	const struct vt_oci_verdict *verdict = plain_verdict(c, "execve");

	if (!verdict || verdict->action == VT_OCI_ALLOW || verdict->action == VT_OCI_LOG)
		return 0;
	return refuse(err, c, EPERM, "does not allow execve, and so no command could be run");
}

/*
 * These are refused by VT_SECCOMP_ALWAYS with ENOSYS, for which libc has a way round. A profile
 * that does not speak of them would turn that into its own errno, and threads into failures.
 */
static int keep_fallbacks(const struct compiling *c, struct vt_err *err)
{
	static const char *const calls[] = { "clone3", "openat2", "fchmodat2" };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		int nr = number_of(calls[i]), r;

		if (nr < 0 || plain_verdict(c, calls[i]) != &c->profile->fallback)
			continue;
		r = seccomp_rule_add(c->filter, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
		if (r < 0)
			return refuse(err, c, -r, "'%s': libseccomp: %s", calls[i], strerror(-r));
	}
	return 0;
}

static int refuse_length(const struct compiling *c, const char *length, struct vt_err *err)
{
	return refuse(err, c, E2BIG, "is too long for the kernel: %s instructions, of %d at most",
		      length, BPF_MAXINSNS);
}

static int copy_code(const struct compiling *c, int fd, struct vt_arena *arena, size_t room,
		     struct sock_fprog *ret_filter, struct vt_err *err)
{
	ssize_t size = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
	struct sock_filter *code;
	char length[24];

	if (size < 0)
		return refuse(err, c, errno, "read its code: %s", strerror(errno));
	size_t count = (size_t)size / sizeof(*code);

	(void)snprintf(length, sizeof(length), "%zu", count + room); /* fits */
	if (count + room > BPF_MAXINSNS)
		return refuse_length(c, length, err);
	code = vt_arena_array(arena, count + room, sizeof(*code));
	if (!code)
		return vt_fail(err, VT_STEP_PLAN, ENOMEM, "make the plan");
	if (recv(fd, code + room, count * sizeof(*code), 0) != size)
		return refuse(err, c, EIO, "read its code");
	*ret_filter = (struct sock_fprog){ (unsigned short)(count + room), code };
	return 0;
}

/*
 * libseccomp writes code only to a descriptor, and at once. As a packet it is there whole or not at
 * all, and takes no call that vitro does not need anyway, as a file in memory would.
 */
static int export_code(const struct compiling *c, struct vt_arena *arena, size_t room,
		       struct sock_fprog *ret_filter, struct vt_err *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return refuse(err, c, errno, "make a socket pair: %s", strerror(errno));
	AUTO_CLOSE int in = pair[0];
	AUTO_CLOSE int out = pair[1];

	r = seccomp_export_bpf(c->filter, in);
	if (r == -EMSGSIZE)
		return refuse_length(c, "many more", err);
	if (r < 0)
		return refuse(err, c, -r, "libseccomp cannot compile it: %s", strerror(-r));
	return copy_code(c, out, arena, room, ret_filter, err);
}

enum { NEWER_LENGTH = 5 };

/* In front of the code: a native call beyond the newest gets ENOSYS. */
static void put_newer(struct sock_filter *code, int newest)
{
	const struct sock_filter newer[NEWER_LENGTH] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_AUDIT, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)newest, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};

	memcpy(code, newer, sizeof(newer));
}

static int compile(struct compiling *c, struct vt_arena *arena, struct sock_fprog *ret_filter,
		   struct vt_err *err)
{
	const struct vt_oci_verdict *fallback = &c->profile->fallback;
	bool newer = fallback->action == VT_OCI_ERRNO && fallback->num != ENOSYS;
	int r = check_execve(c, err);

	for (size_t i = 0; r == 0 && i < c->profile->rule_count; i++)
		if (applies(c, &c->profile->rules[i]))
			r = add_rule(c, i, err);
	if (r == 0 && newer)
		r = keep_fallbacks(c, err);
	if (r == 0)
		r = export_code(c, arena, newer ? NEWER_LENGTH : 0, ret_filter, err);
	if (r == 0 && newer)
		put_newer(ret_filter->filter, c->newest);
	return r;
}

int vt_oci_compile(const struct vt_oci_profile *profile, unsigned major, unsigned minor,
		   struct vt_arena *arena, struct sock_fprog *ret_filter, struct vt_err *err)
{
	struct compiling c = { profile, major, minor, NULL, -1 };
	int r;

	c.filter = seccomp_init(libseccomp_action(profile->fallback));
	if (!c.filter)
		return refuse(err, &c, EINVAL,
			      "libseccomp cannot begin: this kernel may lack its default action");
	/* A tree: what installing a filter costs is how far it is to each call's verdict. */
	r = seccomp_attr_set(c.filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(c.filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* Why it cannot write, as the kernel says it. */
	if (r == 0)
		r = seccomp_attr_set(c.filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (r < 0)
		r = refuse(err, &c, -r, "libseccomp: %s", strerror(-r));
	else
		r = compile(&c, arena, ret_filter, err);
	seccomp_release(c.filter);
	return r;
}
