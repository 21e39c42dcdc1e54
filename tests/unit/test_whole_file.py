"""Files that are replaced as a whole: links, modes, devices, and folders that refuse."""

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from ohmlearn import HFSClassifier
from ohmlearn._arrays_file import check_folder, check_writable, whole_file, write_whole
from ohmlearn.report.write_table import write_table


def save_model(path: Path) -> None:
    HFSClassifier(random_state=0).fit_edges(([0, 1], [1, 2]), {0: "a", 2: "b"}).save(path)


WRITERS = {
    "o.csv": lambda path: write_table(str(path), {"node": np.arange(3)}),
    "o.parquet": lambda path: write_table(str(path), {"node": np.arange(3)}),
    "model.ohm": save_model,
    "page.html": lambda path: write_whole(path, b"page"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_stays_and_its_target_keeps_its_mode(name: str, tmp_path: Path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / f"target-{name}", tmp_path / name
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(Path("far") / target.name)
    WRITERS[name](link)
    assert link.is_symlink()
    assert target.read_bytes() != b"old"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["far", target.name, name])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may chown")
def test_the_owner_stays(tmp_path: Path):
    path = tmp_path / "model.ohm"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    save_model(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_a_link_to_nothing_makes_its_target(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere" / "target")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_folder(tmp_path / "lost")


def test_a_new_file_has_the_mode_of_the_process(tmp_path: Path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_named_pipe_is_written_to_not_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe, "-o")
        write_whole(pipe, b"content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_errors_name_the_file_that_the_user_knows(tmp_path: Path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match=r"No space left on device: '.*out.csv'"), whole_file(path):
        raise full
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.csv"]
