#!/usr/bin/env python3
"""Compares how well the boosted trees and XGBoost order candidates, trained and judged on the same measurements.

    pip install xgboost numpy
    cargo bench --bench ranking -- --json --records DIR > candidates.jsonl
    scripts/compare_ranking.py candidates.jsonl

XGBoost has the settings of MetaSchedule's cost model: depth 10, eta 0.2, gamma 0.001, min_child_weight 0, seed 43, a program's
score is the sum of the scores of its rows, and the loss is squared and weighted by the label, the speed relative to the task's
best. Here that is the objective `sums`; `rank` is XGBoost's own `rank:pairwise` on the sums of the rows' features. Both stop
after as many rounds as do best on the last tenth of what they are trained on, within 300. Each sees the draft model's prior as
one more column, as the trees do. The figures are those of the table of `cargo bench --bench ranking`, in per cent.
"""
import collections
import json
import sys
import time

import numpy as np
import xgboost

ROUNDS, PATIENCE, MEASURED = 300, 50, 8
PARAMETERS = {"max_depth": 10, "gamma": 0.001, "min_child_weight": 0, "eta": 0.2, "seed": 43, "nthread": 1,
              "base_score": 0.0}

candidates = [json.loads(line) for line in open(sys.argv[1])]
tasks = [candidate["task"] for candidate in candidates]
folds = np.array([candidate["fold"] for candidate in candidates])
seconds = np.array([candidate["seconds"] or np.inf for candidate in candidates])
best = collections.defaultdict(lambda: np.inf)
for task, time_of_one in zip(tasks, seconds):
    best[task] = min(best[task], time_of_one)
labels = np.array([best[task] / time_of_one for task, time_of_one in zip(tasks, seconds)])
rows = [np.array([row + [candidate["prior"]] for row in candidate["rows"]], np.float32) for candidate in candidates]


def summed(numbers):
    """The rows of some candidates, and for each row the number of its candidate among them."""
    owners = np.repeat(np.arange(len(numbers)), [len(rows[number]) for number in numbers])
    return xgboost.DMatrix(np.concatenate([rows[number] for number in numbers])), owners


def train_sums(train, check):
    """Rows are scored one by one; a candidate's score is their sum."""
    (data, owners), (check_data, check_owners) = summed(train), summed(check)
    owners_of = {id(data): (owners, labels[train]), id(check_data): (check_owners, labels[check])}

    def sums(scores, matrix):
        owners, wanted = owners_of[id(matrix)]
        return np.bincount(owners, scores, len(wanted)), owners, wanted

    def gradient(scores, matrix):
        total, owners, wanted = sums(scores, matrix)
        return ((total - wanted) * wanted)[owners], wanted[owners]

    def error(scores, matrix):
        total, _, wanted = sums(scores, matrix)
        return "error", float(np.sqrt(np.mean(wanted * (total - wanted) ** 2)))

    parameters = PARAMETERS | {"disable_default_eval_metric": True}
    booster = xgboost.train(parameters, data, ROUNDS, obj=gradient, custom_metric=error, evals=[(check_data, "check")],
                            early_stopping_rounds=PATIENCE, verbose_eval=False)

    def predict(numbers):
        data, owners = summed(numbers)
        scores = booster.predict(data, iteration_range=(0, booster.best_iteration + 1))
        return np.bincount(owners, scores, len(numbers))

    return predict


def train_rank(train, check):
    """Candidates are compared pair by pair, those of one task with each other."""

    def matrix(numbers):
        data = xgboost.DMatrix(np.array([rows[number].sum(0) for number in numbers]))
        data.set_label(labels[numbers])
        return data

    def grouped(numbers):
        numbers = sorted(numbers, key=lambda number: tasks[number])
        data = matrix(numbers)
        data.set_group(list(collections.Counter(tasks[number] for number in numbers).values()))
        return data

    parameters = PARAMETERS | {"objective": "rank:pairwise", "lambdarank_pair_method": "topk", "eval_metric": "ndcg",
                               "ndcg_exp_gain": False}
    booster = xgboost.train(parameters, grouped(train), ROUNDS, evals=[(grouped(check), "check")],
                            early_stopping_rounds=PATIENCE, verbose_eval=False)
    return lambda numbers: booster.predict(matrix(numbers), iteration_range=(0, booster.best_iteration + 1))


def cross_validated(trainer):
    scores, spent = np.zeros(len(candidates)), 0.0
    for fold in range(folds.max() + 1):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        start = time.perf_counter()
        predict = trainer([number for number in train if number % 10 != 9], [number for number in train if number % 10 == 9])
        spent += time.perf_counter() - start
        scores[held] = predict(list(held))
    return scores, 1e3 * spent / (folds.max() + 1)


def pairs_in_order(scores, times):
    faster = times[:, None] < times[None, :]
    right = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return right[faster].mean()


def best_of_first(scores, times):
    return times.min() / times[np.argsort(-scores, kind="stable")[:MEASURED]].min()


models = {"draft": np.array([candidate["prior"] for candidate in candidates]),
          "trees": np.array([candidate["score"] for candidate in candidates])}
for name, trainer in (("sums", train_sums), ("rank", train_rank)):
    models["xgboost, " + name], spent = cross_validated(trainer)
    print(f"xgboost, {name}: trained in {spent:.0f} ms on average")
print(f"{len(candidates)} candidates of {len(best)} tasks; pairs in order, best of {MEASURED}")
for name, scores in models.items():
    figures = []
    for task in best:
        own = np.array([other == task for other in tasks])
        figures.append((pairs_in_order(scores[own], seconds[own]), best_of_first(scores[own], seconds[own])))
    print(f"{name:15} {100 * np.mean([f[0] for f in figures]):6.1f} {100 * np.mean([f[1] for f in figures]):6.1f}")
