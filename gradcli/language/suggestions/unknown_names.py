"""Suggestions for names that the language does not have, as hints of error messages."""

from __future__ import annotations

import re
from functools import cache

from gradcli.errors import Proposal, Span
from gradcli.language.syntax.foreign_keywords import FOREIGN_COMMANDS, FOREIGN_WORDS
from gradcli.language.syntax.foreign_notations import FUNCTIONS_WITHOUT_PARENTHESES
from gradcli.language.syntax.layout import bracketed_text
from gradcli.primitives import table
from gradcli.primitives.distribution_names import DISTRIBUTIONS, METHODS

# For each function of the language, its names in other languages, in books and in spreadsheets, in lower case and
# without '_'.
_FUNCTIONS = {
    "ndtr": "normcdf normaldist normsdist pnorm ncdf phicdf cdfnorm stdnormcdf Φ",
    "norm_pdf": "normpdf dnorm npdf",
    "ndtri": "norminv qnorm normsinv probit normppf invnorm",
    "factorial": "fact",
    "len": "length count",
    "log10": "lg",
    "log2": "lb ld",
    "tan": "tg",
    "cot": "ctg cotg cotan",
    "csc": "cosec",
    "asin": "arsin arcussin",
    "atan": "arctg arctangent atn",
    "sinh": "sh",
    "cosh": "ch",
    "tanh": "th tgh",
    "asinh": "arsinh arsh",
    "acosh": "arcosh",
    "atanh": "artanh arth",
    "sqrt": "squareroot",
    "std": "stdevp stddev standarddeviation",
    "var": "variance varp",
    "mean": "avg reducemean",
    "prod": "product",
    "sum": "summation total reducesum Σ",
    "lgamma": "lngamma",
    "lambertw": "productlog",
    "gamma": "Γ",
    "zeta": "ζ",
    "digamma": "ψ psi",
    "comb": "choose binom binomial ncr nchoosek combin",
    "perm": "npr permut",
    "sigmoid": "logistic sigm",
    "inv": "matinv minverse",
    "det": "determinant mdeterm",
    "trace": "tr",
    "matmul": "mmult",
    "eigvalsh": "eigenvalues",
    "mse_loss": "mse meansquarederror mseloss",
    "l1_loss": "mae meanabsoluteerror l1loss",
    "binary_cross_entropy": "bce bceloss",
    "binary_cross_entropy_with_logits": "bcewithlogitsloss",
    "cross_entropy": "crossentropyloss",
    "nll_loss": "nllloss",
    "smooth_l1_loss": "smoothl1loss",
    "huber_loss": "huberloss huber",
    "where": "iff iif ifelse ite if",
    "sign": "signum",
    "ceil": "ceiling",
    "trunc": "long aint",
    "fmod": "rem",
    "remainder": "modulo",
    "exp": "exponential",
    "norm": "magnitude",
    "diff": "d deriv derivative differentiate",
}
_FUNCTION_BY_ALIAS = {other: name for name, others in _FUNCTIONS.items() for other in others.split()}

