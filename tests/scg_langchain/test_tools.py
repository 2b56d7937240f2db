"""The tools, by LangChain's own suites and by what a model can do wrong."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import ToolMessage
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from scg_langchain import ForgetTool, RecallTool, RememberTool, create_memory_tools
from shared_core.errors import InvalidInputError

SAID = "I adopted a puppy named Rex from the shelter"


class _Remember:
    @property
    def tool_constructor(self):
        return RememberTool

    @property
    def tool_invoke_params_example(self):
        return {"text": SAID}

    @property
    def tool_constructor_params(self):
        return {"memory": self.memory}

    @pytest.fixture(autouse=True)
    def _memory(self, open_memory):
        self.memory = open_memory()
        self.memory.remember(SAID, id="rex")


class _Recall(_Remember):
    @property
    def tool_constructor(self):
        return RecallTool

    @property
    def tool_invoke_params_example(self):
        return {"query": "Which puppy?", "limit": 2}


class _Forget(_Remember):
    @property
    def tool_constructor(self):
        return ForgetTool

    @property
    def tool_invoke_params_example(self):
        return {"ids": ["rex"]}


class TestRememberUnit(_Remember, ToolsUnitTests): ...


class TestRememberIntegration(_Remember, ToolsIntegrationTests): ...


class TestRecallUnit(_Recall, ToolsUnitTests): ...


class TestRecallIntegration(_Recall, ToolsIntegrationTests): ...


class TestForgetUnit(_Forget, ToolsUnitTests): ...


class TestForgetIntegration(_Forget, ToolsIntegrationTests): ...


@pytest.fixture
def memory(open_memory):
    return open_memory()


def call(tool, config=None, **args) -> ToolMessage:
    return tool.invoke({"name": tool.name, "args": args, "id": "1", "type": "tool_call"}, config)


def test_what_was_remembered_is_recalled_and_forgotten(memory):
    remember, recall, forget = create_memory_tools(memory)
    told = call(remember, text=SAID)
    [entry] = memory.entries
    assert told.content == f"Remembered as [{entry.id}]."
    assert call(recall, query="puppy").content.startswith(f"[{entry.id}]")
    assert SAID in call(recall, query="puppy").content
    assert call(forget, ids=[f"[{entry.id}]"]).content == "Forgot 1."
    assert call(recall, query="puppy").content == "Nothing relevant is remembered."
    assert memory.entries == []


async def test_the_same_text_at_the_same_time_is_stored_once(memory):
    remember, _, _ = create_memory_tools(memory)
    await asyncio.gather(*(remember.ainvoke({"text": SAID}) for _ in range(20)))
    assert [entry.text for entry in memory.entries] == [SAID]


async def test_the_async_twins_do_the_same(memory):
    remember, recall, forget = create_memory_tools(memory)
    await remember.ainvoke({"text": SAID})
    [entry] = memory.entries
    assert SAID in await recall.ainvoke({"query": "puppy"})
    assert "already" in await remember.ainvoke({"text": f" {SAID.upper()} "})
    assert await forget.ainvoke({"ids": [entry.id, "x"]}) == (
        "Forgot 1 of 2: the other ids do not exist. Look them up with recall."
    )


def test_an_agent_that_repeats_itself_adds_nothing(memory):
    remember, _, _ = create_memory_tools(memory)
    call(remember, text=SAID)
    [entry] = memory.entries
    assert call(remember, text=f"{SAID}\n").content == (
        f"This is remembered already, as [{entry.id}]; nothing was changed."
    )
    assert memory.entries == [entry]


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        (0, {}, "text: Field required"),
        (0, {"text": "  "}, "the text is empty"),
        (0, {"text": "a\x00b"}, "NUL"),
        (0, {"text": "tea", "namespace": ["ben"]}, "namespace: Extra inputs are not permitted"),
        (1, {"query": ""}, "the query is empty"),
        (1, {"query": "tea", "limit": 0}, "limit: Input should be greater than or equal to 1"),
        (1, {"query": "tea", "limit": "many"}, "limit: Input should be a valid integer"),
        (1, {"query": "tea", "user_id": "ben"}, "user_id: Extra inputs are not permitted"),
        (2, {"ids": []}, "ids: List should have at least 1 item"),
        (2, {"ids": ["nobody"]}, "no memory with such an id"),
        (2, {"ids": ["\ud800"]}, "lone surrogate"),
    ],
)
async def test_what_a_model_does_wrong_it_is_told(memory, tool, args, told):
    memory.remember(SAID, id="rex")
    for message in (
        call(create_memory_tools(memory)[tool], **args),
        await create_memory_tools(memory)[tool].ainvoke({"name": "any", "args": args, "id": "1", "type": "tool_call"}),
    ):
        assert message.status == "error"
        assert told in message.content
    assert [entry.id for entry in memory.entries] == ["rex"]


def test_the_model_has_no_argument_for_whose_memory_it_is(memory):
    for tool in create_memory_tools(memory, namespace=("users", "{user_id}")):
        assert set(tool.tool_call_schema.model_json_schema()["properties"]) in ({"text"}, {"query", "limit"}, {"ids"})


def test_the_namespace_comes_from_the_configuration(memory):
    tools = create_memory_tools(memory, namespace=("users", "{user_id}"))
    anna, ben = ({"configurable": {"user_id": name}} for name in ("anna", "ben"))
    call(tools[0], anna, text=SAID)
    [entry] = memory.in_namespace(("users", "anna")).entries
    assert call(tools[1], ben, query="puppy").content == "Nothing relevant is remembered."
    assert "no memory with such an id" in call(tools[2], ben, ids=[entry.id]).content
    assert SAID in call(tools[1], anna, query="puppy").content
    assert memory.entries == memory.in_namespace(("users", "ben")).entries == []


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": {"user_id": " "}}])
def test_without_its_user_a_call_fails_for_the_application(memory, config):
    for tool, args in zip(
        create_memory_tools(memory, namespace=("users", "{user_id}")),
        ({"text": SAID}, {"query": "puppy"}, {"ids": ["x"]}),
        strict=True,
    ):
        with pytest.raises(InvalidInputError, match="user_id"):
            tool.invoke(args, config)


@pytest.mark.parametrize("namespace", [(), ("",), ("user-{id}",), ("{}",), 3])
def test_a_namespace_that_is_none_is_refused_at_once(memory, namespace):
    with pytest.raises(InvalidInputError):
        create_memory_tools(memory, namespace=namespace)
    with pytest.raises(ValueError, match=r"namespace|label"):
        RecallTool(memory=memory, namespace=namespace)


def test_a_threshold_that_is_none_is_refused(memory):
    with pytest.raises(InvalidInputError, match="score_threshold"):
        create_memory_tools(memory, score_threshold=3)
    with pytest.raises(InvalidInputError, match="score_threshold"):
        create_memory_tools(memory, score_threshold=None)
    with pytest.raises(ValueError, match="score_threshold"):
        RecallTool(memory=memory, score_threshold=-1)


def test_a_number_names_a_user_and_braces_in_a_value_are_text(memory):
    [remember, *_] = create_memory_tools(memory, namespace=("{user_id}",))
    call(remember, {"configurable": {"user_id": 7}}, text=SAID)
    call(remember, {"configurable": {"user_id": "{user_id}"}}, text="tea")
    assert len(memory.in_namespace(("7",)).entries) == len(memory.in_namespace(("{user_id}",)).entries) == 1


def test_entries_of_less_relevance_are_not_told(open_memory):
    memory = open_memory()
    memory.remember(SAID, id="rex")
    relevance = memory.recall("puppy").entries[0].relevance
    _, recall, _ = create_memory_tools(memory, score_threshold=relevance * 1.01)
    assert call(recall, query="puppy").content == "Nothing relevant is remembered."
    _, recall, _ = create_memory_tools(memory, score_threshold=relevance * 0.99)
    assert SAID in call(recall, query="puppy").content
