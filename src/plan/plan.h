/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy + host, resolved: every decision made, immutable, printable. Making a plan is pure: it
 * asks nothing but the policy, the host and the command it is given, and so it can be tested
 * against invented hosts. The launcher executes a plan and decides nothing.
 *
 * A plan lives in one arena and borrows nothing from the policy that it was made of.
 */
#pragma once

#include <limits.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "host/command.h"
#include "host/host.h"
#include "kernel/cgroup.h"
#include "kernel/process.h"
#include "kernel/sweep.h"
#include "policy/policy.h"

/* How a restriction holds on this host. */
enum vt_grade {
	VT_GRADE_NONE,    /* not at all */
	VT_GRADE_WATCHED, /* by sampling, with a stated slack */
	VT_GRADE_KERNEL,  /* by the kernel */
};

/* What was asked for, by what it is held, and how well. */
enum vt_property {
	VT_PROPERTY_PROCESSES,
	VT_PROPERTY_FILES,
	VT_PROPERTY_NETWORK,
	VT_PROPERTY_SYSCALLS,
	VT_PROPERTY_MEMORY,
	VT_PROPERTY_PIDS,
	VT_PROPERTY_CPU_TIME,
	VT_PROPERTY_CPUS,
	VT_PROPERTY_TMP,
	VT_PROPERTIES
};

struct vt_holding {
	const char   *name;      /* "memory" */
	const char   *key;       /* the policy key that asks for it: "limits.memory_mb" */
	const char   *mechanism; /* "cgroup-v1", "watchdog", "none"; NULL: not asked for */
	enum vt_grade grade;
	const char   *note; /* slack, caveats; what to do where it is none. "" if nothing to say */
};

/*
 * The building of the new root, as a list of acts in order. Paths inside are relative to the root.
 */
enum vt_act {
	VT_ACT_DIR,     /* make a folder */
	VT_ACT_LINK,    /* make a symbolic link to `from` */
	VT_ACT_FILE,    /* make a file with the text `from` */
	VT_ACT_BIND,    /* mount the host's `from` */
	VT_ACT_SCRATCH, /* make a folder of the root's own tmpfs writable */
	VT_ACT_PROC,    /* mount a proc of the cell's own; writable: of the hull, for its spawner */
	VT_ACT_MASK,    /* cover a file or folder of proc with an empty one; it may be absent */
};

/* A name below a veiled folder: one that is closed, or a folder on the way to one. */
enum vt_veiled_kind {
	VT_VEILED_WAY,
	VT_VEILED_FILE,
	VT_VEILED_FOLDER,
	VT_VEILED_EMPTY, /* a folder that can be looked into: a placeholder of what is not there */
};

struct vt_veiled {
	enum vt_veiled_kind kind;
	const char         *path; /* relative to the folder: "sub/.env" */
	mode_t              mode; /* of a folder on the way, as the host has it */
};

/*
 * An overlay over a folder that keeps denied names closed in it, and the host's named pipes apart:
 * for those it may be without names. One that can be written needs a work folder on the same mount,
 * outside the granted folder: all that is reached from `base`, which is around both.
 */
struct vt_veil {
	const char             *name;  /* of its marks while they are being made */
	mode_t                  mode;  /* of the folder itself */
	const struct vt_veiled *names; /* parents before children */
	size_t                  count;
	int                     work;  /* which of the plan's work folders, -1: for reading only */
	const char             *base, *base_to_folder, *base_to_work;
	const char             *work_parent; /* the host folder that the work folder is made in */
	uint64_t                base_dev, base_ino;
};

/*
 * What is kept below a folder for writing, since programs of the host run or trust it: see
 * plan/protect.h.
 */
enum vt_guard_kind {
	VT_GUARD_FOLDER,    /* a folder around others: it stays where it is */
	VT_GUARD_WORKTREES, /* the same, of git's work trees: new ones are judged afterwards */
	VT_GUARD_NAME, /* it cannot be changed; what appears where it is missing is set apart */
};

