/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreters whose functions a pool holds ready. For each, vitro has files of its own, in a
 * folder of that name beside it, which the interpreter that the caller chose loads. Not every vitro
 * is built with them.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

enum vt_language { VT_PYTHON, VT_NODE, VT_LANGUAGES };

enum { VT_INTERPRETER_FLAGS = 6, VT_INTERPRETER_WHY = 160 };

struct vt_interpreter {
	const char *name;    /* of the language, in policies, on the wire, and of the folder */
	const char *title;   /* for a person */
	const char *pools;   /* the same, of what there is with it */
	const char *program; /* where none is named */
	const char *file;    /* that it is started with */
	const char *beside;  /* another that must be there */
	const char *package; /* of Debian, that vitro is built with */
	const char *advice;  /* where one does not begin */
	bool        preloads; /* the file is a library, which is there before the interpreter
				 begins */
	bool        learns;   /* it imports modules by name while it lives */
	const char *flags[VT_INTERPRETER_FLAGS]; /* before the file */
};

extern const struct vt_interpreter vt_interpreters[VT_LANGUAGES];

/*
 * Where its file is, free of links. -ENOENT: it is not there, or what must be beside it is not;
 * -EPERM: others may write to it, or to some of what is beside it.
 */
int vt_interpreter_find(const struct vt_interpreter *interpreter, char path[PATH_MAX],
			struct vt_err *err);

/*
 * Whether cells can be forks of a program: why_not is empty then, and else says why they have to
 * start it anew. path is what vt_interpreter_find() found. One that preloads nothing can always be
 * forked; others are executed, as the caller, to ask them. A failure: it does not tell within some
 * seconds.
 */
int vt_interpreter_forks(const struct vt_interpreter *interpreter, const char *program,
			 const char *path, char why_not[VT_INTERPRETER_WHY], struct vt_err *err);

/*
 * Calls each with all that decides what zygotes of interpreters load of vitro's: as
 * vt_helper_follow() does for the folders, and with every link in them. Fails where a folder cannot
 * be looked into.
 */
int vt_interpreter_follow(int (*each)(void *arg, const char *path, struct vt_err *err), void *arg,
			  struct vt_err *err);

/*
 * Whether everyone can go where the program lies, and where links on the way to it lead: -EPERM, of
 * VT_STEP_PLAN, if not. For cells in the host's own folders.
 */
int vt_interpreter_check_open(const char *path, struct vt_err *err);
