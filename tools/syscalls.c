/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro-syscalls [--json | --write FILE | --check FILE] PROFILE.json: which system calls vitro's
 * filters leave reachable, and which a container's profile does, such as Docker's default one.
 * vitro-syscalls --first: the calls whose first argument some filter of vitro's looks at.
 *
 * Each filter is run over every number that this machine has, with arguments that are not known:
 * where one decides, both ways are followed. A call passes, depends on its arguments, or is
 * refused. vitro's filter is that of a policy of defaults. A profile is taken for a container
 * without capabilities, which is the fewest calls that it lets through.
 *
 * --write puts the comparison between the two marks of a document; --check fails where that would
 * change it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_profile.h"
#include "policy/oci.h"

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define MACHINE     "x86-64"
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define MACHINE     "aarch64"
#endif

#define BEGIN_MARK "<!-- begin: made by vitro-syscalls --write -->\n"
#define END_MARK   "<!-- end -->\n"

enum { CALLS = VT_SECCOMP_NEWEST + 1, LINE = 96 };

/* What may become of a call, as bits. */
enum { REFUSED = 1, PASSES = 2, DEPENDS = REFUSED | PASSES };

enum { DEFAULT, STRICT, PROFILE, COLUMNS };

struct table {
	const char *names[CALLS]; /* NULL: no such call */
	unsigned char fates[CALLS][COLUMNS];
};

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "vitro-syscalls: %s%s%s\n", what, why ? ": " : "", why ? why : "");
	exit(2);
}

/* The accumulator of a filter; !known: an argument, or what was made of one. */
struct value {
	bool known;
	uint32_t bits;
};

static bool looks_at_first; /* has a filter done so? */

static unsigned follow(const struct sock_fprog *filter, size_t at, int nr, struct value a);

static unsigned follow_jump(const struct sock_fprog *filter, size_t at, int nr, struct value a)
{
	const struct sock_filter *ins = &filter->filter[at];
	bool taken = false;

	if (!a.known)
		return follow(filter, at + 1 + ins->jt, nr, a) |
		       follow(filter, at + 1 + ins->jf, nr, a);
	switch (BPF_OP(ins->code)) {
	case BPF_JEQ:
		taken = a.bits == ins->k;
		break;
	case BPF_JGE:
		taken = a.bits >= ins->k;
		break;
	case BPF_JGT:
		taken = a.bits > ins->k;
		break;
	case BPF_JSET:
		taken = a.bits & ins->k;
		break;
	default:
		die("a jump of no known kind", NULL);
	}
	return follow(filter, at + 1 + (taken ? ins->jt : ins->jf), nr, a);
}

/* All fates that a call of this number can have, from one instruction on. */
static unsigned follow(const struct sock_fprog *filter, size_t at, int nr, struct value a)
{
	for (;; at++) {
		const struct sock_filter *ins = &filter->filter[at];

		if (at >= filter->len)
			die("a filter has no end", NULL);
		switch (ins->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a.known = ins->k < offsetof(struct seccomp_data, instruction_pointer);
			looks_at_first |= ins->k == offsetof(struct seccomp_data, args);
			a.bits = ins->k == offsetof(struct seccomp_data, nr) ? (uint32_t)nr
									     : NATIVE_ARCH;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a.bits &= ins->k;
			break;
		case BPF_JMP | BPF_JA:
			at += ins->k;
			break;
		case BPF_RET | BPF_K:
			return ins->k == SECCOMP_RET_ALLOW || ins->k == SECCOMP_RET_LOG ? PASSES
											: REFUSED;
		default:
			if (BPF_CLASS(ins->code) != BPF_JMP)
				die("an instruction of no known kind", NULL);
			return follow_jump(filter, at, nr, a);
		}
	}
}

static const char *name_of(int nr)
{
	for (const struct vt_seccomp_number *row = vt_seccomp_numbers; row->call; row++)
		if (row->nr == nr && (!row->x86_only || NATIVE_ARCH == AUDIT_ARCH_X86_64))
			return row->call;
	return seccomp_syscall_resolve_num_arch(seccomp_arch_native(), nr);
}

static struct sock_fprog load_profile(struct vt_arena *arena, const char *path)
{
	const struct vt_oci_profile *profile;
	struct sock_fprog filter;
	struct vt_err err;

