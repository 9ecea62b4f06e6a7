"""Runs PyTorch's database of operator samples, pasted as programs, and compares the results with PyTorch.

`python -m tests.operators` runs the first samples of every operator as `torch.OP(x, …)` and as a method, with its
tensors as inputs, and compares values and gradients. It prints the samples whose results differ, those that raise an
error which is not gradcli's, and the operators that are refused, with the message. `python -m tests.operators NAME…`
runs the named operators, `--samples N` sets the number of samples of each, `--complex` draws samples of complex numbers,
and `--store` writes a selection of programs with PyTorch's results for `tests/primitives/test_operators.py`, which does not need
PyTorch.

Needs the dependency group `oracle`, and `expecttest`, which the database imports.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from gradcli.errors import GradcliError
from tests.operator_programs import STORED, Case, difference, outcome

# The maximum number of elements of stored tensors.
_SMALL = 12
# Operators that cannot agree here, and those whose results are complex.
_OF_COMPLEX = re.compile(r"fft|complex|polar|^linalg\.eig$|^linalg\.eigvals$")
_LEFT_OUT = re.compile(
    r"signal\.|masked\.|jiterator|sparse|_ex$|stft|dropout|rand|normal"
    r"|bernoulli|cauchy|exponential|geometric|uniform|multinomial|^new_|empty|resize|_like$|fractional|rrelu|lowrank"
    r"|^(bfloat16|bool|byte|char|double|float|half|int|long|short|cdouble|cfloat|chalf|to|hash_tensor)$|bmm_triton"
    r"|_chunked|^_|torch\.ops|native_"
)
# Operators for which gradcli chooses another derivative than PyTorch, or defines one where PyTorch fails, with the
# reason.
_OTHERWISE = {
    **dict.fromkeys(
        ("cholesky", "linalg_cholesky"),
        "of complex matrices the gradient is Hermitian, and PyTorch's has a part beside it that no Hermitian change sees",
    ),
    "cholesky_solve": "one triangle of the factor is read, and PyTorch gives the other one a gradient too",
    "linalg_eigh": "the sign of an eigenvector is arbitrary",
    "linalg_pinv_hermitian": "one triangle of the matrix is read, and PyTorch's derivative reads both",
    "nn_functional_hardsigmoid": "PyTorch has 1/6 in float32 in the derivative",
    **dict.fromkeys(
        [f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")],
        "PyTorch's are right to 7 digits at some points",
    ),
    **dict.fromkeys(
        ("logaddexp", "logcumsumexp"),
        "PyTorch's imaginary parts may lie outside of [-pi, pi], and are not those of the logarithm",
    ),
    "special_zeta": "PyTorch has no value for x < 1, where there is the continuation",
}


class Sample(NamedTuple):
    """A program, its inputs by name, and PyTorch's results, which can be differentiated."""

    operator: str
    program: str
    inputs: dict[str, torch.Tensor]
    results: list[torch.Tensor]
    several: bool


def samples(names: Sequence[str], count: int, dtype: Any = torch.float64) -> Iterator[Sample]:
    """The first `count` samples of each operator, as function calls and as method calls."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        if dtype not in operator.supported_dtypes("cpu"):
            continue
        left_out = _LEFT_OUT.search(operator.name) or (dtype is torch.float64 and _OF_COMPLEX.search(operator.name))
        if not (operator.name in names if names else not left_out):
            continue
        torch.manual_seed(0)
        np.random.seed(0)
        given = operator.sample_inputs("cpu", dtype, requires_grad=operator.supports_autograd)
        for sample, _ in zip(given, range(count)):
            for form in _forms(operator):
                made = _sample(operator, sample, form)
                if made is not None and _is_real(made) == (dtype is torch.float64):
                    yield made


def _is_real(sample: Sample) -> bool:
    return not any(t.is_complex() for t in (*sample.inputs.values(), *sample.results))


def _forms(operator: Any) -> Iterator[str]:
    name = operator.name
    if not name.startswith("__") and operator.op is not None:
        yield f"torch.{name}({{}})"
    if operator.method_variant is not None and hasattr(torch.Tensor, name) and not name.startswith("__"):
        yield f"import torch\nx.{name}({{}})"


def _sample(operator: Any, sample: Any, form: str) -> Sample | None:
    if not isinstance(sample.input, torch.Tensor) and "x." in form:
        return None
    inputs: dict[str, torch.Tensor] = {}
    try:
        first = _text(sample.input, inputs)
        arguments = [] if "x." in form else [first]
        arguments += [_text(a, inputs) for a in sample.args]
        arguments += [f"{name}={_text(a, inputs)}" for name, a in sample.kwargs.items()]
    except TypeError:
        return None
    call = form.format(", ".join(arguments))
    try:
        results = _evaluated(call, inputs)
    except Exception:
        return None
    several = not isinstance(results, torch.Tensor)
    return Sample(operator.formatted_name, call, inputs, [*results] if several else [results], several)


def _evaluated(call: str, inputs: dict[str, torch.Tensor]) -> Any:
    """PyTorch's results of the program, obtained by running the same text that is pasted."""
    names = {"torch": torch, "inf": float("inf"), "nan": float("nan"), **inputs}
    found = eval(call.removeprefix("import torch\n"), names)
    parts = [found] if isinstance(found, torch.Tensor) else list(found)
    if not all(isinstance(part, torch.Tensor) for part in parts):
        raise TypeError("no tensors")
    return found if isinstance(found, torch.Tensor) else parts


