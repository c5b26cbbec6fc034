/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of a server's own, which its clients call by name: commands, and functions of Python and
 * Node, under policies that whoever started the server has given. What arguments a tool takes, and
 * what command they make, is for him to say who offers them; here are the cells that they run in.
 * They are had in the server's own environment and working directory. Runs in the server.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "serve/cells.h"

/* One tool. */
struct vt_offered {
	const char *name;
	/* of its command, as it is looked for; of a function, the interpreter */
	const char *program;
	const char *function; /* as its zygote knows it; NULL: it is a command */
	const char *setup;    /* of a function */
	enum vt_language language; /* of a function */
	const char *sources; /* of its policy, as JSON */
	const char *program_at, *policy_at; /* where these were said, for messages */
};

/* Who offers them. What is pointed to is his, until release(). */
struct vt_offer_source {
	void                    *user;
	const struct vt_offered *tools;
	size_t                   count;
	const char              *list; /* all of them, as clients are told: a JSON array */
	/* the files that say what these may do: absolute; ends with NULL */
	const char *const       *kept;
	/*
	 * What a call of one executes: words, each with its NUL, and what it reads. Of a function:
	 * no words, and its arguments.
	 */
	int  (*expand)(void *user, size_t index, const char *arguments, size_t len,
		       struct vt_str *words, struct vt_str *input, struct vt_err *err);
	void (*release)(void *user);
};

struct vt_offer;

/*
 * All of them, or none. The source is taken over, also where it fails. Cells of before that could
 * change what it keeps are ended.
 */
int  vt_offer_new(struct vt_cells_maker *maker, const struct vt_offer_source *source,
		  struct vt_offer **ret_offer, struct vt_err *err);
/* Calls that run have their cells. NULL is fine. */
void vt_offer_free(struct vt_offer *offer);

/* As clients are told it. */
const char *vt_offer_list(const struct vt_offer *offer);
/*
 * The tool of that name, with its cells and the path of its program, NULL of a function. False:
 * there is none.
 */
bool vt_offer_find(const struct vt_offer *offer, const char *name, size_t *ret_index,
		   struct vt_cells **ret_cells, const char **ret_path);
/* The name of the tool that was meant by one that there is none of; NULL: none is near. */
const char *vt_offer_closest(const struct vt_offer *offer, const char *name);
/* What its zygote knows it by; NULL: it is a command. */
const char *vt_offer_function(const struct vt_offer *offer, size_t index);
/* The source's expand(). */
int  vt_offer_expand(const struct vt_offer *offer, size_t index, const char *arguments, size_t len,
		     struct vt_str *words, struct vt_str *input, struct vt_err *err);
