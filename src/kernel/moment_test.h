/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of races: a body runs in a thread of its own, under a filter that makes one system call
 * of its wait each time, until another function has done what somebody else might do at that very
 * moment.
 */
#pragma once

#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "kernel/child_test.h"

struct moments {
	int          call;
	void       (*body)(void *arg);
	void       (*meanwhile)(void *arg, int nth); /* nth: from 0 on */
	void        *arg;
	int          listener; /* the thread's; it says through the pipe that it is there */
	int          ready[2];
};

static inline void *run_moments(void *arg)
{
	struct moments *m = arg;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)m->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	m->listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				   SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
	MUST(m->listener >= 0 && write(m->ready[1], "", 1) == 1);
	m->body(m->arg);
	return NULL;
}

/* In a child. Returns how often the call was made. */
static inline int meet_moments(int call, void (*body)(void *), void (*meanwhile)(void *, int),
			       void *arg)
{
	struct moments m = { .call = call, .body = body, .meanwhile = meanwhile, .arg = arg };
	pthread_t thread;
	char byte;
	int count = 0;

	MUST(pipe2(m.ready, O_CLOEXEC) == 0);
	MUST(pthread_create(&thread, NULL, run_moments, &m) == 0);
	MUST(read(m.ready[0], &byte, 1) == 1);
	for (;;) {
		struct pollfd waiting = { .fd = m.listener, .events = POLLIN };
		struct seccomp_notif notice = { 0 };
		struct seccomp_notif_resp go_on = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

		MUST(poll(&waiting, 1, 30000) == 1);
		if (waiting.revents & (POLLHUP | POLLERR))
			break; /* the thread has ended */
		MUST(ioctl(m.listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) == 0);
		m.meanwhile(m.arg, count++);
		go_on.id = notice.id;
		MUST(ioctl(m.listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on) == 0);
	}
	MUST(pthread_join(thread, NULL) == 0);
	MUST(close(m.listener) == 0 && close(m.ready[0]) == 0 && close(m.ready[1]) == 0);
	return count;
}
