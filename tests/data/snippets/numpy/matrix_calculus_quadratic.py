x.T @ A @ x + b.T @ x
