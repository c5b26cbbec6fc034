/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/offer.h"

#include <string.h>

#include "cli/cli.h"

void vt_offer_complain(const char *mistakes)
{
	struct vt_str line;

	vt_str_init(&line);
	while (*mistakes) {
		size_t len = strcspn(mistakes, "\n");

		vt_str_clear(&line);
		vt_str_addn(&line, mistakes, len);
		vt_cli_complain(line.text);
		mistakes += len + (mistakes[len] == '\n');
	}
	vt_str_done(&line);
}

int vt_offer_load(const char *path, struct vt_manifest **ret_manifest, struct vt_err *err)
{
	struct vt_str mistakes;

	vt_str_init(&mistakes);
	int r = vt_manifest_load(path, ret_manifest, &mistakes, err);

	if (r < 0 && mistakes.len)
		vt_offer_complain(mistakes.text);
	else if (r < 0)
		vt_cli_complain_err(err);
	vt_str_done(&mistakes);
	return r;
}
