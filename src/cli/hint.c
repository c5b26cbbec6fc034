/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hint.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "watch/stream.h"

enum {
	MOST_WORDS = 10000, /* of code are looked at */
	MOST_MS = 50,       /* that all looks take together, and the last of them */
};

/*
 * How names are looked up. A cell may have left links that take 50 ms to follow, and names each of
 * them a thousand times: so there is an end to all looks, and none follows a link by words of its.
 */
struct look {
	const char *cwd; /* "" for the root */
	bool free;       /* the name is the caller's own: links are followed, out of cwd as well; of
			    others nothing is looked up in the root, which has all that exists */
	int64_t until;
};

/* Opens a name in the current folder, as a path alone, through no link. -1 with errno set. */
static int open_bound(const char *name)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
}

bool vt_hint_is_file(const char *code)
{
	AUTO_CLOSE int fd = strstr(code, "..") ? -1 : open_bound(code);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* What a name leads to. 0 or a negative errno, -ETIME for one that was not looked up. */
static int look_up(const struct look *look, const char *name, char ret_real[PATH_MAX])
{
	char link[32];

	if (vt_clock_now() > look->until)
		return -ETIME;
	if (look->free)
		return realpath(name, ret_real) ? 0 : -errno;
	if (!*look->cwd)
		return -ENOENT;
	AUTO_CLOSE int fd = open_bound(name);

	if (fd < 0)
		return -errno;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, ret_real, PATH_MAX);

	if (len < 0 || len == PATH_MAX)
		return len < 0 ? -errno : -ENAMETOOLONG;
	ret_real[len] = '\0';
	return 0;
}

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

void vt_hint_add_path(struct vt_str *out, const char *path, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+.,/@%:=";

	if (strspn(path, plain) >= len) {
		vt_str_addf(out, "%.*s", (int)len, path);
		return;
	}
	vt_str_add(out, "'");
	for (const char *end = path + len; path < end; path++)
		vt_str_addf(out, *path == '\'' ? "'\\''" : "%c", *path);
	vt_str_add(out, "'");
}

/* "." and the like: a dot in a text does not mean it. */
static bool is_dots(const char *path)
{
	return !path[strspn(path, "./")];
}

/* Whether the last name of a path, which is not empty, is in the text, and not as a part of another
 * word. */
static bool names(const char *said, size_t len, const char *arg)
{
	if (is_dots(arg))
		return false;
	const char *slash = strrchr(arg, '/');
	const char *name = slash && slash[1] ? slash + 1 : arg;
	const char *end = said + len, *at = said;
	size_t size = strlen(name);

	while ((at = memmem(at, (size_t)(end - at), name, size))) {
		const char *after = at + size;

		if ((at == said || !is_word(at[-1])) && (after == end || !is_word(*after)))
			return true;
		do
			at++;
		while (at < end && is_word(at[-1]));
	}
	return false;
}

/* A name as it stands in a folder. Cut: then it is not there. */
static void join(char out[PATH_MAX], const char *folder, const char *name)
{
	if (*name == '/')
		folder = "";
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	(void)snprintf(out, PATH_MAX, "%s%s%s", folder, *name == '/' ? "" : "/", name);
}

/* Where a grant shows it at another place: there, and how to begin there if that helps. */
static void hint_moved(const char *arg, const char *place, struct vt_str *out)
{
	size_t len = strlen(place), size = strlen(arg);

	vt_str_addf(out, "'%s' is at %s inside", arg, place);
	if (*arg != '/' && len > size + 1 && place[len - size - 1] == '/' &&
	    strcmp(place + len - size, arg) == 0) {
		vt_str_add(out, "; add: --cwd ");
		vt_hint_add_path(out, place, len - size - 1);
	}
}

/* What else lets a relative name be found inside: its begin, the current folder, where it is
 * missing. */
static const char *begin_here(const struct vt_plan *plan, const char *cwd)
{
	if (*cwd && !vt_plan_shows(plan, cwd))
		return " --read . --cwd .";
	return strcmp(plan->cwd, *cwd ? cwd : "/") == 0 ? "" : " --cwd .";
}

/* Whether a grant can be written as the argument is: one that climbs, and does no more of it after
 * a name. Where a link leads is granted itself, since the link comes with its folder. */
static bool climbs_first(const char *arg)
{
	const char *names = arg;

	while (strncmp(names, "../", 3) == 0)
		names += 3;
	return names != arg && !strstr(names, "..");
}

/* What shows an argument that is not there inside: where it leads out of the current folder, by ..
 * or by a link, that folder is not enough. */
