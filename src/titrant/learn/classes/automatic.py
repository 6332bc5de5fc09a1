"""The choice among classes: the simplest that loses nothing that can be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.learn.classes.base import PolicyClass, places_of
from titrant.learn.classes.bent import MOST_CONTEXTS, AdditiveClass, ProductsClass, has_curves
from titrant.learn.classes.linear import ConstantClass, LinearClass
from titrant.learn.classes.tree import TreeClass

if TYPE_CHECKING:
    from titrant.data import LoggedData
    from titrant.learn.classes.base import FittedClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic(PolicyClass):
    """The simplest class that scores within one standard error of the best on rows held out.

    Unless ``classes`` are given, simplest first: a constant, a line, an additive rule where some
    context has more than 5 values, a tree, and products of up to 12 contexts; for several doses at
    once a constant, a line and a tree.
    """

    classes: tuple[PolicyClass, ...] | None = None

    def __post_init__(self) -> None:
        for kind in self.classes or ():
            if not isinstance(kind, PolicyClass) or np.isfinite(np.hstack(kind.limits)).any():
                rule = "policy classes without limits; clip the choice among them instead"
                raise _check.invalid("classes", "Automatic", rule, kind)
        if self.classes == ():
            raise _check.invalid("classes", "Automatic", "at least one", self.classes)

    def competing(self, log: LoggedData) -> tuple[PolicyClass, ...]:
        """Return the classes that make sense for a log, simplest first."""
        if self.classes is not None:
            return self.classes
        used = places_of(None, log)
        if not used:
            return (ConstantClass(),)
        found: list[PolicyClass] = [ConstantClass(), LinearClass()]
        if log.dimension > 1:
            return *found, TreeClass()
        if has_curves(log, used):
            found.append(AdditiveClass())
        found.append(TreeClass())
        if len(used) <= MOST_CONTEXTS:
            found.append(ProductsClass())
        return tuple(found)

    def on(self, log: LoggedData) -> FittedClass:  # noqa: ARG002
        """Refuse: it is several classes."""
        raise InvalidArgument(
            "`Automatic` is a choice among classes, which the default procedures make by held-out "
            "scores. Leave the procedure out, or name one class such as `LinearClass`."
        )
