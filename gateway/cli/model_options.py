"""`add_fields`: the fields of a model as arguments and options of a command, so that a new field is one everywhere."""

import dataclasses
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo


def add_fields(
    model: type, *, arguments: Collection[str] = (), leave_out: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command. Its parameter `fields` gets the values by name, and the help lists them at its place;
    `arguments` are given without their names. `model` is a Pydantic model, a dataclass or a `TypedDict`.

    Fields are texts here: the model reads them. `leave_out` are those that a text cannot give, or that the command has
    under another name.
    """
    chosen = {name: field for name, field in _list_fields(model).items() if name not in leave_out}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        for own in inspect.signature(command).parameters.values():
            if own.name == "fields":
                parameters += [
                    _make_parameter(name, one, is_argument=name in arguments) for name, one in chosen.items()
                ]
            else:
                parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        def run(**given: Any) -> None:
            command(fields={name: given.pop(name) for name in chosen}, **given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def _list_fields(model: type) -> dict[str, FieldInfo]:
    """The fields of a model. Other classes have descriptions in `Annotated`; of a `TypedDict`, all can be left out."""
    if issubclass(model, BaseModel):
        return model.model_fields
    hints = get_type_hints(model, include_extras=True)
    of_dataclass = dataclasses.fields(model) if dataclasses.is_dataclass(model) else ()
    defaults = {one.name: one.default for one in of_dataclass} or dict.fromkeys(hints)
    return {
        name: FieldInfo.from_annotation(hints[name])
        if default is dataclasses.MISSING
        else FieldInfo.from_annotated_attribute(hints[name], default)
        for name, default in defaults.items()
    }


def _make_parameter(name: str, field: FieldInfo, *, is_argument: bool) -> inspect.Parameter:
    declared = typer.Argument if is_argument else typer.Option
    kind: Any = str | None if field.default is None else str
    annotation = Annotated[kind, declared(help=_describe(field))]
    default = inspect.Parameter.empty if field.is_required() else field.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _describe(field: FieldInfo) -> str:
    """The description as a sentence, with the words that may be chosen."""
    text = field.description or ""
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    chosen = f": {' or '.join(map(str, choices))}" if choices else ""
    return f"{text[:1].upper()}{text[1:]}{chosen}."
