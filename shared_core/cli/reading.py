"""Commands that leave a memory as it is."""

from __future__ import annotations

from typing import Annotated

import typer

from shared_core.cli.opening import Target, namespace_label, namespaces_of
from shared_core.cli.options import (
    DEFAULT_MEMORY,
    After,
    AsJson,
    Before,
    MemoryPath,
    Meta,
    Model,
    Namespace,
    OutputFile,
    Query,
    Sessions,
    Speakers,
    read_filter,
)
from shared_core.cli.output import note, recall_text, show, show_json


def recall(
    query: Query,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many to recall.")] = None,
    concepts: Annotated[
        bool, typer.Option("--concepts", help="Let -k count concepts, not entries, and list the concepts.")
    ] = False,
    session: Sessions = None,
    speaker: Speakers = None,
    after: After = None,
    before: Before = None,
    meta: Meta = None,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Recall the entries that a query brings to mind."""
    where = read_filter(session, speaker, after, before, meta)
    with Target.of(memory, namespace, model).open_existing() as opened:
        recalled = opened.recall(query, k=k, unit="concepts" if concepts else "entries", where=where)
    if as_json:
        show_json(recalled.to_dict())
    elif recalled.entries:
        show(recall_text(recalled, with_concepts=concepts))
    else:
        note("Nothing relevant is remembered.")


def ask(
    query: Query,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell all that was recalled for it as well.")
    ] = False,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from what is remembered."""
    with Target.of(memory, namespace, model).open_existing() as opened:
        answer = opened.answer(query)
    if as_json:
        show_json(answer.to_dict())
        return
    show(answer.text or "(Nothing that is remembered answers this.)")
    if answer.sources:
        note(f"From: {', '.join(entry.id or '' for entry in answer.sources)}")
    if not answer.recall.entries:
        note("Nothing relevant is remembered.")
    elif verbose:
        note(f"Recalled for it: {', '.join(recalled.entry.id or '' for recalled in answer.recall.entries)}")


def explain(
    query: Query,
    entry_id: Annotated[str, typer.Argument(metavar="ENTRY_ID", help="The entry to explain.")],
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a query recalls an entry, or does not."""
    with Target.of(memory, namespace, model).open_existing() as opened:
        explanation = opened.explain(query, entry_id)
    if as_json:
        show_json(explanation.to_dict())
    else:
        show(explanation.as_text())


def stats(
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Count what a namespace holds."""
    with Target.of(memory, namespace, model).open_existing() as opened:
        figures = opened.stats().to_dict()
    if as_json:
        show_json(figures)
        return
    width = max(map(len, figures), default=0)
    for name, figure in figures.items():
        show(f"{name.replace('_', ' '):{width}}  {figure}")


def namespaces(memory: MemoryPath = DEFAULT_MEMORY, as_json: AsJson = False) -> None:
    """List the namespaces of a memory."""
    known = namespaces_of(memory)
    if as_json:
        show_json([{"namespace": list(i.name), "entries": i.entries, "concepts": i.concepts} for i in known])
        return
    for info in known:
        show(f"{namespace_label(info.name)}  {info.entries} entries, {info.concepts} concepts")


def export(
    file: OutputFile,
    memory: MemoryPath = DEFAULT_MEMORY,
    namespace: Namespace = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Write every entry of a namespace to a file."""
    with Target.of(memory, namespace, model).open_existing() as opened:
        count = opened.export(file)
    if as_json:
        show_json({"exported": count})
    else:
        show(f"{count} entries written to {file}.")
