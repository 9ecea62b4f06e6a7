c, s = np.cos(theta), np.sin(theta)
R = np.array(((c, -s), (s, c)))
R @ p
