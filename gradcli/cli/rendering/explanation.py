"""Writes an explanation of the chain rule as text, Markdown, LaTeX or JSON."""

from __future__ import annotations

import cmath
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from gradcli import arrays
from gradcli.cli.process.environment import Environment, is_unicode
from gradcli.cli.rendering.render import show_json, warning_json
from gradcli.errors import position
from gradcli.evaluation.explanation.chain_rule import Explanation, Leaf, Note, Step, Term
from gradcli.evaluation.explanation.local_derivatives import LocalDerivative
from gradcli.evaluation.explanation.rules import RulesExplanation
from gradcli.evaluation.explanation.second_order import DerivativeFactor, SecondDerivative, SecondStep, SecondTerm
from gradcli.evaluation.explanation.step_texts import escaped
from gradcli.formulas.differentiation_rules import RuleDerivation
from gradcli.io.text_tables import number_text
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any

FORMATS = ("text", "markdown", "latex", "json")
# The languages of the formulas in each format.
LANGUAGES = {"text": "text", "json": "text", "markdown": "latex", "latex": "latex"}

_STEPS = "Steps, with their local derivatives"
_GRADIENTS = "Gradients, back from {}: a sum over the steps that use a value"
_FOLDED = "A call, loop or statement of a long program is one step: --expand shows what is in it."


class _Line(NamedTuple):
    """A line: words, or an equation, whose sides are joined by equals signs; `depth` indents it."""

    depth: int
    words: str
    sides: Sequence[str] = ()


class _Section(NamedTuple):
    title: str
    lines: Sequence[_Line]


def show(explanation: Explanation, form: str, environment: Environment) -> None:
    """Write an explanation to standard output."""
    if form == "json":
        show_json(_members(explanation), environment)
        return
    notation = _notation(form, environment)
    sections = [*_sections(explanation, notation)]
    environment.write(_LAYOUTS[form](sections, environment.columns))


def _notation(form: str, environment: Environment) -> _Text:
    if form == "text":
        return _Text() if is_unicode(environment.stdout) else _AsciiText()
    return _Markdown() if form == "markdown" else _Latex()


# --- what is said


def _sections(explanation: Explanation, notation: _Text) -> Iterator[_Section]:
    given = [_Line(0, "", (leaf, notation.number(value))) for leaf, value in _inputs(explanation, notation)]
    yield _Section("", [*given, _Line(0, "", (explanation.symbol, notation.number(explanation.value)))])
    rules = {(item.symbol, d.symbol): d for item in explanation.course if isinstance(item, Step) for d in item.local}
    steps = [line for item in explanation.course for line in _course(item, notation)]
    folded = any(isinstance(item, Step) and item.kind != "step" for item in explanation.course)
    if steps:
        yield _Section(_STEPS, [*steps, *([_Line(0, _FOLDED)] if folded else [])])
    value = explanation.symbol
    back = [item for item in reversed(explanation.course) if isinstance(item, Step) and item.terms]
    items: list[Step | Leaf] = [*back, *explanation.leaves]
    lines = [_gradient(item, value, notation, rules) for item in items]
    if lines:
        yield _Section(_GRADIENTS.format(notation.in_words(value)), lines)
    for second in explanation.second:
        yield _second(second, notation)


def _inputs(explanation: Explanation, notation: _Text) -> Iterator[tuple[str, Any]]:
    symbols = {leaf.label: leaf.symbol for leaf in explanation.leaves}
    for name, value in explanation.inputs.items():
        yield symbols.get(name, notation.name(name)), value


def _course(item: Step | Note, notation: _Text) -> Iterator[_Line]:
    if isinstance(item, Note):
        yield _Line(0, _note(item, notation))
        return
    if item.text == item.label:
        # An element of a tensor.
        yield _Line(0, "", (item.symbol, notation.number(item.value)))
        return
    words = f"{notation.code(item.text)}, {item.times:,} rounds" if item.kind == "loop" and item.times else ""
    sides = (item.symbol, *([] if words else [item.math]), notation.number(item.value))
    constants = ", ".join(f"{n} = {number_text(v)}" for n, v in item.constants.items())
    yield _Line(0, f"after {words}:" if words else f"with {notation.code(constants)}:" if constants else "", sides)
    for local in item.local:
        yield _local(item, local, notation)


def _note(note: Note, notation: _Text) -> str:
    text = notation.code(note.text)
    if note.kind == "branch":
        return f"{text} is {str(note.truth).lower()}, so {notation.code(note.taken) if note.taken else 'nothing'} is computed"
    assigned = ", ".join(f"{n} = {number_text(v)}" for n, v in note.assigned.items())
    return f"{text}, round {note.number:,}" + (f": {notation.code(assigned)}" if assigned else "")


