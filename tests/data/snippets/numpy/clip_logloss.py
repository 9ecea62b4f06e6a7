p = np.clip(p, 1e-15, 1 - 1e-15)
-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
