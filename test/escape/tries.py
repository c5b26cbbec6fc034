# SPDX-License-Identifier: Apache-2.0
"""What is tried of vitro-escape, by act: with what arguments, where the control succeeds, and under which flags it is denied."""

import os
import sys
import termios
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import ESCAPE, IS_ROOT, WITHIN, is_bare
from world import SECRET

NAMESPACES = ["unshare", "-Urmpfuin", "--mount-proc"]
STAY = ["sh", "-c", '"$@"; exit $?', "sh"]  # a parent that stays, and is pid 1 of its namespace

# Where the control runs. "root": as we are, if that is root; "user": as an ordinary user.
CONTROLS = {
    "plain": [],
    "root": [],
    "user": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else [],
    "namespaces": NAMESPACES,
    "init": NAMESPACES + STAY,
    "group": NAMESPACES + ["setsid"] + STAY,  # the same, with a group of its own
    "child": STAY,
    "key": [ESCAPE, "with_key"],
    # A caller with a group beside its own, and the ordinary user with that group.
    "groups": ["setpriv", "--groups=4711"],
    "member": ["setpriv", "--reuid=65534", "--regid=65534", "--groups=4711"],
    "unlocked": [WITHIN, "--deny", "landlock_create_ruleset=ENOSYS", "--"],
    # A caller whose limits are wider than a cell's.
    # Callers who hand down what weakens, or is before others.
    "odd": ["setarch", "-R", "-Z"],
    "first": ["ionice", "-c1", "-n0"],
    "wide": ["prlimit", "--memlock=67108864", "--msgqueue=67108864", "--rtprio=50", "--nice=40"],
}


@dataclass
class Try:
    act: str
    args: str = ""  # words; {name} is filled in from the world
    control: str = "plain"
    control_args: str = None  # where they differ outside
    flags: str = ""
    setup: str = ""  # shell commands before the act, in the control's namespaces
    stdin: str = ""  # "folder", "file", "terminal"
    cwd: str = ""
    leak: bool = False  # descriptors 700 and 900 are left open
    maybe: bool = False  # this kernel or this user may not allow it even outside
    ends: str = ""  # statuses of the call, in words, that are a denial as well
    label: str = ""
    abi: int = 0  # of Landlock, that the denial stands on
    prefix: str = ""  # a control's command that vitro is started with too
    filtered: bool = False  # only the filter denies it, and so a profile may allow it
    holds: str = ""  # PROPERTY=MECHANISM words, where the group's own are not enough
    root: bool = False  # it has a meaning only for root
    cgroup: bool = False  # the denial stands on a cgroup that counts memory
    unless: str = ""  # not promised where one of the result's notes has these words


# Where the world is made; None: nowhere.
PARENT = next((path for path in ("/var/tmp", "/tmp") if os.access(path, os.W_OK)), None)
NO_DEVICES = bool(os.statvfs(PARENT or "/").f_flag & os.ST_NODEV)

