/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/offer.h"

#include <string.h>

#include "cli/cli.h"

int vt_offer_load(const char *path, struct vt_manifest **ret_manifest, struct vt_err *err)
{
	struct vt_str mistakes;

	vt_str_init(&mistakes);
	int r = vt_manifest_load(path, ret_manifest, &mistakes, err);

	for (char *line = mistakes.text, *end; r < 0 && (end = strchr(line, '\n'));
	     line = end + 1) {
		*end = '\0';
		vt_cli_complain(line);
	}
	if (r < 0 && !mistakes.len)
		vt_cli_complain_err(err);
	vt_str_done(&mistakes);
	return r;
}