def _local(step: Step, local: LocalDerivative, notation: _Text) -> _Line:
    left = notation.local(step.symbol, (local.symbol,))
    if local.formula is not None:
        number = (
            []
            if local.value is None or local.formula == number_text(local.value).removesuffix(".0")
            else [notation.number(local.value)]
        )
        return _Line(1, "", (left, local.formula, *number))
    if local.value is not None and not arrays.shape(local.value):
        return _Line(1, "", (left, notation.number(local.value)))
    if local.rule is None:
        return _Line(1, f"{notation.in_words(local.symbol)} gets its part of a gradient by the rules of the functions")
    return _Line(1, f"of a gradient g, {notation.in_words(local.symbol)} gets {notation.code(local.rule)}")


def _gradient(
    item: Step | Leaf, value: str, notation: _Text, rules: Mapping[tuple[str, str], LocalDerivative]
) -> _Line:
    left = notation.total(value, (item.symbol,))
    if item.gradient is None:
        return _Line(0, f"{notation.in_words(value)} does not depend on {notation.in_words(item.symbol)}")
    if not item.terms:
        return _Line(0, "", (left, notation.number(item.gradient)))
    signs = [_product(term, item.symbol, value, notation, rules) for term in item.terms]
    numbers = [_factors(term, value, notation) for term in item.terms]
    sides = [left, " + ".join(signs)]
    gradient = notation.number(item.gradient)
    if all(numbers) and numbers not in ([gradient], [notation.factor(item.gradient)]):
        sides.append(" + ".join(filter(None, numbers)))
    return _Line(0, "", [*sides, gradient])


def _product(term: Term, by: str, value: str, notation: _Text, rules: Mapping[tuple[str, str], LocalDerivative]) -> str:
    if term.gradient is None:
        return notation.words(f"the part through {term.through}")
    total = [] if term.through == value else [notation.total(value, (term.through,))]
    if term.local is not None:
        return notation.dot.join([*total, notation.local(term.through, (by,))])
    rule = rules.get((term.through, by))
    if rule is not None and rule.rule is not None:
        return notation.words(f"{rule.rule} with g =") + notation.space + "".join(total or ["1"])
    if rule is not None and rule.formula is not None:
        return notation.words("sum of ") + notation.dot.join([*total, notation.local(term.through, (by,))])
    return notation.words(f"the part through {term.through}")


def _factors(term: Term, value: str, notation: _Text) -> str | None:
    """The numbers of a product, None where there are tensors among them."""
    if term.local is None or arrays.shape(term.local) or arrays.shape(term.gradient):
        return None
    if not cmath.isfinite(term.local) and term.gradient == 0.0 == term.value:
        # A branch that was not taken.
        return "0"
    factors = [] if term.through == value else [notation.factor(term.gradient)]
    return notation.dot.join([*factors, notation.factor(term.local)])


def _second(second: SecondDerivative, notation: _Text) -> _Section:
    one, other = second.symbols
    names = one if one == other else f"{one} and {other}"
    lines = [line for step in second.steps for line in _second_step(step, second.symbols, notation)]
    return _Section(f"The second derivative by {notation.in_words(names)}, step by step", lines)


def _second_step(step: SecondStep, symbols: tuple[str, str], notation: _Text) -> Iterator[_Line]:
    for by, slope in dict(zip(symbols, step.first)).items():
        yield _Line(0, "", (notation.total(step.symbol, (by,)), notation.number(slope)))
    for curvature in step.curvatures:
        if curvature.formula != "0":
            number = notation.number(curvature.value)
            sides = (
                [curvature.formula] if curvature.formula == number.removesuffix(".0") else [curvature.formula, number]
            )
            yield _Line(1, "", (notation.local(step.symbol, curvature.symbols), *sides))
    sides = [notation.total(step.symbol, symbols)]
    if step.terms:
        sides += [_joined(step.terms, notation), " + ".join(_second_factors(term, notation) for term in step.terms)]
    number = notation.number(step.value)
    yield _Line(0, "", [*sides, *([] if sides[-1] == number else [number])])


def _joined(terms: Sequence[SecondTerm], notation: _Text) -> str:
    return " + ".join(notation.dot.join(notation.derivative(f) for f, _ in term.factors) for term in terms)


def _second_factors(term: SecondTerm, notation: _Text) -> str:
    if len(term.factors) == 1:
        return notation.number(term.value)
    return notation.dot.join(notation.factor(number) for _, number in term.factors)


def show_rules(explanation: RulesExplanation, form: str, environment: Environment) -> None:
    """Write a derivation by rules to standard output."""
    if form == "json":
        show_json(_rule_members(explanation), environment)
        return
    notation = _notation(form, environment)
    sections = [_rules(d, explanation, notation) for d in explanation.derivations]
    environment.write(_LAYOUTS[form](sections, environment.columns))


