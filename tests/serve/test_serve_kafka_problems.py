"""Errors of Kafka: how long they are shown, how often they are logged, what they say."""

import time

import pytest
from confluent_kafka import KafkaError, KafkaException

from ohmlearn.serve.kafka_problems import Moved, Problems, reason_of
from ohmlearn.serve.serve_errors import Refused


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose last entry is the present."""
    times = [1e9]
    monkeypatch.setattr(time, "time", lambda: times[-1])
    return times


def test_an_error_is_shown_for_a_minute(clock):
    problems = Problems()
    assert (problems.current(), problems.last) == (None, None)
    problems.note("no broker")
    clock.append(1e9 + 59)
    assert problems.current() == "no broker"
    clock.append(1e9 + 60)
    assert problems.current() is None
    assert problems.last == {"message": "no broker", "at": 1e9}


def test_an_error_is_logged_once_a_minute(clock, caplog):
    problems = Problems()

    def logged(*error):
        caplog.clear()
        problems.note(*error)
        assert problems.current() == error[0]
        return caplog.messages

    assert logged("no broker") == ["Kafka: no broker"]
    assert logged("no topic") == ["Kafka: no topic"]
    assert logged("no broker") == []
    assert logged("127.0.0.1:9092 refused", -195) == ["Kafka: 127.0.0.1:9092 refused"]
    assert logged("127.0.0.1:9093 refused", -195) == []  # of the same kind
    clock.append(1e9 + 61)
    assert logged("no broker") == ["Kafka: no broker"]
    assert logged("127.0.0.1:9093 refused", -195) == ["Kafka: 127.0.0.1:9093 refused"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KafkaException(KafkaError(KafkaError._TRANSPORT, "broker is away")), "broker is away"),
        (Refused(429, "the queue is full", retry_after=2.0), "the queue is full"),
        (Moved("edges [0] is at offset 7"), "edges [0] is at offset 7"),
        (OSError(28, "No space left on device", "/srv/secret"), "No space left on device"),
        (OSError("/srv/secret"), "OSError; the log of the server has the reason"),
        (RuntimeError("/srv/secret"), "RuntimeError; the log of the server has the reason"),
    ],
)
def test_reasons_name_no_files(error, reason):
    assert reason_of(error) == reason