struct vt_guard {
	enum vt_guard_kind kind;
	const char *path;     /* relative to the folder: "sub/.git/config" */
	uint64_t    dev, ino; /* what the plan saw there, the target of a link; 0: nothing */
	bool        closed;   /* a veil has a placeholder there */
};

/* A host path that stays closed, and what is closed in its stead where its folder is not there. */
struct vt_denial {
	const char *path;
	const char *closed; /* or NULL */
};

struct vt_build {
	enum vt_act act;
	const char *to;       /* "usr/lib", no leading '/' */
	const char *from;
	mode_t      mode;     /* of a folder; for a bind only the type matters */
	bool        writable;
	bool        granted;  /* by the user, not the system's runtime */
	bool        nested;   /* its place lies in a mount of the host's, where links may be */
	bool        device;   /* a device node: may be used as one */
	bool        socket;   /* may be connected to */
	bool        per_cell; /* of a pooled plan: done in each cell, not once in the hull */
	bool        inner;    /* of a bind: `from` is a path inside, where the hull put it aside */
	int         idmap;    /* index into idmaps, -1: none */
	uint64_t    dev, ino; /* of a bind: what the plan saw there; the launcher insists on it */
	uid_t       uid;      /* its owner, where it is written through a veil */
	gid_t       gid;
	const struct vt_veil *veil; /* of a bind; NULL: none */
	const struct vt_guard *guards; /* of a bind for writing: parents before children */
	size_t      guard_count;
	bool        veiled;   /* in a plan's image, which leaves veils out: there is one */
};

/* Whether by this mount calls can write what is the host's. */
static inline bool vt_build_is_written(const struct vt_build *build)
{
	return build->act == VT_ACT_BIND && build->writable && !build->device && !build->inner;
}

/* The owner of a granted folder, who is the cell's user inside. */
struct vt_idmap {
	uid_t uid;
	gid_t gid;
};

struct vt_landlock_rule {
	const char *to;       /* path inside, "" is the root; of a bare cell an absolute path */
	uint64_t    rights;
	uint64_t    dev, ino; /* of a bare cell: what the plan saw there; the launcher insists on
				 it */
	bool        scratch;  /* it is the bare cell's private folder, which is not there yet */
};

struct vt_inode {
	uint64_t dev, ino;
};

/*
 * What connect() may reach where the supervisor connects in the cell's stead: watch/broker.h. Or,
 * of a bare cell, that it changes modes and times in the cell's stead: watch/modes.h.
 */
struct vt_brokered {
	bool on;       /* filters[0] makes calls wait, and its listener goes to the supervisor */
	bool modes;    /* these are chmod() and the like, and not connect() */
	bool inet;     /* inet sockets: wherever they may go */
	bool abstract; /* abstract unix sockets of the cell's own network namespace */
	/* Unix sockets by path: those of the root's own tmpfs, and these of the host's. */
	const struct vt_inode *sockets;
	size_t                 socket_count;
};

enum { VT_FILTERS_MAX = 6 };

enum { VT_WARNINGS_MAX = 12 };

enum { VT_SCRATCH_DIGITS = 12 };

enum { VT_IDS_FOR_ALL = 1 << 22 }; /* as many as there are pid numbers */

struct vt_plan {
	struct vt_arena *arena;

	/* the occupant */
	const char  *exec_path;
	char       **argv;
	char       **envp;
	const char  *cwd;
	bool         cwd_private;      /* of a bare cell: it is the private folder, */
	uint64_t     cwd_dev, cwd_ino; /* or what the plan saw there; the launcher insists on it */
	bool         rehearsal; /* everything is built and sealed, and ends where it would begin */

	/*
	 * A pooled plan is for many cells: a hull is built once, and cells in it, each by the
	 * builds that are marked for it. It has no command; occupants come from a zygote.
	 */
	bool pooled;