def _rules(derivation: RuleDerivation, explanation: RulesExplanation, notation: _Text) -> _Section:
    lines = [_Line(0, f"with {notation.code(statement)}") for statement in derivation.definitions]
    lines += [_Line(line.depth, f"{notation.plain(line.rule)}:", line.sides) for line in derivation.lines]
    lines.append(_Line(0, "together:", (derivation.derivative, derivation.result)))
    found = explanation.values.get(",".join(derivation.by))
    if found is not None:
        where = ", ".join(f"{name} = {number_text(value)}" for name, value in explanation.point.items())
        lines.append(_Line(0, f"at {notation.code(where)}:", (derivation.derivative, notation.number(found))))
    names = " and ".join(notation.in_words(notation.name(name)) for name in dict.fromkeys(derivation.by))
    title = (
        f"The derivative by {names}" if len(derivation.by) == 1 else f"The second derivative by {names}, from the first"
    )
    return _Section(title, lines)


def _rule_members(explanation: RulesExplanation) -> dict[str, Any]:
    rules = [
        {
            "by": list(d.by),
            "definitions": list(d.definitions),
            "rules": [{"rule": r.rule, "depth": r.depth, "left": r.left, "right": r.right} for r in d.lines],
            "derivative": d.program,
        }
        | ({"value": explanation.values[key]} if (key := ",".join(d.by)) in explanation.values else {})
        for d in explanation.derivations
    ]
    notes = [warning_json(w, explanation.program.source) for w in explanation.warnings]
    return {"program": explanation.program.source, "derivations": rules} | ({"warnings": notes} if notes else {})


# --- how it is written


class _Text:
    """Derivatives and numbers as plain text."""

    dot = " · "
    space = " "
    _local_sign, _total_sign, _square = "∂", "d", "²"

    def local(self, of: str, by: Sequence[str]) -> str:
        return self._quotient(self._local_sign, of, by)

    def total(self, of: str, by: Sequence[str]) -> str:
        return self._quotient(self._total_sign, of, by)

    def derivative(self, factor: DerivativeFactor) -> str:
        return self.local(factor.of, factor.by) if factor.local else self.total(factor.of, factor.by)

    def _quotient(self, sign: str, of: str, by: Sequence[str]) -> str:
        if len(by) == 1:
            return f"{sign}{of}/{sign}{by[0]}"
        same = len({*by}) == 1
        below = f"{sign}{by[0]}{self._square}" if same else "".join(f"{sign}{name}" for name in by)
        return f"{sign}{self._square}{of}/{below}" if same else f"{sign}{self._square}{of}/({below})"

    def number(self, value: Any) -> str:
        return " ".join(number_text(value).split())

    def factor(self, value: Any) -> str:
        text = self.number(value)
        return f"({text})" if text.startswith("-") or text.endswith("j") else text

    def name(self, name: str) -> str:
        return name

    def words(self, text: str) -> str:
        return text

    def code(self, text: str) -> str:
        return text

    def plain(self, text: str) -> str:
        return text

    def in_words(self, symbol: str) -> str:
        return symbol


class _AsciiText(_Text):
    """Derivatives and numbers in the characters of ASCII."""

    dot = " * "
    _local_sign, _square = "d", "^2"


class _Latex(_Text):
    """Derivatives and numbers as LaTeX."""

    dot = r" \cdot "
    space = r"\;"
    _local_sign, _total_sign = r"\partial ", r"\mathrm{d}"

    def _quotient(self, sign: str, of: str, by: Sequence[str]) -> str:
        power = "" if len(by) == 1 else "^2 "
        same = len({*by}) == 1
        below = f"{sign}{by[0]}{power.strip()}" if same else r" \, ".join(f"{sign}{name}" for name in by)
        return f"\\frac{{{sign.strip() if power else sign}{power}{of}}}{{{below}}}"

    def number(self, value: Any) -> str:
        return re.sub(
            r"(\d\.?)e([-+]?)0*(\d+)", lambda m: f"{m[1]} \\cdot 10^{{{m[2].strip('+')}{m[3]}}}", super().number(value)
        )

    def name(self, name: str) -> str:
        from gradcli.formulas.languages.latex import LANGUAGE

        return next(iter(LANGUAGE.naming.spellings(name)))

    def words(self, text: str) -> str:
        return f"\\text{{{escaped(text)}}}"

    def code(self, text: str) -> str:
        return f"\\texttt{{{escaped(text)}}}"

    def plain(self, text: str) -> str:
        return escaped(text)

    def in_words(self, symbol: str) -> str:
        return f"${symbol}$"


