"""What only a PostgreSQL server can do to a memory, and what is promised when it does."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import inspect, make_url

from shared_core.entry import MemoryEntry
from shared_core.errors import (
    InvalidInputError,
    NotAMemoryError,
    NotFoundError,
    SCGError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from shared_core.store import ConceptLink, EntryWrite, Store, migrations, parse_location, postgresql, tables
from shared_core.upkeep import repair_memory
from tests.conftest import run_program

ANNA, BEN = ("anna",), ("ben",)


def write(id, text="I adopted a puppy"):
    return EntryWrite(MemoryEntry(text, id=id), (ConceptLink(f"key {id}", f"Key {id}", 1.0, "said"),))


def ids(store, name=ANNA):
    return [stored.entry.id for stored in store.load(name).entries]


@pytest.fixture
def url(empty_database):
    return empty_database()


@pytest.fixture
def database(one_database, url):
    """The name of the database behind the URL."""
    return one_database


def test_a_memory_is_made_only_when_asked_and_beside_what_is_there(postgres):
    name = postgres.database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE entries (mine text)")
    with pytest.raises(NotFoundError, match="remembering something makes one"):
        Store.open(postgres.url(name), create=False)
    with Store.open(postgres.url(name)) as store:
        assert store.write(ANNA, [write("1")]).added == 1
    with Store.open(postgres.url(name), create=False) as store:
        assert (ids(store), store.path) == (["1"], None)
    with postgres.connect(name) as connection:
        assert connection.execute("SELECT count(*) FROM public.entries").fetchone() == (0,)


def test_those_who_open_a_new_database_at_once_make_one_memory(postgres):
    url = postgres.url(postgres.database())

    def work(number):
        with Store.open(url) as store:
            return store.write((f"user {number}",), [write(str(number))]).added

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [1] * 4
    with Store.open(url) as store:
        assert len(store.namespaces()) == 4
        assert store.check() == []


def test_the_migrations_end_in_the_tables(postgres):
    made = []
    for by_migration in (True, False):
        url = postgres.url(postgres.database())
        Store.open(url).close()
        engine = postgresql.connect(parse_location(url))
        with postgresql.writing(engine, "", None) as connection:
            if not by_migration:
                tables.schema.drop_all(connection)
                tables.schema.create_all(connection)
        with engine.connect() as connection:
            found = inspect(connection)
            made.append(
                {
                    name: [
                        sorted((one["name"], str(one["type"]), one["nullable"], one["default"]) for one in columns),
                        found.get_pk_constraint(name, postgresql.SCHEMA)["constrained_columns"],
                        sorted(str(one) for one in found.get_indexes(name, postgresql.SCHEMA)),
                        sorted(str(one) for one in found.get_foreign_keys(name, postgresql.SCHEMA)),
                    ]
                    for (_, name), columns in found.get_multi_columns(postgresql.SCHEMA).items()
                }
            )
            collations = connection.exec_driver_sql(
                "SELECT DISTINCT collation_name FROM information_schema.columns "
                f"WHERE table_schema = '{postgresql.SCHEMA}' AND data_type = 'text'"
            )
            assert collations.scalars().all() == ["C"]
        engine.dispose()
    assert made[0] == made[1]
    assert len(made[0]) == len(tables.schema.tables) + 1


def test_what_is_not_a_memory_is_refused_untouched(postgres):
    name = postgres.database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE SCHEMA scg_memory; CREATE TABLE scg_memory.notes (mine text)")
    with pytest.raises(NotAMemoryError, match="untouched"):
        Store.open(postgres.url(name))
    with postgres.connect(name) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'scg_memory'::regnamespace")
        assert found.fetchall() == [("notes",)]


def test_a_newer_version_and_a_database_of_few_characters_are_refused(postgres, database, url):
    with postgres.connect(database) as connection:
        connection.execute(f"UPDATE scg_memory.memory_version SET version = {migrations.newest() + 1}")
        try:
            with pytest.raises(StoreVersionError, match="untouched"):
                Store.open(url)
        finally:
            connection.execute(f"UPDATE scg_memory.memory_version SET version = {migrations.newest()}")
    with pytest.raises(StoreError, match="LATIN1"):
        Store.open(postgres.url(postgres.database("ENCODING 'LATIN1' TEMPLATE template0")))


def test_a_memory_that_another_version_changed_meanwhile_is_not_used(postgres, database, url):
    with Store.open(url) as store:
        assert store.location is not None
        assert database in store.location
        store.check_usable()
        with postgres.connect(database) as connection:
            connection.execute("UPDATE scg_memory.memory_version SET version = version - 1")
        try:
            with pytest.raises(StoreVersionError, match="open it again"):
                store.check_usable()
            with pytest.raises(StoreVersionError, match="open it again"):
                store.write(ANNA, [write("1")])
        finally:
            with postgres.connect(database) as connection:
                connection.execute("UPDATE scg_memory.memory_version SET version = version + 1")
        assert store.namespaces() == []


def test_a_server_that_refuses_is_named_without_a_password(postgres, url):
    elsewhere = url.replace("scg@", "anna:secret@")
    for wrong in (
        elsewhere.replace("/memory", "/none"),
        elsewhere,  # no such user
        elsewhere.replace("host=", "host=/nowhere"),
        elsewhere + "&password=secret",
    ):
        with pytest.raises(StoreUnavailableError, match="gone or refuses") as caught:
            Store.open(wrong)
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="mood"):
        Store.open(url + "&mood=good")


def test_texts_do_not_show_in_errors(postgres, database, url):
    """PostgreSQL's details quote the row that it refuses."""
    with postgres.connect(database) as connection, Store.open(url) as store:
        connection.execute("ALTER TABLE scg_memory.concepts ADD CONSTRAINT no CHECK (key <> 'key secret')")
        try:
            with pytest.raises(StoreError) as caught:
                store.write(ANNA, [write("secret", "a secret")])
        finally:
            connection.execute("ALTER TABLE scg_memory.concepts DROP CONSTRAINT no")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_what_is_too_long_for_an_index_is_refused_and_nothing_is_stored(url):
    with Store.open(url) as store:
        long = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
        with pytest.raises(InvalidInputError, match="too long"):
            store.write(ANNA, [write("1"), EntryWrite(MemoryEntry("text", id=long))])
        assert store.namespaces() == []
        store.write(ANNA, [EntryWrite(MemoryEntry(long * 100, id="1", metadata={"n": 10**400, "f": 0.1}))])
        [stored] = store.load(ANNA).entries
        assert (stored.entry.text, stored.entry.metadata) == (long * 100, {"n": 10**400, "f": 0.1})


