"""Data files for circuits: CSV and npz, every complaint with file and line."""

import numpy as np
import pytest

from circuitsim.datasets.samples import Samples, read_samples, split
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Roles

ROLES = Roles(("V1", "V2"), (("out", "0"), ("a", "b")))


def write(tmp_path, text: str):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_by_name_in_any_order(tmp_path) -> None:
    found = read_samples(write(tmp_path, '"v(a, b)",v2,V1,"v(OUT,0)"\n1,2,3,4\n\n5,6,7,8e-1\n'), ROLES)
    assert found.x.tolist() == [[3.0, 2.0], [7.0, 6.0]]
    assert found.y.tolist() == [[4.0, 1.0], [0.8, 5.0]]
    assert found.classes == ()


def test_classes_by_name_and_by_number(tmp_path) -> None:
    found = read_samples(write(tmp_path, "V1,class,V2\n1,wet,2\n3,dry,4\n"), ROLES)
    assert found.classes == ("dry", "wet") and found.y.tolist() == [1, 0]
    assert read_samples(write(tmp_path, "V1,class,V2\n1,1,2\n"), ROLES).y.tolist() == [1]
    same = read_samples(write(tmp_path, "V1,class,V2\n1,dry,2\n"), ROLES, ("wet", "dry"))
    assert same.y.tolist() == [1] and same.classes == ("wet", "dry")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty"),
        ("V1,V2,class\n", "has a header and no samples"),
        ("V1,class\n1,0\n", r"data.csv:1: there is no column V2"),
        ("V1,V2,v(out)\n1,0,1\n", r"data.csv:1: there is no column v\(a,b\)"),
        ("V1,V2,V1,class\n", r"data.csv:1: column 'V1' is repeated"),
        ("V1,V2,V3,class\n", r"data.csv:1: column 'V3' is neither an input nor an output"),
        ("V1,V2,class,v(out)\n", "either a column 'class' or columns of output voltages"),
        ("V1,V2,class\n1,2,0\n1,x,0\n", r"data.csv:3: 'x' is not a finite number"),
        ("V1,V2,class\n1,2,0\n\n1,nan,0\n", r"data.csv:4: 'nan' is not a finite number"),
        ("V1,V2,class\n1,2\n", r"data.csv:2: 2 cells, the header has 3"),
        ("V1,V2,class\n1,2,a\n1,2,b\n1,2,c\n", "3 classes, the circuit 2 outputs"),
        ('V1,V2,class\n1,2,"a\n', r"data.csv:2: "),
    ],
)
def test_complaints_of_csv(tmp_path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_samples(write(tmp_path, text), ROLES)


def test_an_unknown_class_names_its_line(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"data.csv:2: there is no class 'c'; there are a, b"):
        read_samples(write(tmp_path, "V1,V2,class\n1,2,c\n"), ROLES, ("a", "b"))


def test_npz(tmp_path) -> None:
    path = tmp_path / "data.npz"
    x = np.arange(6.0).reshape(3, 2)
    np.savez(path, x=x, y=np.array([0, 1, 1]))
    found = read_samples(path, ROLES)
    assert found.classes == ("0", "1") and found.y.dtype == np.int64 and (found.x == x).all()
    np.savez(path, x=x.astype(np.float32), y=x + 1)
    found = read_samples(path, ROLES)
    assert found.classes == () and (found.y == x + 1).all() and found.x.dtype == np.float64


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 2))}, "there is no array y"),
        ({"x": np.zeros((3, 4)), "y": np.zeros(3)}, "x must be samples × 2 inputs"),
        ({"x": np.zeros((3, 2)), "y": np.zeros((2, 2))}, "x has 3 samples, y 2"),
        ({"x": np.zeros((3, 2)), "y": np.zeros((3, 3))}, "y must be samples × 2 outputs"),
        ({"x": np.zeros((3, 2)), "y": np.array([0, 1, 2])}, "must lie in 0…1"),
        ({"x": np.array([[0.0, 1], [np.nan, 0]]), "y": np.zeros(2)}, "sample 1 of x is not finite"),
        ({"x": np.array([["a", "b"]]), "y": np.zeros(1)}, "x must be an array of numbers"),
    ],
)
def test_complaints_of_npz(tmp_path, arrays, message: str) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(UsageError, match=message):
        read_samples(path, ROLES)


def test_files_that_are_none(tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_samples(tmp_path / "no.csv", ROLES)
    for name, message in (("a.txt", "must end in .csv or .npz"), ("a.npz", "cannot be read as npz")):
        (tmp_path / name).write_bytes(b"hello")
        with pytest.raises(UsageError, match=message):
            read_samples(tmp_path / name, ROLES)
    np.savez(tmp_path / "o.npz", x=np.array([object()]), y=np.zeros(1))
    with pytest.raises(UsageError, match="cannot be read as npz"):
        read_samples(tmp_path / "o.npz", ROLES)


def test_a_split_keeps_the_shares_of_classes() -> None:
    samples = Samples(np.arange(40.0).reshape(20, 2), np.array([0] * 15 + [1] * 5), ("a", "b"))
    train, test = split(samples, 0.4, np.random.default_rng(0))
    assert np.bincount(test.y).tolist() == [6, 2] and train.size == 12
    assert sorted([*train.x[:, 0], *test.x[:, 0]]) == samples.x[:, 0].tolist()
    with pytest.raises(UsageError, match="cannot be split"):
        split(samples.take(np.arange(2)), 0.1, np.random.default_rng(0))
    with pytest.raises(UsageError, match="between 0 and 1"):
        split(samples, 1.0, np.random.default_rng(0))
