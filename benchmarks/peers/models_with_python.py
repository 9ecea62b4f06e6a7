"""Fits a model with statsmodels or SciPy, for benchmarks/models.py; the arguments are the job and the path of the data."""

import sys
import warnings

import numpy as np
import pandas as pd

job, path = sys.argv[1:]
data = pd.read_csv(path)
warnings.simplefilter("ignore")


def decay(x: np.ndarray, a: float, k: float, c: float) -> np.ndarray:
    return a * np.exp(-k * x) + c


if job == "counts":
    from statsmodels.discrete.discrete_model import NegativeBinomial

    x = np.column_stack([np.ones(len(data)), data.x])
    estimate = NegativeBinomial(data.n.to_numpy(), x).fit(disp=0, method="newton").params[1]
elif job == "survival":
    from scipy.optimize import minimize

    time, ended, x = (data[name].to_numpy() for name in ("time", "ended", "x"))

    def cost(point: np.ndarray) -> float:
        a, b, s = point
        log_z = np.exp(s) * (np.log(time) - (a - b * x))
        return float(np.sum(np.exp(log_z) - ended * (s + log_z)))

    estimate = minimize(cost, [np.log(time.mean()), 0.0, 0.0], method="BFGS").x[1]
elif job in ("subjects", "effects"):
    from statsmodels.regression.mixed_linear_model import MixedLM

    design = np.column_stack([np.ones(len(data)), data.x])
    effects = design if job == "subjects" else design[:, :1]
    estimate = MixedLM(data.y, design, groups=data.g, exog_re=effects).fit().params.iloc[1]
elif job == "levels":
    from scipy.optimize import curve_fit

    levels, level = np.unique(data.g, return_inverse=True)
    count, rows = len(levels), np.arange(len(data))

    def model(x: np.ndarray, *point: float) -> np.ndarray:
        return decay(x, np.asarray(point[:count])[level], *point[count:])

    def jacobian(x: np.ndarray, *point: float) -> np.ndarray:
        found, shape = np.zeros((len(x), len(point))), np.exp(-point[count] * x)
        found[rows, level] = shape
        found[:, count] = -np.asarray(point[:count])[level] * x * shape
        found[:, count + 1] = 1.0
        return found

    estimate = curve_fit(model, data.x.to_numpy(), data.y.to_numpy(), [1.0] * count + [1.0, 0.5], jac=jacobian)[0][
        count
    ]
else:
    from scipy.optimize import curve_fit

    found = [curve_fit(decay, part.x, part.y, [1.0, 1.0, 0.5])[0][1] for _, part in data.groupby("g")]
    estimate = np.mean(found)
print(f"{estimate:.10g}")
