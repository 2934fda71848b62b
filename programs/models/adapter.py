"""The adapter for language models of the factory: schemas with bounds, short prompts, no silent mending."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any, Literal, get_args, get_origin

import dspy
import pydantic
from dspy.adapters.utils import get_annotation_name, serialize_for_json
from dspy.utils.exceptions import AdapterParseError
from maps_rag.programs.models.engine import ServerEngine
from maps_rag.programs.models.factory import made_here
from maps_rag.programs.models.replies import finish_reasons, is_cut
from maps_rag.programs.models.thinking import strip_think

logger = logging.getLogger(__name__)


class ReplyCutOffError(AdapterParseError):  # type: ignore[misc]
    """The model's reply reached ``max_tokens`` before it was complete: mending it would invent its end."""


class StructuredAdapter(dspy.JSONAdapter):  # type: ignore[misc]
    """A JSON adapter that keeps what DSPy's drops.

    - The bounds of output fields (``min_length``, ``max_length``, ``ge`` ... on lists, strings and numbers) are in
      the schema that is sent, so a server that decodes under a grammar cannot break them.
    - Prompts are short and put what never changes first: instructions, fields, then demos, then the inputs. Demos
      and replies are JSON on one line.
    - Thinking is stripped from a reply before it is parsed.
    - A reply that was cut off at ``max_tokens`` raises :class:`ReplyCutOffError`; DSPy would mend it silently.
    """

    def _prepare_response_format(self, lm: dspy.LM, lm_kwargs: dict[str, Any], signature: type[dspy.Signature]) -> None:
        if not isinstance(getattr(lm, "engine", None), ServerEngine):
            # Hosted providers refuse some bounds in strict mode: their schema is DSPy's business.
            super()._prepare_response_format(lm, lm_kwargs, signature)
            return
        try:
            schema = output_schema(signature)
        except (pydantic.PydanticInvalidForJsonSchema, pydantic.PydanticSchemaGenerationError, ValueError) as exc:
            logger.warning("No schema for %s (%s): asking for any JSON object.", signature.__name__, exc)
            lm_kwargs["response_format"] = {"type": "json_object"}
            return
        lm_kwargs["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema, "strict": True},
        }

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Return the instructions, then one line per input and output field."""
        return "\n\n".join(
            (
                self.format_task_description(signature),
                self.format_field_description(signature),
                self.format_field_structure(signature),
            )
        )

    def format_task_description(self, signature: type[dspy.Signature]) -> str:
        """Return the instructions of the signature as they are."""
        return str(signature.instructions).strip()

    def format_field_description(self, signature: type[dspy.Signature]) -> str:
        """Return one line per input field."""
        return "Input:\n" + "\n".join(_described(name, field) for name, field in signature.input_fields.items())

    def format_field_structure(self, signature: type[dspy.Signature]) -> str:
        """Return one line per output field, in the order in which they are to be written."""
        lines = [_described(name, field, _kind(field.annotation)) for name, field in signature.output_fields.items()]
        return "Reply with one JSON object with these keys, in this order:\n" + "\n".join(lines)

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Return the inputs, one block per field in the order of the signature."""
        blocks = [prefix]
        blocks += [_block(name, inputs[name]) for name in signature.input_fields if name in inputs]
        return "\n".join([*blocks, suffix]).strip()

    def format_field_with_value(self, fields_with_values: dict[Any, Any], role: str = "user") -> str:
        """Return fields as lines (user) or as JSON on one line (assistant)."""
        if role == "user":
            return "\n".join(_block(field.name, value) for field, value in fields_with_values.items())
        values = {field.name: serialize_for_json(value) for field, value in fields_with_values.items()}
        return json.dumps(values, ensure_ascii=False)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the output fields of a reply.

        :raises AdapterParseError: When a field is missing or of the wrong type.
        """
        return dict(super().parse(signature, strip_think(completion)))

    def _call_postprocess(
        self,
        processed_signature: type[dspy.Signature],
        original_signature: type[dspy.Signature],
        outputs: list[dict[str, Any] | str],
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        reasons = finish_reasons(lm, outputs)
        for index, output in enumerate(outputs):
            text = (output.get("text") if isinstance(output, dict) else output) or ""
            if is_cut(strip_think(text), reasons[index] if reasons else None):
                limit = lm_kwargs.get("max_tokens", lm.kwargs.get("max_tokens"))
                raise ReplyCutOffError(
                    adapter_name=type(self).__name__,
                    signature=original_signature,
                    lm_response=text,
                    message=f"The reply was cut off at max_tokens={limit}: raise max_tokens.",
                )
        values: list[dict[str, Any]] = super()._call_postprocess(
            processed_signature, original_signature, outputs, lm, lm_kwargs
        )
        return values


def output_schema(signature: type[dspy.Signature]) -> dict[str, Any]:
    """Return the JSON schema of a signature's outputs, bounds included: closed objects, every key required.

    :raises ValueError: When an output is an open mapping such as ``dict[str, Any]``.
    """
    fields: dict[str, Any] = {}
    for name, field in signature.output_fields.items():
        if get_origin(field.annotation) is dict or field.annotation is dict:
            raise ValueError(f"output {name!r} is an open mapping")
        bounded = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        fields[name] = (bounded, ...)
    model: type[pydantic.BaseModel] = pydantic.create_model(
        "Reply", __config__=pydantic.ConfigDict(extra="forbid"), **fields
    )
    schema = model.model_json_schema()
    _tighten(schema)
    return schema


def _tighten(node: Any) -> None:
    """Close every object, require every key, and drop titles, which only cost tokens."""
    if isinstance(node, list):
        for item in node:
            _tighten(item)
        return
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str):
        del node["title"]
    node.pop("default", None)
    if node.get("type") == "object" and "properties" in node:
        node["required"] = list(node["properties"])
        node["additionalProperties"] = False
    for key, value in node.items():
        if key in ("properties", "$defs"):
            for sub in value.values():
                _tighten(sub)
        elif key != "required":
            _tighten(value)


def adapter_for(lm: Any) -> dspy.Adapter | None:
    """Return the adapter for a language model: ours where the factory made it and the user has chosen none.

    :param lm: The language model, or a copy of it.
    """
    if dspy.settings.adapter is not None or not made_here(lm):
        return None
    return StructuredAdapter()


def _described(name: str, field: Any, kind: str | None = None) -> str:
    text = field.json_schema_extra.get("desc") or ""
    text = "" if text == f"${{{name}}}" else f": {text}"
    return f"- {name} ({kind}){text}" if kind not in (None, "str") else f"- {name}{text}"


def _kind(annotation: Any) -> str:
    """Name a type for a prompt: choices by their values, and no bounds, which the schema carries."""
    if get_origin(annotation) is Literal:
        return " | ".join(str(value) for value in get_args(annotation))
    return str(get_annotation_name(_plain(annotation)))


def _plain(annotation: Any) -> Any:
    """Return a type without the bounds of its parts, which DSPy would spell out."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (list, tuple, set):
        return get_origin(annotation)[tuple(_plain(part) for part in get_args(annotation))]
    return annotation


def _block(name: str, value: Any) -> str:
    """Show a named input: a list below its name, anything else beside it."""
    gap = "\n" if isinstance(value, (list, tuple)) and value else " "
    return f"{name}:{gap}{_shown(value)}"


def _shown(value: Any) -> str:
    """Show an input: a list as one line per item, text as it is, anything else as JSON."""
    if isinstance(value, (list, tuple)):
        if not value:
            return "(none)"
        return "\n".join(f"- {item if isinstance(item, str) else _shown(item)}" for item in value)
    plain = serialize_for_json(value)
    if plain is None or plain == "":
        return "(none)"
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (dict, list)) else str(plain)
