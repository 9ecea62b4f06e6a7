"""Tests columns whose titles are not valid names: the hints say what to write, and it works."""

from __future__ import annotations

import pytest

TABLES = {
    "units.csv": "distance (Mpc),velocity (km/s)\n1,2\n2,4\n3,6\n",
    "dotted.csv": "Petal.Length,Petal.Width\n1,2\n2,4\n3,6\n",
    "letters.csv": "Speed,dist\n1,2\n2,4\n3,6\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
class TestAHint:
    def test_names_the_column_with_a_unit(self, run):
        for words in (
            ["fit", "velocity ~ H0*x", "units.csv", "x='column:distance (Mpc)'"],
            ["map", "velocity**2", "units.csv"],
        ):
            assert "write velocity='column:velocity (km/s)'" in run(*[word.replace("'", "") for word in words]).err
        done = run(
            "fit",
            "velocity ~ H0*x",
            "units.csv",
            "velocity=column:velocity (km/s)",
            "x=column:distance (Mpc)",
            "--json",
        )
        assert done.json["estimates"]["H0"]["value"] == pytest.approx(2)

    def test_says_what_to_write_for_a_title_with_a_dot(self, run):
        done = run("fit", "Petal_Width ~ a*Petal.Length", "dotted.csv", "Petal_Width=column:Petal.Width", "--json")
        error = done.error
        assert (done.status, error["column"]) == (2, 17)
        assert error["hint"].startswith("write Petal_Length for it, and Petal_Length='column:Petal.Length'")
        assert "write Petal_Width for it" in run("map", "2*Petal.Width", "dotted.csv").err

    def test_asks_whether_a_column_is_meant_where_a_model_reads_none(self, run):
        error = run("fit", "dist ~ a*speed^b", "letters.csv", "--json").error
        assert error["message"] == "the model reads no column of the data, and 'speed' is a parameter of it"
        assert (error["column"], error["hint"]) == (10, "did you mean 'Speed'? write it so, or speed='column:Speed'")
        assert run("fit", "dist ~ a", "letters.csv").status == 0