# Names of constants in other languages.
_VALUES = {
    "E": "e",
    "Pi": "pi",
    "PI": "pi",
    "M_PI": "pi",
    "M_E": "e",
    "Infinity": "inf",
    "Inf": "inf",
    "infinity": "inf",
    "oo": "inf",
    "NaN": "nan",
    "NAN": "nan",
    "true": "True",
    "TRUE": "True",
    "false": "False",
    "FALSE": "False",
    "null": "None",
    "NULL": "None",
    "NA": "nan",
    "nil": "None",
}
# Names without a function of the language that does the same, each with a hint.
_HINTS = {
    "piecewise": "write a if condition else b, or where(condition, a, b)",
    "print": "leave it out: the value of a program is that of its last statement",
    "input": "give the name a value, as in x=5",
    **dict.fromkeys(
        ("ode", "ode23", "ode45", "dsolve", "ndsolve"),
        "odeint(f, start, times) solves differential equations in a program, and gradcli ode prints a table",
    ),
    **dict.fromkeys(
        ("fzero", "findroot", "uniroot"), "root(f, start) is one in a program, and gradcli solve finds roots"
    ),
    **dict.fromkeys(
        ("fminsearch", "fminunc", "fmincon", "fminbnd", "minimize", "minimise"), "gradcli minimize finds minima"
    ),
    **dict.fromkeys(("maximize", "maximise"), "gradcli minimize --max finds maxima"),
    **dict.fromkeys(("curvefit", "lsqcurvefit", "nls", "polyfit"), "gradcli fit fits a model to data"),
    "isna": "write isnan(…)",
    "lim": "write limit(y, x, a) for the limit of y as x approaches a",
    "I": "leave it out: a formula is computed as it stands, and each parameter has a name, as in a + b*x + c*x^2",
    "sqr": "write x**2 for the square, sqrt(x) for the root",
    "matrix": "leave it out: [[1, 2], [3, 4]] is a matrix",
    "gaussian": "write exp(-(x - mean)**2/(2*deviation**2)), or norm_pdf(x) for the density",
    "gauss": "write exp(-(x - mean)**2/(2*deviation**2)), or norm_pdf(x) for the density",
    "seq": "write arange(start, end, step), which leaves the end out, or linspace(start, end, count)",
    "runif": "write rand(…, seed=0)",
    "rnorm": "write randn(…, seed=0)",
    "normdist": "write ndtr((x - mean)/deviation), or norm_pdf((x - mean)/deviation)/deviation for the density",
    "atan2d": "write rad2deg(atan2(y, x))",
    **{f"{name}d": f"write 1/{of}d(…)" for name, of in (("sec", "cos"), ("csc", "sin"), ("cot", "tan"))},
    **{f"a{name}d": f"write rad2deg(a{name}(…))" for name in ("sec", "csc", "cot")},
    "interp1": "write interp(x, xp, fp), where xp and fp are the points between which it lies",
    "disp": "leave it out: the value of a program is that of its last statement",
    "printf": "leave it out: the value of a program is that of its last statement",
    "help": "gradcli ops NAME says all about a function, gradcli --help lists the commands",
    "simplify": "gradcli diff --simplify simplifies derivatives",
    "symbols": "leave it out: a name is a symbol",
    "symbol": "leave it out: a name is a symbol",
    "LOG": "write log10(…), which LOG is in spreadsheets, or log(…), the natural one",
    "ATAN2": "write atan2(y, x): spreadsheets have its arguments the other way round",
    "cdf": "write ndtr(…) for the normal distribution",
    "pdf": "write norm_pdf(…) for the normal distribution",
    "ppf": "write ndtri(…) for the normal distribution",
    "phi": "write ndtr(…) for the normal distribution, norm_pdf(…) for its density",
    "numpy": "leave it out: programs compute with tensors alone",
    "tolist": "leave it out: programs compute with tensors alone",
    "cpu": "leave it out: --device says where it is computed",
    "cuda": "leave it out: --device says where it is computed",
    "to": "leave it out: --device and --dtype say where and in which numbers it is computed",
    "requiresgrad": "leave it out: --wrt says what is differentiated by",
    "vectorize": "leave it out: functions work on each element",
    "eval": "write the expression itself",
    "exec": "write the statements themselves",
    "dict": "write a name for each value",
    "isinstance": "leave it out: every value is a number, a tensor or a list",
    "plot": "leave it out: gradcli plot draws a program",
    "open": "give the name its values, as in x=@data.csv:column",
    "seed": "leave it out: randn(3, seed=0) has a seed of its own",
    "manualseed": "leave it out: randn(3, seed=0) has a seed of its own",
    "normal": "write randn(…, seed=0)",
    "uniform": "write rand(…, seed=0)",
    "random": "write rand(…, seed=0)",
}


# Calls of functions that the language lacks, each with an expression for it, by name and number of arguments.
_EXPRESSIONS = {
    ("exp10", 1): "10**({0})",
    ("nthroot", 2): "({0})**(1/({1}))",
    ("rms", 1): "sqrt(mean(({0})**2))",
    ("sumsq", 1): "sum(({0})**2)",
    ("geomean", 1): "exp(mean(log({0})))",
    **dict.fromkeys((("step", 1), ("unitstep", 1), ("heavyside", 1), ("heavisidetheta", 1)), "heaviside({0}, 0.5)"),
    **dict.fromkeys((("coalesce", 2), ("ifnull", 2), ("nvl", 2)), "where(isnan({0}), {1}, {0})"),
    ("C", 2): "comb({0}, {1})",
    ("W", 1): "lambertw({0})",
    **dict.fromkeys(
        ((name, 2) for name in ("cor", "corr", "correl", "correlation", "pearson")), "corrcoef({0}, {1})[0, 1]"
    ),
    **dict.fromkeys((("covar", 2), ("covariance", 2)), "cov({0}, {1})[0, 1]"),
    **dict.fromkeys((("integral", 4), ("nintegrate", 4)), "integrate({0}, {1}, {2}, {3})"),
    ("lim", 3): "limit({0}, {1}, {2})",
}


