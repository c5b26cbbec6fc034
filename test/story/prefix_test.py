#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a command's own prefix brings along: an installation, never what a link or a line chooses."""

import contextlib
import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import vitrotest
from vitrotest import (IS_ROOT, check, check_equal, check_in, folder, is_bare, main, run, vitro,
                       write)


def test(name, **options):
    """All of it is about what cannot be seen."""
    return vitrotest.test(name, **{"holds": {"files": "*"}, **options})


SECRET = "the-secret-of-another-project"


@contextlib.contextmanager
def places():
    """A workspace, and beside it a project that has a bin, a lib and a secret: (ws, project)."""
    with folder() as place:
        project = place + "/x/proj"
        write(project + "/lib/module", "")
        write(project + "/secret", SECRET)
        os.mkdir(project + "/bin")
        shutil.copy("/bin/sh", project + "/bin/tool")
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


@test("a program in the bin of the caller's home, or around it: nothing comes along but the program")
def _():
    with places() as (ws, project):
        env = {**os.environ, "PATH": f"{project}/bin:{os.environ['PATH']}"}
        command = ["-c", f"cat {project}/secret 2>/dev/null; echo end"]
        for home in (project, project + "/me"):
            for name in (project + "/bin/tool", "tool"):
                call = run([name, *command], env=env, cwd=ws)
                check_equal(call.out, SECRET + "end\n", "outside", call)
                call = vitro("run", "--", name, *command, env={**env, "HOME": home}, cwd=ws)
                check_equal((call.code, call.out), (0, "end\n"), f"{name}, home {home}", call)
        call = vitro("run", "--", "tool", *command, env=env, cwd=ws)
        check_equal(call.out, SECRET + "end\n", "a project that the caller names", call)


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


def earlier(ws, script):
    """A call that may write to the workspace runs this there. `put NAME TEXT` makes a script."""
    # Not by chmod, which a cell without namespaces does not have.
    script = 'put() { cp /bin/true "$1" && printf "$2\\n" >"$1"; }; ' + script
    os.chmod(ws, 0o777)  # root's cell is another user where there are no namespaces
    call = vitro("run", "--write", ".", "--cwd", ".", "--", "/bin/sh", "-c", script, cwd=ws)
    check_equal(call.code, 0, "the earlier call", call)
    os.chmod(ws, 0o755)
    for name in os.listdir(ws):
        os.lchown(f"{ws}/{name}", os.geteuid(), os.getegid())


def refused(ws, *command, secret=SECRET):
    """Outside it tells the secret; inside it does not even begin, and the message says what to do."""
    outside = run([*command], cwd=ws)
    check_in(secret, outside.out, "outside it is told", outside)
    call = vitro("run", "--write", ".", "--cwd", ".", "--", *command, cwd=ws)
    check(secret not in call.out, f"{command}: the secret is told\n{call}")
    check_equal(call.code, 125, f"{command}: exit code", call)
    check_in("does not come along by itself; grant it with --read", call.err, "the message", call)


@test("an earlier call's script, link or venv does not bring a script of the caller's along")
def _():
    with places() as (ws, project):
        private = os.path.dirname(project) + "/private"
        write(private + "/job", f"#!/bin/sh\necho {SECRET}\n", 0o755)
        os.symlink("job", private + "/python3")
        earlier(ws, f"put script '#!{private}/job'; put env '#!/usr/bin/env {private}/job';"
                    f"ln -s {private}/job link; ln -s {private} folder; ln -s link again;"
                    "mkdir -p .venv/bin; cp /bin/sh .venv/bin;"
                    f"echo 'home = {private}' >.venv/pyvenv.cfg")
        for name in ("./script", "./env", "./link", "folder/job", "./again", ws + "/link"):
            refused(ws, name)
        refused(ws, ".venv/bin/sh", "-c", private + "/python3")
        # The caller's own word: as the command, or as a grant.
        call = vitro("run", "--", private + "/job")
        check_equal((call.code, call.out), (0, SECRET + "\n"), "named as the command", call)
        for name in ("./script", "./link"):
            call = vitro("run", "--write", ".", "--read", private, "--cwd", ".", "--", name, cwd=ws)
            check_equal((call.code, call.out), (0, SECRET + "\n"), f"{name}, granted", call)


@test("an earlier call's link does not bring a program along that its owner keeps to himself")
def _():
    with places() as (ws, project):
        shutil.copy("/bin/echo", project + "/bin/own")
        earlier(ws, f"ln -s {project}/bin/own link; put script '#!{project}/bin/own'")
        for mode in (0o700, 0o750, 0o711):
            os.chmod(project + "/bin/own", mode)
            refused(ws, "./link", SECRET)
            refused(ws, "./script", SECRET)
        os.chmod(project + "/bin/own", 0o755)
        call = vitro("run", "--write", ".", "--cwd", ".", "--", "./link", "hello", cwd=ws)
        check_equal((call.code, call.out), (0, "hello\n"), "where everyone may", call)


