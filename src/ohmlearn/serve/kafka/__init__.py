"""Edges from Kafka."""

from ohmlearn.serve.kafka.config import read_config
from ohmlearn.serve.kafka.consumer import Consumer

__all__ = ["Consumer", "read_config"]
