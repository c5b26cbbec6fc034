/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a process would have in common with its forks, and that one of them could write to:
 * by it calls could reach each other, and the zygote. What is only for reading now counts where the
 * file was opened for writing, since mprotect() changes that; what is kept from forks
 * (MADV_DONTFORK) does not. A zygote looks before it forks; nothing here changes anything.
 */
#pragma once

#include <stdint.h>

struct vt_shared {
	uintptr_t from, to;
	char      name[96]; /* of its file, cut; "/dev/zero (deleted)" where there is none */
};

/*
 * Calls act() with each piece of it, until that returns a negative errno. proc_fd: the process's
 * folder in /proc. Returns how many there are, or a negative errno: also where the kernel does not
 * tell enough of what is shared.
 */
int vt_shared_each(int proc_fd, int (*act)(void *user, const struct vt_shared *piece), void *user);
