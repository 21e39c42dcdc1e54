"""Parameters of a `StreamingSparsifier`: how they are checked, and what they ask of the sampler."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from types import NoneType

import numpy as np

from ohmlearn import _core
from ohmlearn._defaults import EPSILON
from ohmlearn.checks.edge_arrays import check_n_nodes
from ohmlearn.checks.parameters import (
    LARGEST,
    SMALLEST,
    check_count,
    check_fraction,
    check_memory,
    check_n_jobs,
    check_option,
    check_seed,
)
from ohmlearn.checks.times import check_duration, check_duration_unit
from ohmlearn.errors import InputError, Param, Setting, bad_value

Duration = float | str | timedelta | np.timedelta64
NOTHING = np.empty(0, np.int32)
SCHEMES = ("resample", "online", "paper")
# beta = constant * (ln n + offset) / epsilon^2. "theory" is the matrix Chernoff bound for
# independent coins at failure probability 0.01; "practical" is measured (docs/calibration.md).
CONSTANTS = {"theory": (3.0, math.log(2 / 0.01)), "practical": (1.2, 0.0)}
# Factor on the number of copies of the scheme "paper": as printed, and from measurements.
PAPER_CONSTANTS = {"theory": 1.0, "practical": 0.1}
# Peak memory in bytes per target edge (up to 2.5 times as many edges are stored) and per node.
ROW_BYTES, NODE_BYTES = 160, 400
TIME_BYTES = 80  # more per target edge, if rows have times
MOST_NODES = 2**30  # clusters are numbered after the nodes, with 32 bits
MAX_EDGES = 2**53  # the largest budget; such numbers are exact as float64
TYPES: dict[str, tuple[type, ...]] = {  # in a file
    "n_nodes": (int, NoneType),
    "epsilon": (float,),
    "max_edges": (int, NoneType),
    "memory": (int, str, NoneType),
    "scheme": (str,),
    "constants": (str,),
    "n_jobs": (int, NoneType),
    "verbose": (int,),
    "half_life": (int, float, str, NoneType),
    "horizon": (int, float, str, NoneType),
}
LATER = {"half_life": None, "horizon": None}  # parameters that older files do not have


@dataclass(frozen=True)
class SparsifierOptions:
    """The parameters of a sparsifier except its seed, checked."""

    n_nodes: int | None = None
    epsilon: float = EPSILON
    max_edges: int | None = None
    memory: int | str | None = None
    scheme: str = "resample"
    constants: str = "practical"
    n_jobs: int | None = None
    verbose: int = 0
    half_life: Duration | None = None
    horizon: Duration | None = None

    def __post_init__(self) -> None:
        self._check_times()
        n = self.n_nodes
        if n is not None:
            n = check_n_nodes(n, NOTHING, NOTHING)
            if n > MOST_NODES:
                raise bad_value("n_nodes", f"be at most 2**30 = {MOST_NODES}", n)
        check_fraction("epsilon", self.epsilon)
        check_option("scheme", self.scheme, SCHEMES)
        check_option("constants", self.constants, CONSTANTS)
        check_n_jobs(self.n_jobs)
        if self.max_edges is not None and self.memory is not None:
            raise InputError(
                f"{Param('max_edges', self.max_edges)} and {Param('memory', self.memory)} both "
                f"set the budget; give only one of them"
            )
        if self.max_edges is not None:
            check_count("max_edges", self.max_edges, MAX_EDGES)
        if self.memory is not None:
            check_memory("memory", self.memory)
            if n is None:
                why = "because the nodes use part of it"
                raise InputError(f"{Param('memory')} needs {Param('n_nodes')}, {why}")
            if self.budget < 2 * n:
                raise InputError(
                    f"{Param('memory', self.memory)} leaves room for {max(self.budget, 0)} "
                    f"edges among {n} nodes, fewer than two per node; give at least "
                    f"{n * (NODE_BYTES + 2 * self._row_bytes)} bytes"
                )
        if n is not None:
            self.check_room(n)
        if self.budget and self.scheme != "resample":
            raise InputError(f"a budget {self._needs_resampling}")
        if self.scheme == "paper" and n is None:
            problem = f"{Param('scheme', 'paper')} must know the number of nodes"
            raise InputError(problem, remedy=f"give {Param('n_nodes')}")

    @property
    def _needs_resampling(self) -> str:
        return f"needs {Setting('scheme', 'resample')}, got {Param('scheme', self.scheme)}"

    @property
    def budget(self) -> int:
        """The number of edges to keep; 0 if `epsilon` decides."""
        if self.max_edges is not None:
            return int(self.max_edges)
        if self.memory is None or self.n_nodes is None:
            return 0
        left = check_memory("memory", self.memory) - self.n_nodes * NODE_BYTES
        return left // self._row_bytes

    @property
    def _row_bytes(self) -> int:
        return ROW_BYTES + TIME_BYTES * self.has_times

    @property
    def decay(self) -> float:
        """The half-life as a number; infinite if weights do not fade."""
        if self.half_life is None:
            return math.inf
        found = check_duration("half_life", self.half_life)
        return found if found < LARGEST else math.inf  # times are below 2**60

    @property
    def smallest_weight(self) -> float:
        """The smallest weight other than 0 that can be stored, and kept while it fades."""
        return _core.SMALLEST_WEIGHT if self.decay == math.inf else _core.SMALLEST_FADING

    @property
    def reach(self) -> float | None:
        """The horizon as a number."""
        return None if self.horizon is None else check_duration("horizon", self.horizon)

    @property
    def has_times(self) -> bool:
        """Whether edges need times."""
        return self.horizon is not None or self.decay < math.inf

    def _check_times(self) -> None:
        for name in ("half_life", "horizon"):
            value = getattr(self, name)
            if value is None:
                continue
            duration = check_duration(name, value)
            if duration < SMALLEST:
                raise bad_value(name, f"be at least {SMALLEST}", value)
            if not isinstance(value, str | int | float):  # a timedelta is in seconds, as a text
                object.__setattr__(self, name, f"{duration:.9f}s")
            if self.scheme != "resample":
                raise InputError(f"{Param(name)} {self._needs_resampling}")
        if self.half_life is not None and self.horizon is not None:
            ways = f"{Param('half_life')} and {Param('horizon')}"
            raise InputError(f"{ways} are two ways to forget; give only one of them")

    @property
    def threads(self) -> int:
        """The number of threads that `n_jobs` asks for."""
        return check_n_jobs(self.n_jobs)

    def describe(self) -> str:
        """Return the parameters that differ from their defaults, as in a call."""
        defaults = {field.name: field.default for field in fields(self)}
        return ", ".join(
            f"{name}={value!r}" for name, value in asdict(self).items() if value != defaults[name]
        )

    def check_unit(self, unit: str | None) -> None:
        """Refuse a duration in seconds for times that have another unit."""
        for name in ("half_life", "horizon"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_duration_unit(name, value, unit)

    def check_room(self, n_nodes: int) -> None:
        """Refuse a budget that is too small for a connected graph with so many nodes."""
        if 0 < self.budget < 2 * n_nodes:
            raise InputError(
                f"{Param('max_edges', self.budget)} is fewer than two edges for each of {n_nodes} "
                f"nodes; give at least {2 * n_nodes}"
            )

    def to_json(self, seed: int) -> str:
        """Return the parameters and the seed as text, for a file."""
        return json.dumps({**asdict(self), "seed": seed}, default=np.generic.item)

    @classmethod
    def from_json(cls, text: object) -> tuple[SparsifierOptions, int]:
        """Return parameters and seed from a file; anything else raises ValueError."""
        text = np.asarray(text)
        if text.dtype.kind != "U" or text.ndim != 0:
            raise ValueError("its parameters are missing")
        try:
            found = json.loads(str(text))
        except (ValueError, RecursionError):
            found = None
        expected = {**TYPES, "seed": (int,)}
        if isinstance(found, dict):
            found = LATER | found
        if not isinstance(found, dict) or set(found) != set(expected):
            raise ValueError(f"its parameters must be {', '.join(expected)}")
        for name, types in expected.items():
            if not isinstance(found[name], types):
                raise ValueError(f"its parameter {name} = {found[name]!r:.80} has the wrong type")
        seed = check_seed(found.pop("seed"))
        return cls(**found), seed
