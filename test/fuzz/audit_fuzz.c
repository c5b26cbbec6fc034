/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier of audit logs under any bytes. Its verdict is the same in whatever pieces they come,
 * and its counts add up. Of what is found whole, any line that is changed is noticed; and what is
 * appended to any bytes makes a log that is whole if it was, or if it only lacked its end.
 * libFuzzer drives it, or replay.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "watch/chain.h"

static struct vt_chain walk(const char *bytes, size_t len, size_t piece)
{
	struct vt_chain chain;

	vt_chain_begin(&chain, vt_chain_zeros);
	for (size_t at = 0; at < len; at += piece)
		vt_chain_walk(&chain, bytes + at, len - at < piece ? len - at : piece);
	vt_chain_end(&chain);
	return chain;
}

static void check_time(const char *time)
{
	REQUIRE(memchr(time, '\0', VT_CHAIN_TIME));
	REQUIRE(time[strspn(time, "0123456789-T:.Z")] == '\0');
}

static void check_chain(const struct vt_chain *chain, const char *bytes, size_t len)
{
	uint64_t lines = len && bytes[len - 1] != '\n';

	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	REQUIRE(chain->lines <= lines && chain->fault_line <= chain->lines);
	REQUIRE(strlen(chain->last) == VT_CHAIN_HEX);
	REQUIRE(chain->linked || strcmp(chain->last, vt_chain_zeros) == 0);
	REQUIRE(!chain->expected_at); /* no line has that hash */
	REQUIRE(vt_chain_meaning(chain->fault));
	check_time(chain->first_time);
	check_time(chain->last_time);
	if (chain->fault)
		REQUIRE(chain->fault_line > 0);
	else
		REQUIRE(chain->lines == lines &&
			lines == chain->linked + chain->unlinked + chain->gap_lines);
}

static void check_same(const struct vt_chain *one, const struct vt_chain *two)
{
	REQUIRE(one->fault == two->fault && one->fault_line == two->fault_line);
	REQUIRE(one->lines == two->lines && one->linked == two->linked);
	REQUIRE(one->unlinked == two->unlinked && one->gap_lines == two->gap_lines);
	REQUIRE(strcmp(one->last, two->last) == 0);
	REQUIRE(strcmp(one->last_time, two->last_time) == 0);
}

/* A line of the chain is what all the others follow: none can lose a bit, but for the only one,
 * which then has none. */
static void change_a_bit(const struct vt_chain *chain, char *bytes, size_t len)
{
	if (chain->fault || !chain->linked || chain->unlinked)
		return;
	size_t at = (len * 2654435761u >> 7) % len;

	bytes[at] ^= 1;
	struct vt_chain changed = walk(bytes, len, 64);

	bytes[at] ^= 1;
	REQUIRE(changed.fault || (chain->linked == 1 && !changed.linked));
}

/* As vt_audit_append() does it. */
static void append(const struct vt_chain *chain, const char *bytes, size_t len)
{
	char hash[VT_CHAIN_HEX + 1];
	struct vt_str text;

	if (chain->fault && chain->fault != VT_CHAIN_TORN)
		return;
	vt_str_init(&text);
	vt_str_addn(&text, bytes, len);
	if (len && bytes[len - 1] != '\n')
		vt_str_add(&text, "\n");
	memcpy(hash, chain->last, sizeof(hash));
	if (chain->linked && chain->fault)
		REQUIRE(vt_chain_add_gap(&text, chain, "2026-01-01T00:00:00.000Z", hash, hash) ==
			0);
	REQUIRE(vt_chain_add(&text, "{\"a\": 1}", 8, hash, hash) == 0);
	struct vt_chain after = walk(text.text, text.len, text.len);

	REQUIRE(!after.fault && strcmp(after.last, hash) == 0);
	REQUIRE(after.linked == chain->linked + 1 + (chain->linked && chain->fault));
	vt_str_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = malloc(size ? size : 1);

	REQUIRE(bytes);
	memcpy(bytes, data, size);
	struct vt_chain chain = walk(bytes, size, size ? size : 1);
	struct vt_chain pieces = walk(bytes, size, size % 300 + 1);

	check_chain(&chain, bytes, size);
	check_same(&chain, &pieces);
	append(&chain, bytes, size);
	change_a_bit(&chain, bytes, size);
	free(bytes);
	return 0;
}
