"""JSON schemas of results and of saved policies.

Objects are closed and all their entries required: a result with an entry more or less is not what
its schema says, and a test that holds real results against it fails. The schema of a policy is
made from the fields of the policies' dataclasses.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from titrant.inference import Verdict
from titrant.optimize import Status
from titrant.policies.constant import StatusQuo
from titrant.policies.formats.loading import POLICIES
from titrant.policies.formats.saving import FORMAT, VERSION
from titrant.policies.moves import MOVES, Move

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"

NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}


def closed(**properties: Schema) -> Schema:
    """Return the schema of an object with exactly these entries."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def with_more(schema: Schema, **properties: Schema) -> Schema:
    """Return the schema of the same object, which may have these entries besides."""
    return {**schema, "properties": {**schema["properties"], **properties}}


def named(value: Schema) -> Schema:
    """Return the schema of an object from names to values of one kind."""
    return {"type": "object", "additionalProperties": value}


def listed(value: Schema) -> Schema:
    """Return the schema of a list of values of one kind."""
    return {"type": "array", "items": value}


def nullable(value: Schema) -> Schema:
    """Return the schema of a value or null."""
    return {"anyOf": [value, {"type": "null"}]}


def one_of(*values: str) -> Schema:
    """Return the schema of one of a few words."""
    return {"enum": list(values)}


def ref(name: str) -> Schema:
    """Return a reference to a definition of the same schema."""
    return {"$ref": f"#/$defs/{name}"}


PAIR: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
PAIRS = listed(PAIR)
NUMBERS = {"anyOf": [NUMBER, listed(NUMBER), listed(listed(NUMBER))]}
VERDICT = one_of(*(v.value for v in Verdict))
DATA = nullable(ref("data"))
PROTOCOL = closed(hash=TEXT, checklist=listed(closed(items=TEXT, topic=TEXT, told=TEXT, by=TEXT)))
"""Of a run with `--protocol`."""
ESTIMATE: dict[str, Schema] = {
    "policy": TEXT,
    "value": NUMBER,
    "se": NUMBER,
    "interval": ref("interval"),
    "rows": COUNT,
    "effective_sample_size": NUMBER,
    "bandwidth": nullable(ref("bandwidth")),
    "method": ref("method"),
    "diagnostics": ref("diagnostics"),
}

COLUMN: Schema = {
    "name": TEXT,
    "kind": TEXT,
    "mean": NUMBER,
    "sd": NUMBER,
    "low": NUMBER,
    "quartiles": listed(NUMBER),
    "high": NUMBER,
    "distinct": COUNT,
    "common": listed(closed(value=NUMBER, share=NUMBER)),
    "missing": NUMBER,
}
"""The entries of a column's summary."""

