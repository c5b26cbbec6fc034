/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/closest.h"
#include "base/str.h"
#include "cli/cli.h"
#include "launch/commands.h"
#include "launch/spawner.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *sentence, *word;
} verbs[] = {
#define VERB(...) { __VA_ARGS__ },
#include "cli/verbs.def"
#undef VERB
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int show_help(int fd)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_add(&text, "vitro " VITRO_VERSION
			  ": runs every tool call in its own sealed, single-use process\n\n");
	for (size_t i = 0; i < COUNT(verbs); i++)
		vt_str_addf(&text, "  vitro %-9s %s\n", verbs[i].name, verbs[i].sentence);
	vt_str_add(&text,
		   "\nTry:   vitro run -- echo hello\n"
		   "Then:  vitro run --read . --cwd . -- CMD ARG..., to let it read this folder\n"
		   "       vitro explain, to see what is enforced\n"
		   "Each verb has a --help, and a page: man vitro-run\n");
	int r = vt_cli_write(fd, text.text, text.len);

	vt_str_done(&text);
	return r < 0 ? VT_EXIT_OWN : 0;
}

/* A plan of many grants needs a descriptor for each; a cell's own limit is set by its policy. */
static void raise_open_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* if not, a large plan says EMFILE */
}

/* 0, 1 and 2 are open from here on, or the first file we open would pass for one of them. */
static int hold_stdio(struct vt_err *err)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY); /* what is written to it fails, as it should */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return vt_fail(err, VT_STEP_DESCRIPTORS, errno, "open '/dev/null'");
	(void)close(fd); /* ours, and nothing was written to it */
	return 0;
}

static int show_version(void)
{
	static const char version[] = "vitro " VITRO_VERSION "\n";

	return vt_cli_write(STDOUT_FILENO, version, strlen(version)) < 0 ? VT_EXIT_OWN : 0;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/* The flag that vitro takes without a verb and that was meant; NULL: none. */
static const char *closest_flag(const char *name)
{
	struct vt_closest closest;

	vt_closest_init(&closest, name + strspn(name, "-"));
	vt_closest_try(&closest, "version", "--version");
	vt_closest_try(&closest, "help", "--help");
	return closest.best;
}

static int complain_of_verb(const char *name)
{
	const char *flag = *name == '-' ? closest_flag(name) : NULL;
	struct vt_closest closest;
	char message[256]; /* a long name is cut */

	vt_closest_init(&closest, name);
	for (size_t i = 0; i < COUNT(verbs); i++)
		vt_closest_try(&closest, verbs[i].name, verbs[i].name);
	if (flag)
		(void)snprintf(message, sizeof(message), "there is no '%.100s'; did you mean %s?",
			       name, flag);
	else if (*name == '-')
		(void)snprintf(message, sizeof(message),
			       "a verb comes before the flags: vitro run %.100s ...", name);
	else if (closest.best)
		(void)snprintf(message, sizeof(message),
			       "there is no verb '%.100s'; did you mean %s?", name, closest.best);
	else
		(void)snprintf(message, sizeof(message),
			       "there is no verb '%.80s'; to run a command: vitro run -- %.80s",
			       name, name);
	vt_cli_complain(message);
	return VT_EXIT_OWN;
}

static bool is_help(const char *name)
{
	return strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
}

/*
 * What is large (base/bulk.c) goes back to the kernel when it is freed. Left alone, malloc() learns
 * to keep it in its heap, and there its huge pages would stay for whatever is small. What a result
 * of middling size takes stays for the next one: serve/commons.c trims the heap of who rests.
 */
static void return_large_memory(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, 4 << 20); /* else it is kept, which costs memory alone */
	(void)mallopt(M_TRIM_THRESHOLD, 8 << 20); /* else it is had anew, which costs time alone */
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char help[] = "--help";
	struct vt_err err;

	if (argc > 0 && strcmp(argv[0], "vitro-spawner") == 0)
		vt_spawner_run();
	if (argc > 0 && strcmp(argv[0], "vitro-commands") == 0)
		vt_commands_run();
	return_large_memory();
	if (hold_stdio(&err) < 0) {
		vt_cli_complain_err(&err);
		return VT_EXIT_OWN;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
	    strcmp(name, "version") == 0)
		return show_version();
	if (is_help(name) && (argc < 3 || is_help(argv[2])))
		return show_help(STDOUT_FILENO);
	if (!*name) {
		(void)show_help(STDERR_FILENO); /* there is nobody else to tell */
		return VT_EXIT_OWN;
	}
	if (strcmp(name, "supervise") == 0) {
		raise_open_files();
		return vt_cli_supervise(argc - 1, argv + 1);
	}
	if (strcmp(name, "discard") == 0)
		return vt_cli_discard(argc - 1, argv + 1);
	const struct verb *verb = find_verb(is_help(name) ? argv[2] : name);

	if (!verb)
		return complain_of_verb(is_help(name) ? argv[2] : name);
	if (is_help(name))
		return verb->run(2, (char *[]){ argv[2], help, NULL });
	raise_open_files();
	return verb->run(argc - 1, argv + 1);
}
