"""Compares fits of differential equations with published models of systems biology, those of the PEtab benchmark
collection (Hass et al., Bioinformatics 35 (2019) 3073) without events.

`python -m tests.petab_models` prints a table: the log-likelihood at the published parameters beside the published one; and,
where all parameters are 5 % smaller, as it is flat at the published ones, the largest difference of its gradient by the
logarithms of the parameters from that of solutions by SciPy, relative to the largest element. SciPy solves the equations
with one parameter that has a tiny imaginary part at a time, which comes to that of the log-likelihood times the derivative
(J. Martins, P. Sturdza and J. Alonso, ACM TOMS 29 (2003) 245). Names of models select some.
"""

from __future__ import annotations

import argparse
import cmath
import itertools
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from gradcli.models.data import table_of
from gradcli.models.fitting.fit_execution import prepare
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.problem.fit_problems import Parameters
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.search.estimation import SearchOptions

DATA = Path(__file__).parent / "data" / "petab"


@dataclass(frozen=True)
class Model:
    """A model as it is typed: the text with its responses, their standard deviations, the starts of states, and the
    published values of the parameters.

    `published` is the log-likelihood there, None where none is published. `logarithmic` is the column whose decadic
    logarithm is the response: the density of the column itself is less by the logarithm of ln(10) times it.
    """

    text: str
    sigma: Mapping[str, str | float]
    starts: Mapping[str, float]
    parameters: Mapping[str, float]
    published: float | None
    logarithmic: str | None = None


def _numbers(text: str) -> dict[str, float]:
    return {name: float(value) for name, _, value in (word.partition("=") for word in text.split())}