DEFINITIONS: dict[str, Schema] = {
    "interval": closed(
        method=TEXT,
        center=NUMBER,
        se=NUMBER,
        level=NUMBER,
        low=NUMBER,
        high=NUMBER,
        note=nullable(TEXT),
    ),
    "bandwidth": closed(
        h=NUMBERS,
        selector=TEXT,
        reason=TEXT,
        bias=nullable(NUMBER),
        se=nullable(NUMBER),
        kink=NUMBER,
        flag=nullable(TEXT),
    ),
    "diagnostics": closed(
        verdict=VERDICT,
        checks=named(closed(value=nullable(NUMBER), verdict=VERDICT, message=TEXT)),
        notes=listed(TEXT),
    ),
    "method": with_more(
        closed(
            estimator=TEXT,
            propensity=nullable(TEXT),
            floor=nullable(NUMBER),
            floor_share=nullable(NUMBER),
            outcome_model=nullable(TEXT),
        ),
        models_fitted_on=COUNT,
        sample_seed=COUNT,
        groups=COUNT,
        weights_worth=NUMBER,
        population=closed(
            rows=COUNT,
            cut=NUMBER,
            unseen=NUMBER,
            worth=NUMBER,
            balance=named(closed(before=NUMBER, after=NUMBER)),
        ),
        functional=TEXT,
    ),
    "data": closed(
        rows_in=COUNT,
        rows_used=COUNT,
        steps=listed(closed(reason=TEXT, rows=COUNT)),
        columns=listed(closed(column=TEXT, done=TEXT, note=TEXT)),
        contexts=listed(TEXT),
    ),
    "estimate": with_more(closed(**ESTIMATE, data=DATA), protocol=PROTOCOL),
    "contrast": with_more(
        closed(a=TEXT, b=TEXT, difference=NUMBER, se=NUMBER, interval=ref("interval")),
        margin=closed(margin=NUMBER, maximize=FLAG, level=NUMBER, bound=NUMBER, not_worse=FLAG),
    ),
    "comparison": with_more(
        closed(
            estimates=named(closed(**ESTIMATE)),
            refused=named(TEXT),
            contrasts=listed(ref("contrast")),
            data=DATA,
        ),
        protocol=PROTOCOL,
    ),
    "column": closed(**COLUMN),
    "description": closed(
        rows=COUNT,
        groups=nullable(COUNT),
        evenness=nullable(NUMBER),
        seen=nullable(NUMBER),
        looked_at=COUNT,
        treatments=listed(
            closed(
                **COLUMN,
                histogram=closed(edges=listed(NUMBER), counts=listed(COUNT)),
                point_masses=listed(closed(value=NUMBER, share=NUMBER)),
                levels=FLAG,
            )
        ),
        outcome=ref("column"),
        contexts=listed(
            closed(
                **{**COLUMN, "mean": nullable(NUMBER), "sd": nullable(NUMBER)},
                correlation=nullable(listed(NUMBER)),
                explains_dose=listed(NUMBER),
                explains_outcome=NUMBER,
            )
        ),
        doubts=ref("diagnostics"),
    ),
    "curve": {
        **closed(parameters=listed(NUMBER), values=listed(NUMBER), refused=named(TEXT)),
        # The level of the bands in percent, 95 unless another is asked for.
        "patternProperties": {"^(pointwise|simultaneous)_[0-9.]+$": PAIRS},
    },
    "subgroups": closed(
        policy=TEXT,
        against=TEXT,
        level=NUMBER,
        whole=ref("comparison"),
        parts=listed(
            closed(
                column=TEXT,
                label=TEXT,
                rows=COUNT,
                share=NUMBER,
                logged_dose=listed(NUMBER),
                policy_dose=listed(NUMBER),
                outcome=NUMBER,
                value=nullable(NUMBER),
                against=nullable(NUMBER),
                difference=nullable(NUMBER),
                se=nullable(NUMBER),
                interval=nullable(ref("interval")),
                simultaneous=nullable(PAIR),
                effective_sample_size=NUMBER,
                diagnostics=ref("diagnostics"),
            )
        ),
        equality=listed(
            closed(
                column=TEXT,
                statistic=NUMBER,
                parts=COUNT,
                degrees=nullable(NUMBER),
                p_value=NUMBER,
            )
        ),
    ),
    "outcomes": closed(
        outcomes=named(ref("comparison")),
        policies=listed(TEXT),
        dominated=named(listed(TEXT)),
        correlation=listed(listed(NUMBER)),
        differences=named(named(named(closed(difference=NUMBER, low=NUMBER, high=NUMBER)))),
    ),
    "honest": closed(
        value=NUMBER,
        se=NUMBER,
        interval=ref("interval"),
        verdict=VERDICT,
        maximize=FLAG,
        improves=FLAG,
        contrasts=named(ref("interval")),
        halves=listed(ref("comparison")),
    ),
    "search": closed(
        params=listed(NUMBER),
        value=NUMBER,
        status=one_of(*(s.name.lower() for s in Status)),
        advice=TEXT,
        values=listed(NUMBER),
        evaluations=COUNT,
        bound=nullable(NUMBER),
    ),
    "sensitivity": closed(
        policy=TEXT,
        against=nullable(TEXT),
        estimate=NUMBER,
        reference=NUMBER,
        level=NUMBER,
        bounds=listed(closed(gamma=NUMBER, lower=NUMBER, upper=NUMBER, low=NUMBER, high=NUMBER)),
        tipping=closed(bound=nullable(NUMBER), interval=nullable(NUMBER)),
        largest_gamma=NUMBER,
        benchmarks=named(NUMBER),
        benchmark_rows=COUNT,
        verdict=one_of("undecided", "fragile", "doubtful", "unrated", "robust"),
        sentence=TEXT,
    ),
    "trial": closed(
        kind=TEXT,
        change=TEXT,
        expected=nullable(NUMBER),
        value=nullable(NUMBER),
        se=nullable(NUMBER),
        low=nullable(NUMBER),
        high=nullable(NUMBER),
        shift=nullable(NUMBER),
        verdict=TEXT,
        note=nullable(TEXT),
    ),
    "stress": closed(
        policy=TEXT,
        against=nullable(TEXT),
        rows=COUNT,
        of=COUNT,
        doubts=ref("diagnostics"),
        estimate=closed(value=NUMBER, se=NUMBER, low=NUMBER, high=NUMBER, level=NUMBER),
        trials=listed(ref("trial")),
        evaluations=COUNT,
        sentence=TEXT,
    ),
    "learned": closed(policy=ref("policy"), search=ref("search"), report={"type": "object"}),
    "class_score": closed(**{"class": TEXT}, size=nullable(COUNT), behind=NUMBER, se=NUMBER),
    "choice": closed(
        chosen=TEXT,
        finding=TEXT,
        classes=listed(ref("class_score")),
        personal=nullable(ref("class_score")),
        honest=nullable(listed(NUMBER)),
    ),
    "limit_cost": closed(limit=TEXT, binds=NUMBER, cost=NUMBER, se=NUMBER),
    "trade_off": closed(
        price=NUMBER, second=NUMBER, second_se=NUMBER, loss=NUMBER, loss_se=NUMBER, mean_dose=NUMBER
    ),
    "cap": closed(
        name=TEXT,
        at_most=NUMBER,
        at=ref("trade_off"),
        curve=listed(ref("trade_off")),
        honest=nullable(listed(NUMBER)),
    ),
    "limits": closed(
        finding=TEXT,
        costs=listed(ref("limit_cost")),
        mean_dose=NUMBER,
        budget=nullable(NUMBER),
        price=nullable(listed(NUMBER)),
        cap=nullable(ref("cap")),
    ),
    "learning": with_more(
        closed(
            deployed=FLAG,
            stopped_by=listed(TEXT),
            decision=TEXT,
            honest=ref("honest"),
            learned=ref("learned"),
            choice=nullable(ref("choice")),
            limits=nullable(ref("limits")),
            data=DATA,
        ),
        protocol=PROTOCOL,
    ),
}