static void hint_grant(const char *arg, const char *begin, bool leaves, const char *real,
		       struct vt_str *out)
{
	const char *granted = *arg == '/' || climbs_first(arg) ? arg : real;

	vt_str_addf(out, "'%s' exists here but not inside the cell; add: --read ", arg);
	if (*arg != '/' && !leaves) {
		vt_str_add(out, ". --cwd .");
		return;
	}
	vt_hint_add_path(out, granted, strlen(granted));
	if (leaves)
		vt_str_add(out, begin);
}

/* About one argument that exists here, as real, and is named there. Whether there is a hint. */
static bool hint_about(const struct vt_plan *plan, const char *arg, const char *cwd,
		       const char *real, struct vt_str *out)
{
	bool leaves = *arg != '/' && !vt_path_lies_in(real, cwd);
	const char *begin = begin_here(plan, cwd);
	char named[PATH_MAX], place[PATH_MAX];

	join(named, leaves ? "" : cwd, leaves ? real : arg);
	if (vt_plan_own_place(real) || vt_plan_own_place(named))
		return false; /* it cannot be granted */
	if (!vt_plan_shows(plan, real) && !vt_plan_shows(plan, named)) {
		if (vt_plan_denies(plan, real))
			vt_str_addf(out, "'%s' is denied by the policy", arg);
		else if (vt_plan_finds(plan, real, place))
			hint_moved(arg, place, out);
		else
			hint_grant(arg, begin, leaves, real, out);
		return true;
	}
	if (*arg == '/' || !*begin)
		return false;
	vt_str_addf(out, "'%s' is at %s inside; add:%s", arg,
		    vt_plan_shows(plan, named) ? named : real, begin);
	return true;
}

static bool says(const char *said, size_t len, const char *text)
{
	return memmem(said, len, text, strlen(text)) != NULL;
}

static bool says_any(const char *said, size_t len, const char *const *texts)
{
	while (*texts && !says(said, len, *texts))
		texts++;
	return *texts;
}

/* What programs say of files that are not there, or closed. */
static bool says_missing(const char *said, size_t len)
{
	static const char *const missing[] = { "o such file", "ermission denied",     "ENOENT",
					       "EACCES",      "irectory nonexistent", NULL };

	return says_any(said, len, missing);
}

/* What programs say of names that do not resolve, and of sockets that there are none of. */
static void hint_network(const struct vt_plan *plan, enum vt_network network, const char *said,
			 size_t len, struct vt_str *out)
{
	static const char *const unnamed[] = {
		"Could not resolve",         "could not resolve", "name resolution",
		"Name or service not known", "unable to resolve", "EAI_AGAIN",
		"etwork is unreachable",     "ENETUNREACH",       NULL
	};
	static const char *const unmade[] = { "Address family not supported", "EAFNOSUPPORT",
					      NULL };

	if (network == VT_NETWORK_HOST)
		return;
	if (network == VT_NETWORK_LOOPBACK && says_any(said, len, unnamed))
		vt_str_add(out, "the cell has a loopback of its own and no other network; --net "
				"host gives it the host's");
	else if (network == VT_NETWORK_NONE && !says(said, len, "etlink") &&
		 (says_any(said, len, unnamed) || says_any(said, len, unmade)))
		vt_str_addf(out, "the cell has no network; %s",
			    plan->bare ? "--net host gives it the host's"
				       : "--net loopback gives it an empty one of its own, "
					 "--net host the host's");
}

/* About an argument that is closed where the cell begins, whether or not there is something. */
static bool hint_denied(const struct vt_plan *plan, const char *arg, struct vt_str *out)
{
	char place[PATH_MAX];

	join(place, plan->cwd, arg);
	if (*arg == '/' || !vt_plan_denies(plan, place))
		return false;
	vt_str_addf(out, "'%s' is denied by the policy", arg);
	return true;
}

/*
 * About one argument that does not exist here, while its folder does and is not there inside: a
 * file that was to be made. Whether there is a hint.
 */
static bool hint_made(const struct vt_plan *plan, const char *arg, const struct look *look,
		      struct vt_str *out)
{
	const char *slash = strrchr(arg, '/');
	char folder[PATH_MAX], real[PATH_MAX], place[PATH_MAX];

	if (!slash || slash == arg || !slash[1] || look_up(look, arg, real) != -ENOENT)
		return false;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - arg),
		       arg); /* cut: not there */
	if (look_up(look, folder, real) < 0 || access(real, W_OK) < 0 || vt_plan_own_place(real) ||
	    vt_plan_shows(plan, real) || vt_plan_finds(plan, real, place))
		return false;
	if (vt_plan_denies(plan, real))
		vt_str_addf(out, "'%s' is denied by the policy", folder);
	else {
		vt_str_addf(
			out,
			"'%s' exists here but not inside the cell; to write to it, add: --write ",
			folder);
		vt_hint_add_path(out, folder, strlen(folder));
		vt_str_add(out, *arg == '/' ? "" : begin_here(plan, look->cwd));
	}
	return true;
}

