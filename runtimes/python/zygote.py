# SPDX-License-Identifier: Apache-2.0
"""The whole life of a Python zygote: INTERPRETER -I -S -B zygote.py SETUP [+MODULE | -MODULE]...

The supervisor executes it with its control socket at descriptor 3. It loads what vitro itself needs while it
still sees the caller's files; joins the hull, from where it sees no more than a cell does, and nothing that calls
can write; imports what the caller wants to have ahead of calls; and then forks occupants, each into a cell of its
own. It never runs anything of a call. Where calls can write, and that cannot be kept from it, it imports nothing of
the caller's.

SETUP is JSON: {"version": 1, "mode": ..., "path": [folders], "preload": [modules], ...}. +MODULE was learned by
a zygote before this one. -MODULE ended one while it was imported, and is left out.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from types import ModuleType
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

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
JOINED_SECONDS = 0.1  # that a thread may take to be gone: who has joined it waited for Python's part of it alone
LEFT_OUT_MAX = 8  # for failing with native code; a pool that leaves out more than 16 gives up
PROBLEM_BYTES = 400
NAME_BYTES = 255  # that the supervisor keeps of a module's name
UNKEPT = "calls may write here, and this cannot be kept from what is imported ahead of them"


class Writable(BaseException):
    """Something to load lies where a call can write. No `except Exception` makes it good."""


class Covered:
    """What calls can write: the zygote's mounts have empty folders in its place. No module gets anything from there, whatever it
    does; this is for the others, which would come to be without a part of theirs that calls have. Who asks for one is left to calls."""

    def __init__(self, places: Sequence[Tuple[str, int]]) -> None:
        self.places = places  # with descriptors of what is covered; -1: of a file
        self.device = next(filter(None, map(self.find_device, places)), -1)  # all that covers is of one tmpfs
        self.folders: Dict[str, Optional[Tuple[int, str]]] = {}
        self.refused: Optional[str] = None  # the first one
        self.suffixes: List[str] = []

    def begin(self, extension: Any) -> None:
        """From here on, and until an occupant is sealed."""
        if not self.places:
            return  # and nobody pays for being asked
        self.suffixes = ["", *__import__("importlib.machinery").machinery.all_suffixes()]
        extension.watch(self.see_open)

    @staticmethod
    def find_device(place: Tuple[str, int]) -> int:
        with contextlib.suppress(OSError):  # somebody has removed it
            return os.stat(place[0]).st_dev
        return 0

    def refuse(self, why: str) -> NoReturn:
        self.refused = self.refused or why
        raise Writable(why)

    def hide(self, path: str) -> bool:
        """Whether a path leads under a cover, though nothing is there."""
        path = os.path.realpath(path)
        while True:
            with contextlib.suppress(OSError, ValueError):
                return os.stat(path).st_dev == self.device
            if path == os.path.dirname(path):
                return False
            path = os.path.dirname(path)

    def see_open(self, file: Any, *_: Any) -> None:
        with contextlib.suppress(TypeError):  # a descriptor
            path = os.fsdecode(file)
            if self.hide(path):
                self.refuse(f"'{path}' lies where calls may write")

    def find_folder(self, path: str) -> Optional[Tuple[int, str]]:
        """What a folder of sys.path is, below one that is covered."""
        path = os.path.realpath(path)
        for place, fd in self.places:
            if fd >= 0 and (path + "/").startswith(place + "/"):
                return fd, path[len(place) + 1:]
        return None

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]  # it has nothing to find again by importlib.reload()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ValueError):  # somebody did
            sys.meta_path.remove(self)  # type: ignore[arg-type]

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> None:
        """While a module is loaded, before all finders: one that calls would find under a cover is not to be another one, or none."""
        part = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            if folder not in self.folders:
                self.folders[folder] = self.find_folder(folder)
            found = self.folders[folder]
            for suffix in self.suffixes if found else ():
                with contextlib.suppress(OSError):
                    os.stat(os.path.join(found[1], part + suffix), dir_fd=found[0])  # type: ignore[index]
                    self.refuse(f"'{os.path.join(folder, part + suffix)}' lies where calls may write")

    def forget_finders(self) -> None:
        """Of folders that calls have, and that were empty, or not there."""
        cache = sys.path_importer_cache
        for folder in [folder for folder in cache if cache[folder] is None or self.hide(folder)]:
            del cache[folder]


class Failed(Exception):
    """A module was not imported, and everything is as it was. has_native: but for native code that it brought along, and that no
    process can load twice, as numpy's; calls could not import it any more."""

    def __init__(self, name: str, why: str, has_native: bool) -> None:
        super().__init__(f"'{name}' is not imported ahead of calls: {why}")
        self.why, self.has_native = why, has_native


def describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= PROBLEM_BYTES else text[:PROBLEM_BYTES] + "..."


def forget(before: Dict[str, ModuleType]) -> bool:
    """As far as it can be: what a module did elsewhere stays done. Whether that is native code which is not Python's own."""
    new = [name for name in sys.modules if name not in before]
    files = [str(getattr(sys.modules.pop(name), "__file__", None)) for name in new]
    return any(file.endswith(".so") and "/lib-dynload/" not in file for file in files)


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