FIELDS: dict[str, Schema] = {
    "float": NUMBER,
    "float | None": nullable(NUMBER),
    "str | None": nullable(TEXT),
    "float | str | None": nullable({"anyOf": [NUMBER, TEXT]}),
    "float | Array | None": nullable({"anyOf": [NUMBER, listed(NUMBER)]}),
    "float | Array": {"anyOf": [nullable(NUMBER), listed(nullable(NUMBER))]},
    "Array": {"anyOf": [listed(NUMBER), listed(listed(NUMBER))]},
    "Array | None": nullable({"anyOf": [listed(NUMBER), listed(listed(NUMBER))]}),
    "int": COUNT,
    "tuple[Array, ...]": listed(listed(NUMBER)),
    "tuple[int, ...]": listed({"type": "integer"}),
    "tuple[tuple[int, int], ...]": listed(listed(COUNT)),
    "tuple[str, ...] | None": nullable(listed(TEXT)),
    "Policy": ref("rule"),
}
"""The annotations of policies' fields; JSON has no infinity, so an absent bound is null."""
OPEN = (-math.inf, math.inf)


def rule(cls: Any) -> Schema:  # noqa: ANN401  (a dataclass)
    """Return the schema of the fields of a policy, without the header of its file."""
    fields = {f.name: FIELDS[str(f.type)] for f in dataclasses.fields(cls)}
    # The ends of a policy that changes the dose are open unless they are given.
    ends = {f.name: nullable(NUMBER) for f in dataclasses.fields(cls) if f.default in OPEN}
    fields |= ends if issubclass(cls, Move) else {}
    return closed(**{"class": {"const": cls.__name__}}, **fields)


