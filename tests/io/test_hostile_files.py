"""Tests damaged and hostile files: bytes changed, cut, doubled and inserted, and names that are not UTF-8."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gradcli.errors import BindingError
from gradcli.io.files import read
from gradcli.io.json_variables import read_variables

PIECES = (
    b"True", b"None", b"-1", b"9" * 30, b"(", b"[", b"{", b"'", b'"', b",", b"\n", b"\0", b"\\", b"\xff", b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f", b"\0\0\0\0", b"|O", b"<f8", b"1e999", b"\x93NUMPY", b"PK\3\4", b"PAR1", b"\x80\x04", b"nan", b"2**99",
    b"__import__('os').abort()", b"\xe2\x80\xae",
)  # fmt: skip
# A changed file may claim sizes up to the limit, but nothing near that is allocated.
MOST_ELEMENTS = 10_000_000
MOST_BYTES = 2**26


def written(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def parquet(**columns):
    return written(lambda f: pq.write_table(pa.table(columns), f))


TABLE = np.arange(12.0).reshape(3, 4)
SEEDS = {
    "npy": lambda: [
        written(lambda f: np.save(f, TABLE)),
        written(lambda f: np.save(f, np.asfortranarray(TABLE).astype(">f4"))),
        written(lambda f: np.lib.format.write_array(f, np.array([True]), version=(3, 0))),
    ],
    "npz": lambda: [
        written(lambda f: np.savez(f, x=TABLE, y=TABLE[0])),
        written(lambda f: np.savez_compressed(f, x=TABLE)),
    ],
    "csv": lambda: [b"a,b\n1,2\n3,4\n", b'\xef\xbb\xbf"a","b"\n"1","2"\n\n,nan\n', b"1e400,-inf\r\n1,2"],
    "json": lambda: [b"[[1,2],[3,4.5]]", b'["NaN",Infinity,-1e-300]'],
    "parquet": lambda: [parquet(x=[1.5, None, 3.0] * 10, s=["a", "b", "c"] * 10), parquet(x=[1, 1, 2] * 50)],
    "vars": lambda: [b'{"x": [1, 2], "y": {"a": 1}, "z": "NaN"}', b'{"x": 5, "W": [[1, 2], [3, NaN]]}'],
}


def changed(content, generator):
    made = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 3, 8))):
        at, piece = generator.randrange(len(made) + 1), generator.choice(PIECES)
        match generator.randrange(6):
            case 0:
                made[at : at + 1] = bytes([generator.randrange(256)])
            case 1:
                made[at:at] = piece
            case 2:
                made[at : at + len(piece)] = piece
            case 3:
                del made[at : at + generator.choice((1, 2, 4, 10, 100))]
            case 4:
                made[at:at] = made[at : at + 20] * generator.choice((1, 2, 50))
            case 5:
                del made[at:]
    return bytes(made)


@pytest.mark.parametrize("kind", SEEDS)
def test_changed_files_give_a_value_or_an_error(kind, tmp_path):
    generator = random.Random(kind)
    path, seeds = tmp_path / f"a.{kind}", SEEDS[kind]()
    tracemalloc.start()
    try:
        for _ in range(150):
            content = changed(generator.choice(seeds), generator)
            try:
                if kind == "vars":
                    read_variables(content.decode("utf-8-sig", "replace"), "it")
                else:
                    path.write_bytes(content)
                    read(str(path) + generator.choice(("", ":x", ":1")), MOST_ELEMENTS)
            except BindingError as error:
                assert error.report()  # noqa: PT017
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
@pytest.mark.parametrize(
    "locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}], ids=["usual", "C"]
)
def test_names_of_files_in_any_locale(locale, tmp_path):
    def run(*words):
        environment = os.environ | locale | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "gradcli", "eval", *words]
        return subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=environment)

    directory = os.fsencode(tmp_path)
    for name in ("σ".encode(), b"\xff\xfe"):
        with open(directory + b"/" + name + b".csv", "wb") as file:
            file.write(b"1\n2\n")
        done = run(b"sum(x)", b"x=@" + name + b".csv", b"--no-grad", b"--save", name + b".npz")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"value  3.0\n", b"")
        assert name + b".npz" in os.listdir(directory)
        done = run(b"sum(x)", b"x=@" + name + b"v.csv")
        assert done.returncode == 2
        assert b"there is no such file\n" in done.stderr
        assert b"hint: did you mean" in done.stderr
