/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: an interpreter of filters, which can ask one about any call with any arguments. */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#ifdef __x86_64__
#define NATIVE_ARCH  AUDIT_ARCH_X86_64
#define FOREIGN_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH  AUDIT_ARCH_AARCH64
#define FOREIGN_ARCH AUDIT_ARCH_X86_64
#endif

/* What a filter answers: 0 passes, an errno refuses, KILLED ends the process, ASKED asks. */
enum { KILLED = -1, ASKED = -2, PASS = 0 };

/* Beyond the last number that any kernel knows, and what the filters were made for. */
enum { NUMBERS = 1100 };

static inline bool bpf_jumps(const struct sock_filter *ins, uint32_t a)
{
	switch (BPF_OP(ins->code)) {
	case BPF_JEQ:
		return a == ins->k;
	case BPF_JGE:
		return a >= ins->k;
	case BPF_JGT:
		return a > ins->k;
	case BPF_JSET:
		return a & ins->k;
	}
	fail_msg("unexpected jump 0x%x", ins->code);
	return false;
}

/* Runs a filter as the kernel does. */
static inline uint32_t bpf_run(const struct sock_fprog *filter, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t at = 0; at < filter->len; at++) {
		const struct sock_filter *ins = &filter->filter[at];

		switch (ins->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(ins->k % 4 == 0 && ins->k <= sizeof(*data) - 4);
			memcpy(&a, (const char *)data + ins->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= ins->k;
			break;
		case BPF_RET | BPF_K:
			return ins->k;
		case BPF_JMP | BPF_JA:
			at += ins->k;
			break;
		default:
			assert_int_equal(BPF_CLASS(ins->code), BPF_JMP);
			at += bpf_jumps(ins, a) ? ins->jt : ins->jf;
		}
	}
	fail_msg("the filter has no end");
	return 0;
}

/* What it answers; an action other than passing, an errno and killing fails the test. */
static inline int bpf_answer(const struct sock_fprog *filter, const struct seccomp_data *data)
{
	uint32_t action = bpf_run(filter, data);

	if (action == SECCOMP_RET_ALLOW)
		return PASS;
	if (action == SECCOMP_RET_KILL_PROCESS)
		return KILLED;
	if (action == SECCOMP_RET_USER_NOTIF)
		return ASKED;
	assert_int_equal(action & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	assert_int_not_equal(action & SECCOMP_RET_DATA, 0); /* errno 0 would look like success */
	return (int)(action & SECCOMP_RET_DATA);
}
