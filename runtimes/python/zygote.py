# SPDX-License-Identifier: Apache-2.0
"""The whole life of a Python zygote: INTERPRETER -I -S -B zygote.py SETUP [+MODULE | -MODULE]...

The supervisor executes it with its control socket at descriptor 3. It loads what vitro itself needs while it
still sees the caller's files; joins the hull, from where it sees no more than a cell does; imports what the
caller wants to have ahead of calls; and then forks occupants, each into a cell of its own. It never runs
anything of a call, and never imports from where a call can write.

SETUP is JSON: {"version": 1, "mode": ..., "path": [folders], "preload": [modules], ...}. +MODULE was learned by
a zygote before this one. -MODULE ended one while it was imported, and is left out.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import _frozen_importlib
import _frozen_importlib_external
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple

CONTROL = 3
CALL = 3  # of an occupant, where the other was
PACKAGE = "_vitro_runtime"
PARTS = ("codec", "talk", "resolve", "awaited", "complain", "cwd", "tools", "convert", "initialize", "harness")
# What every piece of code may stand on: a top-level await, and a line in a log.
ALWAYS = ("asyncio", "logging")
# Whoever computes would start threads for it, of which a fork has none.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS")
TRIAL_SECONDS = 10
PROBLEM_BYTES = 400


class Writable(BaseException):
    """Something to import lies where a call can write. No `except Exception` makes it good."""


class Places:
    """Where calls can write: by path, and by inode, whatever the name."""

    def __init__(self, paths: Iterable[str], inodes: Iterable[Tuple[int, int]]) -> None:
        self.paths = [path.rstrip("/") or "/" for path in paths]
        self.inodes = frozenset(inodes)
        self.known: Dict[str, bool] = {"/": "/" in self.paths}

    def _names(self, path: str) -> bool:
        return any(path == place or place == "/" or path.startswith(place + "/") for place in self.paths)

    def _holds(self, path: str) -> bool:
        """Whether a path without links on it is one of them, or lies in one."""
        if path not in self.known:
            try:
                found = os.stat(path)
                written = (found.st_dev, found.st_ino) in self.inodes
            except OSError:
                written = False  # it is not there: what is around it counts
            self.known[path] = written or self._names(path) or self._holds(os.path.dirname(path))
        return self.known[path]

    def hold(self, path: str) -> bool:
        """Whether a file is one that calls can write or replace, or a link on the way to it is."""
        done, rest, links = "/", os.path.join(os.getcwd(), path).split("/"), 0  # with each "..": after a link it leads elsewhere
        while rest:
            part = rest.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            if part in ("", "."):
                continue
            step = os.path.join(done, part)
            if self._holds(step):
                return True
            try:
                target = os.readlink(step)
            except OSError:
                done = step
                continue
            links += 1
            if links > 40:
                return True  # nobody can open it
            rest[:0] = target.split("/")
            done = "/" if target.startswith("/") else done
        return self._holds(done)


_NO_FILES = ("built-in", "frozen")  # what specs of Python's own have in place of one


class Guard:
    """Stands behind all finders of modules, and lets none give one that a call could have written. Not as one of them: whoever
    puts another before the first, as editable installs do, would be asked alone."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.refused: Optional[str] = None
        self.is_over = False
        self.find: Any = getattr(_frozen_importlib, "_find_spec")

    def begin(self) -> None:
        """From here on every import is looked at."""
        setattr(_frozen_importlib, "_find_spec", self.find_spec)

    def end(self) -> None:
        """For calls, which may import what they wrote. Modules may have what stands there now under names of their own."""
        self.is_over = True
        setattr(_frozen_importlib, "_find_spec", self.find)

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        spec: Optional[ModuleSpec] = self.find(name, path, target)
        if spec is not None and not self.is_over:
            self.check(spec)
        return spec

    def check(self, spec: ModuleSpec) -> None:
        # A finder need not say of a file that it is one (has_location), and a loader may have another than it says.
        path = getattr(spec.loader, "path", None)
        files = [spec.origin, spec.cached, path]
        if isinstance(path, str) and sys.implementation.cache_tag:
            files.append(getattr(_frozen_importlib_external, "cache_from_source")(path))  # which the loader reads, whatever the spec says
        for file in [*files, *(spec.submodule_search_locations or ())]:
            if isinstance(file, str) and file not in _NO_FILES and self.places.hold(file):
                self.refused = file
                raise Writable(f"'{file}' lies where calls may write, so it is not imported ahead of them")


