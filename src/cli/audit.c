/* SPDX-License-Identifier: Apache-2.0 */
/* vitro audit: whether the lines of an audit log are as they were written. */
#include "watch/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/closest.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/options.h"

enum { EXIT_NOT = 1 }; /* the log is not as it was written, or nothing shows that it is */

static void show_help(void)
{
	vt_options_show(
		"audit",
		"usage: vitro audit verify [FLAGS] FILE\n\n"
		"Reads an audit log, as vitro run --audit FILE writes it, and says whether lines\n"
		"were changed, removed, put in or moved; and which is the first that is wrong.\n"
		"That lines are missing at the end shows only against a hash that was kept\n"
		"elsewhere: --expect.\n\n",
		"\nExits with 0 if all is as it was written, with 1 if not, with 125 for an\n"
		"error of vitro's own. vitro-audit(1) says more.\n");
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void add_notes(struct vt_str *out, const struct vt_chain *chain)
{
	uint64_t later = chain->lines - chain->expected_at;

	if (chain->unlinked)
		vt_str_addf(out,
			    "note: %" PRIu64 " line%s before the chain %s no hash: nothing shows "
			    "whether they were changed\n",
			    chain->unlinked, plural(chain->unlinked),
			    chain->unlinked == 1 ? "has" : "have");
	if (chain->gap_lines)
		vt_str_addf(out,
			    "note: %" PRIu64 " line%s cut off in writing, or not written by "
			    "vitro; the chain tells of %s\n",
			    chain->gap_lines, chain->gap_lines == 1 ? " was" : "s were",
			    chain->gap_lines == 1 ? "it" : "them");
	if (chain->expected && chain->expected_at)
		vt_str_addf(out,
			    "expected    line %" PRIu64 " has that hash, and %" PRIu64
			    " line%s came after it\n",
			    chain->expected_at, later, plural(later));
}

static int report(const char *path, const struct vt_chain *chain, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_show(&text, path, strlen(path));
	if (chain->lines)
		vt_str_addf(&text,
			    ": %" PRIu64 " line%s, as written\n"
			    "first line  %s\nlast line   %s\nlast hash   %s\n",
			    chain->lines, plural(chain->lines),
			    chain->first_time[0] ? chain->first_time : "(no time)",
			    chain->last_time[0] ? chain->last_time : "(no time)", chain->last);
	else
		vt_str_add(&text, ": no lines\n");
	add_notes(&text, chain);
	int r = vt_cli_report(&text, err);

	vt_str_done(&text);
	return r;
}

/* What is wrong, in a sentence that follows the file's name; nothing, where all is well. */
static void add_wrong(struct vt_str *out, const struct vt_chain *chain)
{
	if (chain->fault)
		vt_str_addf(out, "line %" PRIu64 " %s", chain->fault_line,
			    vt_chain_meaning(chain->fault));
	else if (chain->lines && !chain->linked)
		vt_str_addf(out,
			    "none of its %" PRIu64 " line%s has a hash: nothing shows whether "
			    "they were changed",
			    chain->lines, plural(chain->lines));
	else if (chain->expected && !chain->expected_at)
		vt_str_addf(out,
			    "no line has the expected hash: lines at the end were removed, or all "
			    "of it was written anew; the last of its %" PRIu64 " line%s has %s",
			    chain->lines, plural(chain->lines), chain->last);
	if (chain->fault == VT_CHAIN_TORN && chain->linked)
		vt_str_add(out, "; those before it are as written, and the next call with --audit "
				"goes on after it");
}

static int verify(const struct vt_options *options, struct vt_err *err)
{
	const char *path = options->command[0];
	struct vt_chain chain;
	struct vt_str wrong;
	int r = vt_audit_verify(path, options->expect, &chain, err);

	if (r < 0)
		return r;
	vt_str_init(&wrong);
	vt_str_addf(&wrong, "%s: ", path);
	size_t empty = wrong.len;

	add_wrong(&wrong, &chain);
	if (!vt_str_ok(&wrong))
		r = vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "print the report");
	else if (wrong.len == empty)
		r = report(path, &chain, err);
	else
		vt_cli_complain(wrong.text);
	r = r < 0 ? r : wrong.len == empty ? 0 : EXIT_NOT;
	vt_str_done(&wrong);
	return r;
}

static int fail_word(const char *word, struct vt_err *err)
{
	struct vt_closest closest;

	if (!word)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "audit needs a word and a file: vitro audit verify FILE");
	vt_closest_init(&closest, word);
	vt_closest_try(&closest, "verify", "verify");
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "audit has no '%.100s'; %s", word,
		       closest.best ? "did you mean verify?" : "write: vitro audit verify FILE");
}

static int serve(const struct vt_options *options, bool has_word, struct vt_err *err)
{
	const char *hash = options->expect;

	if (!has_word)
		return fail_word(options->command[0], err);
	if (!options->command[0] || !*options->command[0])
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "no file given: vitro audit verify [FLAGS] FILE");
	if (options->command[1])
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "audit verify takes one file, after its flags, and no '%.100s'",
			       options->command[1]);
	if (hash &&
	    (strlen(hash) != VT_CHAIN_HEX || strspn(hash, "0123456789abcdef") != VT_CHAIN_HEX))
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "--expect %.100s: a hash is %d digits from 0 to f, as 'last hash' "
			       "shows it",
			       hash, VT_CHAIN_HEX);
	return verify(options, err);
}

int vt_cli_audit(int argc, char **argv)
{
	bool has_word = argc > 1 && strcmp(argv[1], "verify") == 0;
	struct vt_options options;
	struct vt_err err;

	/* The flags stand behind the word, and are the verb's. */
	if (has_word) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	int r = vt_options_parse(&options, argc, argv, &err);

	if (r == 0 && options.help)
		show_help();
	else if (r == 0)
		r = serve(&options, has_word, &err);
	vt_options_done(&options);
	if (r < 0) {
		vt_cli_complain_err(&err);
		return VT_EXIT_OWN;
	}
	return r;
}
