/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char prev_mark[] = ", \"prev\": \"", hash_mark[] = "\", \"hash\": \"",
		  end_mark[] = "\"}";

/* Where the parts of a tail are. What is hashed of a line ends behind the quote that ends prev. */
enum {
	PREV_AT = sizeof(prev_mark) - 1,
	HASH_MARK_AT = PREV_AT + VT_CHAIN_HEX,
	HASHED = HASH_MARK_AT + 1,
	HASH_AT = HASH_MARK_AT + sizeof(hash_mark) - 1,
	END_AT = HASH_AT + VT_CHAIN_HEX,
};
_Static_assert(END_AT + sizeof(end_mark) - 1 == VT_CHAIN_TAIL, "the marks make up a tail");

const char vt_chain_zeros[VT_CHAIN_HEX + 1] =
	"0000000000000000000000000000000000000000000000000000000000000000";

static void add_bytes(struct sha256_ctx *sha, const char *bytes, size_t len)
{
	sha256_update(sha, len, (const uint8_t *)bytes);
}

static void write_hex(const uint8_t *digest, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
		ret_hex[2 * i] = digits[digest[i] >> 4];
		ret_hex[2 * i + 1] = digits[digest[i] & 15];
	}
	ret_hex[VT_CHAIN_HEX] = '\0';
}

void vt_chain_hash(const char *bytes, size_t len, char ret_hex[VT_CHAIN_HEX + 1])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	add_bytes(&sha, bytes, len);
	sha256_digest(&sha, sizeof(digest), digest);
	write_hex(digest, ret_hex);
}

static bool is_hex(const char *text)
{
	for (size_t i = 0; i < VT_CHAIN_HEX; i++)
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	return true;
}

bool vt_chain_is_tail(const char *tail, const char **ret_prev, const char **ret_hash)
{
	if (memcmp(tail, prev_mark, sizeof(prev_mark) - 1) != 0 ||
	    memcmp(tail + HASH_MARK_AT, hash_mark, sizeof(hash_mark) - 1) != 0 ||
	    memcmp(tail + END_AT, end_mark, sizeof(end_mark) - 1) != 0 || !is_hex(tail + PREV_AT) ||
	    !is_hex(tail + HASH_AT))
		return false;
	*ret_prev = tail + PREV_AT;
	*ret_hash = tail + HASH_AT;
	return true;
}

int vt_chain_add(struct vt_str *out, const char *json, size_t len, const char *prev,
		 char ret_hash[VT_CHAIN_HEX + 1])
{
	size_t from = out->len;

	if (len && json[len - 1] == '\n')
		len--;
	if (len <= strlen("{}") || json[0] != '{' || json[len - 1] != '}' ||
	    memchr(json, '\n', len))
		return -EINVAL;
	vt_str_addn(out, json, len - 1);
	vt_str_addf(out, "%s%s\"", prev_mark, prev);
	if (!vt_str_ok(out))
		return -ENOMEM;
	vt_chain_hash(out->text + from, out->len - from, ret_hash);
	vt_str_addf(out, "%s%s%s\n", hash_mark + 1, ret_hash, end_mark);
	return vt_str_ok(out) ? 0 : -ENOMEM;
}

/* ---- gaps ---------------------------------------------------------------------------------- */

/* The members that tell of a gap, which stand behind a line's time. */
static const char gap_mark[] = "\"gap\": ";

static void tell_gap(const struct vt_chain *chain, char *ret_text, size_t size)
{
	struct sha256_ctx sha = chain->gap; /* to go on with */
	uint8_t digest[SHA256_DIGEST_SIZE];
	char hex[VT_CHAIN_HEX + 1];

	sha256_digest(&sha, sizeof(digest), digest);
	write_hex(digest, hex);
	(void)snprintf(ret_text, size, "%s%" PRIu64 ", \"gap_hash\": \"%s\"", gap_mark,
		       chain->gap_count, hex); /* fits: VT_CHAIN_HEAD has room for more */
}

int vt_chain_add_gap(struct vt_str *out, const struct vt_chain *chain, const char *time,
		     const char *prev, char ret_hash[VT_CHAIN_HEX + 1])
{
	char gap[VT_CHAIN_HEAD], json[2 * VT_CHAIN_HEAD];

	tell_gap(chain, gap, sizeof(gap));
	int len = snprintf(json, sizeof(json), "{\"time\": \"%.*s\", %s}", VT_CHAIN_TIME - 1, time,
			   gap);

	return vt_chain_add(out, json, (size_t)len, prev, ret_hash);
}

