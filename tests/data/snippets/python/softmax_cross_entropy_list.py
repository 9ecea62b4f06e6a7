import math

def cross_entropy(scores, label):
    m = max(scores)
    exps = [math.exp(s - m) for s in scores]
    total = sum(exps)
    return -math.log(exps[label] / total)
