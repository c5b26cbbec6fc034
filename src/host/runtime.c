/* SPDX-License-Identifier: Apache-2.0 */
#include "host/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED(path)        \
	{                   \
		path, false \
	}
#define OPTIONAL(path)     \
	{                  \
		path, true \
	}

static const struct vt_runtime_path table[] = {
	NEEDED("/usr"),
	/* Links into /usr where it is merged, folders elsewhere. */
	OPTIONAL("/bin"),
	OPTIONAL("/sbin"),
	OPTIONAL("/lib"),
	OPTIONAL("/lib32"),
	OPTIONAL("/lib64"),
	OPTIONAL("/libx32"),
	/* World-readable by design, and on their systems /usr is next to empty. */
	OPTIONAL("/nix/store"),
	OPTIONAL("/gnu/store"),

	/* The loader, and what Debian links its programs through. */
	OPTIONAL("/etc/alternatives"),
	OPTIONAL("/etc/ld.so.cache"),
	OPTIONAL("/etc/ld.so.conf"),
	OPTIONAL("/etc/ld.so.conf.d"),
	/* Whom TLS trusts; never a folder that private keys live in. */
	OPTIONAL("/etc/ssl/certs"),
	OPTIONAL("/etc/ssl/cert.pem"),
	OPTIONAL("/etc/ssl/openssl.cnf"),
	OPTIONAL("/etc/pki/ca-trust"),
	OPTIONAL("/etc/pki/tls/cert.pem"),
	OPTIONAL("/etc/pki/tls/certs"),
	OPTIONAL("/etc/pki/tls/openssl.cnf"),
	OPTIONAL("/etc/crypto-policies"),
	OPTIONAL("/etc/gnutls"),
	/* Where and what this system is. */
	OPTIONAL("/etc/localtime"),
	OPTIONAL("/etc/locale.conf"),
	OPTIONAL("/etc/os-release"),
	OPTIONAL("/etc/lsb-release"),
	OPTIONAL("/etc/debian_version"),
	OPTIONAL("/etc/redhat-release"),
	OPTIONAL("/etc/alpine-release"),
	/* The tables of libc and file. */
	OPTIONAL("/etc/mime.types"),
	/* What programs read of themselves. */
	OPTIONAL("/etc/fonts"),
	OPTIONAL("/etc/ghostscript"),
	OPTIONAL("/etc/texmf"),
	OPTIONAL("/etc/java"),
	OPTIONAL("/etc/ImageMagick-6"),
	OPTIONAL("/etc/ImageMagick-7"),
};

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

/*
 * Debian's OpenJDKs do not start without their configuration in /etc/java-VERSION-openjdk. Listing
 * /etc for these costs a call 100 µs; /usr/lib/jvm, where each has a folder
 * "java-VERSION-openjdk-ARCH", is small or not there.
 */
static const char java_homes[] = "/usr/lib/jvm";
static const char java_prefix[] = "/etc/java-";
static const char java_suffix[] = "-openjdk";

/* How much of path an entry of the table matches; 0: nothing. */
static size_t match(const char *entry, const char *path)
{
	/* Most differ in their first letter, and there may be a thousand paths to ask about. */
	if (path[0] != '/' || entry[1] != path[1])
		return 0;
	size_t len = strlen(entry);

	return strncmp(path, entry, len) == 0 && (path[len] == '\0' || path[len] == '/') ? len : 0;
}

static size_t match_java(const char *path)
{
	size_t len = sizeof(java_prefix) - 1;

	return strncmp(path, java_prefix, len) == 0 ? len + strcspn(path + len, "/") : 0;
}

bool vt_runtime_covers(const char *path)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (match(table[i].path, path) > 0)
			return true;
	return match_java(path) > 0;
}

bool vt_runtime_has(const char *path)
{
	size_t len = match_java(path);

	for (size_t i = 0; i < TABLE_COUNT && len == 0; i++)
		len = match(table[i].path, path);
	return len > 0 && path[len] == '\0';
}

enum { MAX_JAVAS = 16 };

struct expansion {
	struct vt_arena *arena;
	struct vt_runtime_path *paths; /* with room for MAX_JAVAS beside the table */
	size_t count;
	bool failed;
};

/* Several names stand for one version: links to a home look like homes. */
static bool is_listed(const struct expansion *expansion, const char *path)
{
	for (size_t i = TABLE_COUNT; i < expansion->count; i++)
		if (strcmp(expansion->paths[i].path, path) == 0)
			return true;
	return false;
}

static void add_java(void *arg, const char *name)
{
	struct expansion *expansion = arg;
	const char *suffix = strstr(name, java_suffix);

	if (strncmp(name, "java-", 5) != 0 || suffix == NULL ||
	    expansion->count == TABLE_COUNT + MAX_JAVAS)
		return;
	const char *path = vt_arena_printf(expansion->arena, "%s%.*s%s", java_prefix,
					   (int)(suffix - name - 5), name + 5, java_suffix);

	if (path == NULL)
		expansion->failed = true;
	else if (!is_listed(expansion, path))
		expansion->paths[expansion->count++] = (struct vt_runtime_path)OPTIONAL(path);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct vt_runtime_path *)a)->path,
		      ((const struct vt_runtime_path *)b)->path);
}

int vt_runtime_expand(struct vt_arena *arena, const struct vt_host *host,
		      struct vt_runtime_path **ret_paths, size_t *ret_count, struct vt_err *err)
{
	struct expansion expansion = { .arena = arena, .count = TABLE_COUNT };

	expansion.paths = vt_arena_array(arena, TABLE_COUNT + MAX_JAVAS, sizeof(*expansion.paths));
	if (expansion.paths == NULL)
		return vt_fail(err, VT_STEP_PLAN, ENOMEM, "list the runtime paths");
	memcpy(expansion.paths, table, sizeof(table));

	/* A folder that is not there or cannot be listed has no Java to offer. */
	if (host->list != NULL)
		(void)host->list(host, java_homes, add_java, &expansion);
	if (expansion.failed)
		return vt_fail(err, VT_STEP_PLAN, ENOMEM, "list the runtime paths");
	qsort(expansion.paths + TABLE_COUNT, expansion.count - TABLE_COUNT,
	      sizeof(*expansion.paths), by_path);
	*ret_paths = expansion.paths;
	*ret_count = expansion.count;
	return 0;
}