FILES = [
    Try("read_absolute", "{secret}/file"),
    Try("read_absolute", "/etc/shadow", "root", label="a runtime file that only root may read"),
    Try("see_file", "{secret}/file", holds="files=mountns"),
    Try("read_dotdot", "{secret}/file"),
    Try("read_symlink", "{write} {secret}/file", flags="--write {write}"),
    Try("read_symlink_dotdot", "{write} {secret}/file", flags="--write {write}"),
    Try("read_hardlink", "{write} {secret}/file", flags="--write {write}"),
    Try("read_proc_root", "{secret}/file", "init"),
    Try("read_proc_cwd", "file", "init", cwd="{secret}"),
    Try("read_leaked_cwd", "file", cwd="{secret}"),
    Try("read_proc_self_cwd", "file", cwd="{secret}"),
    Try("read_leaked_folder", "700 file", leak=True),
    Try("read_leaked_folder_up", "700 secret/file", leak=True),
    Try("leaked_descriptor", leak=True),
    Try("read_stdin_folder", "file", stdin="folder"),
    Try("write_stdin_file", stdin="file"),
    Try("chmod_stdin_file", stdin="file"),
    Try("open_by_handle", "{read}/file", "root", flags="--read {read}"),
    Try("make_device", "{write}", "root", flags="--write {write}", maybe=NO_DEVICES),
    Try("make_block_device", "{write}", "root", flags="--write {write}"),
    Try("make_device", "{tmp}", "root", "{write}", label="in the private /tmp", maybe=NO_DEVICES),
    Try("make_whiteout", "{write}", "namespaces", flags="--write {write}",
        setup="mount -t tmpfs none {write}"),
    Try("make_whiteout", "{tmp}", "namespaces", "{write}", setup="mount -t tmpfs none {write}",
        label="in the private /tmp", holds="files=mountns syscalls=*"),
    Try("hold_lease", "{read}/file", flags="--read {read}", holds="syscalls=*"),
    Try("set_hint", "{read}/file", flags="--read {read}", holds="syscalls=*"),
    *(Try("ask_encryption", "{read} " + request, flags="--read {read}", label=label, holds="syscalls=*")
      for request, label in (("0x800c6613", "to set a policy"), ("0xc0506617", "to add a key"),
                             ("0xc0406618", "to remove a key"))),
    Try("open_device", maybe=True),
    Try("write_new", "{read}", flags="--read {read}"),
    Try("write_over", "{read}", flags="--read {read}"),
    Try("write_truncate", "{read}", flags="--read {read}"),
    Try("write_mode", "{read}", flags="--read {read}"),
    Try("write_times", "{read}", flags="--read {read}"),
    Try("write_xattr", "{read}", flags="--read {read}", maybe=True),
    Try("mode_absolute", "{secret}/file"),
    Try("times_absolute", "{secret}/file"),
    Try("mode_symlink", "{write} {secret}/file", flags="--write {write}"),
    Try("times_symlink", "{write} {secret}", flags="--write {write}"),
    Try("mode_dotdot", "{write} ../secret/file", flags="--write {write}"),
    Try("mode_descriptor", "{read}/file", flags="--read {read} --write {write}"),
    Try("times_descriptor", "{read}/file", flags="--read {read} --write {write}"),
    Try("mode_proc_fd", "{read}/file", flags="--read {read} --write {write}"),
    Try("mode_proc_root", "{secret}/file"),
    Try("owner_absolute", "{secret}/file", "user"),
    Try("owner_descriptor", "{read}/file", "user", flags="--read {read}"),
    Try("attribute_absolute", "{secret}/free", "user", maybe=True),
    Try("mode_race", "{write} {read}", flags="--read {read} --write {write}"),
    Try("write_unlink", "{read}", flags="--read {read}"),
    Try("write_fifo", "{read}/pipe", flags="--read {read}", unless="named pipes"),
    Try("write_fifo", "{read}/pipe", flags="--read {read}", prefix="unlocked", unless="named pipes",
        label="without Landlock", holds="files=mountns"),
    *(Try(act, place + "/pipe", control_args="{read}/pipe", unless="named pipes", label=label,
          flags=flags + ' --read {{"from":"{read}","to":"' + place + '"}}', holds="files=mountns")
      for act in ("write_fifo", "read_fifo")
      for place, flags, label in (("/tmp/below", "", "below the private /tmp"),
                                  ("{write}/held/inner", "--write {write}", "in a folder for writing"))),
    Try("write_rename_out", "{read} {write}", flags="--read {read} --write {write}"),
    Try("write_hardlink", "{read} {write}", flags="--read {read} --write {write}"),
    Try("replace_self"),
    Try("open_init_program", control="init"),
    Try("write_root", "/", control_args="{write}"),
    Try("give_away", "{write}", "root", flags="--write {write}"),
    Try("read_absolute", "{read}/group", "member", flags="--read {read}", prefix="groups",
        root=True, label="of a group that the caller is in"),
    Try("see_dotdot", "{secret}/file", holds="files=mountns"),
    Try("see_leaked_cwd", "file", cwd="{secret}"),
    Try("open_node", "{read}/node", flags="--read {read}", root=True, holds="files=mountns", maybe=NO_DEVICES),
    Try("drive_device", abi=5),
    Try("change_root_mode", "/", control_args="{write}"),
    Try("write_renamed_parent", "{write} held inner",
        flags='--write {write} --read {{"from":"{read}","to":"{write}/held/inner"}}',
        holds="files=mountns"),
    Try("name_handle", "{read}/file", flags="--read {read}", filtered=True),
    Try("spy_on_cache", "{read}/file", flags="--read {read}", maybe=True, filtered=True),
]

