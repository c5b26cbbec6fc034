#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The units of systemd: what they say, and that systemd understands it."""

import os
import re
import shutil
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(SOURCE, "test", "lib"))
from vitrotest import BINARY, check, check_equal, check_in, folder, main, run, skip, test


def unit(name):
    with open(os.path.join(SOURCE, "systemd", name), encoding="utf-8") as file:
        return file.read().replace("@VITRO@", BINARY)


@test("systemd understands the units")
def _():
    if not shutil.which("systemd-analyze"):
        skip("there is no systemd-analyze")
    with folder() as place:
        os.chmod(place, 0o755)
        for name, source in (("vitro.socket", "vitro.socket"), ("vitro.service", "vitro.service.in")):
            with open(f"{place}/{name}", "w", encoding="utf-8") as file:
                file.write(unit(source))
        for names in (["vitro.socket"], ["vitro.service"]):
            call = run(["systemd-analyze", "verify", "--man=no", *[f"{place}/{name}" for name in names]])
            if "Failed to initialize manager" in call.err:
                skip("systemd-analyze does not work here: " + call.err.splitlines()[0])
            ours = [line for line in call.err.splitlines() if "vitro" in line]
            check_equal((call.code, ours), (0, []), "verified", call)
        # The control: what is wrong is found.
        with open(f"{place}/vitro.service", "a", encoding="utf-8") as file:
            file.write("NoSuchKey=yes\n")
        call = run(["systemd-analyze", "verify", "--man=no", f"{place}/vitro.service"])
        check_in("NoSuchKey", call.err, "the control", call)


@test("the socket is its owner's alone, and cells may have cgroups")
def _():
    check_in("\nSocketMode=0600\n", unit("vitro.socket"), "mode")
    check_in("\nListenStream=%t/vitro/socket\n", unit("vitro.socket"), "path")
    check_in("\nDelegate=yes\n", unit("vitro.service.in"), "delegation")
    for key in ("PrivateTmp", "ProtectSystem", "NoNewPrivileges", "RestrictNamespaces", "PrivateUsers"):
        check(not re.search(f"^{key}=", unit("vitro.service.in"), re.M), f"{key} would be in the way of cells")


main()
