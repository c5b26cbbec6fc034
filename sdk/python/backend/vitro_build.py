# SPDX-License-Identifier: Apache-2.0
"""Builds the package vitro-sandbox (PEP 517 and 660) by the standard library alone.

The wheel carries the program and its Python runtime in vitro/_bin, as `make build` leaves them at the top of the source
tree. That is run first, so that the program is not older than the package; where it cannot be, what is there is taken. An
sdist carries the source tree as `source`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

HERE = Path(__file__).resolve().parents[1]
NAME = "vitro_sandbox"
PROGRAM, RUNTIME = "vitro", "python"  # in the build folder
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files, so that the same source makes the same wheel
Settings = Optional[Dict[str, Any]]

METADATA = """Metadata-Version: 2.1
Name: vitro-sandbox
Version: {version}
Summary: Runs every tool call of an AI agent in its own sealed, single-use process
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.8
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""


class CannotBuild(Exception):
    """What is missing, and what to do about it."""


# ---- the source tree ----------------------------------------------------------------------------------------------


def find_top() -> Path:
    """The top of the source tree: around this folder, or, in an sdist, in it."""
    for top in (HERE.parents[1], HERE / "source"):
        if (top / "meson.build").is_file() and (top / "runtimes").is_dir():
            return top
    raise CannotBuild(f"vitro's source tree is not around {HERE}: install from a whole checkout "
                      "(pip install ./sdk/python), or from an sdist")


def read_version() -> str:
    """The one version, of the whole project."""
    match = re.search(r"^\s*version: '([^']+)'", (find_top() / "meson.build").read_text(), re.MULTILINE)
    if match is None:
        raise CannotBuild("meson.build names no version")
    return match[1]


def find_build() -> Path:
    """The folder with the program and its runtime, made or renewed."""
    top = find_top()
    build = top / "build"
    if can_make(top, build) or not has_all(build):
        # pip's own PYTHONPATH hides the modules that meson is made of.
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
        try:
            done = subprocess.run(["make", "build"], cwd=top, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except OSError as error:
            raise CannotBuild(f"{build} has no vitro, and `make build` cannot be run: {error}") from None
        if done.returncode or not has_all(build):
            said = done.stdout.decode(errors="replace").strip()[-4000:]
            raise CannotBuild(f"`make build` in {top} did not make {build}/vitro and {build}/python:\n{said}")
    return build


def can_make(top: Path, build: Path) -> bool:
    has_tools = shutil.which("make") is not None and shutil.which("ninja") is not None
    return has_tools and (top / "Makefile").is_file() and os.access(build if build.exists() else top, os.W_OK)


def has_all(build: Path) -> bool:
    return os.access(build / PROGRAM, os.X_OK) and any((build / RUNTIME).glob("*.so"))


# ---- wheels -------------------------------------------------------------------------------------------------------


class Wheel:
    """A wheel that is being written."""

    def __init__(self, folder: str, tag: str) -> None:
        self.version, self.tag = read_version(), tag
        self.info = f"{NAME}-{self.version}.dist-info"
        self.name = f"{NAME}-{self.version}-{tag}.whl"
        self._file = zipfile.ZipFile(Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)
        self._records: List[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._file.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._records.append(f"{name},sha256={digest},{len(data)}")

    def close(self) -> str:
        for name, text in metadata(self.tag).items():
            self.add(f"{self.info}/{name}", text.encode())
        self._records.append(f"{self.info}/RECORD,,")
        self._file.writestr(zipfile.ZipInfo(f"{self.info}/RECORD", EPOCH), "\n".join(self._records) + "\n")
        self._file.close()
        return self.name


def metadata(tag: str) -> Dict[str, str]:
    return {"METADATA": METADATA.format(version=read_version(), readme=(HERE / "README.md").read_text()),
            "LICENSE": (find_top() / "LICENSE").read_text(),
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: vitro_build\nRoot-Is-Purelib: false\nTag: {tag}\n",
            "entry_points.txt": "[console_scripts]\nvitro = vitro.__main__:main\n"}


def native_tag() -> str:
    """For machines like this one. A manylinux tag would name the glibc that the runtime's extension is linked with, the program
    being static; but pip before 20.3, which Python 3.8 came with, would not install it, not even here."""
    return f"py3-none-linux_{platform.machine()}"


def sources() -> Iterator[Tuple[str, Path]]:
    """The package's own files; links are followed."""
    for path in sorted((HERE / "vitro").rglob("*")):
        name = path.relative_to(HERE)
        if path.is_file() and "__pycache__" not in name.parts and "_bin" not in name.parts:
            yield name.as_posix(), path


def carried(build: Path) -> Iterator[Tuple[str, Path, int]]:
    """What the package carries of the build."""
    yield f"vitro/_bin/{PROGRAM}", build / PROGRAM, 0o755
    for path in sorted((build / RUNTIME).iterdir()):
        if path.is_file():
            yield f"vitro/_bin/{RUNTIME}/{path.name}", path, 0o644


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    """PEP 517."""
    build = find_build()
    wheel = Wheel(wheel_directory, native_tag())
    for name, path in sources():
        wheel.add(name, path.read_bytes())
    for name, path, mode in carried(build):
        wheel.add(name, path.read_bytes(), mode)
    return wheel.close()


def build_editable(wheel_directory: str, config_settings: Settings = None,
                   metadata_directory: Optional[str] = None) -> str:
    """PEP 660: the package where it is, and the build beside it by a link."""
    build, link = find_build(), HERE / "vitro" / "_bin"
    if not link.exists():
        if link.is_symlink():
            link.unlink()
        link.symlink_to(os.path.relpath(build, link.parent))
    wheel = Wheel(wheel_directory, native_tag())
    wheel.add(f"{NAME}.pth", f"{HERE}\n".encode())
    return wheel.close()


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """PEP 517."""
    info = Path(metadata_directory) / f"{NAME}-{read_version()}.dist-info"
    info.mkdir()
    for name, text in metadata(native_tag()).items():
        (info / name).write_text(text)
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings: Settings = None) -> List[str]:
    """PEP 517: nothing."""
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


# ---- sdists -------------------------------------------------------------------------------------------------------


def tree(top: Path) -> Iterator[Path]:
    """The files of the source tree: what git knows, else all but what was built."""
    listed = None
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", str(top), "ls-files", "-z"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False).stdout.decode()
    if listed:
        yield from (top / name for name in listed.split("\0") if name)
        return
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if not name.startswith(("build", ".")) and name != "__pycache__"]
        yield from (Path(folder) / name for name in files)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """PEP 517: the package, and the whole source tree beside it."""
    top, stem = find_top(), f"{NAME}-{read_version()}"
    own = [HERE / "pyproject.toml", HERE / "README.md", Path(__file__).resolve()]
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in own:
            archive.add(path, f"{stem}/{path.relative_to(HERE)}")
        for name, path in sources():
            archive.add(path.resolve(), f"{stem}/{name}")
        for path in tree(top):
            if path.exists():
                archive.add(path, f"{stem}/source/{path.relative_to(top)}", recursive=False)
        info = tarfile.TarInfo(f"{stem}/PKG-INFO")
        text = metadata(native_tag())["METADATA"].encode()
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return f"{stem}.tar.gz"