BOEHM = Model(
    """
    epo = 1.25e-7*exp(-Epo_degradation_BaF3*t)
    dSTAT5A/dt = -k_phos*epo*(2*STAT5A**2 + STAT5A*STAT5B) + 0.45/1.4*(2*k_exp_homo*nA + k_exp_hetero*nAB)
    dSTAT5B/dt = -k_phos*epo*(2*STAT5B**2 + STAT5A*STAT5B) + 0.45/1.4*(2*k_exp_homo*nB + k_exp_hetero*nAB)
    dpApA/dt = k_phos*epo*STAT5A**2 - k_imp_homo*pApA
    dpApB/dt = k_phos*epo*STAT5A*STAT5B - k_imp_hetero*pApB
    dpBpB/dt = k_phos*epo*STAT5B**2 - k_imp_homo*pBpB
    dnA/dt = 1.4/0.45*k_imp_homo*pApA - k_exp_homo*nA
    dnAB/dt = 1.4/0.45*k_imp_hetero*pApB - k_exp_hetero*nAB
    dnB/dt = 1.4/0.45*k_imp_homo*pBpB - k_exp_homo*nB
    pA ~ (100*pApB + 200*pApA*0.107)/(pApB + STAT5A*0.107 + 2*pApA*0.107)
    pB ~ (100*pApB + 200*pBpB*0.893)/(pApB + STAT5B*0.893 + 2*pBpB*0.893)
    rA ~ (100*pApB + 0.107*(100*STAT5A + 200*pApA))/(2*pApB + 0.107*(STAT5A + 2*pApA) + 0.893*(STAT5B + 2*pBpB))
    """,
    {"pA": "sd_pA", "pB": "sd_pB", "rA": "sd_rA"},
    _numbers("STAT5A=143.8668 STAT5B=63.7332 pApA=0 pApB=0 pBpB=0 nA=0 nAB=0 nB=0"),
    _numbers(
        "Epo_degradation_BaF3=0.026982514033029 k_exp_hetero=1.00067973851508E-05 k_exp_homo=0.006170228086381 "
        "k_imp_hetero=0.0163679184468 k_imp_homo=97749.3794024716 k_phos=15766.5070195731 sd_pA=3.85261197844677 "
        "sd_pB=6.59147818673419 sd_rA=3.15271275648527"
    ),
    -138.22199693517703,
)
CRAUSTE = Model(
    """
    dN/dt = -mu_N*N - delta_NE*N*P
    dE/dt = delta_NE*N*P + rho_E*E*P - mu_EE*E**2 - delta_EL*E
    dL/dt = delta_EL*E - mu_LL*L**2 - mu_LE*E*L - delta_LM*L
    dM/dt = delta_LM*L
    dP/dt = rho_P*P**2 - mu_PE*E*P - mu_PL*L*P - mu_P*P
    naive ~ N
    early ~ E
    late ~ L
    memory ~ M
    """,
    {"naive": "sd_naive", "early": "sd_early", "late": "sd_late", "memory": "sd_memory"},
    _numbers("N=8090 E=0 L=0 M=0 P=1"),
    _numbers(
        "delta_EL=0.517945937424841 delta_LM=0.022580636941607 delta_NE=0.011930787933602 mu_EE=3.91359465940441e-05 "
        "mu_LE=1.00000000000007e-10 mu_LL=8.11520130499257e-06 mu_N=0.739907304399124 mu_P=1.00000003522094e-05 "
        "mu_PE=1.41248724084794e-10 mu_PL=3.63403086241783e-05 rho_E=0.507415649004014 rho_P=0.126382292625502"
    ),
    -190.96521897435176,
)
ELOWITZ = Model(
    """
    def made(repressor): return 60*tps_repr + 60*(tps_active - tps_repr)*KM**n_Hill/(KM**n_Hill + repressor**n_Hill)
    dmX/dt = made(Z) - log(2)/tau_mRNA*mX
    dmY/dt = made(X) - log(2)/tau_mRNA*mY
    dmZ/dt = made(Y) - log(2)/tau_mRNA*mZ
    dmG/dt = -log(2)/tau_mRNA_GFP*mG
    dX/dt = eff/tau_mRNA*mX - log(2)/tau_prot*X
    dY/dt = eff/tau_mRNA*mY - log(2)/tau_prot*Y
    dZ/dt = eff/tau_mRNA*mZ - log(2)/tau_prot*Z
    dG/dt = made(X) + eff_GFP/tau_mRNA_GFP*mG - log(2)/tau_prot_GFP*G
    log10(fluorescence) ~ log10(background + scale*G)
    """,
    {"log10(fluorescence)": "sigma"},
    {},
    _numbers(
        "KM=1.00013184764193E-05 background=1.04454130394407E-05 eff=0.030159280362287 eff_GFP=0.001952121970966 "
        "G(0)=3.38716998236184E-05 mG(0)=131.43573778956 mX(0)=2.55665758135759 X(0)=30.8087735629583 "
        "mY(0)=999.999945990865 Y(0)=0.000818268062901 mZ(0)=19.3670294497273 Z(0)=994.381959318229 "
        "n_Hill=1.52254567553984 scale=0.52599663700947 sigma=0.071841413831614 tau_mRNA=12.6248245707722 "
        "tau_mRNA_GFP=0.000404064377463 tau_prot=5.35926527470062 tau_prot_GFP=71.9312640934976 "
        "tps_active=0.612278991244992 tps_repr=1.00000000000882E-05"
    ),
    63.20279991419332,
    "fluorescence",
)
BORGHANS = Model(
    """
    out = A**4*Vm3*Y**2*Z**4/((A**4 + Ka**4)*(Ky**2 + Y**2)*(Kz**4 + Z**4)) + Kf*Y
    back = Vm2*Z**2/(K2**2 + Z**2)
    dZ/dt = v0 + beta_par*v1 - back + out - K_par*Z
    dY/dt = back - out
    dA/dt = Vp*beta_par - A**2*Vd*Z**n_par/((Kd**n_par + Z**n_par)*(A**2 + Kp**2)) - epsilon_par*A
    log10(Ca) ~ log10(offset + scale*Z)
    """,
    {"log10(Ca)": "sigma"},
    {},
    _numbers(
        "K2=0.09994855801565 K_par=11.4120804594265 Ka=0.197593940310187 Kd=0.392497512107474 Kf=1.13794968361236 "
        "Kp=0.996567464196472 Ky=0.200364133028272 Kz=0.303353547057472 Vd=92.8739300577976 Vm2=7.45712445492225 "
        "Vm3=22.7025248825352 Vp=2.75685784345759 beta_par=1.12395230256787 epsilon_par=0.163232195306188 "
        "A(0)=0.99999999999996 Y(0)=0.999348084438687 Z(0)=0.087920524425504 n_par=4.1025144127497 "
        "offset=0.300763662073358 scale=0.658073142979721 sigma=0.104922918935031 v0=2.31778715779187 "
        "v1=1.00488755696677"
    ),
    None,
    "Ca",
)
PERELSON = Model(
    """
    dT/dt = 3.89999999976204E-07*11000.0000010581*Vin - delta*T
    dVin/dt = -c*Vin
    dVni/dt = 480.000000026982*delta*T - c*Vni
    log10(virus) ~ log10(Vin + Vni)
    """,
    {"log10(virus)": "sd"},
    _numbers("T=15061.32075 Vin=1860000 Vni=0"),
    _numbers("c=2.06000000014632 delta=0.529999999999037 sd=100000"),
    None,
    "virus",
)
BRUNO = Model(
    """
    of1 = experiment == 1; of2 = experiment == 2; of3 = experiment == 3
    of4 = experiment == 4; of5 = experiment == 5; of6 = experiment == 6
    v1 = kb1*(of2 + szea*of3)*bcar
    v2 = kb2*(of1 + of2 + szea*of3 + of4 + of5)*b10
    v3 = kc1*(of1 + szea*of3 + of4)*bcry
    v4 = kc2*(szea*of3 + of4)*bcry
    v5 = kc4*(of1 + of4 + of5 + szea*(of3 + of6))*ohb10
    v6 = k5*(of2 + of4 + szea*(of3 + of6))*zea
    dbcar/dt = -v1
    dbcry/dt = -v3 - v4
    db10/dt = v1 - v2 + v3
    dohb10/dt = v4 - v5 + v6
    dzea/dt = -v6
    at t = 0: {
        bcar = init_bcar1*of2 + init_bcar2*of3
        bcry = init_bcry*of4
        b10 = init_b10*of1
        ohb10 = init_ohb10*of5
        zea = init_zea*of6
    }
    o_bcar ~ bcar
    o_bcry ~ bcry
    o_b10 ~ b10
    o_ohb10 ~ ohb10
    o_zea ~ zea
    """,
    {f"o_{name}": f"sd_{name}" for name in ("bcar", "bcry", "b10", "ohb10", "zea")},
    _numbers("bcar=0 bcry=0 b10=0 ohb10=0 zea=0"),
    _numbers(
        "init_b10=4.22228991356159 init_bcar1=4.44029572277168 init_bcar2=3.30171980495163 init_bcry=5.21693865661801 "
        "init_ohb10=1.73724675926262 init_zea=2.95812301577671 k5=0.003086673219173 kb1=0.016628409992721 "
        "kb2=0.005843831819271 kc1=0.001678825242274 kc2=0.006975989070463 kc4=0.006082700899195 szea=0.516831766210391"
    ),
    46.688181449443945,
)
SNEYD = Model(
    """
    L1 = k_1/k1/(l_2/l2); L3 = k_2/k2/(l_4/l4); L5 = k_4/k4/(l_6/l6)
    v0 = (k_2 + l_4*Ca)/(1 + Ca/L5)*O
    v1 = (k2*L3 + l4*Ca)/(L3 + Ca*(1 + L3/L1))*IP3*R
    v2 = (k1*L1 + l2)*Ca/(L1 + Ca*(1 + L1/L3))*R
    v3 = (k_1 + l_2)*I1
    v4 = (k4*L5 + l6)*Ca/(L5 + Ca)*O
    v5 = L1*(k_4 + l_6)/(L1 + Ca)*A
    v6 = (k1*L1 + l2)*Ca/(L1 + Ca)*A
    v7 = (k_1 + l_2)*I2
    v8 = k3*L5/(L5 + Ca)*O
    v9 = k_3*S
    dO/dt = -v0 + v1 - v4 + v5 - v8 + v9
    dR/dt = v0 - v1 - v2 + v3
    dI1/dt = v2 - v3
    dS/dt = v8 - v9
    dA/dt = v4 - v5 - v6 + v7
    dI2/dt = v6 - v7
    open_probability ~ (0.9*A + 0.1*O)**4
    """,
    {"open_probability": "sigma"},
    _numbers("O=0 R=1 I1=0 S=0 A=0 I2=0"),
    _numbers(
        "k1=3.72721095730996 k2=99999.9999999908 k3=15.7453406923706 k4=99938.2576283144 k_1=0.923924728172173 "
        "k_2=0.001002494725324 k_3=1.91463005974811 k_4=3079.20732487903 l2=0.940077018858089 l4=2.85837713545253 "
        "l6=99999.9999999908 l_2=0.347664459128102 l_4=0.01388020361713 l_6=0.001 sigma=0.022665679544462"
    ),
    319.79177818768756,
)
RAHMAN = Model(
    """
    infected = I1 + I2 + I3 + T1 + T2 + T3
    people = S + infected
    force = (rel_normal*rate*I1 + rate*I2 + rel_weak*rate*I3 + 0.04*rate*(T1 + T2 + T3))/people*exp(-behaviour*infected)
    dS/dt = 1032672 - force*S - 0.0288*S
    dI1/dt = force*S - worsen1*I1 - 0.0888*I1
    dI2/dt = worsen1*I1 - worsen2*I2 - 0.1368*I2
    dI3/dt = worsen2*I2 - treat*I3 - 0.3108*I3
    dT1/dt = improve2*T2 - 0.0408*T1
    dT2/dt = improve3*T3 - improve2*T2 - 0.0528*T2
    dT3/dt = treat*I3 - improve3*T3 - 0.1752*T3
    prevalence ~ 100*(1 - S/people)
    """,
    {"prevalence": 1.0},
    _numbers("S=17940000 I1=16300 I2=9000 I3=11000 T1=0 T2=0 T3=0"),
    _numbers(
        "rel_normal=427.47 rate=0.0029273 rel_weak=992.96 treat=0.0001 worsen1=0.66545 worsen2=0.0079757 "
        "improve2=0.13636 improve3=0.77557 behaviour=1.3380E-07"
    ),
    # That of the published simulation.
    -21.153489974465547,
)
OKUONGHAE = Model(
    """
    lam = rate*(alpha*A + I)/(S + X + A + I + R)
    dS/dt = -lam*S
    dX/dt = lam*S - sigma*X
    dA/dt = nu*sigma*X - theta*A - gamma_a*A
    dI/dt = (1 - nu)*sigma*X - psi*I - gamma_0*I - d_0*I
    dD/dt = psi*I + theta*A - gamma_i*D - d_D*D
    dR/dt = gamma_a*A + gamma_0*I + gamma_i*D
    dC/dt = psi*I + theta*A
    total ~ C
    active ~ D
    """,
    {"total": "sd_total", "active": "sd_active"},
    _numbers("S=14367982 D=1 R=0 C=1"),
    _numbers(
        "alpha=0.5 d_0=0.015 d_D=0.015 gamma_0=0.13978 gamma_a=0.13978 gamma_i=0.06666667 nu=0.5 psi=0.0135 "
        "sigma=0.1923077 theta=2e-12 A(0)=188 I(0)=212 X(0)=441 rate=0.4236 sd_total=1 sd_active=1"
    ),
    None,
)


