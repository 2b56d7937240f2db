"""A made-up file of the shape of LoCoMo, with its defects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.locomo.dataset import Conversation, load


def turn(id: str, speaker: str, text: str, **more: str) -> dict[str, str]:
    return {"dia_id": id, "speaker": speaker, "text": text, **more}


SAMPLES: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ylva",
            "speaker_b": "Bram",
            "session_1_date_time": "1:56 pm on 8 May, 2021",
            "session_1": [
                turn("D1:1", "Ylva", "My kayak leaks at the stern."),
                turn("D1:2", "Bram", "Did you patch it with resin?"),
                turn("D1:3", "Ylva", "", blip_caption="a tube of yellow resin"),
                turn("D1:4", "Bram", "I baked rye loaves for the harbour feast."),
            ],
            "session_2_date_time": "9:05 am on 11 June, 2021",
            "session_2": [
                turn("D2:1", "Bram", "The lighthouse tour was cancelled by fog."),
                turn("D2:2", "Ylva", "Where did you spend the afternoon then?"),
                turn("D2:3", "Bram", "In the maritime museum with my niece Odile."),
            ],
            "session_3_date_time": "9:05 am on 12 June, 2021",
        },
        "qa": [
            {"question": "What leaks at the stern?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Ylva patch?", "answer": 7, "evidence": ["D1:1; D1:3"], "category": 1},
            {"question": "When was the tour cancelled?", "answer": 2021, "evidence": ["D:2:1"], "category": 2},
            {"question": "Who went to the museum?", "answer": "Odile", "evidence": ["D2:03", "D2:3"], "category": 3},
            {"question": "Would Bram like soup?", "answer": "yes", "evidence": [], "category": 3},
            {"question": "What did Ylva bake?", "adversarial_answer": "rye", "evidence": ["D1:4"], "category": 5},
            {"question": "What leaks at the stern?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4},
            {"question": "What was foggy?", "answer": "the tour", "evidence": ["D", "D9:9"], "category": 4},
            {"question": "What did Bram bake?", "answer": "loaves", "evidence": ["D1:4 D2:2", "D8:1"], "category": 1},
        ],
    },
    {
        "sample_id": "conv-2",
        "conversation": {
            "session_1_date_time": "7:00 pm on 1 March, 2022",
            "session_1": [
                turn("D1:1", "Idris", "The walnut tree fell on the barn."),
                turn("D1:2", "Noor", "Was anybody hurt?"),
                turn("D1:3", "Idris", "Only the weathercock."),
            ],
        },
        "qa": [{"question": "What fell on the barn?", "answer": "a tree", "evidence": ["D1:1"], "category": 4}],
    },
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(SAMPLES), encoding="utf-8")
    return path


@pytest.fixture
def conversations(file: Path) -> list[Conversation]:
    return load([file])
