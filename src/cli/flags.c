/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <string.h>

#include "policy/fields.h"
#include "policy/policy.h"

/* The verbs that take a policy, and so the flags of its fields. */
static const char policy_verbs[] = "run eval explain doctor";
/* Those whose flags may come after what else they take. */
static const char mixing_verbs[] = "tools call";

static const struct {
	enum vt_own_flag id;
	const char *verbs; /* who takes it */
	struct vt_flag flag;
} own_flags[] = {
	{ VT_OWN_SELF_TEST,
	  "doctor",
	  { "--self-test", NULL, NULL,
	    "Try forbidden acts in a real cell of the policy, and compare with its claims.", false,
	    -1 } },
	{ VT_OWN_POLICY,
	  policy_verbs,
	  { "--policy", "-p", "POLICY",
	    "A policy file, or a built-in one: default, strict, compute.", false, -1 } },
	{ VT_OWN_SET,
	  policy_verbs,
	  { "--set", NULL, "KEY=VALUE", "Set any key of the policy.", false, -1 } },
	{ VT_OWN_QUERY,
	  "tools",
	  { "--query", NULL, "TEXT",
	    "List only tools with each of these words in their name or description.", false, -1 } },
	{ VT_OWN_TIMEOUT,
	  "call",
	  { "--timeout", NULL, "TIME", "A deadline shorter than that of the tool's policy.", false,
	    -1 } },
	{ VT_OWN_LANG,
	  "eval",
	  { "--lang", NULL, "NAME", "The language: python (the default) or node.", false, -1 } },
	{ VT_OWN_JSON,
	  "run eval call",
	  { "--json", NULL, "FILE",
	    "Write the result to FILE, or to standard output instead of the command's output.",
	    true, -1 } },
	{ VT_OWN_REPORT,
	  "doctor",
	  { "--json", NULL, NULL, "Print the report as JSON.", false, -1 } },
	{ VT_OWN_REPORT,
	  "explain",
	  { "--json", NULL, NULL, "Print the plan as JSON.", false, -1 } },
	{ VT_OWN_REPORT, "tools", { "--json", NULL, NULL, "Print the tools as JSON.", false, -1 } },
	{ VT_OWN_SOCKET,
	  "serve",
	  { "--socket", NULL, "PATH",
	    "Listen at PATH; by default at $XDG_RUNTIME_DIR/vitro/socket, as root at "
	    "/run/vitro/socket.",
	    false, -1 } },
	{ VT_OWN_SOCKET,
	  "tools call",
	  { "--socket", NULL, "PATH", "Use the tools of the server that listens at PATH.", false,
	    -1 } },
	{ VT_OWN_FD,
	  "serve",
	  { "--fd", NULL, "NUMBER",
	    "Serve on an inherited descriptor instead: a listening socket, or a client's.", false,
	    -1 } },
	{ VT_OWN_CLIENTS,
	  "serve",
	  { "--clients", NULL, "NUMBER", "How many clients are let in at once (default 512).",
	    false, -1 } },
	{ VT_OWN_CELLS,
	  "serve",
	  { "--cells", NULL, "NUMBER",
	    "How many calls of all clients run at once (default 256); one client gets at most "
	    "three quarters.",
	    false, -1 } },
	{ VT_OWN_DRAIN,
	  "serve",
	  { "--drain", NULL, "TIME",
	    "How long to wait for running calls after SIGTERM (default 30s).", false, -1 } },
	{ VT_OWN_TOOLS,
	  "serve",
	  { "--tools", NULL, "FILE",
	    "Offer the tools of a manifest, and read it again when it changes.", false, -1 } },
	{ VT_OWN_METRICS,
	  "serve",
	  { "--metrics", NULL, "WHERE",
	    "Offer metrics for Prometheus, at a Unix socket or at 127.0.0.1:PORT.", false, -1 } },
	{ VT_OWN_AUDIT,
	  "run eval serve",
	  { "--audit", NULL, "FILE",
	    "Append one JSON line for each call to FILE, chained to the line before.", false,
	    -1 } },
	{ VT_OWN_EXPECT,
	  "audit",
	  { "--expect", NULL, "HASH", "Fail unless a line of the log has this hash.", false, -1 } },
	{ VT_OWN_RAW,
	  "run eval call",
	  { "--raw", NULL, NULL, "Let escape sequences from the command reach the terminal.", false,
	    -1 } },
	{ VT_OWN_HELP,
	  "run eval explain doctor audit tools call serve",
	  { "--help", "-h", NULL, "Show help and exit.", false, -1 } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether a verb is among the words of a list. */
static bool is_one_of(const char *verb, const char *verbs)
{
	size_t len = strlen(verb);

	for (const char *at = verbs; (at = strstr(at, verb)); at += len)
		if ((at == verbs || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

bool vt_flag_at(const char *verb, size_t index, struct vt_flag *ret_flag)
{
	for (size_t i = 0; i < COUNT(own_flags); i++) {
		if (!is_one_of(verb, own_flags[i].verbs) || index-- > 0)
			continue;
		*ret_flag = own_flags[i].flag;
		ret_flag->own = own_flags[i].id;
		return true;
	}
	if (!is_one_of(verb, policy_verbs) || index >= VT_FIELD_COUNT)
		return false;
	const struct vt_field_info *info = vt_field_info((enum vt_field)index);

	*ret_flag = (struct vt_flag){ .name = info->flag,
				      .argument = info->argument,
				      .sentence = info->sentence,
				      .field = (int)index };
	return true;
}

bool vt_flag_may_follow(const char *verb)
{
	return is_one_of(verb, mixing_verbs);
}