static void hint_writing(const struct vt_plan *plan, const char *said, size_t len,
			 struct vt_str *out)
{
	if (says(said, len, "Read-only file system") || says(said, len, "EROFS"))
		vt_str_addf(out, "inside, only /tmp and what --write grants can be written%s",
			    plan->guard_count ? ", and there not what files.protect keeps, which "
						"`vitro explain` lists"
					      : "");
}

/*
 * About a name that is kept as it is, if what was said names it: the one that is named with most of
 * its path. Whether there is a hint.
 */
static bool hint_guarded(const struct vt_plan *plan, const char *said, size_t len,
			 struct vt_str *out)
{
	static const char *const kept[] = { "Read-only file system",
					    "EROFS",
					    "evice or resource busy",
					    "EBUSY",
					    "ross-device link",
					    "EXDEV",
					    NULL };
	const struct vt_guard *best = NULL;

	if (!plan->guard_count || !says_any(said, len, kept))
		return false;
	for (size_t i = 0; i < plan->build_count; i++)
		for (size_t j = 0; j < plan->builds[i].guard_count; j++) {
			const struct vt_guard *guard = &plan->builds[i].guards[j];

			if ((guard->ino || guard->closed) && says(said, len, guard->path) &&
			    (!best || strlen(guard->path) > strlen(best->path)))
				best = guard;
		}
	if (!best)
		return false;
	vt_hint_add_path(out, best->path, strlen(best->path));
	vt_str_add(out,
		   best->kind == VT_GUARD_NAME
			   ? " stays as it is (files.protect), since programs of the host run or "
			     "trust it; --protect none lets the cell change it"
			   : " stays where it is (files.protect), since what programs of the host "
			     "run or trust lies in it; --protect none lets the cell move it");
	return true;
}

/* On the host's network a grant takes the unix sockets away, and the kernel's words do not tell. */
static void hint_sockets(const struct vt_plan *plan, const char *said, size_t len,
			 struct vt_str *out)
{
	bool none = !plan->bare && !plan->own_network && !plan->unix_sockets && !plan->broker.on;

	if (none && !says(said, len, "etlink") &&
	    (says(said, len, "Address family not supported") || says(said, len, "EAFNOSUPPORT")))
		vt_str_add(out, "with --net host and a grant, or a command with a prefix of its "
				"own, there are no unix sockets inside but those that --socket "
				"names");
}

/* The words of errors that a limit makes, and which it is: the kernel counts none of them. */
static void hint_limits(const struct vt_plan *plan, const char *said, size_t len,
			struct vt_str *out)
{
	bool starts = says(said, len, "fork") || says(said, len, "thread");

	if (says(said, len, "No space left on device") && !plan->bare)
		vt_str_addf(out,
			    "/tmp and /dev/shm inside hold %lld MB together; for more: --set "
			    "limits.tmp_mb=SIZE",
			    (long long)(plan->scratch_bytes >> 20));
	else if (says(said, len, "File too large") && !plan->lower_file_kb)
		vt_str_addf(out,
			    "a file inside can grow to %lld MB; for more: --set "
			    "limits.file_mb=SIZE",
			    (long long)plan->file_mb);
	else if ((starts && says(said, len, "Resource temporarily unavailable")) ||
		 says(said, len, "Cannot fork") || says(said, len, "can't start new thread"))
		vt_str_addf(out,
			    "there can be %lld processes and threads inside; for more: "
			    "--pids N",
			    (long long)plan->pids);
}

/* The next word of a text, as a name in the current folder. Whether there is one. */
static bool next_word(const char **text, char word[PATH_MAX])
{
	static const char between[] = " \t\n'\"`()[]{}<>|;&,=$:";

	*text += strspn(*text, between);
	size_t size = strcspn(*text, between);
	/* As GNU's programs quote. */
	bool quoted = size > 6 && memcmp(*text, "\u2018", 3) == 0 &&
		      memcmp(*text + size - 3, "\u2019", 3) == 0;

	(void)snprintf(word, PATH_MAX, "%.*s", (int)(quoted ? size - 6 : size),
		       *text + (quoted ? 3 : 0)); /* cut: not there */
	*text += size;
	if (*word == '-' || *word == '/' || strstr(word, "..") || is_dots(word))
		*word = '\0';
	return size > 0;
}

