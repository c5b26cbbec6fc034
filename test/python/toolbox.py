# SPDX-License-Identifier: Apache-2.0
"""Functions that tests call in cells, by reference."""

import asyncio
import ctypes
import dataclasses
import logging
import os
import random
import signal
import sys
import subprocess
import threading
import time
import warnings

state = []  # a call that finds it changed sees what another did


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Evil:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def add(a, b):
    return a + b


def measure(point: Point, factor: float = 1.0):
    return [point.x * point.x + point.y * point.y, factor]


def scale(value: int, timeout: int) -> int:
    """A tool with an argument of a name that calls have, too."""
    return value * timeout if timeout else value // timeout


def echo(*args, **kwargs):
    return args, kwargs


async def add_later(a, b):
    await asyncio.sleep(0.001)
    return a + b


def size(data):
    return len(data)


def produce(size):
    return b"x" * size


def speak(text):
    print(text)
    print(text, file=sys.stderr)
    os.write(1, text.encode() + b"\n")
    return "value"


def log_lines(count):
    for number in range(count):
        logging.getLogger("mine").warning("line %d", number)


def fail(message):
    raise ValueError(message)


def make_evil(path):
    return Evil(path)


def make_point(x, y):
    return Point(x, y)


def leave():
    sys.exit(3)


def give_more(n):
    """Of its own process, makes the chunk that it is in larger."""
    frame = sys._getframe()
    while n == 1 and frame is not None:
        if "rows" in frame.f_locals:
            frame.f_locals["rows"].append((0,))
            break
        frame = frame.f_back
    return n


def leave_at_once(code):
    os._exit(code)


def read_null():
    ctypes.string_at(0)


def kill_self(number):
    os.kill(os.getpid(), number)
    time.sleep(30)


def leave_thread():
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "done"


def leave_grandchild(mark):
    """A process that is nobody's child any more, in a session of its own, with all descriptors open."""
    said, says = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(says, str(os.getpid()).encode())
            os.execvp("sleep", ["sleep", mark])
        os._exit(0)
    os.close(says)
    os.wait()
    with open(said) as whole:  # up to its end, which comes when it is another program
        pid = int(whole.read())
    os.kill(pid, 0)  # raises if there is none
    return True


def read(path):
    with open(path) as file:
        return file.read()


def use_cpu(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def wait_within(seconds, *, timeout=None):
    return seconds, timeout


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def spin():
    while True:
        pass


def fill_memory():
    data = []
    while True:
        data.append(bytearray(os.urandom(1 << 20)))


def look():
    """What a call must not find as another one left it."""
    return {"state": list(state), "env": os.environ.get("LEFT"), "cwd": os.getcwd(), "tmp": sorted(os.listdir("/tmp")),
            "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1], "umask": os.umask(0o22),
            "handler": signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL, "filters": len(warnings.filters),
            "path": "/left" in sys.path, "module": "wave" in sys.modules, "level": logging.getLogger().level,
            "recursion": sys.getrecursionlimit(), "builtin": hasattr(__builtins__, "left") or "left" in str(__builtins__)[:0]}


def disturb():
    """Leaves traces of all kinds."""
    state.append("left")
    os.environ["LEFT"] = "left"
    with open("/tmp/left", "w") as file:
        file.write("left")
    os.dup(1)
    os.open("/tmp", os.O_RDONLY)
    os.chdir("/")
    os.umask(0)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    warnings.simplefilter("ignore")
    sys.path.append("/left")
    import wave
    logging.getLogger().setLevel(1)
    sys.setrecursionlimit(54321)
    random.seed(1)
    return look(), wave.__name__


def draw():
    return random.random(), os.urandom(4)


prepared = []


def prepare(*values):
    prepared.extend(values)


def prepare_in_thread(*values):
    prepared.extend(values)
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def prepare_file(*values):
    prepared.append(open(os.path.join(os.environ.get("TMPDIR", "/tmp"), "prepared"), "w+"))
    prepared[0].write("".join(values))


def prepare_process(mark):
    subprocess.Popen(["sleep", mark], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                     start_new_session=True)
    prepared.append(mark)


def prepare_badly():
    raise KeyError("nothing works")


def see_prepared():
    return [value if isinstance(value, str) else value.fileno() > 2 for value in prepared], threading.active_count()


def note_times(seconds):
    start = time.time()
    time.sleep(seconds)
    return start, time.time()


class Unlucky(Exception):
    def __init__(self, text, number):
        super().__init__(f"{text} {number}")
        self.number = number


def be_unlucky():
    raise Unlucky("unlucky", 13)


def decode_badly():
    return b"\xff".decode()


def open_nothing():
    return open("/nowhere/at/all")


def stop_iterating():
    raise StopIteration("enough")


def divide(a, b):
    return a / b


def note_process(_):
    if not state:
        state.append(os.urandom(8))
    return state[0]


def count_up(_place):
    """A stamp that is another each time."""
    prepared.append(os.urandom(8).hex())


def see_stamp():
    return prepared[0]


def give(value):
    return value


def change(array):
    array[0] = 7
    return int(array[0])


def is_writable(array):
    return bool(array.flags.writeable)


def use_numpy(folder, expression):
    sys.path.append(folder)
    import numpy
    return eval(expression, {"np": numpy})
