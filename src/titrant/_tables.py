"""A result as a table: rounded texts for people, numbers for programs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from titrant import _text
from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Whose tables a result can become; pyarrow is always there."""


class Tabular(ABC):
    """A result that is a table, in notebooks, in a data frame and in LaTeX alike."""

    __slots__ = ()

    @abstractmethod
    def _texts(self, level: float) -> Sequence[Sequence[str]]:
        """Return the table for people, headings first, with intervals at ``level``."""

    @abstractmethod
    def _numbers(self, level: float) -> Sequence[Mapping[str, Any]]:
        """Return the table for programs, a row each under the same names, with all digits."""

    def _caption(self) -> str | None:
        """Return what stands above the table, if anything does."""
        return None

    def to_frame(self, library: str = "pandas", *, level: float = 0.95) -> Any:  # noqa: ANN401
        """Return the result as a data frame of plain numbers, with intervals at ``level``.

        ``library`` says whose: "pandas", "polars" or "pyarrow".
        """
        return frame_of(self._numbers(level), library)

    def to_latex(self, *, level: float = 0.95) -> str:
        r"""Return the result as a LaTeX table, rounded as in a notebook; needs ``booktabs``."""
        return latex(self._texts(level), self._caption())

    def _repr_html_(self) -> str:
        headings, *rows = self._texts(0.95)
        return _text.table(headings, rows, self._caption())


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of columns of one length."""
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def frame_of(rows: Sequence[Mapping[str, Any]], library: str) -> Any:  # noqa: ANN401
    """Return rows under the same names as a table of a library."""
    if library not in LIBRARIES:
        raise InvalidArgument(
            f"The `library` of `to_frame` must be one of {', '.join(map(repr, LIBRARIES))}; got "
            f"{library!r}."
        )
    return table_of({name: [row[name] for row in rows] for name in rows[0]}, library)


def table_of(columns: Mapping[str, Any], library: str) -> Any:  # noqa: ANN401
    """Return columns as a table of a library, or say how to get it."""
    import pyarrow as pa  # noqa: PLC0415  (only for who asks for tables)

    table = pa.table(dict(columns))
    try:
        if library == "pandas":
            return table.to_pandas()
        if library == "polars":
            import polars as pl  # noqa: PLC0415

            return pl.from_arrow(table)
    except ImportError:
        raise InvalidArgument(
            f"A table of {library} is asked for, which is not installed. Install it "
            f"(`pip install {library}`), or ask for library='pyarrow', which is there."
        ) from None
    return table


_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "−": "$-$",
    "…": r"\ldots{}",
    "–": "--",
    "·": r"$\cdot$",
    "Γ": r"$\Gamma$",
    "²": "$^2$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "∞": r"$\infty$",
}
"""Signs that LaTeX would act on, or that its fonts lack."""
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
"""The sign of a negative number, which a hyphen would be too short for."""


def latex(rows: Sequence[Sequence[str]], caption: str | None = None) -> str:
    r"""Return rows of texts, headings first, as a LaTeX table in the style of ``booktabs``.

    >>> print(latex([["policy", "95% CI"], ["a_1", "−1 … 2"]]))
    \begin{tabular}{lr}
    \toprule
    policy & 95\% CI \\
    \midrule
    a\_1 & $-$1 \ldots{} 2 \\
    \bottomrule
    \end{tabular}
    """
    head, *body = (" & ".join(map(_latex_text, row)) + r" \\" for row in rows)
    above = [] if caption is None else [f"% {_text.written_out(caption)}".replace("\n", " ")]
    return "\n".join(
        [
            *above,
            rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex_text(text: object) -> str:
    shown = _text.written_out(str(text)).replace("\n", " ")
    shown = _NEGATIVE.sub("−", shown)
    return "".join(_LATEX.get(sign, sign) for sign in shown)
