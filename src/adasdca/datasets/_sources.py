"""Where the paper's data sets come from, and what they must contain.

The archives publish no checksums of the LIBSVM files, so none is claimed here: `sha256` is that of
the file where a third party vouches for one, else None, and then the first download is trusted and
recorded. What does not rest on trust is `content`: the fingerprint of the parsed matrix and labels,
taken from copies that were compared entry by entry with a second copy of other origin. It is
independent of the compression and layout of the file that is served.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from adasdca.datasets._content import Content

Data = tuple[Any, NDArray[np.float64]]
Reader = Callable[[Path], Data]


@dataclass(frozen=True)
class Source:
    """A data set that can be fetched.

    Parameters
    ----------
    name : str
        The name to use in ``load(name)``: letters, digits and ``. _ + -``.
    urls : tuple of str
        Addresses of the same file, http or https, tried in order.
    format : {"svmlight", "dorothea", "covtype"} or callable
        How the file is read; ``function(path) -> (X, y)`` for a format of your own.
    n, d : int, optional
        Rows and columns, verified.
    positive : float, optional
        The label that becomes +1, all others −1; None leaves the labels alone.
    dtype : {"float32", "float64"}
        Type of the values; float32 for those that it holds exactly.
    sha256 : str, optional
        Checksum of the file, verified; None trusts and records the first download.
    bytes : int, optional
        Size of the file, verified.
    content : Content, optional
        What the parsed data must be, verified.
    licence, citation, homepage, notes : str
        For people.
    """

    name: str
    urls: tuple[str, ...]
    format: str | Reader = "svmlight"
    n: int | None = None
    d: int | None = None
    positive: float | None = None
    dtype: str = "float64"
    sha256: str | None = None
    bytes: int | None = None
    content: Content | None = None
    licence: str = ""
    citation: str = ""
    homepage: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name, re.ASCII):
            raise ValueError(
                f"Source: name = {self.name!r} is not allowed; it names a file: choose letters, "
                "digits and . _ + -"
            )
        urls: object = self.urls
        if isinstance(urls, str):
            object.__setattr__(self, "urls", (urls,))
        for url in self.urls or ("",):
            if urlsplit(url).scheme not in ("http", "https"):
                raise ValueError(f"Source: url {url!r} is not allowed; it must be http or https.")
        if not callable(self.format) and self.format not in ("svmlight", "dorothea", "covtype"):
            raise ValueError(
                f"Source: format = {self.format!r} is unknown; choose 'svmlight', 'dorothea', "
                "'covtype', or pass a function from a path to (X, y)."
            )
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(f"Source: sha256 = {self.sha256!r} is not 64 hexadecimal digits.")

    @property
    def filename(self) -> str:
        """Name of the original file; its suffix is that of its compression."""
        return f"{self.name}.original{''.join(Path(urlsplit(self.urls[0]).path).suffixes[-1:])}"


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_LIBSVM_LICENCE = (
    "LIBSVM Data collection (C.-C. Chang, C.-J. Lin): no explicit licence; research use, cite the "
    "origin"
)
_UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"

SOURCES = {
    source.name: source
    for source in (
        Source(
            "w8a",
            (f"{_LIBSVM}/w8a",),
            n=49749,
            d=300,
            dtype="float32",
            content=Content(
                49749,
                300,
                579586,
                "f0919ab5a562ddbf50b2896327aad29a8c7130db4908f79de611beeab05c3cba",
            ),
            licence=_LIBSVM_LICENCE,
            citation='J. Platt, "Fast training of support vector machines using SMO", 1998',
            homepage=f"{_LIBSVM}.html#w8a",
        ),
        Source(
            "dorothea",
            ("https://archive.ics.uci.edu/static/public/169/dorothea.zip",),
            format="dorothea",
            n=800,
            d=100000,
            dtype="float32",
            content=Content(
                800,
                100000,
                727760,
                "56e38ce830d180ebfc69d6c2fb04e8677b17767483d720a932a8912084067ca9",
            ),
            licence=_UCI_LICENCE,
            citation="I. Guyon, S. Gunn, A. Ben-Hur, G. Dror, NIPS 2003 feature selection "
            "challenge; DuPont Pharmaceuticals, KDD Cup 2001",
            homepage="https://archive.ics.uci.edu/dataset/169/dorothea",
            notes="the training set",
        ),
        Source(
            "mushrooms",
            (f"{_LIBSVM}/mushrooms",),
            n=8124,
            d=112,
            positive=2.0,
            dtype="float32",
            content=Content(
                8124,
                112,
                170604,
                "901568bee46f6153183176a1f04e40f29cf0816c378c3f7458c104053efe2d3e",
            ),
            licence=f"{_UCI_LICENCE}; {_LIBSVM_LICENCE}",
            citation="UCI Mushroom, from The Audubon Society Field Guide, 1981",
            homepage=f"{_LIBSVM}.html#mushrooms",
            notes="shipped with the package; label 2 (edible) is +1, label 1 (poisonous) -1",
        ),
        Source(
            "cov1",
            (
                "https://ndownloader.figshare.com/files/5976039",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
            ),
            format="covtype",
            n=581012,
            d=54,
            # As scikit-learn's fetch_covtype has it for this copy of the UCI file.
            sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            content=Content(
                581012,
                54,
                6940438,
                "1a25b944992cd6de65da7cef1e00581ea9938fe8845fed6201663a9c6e879ab2",
            ),
            licence=_UCI_LICENCE + ", copyright J. A. Blackard and Colorado State University",
            citation='J. Blackard, D. Dean, "Comparative accuracies of artificial neural networks '
            'and discriminant analysis in predicting forest cover types", 1999',
            homepage=f"{_LIBSVM}.html#covtype.binary",
            notes="made from the UCI file as LIBSVM's covtype.libsvm.binary.scale is: class 2 is "
            "+1, the others -1; columns scaled to [0, 1], six significant digits. Not compared "
            "with LIBSVM's own file",
        ),
        Source(
            "ijcnn1",
            (f"{_LIBSVM}/ijcnn1.bz2",),
            n=49990,
            d=22,
            content=Content(
                49990,
                22,
                649869,
                "b1132508291cfe0bad78ecaa07fb4fea0704b81af8203b60801a95d341bb5e26",
            ),
            licence=_LIBSVM_LICENCE,
            citation="D. Prokhorov, IJCNN 2001 neural network competition; C.-C. Chang, C.-J. Lin, "
            '"IJCNN 2001 challenge: generalization ability and text decoding", 2001',
            homepage=f"{_LIBSVM}.html#ijcnn1",
            notes="training and validation rows together, in their order in time",
        ),
    )
}