SETUID = [
    Try(act, "{write}", flags="--write {write}", maybe=act == "setuid_fchmodat2")
    for act in ("setuid_chmod", "setgid_chmod", "setuid_fchmod", "setuid_fchmodat",
                "setuid_fchmodat2", "setuid_open", "setuid_openat", "setgid_openat",
                "setuid_openat2", "setuid_creat", "setuid_mknod", "setuid_mknodat",
                "setuid_tmpfile")
] + [
    Try("setuid_chmod", "{write}", flags="--write {write} --set syscalls=strict",
        label="under the strict filter"),
    Try("plant_capability", "{write}", "namespaces", flags="--write {write}"),
    Try("plant_label", "{write}", flags="--write {write}", maybe=True, holds="syscalls=*"),
    Try("run_setuid", "/usr/bin/su", "user", maybe=True),
]

MOUNTS = [
    Try("mount_tmpfs", control="namespaces"),
    Try("mount_proc", control="namespaces", maybe=True),
    Try("mount_bind", control="namespaces"),
    Try("remount_writable", "{read}", "namespaces", flags="--read {read}",
        setup="mount --bind {read} {read} && mount -o remount,bind,ro {read}"),
    Try("mount_new", control="namespaces"),
    Try("clone_tree", control="namespaces"),
    Try("set_mount_attributes", "{read}", "namespaces", flags="--read {read}",
        setup="mount --bind {read} {read} && mount -o remount,bind,ro {read}"),
    Try("unmount", control="namespaces"),
    Try("change_root", control="namespaces"),
    Try("pivot", "{read}", "namespaces", flags="--read {read}",
        setup="mount --bind {read} {read}"),
    Try("open_tree_plain", filtered=True),
    Try("list_mounts", maybe=True, filtered=True),
    Try("find_setuid_mount", flags="--read {read} --write {write}", holds="files=mountns"),
    Try("find_device_mount", flags="--read {read} --write {write}", holds="files=mountns"),
]

