#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a command's own prefix brings along: an installation, never what a link or a line chooses."""

import contextlib
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import check, check_equal, check_in, folder, is_bare, main, run, test, vitro, write

SECRET = "the-secret-of-another-project"


@contextlib.contextmanager
def places():
    """A workspace, and beside it a project that has a bin, a lib and a secret: (ws, project)."""
    with folder() as place:
        project = place + "/x/proj"
        write(project + "/lib/module", "")
        write(project + "/secret", SECRET)
        write(project + "/bin/tool", '#!/bin/sh\nexec /bin/sh "$@"\n', 0o755)
        os.mkdir(place + "/ws")
        yield place + "/ws", project


def hidden(project, *command, cwd, runs=True):
    """The command gets the secret outside, and not inside."""
    paths = [project + "/secret", f"{cwd}/.venv{project}/secret", f"{cwd}/.venv/secret",
             f"{cwd}/.venv/../secret", f"{cwd}/.venv/bin/../secret", f"{cwd}/.venv/home/../secret"]
    script = f"cat {' '.join(paths)} 2>/dev/null; echo end"
    outside = run([*command, "-c", script], cwd=cwd)
    check_in(SECRET, outside.out, "outside it is read", outside)
    call = vitro("run", "--", *command, "-c", script, cwd=cwd, timeout=10)
    check(SECRET not in call.out + call.err, f"the secret is seen\n{call}")
    if runs:
        check_equal((call.code, call.out), (0, "end\n"), "and yet it runs", call)
    return call


@test("a folder .venv that is a link to /: nothing comes along but the program")
def _():
    with places() as (ws, project):
        os.symlink("/", ws + "/.venv")
        hidden(project, ".venv/bin/sh", cwd=ws)
        hidden(project, ws + "/.venv/bin/sh", cwd=ws)
        call = vitro("run", "--", ".venv/bin/sh", "-c", f"ls -A {ws}/.venv", cwd=ws)
        names = set(call.out.split())
        check(names <= {"bin", "usr", "lib", "lib64", "sbin"}, f"what is below it: {names}\n{call}")
        if not is_bare():  # there the folder is the host's own, and cannot be listed
            check_equal(call.code, 0, "exit code", call)


@test("a folder .venv that is a link to another project: its secret does not come along")
def _():
    with places() as (ws, project):
        os.symlink(project, ws + "/.venv")
        hidden(project, ".venv/bin/tool", cwd=ws)
        os.unlink(ws + "/.venv")
        os.mkdir(ws + "/.venv")
        os.symlink(project + "/bin", ws + "/.venv/bin")
        hidden(project, ".venv/bin/tool", cwd=ws)


@test("a .venv/bin/python that is a link to another project's program: no more than that program")
def _():
    for target in ("{project}/bin/tool", "../../../x/proj/bin/tool"):
        with places() as (ws, project):
            os.makedirs(ws + "/.venv/bin")
            os.mkdir(ws + "/.venv/lib")
            os.symlink(target.format(project=project), ws + "/.venv/bin/python")
            hidden(project, ".venv/bin/python", cwd=ws)


@test("a script's #! line that names another project's program: no more than that program")
def _():
    for line in ("#!{project}/bin/tool", "#!/usr/bin/env {project}/bin/tool",
                 "#!/usr/bin/env -S {project}/bin/tool", "#!/usr/bin/env -S A=1 {project}/bin/tool",
                 "#!/usr/bin/env -S --unset {project}/bin/tool sh",
                 "#!/usr/bin/env --split-string={project}/bin/tool"):
        with places() as (ws, project):
            write(ws + "/script", line.format(project=project) + f"\ncat {project}/secret\n", 0o755)
            outside = run(["./script"], cwd=ws)
            check_in(SECRET, outside.out, f"outside, {line}", outside)
            call = vitro("run", "--read", ".", "--", "./script", cwd=ws)
            check(SECRET not in call.out + call.err, f"{line}: the secret is seen\n{call}")
            check(call.code != 125, f"{line}: it is refused\n{call}")


@test("a pyvenv.cfg whose home is another project: its secret does not come along")
def _():
    for name in ("python3", "python"):
        with places() as (ws, project):
            os.makedirs(ws + "/.venv/bin")
            shutil.copy("/bin/sh", ws + "/.venv/bin/sh")
            shutil.copy(project + "/bin/tool", f"{project}/bin/{name}")
            for home in (project + "/bin", project + "/bin/", ws + "/../x/proj/bin"):
                write(ws + "/.venv/pyvenv.cfg", f"home = {home}\n")
                hidden(project, ".venv/bin/sh", cwd=ws)


@test("a pyvenv.cfg that is a fifo, a device or endless does not keep vitro")
def _():
    with places() as (ws, _):
        os.makedirs(ws + "/.venv/bin")
        shutil.copy("/bin/sh", ws + "/.venv/bin/sh")
        path = ws + "/.venv/pyvenv.cfg"

        def starts(kind):
            call = vitro("run", "--", ".venv/bin/sh", "-c", "echo hello", cwd=ws, timeout=10)
            check_equal((call.code, call.out), (0, "hello\n"), kind, call)
            check(call.seconds < 5, f"{kind}: it took {call.seconds:.1f} s")
            os.unlink(path)

        os.mkfifo(path)
        starts("a fifo")
        for device in ("/dev/zero", "/dev/tty", "/dev/full", "nowhere", path):
            os.symlink(device, path)
            starts(f"a link to {device}")
        write(path, "x" * 20_000_000)
        starts("one long line")


@test("two venvs that name each other as home, and a link that leads to itself, end")
def _():
    with places() as (ws, _):
        for name, other in (("one", "two"), ("two", "one")):
            os.makedirs(f"{ws}/{name}/bin")
            shutil.copy("/bin/sh", f"{ws}/{name}/bin/python3")
            write(f"{ws}/{name}/pyvenv.cfg", f"home = {ws}/{other}/bin\n")
        call = vitro("run", "--", "one/bin/python3", "-c", "echo hello", cwd=ws, timeout=10)
        check_equal((call.code, call.out), (0, "hello\n"), "output", call)
        os.symlink("round", ws + "/round")
        call = vitro("run", "--", "./round", cwd=ws, timeout=10)
        check(call.code in (125, 126, 127), f"a link to itself\n{call}")


if __name__ == "__main__":
    main()