def _zheng() -> Model:
    """Methylations of a histone, in numbers of two positions: rates `kAB_CD`, and a dilution before t = 0 that brings the
    state to which the cells have come."""
    values = _numbers(
        "inflowp=0.030481175027538 k00_01=997.285248531849 k00_10=0.234022855508701 k01_00=479.841669671183 "
        "k01_02=1.91338331591714 k01_11=2.65149503233364 k02_01=0.069963622479452 k02_03=1.00000043186406e-05 "
        "k02_12=1.00000120988758e-05 k03_02=1.00000000000005e-05 k03_13=988.122424319195 k10_00=1.00000000016979e-05 "
        "k10_11=1.00000002387735e-05 k10_20=0.269191681409128 k11_01=1.00000000001725e-05 k11_10=1.0002960370593e-05 "
        "k11_12=11.8517895122981 k11_21=1.00000003508203e-05 k12_02=1.00000000000196e-05 k12_11=0.1069993783787 "
        "k12_13=0.035629896010771 k12_22=0.010616590659942 k13_03=450.435886070063 k13_12=0.195255677936969 "
        "k13_23=1.00000000438336e-05 k20_10=1.00000000000005e-05 k20_21=1.00000043202964e-05 k20_30=0.150740144379533 "
        "k21_11=1.00035442572023e-05 k21_20=0.035397749723473 k21_22=999.279628838538 k21_31=1.00000000261933e-05 "
        "k22_12=0.053379637739473 k22_21=426.143170255777 k22_23=0.151741400816166 k22_32=1.00000000000005e-05 "
        "k23_13=0.791201186423607 k23_22=1.00000757856028e-05 k30_20=1.00000137963734e-05 k30_31=0.281302432113616 "
        "k31_21=1.00087528532117e-05 k31_30=1.00002400994625e-05 k31_32=0.353631402713609 k32_22=0.632981853600849 "
        "k32_31=1.00000000000005e-05 sigma=0.002339466852399"
    )
    marks = [f"{a}{b}" for a, b in itertools.product(range(4), range(4)) if (a, b) != (3, 3)]
    rates = [name for name in values if name.startswith("k")]
    lines = ["dilution = where(t < 0, inflowp, 0)", f"whole = {' + '.join(f'x{m}' for m in marks)}"]
    for m in marks:
        gains = [f"{k}*x{k[1:3]}" for k in rates if k[4:] == m]
        losses = [f"{k}*x{m}" for k in rates if k[1:3] == m]
        inflow = "dilution" if m == "00" else "0"
        lines.append(f"dx{m}/dt = {inflow} - dilution*x{m} + {' + '.join(gains)} - ({' + '.join(losses)})")
    lines += [f"y{m} ~ x{m}/whole" for m in marks]
    starts = {f"x{m}": float(m == "00") for m in marks}
    return Model("\n".join(lines), {f"y{m}": "sigma" for m in marks}, starts, values, 278.33353271001477)


