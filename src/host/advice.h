/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a machine refuses what vitro asks of it, and what its administrator can do: the knowledge
 * behind `vitro doctor`. It reads sysctls and marks that containers leave, and changes nothing.
 * Used by report.c alone.
 */
#pragma once

#include <stddef.h>

#include "host/host.h"

/* "Docker", "Podman", ... for the container that we are in; NULL: in none that shows. */
const char *vt_advice_container(void);

/* Each writes one or two sentences, or "" where nothing is known to help. */

/* For the errno that stopped making or using a user namespace. */
void vt_advice_userns(const struct vt_host *host, int num, char *buf, size_t size);
/* For one of the other namespaces; sysctl is the last part of its limit's name: "pid". */
void vt_advice_namespace(const char *sysctl, int num, char *buf, size_t size);
void vt_advice_proc(int num, char *buf, size_t size);
void vt_advice_seccomp(int num, char *buf, size_t size);
/* For a system call that this kernel or a filter around us does not know. */
void vt_advice_call(const char *kernel, int num, char *buf, size_t size);
void vt_advice_landlock(int num, char *buf, size_t size);
void vt_advice_cgroup(const struct vt_host *host, char *buf, size_t size);
