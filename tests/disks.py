"""Real disks for tests: one that can be full, and one whose power can be cut. Both need root and the right to mount."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLOCK = b"\0" * 4096


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs root and the right to mount: {done.stderr.strip()}")


@contextmanager
def small_disk(folder: Path, size: str = "2m", files: int = 0) -> Iterator[Path]:
    """A disk of that size (tmpfs), and of that many files."""
    folder.mkdir(exist_ok=True)
    options = f"size={size}" + (f",nr_inodes={files}" if files else "")
    _mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield folder
    finally:  # lazily: a server may have its database on it
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Fill a disk to the last page, but for `leave` bytes; the file that does it."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(BLOCK)
    assert shutil.disk_usage(disk).free == 0
    os.truncate(ballast, max(0, ballast.stat().st_size - leave))
    return ballast


def make_room(disk: Path) -> None:
    """Take the ballast away."""
    (disk / "ballast").unlink()


class CutDisk:
    """An ext4 disk in a file: what reached the file is what is left when the power is cut."""

    def __init__(self, folder: Path, megabytes: int = 8) -> None:
        self.image, self.folder, self._cut, self._after = (
            folder / name for name in ("disk.img", "disk", "cut.img", "after")
        )
        self.image.write_bytes(b"")
        os.truncate(self.image, megabytes * 2**20)

    def __enter__(self) -> "CutDisk":
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("needs mkfs.ext4")
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(self.image)], check=True)
        self.folder.mkdir()
        self._after.mkdir()
        _mount("-o", "loop", str(self.image), str(self.folder))
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)

    def cut_power(self, to: Path) -> None:
        """Copy what a machine would find after a power cut at this moment into the new folder `to`."""
        shutil.copy(self.image, self._cut)
        _mount("-o", "loop", str(self._cut), str(self._after))
        try:
            shutil.copytree(self._after, to, ignore=shutil.ignore_patterns("lost+found"))
        finally:
            subprocess.run(["umount", str(self._after)], check=True)