MODELS = {
    "boehm": BOEHM,
    "crauste": CRAUSTE,
    "elowitz": ELOWITZ,
    "borghans": BORGHANS,
    "perelson": PERELSON,
    "bruno": BRUNO,
    "sneyd": SNEYD,
    "rahman": RAHMAN,
    "okuonghae": OKUONGHAE,
    "zheng": _zheng(),
}

# The gradients that `by_scipy` gives where all parameters are 5 % smaller, which take it minutes.
GRADIENTS = {
    "boehm": _numbers(
        "Epo_degradation_BaF3=45.55579402790718 k_exp_hetero=-0.01683507643792628 "
        "k_exp_homo=3.050884865785665 k_imp_hetero=61.16196592905048 k_imp_homo=2.123471235697281e-05 "
        "k_phos=-10.58931254339164 sd_pA=8.989475856278101 sd_pB=-0.38628849100093493 "
        "sd_rA=1.6627969280082842"
    ),
    "sneyd": _numbers(
        "k_2=4.015045889228997 k3=28.490314969674976 l_4=-4.01492019690017 k2=0.00019145601711939984 "
        "sigma=20.2805601528028"
    ),
    "elowitz": _numbers(
        "KM=-80.13772216740897 n_Hill=481.9913348183129 tau_prot=439.84121549762045 X(0)=12.272162886185036"
    ),
    "borghans": _numbers(
        "K2=111.43371337611843 K_par=-122.66953812305111 Ka=9.48376283719112 Kd=-2.4523857330852525 "
        "Kf=89.90529625198411 Kp=-10.17009382161323 Ky=-0.9460162769326069 Kz=-230.74669992514356 "
        "Vd=5.632023246753321 Vm2=-197.14525616691876 Vm3=59.94385862798434 Vp=-4.825461851611049 "
        "beta_par=69.97306474597752 epsilon_par=0.07385437892474893 A(0)=-0.12023041069653703 "
        "Y(0)=41.86882094758541 Z(0)=2.771804865473456 n_par=0.918439479189644 offset=29.173601470251345 "
        "scale=21.10265933431989 sigma=63.54429806375064 v0=161.57629302159367 v1=74.79852659768001"
    ),
}


