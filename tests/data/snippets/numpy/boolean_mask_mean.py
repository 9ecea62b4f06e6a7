positive = x[x > threshold]
negative = x[x <= threshold]
positive.mean() - np.abs(negative).mean()
