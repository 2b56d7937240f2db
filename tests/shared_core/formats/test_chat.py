"""Chat messages."""

import json
from datetime import UTC, datetime

import pytest

from shared_core.errors import FormatError
from shared_core.formats import read_entries

MESSAGES = [
    {"role": "system", "content": "Earlier the user said: my cat is called Moss"},
    {"role": "user", "name": "Ida", "content": "My cat is called Moss", "id": "m1"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
    {"role": "tool", "content": "42 cats found"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Moss it is."},
            {"type": "image_url", "image_url": {"url": "http://example.org/moss.png"}},
            {"type": "text", "text": "How old?"},
        ],
        "timestamp": "2024-05-08T13:56:00",
    },
    {"role": "user", "content": "Nine", "timestamp": 1715176560},
]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(
    params=[
        json.dumps(MESSAGES),
        json.dumps(MESSAGES, indent=2),
        json.dumps({"model": "some", "messages": MESSAGES}),
        "\n".join(map(json.dumps, MESSAGES)),
    ],
    ids=["list", "indented", "object", "lines"],
)
def path(request, tmp_path):
    return write(tmp_path / "cats.json", request.param)


@pytest.mark.parametrize("format", ["auto", "chat"])
def test_every_shape_gives_what_was_said_and_nothing_else(path, format):
    entries = read_entries(path, format)
    assert [(entry.speaker, entry.text) for entry in entries] == [
        ("Ida", "My cat is called Moss"),
        ("assistant", "Moss it is.\nHow old?"),
        ("user", "Nine"),
    ]
    assert {entry.session for entry in entries} == {"cats"}
    assert entries[0].id == "m1"
    assert entries[1].occurred_at == datetime(2024, 5, 8, 13, 56)
    assert entries[2].occurred_at == datetime(2024, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hello", "message 2 is not an object with a 'role'"),
        ({"content": "hello"}, "message 2 is not an object with a 'role'"),
        ({"role": 1, "content": "hello"}, "message 2 is not an object with a 'role'"),
        ({"role": "user", "content": {"text": "hello"}}, "message 2: 'content' must be text or a list"),
        ({"role": "user", "content": "a\x00b"}, "message 2: the text holds a NUL"),
        ({"role": "user", "content": "hello", "id": 5}, "message 2: the id must be text"),
        ({"role": "user", "content": "hello", "name": ["Ida"]}, "message 2: the speaker must be text"),
        ({"role": "user", "content": "hello", "timestamp": "noon"}, "message 2: 'noon' is not an ISO 8601"),
        ({"role": "user", "content": "hello", "timestamp": True}, "message 2: True is not an ISO 8601"),
        ({"role": "user", "content": "hello", "timestamp": 1e18}, "not in seconds since 1970"),
    ],
)
def test_a_broken_message_is_named_with_its_line(tmp_path, message, reason):
    document = [MESSAGES[1], message, MESSAGES[5]]
    indented = write(tmp_path / "a.json", "[\n" + ",\n".join(map(json.dumps, document)) + "\n]")
    with pytest.raises(FormatError, match=rf"a\.json, line 3: .*{reason}"):
        read_entries(indented)
    nested = write(tmp_path / "b.json", '{\n"messages":\n' + json.dumps(document, indent=None) + "}")
    with pytest.raises(FormatError, match=rf"b\.json, line 3: .*{reason}"):
        read_entries(nested)


def test_a_broken_line_among_message_lines_is_named(tmp_path):
    path = write(tmp_path / "a.jsonl", json.dumps(MESSAGES[1]) + "\n\n{broken\n")
    with pytest.raises(FormatError, match=r"line 3: this is not JSON"):
        read_entries(path)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"messages": "none"}, "expected a list of chat messages"),
        (7, "expected a list of chat messages"),
        ([], "holds nothing to remember"),
        (MESSAGES[:1], "holds nothing to remember"),
    ],
)
def test_a_file_without_messages_is_refused(tmp_path, document, reason):
    with pytest.raises(FormatError, match=reason):
        read_entries(write(tmp_path / "a.json", json.dumps(document)), "chat")
