/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of file systems, with those that Debian 12's <linux/magic.h> lacks. */
#pragma once

#include <linux/magic.h>

#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif
