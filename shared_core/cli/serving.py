"""Commands of the service: to run it, and to say who may use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shared_core.cli.opening import namespace_label
from shared_core.cli.options import DEFAULT_MEMORY, AsJson, MemoryPath, Model
from shared_core.cli.output import note, show, show_json
from shared_core.entry import check_namespace
from shared_core.errors import UnsupportedError

if TYPE_CHECKING:
    from shared_core.serving import KeyFile

_KeyPath = Annotated[Path, typer.Option("--keys", envvar="SCG_KEYS", metavar="FILE", help="The file of keys.")]

keys = typer.Typer(name="key", help="Say who may use which namespace of a service.", no_args_is_help=True)


def serve(
    memory: MemoryPath = DEFAULT_MEMORY,
    key_file: Annotated[
        Path | None,
        typer.Option("--keys", envvar="SCG_KEYS", metavar="FILE", help="The file of keys; without it, loopback only."),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for a free one.")] = 8321,
    model: Model = None,
) -> None:
    """Serve a memory over HTTP until SIGTERM or SIGINT."""
    try:
        from shared_core.models import check_source
        from shared_core.serving import KeyFile, listen, make_app
        from shared_core.serving import serve as run
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    if model is not None:
        check_source(model)
    bound = listen(host, port, anywhere=key_file is not None)
    app = make_app(memory, keys=None if key_file is None else KeyFile(key_file), model=model)
    run(app, bound, lambda address: show(f"Serving at {address}"))


@keys.command()
def add(
    key_file: _KeyPath,
    namespace: Annotated[
        list[str],
        typer.Option("--namespace", metavar="NAME", help="What it is for; repeat it for one of several parts."),
    ],
    as_json: AsJson = False,
) -> None:
    """Make a key for a namespace and every namespace below it, and print it: this once, since it is not kept."""
    name = check_namespace(namespace)
    secret, key = _key_file(key_file).add(name)
    if as_json:
        show_json({"key": secret, "id": key.id, "namespace": list(key.namespace)})
    else:
        show(secret)
        note(f"Key {key.id} is for {namespace_label(name)} and every namespace below. It is not shown again.")


@keys.command("list")
def list_keys(key_file: _KeyPath, as_json: AsJson = False) -> None:
    """List the keys by their ids; what they are themselves is not kept."""
    known = _key_file(key_file).known()
    if as_json:
        show_json([{"id": key.id, "namespace": list(key.namespace)} for key in known])
        return
    for key in known:
        show(f"{key.id}  {namespace_label(key.namespace)}")


@keys.command()
def remove(
    key_file: _KeyPath, id: Annotated[str, typer.Argument(metavar="ID", help="The key, as the list names it.")]
) -> None:
    """Remove a key. A service that runs refuses it from then on."""
    key = _key_file(key_file).remove(id)
    show(f"Key {key.id} for {namespace_label(key.namespace)} is removed.")


def _key_file(path: Path) -> KeyFile:
    try:
        from shared_core.serving import KeyFile
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return KeyFile(path)


def _missing(error: ModuleNotFoundError) -> UnsupportedError:
    return UnsupportedError(f"a service needs {error.name}, which is not installed: pip install 'scg-mem[serve]'")