# Dotted names of spreadsheets and R, such as `STDEV.S` and `is.na`; and those, by name, that divide by n - 1.
_DOTTED = re.compile(r"(?<![\w.)\]])[A-Za-z]+(?:\.[A-Za-z]+)+$")
_OF_SAMPLES = {"stdev": "std", "stdevs": "std", "sd": "std", "vars": "var"}
# R's names of distributions, and the prefixes of its densities, distribution functions and quantiles.
_FAMILIES = {
    "norm": "norm", "exp": "expon", "gamma": "gamma", "beta": "beta", "unif": "uniform", "t": "t", "chisq": "chi2", "f": "f",
    "weibull": "weibull_min", "lnorm": "lognorm", "cauchy": "cauchy", "logis": "logistic", "pois": "poisson", "binom": "binom",
}  # fmt: skip
_METHODS = {"d": "pdf", "p": "cdf", "q": "ppf"}
_OF_R = re.compile(rf"([dpq])({'|'.join(_FAMILIES)})")
# The number of characters before and after a name that are examined.
_CONTEXT_LENGTH = 1_000


def _letters(name: str) -> str:
    """A name in the form in which it is looked up: in lower case and without '_'."""
    return name.casefold().replace("_", "")


def suggested_function(name: str) -> str | None:
    """The function of the language that a name most likely refers to, whatever its case; None where there is none."""
    key = _letters(name)
    return _FUNCTION_BY_ALIAS.get(key) or _FUNCTION_BY_ALIAS.get(name) or _by_letters().get(key) or _with_its_type(key)


@cache
def _by_letters() -> dict[str, str]:
    return {_letters(name): name for name in reversed(table.names())}


def _with_its_type(key: str) -> str | None:
    """The function that a name with a type letter means, as `dexp` in Fortran and `expf` in C."""
    for other in (key.removeprefix("d"), key.removesuffix("f")):
        if other != key and table.find(other) is not None:
            return other
    return None


def _distribution(source: str, span: Span) -> str | None:
    """The hint for a distribution at `span` that stands without the name of its library, as in `norm.cdf(x)`,
    `stats.norm(0, 1).pdf(x)` and `Normal(0, 1).log_prob(x)`; None for anything else."""
    written = source[span.start : span.end + _CONTEXT_LENGTH]
    found = re.match(r"(?:stats\.)?((\w+)(?:\([^()]*\))?\.(\w+))(?=\()", written)
    if found is None or found[3] not in METHODS:
        return None
    library = next((library for library, names in DISTRIBUTIONS.items() if found[2] in names), None)
    if library is None:
        return None
    arguments = bracketed_text(written[found.end() :])
    end = span.start + found.end() + len(arguments) + 2
    return _write(f"{library}.{found[1]}({arguments})", Span(span.start, end))


