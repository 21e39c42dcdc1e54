"""Threads that read the next batches of a stream while its caller uses the present one.

A stream is a sequence of pieces, such as the row groups of a Parquet file. At most `n_jobs` of
them are read at the same time, each by one thread, which also looks up the numbers of the nodes.
The batches come out in the order of the stream.

A task reads about `CHUNK` edges of a piece and ends, so that no thread ever waits for the caller:
    1. While fewer than `n_jobs` pieces are open, open the next one and submit a task for it.
    2. Wait for the task of the first piece.
    3. If the piece has more edges, submit its next task; if not, drop it and go to 1.
    4. Yield the batches that the task has read, then raise its error, if it had one.
So there are never more than ``n_jobs + 1`` chunks in memory, and an error comes after all batches
before it.
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

from ohmlearn.nodes.known import KnownEnds
from ohmlearn.streams.source import Source, Step

__all__ = ["Piece", "Prepared", "prepare_all"]

CHUNK = 5 << 18  # edges; more than pyarrow puts into a row group


class Prepared(NamedTuple):
    """A batch of a source, perhaps with the numbers of its nodes."""

    at: int  # number of the source
    source: Source
    step: Step
    known: KnownEnds | None = None


@dataclass
class Piece:
    """A part of a source that is read by one thread at a time."""

    at: int
    source: Source
    steps: Iterator[Step]
    look_up: Callable[[Step], tuple[Step, KnownEnds | None]]


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
            for step in piece.steps:
                yield Prepared(piece.at, piece.source, step)
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
        self._n_jobs = n_jobs
        self._is_settled = is_settled
        self._open: deque[tuple[Piece, Future[Chunk] | None]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._stop = threading.Event()
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
        elif chunk.batches and chunk.batches[-1].step.fraction == 1.0:
            self._open[0] = piece, None  # nothing is left that is worth a thread
        else:
            self._open[0] = piece, self._submit(piece)
        return chunk

    def _open_more(self) -> None:
        """Open pieces and submit their tasks, as many as may be read at the same time."""
        while self._error is None and len(self._open) < self._n_jobs:
            if self._open:
                last, future = self._open[-1]
                if future is None or last.source.is_remote:  # which has threads already
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
        n_edges = 0
        try:
            while n_edges < most and not self._stop.is_set():
                step = next(piece.steps, None)
                if step is None:
                    return Chunk(_join(batches), True)
                n_edges += max(1, step.raw.u.size)
                known = None
                if looks_up:
                    step, known = piece.look_up(step)
                batches.append(Prepared(piece.at, piece.source, step, known))
        except Exception as error:
            return Chunk(_join(batches), True, error)
        return Chunk(_join(batches), False)

    def close(self) -> None:
        """Stop the threads, and close what is open."""
        self._stop.set()
        if self._pool is not None and os.getpid() == self._process:
            self._pool.shutdown(wait=True, cancel_futures=True)
        for piece, _ in self._open:
            with suppress(Exception):
                _close(piece.steps)
        _close(self._pieces)


def _join(batches: deque[Prepared]) -> deque[Prepared]:
    """Return one batch if all ids are known: threads share the work on a large one better."""
    if len(batches) < 2 or any(
        each.known is None or each.known.rows is not None for each in batches
    ):
        return batches
    known = [each.known for each in batches if each.known is not None]
    raws = [each.step.raw for each in batches]
    last = batches[-1]
    raw = raws[0]._replace(
        w=_concatenate([raw.w for raw in raws]),
        t=_concatenate([raw.t for raw in raws]),
        n_bad=sum(raw.n_bad for raw in raws),
        first_bad=next((raw.first_bad for raw in raws if raw.first_bad), None),
    )
    ends = KnownEnds(
        np.concatenate([each.u for each in known]), np.concatenate([each.v for each in known])
    )
    return deque([last._replace(step=last.step._replace(raw=raw), known=ends)])


def _concatenate(columns: list[Any]) -> Any:
    """Return the columns of all batches in one; None if there are none."""
    return None if columns[0] is None else np.concatenate(columns)


def _close(iterator: Any) -> None:
    if hasattr(iterator, "close"):
        iterator.close()
