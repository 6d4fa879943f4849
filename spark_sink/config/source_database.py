"""The databases that `spark-sink verify --against` can read."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class DatabaseType(StrEnum):
    """The kinds of databases."""

    MARIADB = "mariadb"
    POSTGRES = "postgres"


class SourceDatabase(BaseModel):
    """A database that `spark-sink verify --against` can read. The sink itself does not connect to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: DatabaseType = Field(
        description="Type of the database, which also selects the driver: PyMySQL for `mariadb`, psycopg2 for "
        "`postgres`."
    )
    connect: dict[str, SecretStr] = Field(
        description="Arguments for the driver's `connect`, as text, such as `host`, `port`, `user` and `password`. "
        "Take the password from the environment, as in `${SHOP_PASSWORD}`."
    )