def hint_for_function(name: str, source: str, span: Span) -> str | None:
    """The hint for a call of an unknown function, whose name is at `span` in the source."""
    if (distribution := _distribution(source, span)) is not None:
        return distribution
    key = _letters(name)
    behind = source[span.end : span.end + _CONTEXT_LENGTH]
    # The span of the call, including its parentheses.
    call = Span(span.start, span.end + len(behind) - len(behind.lstrip()) + len(bracketed_text(behind.lstrip())) + 2)
    if name == "c" and behind.lstrip().startswith("(") and "," in (items := bracketed_text(behind.lstrip())):
        return Proposal(f"write [{items}]", f"[{items}]", span=call)
    if reason := table.why_missing(name):
        return reason
    within = bracketed_text(behind.lstrip()).strip()
    if (written := _expression(name, within)) is not None:
        return Proposal(f"write {written}", written, span=call)
    if key in ("deg", "rad", "todeg", "torad", "todegrees", "toradians") and within:
        told = f"write rad2deg({within}) to convert radians to degrees, deg2rad({within}) to convert degrees to radians"
        first = ("rad2deg", "deg2rad")["rad" in key]
        return Proposal(told, f"{first}({within})", span=call)
    dotted = _DOTTED.search(source, max(0, span.start - _CONTEXT_LENGTH), span.end)
    spreadsheet = _letters(dotted[0].replace(".", "")) if dotted is not None else key
    whole = Span(dotted.start() if dotted is not None else span.start, call.end)
    if spreadsheet in _OF_SAMPLES:
        std = _OF_SAMPLES[spreadsheet]
        written = f"{std}({within}, correction=1)"
        said = f"write {written}, or {std}({within}) where it is a whole population"
        return Proposal(said, written, span=whole)
    if dotted is not None and (other := _FUNCTION_BY_ALIAS.get(spreadsheet)) is not None:
        otherwise = _HINTS.get(spreadsheet)
        return Proposal(f"write {other}({within})", f"{other}({within})", span=whole, otherwise=otherwise)
    if dotted is not None and spreadsheet in _HINTS:
        return _HINTS[spreadsheet]
    if name.startswith("d") and (
        over := re.search(r"[d∂]\s*/\s*$", source[max(0, span.start - _CONTEXT_LENGTH) : span.start])
    ):
        # As in d/dx(x^2).
        start = max(0, span.start - _CONTEXT_LENGTH) + over.start()
        return Proposal(f"write diff({within}, {name[1:]})", f"diff({within}, {name[1:]})", span=Span(start, call.end))
    below = re.match(r"\s*/\s*d(\w+)", source[call.end : call.end + _CONTEXT_LENGTH])
    if name == "d" and below is not None:
        # As in d(x^2)/dx.
        written = f"diff({within}, {below[1]})"
        return Proposal(f"write {written}", written, span=Span(span.start, call.end + below.end()))
    density = _OF_R.fullmatch(name)
    of_fortran = name.startswith("d") and "," not in within and table.find(name[1:]) is not None
    if density is not None and not of_fortran and (density[2] != "norm" or "," in within):
        family = _FAMILIES[density[2]]
        method = "pmf" if density[1] == "d" and family in ("poisson", "binom") else _METHODS[density[1]]
        return f"{name} of R is scipy.stats.{family}(…).{method}(x), whose parameters may be others"
    if name in _VALUES and re.match(r"\s*\(\s*\)", behind):
        return Proposal(f"write {_VALUES[name]}", _VALUES[name], span=call)
    found = suggested_function(name)
    if found is not None and re.match(r"\s*\([^()]*\)\s*\(", behind):
        # A layer of a network, which is constructed first and then called.
        return Proposal(f"write {found}(…)", found, span=call)
    otherwise = _HINTS.get(name) or _HINTS.get(key) or FOREIGN_WORDS.get(name)
    if otherwise or found is None:
        return otherwise
    # Spreadsheets and R take the numbers as separate arguments.
    listed = Proposal(f"write {found}([{within}])", f"{found}([{within}])", span=call) if "," in within else None
    by_a_name = "write diff(y, x) for the derivative of y by x" if found == "diff" else None
    return Proposal(f"did you mean '{found}'?", found, otherwise=listed or by_a_name)


_ARGUMENTS_END = re.compile(r"\s*,\s*(?![^()\[\]]*[)\]])")


def _expression(name: str, within: str) -> str | None:
    """The expression for a call, whose arguments are `within`, of a function that the language lacks, or None."""
    parts = _ARGUMENTS_END.split(within) if within else []
    form = _EXPRESSIONS.get((name, len(parts))) or _EXPRESSIONS.get((_letters(name), len(parts)))
    if form is None:
        return None
    # A single name or number needs no parentheses.
    for at, part in enumerate(parts):
        if re.fullmatch(r"\w+(?:\.\d*)?", part):
            form = form.replace(f"({{{at}}})**", f"{{{at}}}**").replace(f"**({{{at}}})", f"**{{{at}}}")
            form = form.replace(f"/({{{at}}})", f"/{{{at}}}")
    return form.format(*parts)


def _indexed(name: str, before: str, behind: str, place: int) -> Proposal | None:
    """The hint for a name that is the index of `sum(i, 1, n, i^2)` or `sum(i^2, i, 1, n)`, or None.

    `behind` begins with the name, which is at offset `place`.
    """
    call = re.search(r"\b(sum|prod)\((?=[^()]*(?:\([^()]*\)[^()]*)*$)", before)
    if call is None:
        return None
    within = bracketed_text((before + behind)[call.end() - 1 :])
    parts = re.split(r"\s*,\s*(?![^()]*\))", within[:_CONTEXT_LENGTH].strip())
    if len(parts) != 4 or name not in parts[:2]:
        return None
    parts.remove(name)
    (start, end, term) = parts if parts[0] and name not in re.findall(r"\w+", parts[0]) else (*parts[1:], parts[0])
    last = str(int(end) + 1) if end.isdecimal() else f"{end} + 1"
    written = f"{call[1]}({term} for {name} in range({start}, {last}))"
    start_of_call = place - len(before) + call.start()
    end_of_call = place - len(before) + call.end() + len(within) + 1
    return Proposal(f"write {written}", written, span=Span(start_of_call, end_of_call))


