"""CSV, Parquet and npz files: which column is the target, and what is refused."""

import dataclasses
import gzip

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from adasdca import files
from adasdca.files import FileError, streams
from test_files_bad import refusal

FRAME = pl.DataFrame({"a": [1, 2, 3], "label": [1.0, -1.0, 1.0], "b": [0.1, -2.5, 1e300]})
X = np.array([[1.0, 0.1], [2.0, -2.5], [3.0, 1e300]])
Y = np.array([1.0, -1.0, 1.0])


def write(path, frame):
    if path.suffix in (".parquet", ".pq"):
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.fixture(params=["data.csv", "data.parquet"])
def path(request, tmp_path):
    return tmp_path / request.param


@pytest.mark.parametrize("name", ["data.csv", "data.CSV", "data.tsv", "data.parquet", "data.pq"])
@pytest.mark.parametrize("compression", ["", *streams.MAGIC])
def test_frames_are_read(tmp_path, name, compression):
    plain = write(tmp_path / name, FRAME)
    path = tmp_path / (name + compression)
    if compression:
        with streams.create(path) as file:
            file.write(plain.read_bytes())
    table = files.read(path)
    np.testing.assert_array_equal(table.X, X, strict=True)
    np.testing.assert_array_equal(table.y, Y, strict=True)
    assert table.X.flags.c_contiguous
    assert table.names == ["a", "b"]
    assert table.source == str(path)


@pytest.mark.parametrize("name", ["target", "label", "y"])
def test_the_target_is_known_by_its_name(path, name):
    write(path, FRAME.rename({"label": name}))
    np.testing.assert_array_equal(files.read(path).y, Y)


@pytest.mark.parametrize("name", ["Label", "labels", "z"])
def test_other_names_are_features(path, name):
    write(path, FRAME.rename({"label": name}))
    table = files.read(path)
    assert table.y is None
    assert table.names == ["a", name, "b"]
    assert files.read(path, target=name).names == ["a", "b"]


def test_a_target_can_be_chosen_or_denied(path):
    write(path, FRAME.rename({"a": "y"}))
    message = refusal(path)
    assert "'label', 'y' could be the target" in message
    assert "target='label'" in message
    assert files.read(path, target="y").names == ["label", "b"]
    table = files.read(path, target=False)
    assert table.y is None
    assert table.names == ["y", "label", "b"]
    assert "no column 'c' for the target; its columns are 'y', 'label', 'b'" in refusal(
        path, target="c"
    )


def test_labels_may_be_text(path):
    write(path, FRAME.with_columns(label=pl.Series(["spam", "ham", "spam"])))
    assert files.read(path).y.tolist() == ["spam", "ham", "spam"]


def test_categories_are_text(tmp_path):
    labels = pl.Series(["spam", "ham", "spam"])
    for kind in (pl.Categorical, pl.Enum(["ham", "spam"])):
        frame = FRAME.with_columns(label=labels.cast(kind))
        path = write(tmp_path / "data.parquet", frame)
        assert files.read(path).y.tolist() == ["spam", "ham", "spam"]


def test_truth_values_are_numbers(path):
    truth = pl.Series([True, False, True])
    write(path, FRAME.with_columns(a=truth, label=truth))
    table = files.read(path)
    assert table.X[:, 0].tolist() == table.y.tolist() == [1.0, 0.0, 1.0]


def test_single_precision_is_kept(tmp_path):
    path = write(
        tmp_path / "a.parquet", FRAME.with_columns(pl.col("a", "b").clip(-9, 9).cast(pl.Float32))
    )
    table = files.read(path)
    assert table.X.dtype == np.float32
    assert table.y.dtype == np.float64
    mixed = write(tmp_path / "b.parquet", FRAME.with_columns(pl.col("a").cast(pl.Float32)))
    assert files.read(mixed).X.dtype == np.float64


def test_a_late_fraction_makes_a_column_real(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "1,2\n" * 5000 + "0.5,3\n")
    assert files.read(path).X[-1, 0] == 0.5


def test_blanks_and_signs_do_not_make_a_csv_column_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a, b, y\n+1, 0.5,+1\n 2,-3 ,-1\n")
    table = files.read(path)
    assert table.names == ["a", "b"]
    assert table.X.tolist() == [[1.0, 0.5], [2.0, -3.0]]
    assert table.y.tolist() == [1.0, -1.0]


def test_text_in_features_is_named_with_its_place(path):
    write(path, FRAME.with_columns(b=pl.Series(["1", "two", "2"]), c=pl.lit("red")))
    message = refusal(path)
    assert (
        "2 feature columns hold no numbers: 'b' ('two' in row 2); 'c' ('red' in row 1)" in message
    )
    assert "(one_hot=)" in message
    write(path, FRAME.with_columns(pl.lit("red").alias("x" * 99)))
    assert "x" * 31 not in refusal(path)


