"""CUDA without a device: the text of kernels compiled for the processor, whose threads run one block after another."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.arrays.standard import StandardArrays
from gradcli.executors import cuda_kernels

COMPILER = shutil.which("g++")
# What CUDA has and C++ has not. The special functions are slow, and exact.
_SHIM = r"""
#include <cmath>
#include <pthread.h>
#include <string.h>
#define __device__
#define __global__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(threads)
using namespace std;

struct Place { unsigned x; };
static thread_local Place threadIdx, blockIdx;
static Place gridDim;
static pthread_barrier_t all_threads;
static bool holding[1024];

static void __syncthreads() { pthread_barrier_wait(&all_threads); }
static bool __syncthreads_and(bool holds)
{
    bool all = true;
    holding[threadIdx.x] = holds;
    __syncthreads();
    for (int k = 0; k < THREADS; ++k) all = all && holding[k];
    __syncthreads();
    return all;
}
static double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
static void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }

static long double root_of_erfc(long double y)
{
    long double low = 0, high = 40;
    for (int k = 0; k < 300; ++k) {
        const long double middle = (low + high) / 2;
        (erfcl(middle) > y ? low : high) = middle;
    }
    return low;
}
static long double root_of_erf(long double y)
{
    long double low = 0, high = 2;
    for (int k = 0; k < 300; ++k) {
        const long double middle = (low + high) / 2;
        (erfl(middle) < y ? low : high) = middle;
    }
    return low;
}
static double erfinv(double x)
{
    if (!(fabs(x) <= 1)) return NAN;
    if (fabs(x) == 1) return x * INFINITY;
    return copysign(fabs(x) < 0.5 ? root_of_erf(fabs(x)) : root_of_erfc(1 - fabs(x)), x);
}
static double normcdfinv(double p)
{
    if (!(p >= 0 && p <= 1)) return NAN;
    if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
    const long double root = sqrtl(2) * root_of_erfc(2 * (p < 0.5 ? p : 1 - p));
    return p < 0.5 ? -root : root;
}
static double bessel_i(double x, int n)
{
    if (fabs(x) > 720) return fabs(x) == fabs(x) ? INFINITY : x;
    long double term = n ? 0.5L * fabsl(x) : 1, total = term;
    for (int k = 1; k < 2000; ++k) total += term *= 0.25L * x * x / k / (k + n);
    return total;
}
static double erfcx(double x)
{
    const long double y = x;
    if (y < 50) return expl(y * y) * erfcl(y);
    const long double z = 1 / (2 * y * y);
    return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z)))) / (y * 1.772453850905516027298167483341145183L);
}
static double cyl_bessel_i0(double x) { return bessel_i(x, 0); }
static double cyl_bessel_i1(double x) { return copysign(bessel_i(x, 1), x); }
static float erfcx(float x) { return erfcx((double)x); }
static float erfinv(float x) { return erfinv((double)x); }
static float normcdfinv(float x) { return normcdfinv((double)x); }
static float cyl_bessel_i0(float x) { return cyl_bessel_i0((double)x); }
static float cyl_bessel_i1(float x) { return cyl_bessel_i1((double)x); }

