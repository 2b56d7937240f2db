"""One line of a chain that was written for a vector store is replaced; all others stay."""

import pytest

BEFORE = "store = InMemoryVectorStore.from_documents(documents, embeddings)"
AFTER = "store = SCGVectorStore.from_documents(documents, embeddings)"

CHAIN = f"""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from scg_langchain import SCGVectorStore

{BEFORE}
retriever = store.as_retriever(search_kwargs={{"k": 2}})
prompt = ChatPromptTemplate.from_template("{{context}}\\n\\nQuestion: {{question}}")
join = lambda found: "\\n".join(document.page_content for document in found)
chain = {{"context": retriever | join, "question": RunnablePassthrough()}} | prompt | llm | StrOutputParser()
answer = chain.invoke("What pet did she get?")
store.add_texts(["Rex is a terrier."], metadatas=[{{"speaker": "Anna"}}], ids=["t5"])
store.delete(["t4"])
found = retriever.invoke("What kind of dog is Rex?")
scored = store.similarity_search_with_score("puppy", k=1)
"""


@pytest.mark.parametrize("line", [BEFORE, AFTER])
def test_a_chain_runs_unchanged(line, documents, scripted, model, monkeypatch):
    # The embedded model is there already; the line has no place for it.
    monkeypatch.setattr("shared_core.models.load_model", lambda source: model, raising=False)
    from langchain_core.embeddings import DeterministicFakeEmbedding

    llm = scripted("A puppy.")
    program = CHAIN.replace(BEFORE, line)
    assert program.count(line) == 1
    names = {"documents": documents, "embeddings": DeterministicFakeEmbedding(size=8), "llm": llm}
    exec(compile(program, "chain", "exec"), names)
    assert names["answer"] == "A puppy."
    assert len(names["found"]) == 2
    assert len(names["scored"]) == 1
    if line == AFTER:
        assert "a puppy named Rex" in llm.asked[0][0].content
        assert names["found"][0].id == "t5"
        names["store"].memory.close()
