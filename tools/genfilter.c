/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genfilter CPU_FAMILY OUT.c: turns the tables of seccomp_profile.c and seccomp_bare.c into BPF,
 * one program for each profile or add-on and set of socket families, and writes them as C.
 *
 * libseccomp is asked for the numbers of calls, but does not compile. It takes no number without a
 * name for a foreign machine, cannot say "any other value of these 32 bits", and tests one call at
 * a time, which makes programs of three times the length; and length is what installing costs. Here
 * stretches of neighbouring calls with one verdict are the leaves of one balanced tree. The kernel
 * works out at installation which calls pass whatever their arguments, and never asks the filter
 * about them again; it follows only plain loads, jumps and masks, so nothing else is used.
 *
 * Programs are written backwards, from their last instruction to their first. BPF jumps only
 * forwards, so every target is known when the jump to it is written.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/seccomp_profile.h"

enum {
	CALLS = 1024,       /* numbers that are looked at; beyond lie ENOSYS and the x32 calls */
	PROGRAM_MAX = 2048, /* instructions */
	JUMP_MAX = 250,     /* of the 255 that a jump can span, less what near() may add */
	ODD_MAX = 3,        /* calls that are tested one by one in a leaf of the tree */
};

/* What becomes of a call. */
struct leaf {
	const struct vt_seccomp_condition *condition; /* NULL: the verdict alone */
	int verdict;
};

/* Where a filter comes from. */
struct kind {
	const char *name;
	const struct vt_seccomp_group *groups;
	const struct vt_seccomp_condition *conditions;
	enum vt_seccomp_profile profile; /* whose verdicts */
	bool addon;                      /* what is not named passes */
	bool promised;                   /* only what is promised */
	bool alike;                      /* the same for all socket families */
};

static const struct kind profiles[VT_SECCOMP_PROFILES] = {
	[VT_SECCOMP_DEFAULT] = { "default", vt_seccomp_groups, vt_seccomp_conditions,
				 VT_SECCOMP_DEFAULT },
	[VT_SECCOMP_STRICT] = { "strict", vt_seccomp_groups, vt_seccomp_conditions,
				VT_SECCOMP_STRICT },
};

static const struct kind addons[VT_SECCOMP_ADDONS] = {
	[VT_SECCOMP_ALWAYS] = { "always", vt_seccomp_groups, vt_seccomp_conditions,
				VT_SECCOMP_DEFAULT, .addon = true, .promised = true },
	[VT_SECCOMP_BARE] = { "bare", vt_seccomp_bare_groups, vt_seccomp_bare_conditions,
			      VT_SECCOMP_DEFAULT, .addon = true, .alike = true },
	[VT_SECCOMP_OWNER] = { "owner", vt_seccomp_owner_groups, vt_seccomp_owner_conditions,
			       VT_SECCOMP_DEFAULT, .addon = true },
	[VT_SECCOMP_MUTE] = { "mute", vt_seccomp_mute_groups, vt_seccomp_mute_conditions,
			      VT_SECCOMP_DEFAULT, .addon = true, .alike = true },
	[VT_SECCOMP_CALLED] = { "called", vt_seccomp_called_groups, vt_seccomp_called_conditions,
				VT_SECCOMP_DEFAULT, .addon = true, .alike = true },
};

struct machine {
	const char *family;
	const char *macro; /* that its compiler defines */
	uint32_t libseccomp, audit;
	enum vt_seccomp_machine bit; /* in the tables */
};

struct variant {
	const struct kind *kind;
	const struct machine *machine;
	unsigned sockets;
	struct leaf calls[CALLS];
};

struct program {
	struct sock_filter code[PROGRAM_MAX];
	size_t start; /* of what is written so far; it ends at PROGRAM_MAX */
};