class Likelihood(NamedTuple):
    """A log-likelihood, and its gradient by the logarithms of the parameters, in their order."""

    value: float
    gradient: Any


def request_of(name: str) -> FitRequest:
    """The request to fit a model, as the command makes it."""
    model = MODELS[name]
    start = {**model.starts, **model.parameters}
    return FitRequest(
        model.text, None, table_of(DATA / f"{name}.csv"), Parameters(start), Assumptions(absolute=True), model.sigma
    )


def by_gradcli(name: str, factor: float = 1.0) -> Likelihood:
    """The log-likelihood at the published parameters times a factor."""
    model = MODELS[name]
    problem = prepare(request_of(name), SearchOptions()).fitting.question.problem
    point = factor * np.array([model.parameters[p] for p in problem.parameters])
    value, first = problem.rows(point)
    if problem.known.is_density:
        total, gradient = value.sum(), first.sum(axis=0)
    else:
        off = (problem.response - value) / problem.sigma
        total = -(off**2 / 2 + np.log(problem.sigma) + math.log(2 * math.pi) / 2).sum()
        gradient = (off / problem.sigma) @ first
    places = [problem.parameters.index(p) for p in model.parameters]
    return Likelihood(float(total + _jacobian(name)), (gradient * point)[places])


def _jacobian(name: str) -> float:
    column = MODELS[name].logarithmic
    if column is None:
        return 0.0
    data = table_of(DATA / f"{name}.csv").taken([column]).columns[column]
    return -float(np.log(np.log(10) * data).sum())


