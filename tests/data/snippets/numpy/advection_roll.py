u_new = u - c * (u - np.roll(u, 1))
u_new = u_new - c * (u_new - np.roll(u_new, 1))
np.sum(u_new**2)