static const struct machine machines[] = {
	{ "x86_64", "__x86_64__", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, VT_SECCOMP_X86_64 },
	{ "aarch64", "__aarch64__", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, VT_SECCOMP_AARCH64 },
};

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("genfilter: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* The number of a call, or -1 where the machine lacks it. A name that nobody knows is a mistake. */
static int number_of(const struct machine *machine, const char *call)
{
	int known = seccomp_syscall_resolve_name_arch(machine->libseccomp, call);
	int nr = known;

	for (const struct vt_seccomp_number *row = vt_seccomp_numbers; row->call; row++) {
		if (strcmp(row->call, call) != 0)
			continue;
		nr = row->x86_only && machine->audit != AUDIT_ARCH_X86_64 ? -1 : row->nr;
		if (known >= 0 && known != nr)
			die("%s is %d to libseccomp, and %d in the table", call, known, nr);
		return nr;
	}
	if (known == __NR_SCMP_ERROR)
		die("'%s' is no system call that libseccomp knows", call);
	if (nr >= CALLS)
		die("%s has the number %d, more than CALLS", call, nr);
	return nr >= 0 ? nr : -1;
}

static void set_calls(struct variant *variant, const char *names, struct leaf leaf)
{
	char buf[1024], *rest = NULL;

	if (strlen(names) >= sizeof(buf))
		die("a group is too long: %s", names);
	memcpy(buf, names, strlen(names) + 1);
	for (char *call = strtok_r(buf, " ", &rest); call; call = strtok_r(NULL, " ", &rest)) {
		int nr = number_of(variant->machine, call);

		if (nr < 0)
			continue;
		if (variant->calls[nr].verdict != -1)
			die("%s is in the tables twice", call);
		variant->calls[nr] = leaf;
	}
}

static bool test_applies(const struct variant *variant, const struct vt_seccomp_test *test)
{
	return (!test->profiles || test->profiles & 1u << variant->kind->profile) &&
	       (!test->sockets || test->sockets & variant->sockets) &&
	       (!test->machines || test->machines & 1u << variant->machine->bit);
}

/* A condition without tests, or with one that always matches first, is a plain verdict here. */
static struct leaf condition_leaf(const struct variant *variant,
				  const struct vt_seccomp_condition *condition)
{
	for (unsigned i = 0; i < condition->count; i++) {
		const struct vt_seccomp_test *test = &condition->tests[i];

		if (test_applies(variant, test))
			return test->mask ? (struct leaf){ condition, 0 }
					  : (struct leaf){ NULL, test->verdict };
	}
	return (struct leaf){ NULL, condition->otherwise };
}

/*
 * What becomes of a call that no row names. An add-on passes it, unless it is newer than the
 * tables: a new call may be one more way to do what they deny. Nor does it pass the x32 calls,
 * which are those of the tables by other numbers.
 */
static int rest(const struct kind *kind, int nr)
{
	return kind->addon && nr <= VT_SECCOMP_NEWEST ? 0 : ENOSYS;
}

static void fill(struct variant *variant)
{
	const struct kind *kind = variant->kind;

	for (int nr = 0; nr < CALLS; nr++)
		variant->calls[nr] = (struct leaf){ NULL, -1 };
	for (const struct vt_seccomp_group *row = kind->groups; row->calls; row++)
		if (row->promised || !kind->promised)
			set_calls(variant, row->calls,
				  (struct leaf){ NULL, row->verdict[kind->profile] });
	for (const struct vt_seccomp_condition *row = kind->conditions; row->calls; row++)
		if (row->promised || !kind->promised)
			set_calls(variant, row->calls, condition_leaf(variant, row));
	for (int nr = 0; nr < CALLS; nr++)
		if (variant->calls[nr].verdict == -1)
			variant->calls[nr].verdict = rest(kind, nr);
}

/* Puts one instruction in front of the others, and returns where it is. */
static size_t put(struct program *program, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
	if (!program->start)
		die("a program has more than %d instructions", PROGRAM_MAX);
	if (jt > UINT8_MAX || jf > UINT8_MAX)
		die("a jump is too long");
	program->code[--program->start] = (struct sock_filter){ (uint16_t)code, (uint8_t)jt,
								(uint8_t)jf, k };
	return program->start;
}

/* The same place, or one within reach that leads there: a copy of a return, a jump to the rest. */
static size_t near(struct program *program, size_t target)
{
	const struct sock_filter there = program->code[target];

	if (target - program->start < JUMP_MAX)
		return target;
	if (there.code == (BPF_RET | BPF_K))
		return put(program, there.code, there.k, 0, 0);
	return put(program, BPF_JMP | BPF_JA, (uint32_t)(target - program->start), 0, 0);
}

static size_t put_return(struct program *program, uint32_t action)
{
	size_t end = program->start + JUMP_MAX / 2;

	for (size_t at = program->start; at < end && at < PROGRAM_MAX; at++)
		if (program->code[at].code == (BPF_RET | BPF_K) && program->code[at].k == action)
			return at;
	return put(program, BPF_RET | BPF_K, action, 0, 0);
}

static size_t put_verdict(struct program *program, int verdict)
{
	if (verdict == VT_SECCOMP_NOTIFY)
		return put_return(program, SECCOMP_RET_USER_NOTIF);
	return put_return(program,
			  verdict ? SECCOMP_RET_ERRNO | (uint32_t)verdict : SECCOMP_RET_ALLOW);
}

static size_t put_branch(struct program *program, unsigned test, uint32_t k, size_t yes, size_t no)
{
	yes = near(program, yes);
	no = near(program, no);
	return put(program, BPF_JMP | test | BPF_K, k, (unsigned)(yes - program->start),
		   (unsigned)(no - program->start));
}

/* JSET tests bits as they are; every other part of an argument is cut out of the register first. */
static bool tests_bits(const struct vt_seccomp_test *test)
{
	return test->mask != UINT32_MAX && !test->value;
}

static uint32_t cut_of(const struct vt_seccomp_test *test)
{
	return tests_bits(test) ? UINT32_MAX : test->mask;
}

static size_t put_test(struct program *program, const struct vt_seccomp_test *test, bool load,
		       size_t next)
{
	/* Little-endian machines, both: the low half comes first. */
	size_t low = offsetof(struct seccomp_data, args) + test->arg * sizeof(uint64_t);
	size_t match = put_verdict(program, test->verdict);
	bool bits = tests_bits(test);
	unsigned code = bits ? BPF_JSET : BPF_JEQ;
	uint32_t k = bits ? test->mask : test->value;
	/* JSET is true where the bits differ from 0, JEQ where there is no difference. */
	size_t at = bits == test->differs ? put_branch(program, code, k, match, next)
					  : put_branch(program, code, k, next, match);

	if (load && cut_of(test) != UINT32_MAX)
		at = put(program, BPF_ALU | BPF_AND | BPF_K, cut_of(test), 0, 0);
	if (load)
		at = put(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)low, 0, 0);
	return at;
}

