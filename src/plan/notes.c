/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/notes.h"

#include <string.h>

#include "plan/fail.h"
#include "uapi/landlock.h"

enum { MAX_NOTES = 14 + VT_WARNINGS_MAX };

/* Of an overlay for reading, whose names the kernel keeps once it has looked for them. */
#define LATE ": what the host changes there during the call may not show"

struct noting {
	struct vt_plan *plan;
	const struct vt_policy *policy;
	const struct vt_host *host;
	const char **notes;
};

/* NULL and "" say nothing. */
static void note(struct noting *n, const char *sentence)
{
	if (sentence && *sentence && n->plan->note_count < MAX_NOTES)
		n->notes[n->plan->note_count++] = sentence;
}

static bool has_unmapped_write(const struct vt_plan *plan)
{
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		/* What a pool has put aside was mapped where it was mounted first. */
		if (build->act == VT_ACT_BIND && build->writable && build->idmap < 0 &&
		    !build->inner)
			return true;
	}
	return false;
}

static bool has_unmapped_socket(const struct vt_plan *plan)
{
	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].socket && plan->builds[i].idmap < 0 && !plan->builds[i].inner)
			return true;
	return false;
}

/* Whether some name is missing, so that nothing can be mounted on it. */
static bool has_watched(const struct vt_plan *plan)
{
	for (size_t i = 0; i < plan->build_count; i++)
		for (size_t j = 0; j < plan->builds[i].guard_count; j++) {
			const struct vt_guard *guard = &plan->builds[i].guards[j];

			if (guard->kind == VT_GUARD_NAME && !guard->ino && !guard->closed)
				return true;
		}
	return false;
}

static bool has_grants(const struct vt_policy *policy)
{
	return policy->files.read.count || policy->files.write.count;
}

/* What it means for files who the cell's user is on the host. NULL: nothing to say. */
static const char *ids_note(const struct noting *n)
{
	const struct vt_plan *plan = n->plan;

	if (!plan->own_ids && n->host->supplementary_groups)
		return "ids: an ordinary user cannot drop supplementary groups: files that only "
		       "they open stay readable where they are granted";
	if (plan->own_ids && plan->bare && has_grants(n->policy))
		return "ids: the cell has a user of its own, and owners cannot be mapped: it reads "
		       "and writes what is granted only where any user may";
	if (plan->own_ids && has_unmapped_write(plan))
		return "ids: a folder granted for writing cannot have its owner mapped: the cell "
		       "writes there only where any user may";
	return NULL;
}

/* Which AF_UNIX sockets there are. NULL: nothing to say. */
static const char *sockets_note(const struct vt_plan *plan)
{
	if (!plan->filter_count) /* grade.c says it of a network of its own */
		return plan->own_network
			       ? NULL
			       : "network: unix sockets of the host that the cell sees can be "
				 "connected to: no system call filter keeps it from that";
	if (plan->bare)
		return "network: no AF_UNIX sockets; socketpair() works";
	if (plan->broker.on)
		return "network: AF_UNIX sockets reach the cell's own, made in /tmp or /dev/shm, "
		       "and those of files.sockets; they are streams or packets, no datagrams";
	if (plan->unix_sockets)
		return NULL;
	return "network: no AF_UNIX sockets, since a granted folder, or the command's own, may "
	       "hold some of the host's; socketpair() works";
}

static void note_network(struct noting *n)
{
	const struct vt_plan *plan = n->plan;

	if (n->policy->network == VT_NETWORK_HOST)
		note(n,
		     "network: the cell can reach all that this machine can, its own loopback and "
		     "the cloud's metadata addresses included");
	if (plan->unix_sockets)
		note(n, "network: unix sockets of the host that lie in the system's runtime paths, "
			"below /usr, can be connected to");
	if (n->policy->network == VT_NETWORK_NONE)
		return;
	if (!plan->cgroup.memory_bytes)
		note(n, "memory: buffers of inet sockets are counted by nobody");
	else if (n->host->cgroup.version == VT_CGROUP_V1)
		note(n, "memory: buffers of inet sockets are counted apart, and may take as much "
			"again");
}

static void note_files(struct noting *n)
{
	const struct vt_plan *plan = n->plan;

	note(n, plan->protect_note);
	if (plan->unlooked)
		note(n,
		     vt_arena_printf(plan->arena,
				     "files: names that programs of the host run or trust were not "
				     "looked for everywhere: %s",
				     plan->unlooked));
	if (has_watched(plan))
		note(n, "files: what appears under a protected name that is missing is there until "
			"the call ends; then it gets another name, which the result tells");
	if (!plan->bare && !plan->landlock_fs)
		note(n, "files: this kernel has no Landlock; the mount namespace alone holds them");
	else if (!plan->bare && !(plan->landlock_scoped & LANDLOCK_SCOPE_SIGNAL))
		note(n, "files: this kernel's Landlock is older than ABI 6 and does not scope "
			"signals and abstract sockets; the namespaces do");
	if (plan->veiled_pipes)
		note(n, plan->landlock_fs ? "files: folders for reading below /tmp, or in one for "
					    "writing, are shown by an overlay, which keeps the "
					    "host's named pipes apart" LATE
					  : "files: folders for reading are shown by an overlay, "
					    "which keeps the host's named pipes apart" LATE);
	if (plan->work_count)
		note(n, "files: in a folder for writing with a deny inside, folders beside what is "
			"denied cannot be renamed (mv copies them), fsync() does not wait for the "
			"disk, and locks are not shared with the host");
}

/* Where the cell lives. NULL: out of memory. */
static const char *kind_note(const struct noting *n)
{
	const struct vt_fact *userns = &n->host->userns;

	if (n->plan->bare)
		return vt_arena_printf(
			n->plan->arena,
			"no namespaces can be had here (%s: %s), so the cell lives in "
			"the host's own file system, ids and names; `vitro doctor` "
			"says what to do",
			userns->tried, strerror(userns->err));
	return n->host->own_proc.err ? "files: the cell has no /proc, since this machine's is "
				       "masked, as in a container"
				     : "";
}

int vt_notes_make(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		  struct vt_err *err)
{
	struct noting n = { .plan = plan, .policy = policy, .host = host };
	const char *kind = kind_note(&n);

	n.notes = vt_arena_array(plan->arena, MAX_NOTES, sizeof(*n.notes));
	if (!n.notes || !kind)
		return vt_plan_nomem(err);
	for (size_t i = 0; i < plan->warning_count; i++)
		note(&n, plan->warnings[i]);
	if (!plan->pooled && (vt_policy_gave(policy, VT_FIELD_LIMITS_QUEUE_MS) ||
			      vt_policy_gave(policy, VT_FIELD_LIMITS_RESULT_MB)))
		note(&n, "limits.queue_ms and limits.result_mb are for tool hosts: a command that "
			 "is run does not wait for a cell, and has no value but what it prints; "
			 "code of vitro eval --json has one");
	note_network(&n);
	note(&n, kind);
	note(&n, sockets_note(plan));
	note_files(&n);
	if (plan->own_ids && has_unmapped_socket(plan))
		note(&n, "ids: a socket of files.sockets cannot have its owner mapped: the cell "
			 "connects to it only where any user may");
	plan->ids_note = ids_note(&n);
	note(&n, plan->ids_note);
	plan->notes = n.notes;
	return 0;
}
