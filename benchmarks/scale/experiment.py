"""The whole experiment, step by step; steps that are finished are not measured again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import psutil  # type: ignore[import-untyped]
import torch
from rich.progress import Progress
from tokenizers import Tokenizer
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.lines import append_line, read_lines
from benchmarks.scale.content import Template, common_words, fill_at_random, large_namespace
from benchmarks.scale.crew import Crew
from benchmarks.scale.places import Places, open_places
from benchmarks.scale.worker import TOGETHER
from shared_core.models import LanguageModel, TransformersModel, load_model
from shared_core.store import EntryWrite, Store

Step: TypeAlias = tuple[str | int, ...]
Figures: TypeAlias = dict[str, Any]

_VOCABULARY = 8_192
MACHINE: Step = ("machine",)
MODELS = ("embedded", "tiny")
"""The embedded model; and a random one of 260,000 weights, which knows its 8,192 most common tokens, and costs so
little that what remains is the memory's own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        engines: Where memories are kept.
        models: Which models recall and write.
        workers: Numbers of worker processes.
        namespaces: Numbers of namespaces that are in use.
        entries: Entries of each of them.
        seconds: How long recalls, and then writes, last in one step, by model.
        repeats: How often a single operation is repeated, by model.
        sizes: Entries of a namespace that grows.
        held: Numbers of idle namespaces that a worker holds.
    """

    engines: Sequence[str]
    models: Sequence[str]
    workers: Sequence[int] = (1, 2, 4)
    namespaces: Sequence[int] = (1, 10, 100, 1_000)
    entries: int = 20
    seconds: dict[str, float] = field(default_factory=lambda: {"embedded": 4.0, "tiny": 1.5})
    repeats: dict[str, int] = field(default_factory=lambda: {"embedded": 12, "tiny": 40})
    sizes: Sequence[int] = (100, 1_000, 10_000)
    held: Sequence[int] = (0, 50, 100, 200, 400)

    @classmethod
    def quick(cls, engines: Sequence[str], models: Sequence[str]) -> Plan:
        """As little as shows that all of it works."""
        return cls(
            engines,
            models,
            workers=(2,),
            namespaces=(1, 8),
            entries=4,
            seconds={"embedded": 1.0, "tiny": 0.5},
            repeats={"embedded": 2, "tiny": 4},
            sizes=(120,),
            held=(0, 4, 8),
        )

    @property
    def steps(self) -> list[Step]:
        """All steps; those of one model follow each other."""
        steps: list[Step] = []
        for engine in self.engines:
            steps += [*(("growth", engine, size) for size in self.sizes), ("idle", engine)]
        for model in self.models:
            steps += [("operations", engine, model) for engine in self.engines]
            steps += [
                ("load", engine, model, workers, namespaces)
                for engine in self.engines
                for namespaces in self.namespaces
                for workers in self.workers
            ]
        return steps


class Journal:
    """Figures of finished steps, one step a line.

    Args:
        path: The file; it may not be there yet.
        settings: Steps of other settings are left alone, and not given back.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path = path
        self._settings = settings
        self.found: dict[Step, Figures] = {
            tuple(row["step"]): row["figures"] for row in read_lines(path) if row.get("settings") == settings
        }

    def add(self, step: Step, figures: Figures) -> None:
        """Keep the figures of a step."""
        self.found[step] = figures
        append_line(self._path, {"settings": self._settings, "step": step, "figures": figures})


def settings(plan: Plan, about: dict[str, str]) -> str:
    """What figures depend on, beside the step: all of the plan but which steps are wanted."""
    shared = ("entries", "seconds", "repeats", "sizes", "held")
    return json.dumps({name: asdict(plan)[name] for name in shared} | about, sort_keys=True)


def run(plan: Plan, journal: Journal, folder: Path, database: str | None, progress: Progress) -> None:
    """Measure what the plan asks for and the journal does not have."""
    missing = [step for step in plan.steps if step not in journal.found]
    bar = progress.add_task("", total=len(plan.steps), completed=len(plan.steps) - len(missing))
    if not missing:
        return
    # How much others use; of a run that goes on, the most.
    busy = max(psutil.cpu_percent(1.0), journal.found.get(MACHINE, {}).get("busy_percent", 0.0))
    journal.add(MACHINE, {"busy_percent": busy})
    bench = Bench(plan, folder, database)
    try:
        for step in missing:
            progress.update(bar, description=" ".join(map(str, step)))
            journal.add(step, bench.measure(step))
            progress.advance(bar)
    finally:
        bench.close()


