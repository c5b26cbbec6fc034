# SPDX-License-Identifier: Apache-2.0
"""A tiny harness for black-box tests of vitro: registration, TAP, and a look at what was left.

A test file registers functions with @test("promise") and ends with main(). A function that returns
passes; check() and friends fail it; skip("reason") skips it, visibly.

VITRO_BINARY is the command under test, VITRO_TEST_BIN the folder of vitro-escape, vitro-actor and
matrix/vitro-within.
An environment that is made for the tests (test/matrix) tells of itself by more variables:
VITRO_TEST_PREFIX is a command that vitro, and nothing else, is started with; VITRO_TEST_FLAGS are
flags for each `vitro run`; VITRO_TEST_PROC is a descriptor of a proc where /proc has none;
VITRO_TEST_PROTECTED says that mounts and host name are not the machine's, VITRO_TEST_NESTED that a cell
is around all.
"""

import contextlib
import ctypes
import errno
import functools
import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("VITRO_BINARY", str(ROOT / "build" / "vitro"))
BIN = os.environ.get("VITRO_TEST_BIN", str(ROOT / "build" / "test"))
ACTOR = os.path.join(BIN, "vitro-actor")
ESCAPE = os.path.join(BIN, "vitro-escape")
APART = os.path.join(BIN, "vitro-apart")
WITHIN = os.path.join(BIN, "matrix", "vitro-within")  # runs a command on a poorer machine
PREFIX = shlex.split(os.environ.get("VITRO_TEST_PREFIX", ""))
FLAGS = shlex.split(os.environ.get("VITRO_TEST_FLAGS", ""))
MARK = "VITRO_TEST_MARK"
IS_ROOT = os.geteuid() == 0
# What lets a program signal itself: where processes are only watched, that is denied too.
SIGNALS = {"processes": ("pidns", "landlock-scope")}
TEST_SECONDS = int(os.environ.get("VITRO_TEST_SECONDS", "60"))

_tests = []
_known = set()  # pids of processes that tests started on purpose
_ended = set()  # and of others that came to us as orphans, as supervisors do, and are no more


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class TooLong(BaseException):
    """Not an Exception, so that no test swallows it."""


def test(name, *, root=False, needs=(), holds=None):
    """Registers a test. root: it has a meaning only for root; needs: programs that must exist;
    holds: property → mechanism that the promise stands on, as {"files": "mountns"}."""

    def register(function):
        def run():
            if root and not IS_ROOT:
                skip("needs root")
            for program in needs:
                if not shutil.which(program):
                    skip(f"{program} is not installed")
            need_held(holds or {})
            function()

        _tests.append((name, run))
        return function

    return register


def skip(reason):
    raise Skipped(reason)


def check(condition, message):
    if not condition:
        raise Failed(message() if callable(message) else str(message))


def check_equal(got, want, what, call=None):
    if got != want:
        raise Failed(f"{what}: got {got!r}, want {want!r}" + (f"\n{call}" if call else ""))


def check_in(part, whole, what, call=None):
    if part not in whole:
        raise Failed(f"{what}: {part!r} is not in {whole!r}" + (f"\n{call}" if call else ""))




def _read(path, folder=None):
    """Without an object around it: after each call this reads some files of each process."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    parts = []
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(parts)


@functools.lru_cache(maxsize=None)
def _proc_folder():
    given = os.environ.get("VITRO_TEST_PROC")
    return int(given) if given else os.open("/proc", os.O_RDONLY | os.O_CLOEXEC)


def proc(path):
    """The bytes of a file of proc, b"" where it cannot be read. Works where /proc is empty, too."""
    return _read(path, _proc_folder())


def children(pid):
    """The pids of a process's children, [] where proc does not show them."""
    return [int(word) for word in proc(f"{pid}/task/{pid}/children").split()]


def init_of(pid):
    """The init of a running vitro: the child that has children itself, as what looks on has not."""
    need_shown()
    return next((child for child in children(pid) if children(child)), None)


def _pids():
    return {name for name in os.listdir(_proc_folder()) if name.isdigit()}


def _process_table(pids):
    """pid → (parent, state) of everything that can be seen."""
    table = {}
    for name in pids:
        if stat := proc(f"{name}/stat"):
            state, parent, _ = stat[stat.rindex(b")") + 2 :].split(maxsplit=2)
            table[int(name)] = (int(parent), state.decode())
    return table


def _descendants(table):
    mine, grown = {os.getpid()}, True
    while grown:
        more = {p for p, (parent, _) in table.items() if parent in mine and p not in _known} - mine
        mine |= more
        grown = bool(more)
    return mine - {os.getpid()}


