"""The data sets of the catalogue: canonical sources, terms, what to cite.

Where the published form differs from the file that is kept:

- mnist: the mirrors serve gzip files whose headers differ from copy to copy.
- adult, heart-disease, parkinsons: members of one zip archive per data set.
- bank-marketing: a zip archive inside a zip archive; kept as a gzip file.
- credit-default: the repository of record publishes a spreadsheet in an old format
  that needs a reader of its own; the source here is a public copy of the same table
  as text, whose line ends are turned into line feeds.
- everything else: the file itself.
"""

from __future__ import annotations

from tacita.data.catalog import DataFile, Entry, Source
from tacita.data.pins import PINS
from tacita.data.unpack import gunzip, line_feeds, zip_member

_RAW = "https://raw.githubusercontent.com"
_UCI = "https://archive.ics.uci.edu"
_FMI = (
    f"{_RAW}/alexjungaalto/FederatedLearning/560dee5f04593d40e935eff377cd509ea4f29111"
)


def _file(path: str, *sources: Source) -> DataFile:
    size, sha256 = PINS[path]
    return DataFile(path=path, size=size, sha256=sha256, sources=sources)


def _images(folder: str, *bases: str) -> tuple[DataFile, ...]:
    """The four gzip files of a picture set, published as such."""
    stems = ("train-images-idx3", "train-labels-idx1")
    stems += ("t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        _file(
            f"{folder}/{stem}-ubyte.gz",
            *(
                Source(url=f"{base}/{stem}-ubyte.gz", unpack=(gunzip,))
                for base in bases
            ),
        )
        for stem in stems
    )


def _members(archive: str, *paths: str) -> tuple[DataFile, ...]:
    """Members of one zip archive of the UCI Machine Learning Repository."""
    url = f"{_UCI}/static/public/{archive}"
    return tuple(
        _file(path, Source(url=url, unpack=(zip_member(path.split("/")[-1]),)))
        for path in paths
    )


def _plain(folder: str, base: str, *origins: str) -> tuple[DataFile, ...]:
    """Files published as they are kept."""
    return tuple(
        _file(f"{folder}/{origin.split('/')[-1]}", Source(url=f"{base}/{origin}"))
        for origin in origins
    )


FASHION_MNIST = Entry(
    name="fashion-mnist",
    summary="70 000 grey pictures of clothes, 28 x 28; predict one of 10 articles",
    task="classification",
    agents="none natural; split by classes (DP-Norm: 6 of 10) or Dirichlet",
    licence="MIT",
    citation=(
        'H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for '
        'benchmarking machine learning algorithms", arXiv:1708.07747, 2017'
    ),
    home="https://github.com/zalandoresearch/fashion-mnist",
    files=_images(
        "fashion-mnist",
        f"{_RAW}/zalandoresearch/fashion-mnist/"
        "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion",
    ),
)

