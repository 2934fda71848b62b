"""Runs ``maps-rag`` in a process of its own with a stub in the place of every encoder.

With ``STUB_BLOCKS`` set, the stub says on standard output that it was asked for passages and never answers.
"""

import os
import signal
import threading

from maps_rag.cli import main
from maps_rag.programs.retrieval import build, local_e5, retriever

from tests.retrieval.stub_encoder import StubEncoder


class Stub(StubEncoder):
    def encode_passages(self, texts):
        if os.environ.get("STUB_BLOCKS"):
            print("encoding", flush=True)  # noqa: T201 - what the test waits for
            threading.Event().wait()
        return super().encode_passages(texts)


if __name__ == "__main__":
    build.load_encoder = retriever.load_encoder = Stub
    local_e5.local_e5_directory = lambda progress: None
    # A shell that starts the tests in the background has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