# --- SciPy


class _Python:
    """A model as functions of Python, made from its text."""

    def __init__(self, name: str) -> None:
        self.model = MODELS[name]
        before, slopes, self.jumps = [], {}, []
        self.responses: dict[str, Any] = {}
        text = re.sub(r"at t = 0: \{(.*?)\n    \}", self._jump, self.model.text, flags=re.DOTALL)
        for line in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
            slope = re.fullmatch(r"d(\w+)/dt = (.*)", line)
            if slope is not None:
                slopes[slope[1]] = slope[2]
            elif "~" in line:
                response, _, value = line.partition("~")
                self.responses[response.strip()] = compile(value.strip(), name, "eval")
            else:
                before.append(line)
        self.states = [*slopes]
        self.before = compile("\n".join(before), name, "exec")
        self.slopes = compile(f"[{', '.join(slopes.values())}]", name, "eval")
        columns = {c: table_of(DATA / f"{name}.csv") for c in ("data",)}["data"]
        names = [*columns.columns]
        self.data = columns.taken(names, (), names[1 if "experiment" not in names else 2 :]).columns

    def _jump(self, found: Any) -> str:
        self.jumps = [line.strip() for line in found[1].strip().splitlines()]
        return ""

    def _known(self, values: Mapping[str, complex], t: float, y: Sequence[complex]) -> dict[str, Any]:
        known = {**_FUNCTIONS, **values, **dict(zip(self.states, y)), "t": t}
        exec(self.before, known)
        return known

    def value(self, values: Mapping[str, complex]) -> complex:
        covariates = [c for c in ("Ca", "IP3", "experiment") if c in self.data and not self.model.logarithmic]
        time = self.data["t"]
        shared = np.stack([np.zeros(len(time)), *(self.data[c] for c in covariates)], axis=1)
        total: complex = 0.0
        for row in np.unique(shared, axis=0):
            own = np.flatnonzero((shared == row).all(axis=1))
            total += self._along({**values, **dict(zip(covariates, row[1:]))}, own)
        return total

    def _along(self, values: Mapping[str, complex], rows: Any) -> complex:
        times = np.unique(self.data["t"][rows])
        y = np.array([values.get(s, values.get(f"{s}(0)", 0.0)) for s in self.states], complex)
        if self.jumps:
            known = self._known(values, 0.0, y)
            exec("\n".join(self.jumps), known)
            y = np.array([known[s] for s in self.states], complex)
        found = [y]
        for a, b in itertools.pairwise(times):
            # A time just before the end keeps a switch there out of the step.
            solved = solve_ivp(
                lambda t, parts, b=b: _parts(
                    eval(self.slopes, self._known(values, min(t, np.nextafter(b, -np.inf)), _of_parts(parts)))
                ),
                (a, b),
                _parts(found[-1]),
                method="Radau" if len(y) > 6 or "k_4" in values else "DOP853",
                rtol=_RTOL,
                atol=1e-13 * max(1e-3, float(np.abs(found[-1]).max())),
            )
            found.append(_of_parts(solved.y[:, -1]))
        total: complex = 0.0
        for t, y in zip(times, found):
            for row in rows[self.data["t"][rows] == t]:
                known = {**self._known(values, t, y)}
                seen = {c: column[row] for c, column in self.data.items()}
                for response, value in self.responses.items():
                    measured = eval(response, {**_FUNCTIONS, **seen})
                    if not np.isnan(measured):
                        deviation = self.model.sigma[response]
                        deviation = eval(deviation, {**known, **seen}) if isinstance(deviation, str) else deviation
                        off = (measured - eval(value, known)) / deviation
                        total -= off**2 / 2 + cmath.log(deviation) + math.log(2 * math.pi) / 2
        return total