def policy() -> dict[str, Schema]:
    """Return the definitions of a policy's file and of a policy inside another."""
    rules = [rule(cls) for cls in (*POLICIES, StatusQuo, *MOVES)]
    context = named({"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2})
    header = {"format": {"const": FORMAT}, "version": {"const": VERSION}}
    training = closed(version=COUNT, rows=COUNT, context=context)
    training["properties"] |= {
        "levels": named(listed(TEXT)),
        "fills": named(NUMBER),
        "codes": listed(TEXT),
        "dates": named(TEXT),
        "people": closed(
            contexts=listed(TEXT),
            centers=listed(listed(NUMBER)),
            scale=listed(NUMBER),
            reach=listed(NUMBER),
            doses=listed(listed(NUMBER)),
            grid=listed(NUMBER),
            losses=listed(listed(NUMBER)),
            margin=NUMBER,
        ),
    }
    return {
        "rule": {"anyOf": rules},
        "policy": {
            "anyOf": [
                {
                    **closed(**header, **r["properties"]),
                    "properties": {**header, **r["properties"], "training": training},
                }
                for r in rules
            ]
        },
    }


TITLES = {
    "estimate": "What `Estimate.to_dict()` and `titrant evaluate --json` give.",
    "comparison": "What `Comparison.to_dict()` and `titrant compare --json` give.",
    "contrast": "What `Contrast.to_dict()` gives.",
    "diagnostics": "What `check(...).to_dict()` and `titrant check --json` give.",
    "description": "What `Description.to_dict()` and `titrant describe --json` give.",
    "sensitivity": "What `Sensitivity.to_dict()` and `titrant sensitivity --json` give.",
    "stress": "What `Stress.to_dict()` and `titrant stress --json` give.",
    "curve": "What `Curve.to_dict()` and `titrant curve --json` give.",
    "subgroups": "What `Subgroups.to_dict()` and `titrant subgroups --json` give.",
    "outcomes": "What `Outcomes.to_dict()` and `titrant outcomes --json` give.",
    "honest": "What `HonestValue.to_dict()` gives: the grade of a learned policy.",
    "learning": "What `titrant learn --json` gives.",
    "policy": "What `policy.save(...)`, `PolicyLearner.save(...)` and `titrant learn -o` write.",
}
"""The schemas that are published, each with what it describes."""


def schema(name: str) -> Schema:
    """Return one schema, with the definitions it needs and no others."""
    known = {**DEFINITIONS, **policy()}
    used = _used(name, known)
    body = ref(name) if name in used else known[name]
    definitions = {key: value for key, value in known.items() if key in used}
    made = {"$schema": DRAFT, "title": f"titrant {name}", **body}
    return {**made, "$defs": definitions} if definitions else made


def _used(name: str, known: dict[str, Schema]) -> set[str]:
    """Return the definitions that a definition refers to, directly or not."""
    used: set[str] = set()
    waiting = [name]
    while waiting:
        text = json.dumps(known[waiting.pop()])
        found = {key for key in known if f'"#/$defs/{key}"' in text} - used
        used |= found
        waiting += found
    return used


def files() -> dict[str, str]:
    """Return the published schemas as files by name."""
    return {f"{n}.schema.json": json.dumps(schema(n), indent=2) + "\n" for n in TITLES}


def page() -> str:
    """Return the page that lists the schemas."""
    parts = [INTRODUCTION]
    for name, title in TITLES.items():
        content = json.dumps(schema(name), indent=2)
        parts += [
            f"## {name}",
            f"{title} As a file: [{name}.schema.json](schemas/{name}.schema.json).",
            f"<details markdown><summary>Schema</summary>\n\n```json\n{content}\n```\n\n</details>",
        ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# JSON schemas

Everything that titrant computes turns into plain JSON by `to_dict()` or `--json`; saved policies
are JSON files. These schemas are made from the code, and the tests hold real results against them.
Objects are closed: they have the entries named here and no others. A number that is not finite is
written as `null`."""