class Failed(Exception):
    """A module was not imported, and everything is as it was."""


def describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= PROBLEM_BYTES else text[:PROBLEM_BYTES] + "..."


def forget(before: Dict[str, ModuleType]) -> None:
    """As far as it can be: what a module did elsewhere stays done."""
    for name in [name for name in sys.modules if name not in before]:
        del sys.modules[name]


class Alone:
    """While it lasts, who computes starts no threads for it."""

    def __enter__(self) -> None:
        self.kept = {variable: os.environ.get(variable) for variable in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))

    def __exit__(self, *_: object) -> None:
        for variable, value in self.kept.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def load(name: str, guard: Guard) -> None:
    """Imports a module; raises Failed if that does not work, or one of its parts lies where calls write."""
    before = dict(sys.modules)
    guard.refused = None
    try:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ImportError(f"'{name}' is no name of a module")
        with Alone():
            __import__(name)
        if guard.refused:
            raise Writable(f"'{guard.refused}' lies where calls may write")
    except BaseException as error:
        forget(before)
        raise Failed(f"'{name}' is not imported ahead of calls: {describe(error)}") from None


def find_hindrance(extension: Any) -> Optional[str]:
    """What a module or an initializer did, that forks cannot have each for itself; None: nothing."""
    if extension.threads() != 1:
        return "starts a thread, and what has threads cannot be forked"
    if extension.shared():
        return "makes memory that all calls would share, as multiprocessing.Lock() and mmap.mmap(-1, ...) do"
    return None


def settle() -> None:
    """What is there by now stays: a collection in a fork must not touch, and so copy, all of it."""
    gc.collect()
    gc.disable()
    gc.freeze()
    bytes(1 << 16)  # for which malloc() puts together what small things left behind; later each fork would, by copying it


def import_spared(extension: Any) -> None:
    """Modules whose work after a fork would copy a quarter of the pages that an occupant copies in all, for nothing: it makes
    locks anew that nobody holds, as there is one thread, and forgets threads, which harness.look_around() does once. What is left
    is a new seed, and the thread's number: harness._seed_random(), begin_anew(). Forks that a call makes have all of it."""
    register = os.register_at_fork

    def register_spared(**functions: Any) -> None:
        register(**{when: extension.spare(function) for when, function in functions.items()})

    os.register_at_fork = register_spared  # type: ignore[assignment]
    try:
        for name in ("threading", "logging", "random"):
            __import__(name)
    finally:
        os.register_at_fork = register


