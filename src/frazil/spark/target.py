"""The table that a run writes to: looked at before anything is written, made when everything else is known to be right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table

from frazil.errors import BadInput, CommitConflict, OutcomeUnknown, SchemaMismatch
from frazil.settings import IngestSettings
from frazil.snapshot.alignment import check_fits
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.schema import table_schema
from frazil.snapshot.schema_commit import merge_schema, planned_merge
from frazil.snapshot.schema_merge import SchemaMerge
from frazil.snapshot.warehouse import create_table, drop_unused, find_table, table_identifier
from frazil.sources.source import Source

_SHOWN_FILES = 3


class Target:
    """A table that is there, or all that is needed to make it. `created` says whether this run made it.

    `source` is the source as it reads for this table.
    """

    def __init__(self, catalog: Catalog, settings: IngestSettings, source: Source) -> None:
        self._catalog = catalog
        self._settings = settings
        self._identifier = table_identifier(settings.table)
        self._table = find_table(catalog, self._identifier)
        self.created = False
        self.source = source
        if self._table is None:
            self._schema = table_schema(source.schema(), settings.format_version, source.description)
            self._check_new()
        else:
            self._schema = self._table.schema()
            self._check_existing(self._table)
            self.source = source.for_table(self._schema)
            if settings.merge_schema:
                # Looked at here, so that what cannot be merged shows before Spark starts; done when the table is asked for.
                self._schema = self._planned_merge(self._table).schema
                self.source = source.for_table(self._schema)
        self._check_source()

    @property
    def is_partitioned(self) -> bool:
        """Whether each shard writes a file to each partition."""
        return bool(self._settings.partition_by) if self._table is None else not self._table.spec().is_unpartitioned()

    @contextmanager
    def table(self) -> Iterator[Table]:
        """The table, made if need be; one that this run made goes again if the run comes to nothing."""
        if self._table is None:
            self._table, self.created = create_table(
                self._catalog,
                self._identifier,
                self._schema,
                self._settings.partition_by,
                {"format-version": str(self._settings.format_version)},
            )
        with taken_back(self._catalog, self._table, self.created):
            if self._settings.merge_schema and not self.created:
                merge_schema(self._table, self.source.schema(), self.source.description)
            yield self._table

    def _check_source(self) -> None:
        """Name every file and column that does not fit, and say so where merging would help."""
        misfits = []
        for path, schema in self.source.schemas():
            try:
                check_fits(schema, self._schema, path, narrow=self._settings.on_bad_row == "reject")
            except SchemaMismatch as error:
                misfits.append(str(error))
        if misfits:
            more = f"; and {len(misfits) - _SHOWN_FILES} more kinds of file" if len(misfits) > _SHOWN_FILES else ""
            shown = "; ".join(misfits[:_SHOWN_FILES])
            raise SchemaMismatch(f"the source does not fit table {self._settings.table}: {shown}{more}{self._hint()}")

    def _hint(self) -> str:
        if self._table is None or self._settings.merge_schema:
            return ""
        try:
            self._planned_merge(self._table)
        except SchemaMismatch:
            return ""
        return ". With --merge-schema the table would be changed so that it fits"

    def _planned_merge(self, table: Table) -> SchemaMerge:
        return planned_merge(self._settings.table, table.metadata, self.source.schema(), self.source.description)

    def _check_new(self) -> None:
        if self._settings.branch != "main":
            raise BadInput(
                f"table {self._settings.table} does not exist, and a new table begins with branch main; "
                "leave --branch out"
            )
        if self._settings.partition_by:
            partition_spec(self._settings.partition_by, self._schema)

    def _check_existing(self, table: Table) -> None:
        """`--partition-by` describes a table to be made; of one that exists it may only say what is there."""
        if self._settings.partition_by is None:
            return
        wanted = partition_spec(self._settings.partition_by, table.schema())
        if _terms(wanted) != _terms(table.spec()):
            schema = table.schema()
            have = ", ".join(f"{f.transform}({schema.find_column_name(f.source_id)})" for f in table.spec().fields)
            raise BadInput(
                f"table {self._settings.table} exists and is partitioned by {have or 'nothing'}, not by "
                f"{self._settings.partition_by}; leave --partition-by out, or choose another table"
            )


@contextmanager
def taken_back(catalog: Catalog, table: Table, created: bool) -> Iterator[None]:
    """Drop a table that this run made if the run comes to nothing; not while its outcome or a resume is open."""
    try:
        yield
    except (OutcomeUnknown, CommitConflict):
        raise
    except BaseException as error:
        try:
            if created:
                drop_unused(catalog, table)
        except Exception as failure:  # noqa: BLE001  why the run failed matters more
            error.add_note(f"the empty table {'.'.join(table.name())} could not be taken back ({failure})")
        raise


def _terms(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(field.transform)) for field in spec.fields]
