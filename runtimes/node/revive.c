/* SPDX-License-Identifier: Apache-2.0 */
#include "revive.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SLEEPERS = 16, STACK = 16 << 10 };

/* What is in a pthread_cond_t, all of which PTHREAD_COND_INITIALIZER sets to 0. */
struct condition {
	atomic_uint wakes; /* how often somebody was to wake */
	clockid_t clock;   /* of its times, if it is another than CLOCK_REALTIME */
};

_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it has its place");

/* A helper that sleeps, and where it goes on. */
struct sleeper {
	ucontext_t context;
	void *thread; /* its thread pointer, by which its TLS is found; NULL: the place is free */
	atomic_bool sleeps;
};

static struct sleeper sleepers[SLEEPERS];
static atomic_uint sleeper_count;
static atomic_bool platform_is_complete;
static __thread struct sleeper *own;

static struct condition *of(pthread_cond_t *cond)
{
	return (struct condition *)(void *)cond;
}

static long futex(atomic_uint *word, int act, unsigned value, const struct timespec *until)
{
	return syscall(SYS_futex, word, act, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* The first threads that wait are the platform's. The process's own first one is no helper. */
static struct sleeper *find_own(void)
{
	if (own || getpid() == gettid() || atomic_load(&platform_is_complete))
		return own;
	unsigned at = atomic_fetch_add(&sleeper_count, 1);

	if (at < SLEEPERS) {
		own = &sleepers[at];
		own->thread = __builtin_thread_pointer();
	}
	return own;
}

static int sleep_on(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		    const struct timespec *until)
{
	struct condition *condition = of(cond);
	unsigned seen = atomic_load(&condition->wakes);
	int act = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG |
		  (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
	int r = pthread_mutex_unlock(mutex);

	if (r)
		return r;
	long slept = futex(&condition->wakes, act, seen, until);
	bool late = slept < 0 && errno == ETIMEDOUT;

	r = pthread_mutex_lock(mutex);
	return r ? r : late ? ETIMEDOUT : 0;
}

EXPORTED int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct sleeper *volatile self = find_own();
	pthread_mutex_t *volatile lock = mutex;

	if (!self)
		return sleep_on(cond, mutex, CLOCK_MONOTONIC, NULL);
	/* In a fork it comes back here, and sleeps no more; whoever forked held no lock. */
	atomic_store(&self->sleeps, true);
	if (getcontext(&self->context) < 0)
		return errno;
	if (!atomic_load(&self->sleeps))
		return pthread_mutex_lock(lock);
	int r = sleep_on(cond, mutex, CLOCK_MONOTONIC, NULL);

	atomic_store(&self->sleeps, false);
	return r;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				    const struct timespec *abstime)
{
	return sleep_on(cond, mutex, of(cond)->clock, abstime);
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				    clockid_t clock_id, const struct timespec *abstime)
{
	return sleep_on(cond, mutex, clock_id, abstime);
}

EXPORTED int pthread_cond_signal(pthread_cond_t *cond)
{
	atomic_fetch_add(&of(cond)->wakes, 1);
	(void)futex(&of(cond)->wakes, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1,
		    NULL); /* none may sleep */
	return 0;
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t *cond)
{
	atomic_fetch_add(&of(cond)->wakes, 1);
	(void)futex(&of(cond)->wakes, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX,
		    NULL); /* the same */
	return 0;
}

EXPORTED int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	struct condition made = { .clock = CLOCK_REALTIME };

	if (attr)
		(void)pthread_condattr_getclock(attr, &made.clock); /* cannot fail */
	*of(cond) = made;
	return 0;
}

EXPORTED int pthread_cond_destroy(pthread_cond_t *cond)
{
	(void)cond;
	return 0;
}

/* ---- in a fork ----------------------------------------------------------------------------- */

void vt_revive_end_of_platform(void)
{
	atomic_store(&platform_is_complete, true);
}

/* On a stack of its own, until it has the one that it is to go on with. */
static int go_on(void *arg)
{
	struct sleeper *sleeper = arg;

	(void)setcontext(&sleeper->context); /* does not return */
	return 1;
}

int vt_revive_all(void)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			  CLONE_SYSVSEM | CLONE_SETTLS;

	for (size_t i = 0; i < SLEEPERS; i++) {
		struct sleeper *sleeper = &sleepers[i];

		if (!sleeper->thread || !atomic_load(&sleeper->sleeps))
			continue;
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		if (stack == MAP_FAILED)
			return -errno;
		atomic_store(&sleeper->sleeps, false);
		if (clone(go_on, stack + STACK, flags, sleeper, NULL, sleeper->thread, NULL) < 0)
			return -errno;
	}
	return 0;
}
