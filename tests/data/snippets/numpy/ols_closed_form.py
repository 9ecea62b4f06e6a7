beta = np.linalg.inv(X.T @ X) @ X.T @ y
y_hat = X @ beta
ss_res = ((y - y_hat) ** 2).sum()
ss_tot = ((y - y.mean()) ** 2).sum()
r2 = 1 - ss_res / ss_tot
