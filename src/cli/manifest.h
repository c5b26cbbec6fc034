/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests, for the verbs that take one. */
#pragma once

#include "base/err.h"
#include "manifest/manifest.h"

/* Reads a manifest. What is wrong with it goes to standard error, a line for each mistake. */
int vt_cli_load_manifest(const char *path, struct vt_manifest **ret_manifest, struct vt_err *err);
