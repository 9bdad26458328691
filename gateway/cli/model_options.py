"""`add_fields`: the fields of a model as arguments and options of a command, so that a new field is one everywhere."""

import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo


def add_fields(
    model: type[BaseModel], *, arguments: Collection[str] = (), leave_out: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command. Its parameter `fields` gets the values by name; `arguments` are given without their names.

    Fields are texts here: the model reads them. `leave_out` are those that a text cannot give, or that the command has
    under another name.
    """
    chosen = {name: field for name, field in model.model_fields.items() if name not in leave_out}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in inspect.signature(command).parameters.values() if one.name != "fields"]
        added = [_make_parameter(name, field, is_argument=name in arguments) for name, field in chosen.items()]

        def run(**given: Any) -> None:
            command(fields={name: given.pop(name) for name in chosen}, **given)

        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*added, *own)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


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
