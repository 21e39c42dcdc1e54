"""Save arrays in a file, and refuse a file that is incomplete or damaged.

Layout: 8 magic bytes, a 4-byte version, the SHA-256 of the rest, then an .npz archive.
"""

import difflib
import hashlib
import io
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ohmlearn.errors import InputError, InPython, text_of

MAGIC = b"OHMLEARN"
VERSION = 2
SAVED = InPython("a file that save has written", "an .ohm file of --state, or of sparsify -o")
BLOCK = 1 << 20
HEAD = len(MAGIC) + 4 + hashlib.sha256().digest_size


def check_folder(path: str | os.PathLike[str], option: str = "") -> None:
    """Refuse an output, a file or a folder, in a folder that does not exist: it may be mistyped.

    Messages name the `option` that the path comes from.
    """
    missing = _target_of(path).parent
    if missing.is_dir():
        return
    while not missing.parent.is_dir():
        missing = missing.parent
    try:
        folders = [entry.name for entry in os.scandir(missing.parent) if entry.is_dir()]
    except OSError:  # it may not be readable
        folders = []
    near = difflib.get_close_matches(missing.name, folders, n=1)
    hint = f"did you mean {missing.parent / near[0]}?" if near else "make it first"
    raise FileNotFoundError(f"{option} {path}: there is no folder {missing}; {hint}".strip())


def check_writable(path: str | os.PathLike[str], option: str = "") -> None:
    """Refuse an output in a folder where `whole_file` cannot write; nothing is left there."""
    target = _target_of(path)
    folder, aside = target.parent, f"{target.name}."  # as `whole_file` calls it: not too long
    try:
        with (
            open(path, "ab")
            if _is_special(path)
            else tempfile.NamedTemporaryFile(prefix=aside, suffix=".tmp", dir=folder)
        ):
            pass
    except OSError as error:
        raise ValueError(
            f"{option} {path}: cannot write in the folder {folder} ({error.strerror}); name "
            f"another one".strip()
        ) from error


def _target_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that a symbolic link leads to, or the path itself."""
    return Path(os.path.realpath(path) if os.path.islink(path) else path)


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device or a named pipe, such as /dev/null or /dev/stdout."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a temporary file, flush it to disk, rename it: a crash leaves the old or new file.

    A file that exists keeps its mode and, if the system allows it, its owner. A symbolic link
    stays, and the file that it leads to is replaced. Devices and named pipes are not replaced:
    they get the content when it is complete.
    """
    if _is_special(path):
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with open(path, "wb") as special:
                shutil.copyfileobj(file, special)
        return
    check_folder(path)
    target = _target_of(path)
    aside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(aside, "x+b") as file:  # not tempfile: only the owner may read its files
            if target.exists():  # keep its owner and mode
                old = target.stat()
                for owner in ((-1, old.st_gid), (old.st_uid, -1)):
                    with suppress(OSError, AttributeError):  # only root may; Windows has none
                        os.chown(aside, *owner)
                aside.chmod(stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(aside)):
            error.filename = str(path)  # which the user knows
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all."""
    with whole_file(path) as file:
        file.write(content)


def write_arrays(path: str | os.PathLike[str], arrays: dict[str, Any]) -> None:
    """Write arrays and their checksum."""
    with whole_file(path) as file:
        _write(file, arrays)


def pack_arrays(arrays: dict[str, Any]) -> bytes:
    """Return the content of the file that `write_arrays` writes."""
    file = io.BytesIO()
    _write(file, arrays)
    return file.getvalue()


def _write(file: BinaryIO, arrays: dict[str, Any]) -> None:
    file.write(bytes(HEAD))
    with zipfile.ZipFile(file, "w") as archive:  # savez of numpy 2.0 leaves it open after an error
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    digest = _hash_rest(file)
    file.seek(0)
    file.write(MAGIC + VERSION.to_bytes(4, "little") + digest)


def _hash_rest(file: BinaryIO) -> bytes:
    """Return the SHA-256 of what follows the head of a file."""
    file.seek(HEAD)
    digest = hashlib.sha256()
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.digest()


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file of `write_arrays`; raise a ValueError with the reason for any other file."""
    with open(path, "rb") as file:
        return unpack_arrays(file, path)


def unpack_arrays(content: bytes | BinaryIO, name: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arrays of `pack_arrays`; raise a ValueError with the reason for other bytes."""
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    _check_head(name, file)
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:  # which skips the head
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:  # could decompress to any size
                    raise ValueError(f"{member.filename} is compressed")
                with archive.open(member) as part:
                    array = np.lib.format.read_array(part, allow_pickle=False)
                arrays[member.filename.removesuffix(".npy")] = array
    except Exception as error:  # of ten types; a correct checksum does not mean that it is valid
        raise InputError(
            f"{name} holds no arrays that ohmlearn has saved: {error}; give {SAVED}"
        ) from error
    return arrays


def _check_head(path: str | os.PathLike[str], file: BinaryIO) -> None:
    """Refuse a file that is no file of arrays, or has another version or checksum."""
    head = file.read(HEAD)
    if head[: len(MAGIC)] != MAGIC:
        raise InputError(f"{path} was not saved by ohmlearn; give {SAVED}")
    version = int.from_bytes(head[len(MAGIC) : len(MAGIC) + 4], "little")
    if len(head) >= HEAD and version == 1:
        raise ValueError(
            f"{path} has format version 1: ohmlearn 0.1 wrote it, and this ohmlearn reads version "
            f"{VERSION}; sparsify the edges again"
        )
    if len(head) >= HEAD and version != VERSION:
        raise ValueError(
            f"{path} has format version {version}, but this ohmlearn reads version {VERSION}; use "
            f"the ohmlearn that saved it, or sparsify the edges again"
        )
    if _hash_rest(file) != head[len(MAGIC) + 4 :]:
        raise ValueError(
            f"{path} is truncated or damaged: its checksum does not match; restore it from a copy, "
            f"or sparsify the edges again"
        )


# Errors of arrays and values that can be anything.
IMPOSSIBLE = (
    ValueError, ArithmeticError, TypeError, LookupError, AttributeError, RecursionError,
    MemoryError,
)  # fmt: skip


@contextmanager
def refuse_damaged(path: str | os.PathLike[str], what: str, again: str) -> Iterator[None]:
    """Name the file and a remedy if what is made of its arrays refuses them."""
    try:
        yield
    except IMPOSSIBLE as error:
        raise InputError(
            f"{path} holds no {what} that can continue: {text_of(error)}; restore it from a copy, "
            f"or {again}"
        ) from error


def check_arrays(
    arrays: Mapping[str, Any], expected: Mapping[str, DTypeLike], ndim: int = 1
) -> None:
    """Raise ValueError unless all expected arrays are present with the right dtype and `ndim`."""
    for name, dtype in expected.items():
        if name not in arrays:
            raise ValueError(f"{name} is missing")
        array: NDArray[Any] = np.asarray(arrays[name])
        if array.dtype != np.dtype(dtype) or array.ndim != ndim:
            form = ("a single", "a vector of", "a matrix of")[ndim]
            raise ValueError(
                f"{name} must be {form} {np.dtype(dtype)}, got {array.dtype} of shape {array.shape}"
            )
