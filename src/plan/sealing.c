/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/sealing.h"

#include <errno.h>
#include <string.h>

#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_oci.h"
#include "plan/fail.h"
#include "uapi/landlock.h"

struct sealing {
	const struct vt_policy *policy;
	const struct vt_host *host;
	struct vt_plan *plan;
	bool foreign;
};

/*
 * In a bare cell the rules are all that there is: one for each path that shows, and for the private
 * folder. Without the right to truncate, which ABI 3 brought, files could be emptied that cannot be
 * opened: then there is no ruleset at all, and grade.c says that nothing holds the files.
 */
static void decide_bare_landlock(struct sealing *s, const struct vt_landlock_abi *abi,
				 struct vt_landlock_rule *rules)
{
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	const uint64_t writing = (vt_landlock_read() | vt_landlock_write()) & abi->fs;
	struct vt_plan *plan = s->plan;

	if (!(abi->fs & LANDLOCK_ACCESS_FS_TRUNCATE)) {
		plan->landlock_fs = 0;
		return;
	}
	if (s->policy->network == VT_NETWORK_NONE)
		plan->landlock_net = abi->net;
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
			.to = build->from,
			.rights = build->device     ? device
				  : build->writable ? writing
						    : vt_landlock_read(),
			.dev = build->dev,
			.ino = build->ino,
		};
	}
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ .to = plan->scratch,
									.rights = writing,
									.scratch = true };
}

static int decide_landlock(struct sealing *s, struct vt_err *err)
{
	struct vt_plan *plan = s->plan;
	const struct vt_landlock_abi abi = vt_landlock_rights(s->host->landlock_abi);
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	struct vt_landlock_rule *rules = vt_arena_array(plan->arena, plan->build_count + 2,
							sizeof(*rules));

	if (!rules)
		return vt_plan_nomem(err);
	plan->landlock_rules = rules;
	plan->landlock_fs = abi.fs;
	plan->landlock_scoped = abi.scoped;
	if (plan->bare) {
		decide_bare_landlock(s, &abi, rules);
		return 0;
	}
	/*
	 * The root holds nothing but what may be read. A host file reached by any other road, say a
	 * leaked descriptor, has no ancestor in it and is denied.
	 */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
		.to = "", .rights = vt_landlock_read()
	};
	/* Of /dev, which is the cell's own, the few devices are all that can be written. */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ .to = "dev",
									.rights = device };
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		bool open = build->act == VT_ACT_SCRATCH ||
			    (build->act == VT_ACT_BIND && build->writable);

		if (open)
			rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
				.to = build->to,
				.rights = (vt_landlock_read() | vt_landlock_write()) & abi.fs,
			};
	}
	return 0;
}

static void add_filter(struct sealing *s, const struct sock_fprog *filter)
{
	s->plan->filters[s->plan->filter_count++] =
		filter; /* VT_FILTERS_MAX is the most there are */
}

/*
 * A user of its own owns nothing but what it made itself. The caller's own changes modes and times
 * through the supervisor, who has the same user and no more power; it comes first for its listener.
 */
static void add_owner_filter(struct sealing *s)
{
	struct vt_plan *plan = s->plan;

	if (plan->own_ids)
		return;
	plan->broker.on = plan->broker.modes = s->host->modes.err == 0;
	add_filter(s, vt_seccomp_addon(VT_SECCOMP_OWNER,
				       plan->broker.modes ? VT_SOCKETS_BROKERED : 0));
}

static void add_bare_filters(struct sealing *s, unsigned sockets)
{
	add_owner_filter(s);
	add_filter(s, vt_seccomp_addon(VT_SECCOMP_BARE, sockets));
	/*
	 * Without a domain nobody bounds whom a signal reaches: others of the caller's, where the
	 * cell's user is the caller or an id that others may have too; and init, which has the
	 * cell's own id.
	 */
	if (s->plan->sweep != VT_SWEEP_DOMAIN)
		add_filter(s, vt_seccomp_addon(VT_SECCOMP_MUTE, sockets));
}

/*
 * A pool's call comes by a socket that was made outside. Where the cell has a network of its own,
 * and may ask about it, that socket must not answer for the host's.
 */
static void add_called_filter(struct sealing *s, unsigned sockets)
{
	if (s->plan->pooled && s->plan->own_network && sockets & VT_SOCKETS_INET)
		add_filter(s, vt_seccomp_addon(VT_SECCOMP_CALLED, sockets));
}

/*
 * The user's own profile comes last of all filters: it may deny the call that installs one. What
 * must hold whatever it says comes before.
 */
static int decide_profile(struct sealing *s, unsigned sockets, struct vt_err *err)
{
	struct vt_plan *plan = s->plan;
	struct sock_fprog *filter = vt_arena_alloc(plan->arena, sizeof(*filter));
	int r;

	if (!filter)
		return vt_plan_nomem(err);
	r = vt_oci_compile(s->policy->profile, s->host->kernel_major, s->host->kernel_minor,
			   plan->arena, filter, err);
	if (r < 0)
		return r;
	add_filter(s, vt_seccomp_addon(VT_SECCOMP_ALWAYS, sockets));
	add_called_filter(s, sockets);
	add_filter(s, filter);
	return 0;
}

