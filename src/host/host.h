/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine can enforce for this caller, found by trying. A host is plain data, so that the
 * plan can be tested against invented ones. Probing for a call takes some 100 µs and leaves nothing
 * behind; what only a report needs is probed by host/report.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/cgroup.h"

/* A mechanism was tried: err is 0 where it works, else the errno that stopped it. */
struct vt_fact {
	int         err;
	const char *tried; /* "clone(CLONE_NEWUSER)", static text */
};

/* What a path is, asked while planning; the launcher checks that it is still the same. */
struct vt_path {
	mode_t   mode; /* type and bits */
	uid_t    uid;
	gid_t    gid;
	uint64_t dev, ino;
	bool     link; /* the path itself is a symbolic link; all else is of what it leads to,
			  if links are followed */
	/*
	 * It can be mounted with mapped ids, with all that is mounted below it. Always false where
	 * the host is not privileged, for device nodes and the like, and for the paths of
	 * host/runtime.h themselves: those are never mapped, and finding out costs more than all
	 * else that a call asks of a path.
	 */
	bool idmap;
};

/* How a folder gets on with an overlay, which is what keeps names in it closed. */
struct vt_layer {
	struct vt_fact overlay; /* one for reading was made of it */
	bool submounts;         /* something is mounted below it, which an overlay would not show */
	bool upper; /* its file system can be written through one, and nothing comes loose */
};

struct vt_host {
	uid_t uid; /* effective */
	gid_t gid;
	unsigned supplementary_groups; /* beside gid */
	/*
	 * Holds CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID over its own user namespace: "root" to the
	 * plan.
	 */
	bool privileged;
	bool can_change_ids; /* CAP_SETUID, CAP_SETGID, CAP_CHOWN: what a root in a container
				often has */
	/* Host ids for cells, one each, for a root: never 0, never 65534. count 0: none mapped. */
	uint32_t id_base, id_count;
	bool     pool_ids; /* those that are for cells of pools can be had, too */

	struct vt_fact userns;  /* a new user namespace, with capabilities that work in it */
	struct vt_fact seccomp; /* filters can be installed */
	struct vt_fact own_proc; /* a cell in namespaces can mount a proc of its own */
	struct vt_fact notify;  /* a call can be made to wait for our answer, and be acted for */
	bool           bars_rights; /* a socket can refuse descriptors that come with bytes */
	int            landlock_abi; /* 0: no Landlock */
	int            landlock_err; /* why, if 0 */
	struct vt_cgroup_site cgroup;
	unsigned       cpus;     /* that the caller may use */
	int64_t        most_open_files, most_file_kb; /* the caller's own hard limits; 0: none */
	bool           proc;     /* /proc shows the processes of this machine */
	bool           proc_hides; /* but not those that the caller may not trace */
	/* Of interest only where there are no user namespaces: */
	const char    *scratch;  /* a folder where private ones can be made; NULL: none */
	unsigned       tasks;    /* processes and threads of the caller's user */
	struct vt_fact modes;    /* as notify, for chmod() by the caller's user and not connect() */
	unsigned       kernel_major, kernel_minor; /* for what users write about versions; else
						      probe */

	/*
	 * Looks at a path, following links. Returns 0 or a negative errno. context belongs to the
	 * functions; tests give a table of invented paths.
	 */
	int  (*look)(const struct vt_host *host, const char *path, struct vt_path *ret_path);
	/*
	 * Looks at an absolute path itself, through no link: -ELOOP, or -ENOTDIR where the kernel
	 * is old, where one is on the way to it. A link that is there is described itself, and
	 * where it leads is in target, NUL-terminated. plan/way.h goes so from name to name.
	 */
	int  (*step)(const struct vt_host *host, const char *path, struct vt_path *ret_path,
		     char *target, size_t size);
	/* Calls each with the names in a folder, in no order. NULL: nothing can be listed. */
	int  (*list)(const struct vt_host *host, const char *path,
		     void (*each)(void *arg, const char *name), void *arg);
	/*
	 * Calls each with the names in a folder of the file system dev, and their types (DT_*), in
	 * no order. -EXDEV: it is another's; -ENOTDIR: it is a link. NULL: nothing can be listed.
	 */
	int  (*entries)(const struct vt_host *host, const char *path, uint64_t dev,
			void (*each)(void *arg, const char *name, unsigned char type), void *arg);
	/*
	 * Reads a file, if it is one and no link. Returns its length, -EFBIG if that is size or
	 * more, or another negative errno. NULL: nothing can be read.
	 */
	ssize_t (*read_file)(const struct vt_host *host, const char *path, char *buf, size_t size);
	/*
	 * Calls each with the other paths at which what an absolute path without links shows, or
	 * what lies below it, is mounted too. NULL: there are none. Returns 0 or a negative errno.
	 */
	int  (*aliases)(const struct vt_host *host, const char *path,
			void (*each)(void *arg, const char *alias), void *arg);
	/*
	 * Tries an overlay of a folder that was looked at. Only asked where a policy needs it,
	 * since it costs some 500 µs. NULL: there are none. Returns 0 or a negative errno.
	 */
	int  (*layer)(const struct vt_host *host, const char *path, const struct vt_path *seen,
		      struct vt_layer *ret_layer);
	/*
	 * Whether an overlay that writes to path could have its work folder in another folder, with
	 * base, a folder around both, as the way to them: all on one mount, and the caller may make
	 * folders there. Returns 0 or a negative errno. *ret_base is what base is.
	 */
	int  (*can_work)(const struct vt_host *host, const char *path, const char *folder,
			 const char *base, struct vt_path *ret_base);
	/*
	 * How many bytes of fresh memory a CPU touches in a microsecond, now. Only asked where
	 * memory is sampled, since it costs some 300 µs. NULL: not known.
	 */
	int64_t (*touch)(void);
	void  *context;
	char   learned[512]; /* what vt_host_learn() was told last */
};

/*
 * Probes what a call needs. Fails only where the machine is short of something, and the answers
 * would say nothing about it. vt_host_done() releases it.
 */
int  vt_host_probe(struct vt_host *ret_host, struct vt_err *err);
/*
 * What is remembered of the host's mounts is looked at anew, for the next plan: they may be others
 * by now.
 */
void vt_host_look_anew(const struct vt_host *host);
/*
 * The errno of a shortage because of which a question about a path was not answered since this was
 * asked last; or 0. What was planned meanwhile is not to be used: that a path could not be looked
 * at does not mean that it is absent.
 */
int  vt_host_trouble(const struct vt_host *host);
void vt_host_done(struct vt_host *host);

/*
 * A cell could not be built here, and nothing of it ran: what that says about the host becomes a
 * fact, as if it had been probed. False: it says nothing new, and trying again would fail again.
 */
bool vt_host_learn(struct vt_host *host, const struct vt_err *failure);
