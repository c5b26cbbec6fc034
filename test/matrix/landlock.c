/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An older Landlock: the kernel's own one answers, but for what an older one would not know.
 * Questions whose answer is in the caller's memory come to a notifier; the others are a matter of
 * their arguments.
 */
#include "uapi/landlock.h"

#include <errno.h>
#include <sys/uio.h>

#include "matrix/within.h"

/* Rights that each ABI added. */
static const struct {
	int abi;
	struct landlock_ruleset_attr adds;
} history[] = {
	{ 1, { .handled_access_fs = LANDLOCK_ACCESS_FS_REFER - 1 } },
	{ 2, { .handled_access_fs = LANDLOCK_ACCESS_FS_REFER } },
	{ 3, { .handled_access_fs = LANDLOCK_ACCESS_FS_TRUNCATE } },
	{ 4,
	  { .handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP |
				  LANDLOCK_ACCESS_NET_CONNECT_TCP } },
	{ 5, { .handled_access_fs = LANDLOCK_ACCESS_FS_IOCTL_DEV } },
	{ 6, { .scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL } },
};

enum {
	RULE_NET_PORT = 2, /* from ABI 4 on */
	NET_ABI = 4,
	FLAGS_ABI = 7, /* the first one whose landlock_restrict_self() has flags */
};

void add_landlock_rules(scmp_filter_ctx filter, int abi)
{
	const uint32_t invalid = SCMP_ACT_ERRNO(EINVAL);
	int r = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(landlock_create_ruleset), 1,
				 SCMP_A2(SCMP_CMP_LE, LANDLOCK_CREATE_RULESET_VERSION));

	if (r == 0 && abi < FLAGS_ABI)
		r = seccomp_rule_add(filter, invalid, SCMP_SYS(landlock_create_ruleset), 1,
				     SCMP_A2(SCMP_CMP_GT, LANDLOCK_CREATE_RULESET_VERSION));
	if (r == 0 && abi < FLAGS_ABI)
		r = seccomp_rule_add(filter, invalid, SCMP_SYS(landlock_restrict_self), 1,
				     SCMP_A1(SCMP_CMP_NE, 0));
	if (r == 0 && abi < NET_ABI)
		r = seccomp_rule_add(filter, invalid, SCMP_SYS(landlock_add_rule), 1,
				     SCMP_A1(SCMP_CMP_EQ, RULE_NET_PORT));
	if (r < 0)
		die(-r, "make Landlock look older");
}

/* 0 where a kernel of that ABI takes the ruleset too, else its errno. */
static int judge_ruleset(pid_t pid, uint64_t address, uint64_t size, int abi)
{
	struct landlock_ruleset_attr asked = { 0 }, known = { 0 };
	struct iovec here = { .iov_base = &asked, .iov_len = sizeof(asked) };
	struct iovec there = {
		.iov_base = (void *)(uintptr_t)address,
		.iov_len = size < sizeof(asked) ? size : sizeof(asked),
	};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)there.iov_len)
		return 0; /* the kernel finds the fault too, and says so better */
	for (size_t i = 0; i < sizeof(history) / sizeof(history[0]); i++) {
		if (history[i].abi > abi)
			break;
		known.handled_access_fs |= history[i].adds.handled_access_fs;
		known.handled_access_net |= history[i].adds.handled_access_net;
		known.scoped |= history[i].adds.scoped;
	}
	/* Beyond the end of the struct that the kernel knows, everything has to be zero. */
	if ((known.handled_access_net == 0 && asked.handled_access_net != 0) ||
	    (known.scoped == 0 && asked.scoped != 0))
		return E2BIG;
	if ((asked.handled_access_fs & ~known.handled_access_fs) ||
	    (asked.handled_access_net & ~known.handled_access_net) ||
	    (asked.scoped & ~known.scoped))
		return EINVAL;
	return 0;
}

void answer_landlock(const struct seccomp_notif *question, struct seccomp_notif_resp *reply,
		     int abi)
{
	const uint64_t *args = (const uint64_t *)question->data.args;

	if (args[2] == LANDLOCK_CREATE_RULESET_VERSION && args[0] == 0 && args[1] == 0)
		reply->val = abi;
	else if (args[2] == 0)
		reply->error = -judge_ruleset((pid_t)question->pid, args[0], args[1], abi);
	if (reply->val == 0 && reply->error == 0)
		reply->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
}
