"""Objects that threads share, and how they behave in a forked child.

Kernels run without the GIL, so each object has a lock that lets one thread in at a time. A forked
child has only the thread that called fork. A lock that another thread held would never be released
in the child, and an object that another thread was changing would stay half-changed.
"""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, RLock
from typing import Any, NoReturn, TypeVar, cast
from weakref import WeakValueDictionary

Method = TypeVar("Method", bound=Callable[..., Any])


class Shared:
    """Base class of objects with a lock that also work in a forked child.

    Attributes
    ----------
    _lock : RLock
        Held while a kernel works on the object. It is not copied or pickled; see `_state`.
    _readers : Condition
        Notified when a thread ends to read or to change the object. Threads that read take turns
        with one that changes it, but need no lock; see `_reading`.
    """

    _lock: Any

    def _make_lock(self) -> None:
        """Make the lock; call this when the object is made or unpickled."""
        self._lock = RLock()
        self._in_change = False
        self._meet_readers()
        _shared[id(self)] = self

    def _meet_readers(self) -> None:
        self._readers = Condition()
        self._n_readers = 0

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Mark the object as half-changed while a kernel writes to it; readers wait meanwhile."""
        try:
            with self._readers:
                self._in_change = True  # else new readers could keep this thread waiting for ever
                self._readers.wait_for(lambda: self._n_readers == 0)
            yield
        finally:
            with self._readers:
                self._in_change = False
                self._readers.notify_all()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Let several threads read at a time, while no thread changes the object.

        Inside, the lock must not be taken: the thread that has it may wait for this one.
        """
        with self._readers:
            self._readers.wait_for(lambda: not self._in_change)
            self._n_readers += 1
        try:
            yield
        finally:
            with self._readers:
                self._n_readers -= 1
                self._readers.notify_all()

    def _state(self) -> dict[str, Any]:
        """Return all attributes except those that belong to this process."""
        own = ("_lock", "_in_change", "_readers", "_n_readers")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def _cut_off(self) -> None:
        """Handle a half-changed object; called in a child that was forked during the change.

        The data that the kernel was writing must never be freed (``_core.never_free``), because
        its destructor could fail.
        """
        raise NotImplementedError


def in_turn(method: Method) -> Method:
    """Decorate a method so that only one thread at a time runs it on the same object."""

    @functools.wraps(method)
    def locked(self: Shared, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return cast(Method, locked)


def refuse_cut_off(what: str) -> NoReturn:
    """Raise RuntimeError for an object that a fork has left half-changed."""
    raise RuntimeError(
        f"another thread was changing this {what} when the process was forked, so its state is "
        f"incomplete in the child; use it in the parent, or fork while no call is at work on it"
    )


_shared: WeakValueDictionary[int, Shared] = WeakValueDictionary()


def _after_fork_in_child() -> None:
    for shared in list(_shared.values()):
        shared._meet_readers()  # those of the parent are not here
        if shared._lock.acquire(blocking=False):  # free, or held by the thread that forked
            shared._lock.release()
            continue
        shared._lock = RLock()
        if shared._in_change:
            shared._in_change = False
            shared._cut_off()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