def _text(value: Any, inputs: dict[str, torch.Tensor]) -> str:
    """An argument as source text; tensors become inputs. Raises TypeError for arguments without a text."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.dtype in (torch.float16, torch.float32, torch.complex64):
            raise TypeError("another tensor")
        name = "xyzuvwabcd"[len(inputs)]
        # Programs receive no memory layout.
        inputs[name] = value.detach().clone(memory_format=torch.contiguous_format).requires_grad_(value.requires_grad)
        return name
    if isinstance(value, list | tuple):
        ends = "[]" if isinstance(value, list) else "()"
        comma = "," * (ends == "()" and len(value) == 1)
        return ends[0] + ", ".join(_text(v, inputs) for v in value) + comma + ends[1]
    if value is None or isinstance(value, bool | int | float | complex | str | torch.dtype):
        return repr(value)
    raise TypeError("another argument")


def case_of(sample: Sample, number: int) -> Case:
    """The program for one output, with PyTorch's value and gradients for fixed weights of its elements."""
    result = sample.results[number]
    program = sample.program + f"[{number}]" * sample.several
    leaves = {name: t for name, t in sample.inputs.items() if t.requires_grad}
    drawn = np.random.default_rng(0)
    weights = drawn.uniform(0.5, 1.5, tuple(result.shape))
    if result.is_complex():
        weights = weights + 1j * drawn.uniform(0.5, 1.5, tuple(result.shape))
    gradients: dict[str, Any] = dict.fromkeys(leaves)
    if result.requires_grad and leaves:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.autograd.grad(
                result, list(leaves.values()), torch.as_tensor(weights), allow_unused=True, retain_graph=True
            )
        gradients = {name: None if g is None else g.resolve_conj().numpy(force=True) for name, g in zip(leaves, found)}
    inputs = {name: t.detach().numpy() for name, t in sample.inputs.items()}
    wide = torch.complex128 if result.is_complex() else torch.float64
    return Case(program, inputs, weights, result.detach().to(wide).resolve_conj().numpy(), gradients)


def compare(names: Sequence[str], count: int, dtype: Any = torch.float64) -> dict[str, list[tuple[str, str, str]]]:
    """The samples by verdict: operator, program and message."""
    found: dict[str, list[tuple[str, str, str]]] = {
        "same": [],
        "otherwise": [],
        "different": [],
        "crash": [],
        "refused": [],
    }
    for sample in samples(names, count, dtype):
        verdict, words = "same", ""
        for number in range(len(sample.results)):
            try:
                case = case_of(sample, number)
            except RuntimeError:
                # PyTorch has no derivative, as of eigenvectors whose phase the weights would see.
                continue
            one, said = _verdict(case)
            if one != "same":
                verdict, words = one, said
                break
        if verdict == "different" and sample.operator in _OTHERWISE:
            verdict = "otherwise"
        found[verdict].append((sample.operator, sample.program, words))
    return found


def _verdict(case: Case) -> tuple[str, str]:
    try:
        value, gradients = outcome(case)
    except GradcliError as error:
        return "refused", str(error)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    words = difference(case, value, gradients)
    return ("different", words) if words else ("same", "")


def _report(found: dict[str, list[tuple[str, str, str]]]) -> None:
    for verdict in ("different", "crash"):
        for operator, program, words in found[verdict]:
            print(f"{verdict.upper()} {operator}: {program!r}\n    {words}")
    for operator in dict.fromkeys(operator for operator, *_ in found["otherwise"]):
        print(f"otherwise {operator}")
    refused: dict[str, Counter[str]] = {}
    for operator, _program, words in found["refused"]:
        refused.setdefault(operator, Counter())[words] += 1
    for operator, messages in refused.items():
        print(f"refused {operator}: " + "; ".join(f"{n}x {words}" for words, n in messages.most_common(3)))
    wholly = {operator for operator, *_ in found["same"]} - {o for v in found for o, *_ in found[v] if v != "same"}
    print({verdict: len(listed) for verdict, listed in found.items()}, f"operators wholly the same: {len(wholly)}")


def _store(names: Sequence[str]) -> None:
    """Store a small sample of each operator that agrees, for the ordinary tests."""
    lines: list[str] = []
    kept: set[str] = set()
    for sample in samples(names, 12):
        small = all(0 < t.numel() <= _SMALL for t in (*sample.inputs.values(), *sample.results))
        if "import" in sample.program or not small or sample.operator in kept:
            continue
        cases = [case_of(sample, number) for number in range(len(sample.results))]
        if all(_verdict(case)[0] == "same" for case in cases):
            kept.add(sample.operator)
            lines += [case.text() for case in cases]
    STORED.write_text("".join(f"{line}\n" for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators of the database; default: all")
    parser.add_argument("--samples", type=int, default=6, metavar="N", help="of each operator")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    parser.add_argument("--complex", action="store_true", help="samples of complex128")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.store:
        _store(options.names)
    else:
        dtype = torch.complex128 if options.complex else torch.float64
        _report(compare(options.names, options.samples, dtype))


if __name__ == "__main__":
    main()
