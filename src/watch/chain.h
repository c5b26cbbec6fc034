/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of an audit log as a chain: each is a JSON object that ends in the hash of the line before
 * it and its own.
 *
 *	{"time": ..., "prev": "<64 hex digits>", "hash": "<64 hex digits>"}
 *
 * The hash is the SHA-256 of all of the line's bytes before `, "hash"`. The first line's prev is
 * all zeros. What stands between two lines and is none of the chain (a line that a crash cut off,
 * one that another program wrote) is a gap, and the line after it is a gap's: it tells how many
 * lines those are and their hash, the SHA-256 of their SHA-256s. So they cannot be changed either,
 * and the chain goes on.
 *
 * Pure: no file is read or written here. No line is held in memory, however long.
 */
#pragma once

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	VT_CHAIN_HEX = 2 * SHA256_DIGEST_SIZE, /* a hash in digits */
	VT_CHAIN_TIME = 40,                    /* room for a time */
	VT_CHAIN_HEAD = 192,                   /* of a line, enough for a gap's members */
	VT_CHAIN_TAIL = 25 + 2 * VT_CHAIN_HEX, /* `, "prev": "", "hash": ""}` and two hashes */
};

/* The prev of the first line. */
extern const char vt_chain_zeros[VT_CHAIN_HEX + 1];

/* What is wrong with a chain. vt_chain_meaning() says it in words. */
enum vt_chain_fault {
	VT_CHAIN_WHOLE,
	VT_CHAIN_CHANGED,  /* the line's hash is not that of its text */
	VT_CHAIN_HEADLESS, /* the first line names one before it */
	VT_CHAIN_UNLINKED, /* prev is not the hash of the line before */
	VT_CHAIN_ANEW,     /* the same, and a chain begins with this line */
	VT_CHAIN_FOREIGN,  /* the line is none of the chain, and no gap's line tells of it */
	VT_CHAIN_NO_GAP,   /* a gap's line, and there is none, or another one */
	VT_CHAIN_TORN,     /* the last line has no end */
};

/*
 * A walk along the lines of a file, piece by piece. Its owner reads the members up to the blank
 * line.
 */
struct vt_chain {
	uint64_t            lines;     /* that were seen, the faulty one included */
	uint64_t            linked;    /* of the chain */
	uint64_t            unlinked;  /* before its first line: nothing holds these */
	uint64_t            gap_lines; /* lines in gaps, which a gap's line tells of */
	char                first_time[VT_CHAIN_TIME], last_time[VT_CHAIN_TIME]; /* "": none */
	char                last[VT_CHAIN_HEX + 1]; /* the hash of the last line of the chain */
	uint64_t            expected_at; /* the line that has the expected hash; 0: none has */
	enum vt_chain_fault fault;       /* the first one; nothing is looked at behind it */
	uint64_t            fault_line;  /* from 1 on */

	const char       *expected;
	struct sha256_ctx sha, gap; /* of this line up to its tail; of the lines of the gap */
	uint64_t          gap_from, gap_count; /* its first line, and how many so far */
	uint64_t          len;      /* of this line so far */
	/* the line's first and last bytes */
	char              head[VT_CHAIN_HEAD], tail[VT_CHAIN_TAIL];
	size_t            head_len, tail_len;
};

/* The hash of these bytes alone. */
void vt_chain_hash(const char *bytes, size_t len, char ret_hex[VT_CHAIN_HEX + 1]);

/*
 * Adds the line for a JSON object to out: json, which may end in a newline, without its brace, then
 * prev, hash, a brace, a newline. -EINVAL: json is not an object of some members in one line, as
 * far as its ends show.
 */
int vt_chain_add(struct vt_str *out, const char *json, size_t len, const char *prev,
		 char ret_hash[VT_CHAIN_HEX + 1]);

/* Adds the line of the gap that the walk stands behind. */
int vt_chain_add_gap(struct vt_str *out, const struct vt_chain *chain, const char *time,
		     const char *prev,
		     char ret_hash[VT_CHAIN_HEX + 1]);

/*
 * Whether these bytes, the last VT_CHAIN_TAIL before a line's end, are those of a line of the
 * chain; then *ret_prev and *ret_hash point to the hashes in them. Bytes within such a line are
 * not: there a quote has a backslash before it.
 */
bool vt_chain_is_tail(const char *tail, const char **ret_prev, const char **ret_hash);

/* Begins a walk. expected is a hash to look out for, or NULL; it must live as long. */
void vt_chain_begin(struct vt_chain *chain, const char *expected);

/* Takes the next bytes. They may end anywhere. */
void vt_chain_walk(struct vt_chain *chain, const char *bytes, size_t len);

/* No more come. A last line that lacks nothing but its newline is whole. */
void vt_chain_end(struct vt_chain *chain);

/* What a fault means, as the end of a sentence that begins with "line N ". */
const char *vt_chain_meaning(enum vt_chain_fault fault);
