"""The estimated accuracy of live answers over time, and an alarm when it falls."""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from ohmlearn.estimators.answer import FEW, ClassAnswer, judge_left_out
from ohmlearn.report.report_quality import group_by_probability, group_labels

if TYPE_CHECKING:
    from ohmlearn.features.feature_classifier import FeatureClassAnswer

EVERY = 10.0  # seconds between two points that are kept; the last one is always there
MOST = 1000  # points
PAST = 3600.0  # seconds that an estimate is compared with
LEAST = 3  # points of the past, before there can be an alarm
N_SHOWN = 120  # points in the status


class Alarm(NamedTuple):
    """Since when the estimate is too low, and what it is compared with."""

    since: float
    usual: float
    low: float  # lower end of the usual interval


class AccuracyWatch:
    """Keeps estimates of the accuracy, each with its interval, and compares the last with others.

    There is an alarm if the estimate is lower than the interval of the past hour, that is, than the
    median of its lower ends. It ends when the estimate is back, or after an hour.
    """

    def __init__(self) -> None:
        self.points: deque[dict[str, Any]] = deque(maxlen=MOST)
        self.last: dict[str, Any] | None = None
        self.alarm: Alarm | None = None
        self.reliability: list[dict[str, Any]] = []  # by tenths of the probability
        self.by_class: list[dict[str, Any]] = []
        self.is_rough = False

    def see(self, at: float, answer: ClassAnswer | FeatureClassAnswer | None) -> None:
        """Take the estimate of an answer, if it has one."""
        self.last, self.reliability, self.by_class = None, [], []
        estimate = None if answer is None or len(answer.counts) < 2 else answer.accuracy()
        if answer is None or estimate is None or math.isnan(estimate.value):
            return
        self.is_rough = bool(answer.counts.sum() < FEW * len(answer.counts))
        left_out = judge_left_out(answer)
        assert answer.problem.classes is not None
        names = answer.problem.classes.astype(str).tolist()
        self.reliability = [one._asdict() for one in group_by_probability(*left_out[:3])]
        self.by_class = [
            {"label": names[one.key], **one._asdict()} for one in group_labels(*left_out)
        ]
        self.add(at, *estimate)

    def add(self, at: float, value: float, low: float, high: float, n_labels: int) -> None:
        """Take an estimate."""
        past = [one for one in self.points if at - PAST <= one["at"] < at]
        self.last = {"at": at, "value": value, "low": low, "high": high, "n_labels": n_labels}
        alarm = self.alarm
        if alarm is not None and (value >= alarm.low or at - alarm.since > PAST):
            self.alarm = None
        elif alarm is None and len(past) >= LEAST:
            usual = median(one["value"] for one in past)
            lowest = median(one["low"] for one in past)
            self.alarm = Alarm(at, usual, lowest) if value < lowest else None
        if not self.points or at - self.points[-1]["at"] >= EVERY:
            self.points.append(self.last)

    def describe(self) -> str | None:
        """Return the alarm in words; None if there is none."""
        if self.alarm is None or self.last is None:
            return None
        return (
            f"the estimated accuracy has fallen to {self.last['value']:.0%}, from usually "
            f"{self.alarm.usual:.0%} ({self.alarm.low:.0%} or more): labels may be wrong, or the "
            f"edges say less about the classes than before"
        )

    def status(self) -> dict[str, Any]:
        """Return the figures for the status."""
        step = -(-len(self.points) // N_SHOWN) or 1
        history = [*list(self.points)[::step], *([self.last] if self.last else [])]
        return {
            "estimate": self.last,
            "is_rough": self.is_rough,
            "alarm": self.describe(),
            "reliability": self.reliability,
            "by_class": self.by_class,
            "history": history,
        }
