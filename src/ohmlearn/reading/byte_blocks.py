"""Files and pipes as bytes, decompressed, in blocks of whole lines."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any, BinaryIO

from ohmlearn.checks.parameters import require_extra
from ohmlearn.reading.remote import is_remote, open_remote
from ohmlearn.reading.source_errors import reading, refuse_source

BLOCK = 1 << 20
LONGEST_LINE = 1 << 24
ARRAY_HINT = "write one JSON object per line instead of an array, for example with jq -c '.[]'"
# First bytes of compressed files, and the modules that read them; pyarrow reads zstd.
MAGIC = {
    b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma", b"\x28\xb5\x2f\xfd": "pyarrow",
}  # fmt: skip


class ByteSource(ExitStack):
    """A file, or an open buffered pipe; its first bytes show whether it is compressed.

    Its attribute `file` has the decompressed content. An `io.BytesIO` is read as it is: a few bytes
    from another machine must not become many. When it is closed, the standard input stays open.
    """

    def __init__(self, name: str, pipe: BinaryIO | None = None, filesystem: object = None) -> None:
        super().__init__()
        self.name = name
        if pipe is None and (filesystem is not None or is_remote(name)):
            remote = self.enter_context(open_remote(name, filesystem))
            self._size: int | None = remote.size
            raw: Any = self.enter_context(io.BufferedReader(remote, BLOCK))
        elif pipe is None:
            raw = self.enter_context(open(name, "rb"))  # noqa: SIM115
            self._size = os.fstat(raw.fileno()).st_size
        else:
            raw = pipe
            self._size = None
            if pipe is not sys.stdin.buffer:
                self.callback(pipe.close)
        self._raw = raw
        self.file: Any = self._decompress(raw)

    def _decompress(self, raw: Any) -> Any:
        if isinstance(raw, io.BytesIO):
            return raw
        first = raw.peek(8)[:8]
        module = next((module for magic, module in MAGIC.items() if first.startswith(magic)), None)
        if module is None:
            return raw
        if module == "pyarrow":
            pa = require_extra("pyarrow", "files")
            return self.enter_context(pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))
        return self.enter_context(import_module(module).open(raw))

    def fraction(self) -> float | None:
        """Return which share of the file on disk has been read; None for a pipe."""
        return None if not self._size else min(1.0, self._raw.tell() / self._size)


def line_blocks(source: ByteSource) -> Iterator[bytes]:
    """Yield blocks of about 1 MiB, each ending with a newline.

    A newline is added to a last line that has none. If the first block has carriage returns but no
    newline, then carriage returns end the lines, as on old Macs, and are replaced by newlines.
    """
    rest = b""
    old_mac: bool | None = None
    while True:
        with reading(source.name, "text"):
            block = source.file.read(BLOCK)
        if not block:
            break
        if old_mac is None:
            old_mac = b"\r" in block and b"\n" not in block
        if old_mac:
            block = block.replace(b"\r", b"\n")
        cut = block.rfind(b"\n") + 1
        if cut == 0:
            rest += block
            if len(rest) > LONGEST_LINE:
                what = ARRAY_HINT if rest.lstrip().startswith(b"[") else "is it text?"
                refuse_source(source.name, f"has a line of more than 16 MiB; {what}")
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest:
        yield rest + b"\n"
