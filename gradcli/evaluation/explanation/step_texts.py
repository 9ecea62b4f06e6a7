"""Writes what a step computed, with the labels of earlier steps in place of the expressions that computed them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gradcli.arrays import shape
from gradcli.errors import DifferentiationError, GradcliError, Span
from gradcli.evaluation.explanation.labels import Labels, tracked_source
from gradcli.evaluation.explanation.units import Unit
from gradcli.formulas import languages
from gradcli.formulas.complex_variables.imaginary_unit import with_unit
from gradcli.formulas.derivation import derivation
from gradcli.formulas.rule_equations import rebuilt, without_brackets
from gradcli.formulas.writing.documents import with_squares
from gradcli.formulas.writing.naming import Names
from gradcli.formulas.writing.text_writer import write
from gradcli.language.interpreter.expression_trace import Event
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.names import scope
from gradcli.language.names.evaluator_functions import DERIVATIVES, TRANSFORMS
from gradcli.language.syntax import tree
from gradcli.primitives import table

# Expressions that a formula is made of; calls are examined besides.
_PURE = (tree.Binary, tree.Unary, tree.Factorial, tree.Call, tree.Augment, tree.Assign, tree.Evaluate, tree.Return)
# The prefix of a library, which is not in the span of a call.
_PREFIX = re.compile(r"(?<![\w.)\]])(?:[^\W\d]\w*\.)+$")
# The longest text of a step, in characters.
_LONGEST = 200


class StepTexts:
    """The text of one step, and the expression of its operands that it computed, None where there is none.

    `operands` are the operations and leaves whose labels stand in it, by identifier.
    """

    def __init__(self, program: tree.Module, unit: Unit, labels: Labels, *, single: bool) -> None:
        self._program = program
        self._labels = labels
        self._unit = unit
        self.operands: dict[str, Any] = {}
        self._replaced: dict[tree.SyntaxNode, Any] = {}
        self._several: set[tree.SyntaxNode] = set()
        self._constants: dict[str, Any] = {}
        self._pure = single
        self._see()
        self.expression = self._expression() if self._pure else None
        self.text = self._text()

    def _see(self) -> None:
        waiting: list[Event] = [self._unit.event]
        own = {*self._unit.nodes}
        while waiting:
            event = waiting.pop()
            self._pure &= isinstance(event.node, _PURE) and _is_plain(event.node)
            within = {child.node: child for child in event.events}
            for part, value in event.parts:
                source = tracked_source(value)
                if source is not None and source not in own:
                    if self._replaced.setdefault(part, source) is not source:
                        # Computed several times, as in a comprehension.
                        self._several.add(part)
                        self._pure = False
                    if source in self._labels.identifiers:
                        self.operands[self._labels.identifiers[source]] = source
                    else:
                        self._pure = False
                elif part in within:
                    waiting.append(within[part])
                elif isinstance(part, tree.Name) and not part.module:
                    self._note(part.id, value)

    def _note(self, name: str, value: Any) -> None:
        """A constant that the step reads. The same name with two values, as in calls, has no formula."""
        if not isinstance(value, (int, float)) and not hasattr(value, "shape"):
            return
        if name in self._constants and self._constants[name] is not value:
            self._pure = False
        self._constants[name] = value

    @property
    def read(self) -> Mapping[str, Any]:
        """The constants that the step reads, by name."""
        return self._constants

    def target(self, part: tree.SyntaxNode) -> Any:
        """The operation or leaf that computed a part, None for a constant."""
        return self._replaced.get(part)

    def shown(self, part: tree.SyntaxNode) -> str:
        """A part as it stands in the text of the step."""
        label = self._label(part)
        return label or self._program.source[part.span.start : part.span.end]

    def constants(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers among the constants that are not inputs."""
        known = {n: v for n, v in self._constants.items() if n not in inputs and n not in scope.CONSTANTS}
        return {n: as_numpy(v) for n, v in known.items() if not shape(v)} if not self._unit.folded else {}

    def _expression(self) -> tree.Module | None:
        node = self._unit.event.node
        if isinstance(node, (tree.Assign, tree.Evaluate, tree.Return)):
            node = node.value or node
        if isinstance(node, tree.Augment):
            node = tree.Binary(node.span, node.operator, node.operator_span, node.target, node.value)
        clashing = {n for n in self._constants if n in self.operands}
        if clashing or not isinstance(node, tree.Expression):
            return None
        names = {
            part: tree.Name(part.span, self._labels.identifiers[source], "") for part, source in self._replaced.items()
        }
        expression = rebuilt(node, names)
        return tree.Module(node.span, self._program.source, (tree.Evaluate(node.span, expression),))

    def _text(self) -> str:
        """The source of the step, with labels in it."""
        node, source = self._unit.event.node, self._program.source
        known = self._labels.identifiers
        replaced = {p: s for p, s in self._replaced.items() if p not in self._several and s in known}
        begin, end = node.span.start, node.span.end
        if isinstance(node, tree.Assign) and any(isinstance(target, tree.Index) for target in node.targets):
            return " ".join(source[begin:end].split())
        if isinstance(node, (tree.For, tree.While)) and self._unit.folded:
            return " ".join(source[begin : end_of_head(node)].split())
        if isinstance(node, (tree.Assign, tree.Return, tree.Evaluate)) and node.value is not None:
            begin, end = node.value.span.start, node.value.span.end
        begin, end = without_brackets(source, Span(begin, end))
        if isinstance(node, tree.Augment):
            before, _, after = source[begin:end].partition(f"{node.operator}=")
            left = self._label(node.target) or before.strip()
            right = self._label(node.value) or after.strip()
            return f"{left} {node.operator} {right}"
        if isinstance(node, tree.For):
            begin, end = node.iterable.span.start, node.iterable.span.end
        pieces, at = [], begin
        for part in sorted(replaced, key=lambda part: part.span.start):
            span = _in_brackets(source, part.span, Span(begin, end), _call_brackets(source, node))
            if span.start < at or span.end > end:
                continue
            between = _PREFIX.sub("", source[at : span.start])
            times = (
                "*" if re.search(r"[\w)]$", between) and not re.search(r"\b(and|or|in|if|else|not)$", between) else ""
            )
            pieces += [between, times, self._labels.label(replaced[part])]
            at = span.end
        return shortened("".join([*pieces, source[at:end]]), _LONGEST)

    def _label(self, part: tree.SyntaxNode) -> str | None:
        return self._labels.label(self._replaced[part]) if part in self._replaced else None

    def names(self) -> Mapping[str, str]:
        """The spellings of the identifiers in formulas."""
        return {identifier: self._labels.symbol(source) for identifier, source in self.operands.items()}

    def math(self, language: str) -> str:
        """The expression of the step, written in `language`."""
        if language == "text":
            return self.text
        if self.expression is not None:
            try:
                program = with_squares(derivation(self.expression, {}, tuple(self.operands), 1)[()])
                return written(with_unit(program), language, self.names())
            except (GradcliError, NotImplementedError):
                pass
        return f"\\texttt{{{escaped(self.text)}}}"