def load(name: str, covered: Covered) -> None:
    """Imports a module; raises Failed if that does not work, or one of its parts lies where calls write."""
    before = dict(sys.modules)
    covered.refused = None
    try:
        if len(name.encode()) > NAME_BYTES or not all(part.isidentifier() for part in name.split(".")):
            raise ImportError(f"'{name}' is no name of a module")
        with Alone(), covered:
            __import__(name)
        if covered.refused:
            raise Writable(covered.refused)
    except BaseException as error:
        raise Failed(name, describe(error), forget(before)) from None


def has_one_thread_soon(extension: Any) -> bool:
    import time

    end = time.monotonic() + JOINED_SECONDS
    while extension.threads() != 1 and time.monotonic() < end:
        time.sleep(0.001)
    return bool(extension.threads() == 1)


def find_hindrance(extension: Any) -> Optional[str]:
    """What a module or an initializer did, that forks cannot have each for itself; None: nothing."""
    if extension.threads() != 1 and not has_one_thread_soon(extension):
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


def enter_site() -> None:
    """The site-packages of the venv or the prefix, and their .pth files; none of the user's own."""
    site: Any = __import__("site")
    add_file = site.addpackage

    def add_safe_file(folder: str, name: str, known: Any) -> Any:
        with contextlib.suppress(Writable):  # it, or what one of its lines reads
            return add_file(folder, name, known)
        return known

    site.addpackage = add_safe_file
    try:
        with contextlib.suppress(Writable):  # sitecustomize, which comes last
            site.main()
    finally:
        site.addpackage = add_file


class Trial:
    """A module that is imported in a child first, which may hang, crash or start threads as it likes."""

    def __init__(self, extension: Any, covered: Covered, name: str) -> None:
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
            self._try(covered, theirs)
        os.close(theirs)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)
        self.poll.register(CONTROL, select.POLLIN)
        self.said = b""

    def _try(self, covered: Covered, fd: int) -> NoReturn:
        said = "ok"
        try:
            load(self.name, covered)
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
        self.loads_ahead: bool = about["loads_ahead"]
        self.covered = Covered(about["writable"] if self.loads_ahead else ())
        self.occupant: Any = None  # as all are to be, but for what each makes of itself
        self.hidden = {name for name in os.environb if not name[:1].isalpha()}  # see launch/heeded.h

    def prepare(self, learned: Sequence[str], left_out: Sequence[str]) -> None:
        """Imports all that is wanted ahead of calls. One that ends us is known to the supervisor by its name."""
        self.extension.loads("")  # it runs; what takes long from here on is the caller's
        if not self.loads_ahead:
            for name in self.config.get("preload", ()):
                self.extension.warn(f"'{name}' is not imported ahead of calls: {UNKEPT}")
            for name in ALWAYS:
                __import__(name)
            return
        self.covered.begin(self.extension)
        self.find_modules()
        if self.covered.refused:
            self.extension.tell(f"left out of site, .pth files and sitecustomize: {self.covered.refused}")
        hindrance = find_hindrance(self.extension)
        if hindrance:
            self.extension.fail(f"a .pth file or a sitecustomize {hindrance}")
        first = self.config.get("initializer", {}).get("modules", ())
        for name in dict.fromkeys([*ALWAYS, *self.config.get("preload", ()), *first, *learned]):
            if name in left_out or name in sys.modules:
                continue
            self.extension.loads(name)
            try:
                load(name, self.covered)
            except Failed as problem:
                if problem.has_native and len(left_out) < LEFT_OUT_MAX:
                    self.extension.fail(problem.why)
                is_wanted = name in self.config.get("preload", ())  # by the caller, and not learned
                (self.extension.warn if is_wanted else self.extension.tell)(str(problem))
            hindrance = find_hindrance(self.extension)
            if hindrance:
                self.extension.fail(f"importing '{name}' ahead of calls {hindrance}")
        self.initialize(left_out)
        self.extension.loads("")
        self.covered.forget_finders()

    def find_modules(self) -> None:
        enter_site()
        sys.path += [folder for folder in self.config.get("path", ()) if folder not in sys.path]

    def initialize(self, left_out: Sequence[str]) -> None:
        """Calls an initializer, if a fork has all of what it does, and it can read nothing that a call wrote. Else
        occupants call it: where that shows too late, those of the next zygote."""
        wanted, part = self.config.get("initializer"), sys.modules[f"{PACKAGE}.initialize"]
        if not wanted or part.NAME in left_out or self.config["bare"] or self.covered.places:
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
        self.extension.turn_home()  # from the cell that was entered last, where a program is not to be
        try:
            load(name, self.covered)
        except Failed as failure:
            if failure.has_native:
                self.extension.fail(failure.why)
            problem = str(failure)
        hindrance = find_hindrance(self.extension)  # of one that failed, too: what it did stays done
        if hindrance:
            self.extension.fail(f"importing '{name}' ahead of calls {hindrance}")
        self.covered.forget_finders()
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
            elif name and not self.loads_ahead:
                self.extension.learned(f"'{name}' is not imported ahead of calls: {UNKEPT}")
            elif name and trial is None:
                try:
                    trial = Trial(self.extension, self.covered, name)
                except OSError as error:
                    self.extension.learned(f"'{name}' is not imported ahead of calls: {describe(error)}")

    def occupy(self) -> NoReturn:
        if self.config["bare"] or self.hidden:
            self.see_environment()
        if not self.loads_ahead:
            self.find_modules()
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