	/*
	 * A bare cell has no namespaces, for want of user namespaces. It lives in the host's own
	 * root, where Landlock shows it no more than the binds among builds; its init ends it by
	 * sweeping.
	 */
	bool          bare;
	enum vt_sweep sweep;
	/*
	 * Its private folder, made for the call and removed with it. A pool's ends in as many
	 * digits as VT_SCRATCH_DIGITS, for which each cell has its own.
	 */
	const char   *scratch;
	int64_t       watched_tmp_bytes; /* the most that may be in it; -1: the kernel does it */

	/* namespaces and ids */
	uint64_t namespaces;          /* CLONE_NEW* that the cell is cloned into */
	bool     own_network;         /* and a network namespace, which the occupant makes */
	bool     keeps_networks;      /* of a pool: a cell may get that of one that is gone */
	bool     bars_rights;         /* of a pool: the kernel refuses descriptors that cells send;
					 else they are looked for before each read */
	bool     loads_ahead;         /* of a pool: what cells can write can be kept from its
					 zygotes, which load modules then */
	uid_t    inner_uid;
	gid_t    inner_gid;
	bool     own_ids; /* a host id per cell, from the range; else the caller's own */
	uint32_t id_base, id_count;   /* from VT_IDS_FOR_ALL on, no two live cells have the same */
	uint32_t pool_id_base; /* of a pool: where ids for its cells are, as many for each pid as */
	uint32_t pool_id_count;       /* this; 0: all of them have the hull's */
	uid_t    outer_uid;           /* the caller's own, where !own_ids */
	gid_t    outer_gid;

	/* the root */
	int64_t                scratch_bytes, scratch_inodes; /* of the tmpfs that it is built on */
	const struct vt_build *builds;
	size_t                 build_count;
	const struct vt_idmap *idmaps;
	size_t                 idmap_count;
	size_t                 veil_count;
	size_t                 veiled_count; /* names of all veils together */
	size_t                 work_count;
	bool                   veiled_pipes; /* some veils are there for the host's named pipes
						alone */
	const char            *open_pipes;   /* what to say where one is missing; NULL: none is */
	const struct vt_denial *denials;
	size_t                  denial_count;
	size_t                  guard_count;  /* of all builds together */
	const char             *unlooked;     /* where no names to guard were looked for; NULL: all
						 was looked at */
	const char             *protect_note; /* where none can be held, so much; NULL: nothing */

	/* sealing */
	bool     loopback_up;
	uint64_t landlock_fs, landlock_net, landlock_scoped; /* handled; all 0: no Landlock */
	const struct vt_landlock_rule *landlock_rules;
	size_t                         landlock_rule_count;
	const struct vt_rlimit        *rlimits;
	size_t                         rlimit_count;
	/* In the order of installation; the strictest word of all about a call is what counts. */
	const struct sock_fprog       *filters[VT_FILTERS_MAX];
	size_t                         filter_count;
	/* They let AF_UNIX sockets be made, of all types. */
	bool                           unix_sockets;
	struct vt_brokered             broker; /* or only streams and packets, and this answers */

	/* limits that the supervisor holds, or the cgroup for it */
	struct vt_cgroup_site   cgroup_site; /* version NONE: no cgroup */
	struct vt_cgroup_limits cgroup;
	int64_t wall_ms, grace_ms;
	int64_t queue_ms;        /* of a pool: how long a call may wait for a cell */
	int64_t  cpu_ms;         /* -1: none */
	unsigned cpus;           /* that can burn at once */
	double   cpu_share;      /* how many CPUs' worth it may use at once; -1: all */
	int64_t  pids, open_files; /* for explain and the audit log; rlimits and cgroup hold them */
	bool    can_look;             /* a proc shows what the cell's processes use */
	bool    own_proc;             /* the cell has one of its own; else it is the host's */
	int64_t watched_memory_bytes; /* -1: the kernel does it, or nobody can */
	int64_t memory_slack_mb;      /* by how much a burst can pass that */
	int64_t touch_us;             /* of fresh memory, by a CPU: bytes in a microsecond */
	int64_t memory_bytes, file_mb; /* the limits, whoever holds them; for messages */
	int64_t lower_file_kb; /* the caller's own limit of a file's size, below file_mb; 0: it
				  is not */
	int64_t stdout_bytes, stderr_bytes; /* caps of captured output */
	int64_t result_bytes; /* of a pool: the largest value, and what a tool may ask for at
				 once */
	bool    stdout_capped, stderr_capped; /* the caller gave one: it holds for passed-on
						 output too */