/* Whether a test finds in the register what it needs, from the test before it. */
static bool is_loaded(const struct vt_seccomp_test *before, const struct vt_seccomp_test *test)
{
	return before->arg == test->arg && cut_of(before) == cut_of(test);
}

static size_t put_leaf(struct program *program, const struct variant *variant,
		       const struct leaf *leaf)
{
	const struct vt_seccomp_condition *condition = leaf->condition;
	const struct vt_seccomp_test *tests[VT_SECCOMP_TESTS];
	size_t count = 0, at;

	if (!condition)
		return put_verdict(program, leaf->verdict);
	for (unsigned i = 0; i < condition->count; i++)
		if (test_applies(variant, &condition->tests[i]))
			tests[count++] = &condition->tests[i];
	at = put_verdict(program, condition->otherwise);
	while (count--)
		at = put_test(program, tests[count],
			      !count || !is_loaded(tests[count - 1], tests[count]), at);
	return at;
}

static bool same_leaf(const struct leaf *a, const struct leaf *b)
{
	return a->condition == b->condition && a->verdict == b->verdict;
}

/* A stretch of calls with one leaf, and the few among them that have others. */
struct stretch {
	int first;
	int odd[ODD_MAX];
	int odd_count;
};

/* Splits all calls into stretches. A lone odd call costs one test so, and two if it parted them. */
static int find_stretches(const struct variant *variant, struct stretch *ret_stretches)
{
	const struct leaf *calls = variant->calls;
	struct stretch *stretch = NULL;
	int count = 0;

	for (int nr = 0; nr < CALLS; nr++) {
		bool lone = stretch && nr + 1 < CALLS &&
			    same_leaf(&calls[nr + 1], &calls[stretch->first]);

		if (stretch && same_leaf(&calls[nr], &calls[stretch->first]))
			continue;
		if (lone && stretch->odd_count < ODD_MAX) {
			stretch->odd[stretch->odd_count++] = nr;
			continue;
		}
		stretch = &ret_stretches[count++];
		*stretch = (struct stretch){ .first = nr };
	}
	return count;
}

