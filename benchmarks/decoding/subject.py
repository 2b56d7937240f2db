"""The embedded model, loaded once and shared by every system that is compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from shared_core.decoding import ConceptDecoder
from shared_core.models import LanguageModel, TransformersModel, load_model


@dataclass(frozen=True, eq=False)
class Subject:
    """One model under both faces.

    Attributes:
        folder: Where its weights and its tokenizer lie.
        model: As Transformers loads it, float32 on the CPU.
        optimized: The same weights, laid out for the processor by this project's engine.
        tokenizer: Its tokenizer.
        engine: ``optimized`` behind this project's port.
        decoder: The project's decoder over it, for the prompt, the keys' tokens and their terminator.
        threads: Bound on torch's threads.
    """

    folder: Path
    model: PreTrainedModel
    optimized: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    engine: LanguageModel
    decoder: ConceptDecoder
    threads: int

    @property
    def terminator(self) -> int:
        """The token that ends a key."""
        return self.decoder.terminator

    @property
    def end(self) -> int:
        """The token with which the model ends a text."""
        return min(self.engine.ends)

    @property
    def vocabulary(self) -> int:
        """Width of the model's logits."""
        return int(self.model.config.get_text_config(decoder=True).vocab_size)


def load_subject(threads: int) -> Subject:
    """Load the embedded model, and the same converted copy of it once more as Transformers does."""
    torch.set_num_threads(threads)
    engine = load_model(device="cpu", threads=threads)  # converts it on first use
    assert isinstance(engine, TransformersModel)
    optimized = engine.network
    folder = Path(optimized.name_or_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for one in (model, optimized):
        # Nothing but what a system asks for: its own settings could sample, penalise or cool.
        one.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    return Subject(folder, model, optimized, tokenizer, engine, ConceptDecoder(engine), threads)