def _parts(states: Any) -> Any:
    """The real parts of states, and their imaginary ones in units of that of the parameter: both have tolerances."""
    states = np.asarray(states, complex)
    return np.concatenate([states.real, states.imag / _IMAGINARY])


def _of_parts(parts: Any) -> Any:
    real, imaginary = np.split(parts, 2)
    return real + 1j * _IMAGINARY * imaginary


_FUNCTIONS = {"exp": cmath.exp, "log": cmath.log, "log10": cmath.log10, "where": lambda c, a, b: a if c else b}
_RTOL = 1e-11
# The imaginary part that the logarithm of a parameter has.
_IMAGINARY = 1e-20
# The factor of the parameters at which gradients are compared.
_BESIDE = 0.95


def by_scipy(name: str, factor: float = 1.0, by: Sequence[str] | None = None) -> Likelihood:
    """As `by_gradcli`, from the text as Python and SciPy's solutions; the gradient is `by` all parameters, or by some."""
    model = _Python(name)
    own = MODELS[name]

    values: dict[str, complex] = {**own.starts, **{p: factor * value for p, value in own.parameters.items()}}
    slopes = [
        model.value({**values, p: values[p] * (1 + 1j * _IMAGINARY)}).imag / _IMAGINARY
        for p in (own.parameters if by is None else by)
    ]
    return Likelihood(model.value(values).real + _jacobian(name), np.array(slopes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the models, all of them by default")
    parser.add_argument("--no-scipy", action="store_true", help="leave out the gradients by SciPy")
    options = parser.parse_args()
    print("model      parameters  log-likelihood       published           SciPy               gradient  seconds")
    for name in options.names or MODELS:
        begin = time.perf_counter()
        own = by_gradcli(name)
        lapse = time.perf_counter() - begin
        said = MODELS[name].published
        shown = "-" if said is None else f"{said:.12g}"
        other, apart = "-", "-"
        if not options.no_scipy:
            other = f"{by_scipy(name, by=()).value:.12g}"
            found, expected = by_gradcli(name, _BESIDE).gradient, by_scipy(name, _BESIDE).gradient
            apart = f"{np.abs(found - expected).max() / np.abs(expected).max():.1e}"
        count = len(MODELS[name].parameters)
        print(f"{name:10} {count:10}  {own.value:<19.12g}  {shown:18}  {other:18}  {apart:8}  {lapse:7.2f}", flush=True)


if __name__ == "__main__":
    main()
