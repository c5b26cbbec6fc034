/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user allows, as written: a JSON file, flags, or both. The fields, their defaults, ranges
 * and sentences stand in fields.def, once; the parser, --help, the man page and the JSON schema are
 * made from it. A policy knows nothing of this machine: whether it can be enforced is the plan's
 * business.
 *
 * Merging: what comes later wins for single values; lists and maps grow. A default holds until the
 * first source that sets the key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "kernel/seccomp_oci.h"

enum vt_network { VT_NETWORK_NONE, VT_NETWORK_LOOPBACK, VT_NETWORK_HOST };
enum vt_syscalls { VT_SYSCALLS_DEFAULT, VT_SYSCALLS_STRICT, VT_SYSCALLS_PROFILE };
enum vt_require { VT_REQUIRE_BEST_EFFORT, VT_REQUIRE_FULL, VT_REQUIRE_STRICT };

/* One id per row of fields.def, in its order: VT_FIELD_LIMITS_WALL_MS, ... */
enum vt_field {
#define FIELD(id, ...) VT_FIELD_##id,
#include "policy/fields.def"
#undef FIELD
	VT_FIELD_COUNT
};

/* A host path and where it appears inside. Both are absolute and free of ".", ".." and "//". */
struct vt_grant {
	const char *from;
	const char *to;
	const char *origin; /* for messages: "files.read[0] of p.json", "--read" */
};

struct vt_grants {
	struct vt_grant *items;
	size_t           count;
};

struct vt_strings {
	const char **items;
	size_t       count;
};

/* Single numbers are in the unit of their key; -1 means none. */
struct vt_policy {
	struct vt_arena *arena;
	struct {
		int64_t wall_ms, queue_ms, grace_ms, cpu_ms;
		double  cpus; /* -1: all */
		int64_t memory_mb, pids, open_files, file_mb, tmp_mb, stdout_kb, stderr_kb,
			result_mb;
	} limits;
	struct {
		struct vt_grants read, write, deny, sockets;
		/* names, or paths relative to any folder; given and empty: nothing is protected */
		struct vt_strings protect;
		const char      *cwd;
	} files;
	enum vt_network network;
	struct {
		struct vt_strings pass; /* names; "*" alone passes all */
		struct vt_strings set;  /* "NAME=value" */
	} env;
	enum vt_syscalls syscalls;
	const struct vt_oci_profile *profile; /* where syscalls is VT_SYSCALLS_PROFILE */
	enum vt_require  require;
	struct vt_strings sources; /* policies and profiles that it was read from: absolute, as
				      named */
	bool             plain_files; /* set before it is read: files alone are read, and no pipe
					 is waited for */
	/*
	 * set before it is read: gets a line for each key that is wrong, as many as have room in
	 * VT_POLICY_MISTAKES bytes; NULL: the first ends the reading
	 */
	struct vt_str   *mistakes;
	/* set before it is read: gets what the files have in them, as they were read; NULL: not */
	struct vt_str   *texts;
	uint64_t         given; /* bit n: field n was set by somebody, not by default */
};

enum { VT_POLICY_MISTAKES = 4 << 10 };

/* A policy of defaults. */
int  vt_policy_new(struct vt_policy **ret_policy, struct vt_err *err);
void vt_policy_free(struct vt_policy *policy);

/*
 * Applies a policy file, or a built-in one by its name (default, strict, compute), and first what
 * it extends. A name that exists as neither is an error that lists the built-ins; messages begin
 * with who named it, such as "--policy", unless that is "". On failure the policy is half-changed
 * and must be freed.
 */
int vt_policy_load(struct vt_policy *policy, const char *name, const char *by, struct vt_err *err);

/*
 * Applies JSON text; name is for messages. base_dir is what relative paths are relative to:
 * absolute and free of symbolic links, as getcwd() gives it. With NULL relative paths are errors.
 */
int vt_policy_load_text(struct vt_policy *policy, const char *text, size_t len,
			const char *base_dir, const char *name, struct vt_err *err);

/*
 * The same of a text that is a part of a file, such as a manifest of tools: relative paths are
 * relative to the file's folder, and the file is one of the policy's sources. file is absolute.
 */
int vt_policy_load_part(struct vt_policy *policy, const char *text, size_t len, const char *file,
			const char *name, struct vt_err *err);

/*
 * Applies one key from a flag: "limits.wall_ms", "5s". Sizes take K, M, G and times ms, s, m (a
 * bare number is in the key's own unit); lists take one more element, or a JSON array; env.set
 * takes "K=V", or "K" to add K to env.pass beside what is there. "none" lifts a limit that has no
 * default. Relative paths are relative to base_dir. origin is what messages call it: "--timeout".
 */
int vt_policy_set(struct vt_policy *policy, const char *key, const char *text, const char *base_dir,
		  const char *origin, struct vt_err *err);

static inline bool vt_policy_gave(const struct vt_policy *policy, enum vt_field field)
{
	return policy->given >> field & 1;
}

/* One row of the table, for --help, man pages and messages. */
struct vt_field_info {
	const char *key;      /* "limits.wall_ms" */
	const char *type;     /* "milliseconds", "MB", "count", "paths", ... for a person */
	const char *fallback; /* the default as text: "30000", "none" */
	const char *range;    /* "1 to 86400000", or "" */
	const char *flag;     /* "--timeout", or NULL */
	const char *argument; /* the flag's: "TIME", or NULL */
	const char *sentence; /* what it means */
};

const struct vt_field_info *vt_field_info(enum vt_field field);
/* The field with that key, or -ENOENT. */
int vt_field_find(const char *key);
/* The name of a value, as policies write it. */
const char *vt_require_name(enum vt_require require);

/* The JSON schema of policy files, made from the table. */
void vt_policy_schema(struct vt_str *out);
