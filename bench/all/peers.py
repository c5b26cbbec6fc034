# SPDX-License-Identifier: Apache-2.0
"""Other programs that seal a command, as far as they can be had here, each set up to give what a cell of vitro gives as
nearly as its own options allow. What is missing is named."""

import functools
import json
import os
import pathlib
import shutil
import subprocess

# crun refuses a host that has both versions of cgroups mounted; a look at the second alone is enough for it.
CGROUP_V2_ALONE = ["unshare", "--mount", "sh", "-c", 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"', "sh"]
SYSTEM = [path for path in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/alternatives")
          if os.path.exists(path)]


class Missing(Exception):
    """It cannot be had; says why."""


def found(name, package=None):
    path = shutil.which(name)
    if not path:
        raise Missing(f"{name} is not installed" + (f"; Debian has it in {package}" if package else ""))
    return path


def is_apart(program):
    """Whether it lies where no system's files are."""
    return not program.startswith(("/usr/", "/bin/"))


@functools.cache
def version_of(*words):
    told = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
    text = (told.stdout or told.stderr).splitlines()
    return next((word.strip(",") for word in (text[0].split() if text else []) if any(c.isdigit() for c in word)), "")


class Peers:
    """How each of them runs a program: its version, and the words that run others."""

    def __init__(self, place, bench, vitro, build):
        self.place, self.bench, self.vitro, self.build = pathlib.Path(place), bench, vitro, pathlib.Path(build)

    def bubblewrap(self, words):
        found("bwrap", "bubblewrap")
        shown = subprocess.run([self.bench, "--bwrap", self.vitro], capture_output=True, text=True, check=True).stdout.splitlines()
        last = shown.index("--remount-ro")
        return version_of("bwrap", "--version"), [*shown[:last], *(["--ro-bind", words[0], words[0]] if is_apart(words[0]) else []),
                                                  *shown[last:], *words]

    def _bundle(self, name, words):
        """A folder as the Open Container Initiative describes one: the system's files alone."""
        folder = self.place / f"{name}-{len(words)}"
        (folder / "root").mkdir(parents=True, exist_ok=True)
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "size=64m"]}]
        for path in [*SYSTEM, *([words[0]] if is_apart(words[0]) else [])]:
            mounts.append({"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro", "nosuid"]})
        profile = self.build / "profiles" / "docker.json"
        config = {
            "ociVersion": "1.0.2",
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": words, "env": ["PATH=/usr/bin:/bin"], "cwd": "/",
                        "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted", "ambient")},
                        "noNewPrivileges": True},
            "root": {"path": "root", "readonly": True},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }
        if name != "runsc" and profile.exists():  # gVisor's own kernel answers; it takes no filter
            config["linux"]["seccomp"] = oci_filter(profile)
        (folder / "config.json").write_text(json.dumps(config))
        return str(folder)

    def _container(self, name, words, *options):
        if os.geteuid() != 0:
            raise Missing("its containers are set up here for root alone")
        path = found(name, name)
        bundle = self._bundle(name, words)
        state = str(self.place / f"{name}-state")
        return version_of(path, "--version"), [path, "--root", state, *options, "run", "--bundle", bundle, f"vitro-bench-{os.getpid()}"]

    def crun(self, words):
        return self._container("crun", words, "--cgroup-manager=disabled")

    crun.within = [] if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else CGROUP_V2_ALONE

    def runc(self, words):
        return self._container("runc", words)

    def runsc(self, words):
        return self._container("runsc", words, "--network=none", "--rootless=false", "--ignore-cgroups")

    def firejail(self, words):
        path = found("firejail", "firejail")
        return version_of(path, "--version"), [path, "--quiet", "--noprofile", "--private", "--private-tmp", "--private-dev",
                                               "--net=none", "--seccomp", "--nonewprivs", "--caps.drop=all", "--blacklist=/var",
                                               "--", *words]

    def sandbox_runtime(self, words):
        srt = self.build / "peers" / "node_modules" / ".bin" / "srt"
        if not srt.exists():
            raise Missing("npm did not give @anthropic-ai/sandbox-runtime")
        for needed in ("rg", "socat"):
            found(needed, {"rg": "ripgrep"}.get(needed, needed))
        settings = self.place / "srt.json"
        settings.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []},
                                        "filesystem": {"denyRead": ["/var/tmp"], "allowWrite": ["/tmp"], "denyWrite": []}}))
        return version_of(str(srt), "--version"), [shutil.which("node"), str(srt), "--settings", str(settings), *words]

    def landrun(self, words):
        path = str(self.build / "peers" / "landrun")
        if not os.path.exists(path):
            raise Missing("its Go module could not be had")
        return version_of(path, "--version"), [path, *[word for at in [*SYSTEM, words[0]] for word in ("--rox", at)],
                                               "--rw", "/tmp", "--", *words]

    def sandlock(self, words):
        """Of its package for Python, in a process that is there already: it has no start of its own to be timed."""
        python = str(self.build / "peers" / "venv" / "bin" / "python")
        version = os.path.exists(python) and version_of(python, "-c", "import sandlock; print('sandlock', sandlock.__version__)")
        if not version:
            raise Missing("PyPI did not give sandlock")
        return version, [python, str(pathlib.Path(__file__).parent / "sandlocked.py"), *words]

    sandlock.is_mate = True

    def all(self):
        """What runs words by them, by their names."""
        return {"bubblewrap": self.bubblewrap, "crun": self.crun, "runc": self.runc, "firejail": self.firejail,
                "sandbox-runtime": self.sandbox_runtime, "sandlock": self.sandlock, "landrun": self.landrun,
                "gVisor (runsc)": self.runsc}


def oci_filter(profile):
    """Docker's profile for a process without capabilities, as a runtime takes it."""
    source = json.loads(profile.read_text())
    rules = []
    for rule in source["syscalls"]:
        if rule.get("includes", {}).get("caps") or (rule.get("includes", {}).get("arches") and "amd64" not in rule["includes"]["arches"]):
            continue
        names = rule.get("names") or [rule["name"]]
        taken = {"names": names, "action": rule["action"]}
        if rule.get("args"):
            taken["args"] = [{key: value for key, value in arg.items() if key in ("index", "value", "valueTwo", "op")} for arg in rule["args"]]
        if "errnoRet" in rule:
            taken["errnoRet"] = rule["errnoRet"]
        rules.append(taken)
    return {"defaultAction": source["defaultAction"], "defaultErrnoRet": source.get("defaultErrnoRet", 1),
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"], "syscalls": rules}

