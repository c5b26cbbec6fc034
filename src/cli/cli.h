/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the command line. Each takes its own arguments (argv[0] is the verb) and returns an
 * exit code. This layer is the only one that prints or exits. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "host/host.h"

/* What vitro exits with for an error of its own or a refusal. */
enum { VT_EXIT_OWN = 125 };

int vt_cli_run(int argc, char **argv);
int vt_cli_explain(int argc, char **argv);
int vt_cli_doctor(int argc, char **argv);
int vt_cli_audit(int argc, char **argv);
int vt_cli_tools(int argc, char **argv);
int vt_cli_call(int argc, char **argv);
int vt_cli_serve(int argc, char **argv);

/* Not among the verbs that people see: clients start them. */
int vt_cli_supervise(int argc, char **argv);
int vt_cli_discard(int argc, char **argv);

/*
 * "vitro: " and the message on standard error, in one line whatever it holds: all of vitro's own
 * words go there through this. What quotes others is shown by vt_str_show().
 */
void vt_cli_complain(const char *message);
/* The same for each line of a text. */
void vt_cli_complain_lines(const char *text);
/* And for an error: its text, and what errno says where the text is not a sentence yet. */
void vt_cli_complain_err(const struct vt_err *err);

/* Tells each line of a text, without its newline. */
void vt_cli_each_line(const char *text, void (*tell)(void *user, const char *line), void *user);

/* Writes all of it, waiting where it must. 0 or a negative errno. */
int vt_cli_write(int fd, const char *bytes, size_t len);

/*
 * The same of what others may have written: a terminal gets it in its safe form, unless it is to be
 * raw.
 */
int vt_cli_write_safe(int fd, const char *bytes, size_t len, bool raw);

/* Who calls, in words: "root", "an ordinary user". */
const char *vt_cli_caller(const struct vt_host *host);

/*
 * Writes a report to standard output, each of its lines shown by vt_str_show(). What it quotes must
 * not hold a newline: that is for whoever makes the lines to show (vt_str_wrap() does).
 */
int vt_cli_report(const struct vt_str *text, struct vt_err *err);