PROCESSES = [
    Try("trace", "1", "init", maybe=True),
    Try("trace", "{victim}", label="of a process of the host", maybe=True),
    Try("read_memory", "1", "init", maybe=True),
    Try("read_memory", "{victim}", label="of a process of the host", maybe=True),
    Try("read_environ", "1", "init"),
    Try("read_environ", "{victim}", label="of a process of the host"),
    Try("read_maps", "1", "init"),
    Try("open_mem", "1", "init"),
    Try("list_descriptors", "1", "init"),
    Try("send_signal", "{victim}"),
    Try("send_signal", "1", "init", label="of init", abi=6),
    Try("see_init", control="init", holds="processes=pidns"),
    Try("trace_child", flags="--set syscalls=strict", label="under the strict filter"),
    # A user who has no capability cannot lock what is done with them, and has none to keep.
    Try("keep_capabilities", holds="" if IS_ROOT else "processes=pidns"),
    Try("signal_group", "{victim}"),
    Try("open_pidfd", "{victim}", holds="processes=pidns"),
    Try("kill_parent", control="child", ends="lost" if is_bare() else ""),
    Try("see_processes", "{word}", holds="files=*"),
    Try("find_secret", SECRET),
    Try("change_limits", "1", "init", holds="syscalls=*"),
    Try("change_limits", "{victim}", label="of a process of the host"),
    Try("change_priority", "{victim}"),
    Try("change_affinity", "{victim}"),
    Try("change_priority", "1", "init", label="of init", holds="syscalls=*"),
    Try("change_affinity", "1", "init", label="of init", holds="syscalls=*"),
    Try("change_scheduler", "1", "init", label="of init", holds="syscalls=*"),
    Try("change_io_priority", "1 1", "init", label="of init", holds="syscalls=*"),
    Try("change_io_priority", "1 2", "group", label="of init's group", holds="syscalls=*"),
    Try("change_io_priority", "1000 3", "init", "0 3", label="of all of a user's processes",
        holds="syscalls=*"),
    Try("change_user_priority", "0", "init", holds="syscalls=*"),
    Try("change_user_priority", "1000", "init", "0", label="by its number", holds="syscalls=*"),
    Try("change_group_priority", "1", "group", label="of init", holds="syscalls=*"),
    Try("tune_by_proc", "1", "init", label="of init"),
    Try("tune_by_proc", "self", label="of itself", holds="files=*"),
    Try("steal_descriptor", "1", "init", maybe=True),
    Try("compare_processes", maybe=True, filtered=True),
    Try("enter_namespace", "1", "init"),
    Try("enter_by_pidfd", control="namespaces"),
    Try("unshare_user", maybe=True, holds="syscalls=*"),
    Try("unshare_others", control="namespaces"),
    Try("clone_user", maybe=True, holds="syscalls=*"),
    Try("clone3_user", maybe=True, holds="syscalls=*"),
    Try("clone_sister", control="child", holds="syscalls=*"),
    Try("raise_capabilities", control="namespaces"),
    Try("raise_ambient", control="namespaces"),
    Try("become_root", control="namespaces"),
    Try("raise_open_files", "2048", maybe=True),
    Try("raise_core", maybe=True),
    Try("raise_priority", control="root"),
    Try("become_realtime", control="root", maybe=True),
    Try("raise_priority", control="wide", prefix="wide", root=True, label="of a caller who may"),
    Try("become_realtime", control="wide", prefix="wide", root=True, label="of a caller who may",
        maybe=True),
] + [
    Try(act, args, flags="--set syscalls=strict", label="of itself under the strict filter")
    for act, args in (("change_priority", "0"), ("change_scheduler", "0"),
                      ("change_io_priority", "0 1"))
]

KERNEL = [
    Try("use_io_uring", maybe=True),
    Try("use_bpf", maybe=True),
    Try("use_perf", maybe=True),
    Try("use_userfaultfd", maybe=True, filtered=True),
    Try("use_vmsplice"),
    Try("change_ldt", maybe=True, filtered=True),
    Try("change_personality", "0x0400000", label="to READ_IMPLIES_EXEC", filtered=True),
    Try("change_personality", "0x0100000", label="to MMAP_PAGE_ZERO", filtered=True),
    Try("change_personality", "0x0040000", flags="--set syscalls=strict",
        label="to ADDR_NO_RANDOMIZE under the strict filter", filtered=True),
    Try("call_i386", maybe=True),
    Try("call_x32", maybe=True),
    Try("call_arm32", maybe=True),
    Try("read_key", control="key", prefix="key", maybe=True),
    Try("ask_for_key", control="key", prefix="key", maybe=True),
    Try("add_key", maybe=True),
    Try("push_input", stdin="terminal", maybe=True),
    Try("open_terminal", stdin="terminal"),
    Try("write_terminal", stdin="terminal"),
    Try("open_core_pattern", control="root"),
    Try("open_sysctl", control="namespaces", maybe=True),
    Try("open_proc_global", holds="files=*"),
    Try("open_sysrq", control="root", maybe=True),
    Try("open_cgroup", control="root", maybe=True),
    Try("set_hostname", control="namespaces"),
    Try("set_clock", control="root"),
    Try("restart_machine", control="namespaces"),
    Try("add_swap", control="root"),
    Try("load_module", control="root", maybe=True),
    Try("read_kernel_log", maybe=True, filtered=True),
    Try("use_ports", control="root", maybe=True),
    Try("use_fanotify", maybe=True, filtered=True),
    Try("use_aio", maybe=True),
    Try("hide_memory", maybe=True),
    Try("ask_clock", filtered=True),
    Try("ask_terminal", hex(termios.TIOCSTI), label="TIOCSTI"),
    Try("ask_terminal", "0x541c", label="TIOCLINUX"),
    Try("ask_terminal", hex(termios.TIOCSETD), label="TIOCSETD"),
    Try("attach_filter"),
    *(Try("ask_socket", str(option), label=label)
      for option, label in ((50, "SO_ATTACH_BPF"), (51, "SO_ATTACH_REUSEPORT_CBPF"),
                            (52, "SO_ATTACH_REUSEPORT_EBPF"))),
    Try("ask_prctl", "35", label="PR_SET_MM", maybe=True),
    Try("ask_prctl", "62", label="PR_SCHED_CORE", maybe=True),
    Try("call_unknown", maybe=True, filtered=True),
    Try("see_hostname", "{hostname}", holds="processes=pidns"),
    Try("see_cgroup", maybe=True, holds="files=*"),
    Try("open_queue", "{queue}"),
    Try("see_segments", "{segment}", maybe=True, holds="files=*"),
] + [
    Try(act, flags="--set syscalls=strict", label="under the strict filter")
    for act in ("listen_to_filter", "drop_queue", "flush_disks", "place_memory")
]