def processes_of(token, older=frozenset()):
    """Living processes that carry the token, or that descend from this test without being known. older: who cannot carry
    it, since it was there before the token."""
    pids = _pids()
    table = _process_table(pids)
    found = _descendants(table)
    for pid in map(int, pids - older):
        if pid in table and pid != os.getpid() and pid not in _known:
            text = proc(f"{pid}/cmdline") + b"\0" + proc(f"{pid}/environ")
            if token.encode() in text:
                found.add(pid)
    living = set()
    for pid in found:
        parent, state = table[pid]
        if state not in "ZX":
            living.add(pid)
        elif parent == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            _ended.add(pid)
    return {pid: proc(f"{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
            for pid in living}


def own_cgroups():
    """The folders of this process's own cgroups, in every hierarchy that is mounted; on v2 also where vitro goes instead: their
    parent, and for root a folder of its own below the root."""
    own = [line.split(":", 2) for line in proc("self/cgroup").decode().splitlines()]
    for line in _mounts():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        point = fields.split()[4]
        for _, controllers, path in own:
            if kind == "cgroup2" and controllers == "":
                yield from (point + path, os.path.dirname(point + path), point + "/vitro")
            elif kind == "cgroup" and controllers and controllers in options:
                yield point + path


def cgroups_left(pid):
    """Folders that vitro with that pid, or an orphan of ours that is no more, has in our own cgroups. Other tests
    beside us kill theirs, and what those left is there until some call sweeps it."""
    left = set()
    for folder in set(own_cgroups()):
        for path, names, _ in os.walk(folder):
            for name in names:
                match = re.match(r"vitro-(\d+)\b", name)
                if match and (int(match[1]) == pid or int(match[1]) in _ended and not proc(f"{match[1]}/stat")):
                    left.add(os.path.join(path, name))
            names[:] = [n for n in names if n.startswith("vitro")]
    return left


def _is_in_use(name):
    """Whether a name is that of a self-test, or of a unit test's cell, which still runs beside this."""
    match = re.match(r"vitro-(?:self|stage)-(\d+)-", name)
    return match and os.path.exists(f"/proc/{match[1]}")


def _temporary_files():
    """Names that could be vitro's in the usual places, and are ours."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/run", "/dev/shm", os.environ.get("XDG_RUNTIME_DIR", "")):
        with contextlib.suppress(OSError), os.scandir(folder or "/nowhere") as entries:
            for entry in entries:
                if ("vitro" in entry.name and not re.search("test|bench|pack", entry.name)
                        and not _is_in_use(entry.name)):
                    with contextlib.suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                            found.add(entry.path)
    return found


def _mounts():
    return set(proc("self/mountinfo").decode().splitlines())


class Before:
    """What was there before a call, to compare with what is there a second after it."""

    def __init__(self):
        self.token = uuid.uuid4().hex
        self.pids = _pids()
        self.mounts = _mounts()
        self.files = _temporary_files()
        self.cgroups = cgroups_left(0)

    def left(self, pid, cgroups=True):
        found = []
        living = processes_of(self.token, self.pids)
        if living:
            found.append(f"processes {living}")
        if _mounts() - self.mounts:
            found.append(f"mounts {_mounts() - self.mounts}")
        if _temporary_files() - self.files:
            found.append(f"files {_temporary_files() - self.files}")
        if cgroups and cgroups_left(pid) - self.cgroups:
            found.append(f"cgroups {cgroups_left(pid) - self.cgroups}")
        return "; ".join(found)

    def check_nothing_left(self, pid, cgroups=True, seconds=1.0):
        end = time.monotonic() + seconds
        while found := self.left(pid, cgroups):
            if time.monotonic() > end:
                raise Failed(f"{seconds:g} s after the call was left: {found}")
            time.sleep(0.02)




class Call:
    """A call that has ended."""

    def __init__(self, args, code, out, err, pid, seconds):
        self.args, self.code, self.pid, self.seconds = args, code, pid, seconds
        self.out_bytes, self.err_bytes = out, err
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Failed(f"the result is not JSON: {error}\n{self}") from None

    def __str__(self):
        def short(text):
            return text if len(text) < 3000 else text[:1500] + " [...] " + text[-1500:]

        return (f"$ {' '.join(map(str, self.args))}\nexit {self.code} after {self.seconds:.2f} s\n"
                f"stdout: {short(self.out)}\nstderr: {short(self.err)}")


def vitro_command(*args):
    """The words that start vitro here. The environment's flags come first: a test's own win."""
    args = [*map(str, args)]
    if args[:1] == ["run"]:
        args[1:1] = FLAGS
    return [*PREFIX, BINARY, *args]


def _marked(args, token):
    if args[:1] == ("run",) and token:
        args = ("run", "--env", f"{MARK}={token}", *args[1:])
    return vitro_command(*args)


def kill_group(process):
    """Ends a process that was started with start_new_session, and its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def started(args, **options):
    """A process of the test's own; ended at the end, with its group."""
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen([str(a) for a in args], start_new_session=True, **options)
    _known.add(process.pid)
    try:
        yield process
    finally:
        kill_group(process)
        _known.discard(process.pid)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


def run(args, stdin=subprocess.DEVNULL, timeout=30, **options):
    """Runs any command; a hang fails the test."""
    data = None
    if isinstance(stdin, (bytes, str)):
        data, stdin = stdin if isinstance(stdin, bytes) else stdin.encode(), subprocess.PIPE
    start = time.monotonic()
    with started(args, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 **options) as process:
        try:
            out, err = process.communicate(data, timeout)
        except subprocess.TimeoutExpired:
            kill_group(process)
            out, err = process.communicate()
            call = Call(args, "none", out, err, process.pid, time.monotonic() - start)
            raise Failed(f"it hangs: no end after {timeout} s\n{call}") from None
        return Call(args, process.returncode, out, err, process.pid, time.monotonic() - start)


def vitro(*args, stdin=subprocess.DEVNULL, timeout=30, leaks=True, mark=True, prefix=(), **options):
    """Runs vitro to its end and looks at what it left. prefix: a command to start it with."""
    before = Before()
    call = run([*prefix, *_marked(args, mark and before.token)], stdin, timeout, **options)
    if leaks:
        before.check_nothing_left(call.pid)
    return call


def vitro_json(*args, **options):
    """vitro run --json …: the result, with the call as its "call"."""
    check(args[0] == "run", "vitro_json is for run")
    call = vitro("run", "--json", *args[1:], **options)
    result = call.json
    result["call"] = call
    return result


@contextlib.contextmanager
def vitro_started(*args, mark=True, prefix=(), **options):
    """vitro while it runs: yields the process and what was there before it."""
    before = Before()
    options.setdefault("stderr", subprocess.DEVNULL)
    with started([*prefix, *_marked(args, mark and before.token)], **options) as process:
        yield process, before


@contextlib.contextmanager
def folder(parent=None, writable=False):
    """A folder of the test's own, which everybody may look into, removed afterwards. writable: a cell
    that is granted it can write there, whoever its user is."""
    try:
        path = tempfile.mkdtemp(prefix="test-", dir=parent)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.ENOENT):  # ENOENT: none of the usual places
            raise
        skip("no folder can be made here")
    os.chmod(path, 0o777 if writable and IS_ROOT and is_bare() else 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write(path, text, mode=0o644):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def raises(kind, function, *args, **kwargs):
    """What the function raises."""
    try:
        value = function(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"nothing was raised, and the value is {value!r}")


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return value


def can_connect(path):
    """Whether somebody listens at a socket: it is there a moment before."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path) == 0


@contextlib.contextmanager
def binary_for_all():
    """vitro where every user can start it, for tests by root that call it as another."""
    global BINARY
    kept = BINARY
    with tempfile.TemporaryDirectory(prefix="test-") as place:
        os.chmod(place, 0o755)
        BINARY = shutil.copy(kept, place)
        try:
            yield
        finally:
            BINARY = kept


def sanitized():
    """Whether the command was built with sanitizers, whose memory is not vitro's own."""
    return b"__asan_init" in _read(BINARY)


class Isolation(dict):
    """property → (mechanism, grade) of a call here; refused: why the default policy is, or None."""

    refused = None


def read_holdings(text):
    """The same from the table of `vitro explain`; a property that is not asked for is not there."""
    table = re.search(r"^PROPERTY +HELD BY +GRADE.*\n((?:.+\n)*)", text, re.MULTILINE)
    # A note that goes on in the next line is indented there.
    rows = [line.split()[:3] for line in (table[1] if table else "").splitlines() if line[0] != " "]
    return {name: (mechanism, grade) for name, mechanism, grade in rows if mechanism != "-"}


@functools.lru_cache(maxsize=None)
def isolation():
    """What holds here, by vitro's own word: under require=best-effort where the default policy is
    refused, and empty where vitro refuses to run anything at all."""
    report = run(vitro_command("doctor", "--json")).json
    found = Isolation(read_holdings(run(vitro_command("explain", "--cpu-time", "60s")).out))
    if not report["ok"]:
        found.refused = report["refused"] or "doctor says that it cannot make cells"
    return found


def need_held(holds):
    """Skips the test unless each property is held by the mechanism, or one of those, that it names;
    "*" is any that holds."""
    for name, wanted in holds.items():
        mechanism, grade = isolation().get(name, ("none", "none"))
        wanted = {wanted} if isinstance(wanted, str) else {*wanted}
        held = {mechanism, *mechanism.split("+"), "*" if grade != "none" else "none"}
        if not wanted & held:
            skip(f"{name}: held by {mechanism} here, which does not promise this")


def need_power(number, name):
    """Skips a test whose own work takes a capability that root lacks here."""
    mask = int(re.search(r"CapEff:\s*(\w+)", proc("self/status").decode())[1], 16)
    if not mask >> number & 1:
        skip(f"the test itself needs {name}")


def need_proc():
    """Skips a test whose programs read /proc themselves, or go by /dev/fd, which leads there."""
    if not os.path.exists("/proc/self/stat"):
        skip("nothing is mounted at /proc")


def need_shown():
    """Skips a test that looks at a cell's init, which is not dumpable."""
    if not proc("1/stat"):
        skip("proc hides what may not be traced")


def need_file_size(size):
    """Skips a test that makes, or lets a cell make, so large a file."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if most != resource.RLIM_INFINITY and most < size:
        skip(f"files may have {most >> 20} MB at most")


def need_alone():
    """Skips a test of what makes a cell slow to measure, inside a cell that is itself measured."""
    if os.environ.get("VITRO_TEST_NESTED"):
        skip("the cell around the tests would be ended for it")


def open_terminal():
    """A new terminal: the end of who types and reads, and the programs' end."""
    try:
        return pty.openpty()
    except OSError:
        skip("there are no terminals")


def is_confined():
    """Whether this is a place that denies honest programs what a machine of one's own gives."""
    if not os.path.exists("/proc/self"):
        return True
    status = dict(line.split(":", 1) for line in proc("self/status").decode().splitlines())
    return status["Seccomp"].strip() != "0" or (IS_ROOT and not int(status["CapEff"], 16) >> 21 & 1)


def is_bare():
    """Whether cells here are made without namespaces."""
    return isolation().get("processes", ("pidns",))[0] != "pidns"


def need_modes():
    """Skips a test whose programs change modes, which a filter denies where the cell is of the
    caller's own user, nothing else keeps it from the caller's files, and vitro cannot do it instead."""
    said = " ".join(run(vitro_command("explain", "--set", "require=best-effort")).out.split())
    if denied := re.search(r"modes, owners and times cannot be changed( \([^)]*\))?", said):
        skip(f"in a cell without namespaces: {denied[0]}")


def need_broker():
    """Skips a test of sockets that the supervisor connects, where another filter has the one listener, or
    there is no filter at all."""
    need_held({"syscalls": "*"})
    said = " ".join(run(vitro_command("explain", "--read", "/srv", "--set", "require=best-effort")).out.split())
    if "network: no AF_UNIX sockets" in said:
        skip("nobody can connect in a cell's stead here")


def landlock_abi():
    """0 where there is none."""
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1))