/* ---- walking ------------------------------------------------------------------------------- */

static void begin_line(struct vt_chain *chain)
{
	sha256_init(&chain->sha);
	chain->len = chain->head_len = chain->tail_len = 0;
}

void vt_chain_begin(struct vt_chain *chain, const char *expected)
{
	*chain = (struct vt_chain){ .expected = expected };
	memcpy(chain->last, vt_chain_zeros, sizeof(chain->last));
	sha256_init(&chain->gap);
	begin_line(chain);
}

static void find_fault(struct vt_chain *chain, enum vt_chain_fault fault, uint64_t line)
{
	chain->fault = fault;
	chain->fault_line = line;
}

/* The length of `{"time": "...", `, and the time; 0: the line does not begin with one. */
static size_t read_time(const struct vt_chain *chain, char ret_time[VT_CHAIN_TIME])
{
	static const char mark[] = "{\"time\": \"", end[] = "\", ";
	size_t at = sizeof(mark) - 1, len = 0;

	ret_time[0] = '\0';
	if (chain->head_len < at || memcmp(chain->head, mark, at) != 0)
		return 0;
	while (at + len < chain->head_len && chain->head[at + len] &&
	       strchr("0123456789-T:.Z", chain->head[at + len]))
		len++;
	if (len >= VT_CHAIN_TIME || at + len + sizeof(end) - 1 > chain->head_len ||
	    memcmp(chain->head + at + len, end, sizeof(end) - 1) != 0)
		return 0;
	memcpy(ret_time, chain->head + at, len);
	ret_time[len] = '\0';
	return at + len + sizeof(end) - 1;
}

/* Whether the line begins with that text at a place. */
static bool has_at(const struct vt_chain *chain, size_t at, const char *text)
{
	size_t len = strlen(text);

	return len <= chain->head_len && at <= chain->head_len - len &&
	       memcmp(chain->head + at, text, len) == 0;
}

/* A line that is of the chain by its form: is it the next one? tells: it is a gap's, at that place.
 */
static enum vt_chain_fault judge_link(struct vt_chain *chain, const char *prev, const char *hash,
				      size_t tells)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	char hex[VT_CHAIN_HEX + 1], gap[VT_CHAIN_HEAD];
	bool is_first = !chain->linked;

	if (chain->gap_count && !is_first && !tells)
		return VT_CHAIN_FOREIGN;
	add_bytes(&chain->sha, chain->tail, HASHED);
	sha256_digest(&chain->sha, sizeof(digest), digest);
	write_hex(digest, hex);
	if (memcmp(hex, hash, VT_CHAIN_HEX) != 0)
		return VT_CHAIN_CHANGED;
	if (memcmp(prev, chain->last, VT_CHAIN_HEX) != 0 && is_first)
		return VT_CHAIN_HEADLESS;
	if (memcmp(prev, chain->last, VT_CHAIN_HEX) != 0)
		return memcmp(prev, vt_chain_zeros, VT_CHAIN_HEX) == 0 ? VT_CHAIN_ANEW
								       : VT_CHAIN_UNLINKED;
	if (!tells)
		return VT_CHAIN_WHOLE;
	tell_gap(chain, gap, sizeof(gap));
	return chain->gap_count && !is_first && has_at(chain, tells, gap) ? VT_CHAIN_WHOLE
									  : VT_CHAIN_NO_GAP;
}

static void take_link(struct vt_chain *chain, const char *hash, const char *time)
{
	if (!chain->linked)
		chain->unlinked = chain->gap_count;
	else
		chain->gap_lines += chain->gap_count;
	chain->linked++;
	chain->gap_count = 0;
	memcpy(chain->last, hash, VT_CHAIN_HEX);
	if (!chain->first_time[0])
		memcpy(chain->first_time, time, VT_CHAIN_TIME);
	if (time[0])
		memcpy(chain->last_time, time, VT_CHAIN_TIME);
	if (chain->expected && !chain->expected_at &&
	    memcmp(chain->expected, hash, VT_CHAIN_HEX) == 0)
		chain->expected_at = chain->lines;
}