MNIST = Entry(
    name="mnist",
    summary="70 000 handwritten digits, 28 x 28; predict the digit",
    task="classification",
    agents="none natural; split by classes or Dirichlet",
    licence="CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
    citation=(
        'Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning '
        'applied to document recognition", Proceedings of the IEEE 86(11), 1998'
    ),
    home="http://yann.lecun.com/exdb/mnist/",
    files=_images(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
)

ADULT = Entry(
    name="adult",
    summary="48 842 records of the 1994 US census; predict an income above 50 000",
    task="classification",
    agents="native-country, occupation or education; iid over 100 in FedSPD-DP",
    licence="CC BY 4.0",
    citation=(
        'B. Becker, R. Kohavi, "Adult", UCI Machine Learning Repository, 1996, '
        "doi 10.24432/C5XW20"
    ),
    home=f"{_UCI}/dataset/2/adult",
    files=_members("2/adult.zip", "adult/adult.data", "adult/adult.test"),
)

FMI = Entry(
    name="fmi",
    summary="temperatures at stations of the Finnish Meteorological Institute",
    task="regression",
    agents="one weather station (192 to 207 of them, with coordinates)",
    licence="CC BY 4.0 (observations), MIT (repository)",
    citation=(
        'Finnish Meteorological Institute, open data; A. Jung, "Federated Learning: '
        'From Theory to Practice"'
    ),
    home="https://github.com/alexjungaalto/FederatedLearning",
    files=_plain(
        "fmi",
        _FMI,
        "Edition2025/CodingAssignments/Assignment5/FMI_data.csv",
        "Edition2025/CodingAssignments/Assignment3/FMI_data_2025.csv",
        "Edition2025/CodingAssignments/Assignment1/weather_data.csv",
        "Edition2026/assets/daily_records.csv",
        "fml2ilv/demos/fmi_daily_jan.csv",
        "fml2ilv/demos/fmi_daily_aug.csv",
        "fml2ilv/demos/fmi_stations.csv",
        "fml2ilv/demos/gd_helsinki.csv",
    ),
)

HEART_DISEASE = Entry(
    name="heart-disease",
    summary="920 patients of four hospitals; predict coronary artery disease",
    task="classification",
    agents="one hospital: cleveland 303, hungarian 294, switzerland 123, va 200",
    licence="CC BY 4.0",
    citation=(
        'A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano, "Heart Disease", UCI '
        "Machine Learning Repository, 1989, doi 10.24432/C52P4X"
    ),
    home=f"{_UCI}/dataset/45/heart+disease",
    files=_members(
        "45/heart+disease.zip",
        "heart-disease/processed.cleveland.data",
        "heart-disease/processed.hungarian.data",
        "heart-disease/processed.switzerland.data",
        "heart-disease/processed.va.data",
    ),
)

PARKINSONS = Entry(
    name="parkinsons",
    summary="5 875 voice recordings made at home; predict the clinical score",
    task="regression",
    agents="one patient (42, with 101 to 168 recordings each)",
    licence="CC BY 4.0",
    citation=(
        'A. Tsanas, M. Little, "Parkinsons Telemonitoring", UCI Machine Learning '
        "Repository, 2009, doi 10.24432/C5ZS3N"
    ),
    home=f"{_UCI}/dataset/189/parkinsons+telemonitoring",
    files=_members(
        "189/parkinsons+telemonitoring.zip", "parkinsons/parkinsons_updrs.data"
    ),
)

BANK_MARKETING = Entry(
    name="bank-marketing",
    summary="41 188 calls of a Portuguese bank; predict a term deposit",
    task="classification",
    agents="vertical: client register, call centre, national statistics",
    licence="CC BY 4.0",
    citation=(
        'S. Moro, P. Cortez, P. Rita, "A data-driven approach to predict the success '
        'of bank telemarketing", Decision Support Systems 62, 2014; UCI Machine '
        "Learning Repository, doi 10.24432/C5K306"
    ),
    home=f"{_UCI}/dataset/222/bank+marketing",
    files=(
        _file(
            "bank-marketing/bank-additional-full.csv.gz",
            Source(
                url=f"{_UCI}/static/public/222/bank+marketing.zip",
                unpack=(
                    zip_member("bank-additional.zip"),
                    zip_member("bank-additional/bank-additional-full.csv"),
                ),
            ),
        ),
    ),
)

CREDIT_DEFAULT = Entry(
    name="credit-default",
    summary="30 000 credit card holders in Taiwan; predict default next month",
    task="classification",
    agents="vertical: who the client is, how the client paid",
    licence="CC BY 4.0",
    citation=(
        'I-C. Yeh, C. Lien, "The comparisons of data mining techniques for the '
        'predictive accuracy of probability of default of credit card clients", '
        "Expert Systems with Applications 36(2), 2009; UCI Machine Learning "
        "Repository, doi 10.24432/C55S3H"
    ),
    home=f"{_UCI}/dataset/350/default+of+credit+card+clients",
    files=(
        _file(
            "credit-default/UCI_Credit_Card.csv",
            Source(
                url=(
                    f"{_RAW}/nbgraham/SL-Loan-Default/"
                    "444f8d197ee9f226be5c9db70f0e60751cb551d7/UCI_Credit_Card.csv"
                ),
                unpack=(line_feeds,),
            ),
        ),
    ),
)

SHAKESPEARE = Entry(
    name="shakespeare",
    summary="1 115 394 characters of Shakespeare's plays; predict the next one",
    task="classification",
    agents="one speaking role (299; 141 of them with 1 000 characters or more)",
    licence="MIT (repository); the plays are in the public domain",
    citation='A. Karpathy, char-rnn, "tinyshakespeare"',
    home="https://github.com/karpathy/char-rnn",
    files=_plain(
        "shakespeare",
        f"{_RAW}/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e",
        "data/tinyshakespeare/input.txt",
    ),
)