	/* A version that is later than every "minKernel". */
	if (vt_oci_load(arena, path, false, &profile, &err) < 0 ||
	    vt_oci_compile(profile, 999, 0, arena, &filter, &err) < 0)
		die(err.what, NULL);
	return filter;
}

static void fill(struct table *table, const struct sock_fprog *profile)
{
	/* A policy of defaults: no network, and unix sockets among the cell's own. */
	const struct sock_fprog *filters[COLUMNS] = {
		[DEFAULT] = vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_UNIX),
		[STRICT] = vt_seccomp_builtin(VT_SECCOMP_STRICT, VT_SOCKETS_UNIX),
		[PROFILE] = profile,
	};

	for (int nr = 0; nr < CALLS; nr++) {
		table->names[nr] = name_of(nr);
		for (int i = 0; i < COLUMNS; i++)
			table->fates[nr][i] = (unsigned char)follow(filters[i], 0, nr,
								    (struct value){ 0 });
	}
}

static int count(const struct table *table, int column, unsigned fate)
{
	int sum = 0;

	for (int nr = 0; nr < CALLS; nr++)
		sum += table->names[nr] && table->fates[nr][column] == fate;
	return sum;
}

static int reachable(const struct table *table, int column)
{
	return count(table, column, PASSES) + count(table, column, DEPENDS);
}

static void add_word(struct vt_str *out, const char *word, size_t *used)
{
	size_t len = strlen(word);

	if (*used && *used + 1 + len > LINE) {
		vt_str_add(out, "\n");
		*used = 0;
	}
	vt_str_addf(out, "%s%s", *used ? " " : "", word);
	*used += len + (*used > 0);
}

static bool passes(const unsigned char fates[COLUMNS])
{
	return fates[DEFAULT] == PASSES;
}

static bool depends(const unsigned char fates[COLUMNS])
{
	return fates[DEFAULT] == DEPENDS;
}

static bool only_theirs(const unsigned char fates[COLUMNS])
{
	return fates[PROFILE] != REFUSED && fates[DEFAULT] == REFUSED;
}

static bool only_ours(const unsigned char fates[COLUMNS])
{
	return fates[DEFAULT] != REFUSED && fates[PROFILE] == REFUSED;
}

static void add_list(struct vt_str *out, const char *title, const struct table *table,
		     bool (*belongs)(const unsigned char fates[COLUMNS]))
{
	size_t used = 0;

	vt_str_addf(out, "\n%s\n\n```\n", title);
	for (int nr = 0; nr < CALLS; nr++)
		if (table->names[nr] && belongs(table->fates[nr]))
			add_word(out, table->names[nr], &used);
	vt_str_add(out, "\n```\n");
}

static void add_row(struct vt_str *out, const char *title, const struct table *table, unsigned fate)
{
	vt_str_addf(out, "| %s | %d | %d | %d |\n", title, count(table, DEFAULT, fate),
		    count(table, STRICT, fate), count(table, PROFILE, fate));
}

static void describe(const struct table *table, struct vt_str *out)
{
	int all = 0;

	for (int nr = 0; nr < CALLS; nr++)
		all += table->names[nr] != NULL;
	vt_str_addf(out,
		    "Of the %d system calls of " MACHINE " that vitro knows by name:\n\n"
		    "| | vitro, `default` | vitro, `strict` | Docker's default profile |\n"
		    "|---|---|---|---|\n",
		    all);
	add_row(out, "pass whatever their arguments", table, PASSES);
	add_row(out, "pass with some arguments", table, DEPENDS);
	vt_str_addf(out, "| **reachable** | **%d** | **%d** | **%d** |\n",
		    reachable(table, DEFAULT), reachable(table, STRICT), reachable(table, PROFILE));
	add_row(out, "refused", table, REFUSED);
	add_list(out, "Under `default` these pass whatever their arguments:", table, passes);
	add_list(out, "These pass with some arguments:", table, depends);
	add_list(out, "Docker's profile lets these through, and vitro's `default` does not:", table,
		 only_theirs);
	add_list(out, "vitro's `default` lets these through, and Docker's profile does not:", table,
		 only_ours);
}