@test("an earlier call's #! line: a project with packages for Node or Ruby is no interpreter's")
def _():
    for sign in ("node_modules", "ruby", "perl5", "site_perl", "python3.11"):
        with places() as (ws, project):
            os.mkdir(f"{project}/lib/{sign}")
            write(f"{project}/lib/{sign}/secret", SECRET)
            shutil.copy("/bin/sh", project + "/bin/python3.12")
            script = f"cat {project}/secret {project}/lib/{sign}/secret 2>&1; echo end"
            earlier(ws, f"put job '#!{project}/bin/tool\\n{script}';"
                        f"ln -s {project}/bin/python3.12 link")
            for command in (["./job"], ["./link", "-c", script]):
                outside = run(command, cwd=ws)
                check_equal(outside.out, SECRET * 2 + "end\n", "outside", outside)
                call = vitro("run", "--write", ".", "--cwd", ".", "--", *command, cwd=ws)
                check(SECRET not in call.out, f"{sign}, {command}: the secret is seen\n{call}")
                check_equal((call.code, call.out[-4:]), (0, "end\n"), "and yet it runs", call)


@test("a program on PATH where the policy lets cells write leads no further than by its path")
def _():
    with places() as (ws, project):
        private = os.path.dirname(project) + "/private"
        write(private + "/job", f"#!/bin/sh\necho {SECRET}\n", 0o755)
        earlier(ws, f"ln -s {private}/job link; put script '#!{private}/job'")
        env = {**os.environ, "PATH": f"{ws}:{os.environ['PATH']}"}
        for name in ("link", "script"):
            call = vitro("run", "--", name, env=env)
            check_equal((call.code, call.out), (0, SECRET + "\n"), "where nobody writes", call)
            call = vitro("run", "--write", ws, "--", name, env=env)
            check(SECRET not in call.out, f"{name}: the secret is told\n{call}")
            check_equal(call.code, 125, f"{name}: exit code", call)


def install_python(prefix):
    """A Python with as much of its library as it needs to begin: its path."""
    python = os.path.realpath("/usr/bin/python3")
    name = os.path.basename(python)
    library, own = "/usr/lib/" + name, f"{prefix}/lib/{name}"
    os.makedirs(prefix + "/bin")
    os.makedirs(own + "/lib-dynload")
    shutil.copy(python, f"{prefix}/bin/{name}")
    shutil.copytree(library + "/encodings", own + "/encodings")
    for module in filter(os.path.exists, glob.glob(library + "/*.py")):  # some are links out of it
        shutil.copy(module, own)
    write(prefix + "/secret", SECRET)
    return f"{prefix}/bin/{name}"


@test("a Python of its own comes along with its library, and with nothing else of its prefix",
      needs=["/usr/bin/python3"])
def _():
    with places() as (ws, project):
        prefix = os.path.dirname(project) + "/versions/3"
        python = install_python(prefix)
        text = (f"import os\nprint(os.__file__.startswith('{prefix}/lib'))\n"
                f"try:\n    print(open('{prefix}/secret').read())\nexcept OSError:\n    print('none')\n")
        write(ws + "/job", f"#!{python} -IS\n{text}", 0o755)
        write(ws + "/job.py", text)
        os.makedirs(ws + "/.venv/bin")
        os.makedirs(f"{ws}/.venv/lib/{os.path.basename(python)}/site-packages")
        write(ws + "/.venv/pyvenv.cfg", f"home = {prefix}/bin\n")
        os.symlink(python, ws + "/.venv/bin/python")
        write(ws + "/.venv/bin/tool", f"#!{ws}/.venv/bin/python -IS\n{text}", 0o755)
        os.symlink(python, ws + "/link")
        for command in (["./job"], ["./link", "-IS", "job.py"], [".venv/bin/python", "-IS", "job.py"],
                        [".venv/bin/tool"]):
            outside = run(command, cwd=ws)
            check_equal(outside.out, f"True\n{SECRET}\n", "outside", outside)
            for grant in ("--read", "--write"):
                call = vitro("run", grant, ".", "--cwd", ".", "--", *command, cwd=ws)
                check_equal((call.code, call.out), (0, "True\nnone\n"), f"{command}", call)


@test("a Python in a folder of the caller's own: a library that others may not read does not come along",
      needs=["/usr/bin/python3"])
def _():
    with places() as (ws, project):
        prefix = os.path.dirname(project) + "/private/py"
        python = install_python(prefix)
        library = f"{prefix}/lib/{os.path.basename(python)}"
        write(library + "/secret.txt", SECRET, 0o600)
        if not (is_bare() and IS_ROOT):  # whose cell has a user of its own, and nothing maps it
            os.chmod(os.path.dirname(prefix), 0o700)
        text = f"print('begins')\nprint(open('{library}/secret.txt').read())\n"
        write(ws + "/job", f"#!{python} -IS\n{text}", 0o755)
        for closed in (library, prefix + "/lib"):
            os.chmod(closed, 0o700)
            refused(ws, "./job")
            os.chmod(closed, 0o755)
        # The caller's own word.
        call = vitro("run", "--read", ".", "--cwd", ".", "--", python, "-IS", "job", cwd=ws)
        check_in("begins", call.out, "the interpreter as the command", call)
        # What is open comes along, in a folder that is closed: pyenv lives in such ones.
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "./job", cwd=ws)
        check_in("begins", call.out, "an open library", call)
        # A folder of that name which is no library of Python's.
        os.unlink(library + "/os.py")
        outside = run(["./job"], cwd=ws)
        check_in(SECRET, outside.out, "outside", outside)
        for grant in ("--read", "--write"):
            call = vitro("run", grant, ".", "--cwd", ".", "--", "./job", cwd=ws)
            check(SECRET not in call.out + call.err, f"the secret is seen\n{call}")


if __name__ == "__main__":
    main()