def test_other_types_are_named(tmp_path):
    from datetime import date

    frame = FRAME.with_columns(day=pl.lit(date(2020, 1, 1)), list=pl.Series([[1]] * 3))
    message = refusal(write(tmp_path / "data.parquet", frame))
    assert "'day' (of type Date); 'list' (of type List" in message
    frame = FRAME.with_columns(label=pl.lit(date(2020, 1, 1)))
    message = refusal(write(tmp_path / "data.parquet", frame))
    assert "the target column 'label' is of type Date" in message


@pytest.mark.parametrize("column", ["a", "b", "label"])
@pytest.mark.parametrize(
    ("value", "what"), [(None, "is empty"), (np.nan, "is nan"), (np.inf, "is inf")]
)
def test_missing_values_are_named_with_their_place(path, column, value, what):
    values = pl.Series([1.0, value, 2.0], strict=False)
    write(path, FRAME.with_columns(values.alias(column)))
    message = refusal(path)
    assert f"{column!r} {what} in row 2 (counted from 1" in message
    if column == "label":
        assert "no target is ever filled; leave out the rows with missing values (mis" in message
        assert "the target 'label' is" in refusal(path, missing="mean")
    else:
        assert "drop such rows or fill" in message


@pytest.mark.parametrize("word", ["NA", " NaN", "?", "None"])
def test_words_for_nothing_among_numbers_make_no_categories(word, tmp_path):
    """'NA' in a column of numbers once made a feature of each number."""
    path = tmp_path / "data.csv"
    path.write_text(f"a,b,y\n1.5,u,0\n{word},v,1\n3,None,1\n")
    assert "column 'a' is" in refusal(path, one_hot=True)
    table = files.read(path, one_hot=True, missing="mean")
    assert table.X[:, 0].tolist() == [1.5, 2.25, 3.0]
    path.write_text("a,b,y\n1.5,u,0\n2,None,1\n")
    assert files.read(path, one_hot=True).names == ["a", "b=None", "b=u"]  # a word among words


def test_the_number_of_features_is_checked(path):
    write(path, FRAME)
    assert files.read(path, n_features=2).X.shape == (3, 2)
    assert "has 2 feature columns ('a', 'b') where n_features=3" in refusal(path, n_features=3)


def test_a_table_needs_rows_and_features(path):
    write(path, FRAME.clear())
    assert "has no rows" in refusal(path)
    write(path, FRAME.select("label"))
    assert "no columns besides the target" in refusal(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1,2.5\n3,4\n", r"first line holds numbers only \('1', '2.5'\).*names"),
        ("a;b;y\n1;2;3\n", "separated by ';'"),
        ("a,a,y\n1,2,3\n", "several columns are called 'a'; rename"),
        ("a,,y\n1,2,3\n", "column 2 has no name"),
        (",,y\n1,2,3\n", "column 2 has no name"),
        ("a,b,y\n1,2,3,4\n", "one value per column in every line"),
        ("a,b,y\n1,2\n", "'y' is empty in row 1"),
        ("a,b,y\n1,2,\xff\n", "is not in UTF-8; save it in this encoding"),
        ("a;b;y\n1,5;2,25;3\n", "separated by ';'"),
        ("a,b,y\n", "has no rows"),
    ],
)
def test_bad_csv_files_are_refused(tmp_path, text, match):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=match):
        files.read(path)


