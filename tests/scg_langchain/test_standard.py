"""LangChain's own suites for integrations, whole."""

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from scg_langchain import SCGRetriever, SCGVectorStore
from shared_core import SCGConfig


class TestSCGRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _remember(self, sensible):
        self.memory = sensible

    @property
    def retriever_constructor(self):
        return SCGRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.memory}

    @property
    def retriever_query_example(self):
        return "What pet did she get?"


class TestSCGVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, open_memory):
        return SCGVectorStore(open_memory(config=SCGConfig()))