VACUUMED = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname IN ('entries', 'links') ORDER BY relname"


def test_nothing_forgotten_is_in_any_row(postgres, database, url):
    with postgres.connect(database) as connection:
        before = connection.execute(VACUUMED).fetchall()
    with Store.open(url) as store:
        store.write(ANNA, [write("1", "about quinces"), write("2", "about plums")])
        erased = store.forget(ANNA, ids=["1"])
        assert (erased.ids, erased.wiped) == (("1",), False)
        assert not store.forget(ANNA, ids=["1"]).wiped  # nothing is certain of what was forgotten before
    with postgres.connect(database) as connection:
        for table in tables.schema.tables:
            for (row,) in connection.execute(f"SELECT t::text FROM scg_memory.{table} t"):
                assert "quinces" not in row
                assert "key 1" not in row.lower()
        after = connection.execute(VACUUMED).fetchall()
    # So the space of the rows as they were before is free to be written over.
    assert all(more > less for (more,), (less,) in zip(after, before, strict=True))


def test_other_namespaces_are_written_while_one_is(url, monkeypatch):
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.4)

    def slowly():
        yield from (write(str(number)) for number in range(501))
        with Store.open(url) as other:
            other.write(BEN, [write("1")])
            assert ids(other, BEN) == ["1"]
            assert ids(other) == []
            with pytest.raises(StoreUnavailableError, match="locked by another call"):
                other.write(ANNA, [write("inner")])
            with pytest.raises(StoreUnavailableError, match="locked by another call"):
                other.repair()

    with Store.open(url) as store:
        assert store.write(ANNA, slowly()).added == 501
        assert store.check() == []


def test_a_waiting_writer_stays_as_long_as_those_in_front_get_on(url, monkeypatch):
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.6)
    begun, done = threading.Event(), threading.Event()

    def keep_busy():
        with Store.open(url) as store:
            number = 0
            while not done.is_set():
                with store._access.writing(ANNA):
                    begun.set()
                    number += 1
                    done.wait(0.2)

    threads = [threading.Thread(target=keep_busy) for _ in range(6)]
    for thread in threads:
        thread.start()
    begun.wait()
    with Store.open(url) as store:
        for number in range(2):
            assert store.write(ANNA, [write(str(number))]).added == 1
    done.set()
    for thread in threads:
        thread.join()