NETWORK = [
    Try("tcp4", "{tcp4}"),
    Try("tcp4_other", "{tcp4}"),
    Try("tcp4_zero", "{tcp4}"),
    Try("tcp6", "{tcp6}", maybe=True),
    Try("tcp6_mapped", "{tcp4}", maybe=True),
    Try("mptcp", "{tcp4}", maybe=True),
    Try("fast_open", "{tcp4}", maybe=True),
    Try("udp4", "{udp4}"),
    Try("bind_any"),
    Try("inet"),
    Try("inet6", maybe=True),
    Try("abstract", "{abstract}"),
    Try("unix_path", "{read}/socket", flags="--read {read}"),
    Try("unix_pair", "{read}/datagrams", flags="--read {read}"),
    Try("unix_path", "{read}/socket", flags="--read {read} --socket {read}/named",
        label="beside a named one", holds="processes=pidns"),
    Try("unix_path", "{read}/socket", flags="--read {read} --socket {read}/named --net host",
        label="beside a named one under --net host", holds="processes=pidns"),
    Try("unix_pair", "{read}/datagrams", flags="--read {read} --socket {read}/named",
        label="beside a named one", holds="processes=pidns"),
    Try("abstract", "{abstract}", flags="--read {read} --socket {read}/named",
        label="beside a named one", holds="processes=pidns"),
    Try("abstract", "{abstract}", flags="--read {read} --socket {read}/named --net host",
        label="beside a named one under --net host", holds="processes=pidns"),
    Try("tcp4", "{tcp4}", flags="--read {read} --socket {read}/named", label="beside a named socket",
        holds="processes=pidns"),
    Try("raw4", control="namespaces"),
    Try("raw6", control="namespaces", maybe=True),
    Try("packet", control="namespaces", maybe=True),
    Try("netlink"),
    Try("netlink_audit"),
    Try("vsock", maybe=True),
    Try("alg", maybe=True),
    Try("exotic", control="namespaces", maybe=True),
    Try("exotic_pair", maybe=True),
    Try("see_sockets", "{abstract}", holds="files=*"),
] + [
    Try(act, args, flags="--net loopback", label="under --net loopback", holds="network=netns",
        maybe=act not in ("tcp4", "udp4", "abstract"))
    for act, args in (("tcp4", "{tcp4}"), ("tcp4_zero", "{tcp4}"), ("tcp6", "{tcp6}"),
                      ("tcp6_mapped", "{tcp4}"), ("mptcp", "{tcp4}"), ("fast_open", "{tcp4}"),
                      ("udp4", "{udp4}"), ("abstract", "{abstract}"), ("vsock", ""), ("alg", ""))
] + [
    Try("packet", control="namespaces", flags="--net loopback", label="under --net loopback",
        maybe=True, holds="network=netns"),
    Try("raw4", control="namespaces", flags="--net loopback", label="under --net loopback",
        holds="network=netns"),
    Try("packet", control="namespaces", flags="--net host", label="under --net host", maybe=True),
    Try("raw4", control="namespaces", flags="--net host", label="under --net host"),
    Try("abstract", "{abstract}", flags="--net host", label="under --net host", abi=6),
]