static void end_link(struct vt_chain *chain, const char *prev, const char *hash)
{
	char time[VT_CHAIN_TIME] = "";
	size_t tells = read_time(chain, time);

	if (!has_at(chain, tells, gap_mark))
		tells = 0;
	enum vt_chain_fault fault = judge_link(chain, prev, hash, tells);

	if (fault == VT_CHAIN_WHOLE)
		take_link(chain, hash, time);
	else
		find_fault(chain, fault,
			   fault == VT_CHAIN_FOREIGN ? chain->gap_from : chain->lines);
}

/* A line of a gap, or before the chain. */
static void end_other(struct vt_chain *chain)
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	if (!chain->gap_count++) {
		chain->gap_from = chain->lines;
		sha256_init(&chain->gap);
	}
	add_bytes(&chain->sha, chain->tail, chain->tail_len);
	sha256_digest(&chain->sha, sizeof(digest), digest);
	sha256_update(&chain->gap, sizeof(digest), digest);
}

static void end_line(struct vt_chain *chain)
{
	const char *prev, *hash;

	chain->lines++;
	if (chain->tail_len == VT_CHAIN_TAIL && vt_chain_is_tail(chain->tail, &prev, &hash))
		end_link(chain, prev, hash);
	else
		end_other(chain);
	begin_line(chain);
}

/* Bytes of one line. Those that may be its tail wait: what is hashed ends in the middle of it. */
static void add_to_line(struct vt_chain *chain, const char *bytes, size_t len)
{
	size_t head = VT_CHAIN_HEAD - chain->head_len;
	size_t all = chain->tail_len + len;
	size_t over = all > VT_CHAIN_TAIL ? all - VT_CHAIN_TAIL : 0;
	size_t old = over < chain->tail_len ? over : chain->tail_len;

	head = len < head ? len : head;
	memcpy(chain->head + chain->head_len, bytes, head);
	chain->head_len += head;
	chain->len += len;
	add_bytes(&chain->sha, chain->tail, old);
	add_bytes(&chain->sha, bytes, over - old);
	memmove(chain->tail, chain->tail + old, chain->tail_len - old);
	chain->tail_len -= old;
	memcpy(chain->tail + chain->tail_len, bytes + (over - old), len - (over - old));
	chain->tail_len += len - (over - old);
}

void vt_chain_walk(struct vt_chain *chain, const char *bytes, size_t len)
{
	while (len && !chain->fault) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;

		if (part)
			add_to_line(chain, bytes, part);
		if (end)
			end_line(chain);
		bytes += part + (end ? 1 : 0);
		len -= part + (end ? 1 : 0);
	}
}

void vt_chain_end(struct vt_chain *chain)
{
	bool torn = false;

	if (chain->fault)
		return;
	if (chain->len) {
		uint64_t others = chain->gap_count;

		end_line(chain);
		torn = chain->gap_count > others;
	}
	if (!chain->linked)
		chain->unlinked = chain->gap_count;
	if (!chain->fault && chain->linked && chain->gap_count > (torn ? 1 : 0))
		find_fault(chain, VT_CHAIN_FOREIGN, chain->gap_from);
	else if (!chain->fault && torn)
		find_fault(chain, VT_CHAIN_TORN, chain->lines);
}

const char *vt_chain_meaning(enum vt_chain_fault fault)
{
	static const char *const meanings[] = {
		[VT_CHAIN_WHOLE] = "is whole",
		[VT_CHAIN_CHANGED] = "was changed: its hash is not that of its text",
		[VT_CHAIN_HEADLESS] = "is the first of the chain, but names one before it: the "
				      "lines that the chain began with were removed or changed",
		[VT_CHAIN_UNLINKED] = "does not follow the line before it: between them a line was "
				      "removed, put in or moved",
		[VT_CHAIN_ANEW] = "begins a chain of its own: what was before it is cut off from "
				  "what follows",
		[VT_CHAIN_FOREIGN] = "is not of the chain: it was put in, or written by something "
				     "else than this vitro",
		[VT_CHAIN_NO_GAP] = "tells of lines before it that are not of the chain, and those "
				    "are not there, or not the same",
		[VT_CHAIN_TORN] = "has no end: writing it was cut off, or the end of the file was",
	};

	return meanings[fault];
}
