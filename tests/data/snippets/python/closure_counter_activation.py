def leaky_relu(alpha=0.01):
    def f(x):
        return x if x > 0 else alpha * x
    return f

act = leaky_relu(a)
act(x) * act(-x)
