"""`calculator`: arithmetic, exact for decimals, safe for any input."""

import ast
import math
import operator
from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)

import simpleeval
from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.tools import PlanHints, ToolContext, TypedTool
from mcp_tools.builtin.request_commands import CALCULATION

PRECISION = 40
MAX_POWER = 10_000
_TYPOGRAPHY = str.maketrans({"^": "**", "\u00d7": "*", "\u00f7": "/", "\u2212": "-"})
"""Typographic multiplication, division and minus signs, and the caret for powers."""
MAX_FACTORIAL = 500
"""Larger factorials take seconds and have more digits than anybody reads."""


class CalculatorInput(DeferredModel):
    """Arguments of `calculator`."""

    expression: str = Field(
        min_length=1, max_length=500, description="e.g. (17.5 * 240) / 3; + - * / // % ** and sqrt, round, log, sin ..."
    )


class CalculatorOutput(DeferredModel):
    """The value."""

    expression: str
    value: str


class CalculatorTool(TypedTool[CalculatorInput, CalculatorOutput]):
    name = "calculator"
    description = "Calculate an arithmetic expression exactly. Use it for every calculation."
    keywords = ("calculate", "compute", "sum", "plus", "minus", "times", "percent", "arithmetic", "math", "number")
    hints = PlanHints(commands=CALCULATION, is_answer=True, computes="expression")

    async def run(self, args: CalculatorInput, context: ToolContext) -> CalculatorOutput:
        return CalculatorOutput(expression=args.expression, value=calculate(args.expression))

    def format_text(self, output: CalculatorOutput) -> str:
        return f"{output.expression} = {output.value}"


def calculate(expression: str) -> str:
    """The value as a decimal number. Raises `ToolInputError` with a hint if it cannot be calculated."""
    source = expression.strip().rstrip("=?").translate(_TYPOGRAPHY)
    with localcontext() as context:
        context.prec = PRECISION
        try:
            value = _EVALUATOR.eval(source, ast.parse(source.strip(), mode="eval").body)
        except (DivisionByZero, ZeroDivisionError) as error:
            raise ToolInputError(f"{expression!r} divides by zero") from error
        except (simpleeval.FunctionNotDefined, simpleeval.NameNotDefined) as error:
            function_names = ", ".join(sorted(_FUNCTIONS))
            raise ToolInputError(
                f"{error}; the expression may have numbers, operators and these names: {function_names}, pi, e"
            ) from error
        except (InvalidOperation, Overflow, OverflowError) as error:
            raise ToolInputError(f"{expression!r} has no finite value within {PRECISION} digits") from error
        except SyntaxError as error:
            hint = "write numbers and operators, such as 2 * (3 + 4)"
            raise ToolInputError(
                f"{expression!r} cannot be calculated: it is not an arithmetic expression; {hint}"
            ) from error
        except (simpleeval.InvalidExpression, TypeError, ValueError, RecursionError, MemoryError) as error:
            raise ToolInputError(f"{expression!r} cannot be calculated: {error}") from error
        if not isinstance(value, Decimal) or not value.is_finite():
            raise ToolInputError(f"{expression!r} has no finite value")
        return _format_plain(value)


class _Evaluator(simpleeval.SimpleEval):  # type: ignore[misc]
    """Evaluates numbers as decimals, so that 0.1 + 0.2 is 0.3; allows only numbers, operators and the functions
    below."""

    def __init__(self) -> None:
        super().__init__(operators=_OPERATORS, functions=_FUNCTIONS, names={"pi": _PI, "e": _E})
        # No attributes: they lead to Python's integers, whose powers can run forever. No comparisons either.
        self.nodes: dict[type[ast.AST], Callable[..., Decimal]] = {kind: self.nodes[kind] for kind in _NODES}

    def _eval_constant(self, node: ast.Constant) -> Decimal:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise simpleeval.InvalidExpression("only numbers can be used in calculations")
        # Decimal needs the literal's text: its binary value is inexact.
        text = str(node.value) if isinstance(node.value, int) else ast.get_source_segment(self.expr, node)
        return getcontext().create_decimal(text or "")


def _raise_to_power(base: Decimal, exponent: Decimal) -> Decimal:
    if abs(exponent) > MAX_POWER:
        raise simpleeval.InvalidExpression(f"powers above {MAX_POWER} are refused")
    return base**exponent


def _compute_factorial(number: Decimal) -> Decimal:
    if number != number.to_integral_value() or not 0 <= number <= MAX_FACTORIAL:
        raise simpleeval.InvalidExpression(f"factorial takes whole numbers from 0 to {MAX_FACTORIAL}")
    return Decimal(math.factorial(int(number)))


def _wrap_float_function(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    """A function of the math module for decimals, rounded to the 15 digits of a float."""
    return lambda number: round(Decimal(repr(function(float(number)))), 15)


def _log(number: Decimal, base: Decimal | None = None) -> Decimal:
    return number.ln() if base is None else number.ln() / base.ln()


def _round(number: Decimal, digits: Decimal = Decimal(0)) -> Decimal:
    if abs(digits) > PRECISION:
        raise simpleeval.InvalidExpression(f"numbers have at most {PRECISION} digits")
    return round(number, int(digits))


_PI = Decimal("3.141592653589793238462643383279502884197")
_E = Decimal("2.718281828459045235360287471352662497757")
_NODES = (ast.BinOp, ast.Call, ast.Constant, ast.Name, ast.UnaryOp, ast.keyword)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _raise_to_power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "abs": abs,
    "ceil": lambda number: number.to_integral_value(ROUND_CEILING),
    "cos": _wrap_float_function(math.cos),
    "exp": lambda number: number.exp(),
    "factorial": _compute_factorial,
    "floor": lambda number: number.to_integral_value(ROUND_FLOOR),
    "ln": _log,
    "log": _log,
    "log10": lambda number: number.log10(),
    "max": max,
    "min": min,
    "round": _round,
    "sin": _wrap_float_function(math.sin),
    "sqrt": lambda number: number.sqrt(),
    "tan": _wrap_float_function(math.tan),
}

_EVALUATOR = _Evaluator()


def _format_plain(value: Decimal) -> str:
    """Plain notation up to 30 digits without trailing zeros; rounded to 15 places, or 15 digits below one."""
    places = 15 - min(0, value.adjusted() + 1)
    rounded = value if -value.as_tuple().exponent <= places else round(value, places)  # type: ignore[operator]
    text = format(rounded.normalize(), "f")
    return text if len(text) <= 30 else format(value.normalize(), "E")