def test_a_repair_names_a_damaged_database_without_its_password(postgres):
    name = postgres.database()
    url = postgres.url(name)
    with Store.open(url) as store:
        store.write(ANNA, [write("1")])
    with postgres.connect(name) as connection:
        connection.execute("DROP TABLE scg_memory.anticipations")
    secret = make_url(url).set(password="SEKRET").render_as_string(hide_password=False)
    assert "SEKRET" in secret
    with pytest.raises(StoreError, match="let the server restore it") as raised:
        repair_memory(secret)
    assert "SEKRET" not in str(raised.value)


def test_what_others_have_locked_is_waited_for_as_long_as_the_error_says(url, monkeypatch):
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 1.0)
    with Store.open(url) as store, psycopg.connect(url.replace("+psycopg", "")) as other:
        store.write(ANNA, [write("1")])
        other.execute("SELECT * FROM scg_memory.namespaces FOR UPDATE")
        start = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="did not end for 1 s"):
            store.write(ANNA, [write("2")])
        assert time.monotonic() - start >= 1
        other.rollback()
        assert store.write(ANNA, [write("2")]).added == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_comes_back_is_used_again(postgres, url, how):
    with Store.open(url) as store:
        store.write(ANNA, [write("1")])

        def cut():
            yield from (write(f"cut {number}") for number in range(501))
            postgres.stop(how)

        with pytest.raises(StoreUnavailableError, match="nothing of this write was stored"):
            store.write(ANNA, cut())
        for call in (lambda: store.write(ANNA, [write("2")]), lambda: store.load(ANNA)):
            with pytest.raises(StoreUnavailableError, match="gone or refuses"):
                call()
        postgres.start()
        assert ids(store) == ["1"]
        store.write(ANNA, [write("3")])
        # Idle connections that the restart broke are noticed before they are used.
        postgres.stop(how)
        postgres.start()
        store.write(ANNA, [write("4")])
        assert ids(store) == ["1", "3", "4"]
        assert store.check() == []


@pytest.mark.parametrize("arrives", [True, False])
def test_what_became_of_a_commit_that_was_cut_off_is_asked(url, monkeypatch, arrives):
    execute = psycopg.Connection.execute
    cut = []

    def unreliable(connection, query, *arguments, **options):
        if query == "COMMIT" and not cut:
            cut.append(True)
            if arrives:
                execute(connection, query)
            connection.pgconn.finish()  # no answer comes any more
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return execute(connection, query, *arguments, **options)

    with Store.open(url) as store:
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", unreliable)
            if arrives:
                assert store.write(ANNA, [write("1")]).added == 1
            else:
                with pytest.raises(StoreUnavailableError, match="nothing of this write was stored"):
                    store.write(ANNA, [write("1")])
        assert cut
        assert ids(store) == (["1"] if arrives else [])


def test_where_no_server_tells_what_became_of_a_commit_the_error_says_so(postgres, url, monkeypatch):
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.1)
    execute = psycopg.Connection.execute

    def gone(connection, query, *arguments, **options):
        if query == "COMMIT":
            postgres.stop(signal.SIGQUIT)
        return execute(connection, query, *arguments, **options)

    with Store.open(url) as store:
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", gone)
            with pytest.raises(StoreUnavailableError, match="not known"):
                store.write(ANNA, [write("1")])
        postgres.start()
        store.write(ANNA, [write("1")])
        assert ids(store) == ["1"]


def test_a_forked_child_has_connections_of_its_own_even_in_the_middle_of_a_call(url):
    def forking():
        yield from (write(str(number)) for number in range(501))
        child = os.fork()
        if child == 0:
            try:
                store.write(BEN, [write("child")])
                os._exit(0 if ids(store, BEN) == ["child"] and ids(store) == [] else 1)
            except SCGError:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    with Store.open(url) as store:
        assert store.write(ANNA, forking()).added == 501
        assert ids(store, BEN) == ["child"]


def test_a_pool_that_is_used_up_says_so(url, monkeypatch):
    monkeypatch.setattr(postgresql, "_POOLED", 1)
    monkeypatch.setattr(postgresql, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(postgresql, "BUSY_SECONDS", 0.1)
    with Store.open(url) as store, store.scan(ANNA), pytest.raises(StoreUnavailableError, match="fewer calls at once"):
        store.load(ANNA)


def test_without_its_driver_a_database_says_what_to_install_and_files_need_none():
    program = """
import sys
sys.modules["psycopg"] = None
from shared_core.errors import UnsupportedError
from shared_core.store import Store
Store.open(":memory:").close()
try:
    Store.open("postgresql+psycopg://localhost/memory")
except UnsupportedError as error:
    print(error)
"""
    [message] = run_program(program)
    assert "pip install 'scg-mem[postgres]'" in message
