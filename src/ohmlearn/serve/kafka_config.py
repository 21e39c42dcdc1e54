"""Settings of librdkafka, the library that confluent-kafka uses."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError

__all__ = ["merge_config", "read_config", "refuse_misconfigured"]

DEFAULTS = {
    "session.timeout.ms": 10_000,  # after a crash, the group waits so long for the lost member
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 2,  # errors come by a call, and are logged once
}
FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",  # messages must not be skipped without a word
}
MISCONFIGURED = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}


def merge_config(
    config: dict[str, Any], bootstrap: str, group: str | None, folder: Path
) -> dict[str, Any]:
    """Return the settings of a client; refuse those with which messages could be lost."""
    if config.get("bootstrap.servers", bootstrap) != bootstrap:
        raise ValueError(
            f"bootstrap.servers = {config['bootstrap.servers']!r} in the settings of Kafka differs "
            f"from the address {bootstrap!r}; leave it out"
        )
    for name, value in FIXED.items():
        if str(config.get(name, value)).lower() != str(value).lower():
            raise ValueError(
                f"{name} = {config[name]!r} in the settings of Kafka is not possible, because "
                f"ohmlearn stores offsets together with edges; leave it out"
            )
    # The group of a folder is its own, as two folders in one group would share the messages.
    where = f"{socket.gethostname()}:{folder.resolve()}"
    own = "ohmlearn-" + hashlib.sha256(where.encode()).hexdigest()[:12]
    group = group or config.get("group.id") or own
    return {**DEFAULTS, **config, **FIXED, "bootstrap.servers": bootstrap, "group.id": group}


def refuse_misconfigured(error: KafkaError) -> None:
    """Raise errors that no waiting cures."""
    if error.code() in MISCONFIGURED:
        raise ValueError(
            f"Kafka refuses the connection: {error.str()}; check the settings of SASL and TLS, "
            f"and the rights to the topics and the group"
        )


def read_config(path: str | Path) -> dict[str, str]:
    """Read settings of librdkafka, such as those of SASL and TLS, from a file of properties.

    A line is ``name = value``; lines that start with "#" or "!" are comments. Error messages do not
    show values, which may be passwords.
    """
    settings: dict[str, str] = {}
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name or any(character.isspace() for character in name):
            raise ValueError(f"line {number} of {path} must be name = value")
        if name in settings:
            raise ValueError(f"line {number} of {path} sets {name} a second time")
        settings[name] = value.strip()
    return settings
