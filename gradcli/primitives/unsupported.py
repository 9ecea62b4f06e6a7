"""Reasons why well-known functions of NumPy, SciPy and PyTorch are not supported, by name."""

_REASONS = {
    "it is fft of the windows of a signal: fft(unfold(x, 0, size, hop)*window)": "stft",
    "fft, ifft and the transforms of real numbers are there": "istft dct idct dst idst fht ifht",
    "a Schur form is not unique: eigvals, sqrtm and logm are there": "schur",
    "complex(a, b) is there, in the precision of its parts": "complex64 complex128 csingle cdouble",
    "distributions are called by their library, as in scipy.stats.norm.logpdf(x, loc=0, scale=1)": (
        "norm_logpdf logpdf logcdf logsf logpmf pmf log_prob icdf"
    ),
    "distributions of several numbers are not there": "multivariate_normal dirichlet",
    "it is complex: sph_legendre_p(n, m, theta)*cos(m*phi) is its real part, Znm(n, m, theta, phi) the real harmonic": (
        "sph_harm_y sph_harm Ynm"
    ),
    "NumPy has no such numbers; float16 and float32 are there": "bfloat16 float8_e4m3fn float8_e5m2",
    "differential equations and integrals are not solved here": "integrate odeint solve_ivp quad dblquad",
}
REASONS = {name: reason for reason, names in _REASONS.items() for name in names.split()}