/* The named sockets, as what they are and not by name. */
static int list_sockets(struct vt_plan *plan, struct vt_err *err)
{
	struct vt_inode *sockets = vt_arena_array(plan->arena, plan->build_count + 1,
						  sizeof(*sockets));

	if (!sockets)
		return vt_plan_nomem(err);
	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].socket)
			sockets[plan->broker.socket_count++] = (struct vt_inode){
				plan->builds[i].dev, plan->builds[i].ino
			};
	plan->broker.sockets = sockets;
	return 0;
}

/*
 * AF_UNIX where it cannot be had as it is: the supervisor connects, and looks whom it connects to.
 * On the host's network only if sockets are named, since every connect() pays for it there. Without
 * that, there is no AF_UNIX.
 */
static int decide_broker(struct sealing *s, unsigned *sockets, struct vt_err *err)
{
	const struct vt_policy *policy = s->policy;
	/* What the supervisor answers is asked by a filter. */
	const struct vt_fact *notify = s->host->seccomp.err ? &s->host->seccomp : &s->host->notify;
	bool named = policy->files.sockets.count > 0;

	if (named && s->plan->bare)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: files.sockets: a cell has no unix sockets here, for want "
			       "of namespaces (%s: %s); `vitro doctor` says what to do",
			       s->host->userns.tried, strerror(s->host->userns.err));
	if (named && notify->err)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.sockets: other sockets of the host cannot be kept apart "
			"from these here: %s: %s; run vitro where that works",
			notify->tried, strerror(notify->err));
	if (s->plan->bare || notify->err || (!named && policy->network == VT_NETWORK_HOST))
		return 0;
	*sockets |= VT_SOCKETS_BROKERED;
	s->plan->broker.on = true;
	s->plan->broker.inet = *sockets & VT_SOCKETS_INET;
	s->plan->broker.abstract = s->plan->own_network;
	return list_sockets(s->plan, err);
}

/*
 * Which socket families exist inside. A unix socket in a folder of the host's, be it granted or of
 * the system's runtime, could be connected to though the folder is for reading only; on the host's
 * network so could abstract ones, where Landlock cannot scope them.
 */
static int decide_sockets(struct sealing *s, struct vt_err *err)
{
	const struct vt_policy *policy = s->policy;
	bool abstract = policy->network == VT_NETWORK_HOST &&
			!(s->plan->landlock_scoped & LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
	unsigned sockets = policy->network == VT_NETWORK_NONE ? 0 : VT_SOCKETS_INET;
	int r = 0;

	/* On the host's network a broker would cost every connection. */
	if (policy->network == VT_NETWORK_HOST && !s->foreign && !abstract)
		sockets |= VT_SOCKETS_UNIX;
	else
		r = decide_broker(s, &sockets, err);
	if (r < 0 || s->host->seccomp.err)
		return r;
	s->plan->unix_sockets = sockets & VT_SOCKETS_UNIX;
	if (s->plan->bare)
		add_bare_filters(s, sockets);
	if (policy->syscalls == VT_SYSCALLS_PROFILE)
		return decide_profile(s, sockets, err);
	add_filter(s,
		   vt_seccomp_builtin(policy->syscalls == VT_SYSCALLS_STRICT ? VT_SECCOMP_STRICT
									     : VT_SECCOMP_DEFAULT,
				      sockets));
	add_called_filter(s, sockets);
	return r;
}

/* What ends a cell that has no pid namespace, the best that can be had. */
static int decide_sweep(struct sealing *s, struct vt_err *err)
{
	const struct vt_host *host = s->host;
	struct vt_plan *plan = s->plan;

	plan->sweep = VT_SWEEP_NAMESPACE;
	if (!plan->bare)
		return 0;
	plan->sweep = VT_SWEEP_TREE;
	if (vt_landlock_rights(host->landlock_abi).scoped & LANDLOCK_SCOPE_SIGNAL)
		plan->sweep = VT_SWEEP_DOMAIN;
	else if (plan->own_ids && plan->id_count >= VT_IDS_FOR_ALL)
		plan->sweep = VT_SWEEP_USER;
	if (plan->sweep == VT_SWEEP_TREE && !host->proc)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: nobody could end what a call leaves behind: there are no "
			       "namespaces here (%s: %s), no Landlock that scopes signals, and no "
			       "/proc to look for it; `vitro doctor` says what to do",
			       host->userns.tried, strerror(host->userns.err));
	return 0;
}

int vt_sealing_decide(struct vt_plan *plan, const struct vt_policy *policy,
		      const struct vt_host *host, bool foreign, struct vt_err *err)
{
	struct sealing s = { .policy = policy, .host = host, .plan = plan, .foreign = foreign };
	int r = decide_sweep(&s, err);

	if (r == 0)
		r = decide_landlock(&s, err);
	if (r == 0)
		r = decide_sockets(&s, err);
	return r;
}
