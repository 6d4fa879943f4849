"""The settings of `tables.layout`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from spark_sink.schema.layout import Feature, FileLayout, Partition, WriteMode, contradiction


def _partition(text: str) -> str:
    return str(Partition.parse(text))


_Column = Annotated[str, Field(min_length=1)]


class LayoutSettings(BaseModel):
    """The layout of a table's files. If a value is unset, the table behaves as if it had no layout."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: tuple[Annotated[str, AfterValidator(_partition)], ...] = Field(
        default=(),
        description=(
            "Partition columns, outermost first. Iceberg tables also accept `day(column)`, `month(column)` and "
            "`bucket(16, column)`."
        ),
    )
    sort: tuple[_Column, ...] = Field(
        default=(),
        description=(
            "Columns by which an Iceberg table sorts the rows in each file, written as `column` or `column desc`."
        ),
    )
    cluster: tuple[_Column, ...] = Field(
        default=(),
        max_length=4,
        description="Columns for liquid clustering of a Delta table. Spark then writes the table.",
    )
    format_version: Literal[2, 3] | None = Field(
        default=None,
        description="Format version of Iceberg tables. Defaults to the newest version that the catalog supports.",
    )
    write_mode: WriteMode | None = Field(
        default=None,
        description=(
            "How an Iceberg table stores changes to existing rows: in files next to the data files, or by rewriting "
            "the data files. Defaults to merge-on-read."
        ),
    )
    features: tuple[Feature, ...] = Field(
        default=(),
        description=(
            "Features of a Delta table. If a table uses a feature that deltalake lacks, Spark writes the table."
        ),
    )
    file_megabytes: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description=(
            "Target size in MiB when maintenance merges files. In Iceberg tables, new files also have this target "
            "size. Defaults to 128."
        ),
    )

    @model_validator(mode="after")
    def _is_possible(self) -> LayoutSettings:
        if why := contradiction(self.layout):
            raise ValueError(why)
        return self

    @property
    def layout(self) -> FileLayout:
        return FileLayout.of(self.model_dump())
