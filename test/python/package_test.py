#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installing the package where no index can be reached, and what is then there."""

import json
import os
import pathlib
import shutil
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import pythons
from vitrotest import BINARY, check, check_equal, check_in, folder, run, skip, test

USE = ("import json, vitro, vitro.compat.loomflow, vitro.compat.calute\ns = vitro.Sandbox({'require': 'best-effort'})\n"
       "print(json.dumps([s.eval('1+1'), s.run(['echo', 'x']).stdout, vitro.__file__, vitro._binary.find_binary()]))\n")


def clean():
    """An environment that names neither the source nor an index."""
    leave = ("PYTHONPATH", "VITRO_BINARY", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    return {**{name: value for name, value in os.environ.items() if name not in leave}, "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def copy_tree(place):
    """What is needed of the source, with the build that is tested."""
    top = pathlib.Path(place, "top")
    shutil.copytree(pythons.ROOT / "sdk", top / "sdk", symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "_bin"))
    shutil.copytree(pythons.ROOT / "runtimes", top / "runtimes", ignore=shutil.ignore_patterns("__pycache__"))
    if not (pythons.ROOT / "meson.build").exists():
        skip("the source is not here")
    for name in ("meson.build", "LICENSE"):
        shutil.copy(pythons.ROOT / name, top)
    build = pathlib.Path(BINARY).parent
    (top / "build").mkdir()
    shutil.copy(BINARY, top / "build" / "vitro")
    shutil.copytree(build / "python", top / "build" / "python")
    return top


def make_venv(place):
    venv = os.path.join(place, "venv")
    made = run([sys.executable, "-m", "venv", venv], timeout=55, env=clean())
    if made.code:
        skip("this interpreter makes no venvs: " + made.err.strip()[-100:])
    return os.path.join(venv, "bin", "python")


def check_use(python, place, installed):
    done = run([python, "-c", USE], cwd=place, env=clean())
    check_equal(done.code, 0, "exit code", done)
    value, printed, package, binary = json.loads(done.out)
    check_equal((value, printed), (2, "x\n"), "what it does", done)
    check(package.startswith(str(installed)), package)
    check_equal(os.path.dirname(os.path.dirname(binary)), os.path.dirname(package), "the program that it carries")
    for command in ([python, "-m", "vitro"], [os.path.join(os.path.dirname(python), "vitro")]):
        done = run([*command, "run", "--set", "require=best-effort", "--", "echo", "x"], cwd=place, env=clean())
        check_equal((done.code, done.out), (0, "x\n"), "the command", done)


@test("pip install ./sdk/python into a fresh venv, without an index, and nothing else to be done")
def _():
    with folder() as place:
        top, python = copy_tree(place), make_venv(place)
        done = run([python, "-m", "pip", "install", str(top / "sdk" / "python")], timeout=55, env=clean())
        check_equal(done.code, 0, "pip", done)
        shutil.rmtree(top)  # it needs nothing of the source
        check_use(python, place, pathlib.Path(place, "venv"))


@test("pip install -e: the package where it is, with the build beside it")
def _():
    with folder() as place:
        top, python = copy_tree(place), make_venv(place)
        done = run([python, "-m", "pip", "install", "-e", str(top / "sdk" / "python")], timeout=55, env=clean())
        if done.code and "editable" in done.err.lower() and "setup.py" in done.err:
            skip("this pip is older than editable installs by a backend")
        check_equal(done.code, 0, "pip", done)
        check_use(python, place, top)


def backend(top, call):
    return run([sys.executable, "-c", f"import sys\nsys.path.insert(0, 'backend')\nimport vitro_build as b\nprint({call})"],
               cwd=top / "sdk" / "python", env={**clean(), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/nowhere"}, timeout=55)


@test("wheel and sdist have what they should, and the same source makes the same wheel")
def _():
    with folder() as place:
        top = copy_tree(place)
        version = json.loads(backend(top, "__import__('json').dumps(b.read_version())").out)
        check_in(f"version: '{version}'", (top / "meson.build").read_text(), "the one version")
        made = backend(top, f"b.build_wheel({place!r})")
        check_equal(made.out.strip(), f"vitro_sandbox-{version}-py3-none-linux_{os.uname().machine}.whl", "its name", made)
        wheel = pathlib.Path(place, made.out.strip())
        first = wheel.read_bytes()
        backend(top, f"b.build_wheel({place!r})")
        check(first == wheel.read_bytes(), "the same again")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            for name in ("vitro/py.typed", "vitro/_bin/vitro", "vitro/_bin/python/zygote.py", "vitro/_codec.py",
                         "vitro/compat/loomflow.py", "vitro/compat/calute.py",
                         f"vitro_sandbox-{version}.dist-info/METADATA", f"vitro_sandbox-{version}.dist-info/LICENSE"):
                check_in(name, names, "the wheel")
            check_in("\nLicense-File: LICENSE\n", archive.read(f"vitro_sandbox-{version}.dist-info/METADATA").decode(), "METADATA")
            check(archive.getinfo("vitro/_bin/vitro").external_attr >> 16 & 0o111, "it can be executed")
            check(not [name for name in names if "__pycache__" in name], "nothing that was compiled")
        made = backend(top, f"b.build_sdist({place!r})")
        with tarfile.open(os.path.join(place, made.out.strip())) as archive:
            names = archive.getnames()
        stem = f"vitro_sandbox-{version}"
        for name in ("pyproject.toml", "backend/vitro_build.py", "vitro/_codec.py", "source/meson.build", "PKG-INFO"):
            check_in(f"{stem}/{name}", names, "the sdist")


@test("the program in a wheel is not older than the source, where it can be made")
def _():
    if not shutil.which("make") or not shutil.which("ninja"):
        skip("make or ninja is not installed")
    with folder() as place:
        top = copy_tree(place)
        made = backend(top, f"b.build_wheel({place!r})")
        (top / "Makefile").write_text(".PHONY: build\nbuild:\n\techo 1 >build/python/newer.py; env >build/env\n")
        check_equal(backend(top, f"b.build_wheel({place!r})").out, made.out, "its name", made)
        with zipfile.ZipFile(os.path.join(place, made.out.strip())) as archive:
            check_in("vitro/_bin/python/newer.py", archive.namelist(), "what was made")
        check("PYTHONPATH=" not in (top / "build" / "env").read_text(), "what pip hides is not hidden from meson")
        (top / "Makefile").write_text(".PHONY: build\nbuild:\n\techo broken; false\n")
        check_in("broken", backend(top, f"b.build_wheel({place!r})").err, "one that cannot be made is an error, not an old one")


@test("what cannot be built says so")
def _():
    with folder() as place:
        top = copy_tree(place)
        (top / "build" / "vitro").unlink()
        done = backend(top, f"b.build_wheel({place!r})")  # there is no Makefile here
        check_in("did not make", done.err, "no build", done)
        (top / "meson.build").unlink()
        done = backend(top, f"b.build_wheel({place!r})")
        check_in("install from a whole checkout", done.err, "no source", done)


@test("mypy --strict has nothing to say, and docstrings are there")
def _():
    sys.path.insert(0, str(pythons.SDK))
    import vitro
    import vitro.compat.calute
    import vitro.compat.loomflow
    for module in (vitro, vitro.compat.calute, vitro.compat.loomflow):
        for name in module.__all__:
            check(getattr(module, name).__doc__, f"{name} has no docstring")
    if not pythons.has_framework("mypy"):
        skip("mypy was not fetched for this Python")
    with folder() as cache:
        seen = os.path.join(os.path.dirname(os.path.realpath(__file__)), "typed.py")  # as a program sees it
        done = run([sys.executable, "-m", "mypy", "--cache-dir", cache, "vitro", "backend", seen], cwd=pythons.SDK, timeout=150,
                   env={**os.environ, "PYTHONPATH": pythons.FRAMEWORKS})
    check_equal(done.code, 0, "mypy", done)


pythons.main()