LIMITS = [
    Try("take_heap", "200", flags="--memory 64M", ends="memory_limit"),
    Try("take_memfd", "200", flags="--memory 64M", ends="memory_limit"),
    # lost: where no cgroup counts, what is hidden cannot be watched, and the call ends
    Try("take_memfd_undumpable", "200", flags="--memory 64M", ends="memory_limit lost",
        unless="processes that are not dumpable, which /proc hides here"),
    Try("take_memfd_unreadable", "200 {tmp}", control_args="200 {write}", flags="--memory 64M",
        ends="memory_limit lost", holds="files=mountns"),
    Try("take_memfd_by_thread", "200", flags="--memory 64M", ends="memory_limit",
        holds="syscalls=*"),
    Try("take_memfd_by_unshared", "200", flags="--memory 64M", ends="memory_limit",
        holds="syscalls=*"),
    Try("take_memfd_by_thread", "16", label="however little", holds="syscalls=*"),
    Try("take_memfd_by_unshared", "16", label="however little", holds="syscalls=*"),
    Try("take_shared", "200", flags="--memory 64M", ends="memory_limit"),
    Try("take_shared", "1", label="however little", holds="syscalls=*"),
    Try("take_semaphores", "10", holds="syscalls=*"),
    Try("take_messages", holds="syscalls=*"),
    Try("take_pipes", "60", flags="--memory 32M", ends="memory_limit", cgroup=True, maybe=True),
    Try("take_together", "200 8", flags="--memory 64M", ends="memory_limit"),
    Try("take_disk", "100 {tmp}", control_args="100 {write}",
        flags="--memory 32M --set limits.tmp_mb=512", ends="memory_limit",
        label="within tmp's size, beyond memory", holds="files=mountns"),
    Try("take_processes", "300", flags="--pids 40"),
    Try("take_threads", "300", flags="--pids 40"),
    Try("take_descriptors", "2000", maybe=True),
    Try("take_watchers", "33", maybe=True),
    Try("take_timers", "1100", maybe=True),
    Try("take_signals", "1100", maybe=True),
    Try("take_queues", "30", "wide", prefix="wide", root=True),
    Try("take_locked", "12", "wide", prefix="wide", root=True),
    Try("take_file", "3 {write}", flags="--write {write} --set limits.file_mb=1"),
    Try("take_disk", "12 {tmp}", control_args="12 {write}", flags="--set limits.tmp_mb=4",
        holds="files=mountns"),
    Try("hold_disk", "12 2 {tmp}", control_args="12 0 {write}", flags="--set limits.tmp_mb=4",
        ends="memory_limit"),
    Try("take_disk", "12 /dev/shm", control_args="12 {write}", flags="--set limits.tmp_mb=4",
        label="in /dev/shm", holds="files=mountns"),
    Try("take_inodes", "1600 {tmp}", control_args="1600 {write}", flags="--set limits.tmp_mb=1",
        holds="files=mountns"),
    Try("take_inodes", "1600 /dev/shm", control_args="1600 {write}",
        flags="--set limits.tmp_mb=1", label="in /dev/shm", holds="files=mountns"),
    Try("burn", "600 20000", flags="--cpu-time 200ms", ends="cpu_limit"),
    Try("outstay", "1000", flags="--timeout 200ms", ends="timeout"),
]

