"""Reads the program, the data and the values of names from the words of the commands that have models."""

from __future__ import annotations

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments
from gradcli.cli.process.environment import Environment, input_of
from gradcli.models.data import DataTable, table_of
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.outputs import STDIN
from gradcli.rows.formats.reading import TableReadOptions
from gradcli.type_hints import Annotated, Any


class SearchArguments(map_arguments.TableOptions, opt.ProgramRun):
    """The options of the commands that search or sample a function of parameters and of the rows of tables."""

    seed: Annotated[int, opt.Option("--seed", metavar="N", min=0, help="The seed of random choices.")] = 0
    json: opt.Json = False
    quiet: Annotated[
        bool, opt.quiet("No warnings and no progress on standard error.", "No warnings and no progress.")
    ] = False


class ModelWords(NamedTuple):
    """The text of a program, the `table` of its data (None without files), and the `values` of names as numbers and
    arrays; `words` maps names to the words with their values, for error messages."""

    text: str
    table: DataTable | None
    values: dict[str, Any]
    words: dict[str, str]


def read_words(
    options: inputs.BindingOptions, environment: Environment, example: str, reading: TableReadOptions | None = None
) -> ModelWords:
    """Read the words of a command line; `example` is a correct command line for hints.

    Raises UsageError if there is no program, and BindingError for data or values that cannot be read.
    """
    text, words = map_arguments.program_of(options, environment, example)
    sources = map_arguments.tables_among(words)
    titles: dict[str, str] = {}
    bound: dict[str, str] = {}
    for word in words:
        if inputs.is_binding(word):
            map_arguments.add_binding(word, titles, bound)
    map_arguments.check_standard_input(bound, sources or ["no file"])
    values = {
        name: value() for name, value in inputs.bindings_of([*bound.values()], "float64", options, environment).items()
    }
    for name, number in inputs.variables_of(options.vars, environment, False).items():
        values.setdefault(name, number)
    for name in inputs.names_mentioned(text):
        if name in environment.names:
            values.setdefault(name, environment.names[name])
    stream = input_of(environment, "the data") if STDIN in sources else None
    table = table_of(sources or None, reading, stream).with_names(titles) if sources or titles else None
    return ModelWords(text, table, values, bound)
