"""Threads that read the next batches of a stream while its caller uses the present one.

A stream is a sequence of pieces, such as the row groups of a Parquet file. At most `n_jobs` of
them are read at the same time, each by one thread, which also looks up the numbers of the nodes.
`AHEAD` more may be open, so that threads rarely wait for the caller. The batches come out in the
order of the stream.

A task reads about `CHUNK` edges of a piece and ends, so that no thread ever waits for the caller:
    1. While fewer than ``n_jobs + AHEAD`` pieces are open, open the next one and submit its task.
    2. Wait for the task of the first piece.
    3. If the piece has more edges, submit its next task; if not, drop it and go to 1.
    4. Yield the batches that the task has read, then raise its error, if it had one.
So there are never more than ``n_jobs + AHEAD + 1`` chunks in memory, and an error comes after all
batches before it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ohmlearn.nodes.node_table import KnownEnds
from ohmlearn.reading.table_reader import RawBatch, Source, join_batches

CHUNK = 5 << 18  # edges; more than pyarrow puts into a row group
MOST_THREADS = 8  # ids are numbered by one thread, and each chunk takes memory
AHEAD = 2  # pieces that are open beyond one for each thread
SLACK = 1 << 17  # edges that a chunk may have beyond `CHUNK`

Ends = tuple[NDArray[np.int32], NDArray[np.int32]]  # room for numbers of nodes


class Prepared(NamedTuple):
    """A batch of a source, perhaps with the numbers of its nodes."""

    at: int  # number of the source
    source: Source
    raw: RawBatch
    known: KnownEnds | None = None


@dataclass
class Piece:
    """A part of a source that is read by one thread at a time."""

    at: int
    source: Source
    batches: Iterator[RawBatch]
    look_up: Callable[[RawBatch, Ends | None], tuple[RawBatch, KnownEnds | None]]


class Room:
    """Memory for the numbers of the nodes of a chunk.

    It is used again as soon as no array refers to it. New memory for each chunk would take a third
    of the time of reading a file of integers, because the system clears it first.
    """

    def __init__(self, spare: deque[NDArray[np.int32]]) -> None:
        try:
            self._memory = spare.pop()
        except IndexError:
            self._memory = np.empty((2, CHUNK + SLACK), np.int32)
        self._spare = spare
        self.__array_interface__ = self._memory.__array_interface__  # arrays of it refer to self

    def __del__(self) -> None:
        self._spare.append(self._memory)


class Chunk(NamedTuple):
    """What a task has read."""

    batches: deque[Prepared]
    is_last: bool
    error: Exception | None = None


def prepare_all(
    pieces: Iterator[Piece], n_jobs: int, is_settled: Callable[[], bool]
) -> Generator[Prepared]:
    """Yield the batches of all pieces in order, read by up to `n_jobs` threads.

    Threads start when `is_settled` says that the first batches have decided what the others must
    be like, and only for files. Everything else is read by the caller, one batch at a time.
    """
    if n_jobs == 1:
        for piece in pieces:
            for raw in piece.batches:
                yield Prepared(piece.at, piece.source, raw)
        return
    queue = _Queue(pieces, n_jobs, is_settled)
    try:
        while (chunk := queue.next_chunk()) is not None:
            while chunk.batches:
                yield chunk.batches.popleft()  # and forgets it
            if chunk.error is not None:
                raise chunk.error
    finally:
        queue.close()


class _Queue:
    """The pieces that are being read."""

    def __init__(
        self, pieces: Iterator[Piece], n_jobs: int, is_settled: Callable[[], bool]
    ) -> None:
        self._pieces = pieces
        self._n_jobs = min(n_jobs, MOST_THREADS)
        self._is_settled = is_settled
        self._open: deque[tuple[Piece, Future[Chunk] | None]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._stop = threading.Event()
        self._spare: deque[NDArray[np.int32]] = deque()  # memory of chunks that are gone
        self._error: Exception | None = None  # of opening the piece after those

    def next_chunk(self) -> Chunk | None:
        """Return the next batches in order; None at the end."""
        self._open_more()
        if not self._open:
            if self._error is not None:
                raise self._error
            return None
        piece, future = self._open[0]
        if future is None:
            chunk = self._read(piece, 1, looks_up=False)
        else:
            if os.getpid() != self._process:
                raise RuntimeError(
                    "the process was forked while threads were reading ahead, and they are not in "
                    "the child; start a new iteration there"
                )
            chunk = future.result()
        if chunk.is_last:
            self._open.popleft()
            self._open_more()
        elif chunk.batches and chunk.batches[-1].raw.fraction == 1.0:
            self._open[0] = piece, None  # nothing is left that is worth a thread
        else:
            self._open[0] = piece, self._submit(piece)
        return chunk

    def _open_more(self) -> None:
        """Open pieces and submit their tasks, as many as may be read at the same time."""
        while self._error is None and len(self._open) < self._n_jobs + AHEAD:
            if self._open and self._open[-1][1] is None:
                return
            try:
                piece = next(self._pieces, None)
            except Exception as error:
                self._error = error
                return
            if piece is None:
                return
            self._open.append((piece, self._submit(piece)))

    def _submit(self, piece: Piece) -> Future[Chunk] | None:
        """Let a thread read the next chunk of a piece; None if the caller must read it."""
        if not piece.source.reads_files or not piece.source.rereadable or not self._is_settled():
            return None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_jobs, thread_name_prefix="ohmlearn-prepare")
        return self._pool.submit(self._read, piece, CHUNK)

    def _read(self, piece: Piece, most: int, looks_up: bool = True) -> Chunk:
        """Read batches of a piece until they have so many edges."""
        batches: deque[Prepared] = deque()
        n_edges = n_batches = 0
        room = np.asarray(Room(self._spare)) if looks_up else np.empty((2, 0), np.int32)
        try:
            while max(n_edges, n_batches) < most and not self._stop.is_set():
                raw = next(piece.batches, None)
                if raw is None:
                    return Chunk(_join(batches, room), True)
                end = n_edges + raw.u.size
                known = None
                if looks_up:
                    to = (room[0, n_edges:end], room[1, n_edges:end])
                    raw, known = piece.look_up(raw, to if end <= room.shape[1] else None)
                batches.append(Prepared(piece.at, piece.source, raw, known))
                n_edges, n_batches = end, n_batches + 1
        except Exception as error:
            return Chunk(_join(batches, room), True, error)
        return Chunk(_join(batches, room), False)

    def close(self) -> None:
        """Stop the threads, and close what is open."""
        self._stop.set()
        if self._pool is not None and os.getpid() == self._process:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for piece, _ in self._open:
            with suppress(Exception):
                _close(piece.batches)
        _close(self._pieces)


def _join(batches: deque[Prepared], room: NDArray[np.int32]) -> deque[Prepared]:
    """Return one batch if all ids are known: threads share the work on a large one better."""
    known = [each.known for each in batches if each.known is not None]
    if not known or len(known) < len(batches) or any(each.rows is not None for each in known):
        return batches
    raw = join_batches([each.raw for each in batches])  # whose ids are empty
    n_edges = sum(each.u.size for each in known)
    ends = KnownEnds(room[0, :n_edges], room[1, :n_edges])
    if 2 * n_edges < room.shape[1] or n_edges > room.shape[1]:  # it would waste, or lack, memory
        u, v = (np.concatenate([each[end] for each in known]) for end in (0, 1))
        ends = KnownEnds(u, v)
    return deque([batches[-1]._replace(raw=raw, known=ends)])


def _close(iterator: Any) -> None:
    if hasattr(iterator, "close"):
        iterator.close()
