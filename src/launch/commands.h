/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote of commands: vitro's own program, whose occupants wait for the words of a command, and
 * execute it in the cell in which they have sealed themselves. Nothing of anybody's runs before
 * that, and nothing of vitro's after it: exec closes the call's socket, so that whatever is heard
 * on it is vitro's own word.
 */
#pragma once

/* The whole life of the program "vitro-commands". Its control socket is descriptor 3. */
_Noreturn void vt_commands_run(void);
