/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what is printed of a result: a plan that is stated in full, and the JSON read back.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "watch/result.h"

#define HOLDING(m, g, n)                                                                \
	{                                                                               \
		.name = "", .key = "", .mechanism = m, .grade = VT_GRADE_##g, .note = n \
	}

static inline struct vt_plan full_plan(void)
{
	return (struct vt_plan){
		.level = "full",
		.exec_path = "/bin/true",
		.holdings = {
			[VT_PROPERTY_PROCESSES] = HOLDING("pidns", KERNEL, ""),
			[VT_PROPERTY_FILES] = HOLDING("mountns+landlock", KERNEL, ""),
			[VT_PROPERTY_NETWORK] = HOLDING("netns", KERNEL, ""),
			[VT_PROPERTY_SYSCALLS] = HOLDING("seccomp", KERNEL, ""),
			[VT_PROPERTY_MEMORY] = HOLDING("cgroup-v1", KERNEL, ""),
			[VT_PROPERTY_PIDS] = HOLDING("cgroup-v1", KERNEL, ""),
			[VT_PROPERTY_CPU_TIME] = HOLDING(NULL, NONE, ""),
			[VT_PROPERTY_CPUS] = HOLDING(NULL, NONE, ""),
			[VT_PROPERTY_TMP] = HOLDING("tmpfs", KERNEL, ""),
		},
	};
}

static inline json_t *parse(const struct vt_str *text)
{
	json_error_t error;
	json_t *root = json_loads(text->text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		print_error("%s in %s\n", error.text, text->text);
	assert_non_null(root);
	return root;
}
