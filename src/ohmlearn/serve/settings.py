"""Settings of a service: how edges are forgotten, how often it answers, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from ohmlearn.checks.parameters import N_JOBS, Constraints, Interval, check_parameters
from ohmlearn.checks.times import DURATIONS, check_duration
from ohmlearn.errors import InputError, Param
from ohmlearn.estimators.problem import HFSParameters
from ohmlearn.reading.read_options import ScaledColumn, split_weight

CHOICES = (
    "method", "gamma", "class_prior", "prior_strength", "normalization", "calibration",
)  # fmt: skip
SHORTEST = 1.0  # seconds of a half-life or a window; the times of edges are Unix seconds
# Parameters of the log, and which settings they are.
OF_THE_LOG = {
    "half_life": "half_life", "horizon": "window", "epsilon": "epsilon", "random_state": "seed",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a `Service`.

    The first four are stored in the folder when it is made, and `event_id` when it is given first.
    Later they may be left out, and must not differ.
    """

    half_life: float | str | None = None  # in which an edge loses half of its weight, such as "7d"
    window: float | str | None = None  # only edges of this time count; not with a half-life
    epsilon: float | None = None  # accuracy of the sparsifier; 0.8 by default
    seed: int | None = None  # for random numbers; 0 by default
    event_id: str | None = None  # column with ids of events: a row whose event is known is left out
    # Column of weights in bodies, or a function of it such as "amount:log"; "none": all are 1.
    weight: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)  # parameters of the classifier
    features: Mapping[str, Any] = field(default_factory=dict)  # parameters of `LiveFeatures`
    min_probability: float | None = None  # nodes whose label is less probable get none
    passes: int = 1  # over the edges for each answer; 1 uses the sparsifier alone
    certify_every: float | str | None = 600.0  # between comparisons with all edges; None for never
    every_seconds: float = 2.0  # shortest time between two answers,
    every_edges: int = 1_000_000  # except after so many new edges
    n_jobs: int = 1  # threads of the sampler, and of solves
    max_queued_bytes: int = 64 << 20  # of batches that wait to be written; more are refused
    max_lag_edges: int = 8_000_000  # durable ones that the sampler may be behind, before that, too
    max_kept_batches: int = 1_000_000  # batch ids that are remembered
    max_kept_changes: int = 1_000_000  # changes of labels that are remembered
    checkpoint_seconds: float = 60.0  # between saves; after a crash, edges since are read again

    def __post_init__(self) -> None:
        check_parameters(type(self).__name__, CONSTRAINTS, vars(self))
        if self.half_life is not None and self.window is not None:
            raise InputError(
                f"{Param('half_life', self.half_life)} and {Param('window', self.window)} exclude "
                f"each other; give one of them"
            )
        if unknown := self.model.keys() - CHOICES:
            raise InputError(
                f"{Param('model')} has {min(unknown)!r}; it may have {', '.join(CHOICES)}"
            )
        HFSParameters.check(type(self).__name__, dict(self.model))
        read_weight(self.weight)
        for name in ("half_life", "window", "certify_every"):
            value = getattr(self, name)
            if value is not None and check_duration(name, value) < SHORTEST:
                why = "is shorter than a second; give a longer time"
                raise InputError(f"{Param(name, value)} {why}")

    @property
    def certify_seconds(self) -> float | None:
        """The time between two certificates in seconds."""
        if self.certify_every is None:
            return None
        return check_duration("certify_every", self.certify_every)

    def of_the_log(self) -> dict[str, Any]:
        """Return the parameters of the log that were given, by their names there."""
        given = {name: getattr(self, own) for name, own in OF_THE_LOG.items()}
        return {name: value for name, value in given.items() if value is not None}


def read_weight(given: str | None) -> ScaledColumn | None:
    """Return the column of weights and the function of it; None if usual names decide."""
    if given is None:
        return None
    found = split_weight(given)
    if found.function == "cap":
        why = f"{Param('weight', given)}: the quantile of a stream that goes on is not known"
        raise InputError(why, remedy="use log or sqrt")
    return found


CONSTRAINTS: Constraints = {
    "half_life": (None, DURATIONS),
    "window": (None, DURATIONS),
    "epsilon": (None, Interval(Real, 0, 1, closed="neither")),
    "seed": (None, Interval(Integral, 0)),
    "event_id": (None, str),
    "weight": (None, str),
    "model": (Mapping,),
    "features": (Mapping,),
    "min_probability": (None, Interval(Real, 0, 1)),
    "passes": (Interval(Integral, 1),),
    "certify_every": (None, DURATIONS),
    "every_seconds": (Interval(Real, 0),),
    "every_edges": (Interval(Integral, 1),),
    "n_jobs": N_JOBS,
    "max_queued_bytes": (Interval(Integral, 1),),
    "max_lag_edges": (Interval(Integral, 1),),
    "max_kept_batches": (Interval(Integral, 1),),
    "max_kept_changes": (Interval(Integral, 1),),
    "checkpoint_seconds": (Interval(Real, 0),),
}
