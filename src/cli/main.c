/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *sentence;
} verbs[] = {
	{ "run", vt_cli_run, "run a command in a sealed cell" },
	{ "explain", vt_cli_explain, "print the plan for a policy on this machine" },
	{ "doctor", vt_cli_doctor,
	  "say what this machine can enforce, and what to do about the rest" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int show_help(void)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_add(&text, "vitro " VITRO_VERSION
			  ": runs every tool call in its own sealed, single-use process\n\n");
	for (size_t i = 0; i < COUNT(verbs); i++)
		vt_str_addf(&text, "  vitro %-9s %s\n", verbs[i].name, verbs[i].sentence);
	vt_str_add(&text, "\nTry: vitro run -- echo hello\nEach verb has a --help.\n");
	int r = vt_cli_write(STDOUT_FILENO, text.text, text.len);

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
static int hold_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY); /* what is written to it fails, as it should */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	return close(fd);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char message[256];

	if (hold_stdio() < 0)
		return VT_EXIT_OWN;
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return show_help();
	if (strcmp(name, "--version") == 0)
		return vt_cli_write(STDOUT_FILENO, "vitro " VITRO_VERSION "\n",
				    strlen("vitro " VITRO_VERSION "\n")) < 0
			       ? VT_EXIT_OWN
			       : 0;
	raise_open_files();
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	if (*name)
		(void)snprintf(message, sizeof(message), "there is no verb '%s'; see vitro --help",
			       name);
	else
		(void)snprintf(message, sizeof(message), "no verb given; see vitro --help");
	vt_cli_complain(message);
	return VT_EXIT_OWN;
}