def written(program: Any, language: str, spelled: Mapping[str, str]) -> str:
    """A program with one output as a formula, on one line, its inputs spelled as given."""
    writer = languages.find(language)
    names = Names(writer.naming, program.inputs)
    names.inputs = names.inputs | {v.name: spelled[v.name] for v in program.inputs if v.name in spelled}
    found = write(program, writer, names)
    if found.parts:
        raise DifferentiationError("the formula is too long")
    return found.result


def end_of_head(node: tree.For | tree.While) -> int:
    """The offset of the end of a loop's head: of its iterable, or of the condition of a `while`."""
    return node.iterable.span.end if isinstance(node, tree.For) else node.test.span.end


def shortened(text: str, most: int) -> str:
    """A text on one line, of which `most` characters are kept."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def escaped(text: str) -> str:
    """A text for LaTeX."""
    return re.sub(
        r"([\\{}$&#_%^~])",
        lambda m: {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}"}.get(m[1], "\\" + m[1]),
        text,
    )


def _is_plain(node: tree.SyntaxNode) -> bool:
    """Return whether the value of a node depends on the values of its parts alone: it calls no function of the program,
    and takes no derivative."""
    if not isinstance(node, tree.Call):
        return True
    return table.find(node.name) is not None and node.name not in DERIVATIVES and node.name not in TRANSFORMS


def _call_brackets(source: str, node: tree.SyntaxNode) -> Span | None:
    """The brackets of the arguments of a call."""
    if not isinstance(node, tree.Call):
        return None
    start = source.find("(", node.name_span.end)
    return Span(start, node.span.end) if start >= 0 else None


def _in_brackets(source: str, span: Span, within: Span, call: Span | None) -> Span:
    """The span of a part with the brackets that only group it."""
    start, end = span
    while True:
        before, after = start - 1, end
        while before >= within.start and source[before].isspace():
            before -= 1
        while after < within.end and source[after].isspace():
            after += 1
        if before < within.start or after >= within.end or source[before] != "(" or source[after] != ")":
            return Span(start, end)
        if (call is not None and before <= call.start < after) or re.search(r"\w\s*$", source[within.start : before]):
            return Span(start, end)
        start, end = before, after + 1