static void describe_json(const struct table *table, struct vt_str *out)
{
	static const char *const names[] = { "default", "strict", "profile" };

	vt_str_add(out, "{");
	for (int i = 0; i < COLUMNS; i++)
		vt_str_addf(out, "%s\"%s\": {\"passes\": %d, \"depends\": %d, \"refused\": %d}",
			    i ? ", " : "", names[i], count(table, i, PASSES),
			    count(table, i, DEPENDS), count(table, i, REFUSED));
	vt_str_add(out, "}\n");
}

static void read_whole(const char *path, struct vt_str *text)
{
	FILE *file = fopen(path, "r");
	char chunk[4096];
	size_t got;

	if (!file)
		die(path, strerror(errno));
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		vt_str_addn(text, chunk, got);
	if (ferror(file))
		die(path, "cannot be read");
	(void)fclose(file); /* only read from */
}

/* The document with what is between its marks replaced. */
static void renew(const struct vt_str *document, const struct vt_str *section, struct vt_str *out)
{
	const char *begin = strstr(document->text, BEGIN_MARK);
	const char *end = begin ? strstr(begin, END_MARK) : NULL;

	if (!end)
		die("the document lacks its two marks", NULL);
	begin += strlen(BEGIN_MARK);
	vt_str_addn(out, document->text, (size_t)(begin - document->text));
	vt_str_addf(out, "\n%s\n%s", section->text, end);
}

static void write_whole(const char *path, const struct vt_str *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(text->text, 1, text->len, file) != text->len || fclose(file))
		die(path, strerror(errno));
}

static int renew_document(const char *path, const struct vt_str *section, bool check)
{
	struct vt_str before, after;
	int status = 0;

	vt_str_init(&before);
	vt_str_init(&after);
	read_whole(path, &before);
	renew(&before, section, &after);
	if (!vt_str_ok(&before) || !vt_str_ok(&after))
		die("out of memory", NULL);
	if (!check)
		write_whole(path, &after);
	else if (strcmp(before.text, after.text) != 0) {
		fprintf(stderr, "vitro-syscalls: %s is not what the filters say: make docs\n",
			path);
		status = 1;
	}
	vt_str_done(&before);
	vt_str_done(&after);
	return status;
}

static int list_first(void)
{
	for (int nr = 0; nr < CALLS; nr++) {
		looks_at_first = false;
		for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++) {
			for (unsigned i = 0; i < VT_SECCOMP_PROFILES; i++)
				(void)follow(
					vt_seccomp_builtin((enum vt_seccomp_profile)i, sockets), 0,
					nr, (struct value){ 0 });
			for (unsigned i = 0; i < VT_SECCOMP_ADDONS; i++)
				(void)follow(vt_seccomp_addon((enum vt_seccomp_addon)i, sockets), 0,
					     nr, (struct value){ 0 });
		}
		if (looks_at_first)
			printf("%s\n", name_of(nr));
	}
	return fflush(stdout) ? 2 : 0;
}

int main(int argc, char **argv)
{
	bool json = argc == 3 && strcmp(argv[1], "--json") == 0;
	bool write = argc == 4 && strcmp(argv[1], "--write") == 0;
	bool check = argc == 4 && strcmp(argv[1], "--check") == 0;
	static struct table table;
	struct vt_arena *arena = vt_arena_new();
	struct sock_fprog profile;
	struct vt_str text;
	int status = 0;

	if (argc == 2 && strcmp(argv[1], "--first") == 0)
		return list_first();
	if (argc != 2 && !json && !write && !check)
		die("usage: vitro-syscalls --first | [--json | --write FILE | --check FILE] "
		    "PROFILE.json",
		    NULL);
	if (!arena)
		die("out of memory", NULL);
	profile = load_profile(arena, argv[argc - 1]);
	fill(&table, &profile);
	vt_str_init(&text);
	(json ? describe_json : describe)(&table, &text);
	if (!vt_str_ok(&text))
		die("out of memory", NULL);
	if (write || check)
		status = renew_document(argv[2], &text, check);
	else if (fputs(text.text, stdout) < 0 || fflush(stdout))
		die("cannot write", strerror(errno));
	vt_str_done(&text);
	vt_arena_free(arena);
	return status;
}