def _alarm(_signal, _frame):
    raise TooLong(f"the test ran longer than {TEST_SECONDS} s")


def _comment(text):
    for line in str(text).splitlines():
        print("#", line.encode("ascii", "backslashreplace").decode())


def _run_one(number, name, function):
    signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)
    try:
        function()
        print(f"ok {number} - {name}")
        return True
    except Skipped as reason:
        print(f"ok {number} - {name} # SKIP {reason}")
        return True
    except (Failed, TooLong) as failure:
        print(f"not ok {number} - {name}")
        _comment(failure)
    except Exception:
        print(f"not ok {number} - {name}")
        _comment(traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.flush()
    return False


def protect_machine():
    """Gives root its own mounts and host name, so that a vitro that does not hold does no harm."""
    if not IS_ROOT or os.environ.get("VITRO_TEST_PROTECTED"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_names, private = 0x00020000, 0x04000000, 0x40000 | 0x4000
    if libc.unshare(new_mounts | new_names) or libc.mount(None, b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "the machine cannot be protected from the tests")


def main():
    protect_machine()
    # Orphans of a vitro that died come to us, so that none can hide.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    os.umask(0o022)
    signal.signal(signal.SIGALRM, _alarm)
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    chosen = [(name, function) for name, function in _tests if pattern.search(name)]
    print(f"1..{len(chosen)}", flush=True)
    good = [_run_one(n, name, function) for n, (name, function) in enumerate(chosen, 1)]
    sys.exit(0 if all(good) else 1)
