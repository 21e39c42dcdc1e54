"""Arrays in a file that is either whole or refused.

Layout: 8 bytes of magic, a 4-byte version, the SHA-256 of what follows, then an .npz archive.
"""

import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

MAGIC = b"OHMLEARN"
VERSION = 1
HEAD = len(MAGIC) + 4 + hashlib.sha256().digest_size


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write aside, flush to the disk, rename: a crash leaves the old file or the new one."""
    target = Path(path)
    aside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(aside, "xb") as file:  # not tempfile, whose files none but the owner may read
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as file:
        file.write(content)


def write_arrays(path: str | os.PathLike[str], arrays: dict[str, Any]) -> None:
    """Write arrays and their checksum."""
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    content = body.getvalue()
    head = MAGIC + VERSION.to_bytes(4, "little") + hashlib.sha256(content).digest()
    write_whole(path, head + content)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_arrays` has written; anything else is a ValueError that says what it is."""
    content = Path(path).read_bytes()
    if content[: len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} was not saved by ohmlearn; give a file that save has written")
    version = int.from_bytes(content[len(MAGIC) : len(MAGIC) + 4], "little")
    if len(content) >= HEAD and version != VERSION:
        raise ValueError(
            f"{path} has format version {version}, but this ohmlearn reads version {VERSION}; use "
            f"the ohmlearn that saved it, or sparsify the edges again"
        )
    if hashlib.sha256(content[HEAD:]).digest() != content[len(MAGIC) + 4 : HEAD]:
        raise ValueError(
            f"{path} is truncated or damaged: its checksum does not match; restore it from a copy, "
            f"or sparsify the edges again"
        )
    with np.load(io.BytesIO(content[HEAD:]), allow_pickle=False) as archive:
        return dict(archive)