/* The tree over so many stretches; the register holds the number of the call. */
static size_t put_tree(struct program *program, const struct variant *variant,
		       const struct stretch *stretches, int count)
{
	int half = count / 2;
	size_t above, at;

	if (count > 1) {
		above = put_tree(program, variant, stretches + half, count - half);
		at = put_tree(program, variant, stretches, half);
		return put_branch(program, BPF_JGE, (uint32_t)stretches[half].first, above, at);
	}
	at = put_leaf(program, variant, &variant->calls[stretches->first]);
	for (int i = 0; i < stretches->odd_count; i++) {
		size_t odd = put_leaf(program, variant, &variant->calls[stretches->odd[i]]);

		at = put_branch(program, BPF_JEQ, (uint32_t)stretches->odd[i], odd, at);
	}
	return at;
}

static void compile(const struct variant *variant, struct program *program)
{
	static struct stretch stretches[CALLS];
	int count = find_stretches(variant, stretches);
	size_t body, at;

	program->start = PROGRAM_MAX;
	body = put_tree(program, variant, stretches, count);
	if (body != program->start)
		die("the tree does not begin at its root");
	body = put(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);

	/*
	 * Another machine's calls kill: a 32-bit program would take an errno from its every call,
	 * that of its exit included, for something to try again. The kernel asks about each number
	 * of each of its machines when a filter is installed, so this comes first.
	 */
	at = put(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	put_branch(program, BPF_JEQ, variant->machine->audit, body, at);
	put(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
}

static void write_program(FILE *out, const struct variant *variant, const struct program *program)
{
	fprintf(out, "\nstatic const struct sock_filter %s_%u[] = {\n", variant->kind->name,
		variant->sockets);
	for (size_t at = program->start; at < PROGRAM_MAX; at++) {
		const struct sock_filter *ins = &program->code[at];

		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%08x },\n", ins->code, ins->jt, ins->jf,
			ins->k);
	}
	fputs("};\n", out);
}

/* The programs of several kinds, and the table that names them. */
static void write_kinds(FILE *out, const struct machine *machine, const struct kind *kinds,
			unsigned count, const char *table)
{
	static struct variant variant;
	static struct program program;

	for (unsigned i = 0; i < count; i++)
		for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++) {
			if (kinds[i].alike && sockets)
				break;
			variant.kind = &kinds[i];
			variant.machine = machine;
			variant.sockets = sockets;
			fill(&variant);
			compile(&variant, &program);
			write_program(out, &variant, &program);
		}
	fprintf(out, "\nconst struct sock_fprog %s = {\n", table);
	for (unsigned i = 0; i < count; i++) {
		fputs("\t{", out);
		for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++)
			fprintf(out, " FILTER(%s_%u),", kinds[i].name,
				kinds[i].alike ? 0 : sockets);
		fputs(" },\n", out);
	}
	fputs("};\n", out);
}

static void write_all(FILE *out, const struct machine *machine)
{
	fprintf(out,
		"/* SPDX-License-Identifier: Apache-2.0 */\n"
		"/* Made by genfilter from seccomp_profile.c and seccomp_bare.c. */\n"
		"#include \"kernel/seccomp_profile.h\"\n\n"
		"#ifndef %s\n#error \"these filters are for %s\"\n#endif\n",
		machine->macro, machine->family);
	/* The kernel reads the code and never writes it, though its struct has no const. */
	fputs("\n#define FILTER(code) { sizeof(code) / sizeof(*code), (struct sock_filter *)code "
	      "}\n",
	      out);
	write_kinds(out, machine, profiles, VT_SECCOMP_PROFILES,
		    "vt_seccomp_filters[VT_SECCOMP_PROFILES][VT_SOCKETS_SETS]");
	write_kinds(out, machine, addons, VT_SECCOMP_ADDONS,
		    "vt_seccomp_addons[VT_SECCOMP_ADDONS][VT_SOCKETS_SETS]");
}

int main(int argc, char **argv)
{
	const struct machine *machine = NULL;
	FILE *out;

	if (argc != 3)
		die("usage: genfilter CPU_FAMILY OUT.c");
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (!strcmp(machines[i].family, argv[1]))
			machine = &machines[i];
	if (!machine)
		die("no filters for '%s', only for x86_64 and aarch64", argv[1]);
	out = fopen(argv[2], "w");
	if (!out)
		die("cannot write %s: %s", argv[2], strerror(errno));
	write_all(out, machine);
	if (fflush(out) || ferror(out) || fclose(out))
		die("cannot write %s: %s", argv[2], strerror(errno));
	return 0;
}