def load_parts(folder: str) -> Any:
    """Vitro's own modules, as a package of which a caller's modules know nothing. Gives (extension, harness)."""
    package = ModuleType(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package
    sys.path.insert(0, folder)
    try:
        extension = __import__("_vitro_zygote")
        import_spared(extension)
        for part in PARTS:
            __import__(f"{PACKAGE}.{part}")
    finally:
        sys.path.remove(folder)
        sys.path_importer_cache.pop(folder, None)
    return extension, sys.modules[f"{PACKAGE}.harness"]


def enter_site(places: Places) -> None:
    """The site-packages of the venv or the prefix, and their .pth files; none of the user's own."""
    site: Any = __import__("site")
    add_folder, add_file = site.addsitedir, site.addpackage

    def add_safe_folder(folder: str, known: Any = None) -> Any:
        return known if places.hold(folder) else add_folder(folder, known)

    def add_safe_file(folder: str, name: str, known: Any) -> Any:
        with contextlib.suppress(Writable):  # what one of its lines imports is left to calls
            return known if places.hold(os.path.join(folder, name)) else add_file(folder, name, known)
        return known

    site.addsitedir = add_safe_folder
    site.addpackage = add_safe_file
    try:
        with contextlib.suppress(Writable):  # sitecustomize, which comes last
            site.main()
    finally:
        site.addsitedir = add_folder
        site.addpackage = add_file


class Trial:
    """A module that is imported in a child first, which may hang, crash or start threads as it likes."""

    def __init__(self, extension: Any, guard: Guard, name: str) -> None:
        import select
        import signal
        import time

        self.extension = extension
        self.name = name
        self.end = time.monotonic() + TRIAL_SECONDS
        self.clock = time.monotonic
        self.fd, theirs = os.pipe()
        try:
            self.pidfd: int = extension.fork()
        except OSError:
            os.close(self.fd)
            os.close(theirs)
            raise
        if self.pidfd < 0:
            signal.alarm(TRIAL_SECONDS + 1)  # should the zygote not be there to end it
            self._try(guard, theirs)
        os.close(theirs)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)
        self.poll.register(CONTROL, select.POLLIN)
        self.said = b""

    def _try(self, guard: Guard, fd: int) -> NoReturn:
        said = "ok"
        try:
            load(self.name, guard)
            hindrance = find_hindrance(self.extension)
            if hindrance:
                said = f"'{self.name}' is not imported ahead of calls: it {hindrance}"
        except BaseException as error:
            said = str(error) if isinstance(error, Failed) else describe(error)
        os.write(fd, said.encode("utf-8", "replace"))
        os._exit(0)

    def wait(self) -> Tuple[bool, bool]:
        """Whether it is over, and whether there is an order meanwhile."""
        left = self.end - self.clock()
        ready = [fd for fd, _ in self.poll.poll(max(0, int(left * 1000) + 1))]
        if self.fd in ready:
            got = os.read(self.fd, 4096)
            self.said += got
            if not got or self.said == b"ok":
                return True, False
        return self.clock() >= self.end, CONTROL in ready

    def result(self) -> Optional[str]:
        """What is wrong with it; None: nothing."""
        late = self.clock() >= self.end
        self.extension.kill(self.pidfd)
        os.close(self.pidfd)
        os.close(self.fd)
        if self.said:
            return None if self.said == b"ok" else self.said.decode("utf-8", "replace")
        why = f"that takes longer than {TRIAL_SECONDS} s" if late else "that ends the interpreter"
        return f"'{self.name}' is not imported ahead of calls: {why}"


def is_setup(setup: Any) -> bool:
    """Whether the parts of it that are ours are of their kind."""
    return isinstance(setup, dict) and setup.get("version") == 1 and isinstance(setup.get("initializer", {}), dict) and all(
        isinstance(words, list) and all(isinstance(word, str) for word in words)
        for words in (setup.get("path", []), setup.get("preload", [])))


