"""The real files, continued: patients, customers, a text.

Skipped unless TACITA_DATA names a folder with the files.
"""

import io
import shutil
import zipfile

import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.data import describe, load, split_vertical
from tacita.data.download import sources_of
from tacita.data.sources import read
from tacita.data.unpack import zip_member

pytestmark = pytest.mark.data


@pytest.fixture(autouse=True)
def needs_the_folder(real):
    return real


HOSPITALS = {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200}


def test_heart_disease_has_the_published_counts():
    data = load("heart-disease", scale=None, encoding="codes", features="all")
    table = data.summary().set_index("agent")
    assert table["rows"].to_dict() == HOSPITALS
    assert table["disease"].tolist() == [139, 106, 115, 149]
    age = [x[:, 0].mean() for x, _ in data.by_agent()]
    np.testing.assert_allclose(age, [54.4, 47.8, 55.3, 59.4], atol=0.05)
    male = [x[:, 1].mean() for x, _ in data.by_agent()]
    np.testing.assert_allclose(male, [0.68, 0.72, 0.92, 0.97], atol=0.005)


def test_heart_disease_marks_and_fills_what_is_missing():
    data = load(
        "heart-disease",
        scale=None,
        encoding="codes",
        features="all",
        missing="indicate",
    )
    column = {name: i for i, name in enumerate(data.feature_names)}
    gaps = {}
    for hospital in HOSPITALS:
        rows = data.x[data.rows_of(hospital)]
        gaps[hospital] = {
            name.removesuffix(" missing"): int(rows[:, i].sum())
            for name, i in column.items()
            if name.endswith(" missing")
        }
    assert gaps["cleveland"]["ca"] == 4 and gaps["cleveland"]["thal"] == 2
    assert gaps["hungarian"]["slope"] == 190 and gaps["hungarian"]["chol"] == 23
    assert gaps["switzerland"]["chol"] == 123 and gaps["switzerland"]["fbs"] == 75
    assert gaps["va"]["chol"] == 7 + 49 and gaps["va"]["trestbps"] == 56
    chol, flag = data.x[:, column["chol"]], data.x[:, column["chol missing"]] == 1
    assert (chol[flag] == np.median(chol[~flag])).all() and chol.min() > 0


def test_heart_disease_fills_from_training_rows_only():
    data = load("heart-disease", scale=None, encoding="codes", test_share=0.3, seed=2)
    assert len(data) + len(data.test_y) == 920
    chol = data.feature_names.index("chol")
    swiss = data.agent_names.index("switzerland")
    filled = data.x[data.agent == swiss, chol][0]
    indicated = load(
        "heart-disease",
        scale=None,
        encoding="codes",
        missing="indicate",
        test_share=0.3,
        seed=2,
    )
    seen = indicated.x[:, indicated.feature_names.index("chol missing")] == 0
    assert filled == np.median(data.x[seen, chol])
    assert (data.test_x[data.test_agent == swiss, chol] == filled).all()
    shares = np.bincount(data.test_agent) / np.array(list(HOSPITALS.values()))
    np.testing.assert_allclose(shares, 0.3, atol=0.005)


def test_heart_disease_columns():
    shared = load("heart-disease")
    assert len(shared.feature_names) == 15
    assert not {"slope", "ca", "thal"} & {n.split("=")[0] for n in shared.feature_names}
    assert load("heart-disease", features="all").x.shape[1] == 22
    assert load("heart-disease", encoding="codes").x.shape[1] == 10


def test_parkinsons_has_the_published_counts():
    data = load("parkinsons")
    sizes = np.bincount(data.agent)
    assert data.x.shape == (5875, 19) and data.n_agents == 42
    assert sizes.min() == 101 and sizes.max() == 168
    assert data.agent_names[:3] == ("1", "2", "3") and data.agent_names[-1] == "42"
    assert data.y.min() == pytest.approx(7.00, abs=0.005)
    assert data.y.max() == pytest.approx(54.99, abs=0.005)
    assert data.y.mean() == pytest.approx(29.02, abs=0.005)
    motor = load("parkinsons", target="motor_UPDRS", features="voice", scale=None)
    assert motor.x.shape == (5875, 16)
    assert motor.y.mean() == pytest.approx(21.30, abs=0.005)
    raw = load("parkinsons", scale=None)
    sex = [x[0, raw.feature_names.index("sex")] for x, _ in raw.by_agent()]
    assert sex.count(0.0) == 28 and sex.count(1.0) == 14


def test_parkinsons_is_tested_by_time_or_by_patient():
    data = load("parkinsons", test_share=0.2, scale=None)
    assert len(data.test_y) == pytest.approx(0.2 * 5875, rel=0.02)
    day = data.feature_names.index("test_time")
    for patient in range(42):
        train = data.x[data.agent == patient, day]
        test = data.test_x[data.test_agent == patient, day]
        assert len(test) and train.max() < test.min()
    data = load("parkinsons", test_share=0.2, test_by="patient", seed=1)
    assert data.n_agents == 34 and set(data.test_agent) == {-1}


