np.log(np.linalg.det(X)) + np.trace(np.linalg.inv(X) @ A)