def test_the_index_of_a_table_is_no_feature(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(",a,b,y\nx,1,2,3\ny,4,,6\nz,7,8,9\n")
    table = files.read(path, missing="drop")
    assert (table.names, table.X.tolist(), table.y.tolist()) == (
        ["a", "b"], [[1, 2], [7, 8]], [3, 9],
    )  # fmt: skip
    assert (table.columns.left_out, table.dropped) == ([""], 1)
    path.write_text("a,b\n1,2\n")  # later rows, without the index
    assert files.read(path, known=table.columns).X.tolist() == [[1, 2]]
    path.write_text(",a,b\nw,1,2\n")
    assert files.read(path, known=table.columns).X.tolist() == [[1, 2]]


def test_tabs_separate_the_columns_of_a_table_of_tabs(tmp_path):
    path = tmp_path / "data.tab.gz"
    path.write_bytes(gzip.compress(b"a\tb\ty\n1\t2\t3\n"))
    assert files.read(path).names == ["a", "b"]


@pytest.mark.parametrize("data", [b"PAR1 and no more", b"a,b\n1,2\n", bytes(100)])
def test_bad_parquet_files_are_refused(tmp_path, data):
    path = tmp_path / "data.parquet"
    path.write_bytes(data)
    assert "is not a Parquet file, or is damaged" in refusal(path)


def test_formats_are_told_by_content_without_a_known_suffix(tmp_path):
    FRAME.write_parquet(tmp_path / "data.bin")
    assert files.read(tmp_path / "data.bin").names == ["a", "b"]
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    (tmp_path / "data.npz").rename(tmp_path / "data.other")
    np.testing.assert_array_equal(files.read(tmp_path / "data.other").X, X)
    FRAME.write_csv(tmp_path / "table")
    assert files.read(tmp_path / "table", format="csv").names == ["a", "b"]


PEOPLE = pl.DataFrame(
    {
        "age": [20.0, None, 40.0, 60.0],
        "town": ["Bern", "Ulm", None, "Ulm"],
        "code": [7, 8, 7, 7],
        "paid": ["no", "yes", "no", "yes"],
    }
)


def test_categories_become_a_feature_each(path):
    table = files.read(
        write(path, PEOPLE), target="paid", columns=["town", "code"], one_hot=True, missing="drop"
    )
    assert table.names == ["town=Bern", "town=Ulm", "code"]
    assert table.X.tolist() == [[1, 0, 7], [0, 1, 8], [0, 1, 7]]
    assert table.y.tolist() == ["no", "yes", "yes"]
    table = files.read(path, target="paid", drop=["age", "town"], one_hot=["code"])
    assert table.names == ["code=7", "code=8"]
    assert table.X.tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize(("how", "age"), [("mean", 40.0), ("median", 40.0), ("most_frequent", 20)])
def test_missing_values_are_filled(how, age, path):
    table = files.read(write(path, PEOPLE), target="paid", one_hot=True, missing=how)
    assert table.X[:, 0].tolist() == [20.0, age, 40.0, 60.0]
    assert table.X[2, 1:3].tolist() == [0.0, 1.0]  # Ulm is the most frequent


def test_later_rows_become_the_same_features(path, tmp_path):
    first = files.read(write(path, PEOPLE), target="paid", one_hot=True, missing="mean")
    known = files.Columns.of(dataclasses.asdict(first.columns))
    later = PEOPLE[::-1].select("town", "code", "age", "paid")
    other = write(tmp_path / f"later{path.suffix}", later.with_columns(extra=pl.lit(1)))
    assert "the column 'extra' (1 in all), which the model was not fitted on" in refusal(
        other, known=known
    )
    again = files.read(other, known=known, lenient=True)
    assert again.names == first.names
    without = write(tmp_path / f"empty{path.suffix}", later.with_columns(paid=None))
    assert files.read(without, known=known).y is None
    np.testing.assert_array_equal(again.X, first.X[::-1])
    assert again.y.tolist() == first.y.tolist()[::-1]
    without = files.read(write(other, later.drop("paid")), known=known)
    assert without.y is None
    strange = write(other, later.with_columns(town=pl.lit("Rome")))
    assert "'Rome' in row 1, a category that the model does not know" in refusal(
        strange, known=known
    )
    assert files.read(strange, known=known, lenient=True).X[:, 1:3].sum() == 0
    assert "lacks the column 'code'" in refusal(write(other, later.drop("code")), known=known)


def test_many_categories_are_sparse(path):
    frame = pl.DataFrame({"word": [f"w{k}" for k in range(300)], "x": range(300), "y": range(300)})
    table = files.read(write(path, frame), one_hot=["word"])
    assert sp.issparse(table.X)
    assert table.X.shape == (300, 301)
    assert table.X.nnz <= 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["age", "z"]}, "has no feature column 'z'"),
        ({"drop": ["z"]}, "has no feature column 'z'"),
        ({"one_hot": ["z"]}, "no feature column 'z'"),
        ({"columns": ["age"]}, "column 'age' is empty in row 2"),
        ({"columns": ["age", "town"], "one_hot": True, "missing": "mean", "n_features": 1},
         "has 2 feature columns"),
    ],
)  # fmt: skip
def test_choices_that_do_not_fit_are_named(options, message, path):
    assert message in refusal(write(path, PEOPLE), target="paid", **options)


def test_choices_of_columns_are_for_tables(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match="for CSV and Parquet files, not for svmlight"):
        files.read(tmp_path / "a.svm", drop=["x"])
    with pytest.raises(ValueError, match="missing = 'zero' is unknown; choose one of 'refuse'"):
        files.read(tmp_path / "a.svm", missing="zero")