# Other roads to places that the rows above know.
FILES += [
    Try("watch_folder", "{secret}"),
    Try("watch_folder_by_signal", "{secret}"),
    Try("read_absolute", "/proc/{victim}/root{secret}/file", label="past the root of a process of the host"),
    Try("ask_quota", filtered=True, maybe=True),
    Try("place_pages", maybe=True),
]
SETUID += [Try("widen_argument", "fchmodat {write}/held/mine", "plain", flags="--write {write}", label="of fchmodat")]
PROCESSES += [
    Try("open_mem", "{victim}", label="of a process of the host", maybe=True),
    Try("list_descriptors", "{victim}", label="of a process of the host"),
    Try("signal_all", holds="processes=pidns"),  # elsewhere the kernel says nothing of whom it left out
    Try("signal_by_descriptor", "{victim}", holds="processes=pidns"),
    Try("signal_by_proc", "{victim}"),
    Try("ask_about", "{victim}", holds="processes=pidns"),
    Try("ask_pages", "{victim}", maybe=True),
    Try("take_namespace", "1", "init", maybe=True, holds="processes=pidns"),
    Try("open_pid_handle", maybe=True),
    Try("widen_argument", "clone", label="of clone", maybe=True, holds="syscalls=*"),
    Try("change_scheduler", "1 sched_setparam", "init", label="of init by its parameters", holds="syscalls=*"),
    Try("change_scheduler", "1 sched_setattr", "init", label="of init by its attributes", holds="syscalls=*"),
    Try("see_disk_class", control="first", prefix="first", root=True),
]
KERNEL += [
    Try("far_call", maybe=True),
    Try("widen_argument", "personality", label="of personality", filtered=True),
    Try("widen_argument", "fcntl {read}/file", flags="--read {read}", label="of fcntl"),
    Try("set_alarm", control="root", maybe=True),
    Try("see_personality", control="odd", prefix="odd"),
]
NETWORK += [
    Try("widen_argument", "socket", label="of socket"),
    Try("ask_interfaces", maybe=True, holds="syscalls=*"),
]
LIMITS += [Try("take_huge", what, label=label, holds="syscalls=*", maybe=True)
           for what, label in (("map", "mapped"), ("file", "as a file"))]

# A tracer rewrites a call, after filters could have looked at it: each call whose first argument one looks at.
REWRITTEN = [
    Try("rewrite_call", f"{call} {act}", control, f"{call} {control_act or act}", label=f"of {call}{more}",
        maybe=maybe, filtered=filtered)
    for call, act, control, control_act, more, maybe, filtered in (
        ("clone", "clone_user", "plain", "", " for a namespace", True, False),
        ("clone", "clone_sister", "child", "", " for a sister", False, False),
        ("clone", "take_memfd_by_thread 16", "plain", "", " for a thread", False, False),
        ("ioprio_set", "change_io_priority 1000 3", "init", "change_io_priority 0 3", "", False, False),
        ("kill", "send_signal {victim}", "plain", "", "", False, False),
        ("personality", "change_personality 0x0400000", "plain", "", "", False, True),
        ("prctl", "ask_prctl 35", "plain", "", "", True, False),
        ("prlimit64", "change_limits 1", "init", "", "", False, False),
        ("prlimit64", "change_limits {victim} 7", "plain", "", " for a process of the host", False, False),
        ("ptrace", "rewrite_call socket inet", "plain", "", "", False, False),
        ("sched_setaffinity", "change_affinity 1", "init", "", "", False, False),
        ("sched_setattr", "change_scheduler 1 sched_setattr", "init", "", "", False, False),
        ("sched_setparam", "change_scheduler 1 sched_setparam", "init", "", "", False, False),
        ("sched_setscheduler", "change_scheduler 1", "init", "", "", False, False),
        ("setpriority", "change_user_priority 1000", "init", "change_user_priority 0", "", False, False),
        ("socket", "inet", "plain", "", "", False, False),
        ("socket", "netlink", "plain", "", " for netlink", False, False),
        ("socketpair", "exotic_pair 2", "plain", "", "", False, False),
    )
]

# What the denials of a group stand on: not promised where nothing holds it.
GROUPS = [
    (FILES, "files=*"), (SETUID, "syscalls=*"), (MOUNTS, "syscalls=*"), (PROCESSES, "processes=*"),
    (KERNEL, "syscalls=*"), (NETWORK, "network=*"), (LIMITS, ""), (REWRITTEN, "syscalls=*"),
]
TRIES = [row for rows, _ in GROUPS for row in rows]
# Denied by a network namespace alone, also where the network as a whole is not held.
PARTED = {"tcp4", "tcp4_other", "tcp4_zero", "tcp6", "tcp6_mapped", "mptcp", "fast_open", "udp4", "abstract"}
