def mse(y_true, y_pred):
    total = 0
    for i in range(len(y_true)):
        total += (y_true[i] - y_pred[i]) ** 2
    return total / len(y_true)