class _Markdown(_Latex):
    """Derivatives and numbers as LaTeX, between words of Markdown."""

    def code(self, text: str) -> str:
        return f"`{text}`"


def _as_text(sections: Sequence[_Section], width: int | None) -> str:
    parts = []
    for section in sections:
        lines = [section.title] if section.title else []
        for line in section.lines:
            text = " ".join(filter(None, [line.words, " = ".join(line.sides)]))
            lines.append("  " * (line.depth + bool(section.title)) + text)
        parts.append("\n".join(_wrapped(line, width) for line in lines))
    return "\n\n".join(parts) + "\n"


def _wrapped(line: str, width: int | None) -> str:
    """A line broken at spaces; a number or name that is longer than the terminal stays in one piece."""
    if width is None or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent + "    ", break_long_words=False, break_on_hyphens=False)
    )


def _as_markdown(sections: Sequence[_Section], _width: int | None) -> str:
    parts = []
    for section in sections:
        lines = [f"### {section.title}\n"] if section.title else []
        for line in section.lines:
            equation = f"${' = '.join(line.sides)}$" if line.sides else ""
            lines.append("  " * line.depth + "- " + " ".join(filter(None, [line.words, equation])))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _as_latex(sections: Sequence[_Section], _width: int | None) -> str:
    parts = []
    for section in sections:
        rows = []
        for line in section.lines:
            words = f"\\text{{{line.words}}}" if line.words else ""
            left, *sides = line.sides or ("",)
            quad = r"\quad " if line.depth else ""
            row = f"{quad}{left} &= {' = '.join(sides)}" if sides else f"{quad}{words} &"
            if sides and words:
                row += rf" && \text{{({line.words.rstrip(':')})}}"
            rows.append("  " + row)
        head = f"\\paragraph{{{section.title}.}}\n" if section.title else ""
        parts.append(head + "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}")
    return "\n\n".join(parts) + "\n"


_LAYOUTS = {"text": _as_text, "markdown": _as_markdown, "latex": _as_latex}


# --- as data


def _members(explanation: Explanation) -> dict[str, Any]:
    """The explanation as members of a JSON object."""
    program = explanation.program
    notes = [warning_json(w, program.source) for w in explanation.warnings]
    found: dict[str, Any] = {
        "program": program.source,
        "value": explanation.value,
        "label": explanation.symbol,
        "inputs": dict(explanation.inputs),
        "steps": [_item(item, program.source) for item in explanation.course],
        "gradients": {leaf.label: _sum(leaf) for leaf in explanation.leaves},
        "grad": {leaf.label: leaf.gradient for leaf in explanation.leaves},
    }
    if explanation.second:
        found["second"] = {s.by: [_second_member(step) for step in s.steps] for s in explanation.second}
        found["derivatives"] = {s.by: s.value for s in explanation.second}
    return found | ({"warnings": notes} if notes else {})


def _item(item: Step | Note, source: str) -> dict[str, Any]:
    place = position(source, item.span)
    at = {"line": place.line, "column": place.column}
    if isinstance(item, Note):
        more = (
            {"truth": item.truth, "taken": item.taken}
            if item.kind == "branch"
            else {"round": item.number, "assigned": dict(item.assigned)}
        )
        return {"kind": item.kind, "text": item.text, **at, **more}
    found: dict[str, Any] = {"kind": item.kind, "label": item.label, "text": item.text, **at, "value": item.value}
    found |= {"rounds": item.times} if item.kind == "loop" else {}
    found |= {"with": dict(item.constants)} if item.constants else {}
    found["local"] = [
        {"by": d.by}
        | ({} if d.formula is None else {"formula": d.formula})
        | ({} if d.rule is None else {"rule": d.rule})
        | ({} if d.value is None else {"value": d.value})
        for d in item.local
    ]
    return found | _sum(item)


def _sum(item: Step | Leaf) -> dict[str, Any]:
    terms = [
        {"through": t.through}
        | ({} if t.gradient is None else {"gradient": t.gradient})
        | ({} if t.local is None else {"local": t.local})
        | {"product": t.value}
        for t in item.terms
    ]
    return {"gradient": item.gradient, "terms": terms}


def _second_member(step: SecondStep) -> dict[str, Any]:
    return {
        "label": step.symbol,
        "first": list(step.first),
        "second": step.value,
        "local": [{"by": list(c.by), "formula": c.formula, "value": c.value} for c in step.curvatures],
        "terms": [
            {
                "factors": [{"local": f.local, "of": f.of, "by": list(f.by), "value": n} for f, n in t.factors],
                "product": t.value,
            }
            for t in step.terms
        ],
    }
