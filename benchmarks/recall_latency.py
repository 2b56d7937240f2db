"""How long a recall takes, beside what the model needs at the least.

For each query, three things are timed right after each other: a whole recall through the public door; one plain
forward pass over the recall's full prompt (examples and query); and one over ``width`` tokens. The ratio of the first
to the sum of the others is taken query by query, so that a change of the machine's speed falls out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.options import positive
from shared_core import SCGConfig, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.models import TransformersModel, load_model

QUERIES = (
    "What did she say about her new job?",
    "When did they go on holiday together?",
    "Who gave advice about health?",
    "Where did the family spend the summer?",
    "What happened to the pet?",
    "Which book was recommended and why?",
    "How did the interview go?",
    "What are the plans for next month?",
    "Why was the trip cancelled?",
    "What does he do to relax after work?",
    "When did the support group meet?",
    "What did the children paint?",
    "Who plays an instrument?",
    "What did they cook for the party?",
    "How long have they known each other?",
    "What was the present for the birthday?",
    "Which sport do they practise?",
    "What are they worried about?",
    "Where was the photo taken?",
    "What did she learn from the accident?",
)


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", required=True, help="a memory file, for example made by `scg remember`")
    parser.add_argument("--namespace", action="append", help="repeat for the parts of the namespace")
    parser.add_argument("--width", type=positive, default=SCGConfig().width)
    parser.add_argument("--threads", type=positive)
    parser.add_argument("--runs", type=positive, default=20)
    parser.add_argument("--out", type=Path, help="also write summary.json into this folder")
    arguments = parser.parse_args()

    model = load_model(threads=arguments.threads)
    assert isinstance(model, TransformersModel)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    decoder = ConceptDecoder(model)
    config = SCGConfig(width=arguments.width)
    namespace = arguments.namespace or ["default"]
    rows = []
    with SchemaMemory.open(arguments.memory, model=model, namespace=namespace, config=config, create=False) as memory:
        stats = memory.stats()
        memory.recall(QUERIES[0])  # loads what is loaded once
        for run in range(arguments.runs):
            query = QUERIES[run % len(QUERIES)]
            prompt = decoder.prompt_tokens(query)
            rows.append(
                (
                    timed(lambda query=query: memory.recall(query)),
                    timed(lambda prompt=prompt: model.forward_once(prompt)),
                    timed(lambda prompt=prompt: model.forward_once((prompt * 50)[: arguments.width])),
                )
            )
    summary = {
        "entries": stats.entries,
        "concepts": stats.concepts,
        "width": arguments.width,
        "runs": len(rows),
        "recall_seconds": statistics.median(row[0] for row in rows),
        "prompt_forward_seconds": statistics.median(row[1] for row in rows),
        "width_forward_seconds": statistics.median(row[2] for row in rows),
        "ratio": statistics.median(row[0] / (row[1] + row[2]) for row in rows),
    }
    table = Table(title=f"Recall latency, medians of {len(rows)}")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in summary.items():
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
