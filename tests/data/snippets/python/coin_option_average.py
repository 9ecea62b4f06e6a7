def asian_call(S0, up, down, K):
    payoffs = []
    for i in range(8):
        s = S0
        path = []
        for b in range(3):
            s = s * up if i // 2**b % 2 == 1 else s * down
            path.append(s)
        payoffs.append(max(sum(path) / 3 - K, 0))
    return sum(payoffs) / 8