	/* the truth about it */
	struct vt_holding holdings[VT_PROPERTIES];
	const char       *level;   /* "strict", "full", "partial" */
	const char *const *notes;  /* what `explain` adds, one sentence each */
	size_t             note_count;
	const char        *ids_note; /* of them, what the cell's user on the host means; NULL:
					nothing */
	const char        *links_note; /* the warnings about links that grants lead through;
					  NULL: none */
	/*
	 * What is most likely not meant, one sentence each: among the notes, and told by `run` too.
	 */
	const char        *warnings[VT_WARNINGS_MAX];
	size_t             warning_count;
};

/* What to run and with what; argv[0] is what the occupant sees. environ is the caller's. */
struct vt_request {
	const struct vt_command *command; /* NULL where only the plan is wanted */
	char *const             *argv;
	char *const             *environ;
	bool                     rehearsal;
	bool                     pooled;
	unsigned                 cells; /* of a pool: how many may be there at once */
	const char *name; /* of the call or the pool, as no other has it; NULL where none is made */
	struct vt_strings kept;   /* what no call may change beside what the policy was read
				     from; absolute */
	struct vt_strings closed; /* what none may even read, since who reads may lock */
};

/*
 * Decides. -EPERM with step VT_STEP_PLAN means refused: the text names the key, the reason and what
 * would run it all the same. *ret_plan is freed with vt_plan_free().
 */
int  vt_plan_make(const struct vt_policy *policy, const struct vt_host *host,
		  const struct vt_request *request, struct vt_plan **ret_plan, struct vt_err *err);
/*
 * The same for who only tells of it. Where it fails, *err says why, and *ret_plan is that of best
 * effort, which the policy then requires; or NULL: there is none either.
 */
int vt_plan_foresee(struct vt_policy *policy, const struct vt_host *host,
		    const struct vt_request *request, struct vt_plan **ret_plan,
		    struct vt_err *err);
void vt_plan_free(struct vt_plan *plan);

/* The place of the cell's own that a path lies in, so that no grant of it is taken; NULL: none. */
const char *vt_plan_own_place(const char *path);

/* Whether an absolute path of the host exists inside, judged from the plan alone. */
bool vt_plan_shows(const struct vt_plan *plan, const char *path);

/*
 * Where an absolute path of the host, free of links, is inside, be it there or moved. False:
 * nowhere; then ret_place is untouched.
 */
bool vt_plan_finds(const struct vt_plan *plan, const char *path, char ret_place[PATH_MAX]);

/* Whether an absolute path of the host, free of links, lies in what is denied. */
bool vt_plan_denies(const struct vt_plan *plan, const char *path);

/*
 * Adds a warning while the plan is being made; what is too much is left out. text is the plan's
 * own.
 */
void vt_plan_warn(struct vt_plan *plan, const char *text);

/* The plan as `vitro explain` prints it. */
void vt_plan_explain(const struct vt_plan *plan, struct vt_str *out);

/*
 * The same as JSON, of what vt_plan_foresee() found: plan and refusal may be NULL. asked is what
 * the policy required before.
 */
int vt_plan_explain_json(const struct vt_plan *plan, enum vt_require asked, const char *refusal,
			 struct vt_str *out, struct vt_err *err);

/* The word for what a build puts inside: "read", "link". NULL: nothing that is worth telling of. */
const char *vt_build_kind(const struct vt_build *build);

/* How a guard is held: "read-only", "watched". NULL: it is of no interest, for it is not there. */
const char *vt_guard_held(const struct vt_guard *guard);

const char *vt_grade_name(enum vt_grade grade);
