/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules that a zygote may load ahead of calls, as they are on the host: who comes later, when one
 * of them was changed, is not to have cells with the version of before. Runs where paths of clients
 * are asked: in a server's scout.
 *
 * What counts is each file with the ending of a module, below the folders that the setup names,
 * which file it is and when it was changed; of an interpreter's own packages and of node_modules,
 * the folder that installing changes. Not what modules read of other files while they are loaded.
 */
#pragma once

#include "base/str.h"
#include "host/interpreter.h"
#include "policy/policy.h"

/*
 * Adds them to a key. Where there are too many to be looked at, what is added is like no other, so
 * that nobody shares these cells. program: the interpreter's.
 */
void vt_modules_add(struct vt_str *key, const struct vt_interpreter *interpreter, const char *setup,
		    const char *program, const struct vt_policy *policy);
