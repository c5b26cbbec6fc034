/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manifest.h"

#include "cli/cli.h"

int vt_cli_load_manifest(const char *path, struct vt_manifest **ret_manifest, struct vt_err *err)
{
	struct vt_str mistakes;

	vt_str_init(&mistakes);
	int r = vt_manifest_load(path, ret_manifest, NULL, &mistakes, err);

	if (r < 0 && mistakes.len)
		vt_cli_complain_lines(mistakes.text);
	else if (r < 0)
		vt_cli_complain_err(err);
	vt_str_done(&mistakes);
	return r;
}
