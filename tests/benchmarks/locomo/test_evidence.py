"""Evidence strings with the defects that the data has."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.locomo.evidence import TurnIds

IDS = TurnIds(["D1:1", "D8:6", "D9:17", "D11:26", "D30:5", "D4:07", "start"])


@pytest.mark.parametrize(
    ("evidence", "ids", "defects"),
    [
        (["D1:1", "D8:6"], ["D1:1", "D8:6"], {"evidence_pieces": 2}),
        (["D8:6; D9:17"], ["D8:6", "D9:17"], {"evidence_pieces": 1, "evidence_joined": 1}),
        (["D8:6 D9:17 D1:1"], ["D8:6", "D9:17", "D1:1"], {"evidence_pieces": 1, "evidence_joined": 1}),
        (["D"], [], {"evidence_pieces": 1, "evidence_unreadable": 1}),
        (["D:11:26"], ["D11:26"], {"evidence_pieces": 1, "evidence_respelled": 1}),
        (["D30:05"], ["D30:5"], {"evidence_pieces": 1, "evidence_respelled": 1}),
        (["D4:7"], ["D4:07"], {"evidence_pieces": 1, "evidence_respelled": 1}),
        (["D10:19", "D1:1"], ["D1:1"], {"evidence_pieces": 2, "evidence_of_unknown_turns": 1}),
        (["D1:1", "D1:01", "D1:1"], ["D1:1"], {"evidence_pieces": 3, "evidence_respelled": 1, "evidence_repeated": 2}),
        ("D8:6", ["D8:6"], {"evidence_pieces": 1}),
        (["start"], ["start"], {"evidence_pieces": 1}),
        (["", 3], [], {"evidence_pieces": 2, "evidence_unreadable": 2}),
        (["D8:6:1", "xD8:6"], [], {"evidence_pieces": 2, "evidence_unreadable": 2}),
        ([], [], {}),
        (None, [], {}),
    ],
)
def test_evidence_is_repaired_and_counted(evidence: object, ids: list[str], defects: dict[str, int]):
    found: Counter[str] = Counter()
    assert IDS.repair(evidence, found) == ids
    assert {name: count for name, count in found.items() if count} == defects
