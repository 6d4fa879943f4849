"""The databases that `spark-sink verify --against` can read."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator


class DatabaseType(StrEnum):
    """The kinds of databases."""

    MARIADB = "mariadb"
    POSTGRES = "postgres"


NUMBERS = frozenset({"port", "connect_timeout", "read_timeout", "write_timeout"})
"""PyMySQL does not accept text for these arguments."""


class SourceDatabase(BaseModel):
    """A database that `spark-sink verify --against` can read. The sink itself does not connect to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: DatabaseType = Field(
        description="Type of database. It also determines the driver: PyMySQL for `mariadb`, psycopg2 for `postgres`."
    )
    connect: dict[str, SecretStr] = Field(
        description=(
            "Arguments for the driver's `connect` function, as text. Typical ones are `host`, `port`, `user` and "
            "`password`. Take the password from the environment by writing ${SHOP_PASSWORD}, for example."
        )
    )

    @model_validator(mode="after")
    def _check_arguments(self) -> Self:
        if "dsn" in self.connect:
            # Error messages of a driver can quote parts of it.
            raise ValueError("`connect.dsn` is not allowed; give host, port, user and password separately")
        for name in sorted(NUMBERS & self.connect.keys()) if self.type is DatabaseType.MARIADB else ():
            value = self.connect[name].get_secret_value()
            if not (value.isascii() and value.isdecimal()):
                raise ValueError(f"`connect.{name}` must be a whole number")
        return self
