"""Functions that make tensors take PyTorch's arguments, and give its numbers, dtypes and random numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.usefixtures("float64")


def both(code):
    """What an expression gives in PyTorch and here."""
    return eval(code, {"torch": torch}), eval(code, {"torch": gradcli})


def assert_alike(found, expected):
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, gradcli.Tensor)
        assert str(expected.dtype) == f"torch.{found.dtype}"
        assert found.requires_grad == expected.requires_grad
        assert found.is_leaf == expected.is_leaf
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), 1e-6, 1e-12)
        assert found.shape == tuple(expected.shape)
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_alike(one, other)
    else:
        assert found == expected
        assert type(found) is type(expected)


FACTORIES = [
    "torch.zeros(2, 3)", "torch.zeros((2, 3))", "torch.zeros([2])", "torch.zeros(())", "torch.zeros(0, 2)",
    "torch.zeros(size=(2, 2))", "torch.zeros(2, dtype=torch.long)", "torch.zeros(2, dtype=torch.bool)",
    "torch.zeros(torch.ones(2, 3).shape)", "torch.zeros(torch.ones(2, 3).size())",
    "torch.ones(2, 2, requires_grad=True)", "torch.ones(3, dtype=torch.float)", "torch.ones((), device='cpu')",
    "torch.ones(2, dtype=torch.float32, device=torch.device('cpu'), requires_grad=True)", "torch.ones(2, dtype=float)",
    "torch.full((2,), 3)", "torch.full((2, 2), 0.5)", "torch.full((2,), True)", "torch.full((2,), 3, dtype=torch.double)",
    "torch.full((), 2.0, requires_grad=True)", "torch.full(size=(2,), fill_value=1.5)",
    "torch.eye(2)", "torch.eye(2, 3)", "torch.eye(2, dtype=torch.int)", "torch.eye(3)[1]",
    "torch.arange(4)", "torch.arange(1, 4)", "torch.arange(1, 7, 2)", "torch.arange(5, 0, -2)", "torch.arange(4.0)",
    "torch.arange(0, 1, 0.1)", "torch.arange(1, 2, 0.25)", "torch.arange(3, dtype=torch.float32)", "torch.arange(end=3)",
    "torch.arange(0.0, 2.0, requires_grad=True)", "torch.arange(3, 3)", "torch.arange(start=1, end=3)",
    "torch.linspace(-1, 1, 5)", "torch.linspace(0, 1, steps=4)", "torch.linspace(-torch.pi, torch.pi, 7)",
    "torch.linspace(-1, 1, 5, device=torch.device('cpu'), dtype=torch.float)", "torch.linspace(2.0, 3.0, 1)",
    "torch.linspace(0, 1, 3, requires_grad=True)", "torch.linspace(start=0, end=10, steps=6)",
    "torch.logspace(0, 2, 3)", "torch.logspace(-1, 1, steps=4, base=2)", "torch.logspace(0, 1, 2, dtype=torch.float)",
    "torch.zeros_like(torch.tensor([[1.0, 2.0]]))", "torch.zeros_like(torch.tensor([1, 2]))",
    "torch.zeros_like(torch.tensor([True]))", "torch.ones_like(torch.tensor([1, 2]), dtype=torch.float)",
    "torch.ones_like(torch.ones(2, requires_grad=True))", "torch.ones_like(torch.ones(2), requires_grad=True)",
    "torch.full_like(torch.ones(2, 2), 7)", "torch.full_like(torch.tensor([1, 2]), 7)",
    "torch.zeros_like(torch.ones(2, dtype=torch.float32))", "torch.empty(2, 3).shape", "torch.empty_like(torch.ones(2)).dtype is None",
    "torch.ones(2, dtype=torch.float).new_zeros(2, 2)", "torch.ones(2).new_ones((2,), dtype=torch.long)",
    "torch.ones(2).new_full((2,), 3.5)", "torch.ones(2).new_tensor([1, 2])", "torch.ones(2).new_zeros(size=(1, 2))",
    "torch.tril_indices(3, 3)", "torch.tril_indices(3, 4, -1)", "torch.triu_indices(3, 3, offset=1)", "torch.triu_indices(2, 4)",
    "torch.Tensor([1, 2])", "torch.Tensor([[1, 2.5]])", "torch.Tensor(2, 3).shape", "torch.FloatTensor([1, 2])",
    "torch.DoubleTensor([1, 2])", "torch.LongTensor([1, 2])", "torch.BoolTensor([True, False])", "torch.IntTensor([3])",
    "torch.tensor([1, 2], dtype=torch.int64)", "torch.tensor([1.5, 2.5], dtype=torch.long)", "torch.tensor([0, 2], dtype=torch.bool)",
    "torch.tensor(3.5, dtype=torch.float16)", "torch.tensor([1.0, 2.0], dtype=torch.half)", "torch.tensor([1, 2], dtype=torch.uint8)",
    "torch.tensor([torch.tensor(1.0), torch.tensor(2.5)])", "torch.tensor([[torch.tensor(1), 2], [3, 4]])",
    "torch.tensor([1, 2]).type(torch.Tensor)", "torch.as_tensor([1.0, 2.0])", "torch.as_tensor(3)", "torch.as_tensor([1, 2], dtype=torch.float)",
    "torch.as_tensor(torch.ones(2, requires_grad=True))", "torch.autograd.Variable(torch.ones(2), requires_grad=True)",
]  # fmt: skip


@pytest.mark.cases(80)
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("code", FACTORIES)
def test_a_tensor_that_is_made(code):
    expected, found = both(code)
    assert_alike(found, expected)


@pytest.mark.parametrize(
    "code",
    [
        "torch.rand(3)", "torch.rand(2, 10)", "torch.rand((3,), dtype=torch.float32)", "torch.rand(())", "torch.rand(0)",
        "torch.randn(3)", "torch.randn(2, 2, 4)", "torch.randn(20)", "torch.randn(5, 7)", "torch.randn((), requires_grad=True)",
        "torch.randn(37, dtype=torch.float32)", "torch.randn(2, dtype=torch.float)", "torch.randint(10, (3, 2))",
        "torch.randint(-5, 5, (4,))", "torch.randint(low=0, high=2, size=(5,))", "torch.randint(0, 2**40, (3,))",
        "torch.randint(3, (2,), dtype=torch.float)", "torch.randperm(6)", "torch.randperm(1)", "torch.randperm(0)",
        "torch.normal(0.0, 2.0, size=(3,))", "torch.normal(torch.arange(3.0), torch.ones(3))", "torch.normal(1.0, torch.ones(2, 2))",
        "torch.rand_like(torch.ones(2, 2))", "torch.randn_like(torch.ones(4, dtype=torch.float32))",
        "torch.randint_like(torch.ones(3), 10)", "torch.empty(3).uniform_(-1, 1)", "torch.empty(20).normal_(1, 0.5)",
        "torch.empty(3).exponential_(2.0)", "torch.zeros(4).random_(10)", "torch.bernoulli(torch.full((20,), 0.3))",
        "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)", "torch.multinomial(torch.tensor([[1.0, 2.0], [3.0, 1.0]]), 1)",
        "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 8, replacement=True)", "torch.tensor([0.1, 0.9]).multinomial(1)",
        "torch.full((3,), 0.5).bernoulli()",
        "torch.rand(2, generator=torch.Generator().manual_seed(3))", "torch.randn(3, generator=torch.Generator())",
        "torch.initial_seed()", "torch.randn(3, dtype=torch.cdouble)", "torch.rand(2, 2, dtype=torch.cfloat)",
        "torch.randn(40, dtype=torch.complex64)[30:]",
        "(torch.randn(3), torch.rand(2), torch.randn(2), torch.randn(17), torch.randperm(4), torch.randn(1))",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [0, 42, 2**40 + 7, -1])
def test_random_numbers_of_a_seed(code, seed):
    torch.manual_seed(seed)
    gradcli.manual_seed(seed)
    for _ in range(2):
        expected, found = both(code)
        assert_alike(found, expected)


def test_a_generator_has_its_own_numbers():
    for library in (torch, gradcli):
        library.manual_seed(1)
        own = library.Generator()
        assert own.initial_seed() == 67280421310721
        assert own.manual_seed(5) is own
        first = library.rand(2, generator=own).tolist()
        shared = library.rand(2).tolist()
        state, global_state = own.get_state(), library.get_rng_state()
        again = library.randn(3, generator=own).tolist(), library.randn(3).tolist()
        own.set_state(state)
        library.set_rng_state(global_state)
        assert (library.randn(3, generator=own).tolist(), library.randn(3).tolist()) == again
        assert first != shared
        assert own.seed() == own.initial_seed()


def test_without_a_seed_numbers_are_others_each_time():
    assert gradcli.seed() != gradcli.seed()
    assert gradcli.rand(2).tolist() != gradcli.rand(2).tolist()


def test_the_numbers_of_a_seed_of_the_language_stay():
    assert gradcli.randn(3, seed=0).tolist() == np.random.default_rng(0).standard_normal(3).tolist()
    assert gradcli.rand(2, 2, seed=1).tolist() == np.random.default_rng(1).random((2, 2)).tolist()


def test_rows_of_vmap_draw_as_they_are_told():
    rows = torch.zeros(3, 2), gradcli.zeros(3, 2)
    for library, x in zip((torch, gradcli), rows):
        with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
            library.vmap(lambda row: row + library.randn(2))(x)  # noqa: B023
        library.manual_seed(0)
        same = library.vmap(lambda row: row + library.randn(2), randomness="same")(x)  # noqa: B023
        assert same.tolist() == [same[0].tolist()] * 3
        different = library.vmap(lambda row: row + library.randn(2), randomness="different")(x)  # noqa: B023
        assert len({*map(tuple, different.tolist())}) == 3
    with pytest.raises(gradcli.errors.CallError, match="Only allowed values for randomness"):
        gradcli.vmap(lambda x: x, randomness="other")


def test_a_compiled_function_draws_each_time():
    noisy = gradcli.compile(lambda x: x + gradcli.rand(()))
    assert len({noisy(1.0) for _ in range(6)}) == 6


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("torch.randint(3, 3, (2,))", "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"),
        ("torch.multinomial(torch.ones(2), 3)", "cannot sample n_sample > prob_dist.size"),
        ("torch.normal(0.0, -1.0, (2,))", "normal expects std >= 0.0, but found std -1"),
    ],
)
def test_the_errors_of_random_numbers(code, words):
    for library in (torch, gradcli):
        with pytest.raises(RuntimeError, match=words):
            eval(code, {"torch": library})


SURFACE = [
    "x.size()[0]", "x.size(1)", "x.size(-1)", "x.size().numel()", "x.dim()", "x.numel()", "torch.numel(x)", "x.is_floating_point()",
    "torch.is_floating_point(x)", "torch.is_tensor(x)", "x.double()", "x.float()", "x.half()", "x.long()", "x.int()", "x.short()",
    "x.bool()", "x.type()", "x.long().type()", "x.type(torch.LongTensor)", "x.type(torch.float)", "x.to(torch.float)",
    "x.to('cpu')", "x.to(torch.device('cpu'), torch.double)", "x.to(torch.ones(1, dtype=torch.int))", "x.cpu()", "x.type_as(x.long())",
    "x[0, 0].item()", "(x > 1)[0, 0].item()", "x.long()[0, 0].item()", "x.tolist()", "x.device.type", "x.unsqueeze(0)",
    "x.long().unsqueeze(1)", "(x > 1).unsqueeze(-1)", 
    "x > 1", "(x > 1).sum()", "(x > 1).sum().item()", "(x > 1).sum(dim=0)", "(x > 1).float().mean().item()", "(x > 1).long().sum()",
    "(x > 1).any()", "(x > 1).all(dim=0)", "~(x > 1)", "(x > 1) & (x < 3)", "(x > 3) | (x < 1)", "(x > 1) ^ (x > 2)", "x[x > 1]",
    "x[torch.tensor([1, 0])]", "x[torch.arange(2), torch.tensor([1, 0])]", "x.argmax(1)", "x.argmax()", "x.argmax(dim=0, keepdim=True)",
    "x.argmin(1)", "(x.argmax(1) == torch.tensor([1, 1])).sum().item()", "x.max(1)", "x.max(dim=0)", "torch.max(x, 1)",
    "torch.max(x, dim=1, keepdim=True)", "torch.min(x, 0)", "x.max()", "torch.max(x, 2 - x)", "x.sort(1)", "torch.sort(x, dim=0)",
    "torch.sort(x, descending=True)", "x.median(0)", "x.nanmedian(0)", "x.long() + 1", "x.long() // 2", "x.long() / 2", "x.long() * 2.5", "x.long() ** 2",
    "x.long().sum()", "x.long().prod()", "x.long().cumsum(0)", "x.long().clamp(min=2)", "x.long().clamp(0, 2)", "x.long().abs()", "-x.long()",
    "x.long().max(1)", "x.long().max()", "x.long() @ x.long()", "x.long() % 2", "torch.sin(torch.ones(2))", "torch.stack([x[0], x[1]])",
    "torch.cat([x, x], 1)", "torch.where(x > 1, x, 0.0)", "torch.where(x > 1, 1.0, 0.0)", "torch.where(x > 1, x, -x)",
    "torch.nonzero(x - 1)", "torch.nonzero(x > 1, as_tuple=True)", "(x > 1).nonzero()", "x.gather(1, torch.tensor([[0], [1]]))",
    "torch.bincount(torch.tensor([0, 2, 2]))", "x.topk(1)", "x.argsort(1)",
    "torch.finfo(torch.float32).eps", "torch.finfo(torch.double).max", "torch.finfo().tiny", "torch.iinfo(torch.int32).max",
    "torch.iinfo(torch.uint8).min", "torch.finfo(torch.half).bits", "torch.linalg.cond(x)", "torch.linalg.cond(x, 1)",
    "torch.linalg.cond(x, 'fro')", "torch.nn.functional.one_hot(torch.tensor([0, 2]))", "torch.sin_(torch.ones(2))",
    "torch.unique(torch.tensor([3, 1, 3]))", "torch.tensor([3, 1, 3]).unique(return_counts=True)", "torch.unique(x, return_inverse=True)",
    "torch.unique(torch.tensor([[1, 2], [1, 2]]), dim=0)", "torch.diff(x)", "x.diff(dim=0)", "torch.select(x, 1, 0)", "torch.detach(x)",
    "x.sort()", "x.sort(descending=True)", "x[0].sort().values", "torch.max(input=x, dim=1)", "torch.sum(input=x, dim=1)",
    "x.sum(dtype=torch.float32)", "x.sum(1, dtype=torch.long)", "x.cumsum(0, dtype=torch.float)", "torch.median(input=x, dim=0)",
    "torch.add(x, x, alpha=2)", "x.add(1, alpha=0.5)", "x.clone().sub_(x, alpha=0.5)", "x.squeeze(0)", "x.unsqueeze(0).squeeze(0)",
    "x.div(2, rounding_mode='floor')", "x.clone().addcmul_(x, x, value=2)", "x.softmax(-1)", "x.cumsum(0)",
    "torch.searchsorted(torch.tensor([1.0, 2.0]), torch.tensor([1.5]))", "torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')",
    "torch.equal(x, x)", "torch.allclose(x, x + 1e-12)", "x.eq(x)", "x.masked_fill(x > 1, 0.0)", "x.long().float()", "torch.sum(x > 1)",
    "torch.cumsum(x > 1, 0)", "torch.isnan(x)", "x.long().tolist()", "torch.einsum('ij,ij->', x, x)", "torch.outer(x[0], x[1])",
    "x.index_select(0, torch.tensor([1]))", "torch.tril(x)", "x.norm()", "torch.pi", "torch.inf", "torch.e", "x.expand(2, 2, 2)",
    "x.t().contiguous().view(-1)", "x.clone().fill_(3)", "x.flatten()", "torch.flatten(x)", "x.numpy().tolist()", "x.long().numpy().tolist()",
    "torch.split(x, 1, dim=0)", "x.split(1)", "x.chunk(2, 1)", "x.unbind(0)", "torch.tensor(3).item()", "torch.tensor(True).item()",
    "float(torch.tensor(2))", "int(torch.tensor(2.5))", "bool(torch.tensor(1))", "len(x)", "[int(v) for v in x.long()[0]]", "x.mean(0, keepdim=True)",
    "x.var(unbiased=False)", "x.std(0, correction=1)", "torch.std(x, 1, unbiased=True)", "x.detach().cpu().numpy().tolist()",
    "x.reshape(4).repeat(2)", "torch.full((2,), torch.pi)", "torch.ones(2).add_(1).mul_(2)", "(2 ** torch.arange(3))", "torch.pow(2, x)",
]  # fmt: skip


@pytest.mark.cases(80)
@pytest.mark.parametrize("code", SURFACE)
def test_what_tensors_have(code):
    values = [[0.5, 1.5], [2.25, 3.75]]
    expected = eval(code, {"torch": torch, "x": torch.tensor(values)})
    found = eval(code, {"torch": gradcli, "x": gradcli.tensor(values)})
    assert_alike(found, expected)


def test_the_default_dtype():
    assert gradcli.get_default_dtype() == gradcli.float64 == "float64"
    gradcli.set_default_dtype(gradcli.float32)
    try:
        for made in (
            gradcli.ones(2),
            gradcli.tensor(0.1),
            gradcli.Tensor([1, 2]),
            gradcli.rand(2),
            gradcli.linspace(0, 1, 2),
        ):
            assert made.dtype == gradcli.float32
        assert gradcli.tensor([1, 2]).dtype == gradcli.long
        assert gradcli.tensor(np.ones(2)).dtype == gradcli.double
    finally:
        gradcli.set_default_dtype("float64")
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        gradcli.set_default_dtype(gradcli.int)


def test_a_size_is_a_number_too():
    x = gradcli.ones(2, 3)
    assert (x.size, x.size(), x.size(0)) == (6, (2, 3), 2)
    assert (x.sum() / x.size).item() == 1.0
    assert gradcli.multiply(x, x.size).tolist() == [[6.0] * 3] * 2
    assert repr(x.size()) == "gradcli.Size([2, 3])"
    with pytest.raises(gradcli.errors.ShapeError, match="axis 2 is out of range for a tensor of 2 dimensions"):
        x.size(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gradcli.zeros(2, typ=1), "there is no option 'typ' of a tensor that is made"),
        (lambda: gradcli.zeros(2, out=gradcli.ones(3)), r"out has the shape \[3\], and the result \[2\]"),
        (lambda: gradcli.zeros(-1), r"a size must not be negative: \[-1\]"),
        (lambda: gradcli.arange(), "needs the end of the range"),
        (lambda: gradcli.full((2,)), 'missing 1 required positional arguments: "fill_value"'),
        (lambda: gradcli.manual_seed("one"), "a seed must be a whole number"),
        (lambda: gradcli.rand(2, dtype=gradcli.long), "random floats are not drawn as int64"),
        (lambda: gradcli.set_default_device("cuda"), "tensors are made on the CPU"),
        (lambda: gradcli.finfo(gradcli.long), "takes a floating dtype"),
        (lambda: gradcli.tensor([1.0, 2.0]) & 1, "are for tensors of truth values"),
        (lambda: gradcli.rand(2, generator=3), "a generator is a Generator, not int"),
    ],
)
def test_what_cannot_be_made(call, words):
    with pytest.raises(gradcli.GradcliError, match=words):
        call()


def test_from_numpy_copies():
    array = np.array([1.0, 2.0])
    made = gradcli.from_numpy(array)
    array[0] = 5.0
    assert made.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        gradcli.from_numpy([1.0])


@pytest.mark.parametrize("code", ["torch.svd(A)", "torch.svd(A.T)", "A.svd()"])
def test_vectors_of_svd_are_columns_as_in_pytorch(code):
    matrices = [library.tensor([[1.0, 2.0, 0.5], [3.0, 4.0, -1.0]]) for library in (torch, gradcli)]
    expected, found = (eval(code, {"torch": m, "A": A}) for m, A in zip((torch, gradcli), matrices))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(abs(one.numpy()), abs(other.numpy()), 1e-12)
    assert gradcli.svd(matrices[1], full_matrices=False)[2].shape == (2, 3)