class Zygote:
    def __init__(self, extension: Any, harness: Any, setup: Dict[str, Any]) -> None:
        self.extension, self.harness, self.config = extension, harness, setup
        about = extension.join(CONTROL)
        self.config["result_bytes"] = about["result_bytes"]
        self.config["bare"] = about["bare"]
        self.guard = Guard(Places(about["writable"], about["inodes"]))
        self.occupant: Any = None  # as all are to be, but for what each makes of itself
        self.hidden = {name for name in os.environb if not name[:1].isalpha()}  # see launch/heeded.h

    def prepare(self, learned: Sequence[str], left_out: Sequence[str]) -> None:
        """Imports all that is wanted ahead of calls. One that ends us is known to the supervisor by its name."""
        self.guard.begin()
        enter_site(self.guard.places)
        if self.guard.refused:
            self.extension.tell(f"'{self.guard.refused}' lies where calls may write, so neither site nor a .pth file imports it")
        hindrance = find_hindrance(self.extension)
        if hindrance:
            self.extension.fail(f"a .pth file or a sitecustomize {hindrance}")
        sys.path += [folder for folder in self.config.get("path", ()) if folder not in sys.path]
        first = self.config.get("initializer", {}).get("modules", ())
        for name in dict.fromkeys([*ALWAYS, *self.config.get("preload", ()), *first, *learned]):
            if name in left_out or name in sys.modules:
                continue
            self.extension.loads(name)
            try:
                load(name, self.guard)
            except Failed as problem:
                is_wanted = name in self.config.get("preload", ())  # by the caller, and not learned
                (self.extension.warn if is_wanted else self.extension.tell)(str(problem))
            hindrance = find_hindrance(self.extension)
            if hindrance:
                self.extension.fail(f"importing '{name}' ahead of calls {hindrance}")
        self.initialize(left_out)
        self.extension.loads("")

    def initialize(self, left_out: Sequence[str]) -> None:
        """Calls an initializer, if a fork has all of what it does, and it can read nothing that a call wrote. Else
        occupants call it: where that shows too late, those of the next zygote."""
        wanted, part = self.config.get("initializer"), sys.modules[f"{PACKAGE}.initialize"]
        if not wanted or part.NAME in left_out or self.config["bare"] or self.guard.places.paths:
            return
        self.extension.loads(part.NAME)
        self.extension.turn_home()  # what it leaves running must not outlive the program
        with Alone():
            problem = part.try_once(wanted, lambda: find_hindrance(self.extension))
        if problem:
            self.extension.fail(problem)
        del self.config["initializer"]

    def warm_up(self) -> None:
        """What occupants would do each for itself."""
        self.harness.warm_up(self.config)
        self.occupant = self.harness.Occupant(sys.modules[f"{PACKAGE}.talk"].Talk(CALL), self.config, self.config.get("initializer"))
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that what a call printed is told however it ends
        settle()

    def learn(self, name: str) -> None:
        """For real, since a child could. Whoever has it already has nothing to do."""
        problem: Optional[str] = None
        try:
            load(name, self.guard)
        except Failed as failure:
            problem = str(failure)
        hindrance = find_hindrance(self.extension)  # of one that failed, too: what it did stays done
        if hindrance:
            self.extension.fail(f"importing '{name}' ahead of calls {hindrance}")
        self.harness.look_around()
        settle()
        self.extension.learned(problem)

    def serve(self) -> None:
        """Obeys orders; returns in an occupant."""
        trial: Optional[Trial] = None
        while True:
            if trial is None:
                name = self.extension.next()
            else:
                over, ordered = trial.wait()
                if over:
                    problem = trial.result()
                    if problem:
                        self.extension.learned(problem)
                    else:
                        self.learn(trial.name)
                    trial = None
                name = self.extension.next(False) if ordered and not over else ""
            if name is None:
                return
            if name in sys.modules:
                self.extension.learned()
            elif name and trial is None:
                try:
                    trial = Trial(self.extension, self.guard, name)
                except OSError as error:
                    self.extension.learned(f"'{name}' is not imported ahead of calls: {describe(error)}")

    def occupy(self) -> NoReturn:
        self.guard.end()
        if self.config["bare"] or self.hidden:
            self.see_environment()
        self.harness.main(self.occupant, self.extension)

    def see_environment(self) -> None:
        """C's environment was written to: what names code is shown; a bare cell's private folder is its own."""
        told = dict(variable.split(b"=", 1) for variable in self.extension.environment() if b"=" in variable)
        for name in self.hidden.difference(told):
            del os.environb[name]
        for name, value in told.items():
            if os.environb.get(name) != value:
                os.environb[name] = value
        tempfile: Any = sys.modules.get("tempfile")
        if tempfile:
            tempfile.tempdir = None


def main(argv: List[str]) -> None:
    import json

    for variable in ("VITRO_ZYGOTE", "LD_BIND_NOW"):
        os.environ.pop(variable, None)
    learned = [word[1:] for word in argv[2:] if word.startswith("+")]
    left_out = [word[1:] for word in argv[2:] if word.startswith("-")]
    try:
        setup = json.loads(argv[1])
    except (IndexError, ValueError):
        setup = None
    extension, harness = load_parts(os.path.dirname(os.path.abspath(__file__)))
    zygote = Zygote(extension, harness, setup if is_setup(setup) else {})
    if not zygote.config.get("version"):
        extension.fail("the setup of a pool of python is no JSON object of version 1 with lists of texts as path and "
                       "preload")
    sys.argv = [""]
    sys.modules["__main__"] = ModuleType("__main__")  # what calls see is not this
    try:
        zygote.prepare(learned, left_out)
    except Exception as error:
        extension.fail(describe(error))
    zygote.warm_up()
    extension.ready()
    zygote.serve()
    zygote.occupy()


if __name__ == "__main__":
    try:
        main(sys.argv)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