/* About a word that may be a file, or one that was to be made. Whether there is a hint. */
static bool hint_word(const struct vt_plan *plan, const char *word, const struct look *look,
		      struct vt_str *out)
{
	char real[PATH_MAX];

	return look_up(look, word, real) == 0 ? hint_about(plan, word, look->cwd, real, out)
					      : hint_made(plan, word, look, out);
}

/*
 * About a word of a script or of code, as in sh -c 'cat note.txt'. Whether there is a hint. Only of
 * names in the current folder: code that nobody read could ask for any other, and be told by who
 * shows it the hint whether that exists. Words that are not in what was said cost next to nothing.
 */
static bool hint_words(const struct vt_plan *plan, const char *arg, const struct look *look,
		       const char *said, size_t len, struct vt_str *out)
{
	char word[PATH_MAX];

	for (int i = 0; i < MOST_WORDS && next_word(&arg, word); i++)
		if (*word && names(said, len, word) && hint_word(plan, word, look, out))
			return true;
	return false;
}

/*
 * About what only the command itself names, as a script does. The name is not in the hint, and no
 * grant for it: who follows hints would grant whatever code asks for.
 */
static void hint_unnamed(const struct vt_plan *plan, const struct look *look, const char *said,
			 size_t len, struct vt_str *out)
{
	char text[VT_STREAM_TAIL + 1], word[PATH_MAX];
	const char *at = text;
	struct vt_str named;
	bool found = false;

	(void)snprintf(text, sizeof(text), "%.*s", (int)len, said);
	vt_str_init(&named);
	while (!found && next_word(&at, word)) {
		word[strcspn(word, "*?")] = '\0';
		found = *word && hint_word(plan, word, look, &named);
	}
	vt_str_done(&named);
	if (found)
		vt_str_add(out, "it names what exists here but is not there inside; --read and "
				"--write grant files and folders, and --cwd . begins here");
}

/*
 * How an argument is looked up. One behind a flag as in `sh -c` is code, which may be nothing but a
 * path; or a file, as in `cc -c`, which is found all the same where it usually lies.
 */
static struct look look_for(const struct look *look, const char *flag)
{
	struct look its = *look;
	size_t len = strlen(flag);
	bool letters = len > 1 && flag[0] == '-' && flag[1] != '-';

	if ((letters && strchr("cep", flag[len - 1])) || strcmp(flag, "--eval") == 0 ||
	    strcmp(flag, "--print") == 0)
		its.free = false;
	return its;
}

/* About what the command did not find: what its arguments name, what words in them do, what it
 * said itself. */
static void hint_missing(const struct vt_plan *plan, const struct look *look, char *const *argv,
			 const char *said, size_t len, struct vt_str *out)
{
	const struct look bound = { .cwd = look->cwd, .until = look->until };

	for (char *const *arg = argv + 1; *arg; arg++) {
		const struct look its = look_for(look, arg[-1]);

		if ((**arg && **arg != '-' && names(said, len, *arg) &&
		     (hint_denied(plan, *arg, out) || hint_made(plan, *arg, &its, out))) ||
		    hint_words(plan, *arg, &bound, said, len, out))
			return;
	}
	hint_unnamed(plan, &bound, said, len, out);
}

void vt_hint_make(const struct vt_plan *plan, enum vt_network network, char *const *argv,
		  bool is_code, const char *said, size_t len, struct vt_str *out)
{
	char cwd[PATH_MAX], real[PATH_MAX];
	const struct look look = {
		.cwd = cwd,
		.free = !is_code,
		.until = vt_clock_now() + MOST_MS * VT_NS_PER_MS,
	};

	if (!argv[0] || !getcwd(cwd, sizeof(cwd)))
		return;
	if (strcmp(cwd, "/") == 0)
		cwd[0] = '\0';
	if (hint_guarded(plan, said, len, out))
		return;
	for (char *const *arg = argv + 1; *arg; arg++) {
		const struct look its = look_for(&look, arg[-1]);

		if (**arg && **arg != '-' && names(said, len, *arg) &&
		    look_up(&its, *arg, real) == 0 && hint_about(plan, *arg, cwd, real, out))
			return;
	}
	if (says_missing(said, len))
		hint_missing(plan, &look, argv, said, len, out);
	if (out->len)
		return;
	hint_network(plan, network, said, len, out);
	if (!out->len)
		hint_sockets(plan, said, len, out);
	if (!out->len && !plan->bare)
		hint_writing(plan, said, len, out);
	if (!out->len)
		hint_limits(plan, said, len, out);
}