_OF_A_VARIABLE = re.compile(r"(?<![\w.])(integral|int|nintegrate|integrate|quad|limit|lim)\(", re.IGNORECASE)


def _without_variable(name: str, before: str, behind: str, place: int) -> Proposal | None:
    """The hint for the variable of `integral(x^2, x, 0, 1)`, or of `integrate(x^2, 0, 1)` and `limit(x^2, 1)`, in which it
    is missing, or None.

    `behind` begins with the name, which is at offset `place`.
    """
    text = before + behind
    inner = {c: bracketed_text(text[c.end() - 1 :]) for c in _OF_A_VARIABLE.finditer(before)}
    call = next((c for c in reversed(inner) if c.end() + len(inner[c]) > len(before)), None)
    if call is None:
        return None
    within = inner[call]
    function = "limit" if call[1].casefold().startswith("lim") else "integrate"
    parts = _ARGUMENTS_END.split(within[:_CONTEXT_LENGTH].strip())
    ends = 1 if function == "limit" else 2
    reads = [name in re.findall(r"\w+", part) for part in parts]
    if len(parts) == ends + 1 and reads[0] and not any(reads[1:]):
        parts.insert(1, name)
    if len(parts) != ends + 2 or parts[1] != name:
        return None
    written = f"{function}({', '.join(parts)})"
    start = place - len(before) + call.start()
    return Proposal(f"write {written}", written, span=Span(start, start + len(call[0]) + len(within) + 1))


def hint_for_name(name: str, source: str, span: Span) -> str | None:
    """The hint for a name without a value, which is at `span` in the source."""
    if (distribution := _distribution(source, span)) is not None:
        return distribution
    before, behind = (
        source[max(0, span.start - _CONTEXT_LENGTH) : span.start],
        source[span.end : span.end + _CONTEXT_LENGTH],
    )
    if (summed := _indexed(name, before, source[span.start :], span.start)) is not None:
        return summed
    if (bound := _without_variable(name, before, source[span.start :], span.start)) is not None:
        return bound
    if (root := re.fullmatch(rf"({'|'.join(FUNCTIONS_WITHOUT_PARENTHESES)})(\d+)", name)) is not None:
        return _write(f"{root[1]}({root[2]})", span)
    if name in ("i", "j", "I"):
        return Proposal(f"write 1j for the imaginary unit, or give it a value, as in {name}=1", "1j", span=span)
    if name == "help":
        return "gradcli ops NAME says all about a function, gradcli --help lists the commands"
    constant = re.match(r"\s*\.\s*(\w+)\b(?!\s*\()", behind)
    if constant is not None and constant[1] in _VALUES:
        return _write(_VALUES[constant[1]], Span(span.start, span.end + constant.end()))
    if behind[:1] == "[" and name[:1].isupper() and name.casefold() in FOREIGN_COMMANDS:
        return FOREIGN_COMMANDS[name.casefold()]
    found = suggested_function(name) if behind[:1] == "[" else None
    if found is not None:
        within = bracketed_text(behind)
        if name == "Log" and (both := re.fullmatch(r"([^,]+),([^,]+)", within)):
            # Mathematica takes the base as the first argument.
            within = f"{both[2].strip()}, {both[1].strip()}"
        return _write(f"{found}({within})", Span(span.start, span.end + len(within) + 2))
    called = re.match(r"(?:\.\w+)*\.(\w+)\s*\(", behind)
    if called is not None and table.find(called[1]) is not None:
        prefixed = Span(span.start, span.end + called.end(1))
        return Proposal(f"leave the prefix out: write {called[1]}(…)", called[1], span=prefixed)
    if name in ("T", "H") and (power := re.search(r"([\w.]+|\))\s*(?:\^|\*\*)\s*$", before)):
        raised = Span(span.start - len(before) + power.end(1), span.end)
        return Proposal(f"write {power[1] if power[1] != ')' else '(…)'}.T", ".T", span=raised)
    if name == "__name__":
        return "leave the 'if' out, and write its block as it is: a program is run as a whole"
    return _write(_VALUES[name], span) if name in _VALUES else None


def _write(text: str, span: Span) -> Proposal:
    return Proposal(f"write {text}", text, span=span)
