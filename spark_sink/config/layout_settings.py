"""The settings of `tables.layout`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from spark_sink.schema.layout import Feature, FileLayout, Partition, WriteMode, contradiction


def _partition(text: str) -> str:
    return str(Partition.parse(text))


_Column = Annotated[str, Field(min_length=1)]


class LayoutSettings(BaseModel):
    """The layout of a table's files. Unset values are the same as for a table without a layout."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: tuple[Annotated[str, AfterValidator(_partition)], ...] = Field(
        default=(),
        description="Partitions, outermost first: a column and, for Iceberg tables, also `day(column)`, "
        "`month(column)` or `bucket(16, column)`.",
    )
    sort: tuple[_Column, ...] = Field(
        default=(),
        description="Columns by which Iceberg tables sort the rows in their files, each written as `column` or "
        "`column desc`.",
    )
    cluster: tuple[_Column, ...] = Field(
        default=(), max_length=4, description="Columns for liquid clustering of a Delta table, which Spark then writes."
    )
    format_version: Literal[2, 3] | None = Field(
        default=None,
        description="Format version of an Iceberg table. Defaults to the newest version that the catalog supports.",
    )
    write_mode: WriteMode | None = Field(
        default=None,
        description="How Iceberg tables store changes to existing rows: next to the data files, or by rewriting these "
        "files. Defaults to merge-on-read.",
    )
    features: tuple[Feature, ...] = Field(
        default=(), description="Features of a Delta table. Spark writes tables with a feature that deltalake lacks."
    )
    file_megabytes: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Size in MiB to which maintenance merges files. It is also the target size for new files in "
        "Iceberg tables. Defaults to 128.",
    )

    @model_validator(mode="after")
    def _is_possible(self) -> LayoutSettings:
        if why := contradiction(self.layout):
            raise ValueError(why)
        return self

    @property
    def layout(self) -> FileLayout:
        return FileLayout.of(self.model_dump())