def test_bank_marketing_has_three_parties():
    data = load("bank-marketing", scale=None)
    assert len(data) == 41188 and np.bincount(data.y).tolist() == [36548, 4640]
    assert "duration" not in data.feature_names and data.x.shape[1] == 63
    assert "duration" in load("bank-marketing", duration=True).feature_names
    column = {name: data.x[:, i] for i, name in enumerate(data.feature_names)}
    unknown = {"default": 8597, "education": 1731, "housing": 990, "loan": 990}
    unknown |= {"job": 330, "marital": 80}
    for name, n in unknown.items():
        assert column[f"{name}=unknown"].sum() == n
    assert column["pdays"].max() < 999
    assert (column["pdays"][column["contacted before"] == 0] == 0).all()
    owned = sorted(i for columns in data.parties.values() for i in columns)
    assert owned == list(range(63))
    blocks = split_vertical(data.x, data.parties)
    np.testing.assert_array_equal(blocks[2], data.party("national statistics"))
    assert [b.shape[1] for b in blocks] == [34, 24, 5]
    later = load("bank-marketing", test_by="time", test_share=0.1)
    assert len(later.test_y) == 4119 and later.test_y.mean() > 2 * later.y.mean()


def test_credit_default_has_two_or_three_parties():
    data = load("credit-default", scale=None)
    assert len(data) == 30000 and np.bincount(data.y).tolist() == [23364, 6636]
    assert set(data.parties) == {"profile", "payments"}
    assert data.party("payments").shape[1] == 18
    three = load("credit-default", parties=3)
    assert set(three.parties) == {"profile", "status", "amounts"}
    for some in (data, three):
        owned = sorted(i for columns in some.parties.values() for i in columns)
        assert owned == list(range(some.x.shape[1]))
    levels = [n for n in data.feature_names if n.startswith("EDUCATION=")]
    assert len(levels) == 7
    split = load("credit-default", test_share=0.2)
    assert split.test_y.mean() == pytest.approx(data.y.mean(), abs=1e-4)


@pytest.mark.parametrize(("fewest", "roles"), [(1000, 141), (5000, 64), (10000, 35)])
def test_shakespeare_roles(fewest, roles):
    data = load("shakespeare", min_characters=fewest, stride=100)
    assert data.n_agents == roles and len(data.classes) == 65


def test_shakespeare_windows_are_in_the_text(real):
    data = load("shakespeare", window=20, stride=7, min_characters=1000)
    text = (real / "shakespeare/input.txt").read_text("ascii")
    assert len(text) == 1115394
    alphabet = np.array(data.classes)
    spoken, role, before = {}, None, ""
    for line in text.split("\n"):
        if not before:
            role = line[:-1] if line.endswith(":") else None
        elif line and role:
            spoken.setdefault(role, []).append(line)
        before = line
    speech = {role: "\n".join(lines) for role, lines in spoken.items()}
    assert len(speech) == 299
    random = np.random.default_rng(0)
    for row in random.choice(len(data), 300, replace=False):
        said = "".join(alphabet[data.x[row]]) + alphabet[data.y[row]]
        assert said in speech[data.agent_names[data.agent[row]]]
    # One agent in full: windows start every 7 characters.
    who = data.agent_names.index("MENENIUS")
    words = speech["MENENIUS"]
    starts = range(0, len(words) - 20, 7)
    x, y = data.by_agent()[who]
    assert ["".join(alphabet[line]) for line in x] == [
        words[s : s + 20] for s in starts
    ]
    assert "".join(alphabet[y]) == "".join(words[s + 20] for s in starts)


def test_shakespeare_is_tested_on_the_last_part_of_each_role():
    data = load("shakespeare", window=20, stride=20, test_share=0.2)
    held = np.bincount(data.agent)
    tested = np.bincount(data.test_agent, minlength=data.n_agents)
    np.testing.assert_allclose(tested / (held + tested), 0.2, atol=0.05)
    whole = load("shakespeare", window=20, stride=20)
    np.testing.assert_array_equal(
        data.by_agent()[0][0], whole.by_agent()[0][0][: held[0]]
    )


def test_one_changed_byte_is_refused(real, tmp_path, monkeypatch):
    shutil.copytree(real / "heart-disease", tmp_path / "heart-disease")
    path = tmp_path / "heart-disease/processed.va.data"
    path.chmod(0o644)
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"9" + content[101:])
    monkeypatch.setenv("TACITA_DATA", str(tmp_path))
    with pytest.raises(
        TacitaError, match=r"processed\.va\.data has the wrong checksum"
    ):
        load("heart-disease")


def test_the_chain_of_archives_of_bank_marketing_leads_to_the_pinned_content():
    """Build the archive as published from the kept file, then follow the steps."""
    (file,) = describe("bank-marketing").files
    content = read(file)
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bank-additional/bank-additional-full.csv", content)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("bank-additional.zip", inner.getvalue())
    payload = outer.getvalue()
    for step in sources_of(file)[0].unpack:
        payload = step(payload, 1 << 23)
    assert payload == content
    assert zip_member("bank-additional.zip")(outer.getvalue(), 1 << 23)