template <class... Types> struct Launch {
    void (*kernel)(Types...);
    void** given;
    unsigned thread;
    template <int... numbers> struct Numbers {};
    template <int count, int... numbers> struct Until : Until<count - 1, count - 1, numbers...> {};
    template <int... numbers> struct Until<0, numbers...> { using type = Numbers<numbers...>; };

    template <int... numbers> void call(Numbers<numbers...>) { kernel((Types)given[numbers]...); }
    static void* run(void* self)
    {
        Launch launch = *(Launch*)self;
        threadIdx.x = launch.thread;
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
            launch.call(typename Until<sizeof...(Types)>::type());
            __syncthreads();
        }
        return nullptr;
    }
};
template <class... Types> static void launch(void (*kernel)(Types...), int blocks, void** given)
{
    pthread_t running[THREADS];
    Launch<Types...> launches[THREADS];
    pthread_barrier_init(&all_threads, nullptr, THREADS);
    gridDim.x = blocks;
    for (unsigned k = 0; k < THREADS; ++k) {
        launches[k] = {kernel, given, k};
        pthread_create(&running[k], nullptr, Launch<Types...>::run, &launches[k]);
    }
    for (pthread_t one : running) pthread_join(one, nullptr);
    pthread_barrier_destroy(&all_threads);
}
"""
_KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(THREADS\) (\w+)\(')


class Compiler:
    """Compiles all texts that it was given since it did so last, when one of them is to run."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.count = 0
        self.functions: dict[str, Any] = {}
        self.folder = tempfile.TemporaryDirectory()
        self.only_collects = False

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Within the block kernels do nothing: what they would be is compiled together, once one of them is to run."""
        self.only_collects = True
        try:
            yield
        finally:
            self.only_collects = False

    def add(self, code: str) -> str:
        """Take the text of a module; the prefix that its kernels are called with."""
        prefix = f"m{self.count}_"
        self.count += 1
        body = code.removeprefix(cuda_kernels.prelude())
        body, found = _KERNEL.subn(rf"static void {prefix}\1(", body)
        assert body != code
        assert found
        wrappers = [
            f'extern "C" void run_{name}(int blocks, void** given) {{ launch({name}, blocks, given); }}'
            for name in re.findall(rf"static void ({prefix}\w+)\(", body)
        ]
        self.texts.append("\n".join([body, *wrappers]))
        return prefix

    def function(self, name: str) -> Any:
        if name not in self.functions:
            self._compile()
        return self.functions[name]

    def _compile(self) -> None:
        source = Path(self.folder.name) / f"kernels{self.count}.cpp"
        text = "\n".join([f"#define THREADS {cuda_kernels.THREADS}", _SHIM, cuda_kernels.prelude(), *self.texts])
        source.write_text(text)
        built = source.with_suffix(".so")
        options = ["-std=c++17", "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread"]
        subprocess.run([str(COMPILER), *options, "-o", built, source], check=True)
        library = ctypes.CDLL(str(built))
        for name in re.findall(r'extern "C" void run_(\w+)\(', text):
            self.functions[name] = getattr(library, f"run_{name}")
        self.texts.clear()


class Module:
    """What `cupy.RawModule` is, for the processor."""

    compiler = Compiler()

    def __init__(self, *, code: str, options: Sequence[str]) -> None:
        assert "--fmad=false" in options
        self.prefix = self.compiler.add(code)

    def get_function(self, name: str) -> Callable[..., None]:
        def run(grid: tuple[int], block: tuple[int], given: Sequence[np.ndarray]) -> None:
            assert block == (cuda_kernels.THREADS,)
            if self.compiler.only_collects:
                return
            pointers = (ctypes.c_void_p * len(given))(*(a.ctypes.data for a in given))
            self.compiler.function(self.prefix + name)(grid[0], pointers)

        return run


class _Library:
    RawModule = Module

    def __getattr__(self, name: str) -> Any:
        return getattr(arrays.numpy_namespace(), name)


class EmulatedArrays(StandardArrays):
    """Arrays of NumPy as those of a device."""

    name = "numpy"

    def __init__(self) -> None:
        super().__init__(_Library(), "processor")

    def owns(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def asarray(self, value: Any, dtype: str | None = None) -> np.ndarray:
        return np.array(value, dtype)

    def from_numpy(self, array: Any) -> np.ndarray:
        return np.array(array)

    def astype(self, array: Any, dtype: str) -> np.ndarray:
        return np.asarray(array).astype(dtype)

    def copy(self, array: Any) -> np.ndarray:
        return np.array(array)

    def quiet(self) -> AbstractContextManager[Any]:
        return np.errstate(all="ignore")
