"""What the statements for the two database engines, SQLite and PostgreSQL, differ in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    cast,
    delete,
    false,
    func,
    insert,
    inspect,
    literal_column,
    select,
    text,
    update,
)

from shared_core.store.tables import memory_state, schema

SEPARATOR: Final = "\x1f"
"""Between the values of a joined column: no normalised key holds it, other texts may."""

Kind: TypeAlias = Literal["real", "integer", "text", "blob"]
"""Of values, as SQLite tells them apart."""

_FETCHED_TOGETHER: Final = 2000
_SHOWN: Final = 20


class IndexShape(NamedTuple):
    """An index: its columns in order (``None`` for an expression), and whether it covers all rows, and forbids none."""

    columns: tuple[str | None, ...]
    plain: bool


class Dialect(ABC):
    """One engine's way of saying what the other says otherwise. All calls are inside a transaction."""

    @abstractmethod
    def fetch_rows(self, connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
        """The rows of a query, many at a time, as the driver makes them: a Boolean may be a number.

        For the large reads: through SQLAlchemy's result a row takes about three times as long. Values in the query
        are written into the statement, so they must be numbers.
        """

    @abstractmethod
    def insert_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert many rows, each a tuple of all columns in their order.

        The driver takes them as they are. Through SQLAlchemy's own path a write of 13 links an entry takes about
        1.6 times as long, most of it in preparing parameters.
        """

    @abstractmethod
    def joined(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """An aggregate: the values of a column in one text, :data:`SEPARATOR` between them.

        A value so read takes half the time of a row or less. The order is that in which the engine comes upon the
        rows: what runs in parallel has to be joined in one statement. A text may not be longer than 1 GB.
        """

    @abstractmethod
    def next_moment(self, connection: Connection) -> int:
        """A moment later than all that were shown to whoever may write now."""

    @abstractmethod
    def show_moment(self, connection: Connection, moment: int, *, erased: bool = False) -> None:
        """Let the memory's clock show a moment; ``erased``: something was erased then, whose bytes are to be wiped."""

    @abstractmethod
    def clock(self, connection: Connection) -> int | None:
        """What the memory's clock shows; ``None`` if it is broken."""

    @abstractmethod
    def set_clock(self, connection: Connection, moment: int) -> None:
        """Make the clock show a moment, whatever became of it."""

    @abstractmethod
    def damages(self, connection: Connection) -> Iterator[str]:
        """What is wrong with the database itself, as far as the engine tells."""

    @abstractmethod
    def strays(self, connection: Connection) -> Iterator[str]:
        """Rows that refer to rows which do not exist."""

    @abstractmethod
    def unfinished_erasure(self, connection: Connection) -> bool:
        """Whether the wiping of something erased is still to be done by this project."""

    @abstractmethod
    def indexes(self, connection: Connection, table: Table) -> dict[str, IndexShape]:
        """The indexes of a table that no constraint of it brings along, as far as they are this project's business."""

    @abstractmethod
    def triggers(self, connection: Connection) -> list[str]:
        """What runs by itself when something is written: this project makes no such thing."""

    @abstractmethod
    def mend_indexes(self, connection: Connection) -> None:
        """Make the indexes anew."""

    @abstractmethod
    def is_of(self, column: ColumnElement[Any], kind: Kind) -> ColumnElement[bool]:
        """That a value has the kind that its column is declared with, and is not null."""

    @abstractmethod
    def holds_nul(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """That a text holds a NUL character."""

    @abstractmethod
    def go_on_numbering(self, connection: Connection) -> None:
        """Number what is made from now on after what rows with given numbers hold."""


_PRAGMA_INDEXES: Final = text('SELECT seq, name, "unique", origin, partial FROM pragma_index_list(:table)')
_PRAGMA_COLUMNS: Final = text("SELECT name FROM pragma_index_info(:name) ORDER BY seqno")


class _SQLite(Dialect):
    def fetch_rows(self, connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(_with_numbers(connection, query))
            while rows := cursor.fetchmany(_FETCHED_TOGETHER):
                yield rows

    def insert_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            connection.exec_driver_sql(str(insert(table).compile(dialect=connection.dialect)), list(rows))

    def joined(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        # As a literal the separator takes half the time of a parameter, which is copied for every row.
        values: ColumnElement[str] = func.group_concat(column, literal_column(f"'{SEPARATOR}'"))
        return values

    def next_moment(self, connection: Connection) -> int:
        shown: int = connection.execute(select(memory_state.c.generation)).scalar_one()
        return shown + 1  # no other writer comes in between

    def show_moment(self, connection: Connection, moment: int, *, erased: bool = False) -> None:
        shown = {"generation": moment, "unwiped": moment} if erased else {"generation": moment}
        connection.execute(update(memory_state).values(shown))

    def clock(self, connection: Connection) -> int | None:
        shown = connection.execute(select(memory_state.c.generation)).scalars().all()
        return shown[0] if len(shown) == 1 else None

    def set_clock(self, connection: Connection, moment: int) -> None:
        connection.execute(delete(memory_state))
        connection.execute(insert(memory_state).values(id=1, generation=moment, unwiped=0))

    def damages(self, connection: Connection) -> Iterator[str]:
        for (found,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_SHOWN})"):
            if found != "ok":
                yield " ".join(str(found).split())

    def strays(self, connection: Connection) -> Iterator[str]:
        for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(_SHOWN):
            where = "a row" if row is None else f"row {row}"
            yield f"{where} of {table} belongs to no row of {parent}"

    def unfinished_erasure(self, connection: Connection) -> bool:
        return bool(connection.scalar(select(func.max(memory_state.c.unwiped))))

    def indexes(self, connection: Connection, table: Table) -> dict[str, IndexShape]:
        found = {}
        for _, name, unique, origin, partial in connection.execute(_PRAGMA_INDEXES, {"table": table.name}).all():
            if origin == "c":
                columns = connection.execute(_PRAGMA_COLUMNS, {"name": name}).scalars()
                found[name] = IndexShape(tuple(columns), not unique and not partial)
        return found

    def triggers(self, connection: Connection) -> list[str]:
        return list(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars())

    def mend_indexes(self, connection: Connection) -> None:
        connection.exec_driver_sql("REINDEX")

    def is_of(self, column: ColumnElement[Any], kind: Kind) -> ColumnElement[bool]:
        # SQLite does not check the type of a value.
        return func.typeof(column) == kind

    def holds_nul(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        return func.instr(column, text("char(0)")) > 0

    def go_on_numbering(self, connection: Connection) -> None:
        """SQLite looks for the highest number itself."""


class _PostgreSQL(Dialect):
    """Moments come from a sequence, which no writer keeps from another: those of one namespace write in turn."""

    def fetch_rows(self, connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
        with closing(connection.connection.cursor(binary=True)) as cursor:
            cursor.execute(_with_numbers(connection, query))
            while rows := cursor.fetchmany(_FETCHED_TOGETHER):
                yield rows

    def insert_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        names = connection.dialect.identifier_preparer
        columns = ", ".join(names.format_column(column) for column in table.columns)
        with (
            closing(connection.connection.cursor()) as cursor,
            cursor.copy(f"COPY {names.format_table(table)} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def joined(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        values: ColumnElement[str] = func.string_agg(cast(column, Text), literal_column(f"'{SEPARATOR}'"))
        return values

    def next_moment(self, connection: Connection) -> int:
        moment: int = connection.exec_driver_sql("SELECT nextval('moments')").scalar_one()
        return moment

    def show_moment(self, connection: Connection, moment: int, *, erased: bool = False) -> None:
        """The sequence shows it already; the bytes of what was erased are the server's."""

    def clock(self, connection: Connection) -> int | None:
        shown: int = connection.exec_driver_sql(
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM moments"
        ).scalar_one()
        return shown

    def set_clock(self, connection: Connection, moment: int) -> None:
        connection.execute(select(func.setval("moments", max(moment, 1), moment > 0)))

    def damages(self, connection: Connection) -> Iterator[str]:
        """The server finds damage when it reads; its checks (``pg_amcheck``) are its operator's."""
        return iter(())

    def strays(self, connection: Connection) -> Iterator[str]:
        """The server does not let them come about."""
        return iter(())

    def unfinished_erasure(self, connection: Connection) -> bool:
        return False

    def indexes(self, connection: Connection, table: Table) -> dict[str, IndexShape]:
        own = {index.name for index in table.indexes}
        schema_name = connection.scalar(select(func.current_schema()))
        return {
            found["name"] or "": IndexShape(
                tuple(found["column_names"]),
                not found["unique"] and not found.get("dialect_options", {}).get("postgresql_where"),
            )
            for found in inspect(connection).get_indexes(table.name, schema=schema_name)
            if found["name"] in own
        }

    def triggers(self, connection: Connection) -> list[str]:
        """Those of a server are its operator's, as are indexes that he adds: replication and auditing use them."""
        return []

    def mend_indexes(self, connection: Connection) -> None:
        """Indexes are the server's, as is the command to make them anew."""

    def is_of(self, column: ColumnElement[Any], kind: Kind) -> ColumnElement[bool]:
        return column.is_not(None)

    def holds_nul(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        return false()

    def go_on_numbering(self, connection: Connection) -> None:
        for table in schema.sorted_tables:
            column = table.autoincrement_column
            if column is not None and table is not memory_state:
                last = connection.scalar(select(func.max(column)))
                numbers = func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(select(func.setval(numbers, last or 1, last is not None)))


_DIALECTS: Final[dict[str, Dialect]] = {"sqlite": _SQLite(), "postgresql": _PostgreSQL()}


def dialect_of(connection: Connection) -> Dialect:
    """How the engine behind a connection says it."""
    return _DIALECTS[connection.dialect.name]


def _with_numbers(connection: Connection, query: Select[Any]) -> str:
    return str(query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))