class Bench:
    """What steps have in common: models, words, filled memories, workers; each is made when it is first needed.

    Args:
        plan: What to measure.
        folder: For files that are gone afterwards.
        database: URL of a server; ``None`` starts one.
    """

    def __init__(self, plan: Plan, folder: Path, database: str | None) -> None:
        self._plan = plan
        self._folder = folder
        self._database = database
        self._places: dict[str, Places] = {}
        self._filled: dict[str, str] = {}
        self._crew: tuple[str, Crew] | None = None

    def measure(self, step: Step) -> Figures:
        """The figures of one step."""
        kind, engine, *rest = step
        measured: Callable[..., Figures] = getattr(self, f"_{kind}")
        return measured(self._at(str(engine)), *rest)

    def close(self) -> None:
        """End the workers and the server."""
        if self._crew is not None:
            self._crew[1].__exit__(None, None, None)
        for places in self._places.values():
            places.close()

    def _load(self, places: Places, model: str, workers: int, namespaces: int) -> Figures:
        crew = self._workers(model)
        place = places.copy(self._template_in(places))
        crew.ask([{"do": "open", "place": place, "namespaces": namespaces}] * workers)
        figures: Figures = {}
        for what, name in (("recall", "recall"), ("remember", "write")):
            commands = [
                {"do": "load", "what": what, "mark": f"w{worker}", "seed": worker, "seconds": self._plan.seconds[model]}
                for worker in range(workers)
            ]
            figures |= _together(name, *_watched(places, lambda: crew.ask(commands)))  # noqa: B023
        crew.ask([{"do": "close"}] * workers)
        with Store.open(place) as store:
            figures["entries_after"] = sum(info.entries for info in store.namespaces())
        figures["entries_before"] = self._plan.entries * max(self._plan.namespaces)
        places.drop(place)
        return figures

    def _operations(self, places: Places, model: str) -> Figures:
        crew = self._workers(model)
        place = places.copy(self._template_in(places))
        crew.ask([{"do": "open", "place": place, "namespaces": 1}])
        figures: Figures = {"resident_bytes": crew.resident_bytes[0]}
        repeats = self._plan.repeats[model]
        for what in ("recall", *TOGETHER):
            times = max(2, repeats // max(1, TOGETHER.get(what, 1) // 2))
            command = {"do": "load", "what": what, "mark": what, "seed": 0, "times": times}
            found = _together(what, *_watched(places, lambda: crew.ask([command])))  # noqa: B023
            figures |= found
        crew.ask([{"do": "close"}])
        places.drop(place)
        return figures

    def _growth(self, places: Places, entries: int) -> Figures:
        place = places.new()
        with Store.open(place) as store:
            state = fill_at_random(store, 1, self._large[:entries], self._tiny)
        size = places.size(place)
        with Store.open(place) as store:  # what is used first is not what is measured
            self._template.store_in(store, 0)
        repeats = max(2, self._plan.repeats["tiny"] // 8)
        with self._new_worker(place) as crew:
            [grown] = crew.ask([{"do": "grown", "number": 1, "repeats": repeats}])
            opened, server = _watched(places, lambda: crew.ask([{"do": "opened", "number": 1, "repeats": repeats}]))
            crew.ask([{"do": "close"}])
        places.drop(place)
        grown |= opened[0] | {"cold_server_seconds": None if server is None else server / repeats}
        counts = {"entries": entries, "concepts": len(state.concepts), "links": len(state.link_entry)}
        return counts | grown | {"disk_bytes": size.bytes, "table_bytes": size.table_bytes, "rows": size.rows}

    def _idle(self, places: Places) -> Figures:
        place = places.copy(self._template_in(places))
        with self._new_worker(place) as crew:
            [found] = crew.ask([{"do": "idle", "counts": list(self._plan.held)}])
            crew.ask([{"do": "close"}])
        places.drop(place)
        return {"held": list(self._plan.held), "entries": self._plan.entries, **found}

    def _new_worker(self, place: str) -> Crew:
        """A worker whose memory holds nothing of earlier steps: what it frees would hide what it needs."""
        crew = Crew(1, str(self._tiny_folder), self._word_file)
        crew.ask([{"do": "open", "place": place, "namespaces": 1}])
        return crew

    def _at(self, engine: str) -> Places:
        if engine not in self._places:
            self._places[engine] = open_places(engine, self._folder, self._database)
        return self._places[engine]

    def _workers(self, model: str) -> Crew:
        """As many as are ever needed, one model at a time."""
        if self._crew is None or self._crew[0] != model:
            if self._crew is not None:
                self._crew[1].__exit__(None, None, None)
            source = "embedded" if model == "embedded" else str(self._tiny_folder)
            self._crew = model, Crew(max(self._plan.workers), source, self._word_file)
        return self._crew[1]

    def _template_in(self, places: Places) -> str:
        """A memory with all namespaces filled, to be copied."""
        engine = type(places).__name__
        if engine not in self._filled:
            place = places.new()
            with Store.open(place) as store:
                for number in range(max((*self._plan.namespaces, *self._plan.held))):
                    self._template.store_in(store, number)
            self._filled[engine] = place
        return self._filled[engine]

    @cached_property
    def _embedded(self) -> TransformersModel:
        model = load_model(threads=1)
        assert isinstance(model, TransformersModel)
        return model

    @cached_property
    def _tiny_folder(self) -> Path:
        folder = self._folder / "tiny"
        tokenizer = AutoTokenizer.from_pretrained(self._embedded.network.name_or_path)
        known = json.loads(tokenizer.backend_tokenizer.to_str())
        vocabulary, merges = known["model"]["vocab"], known["model"]["merges"]
        # The most common tokens alone, which most of the words are: of all, the logits would take most of the time.
        # Each merge makes the next token.
        known["model"]["merges"] = merges[: len(merges) - max(0, len(vocabulary) - _VOCABULARY)]
        known["model"]["vocab"] = {token: number for token, number in vocabulary.items() if number < _VOCABULARY}
        PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(json.dumps(known)), **tokenizer.special_tokens_map
        ).save_pretrained(folder)
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=_VOCABULARY,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=2048,
            initializer_range=0.2,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
        return folder

    @cached_property
    def _tiny(self) -> LanguageModel:
        return load_model(str(self._tiny_folder), threads=1)

    @cached_property
    def _words(self) -> list[str]:
        return common_words(self._embedded)

    @cached_property
    def _word_file(self) -> Path:
        path = self._folder / "words.json"
        path.write_text(json.dumps(self._words), encoding="utf-8")
        return path

    @cached_property
    def _template(self) -> Template:
        models = [self._embedded if name == "embedded" else self._tiny for name in self._plan.models]
        if "tiny" not in self._plan.models:
            models.append(self._tiny)
        return Template.make(str(self._folder / "template.db"), self._words, models, self._plan.entries)

    @cached_property
    def _large(self) -> list[EntryWrite]:
        return large_namespace(self._words, max(self._plan.sizes))


def _watched(places: Places, call: Callable[[], list[Figures]]) -> tuple[list[Figures], float | None]:
    """What workers answer, and the processor seconds of the server meanwhile."""
    before = places.server_seconds()
    answers = call()
    after = places.server_seconds()
    return answers, None if before is None or after is None else after - before


def _together(name: str, answers: Sequence[Figures], server: float | None) -> Figures:
    """Figures of several workers that did the same at once; processor seconds are of one operation."""
    operations = sum(answer["operations"] for answer in answers)
    return {
        f"{name}_operations": operations,
        f"{name}_by_worker": [answer["operations"] for answer in answers],
        f"{name}_entries": sum(answer["entries"] for answer in answers),
        f"{name}_empty": sum(answer["empty"] for answer in answers),
        # Each worker ends with the operation that it is in when the time is over.
        f"{name}_per_second": sum(answer["operations"] / answer["seconds"] for answer in answers),
        f"{name}_seconds": sum(answer["median_seconds"] for answer in answers) / len(answers),
        f"{name}_cpu_seconds": sum(answer["cpu_seconds"] for answer in answers) / operations,
        f"{name}_model_seconds": sum(answer["model_seconds"] for answer in answers) / operations,
        f"{name}_server_seconds": None if server is None else server / operations,
    }
